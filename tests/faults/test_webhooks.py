"""Processes that deliver are killed at any point: every message arrives, and again only under its own id."""

import json
import signal
import time
from collections import Counter, defaultdict

import httpx
import pytest
from sqlalchemy import select
from standardwebhooks import Webhook

from service.kit.jobs.events import emit_event
from service.kit.security.principals import LOCAL
from service.schemas.events import WebhookEventType
from service.webhooks.schemas import WebhookRequest
from service.webhooks.tables import AttemptRow, DeliveryRow
from tests import forked
from tests.faults import webhook_worker
from tests.faults.harness import LONG, TIMES, rows
from tests.faults.points import read_ledger
from tests.waiting import until
from tests.webhooks.receiving import receiver

EVENTS_EACH = 3
POINTS = webhook_worker.POINTS if LONG else webhook_worker.POINTS[::2]


class Worker:
    """One process after the other that works on a database."""

    def __init__(self, database, folder):
        self._url = database.url.render_as_string(hide_password=False)
        self._hits, self._log = folder / "hits.jsonl", folder / "log"
        self._process = None

    def hits(self):
        return Counter(line["point"] for line in read_ledger(self._hits))

    def start(self, point=None):
        options = (self._url, str(self._hits), {"point": point}, str(self._log))
        self._process = forked.Process(webhook_worker.run, *options)

    def die_at(self, point):
        self.start(point)
        self._process.join(30)
        assert self._process.exitcode == -signal.SIGKILL, point
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()
            self._process.join()


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_what_is_sent_and_not_recorded_is_sent_again_under_its_id(databases, tmp_path, report):
    began = time.monotonic()
    database = databases.loaded()
    with receiver() as there, Worker(database, tmp_path) as worker:
        body = {"url": there.url("/hook")}
        with database.open_writer() as session:
            made = webhook_worker.webhooks().create(
                session, LOCAL, WebhookRequest.model_validate_json(json.dumps(body))
            )
        told = []
        for _ in range(TIMES):
            for point in POINTS:
                with database.open_writer() as session:
                    told += [
                        emit_event(
                            session,
                            "default",
                            WebhookEventType.APPROVAL_APPROVED,
                            {"approval_id": f"{number}"},
                        )
                        for number in range(EVENTS_EACH)
                    ]
                worker.die_at(point)
        worker.start()
        delivered = select(DeliveryRow.id).where(DeliveryRow.state == "delivered")
        until(lambda: len(rows(database, delivered)) == len(told))
        received = there.at("/hook")
    bodies = defaultdict(set)
    for headers, content in received:
        Webhook(made.once["secret"]).verify(content, headers)
        bodies[headers["webhook-id"]].add(content)
    assert set(bodies) == set(told)
    assert {len(seen) for seen in bodies.values()} == {1}, "a message changed"
    again = len(received) - len(told)
    assert again >= TIMES, "what was sent by a process that was killed then was not sent again"
    taken = rows(
        database, select(AttemptRow.delivery_id).where(AttemptRow.status_code == httpx.codes.NO_CONTENT)
    )
    assert len(taken) == len(set(taken)) == len(told)
    hits = worker.hits()
    report(
        "Processes killed while they deliver webhooks",
        database=databases.kind,
        messages=len(told),
        **{f"kills, {point}": hits[point] for point in webhook_worker.POINTS},
        lost=len(set(told) - set(bodies)),
        sent_again=again,
        sent_again_under_another_id=0,
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )
