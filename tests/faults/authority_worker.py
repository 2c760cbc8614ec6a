"""A process in which many agree to a change of a policy, or use one link, with named points around both."""

import os
import threading
from dataclasses import replace
from functools import partial

from service.approvals import decisions
from service.approvals import repository as approval_rows
from service.approvals.links import repository as link_rows
from service.approvals.links import service as links
from service.approvals.schemas import ApprovalDecisionRequest
from service.audit.service import WriteContext, Writes
from service.budgets.service import APPLIERS
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.database.engine import Database
from service.kit.http.problems import Problem
from service.policies.changes import repository as change_rows
from service.policies.changes import service as changes
from tests.applications import KEYRING
from tests.approvals.test_model import subject
from tests.faults.points import Ledger, Points, around

POINTS = {
    "change": ("change: locked", "change: before commit", "change: committed, not answered"),
    "link": ("link: locked", "link: before commit", "link: committed, not answered"),
}
"""Where a process is killed, by what is tried."""


def agreeing(asked, catalog, name):
    """Agree to a change of a policy."""
    return lambda session: changes.approve_change(
        session, subject(name), asked["id"], catalog.exchange_rates, APPLIERS
    )


def deciding_by_link(asked, catalog, _):
    """Decide as the person whom a link is for, as its page does."""

    def do(session):
        row = link_rows.find_presented_link(session, asked["id"])
        used = links.use_link(session, row)
        sent = ApprovalDecisionRequest(content_digest=asked["content_digest"])
        who = links.build_subject(row)
        options = {"decision": "approve", "sent": sent, "catalog": catalog, "via": "link"}
        made = decisions.decide_approval(session, who, row.approval_id, **options, linked_by=row.created_by)
        return replace(made, also=(used, *made.also))

    return do


def run(url, hits, armed, answers, asked):
    """Have everybody try at once, and write down what each was answered; ``armed`` names a point."""
    kind = asked["kind"]
    points, ledger = Points(hits, **armed), Ledger(answers)
    locked, recorded, committed = POINTS[kind]
    owner = change_rows if kind == "change" else approval_rows
    name = "lock_change" if kind == "change" else "lock_approval"
    around(owner, name, after=lambda *_: points.reached(locked))
    around(Writes, "record", after=lambda *_: points.reached(recorded))
    database = Database(url)
    writes, catalog = Writes(database, KEYRING), build_shipped_snapshot()
    make = partial(agreeing if kind == "change" else deciding_by_link, asked, catalog)

    def attempt(place, name):
        call = WriteContext(subject(name), kind, f"/{kind}", "request", f"key {place} of {name}")
        try:
            status = writes.run(call, name, make(name)).status_code
        except Problem as problem:
            status = problem.code
        else:
            points.reached(committed)
        ledger.note("answer", place=place, name=name, status=status)

    threads = [threading.Thread(target=attempt, args=each) for each in asked["names"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(0)
