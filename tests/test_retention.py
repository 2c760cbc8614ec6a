"""Nothing is kept without a reason that is written down, and what has an age goes."""

import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from service.app.background.service import list_kinds, list_schedules
from service.app.tables import TABLES
from service.auth.service import KEYS_KEPT
from service.auth.tables import ApiKeyRow
from service.kit.clock import now
from service.kit.http.idempotency import (
    IdempotencyKeyRow,
    StoredAnswer,
    StoredKey,
    begin_request,
    store_answer,
)
from service.kit.jobs import events
from service.kit.jobs.repository import enqueue_job, get_job
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.schedules import NoArguments
from tests.applications import MEANS

PAGE = (Path(__file__).parent.parent / "docs" / "retention.md").read_text()
KINDS = list_kinds(MEANS)
SCHEDULES = list_schedules(KINDS, MEANS)
JOBS = {kind.name: kind for kind in KINDS}


def names(line):
    return re.findall(r"`([^`]+)`", line)


def written():
    """Every table that the page names, with its columns in order and the rest of its text."""
    columns, texts = {}, {}
    tables, told = [], []
    for line in PAGE.splitlines():
        if line.startswith("## "):
            told = tables = names(line)
        elif line.startswith("Of `"):
            tables = names(line)
        elif line.startswith("| `"):
            first, _, why = line.strip("| ").partition(" | ")
            assert why, line
            for table in tables:
                columns.setdefault(table, []).extend(names(first))
        for table in told:
            texts[table] = f"{texts.get(table, '')} {line}"
    return columns, texts


def test_every_column_has_its_reason():
    columns, texts = written()
    assert columns.keys() == {table.name for table in TABLES}
    for table in TABLES:
        assert sorted(columns[table.name]) == sorted(table.columns.keys()), table.name
        for said in ("Whose:", "Kept:", "Removed by:"):
            assert said in texts[table.name], (table.name, said)


def test_every_job_that_is_named_is_there():
    named = set(re.findall(r"job `([^`]+)`", " ".join(PAGE.split())))
    assert named == {schedule.job.name for schedule in SCHEDULES}


def ran(database, name):
    """The result of one job."""
    with database.open_writer() as session:
        job = enqueue_job(session, JOBS[name], NoArguments(), tenant_id="system", effect_key="test")
    runner = JobRunner(database, KINDS, threads=1)
    runner.start()
    try:
        deadline = time.monotonic() + 60
        while True:
            with database.open_reader() as session:
                row = get_job(session, "system", job)
            if row.state == "done":
                return row.result
            assert time.monotonic() < deadline, row.state
            time.sleep(0.01)
    finally:
        runner.stop(5.0)


def key_row(key_id, **times):
    return ApiKeyRow(
        tenant_id="default",
        id=key_id,
        name="",
        scopes=[],
        digest="",
        created_at=now(),
        lineage=["token:ada"],
        version=1,
        **times,
    )


def test_keys_go_long_after_they_ended(database):
    long_ago, lately = now() - KEYS_KEPT - timedelta(days=1), now() - KEYS_KEPT + timedelta(days=1)
    with database.open_writer() as session:
        session.add_all(
            [
                key_row("open"),
                key_row("open-until", expires_at=now() + timedelta(days=1)),
                key_row("revoked-lately", revoked_at=lately),
                key_row("expired-lately", expires_at=lately),
                key_row("revoked", revoked_at=long_ago),
                key_row("expired", expires_at=long_ago),
                key_row("revoked-after-it-expired", expires_at=long_ago, revoked_at=lately),
            ]
        )
    assert ran(database, "api-keys.expire") == {"deleted": 3}
    with database.open_reader() as session:
        left = set(session.scalars(select(ApiKeyRow.id)))
    assert left == {"open", "open-until", "revoked-lately", "expired-lately"}


@pytest.mark.parametrize(("age", "deleted"), [(timedelta(hours=23), 0), (timedelta(hours=25), 1)])
def test_kept_answers_go_after_a_day(database, age, deleted):
    key = StoredKey("default", "api_key:one", "create_offer", "digest")
    with database.open_writer() as session:
        begin_request(session, key, "request")
        store_answer(session, key, StoredAnswer(201, {}, b"{}"))
        row = session.scalars(select(IdempotencyKeyRow)).one()
        row.expires_at -= age
    assert ran(database, "idempotency-keys.expire") == {"deleted": deleted}


def test_schedules():
    assert {schedule.job.name: schedule.every for schedule in SCHEDULES} == {
        "jobs.expire": timedelta(hours=1),
        "idempotency-keys.expire": timedelta(hours=1),
        "api-keys.expire": timedelta(days=1),
        "ended-sessions.expire": timedelta(hours=1),
        "enrolment-tokens.expire": timedelta(days=1),
        "approval-links.expire": timedelta(days=1),
        "events.expire": timedelta(days=1),
        "plans.expire": timedelta(days=1),
        "webhook-deliveries.expire": timedelta(days=1),
        "leases.settle": timedelta(minutes=1),
        "plans.sweep": timedelta(minutes=1),
        "quotes.sweep": timedelta(hours=1),
        "approvals.sweep": timedelta(minutes=1),
        "policy_changes.sweep": timedelta(minutes=1),
        "benchmarks.sweep": timedelta(hours=1),
        "audit.heads": timedelta(hours=1),
        "audit.verify": timedelta(days=1),
    }


def test_a_job_deletes_until_nothing_is_left(database, monkeypatch):
    monkeypatch.setattr(events, "_EXPIRED_AT_ONCE", 2)
    with database.open_writer() as session:
        for number in range(5):
            events.write_event(session, "default", "webhook.test", {}, event_id=str(number))
        old = now() - timedelta(days=91)
        session.execute(update(events.EventRow).values(occurred_at=old))
    assert ran(database, "events.expire") == {"deleted": 5}
