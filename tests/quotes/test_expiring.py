"""Quotes that soon hold no more are told of: all of them at a tick, and each once."""

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from service.app.background import quotes
from service.kit.database.engine import Database
from service.kit.jobs.chunks import FailedChunk
from service.kit.jobs.events import EventRow
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import NoArguments
from service.kit.jobs.tables import JobRow
from service.quotes.tables import QuoteRow
from tests import clocks
from tests.working import do_all

SWEEP = quotes.SWEEPING.job


class Quotes:
    """Quotes of one database, and what was told of them."""

    def __init__(self, database):
        self.database = database
        self.clock = clocks.Clock(database)

    def add(self, name, *, state="draft", tenant="default", **ahead):
        values = {
            "tenant_id": tenant,
            "id": uuid4().hex,
            "version": 1,
            "state": state,
            "operation": "utility-bill",
            "name": name,
            "created_at": self.clock.at,
            "created_by": "token:ann",
            "valid_until": self.clock.at + timedelta(**ahead),
            "catalog_revision": 1,
            "method_version": "1",
            "summary": "{}",
            "document": "{}",
            "content_digest": "",
        }
        with self.database.open_writer() as session:
            session.execute(insert(QuoteRow).values(**values))

    def tick(self):
        with self.database.open_writer() as session:
            enqueue_job(session, SWEEP, NoArguments(), tenant_id="system", effect_key=uuid4().hex)

    def told(self):
        with self.database.open_reader() as session:
            return sorted(row.data["name"] for row in session.scalars(select(EventRow)))


@pytest.fixture
def board(database: Database):
    yield Quotes(database)
    clocks.unset(database)


def test_a_tick_tells_of_all_of_them(board, monkeypatch):
    monkeypatch.setattr(quotes, "AT_ONCE", 2)
    for number in range(5):
        board.add(f"soon {number}", hours=23, state="pending" if number else "draft")
    board.add("of another", hours=1, tenant="other")
    board.add("later", hours=25)
    board.add("over", hours=-1)
    for state in ("approved", "rejected", "expired", "cancelled", "superseded"):
        board.add(state, hours=1, state=state)
    board.tick()
    do_all(board.database, SWEEP)
    assert board.told() == ["of another", *(f"soon {number}" for number in range(5))]
    with board.database.open_reader() as session:
        event = next(row for row in session.scalars(select(EventRow)) if row.data["name"] == "soon 0")
        assert event.type == "quote.expires_soon"
        assert event.data["valid_until"] == "2026-03-02T11:00:00Z"
        (done,) = session.scalars(select(JobRow).where(JobRow.kind == "quotes.sweep"))
        assert (done.state, done.result) == ("done", {"quotes": 6})


def test_each_once_over_ticks_processes_and_crashes(board, monkeypatch):
    monkeypatch.setattr(quotes, "AT_ONCE", 1)
    for number in range(3):
        board.add(f"soon {number}", hours=23)
    board.tick()
    do_all(board.database, SWEEP, most=1)
    real = quotes.repository.expiring

    def broken(*_):
        raise OSError

    monkeypatch.setattr(quotes.repository, "expiring", broken)
    with pytest.raises(AssertionError, match=FailedChunk.__name__):
        do_all(board.database, SWEEP, most=1)
    monkeypatch.setattr(quotes.repository, "expiring", real)
    for _ in range(2):
        board.tick()
        board.clock.move(hours=2)
        do_all(board.database, SWEEP)
    assert board.told() == ["soon 0", "soon 1", "soon 2"]
    with board.database.open_reader() as session:
        published = session.scalars(select(JobRow).where(JobRow.kind == "events.publish")).all()
    assert len(published) == 3
