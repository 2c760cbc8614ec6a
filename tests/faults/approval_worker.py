"""A process in which many decide about one approval at once, with named points around their transactions."""

import os
import threading
from functools import partial

from service.app.background.approvals import settle_deadlines
from service.approvals import decisions, repository
from service.approvals.schemas import ApprovalDecisionRequest
from service.audit.service import WriteContext, Writes
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.database.engine import Database
from service.kit.http.problems import Problem
from tests.applications import KEYRING
from tests.approvals.test_model import TENANT, subject
from tests.faults.points import Ledger, Points, around

POINTS = ("decision: locked", "decision: before commit", "decision: committed, not answered")
"""Where a process is killed."""


def run(url, hits, armed, answers, asked):
    """Have every decider decide, and write down what each was answered; ``armed`` names a point."""
    points, ledger = Points(hits, **armed), Ledger(answers)
    around(repository, "lock_approval", after=lambda *_: points.reached(POINTS[0]))
    around(Writes, "record", after=lambda *_: points.reached(POINTS[1]))
    database = Database(url)
    writes, catalog = Writes(database, KEYRING), build_shipped_snapshot()

    def decide(name, kind):
        call = WriteContext(subject(name), "decide", f"/{kind}", "request", f"key of {name}")
        deciding = partial(
            decisions.decide_approval,
            subject=subject(name),
            approval_id=asked["id"],
            decision=kind,
            sent=ApprovalDecisionRequest(content_digest=asked["content_digest"]),
            catalog=catalog,
        )
        try:
            status = writes.run(call, kind, deciding).status_code
        except Problem as problem:
            status = problem.code
        else:
            points.reached(POINTS[2])
        ledger.note("answer", name=name, kind=kind, status=status)

    threads = [threading.Thread(target=decide, args=each) for each in asked["deciders"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.open_writer() as session:
        settle_deadlines(session, writes, TENANT, asked["id"])
    os._exit(0)
