"""Many deciders at once, and whatever else may happen meanwhile: one decision, and a record that holds."""

import threading
from collections import Counter
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from sqlalchemy import delete, update

from service.app.background.approvals import settle_deadlines
from service.approvals import decisions, service
from service.approvals.delegations import service as delegations
from service.approvals.delegations.schemas import ApprovalDelegationRequest
from service.approvals.schemas import ApprovalDecisionRequest
from service.approvals.tables import (
    ApprovalApproverRow,
    ApprovalCommentRow,
    ApprovalDecisionRow,
    ApprovalDelegationRow,
    ApprovalRow,
    ApprovalStepRow,
)
from service.audit.service import WriteContext, Writes
from service.audit.verification import Verification
from service.cli.operator import _report_audit
from service.evidence.snapshot import build_shipped_snapshot
from service.kit.clock import now
from service.kit.database.engine import MOST_WRITERS
from service.kit.http.problems import Problem
from service.kit.jobs.events import EventRow
from service.policies import service as policies
from service.policies.changes import service as changes
from service.policies.schemas import ApprovalPolicyRequest
from service.policies.tables import ApprovalPolicyRow
from service.quotes import service as quotes
from service.quotes.documents import compute_digest
from service.quotes.tables import QuoteRow
from tests.applications import KEYRING
from tests.approvals.test_model import TENANT, frozen, subject
from tests.faults.harness import rows

DECIDERS = [f"token:decider-{number}" for number in range(50)]


class Scene:
    """A database with an approval that waits for many."""

    def __init__(self, database, *, quorum=1, approvers=DECIDERS):
        self.database, self.writes = database, Writes(database, KEYRING)
        self.catalog = build_shipped_snapshot()
        step = {"name": "step", "approvers": list(approvers), "quorum": quorum}
        body = {"id": "policy", "name": "policy", "conditions": {}, "steps": [step]}
        admin = subject("token:admin")
        at_once = {"patch": {"change_delay_seconds": 0}, "if_match": "*"}
        self.run(admin.name, partial(changes.change_settings, subject=admin, **at_once))
        self.run(admin.name, partial(policies.create_policy, subject=admin, body=_policy(body)))
        self.quote = self.quote_anew()
        self.approval = self.run("token:asker", self.submitting())

    def quote_anew(self):
        made = partial(
            quotes.create_quote, tenant_id=TENANT, frozen=frozen(), created_by="token:asker", days=30
        )
        return self.run("token:asker", made)

    def submitting(self, asker="token:asker"):
        seen = {"quote_id": self.quote["id"], "content_digest": self.quote["content_digest"]}
        return partial(service.submit_quote, subject=subject(asker), catalog=self.catalog, **seen)

    def deciding(self, name, kind="approve"):
        return partial(
            decisions.decide_approval,
            subject=subject(name),
            approval_id=self.approval["id"],
            decision=kind,
            sent=ApprovalDecisionRequest(content_digest=self.quote["content_digest"]),
            catalog=self.catalog,
        )

    def cancelling(self):
        seen = {"quote_id": self.quote["id"], "content_digest": self.quote["content_digest"]}
        return partial(service.cancel_approval, subject=subject("token:asker"), **seen)

    def run(self, name, do):
        """What a write did, or the code of what refused it."""
        changes = []

        def doing(session):
            changes.append(do(session))
            return changes[-1]

        try:
            self.writes.run(WriteContext(subject(name), "test", "/test", "request", uuid4().hex), None, doing)
        except Problem as problem:
            return problem.code
        return changes[-1].body

    def settle(self):
        with self.database.open_writer() as session:
            return settle_deadlines(session, self.writes, TENANT, self.approval["id"])

    def at_once(self, *calls):
        """What came of calls that all begin at the same time."""
        barrier, found = threading.Barrier(len(calls)), {}

        def run(place, call):
            barrier.wait()
            found[place] = call()

        threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found[place] for place in range(len(calls))]

    def shown(self, approval_id=""):
        with self.database.open_reader() as session:
            return service.get_approval(session, TENANT, approval_id or self.approval["id"])

    def faults(self):
        with self.database.open_reader() as session:
            assert self.writes.verify_chain(session, TENANT).fault is None
            return set(service.find_deviations(session, TENANT))


def _policy(body):
    return ApprovalPolicyRequest.model_validate(body)


