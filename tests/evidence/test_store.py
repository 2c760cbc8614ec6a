"""The snapshot: swapped when the revision changes and only then, whole, and the same without SQL."""

import asyncio
import contextlib
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from unittest.mock import Mock

import pytest

from service.catalog import service as catalog
from service.catalog.registry import ACCELERATORS, RESOURCES
from service.catalog.shipped import list_shipped_documents
from service.evidence import snapshot as snapshots
from service.evidence.rows import name_row
from service.evidence.snapshot import SnapshotStore
from service.kit.http.problems import Problem, Unavailable
from tests.applications import know_shipped_rows
from tests.prepared import ON_SQLITE


@pytest.fixture
def store(database):
    store = SnapshotStore(database)
    know_shipped_rows(store, database)
    store.refresh()
    return store


TENANT = "research"


def own(database):
    with database.open_writer() as session:
        catalog.copy_row(session, ACCELERATORS, TENANT, "h100-sxm", None)


def change(database, watts):
    with database.open_writer() as session:
        patch = {"power_limit_watts": watts}
        catalog.update_row(session, ACCELERATORS, TENANT, "h100-sxm", patch=patch, if_match="*")


def watts(snapshot):
    return snapshot.accelerators["h100-sxm"].accelerator.power_limit_watts


@ON_SQLITE
def test_before_the_first_there_is_none(database):
    empty = SnapshotStore(database)
    assert not empty.is_ready
    with pytest.raises(Unavailable):
        _ = empty.get_current(TENANT)


@ON_SQLITE
def test_the_same_revision_keeps_the_same_snapshot(store):
    first = store.get_current(TENANT)
    store.refresh()
    assert store.get_current(TENANT) is first


def test_a_new_revision_swaps_the_snapshot_and_leaves_the_old_one_alone(store, database):
    first = store.get_current(TENANT)
    own(database)
    change(database, 350.0)
    assert store.get_current(TENANT) is first
    store.refresh()
    assert store.get_current(TENANT) is not first
    assert (first.revision, store.get_current(TENANT).revision) == (1, 3)
    assert (watts(first), watts(store.get_current(TENANT))) == (700.0, 350.0)


@ON_SQLITE
def test_a_change_of_one_tenant_leaves_the_snapshot_of_others(store, database):
    first = store.get_current("another")
    own(database)
    store.refresh()
    assert store.get_current("another") is first
    changed = store.get_current(TENANT)
    assert (changed.accelerators is first.accelerators, changed.models is first.models) == (False, True)


@ON_SQLITE
def test_a_tenant_sees_its_own_row_and_others_the_shipped_one(store, database):
    own(database)
    change(database, 350.0)
    store.refresh()
    assert watts(store.get_current("another")) == 700.0
    assert store.get_current("another").revision == 1
    source = store.get_current(TENANT).accelerators["h100-sxm"].source
    assert (source["origin"], source["version"], source["shadows_shipped_version"]) == ("tenant", 2, 1)
    assert "shadows_shipped_version" not in store.get_current("another").accelerators["h100-sxm"].source


@ON_SQLITE
def test_a_shipped_row_leaves_with_all_its_names_behind_a_tenants_own(store, database):
    with database.open_writer() as session:
        catalog.copy_row(session, ACCELERATORS, TENANT, "h100-sxm", None)
        catalog.update_row(
            session, ACCELERATORS, TENANT, "h100-sxm", patch={"aliases": ["ours"]}, if_match="*"
        )
    store.refresh()
    mine, common = store.get_current(TENANT).accelerators, store.get_current("another").accelerators
    assert common.keys() == mine.keys()
    assert len(common.entries["h100-sxm"].names) > 2
    assert mine.entries["h100-sxm"].names == ("h100-sxm", "ours")
    assert mine["Ours"] is mine["h100-sxm"]


