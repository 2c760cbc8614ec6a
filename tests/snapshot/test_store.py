"""The snapshot: swapped when the revision changes and only then, whole, and the same without SQL."""

import asyncio
import threading
from dataclasses import fields

import pytest
from sqlalchemy.exc import OperationalError

from service.catalog import service as catalog
from service.catalog.nouns import ACCELERATORS, OFFERS
from service.kit.problems import Unavailable
from service.snapshot import service as module
from service.snapshot.service import SnapshotStore


@pytest.fixture
def store(database):
    store = SnapshotStore(database)
    store.refresh()
    return store


def change(database, watts):
    with database.writing() as session:
        row = catalog.get(session, ACCELERATORS, "h100-sxm")
        catalog.change(session, ACCELERATORS, "h100-sxm", {"power_limit_watts": watts}, f'"{row["version"]}"')


def watts(snapshot):
    return snapshot.accelerators["h100-sxm"].accelerator.power_limit_watts


def test_before_the_first_there_is_none(database):
    empty = SnapshotStore(database)
    assert not empty.is_ready
    with pytest.raises(Unavailable):
        _ = empty.current


def test_the_same_revision_keeps_the_same_snapshot(store):
    first = store.current
    store.refresh()
    assert store.current is first


def test_a_new_revision_swaps_the_snapshot_and_leaves_the_old_one_alone(store, database):
    first = store.current
    change(database, 350.0)
    assert store.current is first
    store.refresh()
    assert store.current is not first
    assert (first.revision, store.current.revision) == (1, 2)
    assert (watts(first), watts(store.current)) == (700.0, 350.0)


def test_a_deleted_row_leaves_the_next_snapshot(store, database):
    name = next(iter(store.current.offers))
    with database.writing() as session:
        catalog.delete(session, OFFERS, name, '"1"')
    store.refresh()
    assert name not in store.current.offers


def test_a_snapshot_is_frozen(store):
    with pytest.raises(AttributeError):
        store.current.revision = 7
    assert {field.name for field in fields(store.current)} > {"models", "offers"}


def test_names_and_aliases_lead_to_the_same_row(snapshot):
    assert snapshot.models["meta-llama/Llama-3.1-8B"] is snapshot.models["llama-3.1-8b"]


def test_the_shipped_snapshot_is_that_of_a_loaded_database(store, snapshot):
    for name in ("models", "accelerators", "links", "offers", "grids", "sites"):
        assert getattr(store.current, name) == getattr(snapshot, name)
    assert store.current.curves == snapshot.curves


def test_readers_never_see_half_a_snapshot(store, database):
    """While a writer counts watts and revision up together, every snapshot holds a matching pair."""
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            current = store.current
            seen.add((current.revision, watts(current)))

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 9):
        change(database, 100.0 + step)
        store.refresh()
    stop.set()
    reader.join()
    assert seen <= {(1, 700.0), *((1 + step, 100.0 + step) for step in range(1, 9))}
    assert watts(store.current) == 108.0
    assert len(seen) > 1


def test_the_clock_finds_the_writes_of_other_processes_and_survives_an_error(store, database, monkeypatch):
    failures = []

    def fail_once(session):
        if not failures:
            failures.append(1)
            raise OperationalError("", None, Exception("gone"))
        return original(session)

    original = module.catalog.revision
    monkeypatch.setattr(module.catalog, "revision", fail_once)

    async def wait():
        clock = asyncio.create_task(store.keep_fresh(interval_seconds=0.01))
        change(database, 123.0)
        async with asyncio.timeout(10):
            while store.current.revision < 2:  # noqa: ASYNC110  # the clock tells nobody
                await asyncio.sleep(0.01)
        clock.cancel()

    asyncio.run(wait())
    assert failures
    assert watts(store.current) == 123.0