def test_many_deciders_at_once_make_one_decision(database):
    scene, deciders = Scene(database), DECIDERS[:MOST_WRITERS]
    kinds = ["approve", "reject"] * (MOST_WRITERS // 2)
    found = scene.at_once(
        *(
            partial(scene.run, name, scene.deciding(name, kind))
            for name, kind in zip(deciders, kinds, strict=True)
        )
    )
    (ended,) = [answer for answer in found if isinstance(answer, dict)]
    assert Counter(answer for answer in found if isinstance(answer, str)) == {
        "APPROVAL_ENDED": MOST_WRITERS - 1
    }
    shown = scene.shown()
    (decision,) = shown["steps"][0]["decisions"]
    assert decision["decided_by"] == deciders[found.index(ended)]
    assert shown["state"] == {"approve": "approved", "reject": "rejected"}[decision["decision"]]
    told = rows(database, EventRow.__table__.select())
    assert sorted(event.type for event in told) == ["approval.requested", f"approval.{shown['state']}"][::-1]
    assert scene.faults() == set()


def test_decisions_cancellations_and_deadlines_at_once_wait_for_each_other(database):
    scene = Scene(database, quorum=3)
    deciding = (partial(scene.run, name, scene.deciding(name)) for name in DECIDERS[:6])
    found = scene.at_once(*deciding, partial(scene.run, "token:asker", scene.cancelling()), scene.settle)
    shown = scene.shown()
    assert shown["state"] == "cancelled"
    assert len(shown["steps"][0]["decisions"]) == sum(isinstance(answer, dict) for answer in found[:6]) <= 3
    assert scene.faults() == set()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_whatever_is_changed_beside_the_service_is_found(database, capsys):
    scene = Scene(database, quorum=2)
    scene.run(DECIDERS[0], scene.deciding(DECIDERS[0]))
    commenting = partial(
        service.add_comment, subject=subject(DECIDERS[1]), approval_id=scene.approval["id"], text="Why?"
    )
    scene.run(DECIDERS[1], commenting)
    body = ApprovalDelegationRequest.model_validate_json(
        '{"delegate": "token:other", "ends_at": "2099-01-01T00:00:00Z"}'
    )
    scene.run(DECIDERS[1], partial(delegations.create_delegation, subject=subject(DECIDERS[1]), body=body))
    assert scene.faults() == set()
    approval, quote = f"approvals/{scene.approval['id']}", f"quotes/{scene.quote['id']}?version=1"
    edits = [
        (update(ApprovalRow).values(state="approved"), approval),
        (update(ApprovalRow).values(barred=[]), approval),
        (update(ApprovalRow).values(judged={}), approval),
        (update(ApprovalStepRow).values(quorum=1), approval),
        (update(ApprovalDecisionRow).values(decided_by="token:other"), approval),
        (update(ApprovalDecisionRow).values(content_digest="0" * 64), approval),
        (update(ApprovalCommentRow).values(text="Fine."), approval),
        (delete(ApprovalDecisionRow), approval),
        (delete(ApprovalApproverRow).where(ApprovalApproverRow.position == 7), approval),
        (delete(ApprovalRow), approval),
        (update(ApprovalPolicyRow).values(document='{"steps": []}'), "approval-policies/policy"),
        (delete(ApprovalPolicyRow), "approval-policies/policy"),
        (update(ApprovalDelegationRow).values(delegate="token:asker"), "approval-delegations/"),
        (update(QuoteRow).values(name="another"), quote),
        (update(QuoteRow).values(summary='{"headlines": {"fits": true}, "providers": []}'), quote),
        (update(QuoteRow).values(state="approved"), quote),
        (delete(QuoteRow), quote),
    ]
    for edit, resource in edits:
        with database.engine.connect() as connection:
            connection.execute(edit)
            found = scene_faults(connection)
            connection.rollback()
        assert any(each.startswith(resource) for each, _ in found), str(edit)
    assert scene.faults() == set()
    with database.engine.begin() as connection:
        connection.execute(update(ApprovalRow).values(state="approved"))
    assert _report_audit(OperatorArguments(scene)) == 1
    assert f"{TENANT}: {approval} differs from its audit record: CHANGED" in capsys.readouterr().out


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "edit",
    [
        {"name": "another"},
        {"summary": '{"headlines": {"fits": true}, "providers": []}'},
        {"document": '{"requests": {}, "answers": {}, "inputs": [], "warnings": [], "gaps": []}'},
        {"valid_until": now() + timedelta(days=3650)},
        {"focus": "BilledCost"},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_nothing_is_decided_about_a_quote_that_is_not_as_it_was_frozen(database, edit):
    scene = Scene(database, quorum=2)
    assert isinstance(scene.run(DECIDERS[0], scene.deciding(DECIDERS[0])), dict)
    other = scene.quote_anew()
    with database.engine.begin() as connection:
        connection.execute(update(QuoteRow).values(**edit))
    for kind in ("approve", "reject"):
        assert scene.run(DECIDERS[1], scene.deciding(DECIDERS[1], kind)) == "QUOTE_NOT_AS_FROZEN"
    assert scene.shown()["state"] == "pending"
    scene.quote = other
    assert scene.run("token:asker", scene.submitting()) == "QUOTE_NOT_AS_FROZEN"


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_another_quote_with_a_digest_of_its_own_is_not_what_was_asked_for(database):
    scene = Scene(database)
    with database.open_writer() as session:
        row = quotes.lock_version(session, TENANT, scene.quote["id"])
        row.name = "another"
        row.content_digest = compute_digest(row)
    assert scene.run(DECIDERS[0], scene.deciding(DECIDERS[0])) == "QUOTE_NOT_AS_FROZEN"


def scene_faults(connection):
    """What would be found, of an edit that is taken back."""
    from service.kit.database.engine import Reader  # noqa: PLC0415

    with Reader(connection, autoflush=False) as session:
        return list(service.find_deviations(session, TENANT))


class OperatorArguments:
    """What the command line asks the operator."""

    def __init__(self, scene):
        self._scene = scene

    def verify_audit(self, _expected):
        with self._scene.database.open_reader() as session:
            verdict = self._scene.writes.verify_chain(session, TENANT)
        return [Verification(verdict, tuple(self._scene.faults()), ())]