@ON_SQLITE
def test_a_load_of_shipped_rows_reaches_every_tenant(store, database, monkeypatch):
    own(database)
    store.refresh()
    documents = dict(list_shipped_documents())
    documents["accelerators"] = [{**row, "note": "new"} for row in documents["accelerators"]]
    monkeypatch.setattr(catalog, "list_shipped_documents", lambda: documents)
    monkeypatch.setattr(catalog, "compute_shipped_digest", lambda: "another")
    with database.open_writer() as session:
        catalog.load_shipped(session)
    store.refresh()
    assert (store.get_current(TENANT).revision, store.get_current("another").revision) == (3, 2)
    assert store.get_current(TENANT).accelerators["h100-sxm"].source["shadows_shipped_version"] == 2
    assert store.get_current(TENANT).accelerators["h200-sxm"].source["version"] == 2


@ON_SQLITE
def test_a_deleted_row_leaves_the_next_snapshot(store, database):
    with database.open_writer() as session:
        catalog.copy_row(session, ACCELERATORS, TENANT, "h100-sxm", "mine")
    store.refresh()
    assert "mine" in store.get_current(TENANT).accelerators
    assert "mine" not in store.get_current("another").accelerators
    with database.open_writer() as session:
        catalog.delete_row(session, ACCELERATORS, TENANT, "mine", if_match='"1"')
    store.refresh()
    assert "mine" not in store.get_current(TENANT).accelerators


@ON_SQLITE
def test_a_snapshot_is_frozen(store):
    with pytest.raises(AttributeError):
        store.get_current(TENANT).revision = 7
    assert {field.name for field in fields(store.get_current(TENANT))} > {"models", "offers"}


def test_names_and_aliases_lead_to_the_same_row(snapshot):
    assert snapshot.models["meta-llama/Llama-3.1-8B"] is snapshot.models["llama-3.1-8b"]


def test_the_shipped_snapshot_is_that_of_a_loaded_database(database, snapshot):
    store = SnapshotStore(database)
    store.refresh()
    for name in RESOURCES.keys() & {field.name for field in fields(snapshot)}:
        assert getattr(store.get_current(TENANT), name) == getattr(snapshot, name)
    assert store.get_current(TENANT).curves == snapshot.curves


@ON_SQLITE
def test_readers_never_see_half_a_snapshot(store, database):
    """While a writer counts watts and revision up together, every snapshot holds a matching pair."""
    own(database)
    store.refresh()
    store.load(TENANT)
    seen, stop = set(), threading.Event()

    def read():
        while not stop.is_set():
            current = store.get_current(TENANT)
            seen.add((current.revision, watts(current)))

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 9):
        change(database, 100.0 + step)
        store.refresh()
    stop.set()
    reader.join()
    assert seen <= {(2, 700.0), *((2 + step, 100.0 + step) for step in range(1, 9))}
    assert watts(store.get_current(TENANT)) == 108.0
    assert len(seen) > 1


def write_something(database, draw):
    """Copies, renames or deletes a row of the tenant, under ids of shipped rows and others."""
    row_id = draw.choice(["h100-sxm", "h200-sxm", "mine", "other"])
    with contextlib.suppress(Problem), database.open_writer() as session:
        if row_id in ("mine", "other"):
            catalog.copy_row(session, ACCELERATORS, TENANT, "l4", row_id)
        else:
            catalog.copy_row(session, ACCELERATORS, TENANT, row_id, None)
        return
    with contextlib.suppress(Problem), database.open_writer() as session:
        if draw.random() < 0.5:
            catalog.delete_row(session, ACCELERATORS, TENANT, row_id, if_match="*")
        else:
            patch = {"aliases": [f"{row_id}-{draw.randrange(9)}"]}
            catalog.update_row(session, ACCELERATORS, TENANT, row_id, patch=patch, if_match="*")


def test_a_snapshot_made_by_changes_is_that_built_whole(store, database):
    draw = random.Random(30)  # noqa: S311
    for step in range(24):
        write_something(database, draw)
        if step % 3 == 0:
            store.refresh()
            store.load(TENANT)
    store.refresh()
    whole = SnapshotStore(database)
    whole.refresh()
    changed, built = store.get_current(TENANT).accelerators, whole.get_current(TENANT).accelerators
    assert changed.entries == built.entries
    assert [layer.indexes for layer in changed.layers] == [layer.indexes for layer in built.layers]
    assert len(changed.layers[1].entries) > 1


