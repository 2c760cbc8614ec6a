"""Deadlines pass by themselves, and whoever comes later is refused however late the service is."""

from contextlib import contextmanager
from functools import partial

import pytest
from sqlalchemy import delete, select, update

from service.app.background.approvals import build_deadline_sweep, build_settlement_kind
from service.approvals import deadlines
from service.kit.jobs.events import EventRow
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.schedules import NoArguments
from service.kit.jobs.tables import JobRow
from service.policies import service as policies
from service.quotes.tables import QuoteRow
from tests.approvals.test_model import TENANT, subject
from tests.approvals.test_races import DECIDERS, Scene
from tests.clocks import Clock, unset
from tests.faults.harness import rows
from tests.waiting import until

pytestmark = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""How jobs come due is shown on both in tests/kit, what they do in the test of the model."""
OTHER = "token:other"
HOUR = 3600


@pytest.fixture
def clock(database):
    clock = Clock(database)
    yield clock
    unset(database)


@pytest.fixture
def scene(database, clock):  # noqa: ARG001  # the clock is set before anything is stored
    """An approval of which a step escalates after one hour and expires after four."""
    scene = Scene(database)
    escalation = {"after_seconds": HOUR, "to": [OTHER]}
    step = {"name": "step", "approvers": DECIDERS[:1], "expires_after_seconds": 4 * HOUR}
    patch = {"steps": [{**step, "escalation": escalation}]}
    change = partial(
        policies.change_policy, subject=subject("token:admin"), policy_id="policy", patch=patch, if_match="*"
    )
    scene.run("token:admin", change)
    scene.run("token:asker", scene.cancelling())
    scene.quote = scene.quote_anew()
    scene.approval = scene.run("token:asker", scene.submitting())
    return scene


@contextmanager
def working(scene):
    """The service, doing what is due."""
    runner = JobRunner(
        scene.database,
        [build_settlement_kind(scene.writes), build_deadline_sweep(scene.writes).job],
        threads=1,
    )
    runner.start()
    try:
        yield
    finally:
        runner.stop(5.0)


def told(scene):
    return [row.type for row in rows(scene.database, select(EventRow.type).order_by(EventRow.occurred_at))]


def operations(scene):
    with scene.database.open_reader() as session:
        from service.approvals.service import get_history  # noqa: PLC0415

        return [event["operation"] for event in get_history(session, TENANT, scene.approval["id"])["items"]]


def test_a_step_escalates_reminds_and_expires_by_itself(scene, clock):
    assert scene.run(OTHER, scene.deciding(OTHER)) == "NOT_AN_APPROVER"
    with working(scene):
        clock.move(seconds=HOUR)
        until(lambda: "approval.escalated" in told(scene))
        assert scene.shown()["steps"][0]["approvers"] == [DECIDERS[0], OTHER]
        clock.move(seconds=2 * HOUR)
        until(lambda: "approval.due_soon" in told(scene))
        clock.move(seconds=HOUR)
        until(lambda: scene.shown()["state"] == "expired")
    assert scene.run(OTHER, scene.deciding(OTHER)) == "APPROVAL_ENDED"
    noted = ["escalate_approval", "remind_approvers", "expire_approval"]
    assert operations(scene) == ["test", *noted]
    assert scene.faults() == set()


class TestWhileNobodyWorks:
    def test_a_deadline_holds_all_the_same(self, scene, clock):
        clock.move(seconds=HOUR)
        clock.move(seconds=3 * HOUR - 1)
        assert scene.run(OTHER, scene.deciding(OTHER, "reject"))["state"] == "rejected"

    def test_no_decision_is_made_after_it(self, scene, clock):
        clock.move(seconds=4 * HOUR)
        assert scene.run(DECIDERS[0], scene.deciding(DECIDERS[0])) == "APPROVAL_EXPIRED"
        assert scene.shown()["state"] == "pending"

    def test_the_sweep_does_all_that_jobs_have_missed(self, scene, clock, monkeypatch):
        monkeypatch.setattr(deadlines, "AT_ONCE", 2)
        missed = [scene.approval["id"]]
        for _ in range(4):
            scene.quote = scene.quote_anew()
            scene.approval = scene.run("token:asker", scene.submitting())
            missed.append(scene.approval["id"])
        broken = missed.pop(1)
        with scene.database.open_writer() as session:
            session.execute(delete(JobRow))
            # Somebody has moved a quote beside the service: its approval cannot expire.
            moved = update(QuoteRow).where(QuoteRow.id == scene.shown(broken)["quote_id"])
            session.execute(moved.values(state="cancelled"))
        clock.move(seconds=4 * HOUR)
        with scene.database.open_writer() as session:
            sweep = build_deadline_sweep(scene.writes).job
            enqueue_job(session, sweep, NoArguments(), tenant_id="system", effect_key="test")
        with working(scene):
            until(lambda: scene.shown(missed[-1])["state"] == "expired")
        assert {scene.shown(each)["state"] for each in missed} == {"expired"}
        assert scene.shown(broken)["state"] == "pending"


class TestAClockThatIsSetBack:
    def test_takes_no_decision_and_no_escalation_back(self, scene, clock):
        clock.move(seconds=HOUR)
        scene.settle()
        assert scene.shown()["steps"][0]["approvers"] == [DECIDERS[0], OTHER]
        clock.move(seconds=-3 * HOUR)
        scene.settle()
        assert told(scene).count("approval.escalated") == 1
        decided = scene.run(OTHER, scene.deciding(OTHER))
        (step,) = decided["steps"]
        (decision,) = step["decisions"]
        assert step["opened_at"] < step["escalated_at"] == decision["decided_at"] == decided["ended_at"]

    def test_keeps_what_has_expired_expired(self, scene, clock):
        clock.move(seconds=4 * HOUR)
        scene.settle()
        clock.move(seconds=-4 * HOUR)
        assert scene.run(DECIDERS[0], scene.deciding(DECIDERS[0])) == "APPROVAL_ENDED"
        assert scene.shown()["state"] == "expired"