def test_a_write_decodes_the_changed_row_alone(store, database, monkeypatch):
    own(database)
    store.refresh()
    store.load(TENANT)
    decoded = []
    monkeypatch.setattr(
        snapshots, "name_row", lambda noun, row: decoded.append(row["id"]) or name_row(noun, row)
    )
    with database.open_writer() as session:
        catalog.copy_row(session, ACCELERATORS, TENANT, "l4", "mine")
    store.refresh()
    assert decoded == ["mine"]


@ON_SQLITE
def test_the_snapshot_of_an_idle_tenant_is_dropped_and_built_again(store, database):
    own(database)
    change(database, 650)
    store.refresh()
    before = store.get_current(TENANT)
    store.drop_idle(60.0)
    assert store.get_current(TENANT) is before
    store.drop_idle(-1.0)
    store.refresh()
    assert store._tenants == {}
    change(database, 640)
    assert watts(store.get_current(TENANT)) == 640
    assert watts(store.get_current("default")) != 640


class HeldBuild:
    """A build that waits in a row of one tenant until it is let go."""

    def __init__(self, monkeypatch, store):
        self.store = store
        self.began, self.may_go_on, self.decoded = threading.Event(), threading.Event(), []
        monkeypatch.setattr(snapshots, "name_row", self.name)

    def name(self, noun, row):
        self.decoded.append(row["id"])
        if row["id"] == "held":
            self.began.set()
            assert self.may_go_on.wait(20)
        return name_row(noun, row)


@pytest.fixture
def held(database, monkeypatch):
    """A build, and a store of two tenants with rows, neither of whose snapshots is built."""
    with database.open_writer() as session:
        catalog.copy_row(session, ACCELERATORS, TENANT, "l4", "held")
        catalog.copy_row(session, ACCELERATORS, "another", "l4", "mine")
    store = SnapshotStore(database)
    store.refresh()
    held = HeldBuild(monkeypatch, store)
    yield held
    held.may_go_on.set()


def test_a_tenant_is_built_at_its_first_question_and_others_do_not_wait(database, held):
    store = held.store
    with ThreadPoolExecutor() as asking:
        first, second = (asking.submit(store.get_current, TENANT) for _ in range(2))
        assert held.began.wait(20)
        assert "mine" in store.newest("another").accelerators
        change_held = {"patch": {"power_limit_watts": 350.0}, "if_match": "*"}
        with database.open_writer() as session:
            catalog.update_row(session, ACCELERATORS, TENANT, "held", **change_held)
        store.refresh()
        assert not first.done()
        assert not second.done()
        held.may_go_on.set()
        found = first.result(20)
    assert second.result() is found
    assert found is store.get_current(TENANT)
    # It was built once, and what was written meanwhile is in it.
    assert held.decoded == ["held", "mine", "held"]
    assert found.accelerators["held"].accelerator.power_limit_watts == 350.0


@ON_SQLITE
def test_a_question_waits_for_its_catalog_as_long_as_a_request_may(held, monkeypatch):
    store = held.store
    monkeypatch.setattr(snapshots, "REQUEST_SECONDS", 0.01)
    with pytest.raises(Unavailable, match="of the tenant"):
        store.get_current(TENANT)
    with pytest.raises(Unavailable, match="of the tenant"):
        asyncio.run(store.await_current(TENANT))
    held.may_go_on.set()
    assert "held" in store.load(TENANT).accelerators
    assert asyncio.run(store.await_current(TENANT)) is store.get_current(TENANT)


@ON_SQLITE
def test_a_build_that_failed_is_tried_again(held, monkeypatch):
    store = held.store
    held.may_go_on.set()
    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "name_row", Mock(side_effect=OSError("gone")))
        with pytest.raises(OSError, match="gone"):
            store.get_current(TENANT)
    assert "held" in store.get_current(TENANT).accelerators


@ON_SQLITE
def test_all_tenants_are_built_the_last_changed_first(held):
    store = held.store
    held.may_go_on.set()
    store.load_all()
    assert held.decoded == ["mine", "held"]
    store.load_all()
    assert held.decoded == ["mine", "held"]
