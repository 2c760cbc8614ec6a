"""Changes of policies and budgets: what holds at once, what waits, who approves it, who may ask then."""

import json
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import delete, update

from service.app.background.service import JobDependencies, list_schedules
from service.approvals.service import find_deviations
from service.budgets.tables import BudgetRow
from service.kit.database.engine import Reader
from service.kit.jobs.events import EventRow
from service.policies.changes.tables import ApprovalSettingsRow, PolicyChangeRow
from service.policies.tables import ApprovalPolicyRow
from tests.applications import MEANS
from tests.approvals.deciding import Actor, at_once, governed, policy, step
from tests.approvals.quoting import usd
from tests.clocks import Clock, unset
from tests.prepared import ON_SQLITE

DAY = 86_400
MATCH = {"headers": {"If-Match": "*"}}
EMPTY = {"steps": [], "automatic": True}
PATH = "/v1/approval-policies/policy"
"""Of the policy that most tests have."""


def code(answer):
    return answer.status_code, answer.json().get("code")


@pytest.fixture(autouse=True)
def clock(database):
    """The clock of the database, set before anybody holds a connection to it."""
    clock = Clock(database)
    clock.set(datetime.now(clock.at.tzinfo))
    yield clock
    unset(database)


@pytest.fixture
def people(callers):
    """A writer of policies, an approver whom the policy asks, and somebody who asks."""
    writer, approver, asker = (Actor(callers) for _ in range(3))
    made = writer.post("/v1/approval-policies", policy(step(approver)))
    assert made.status_code == 201, made.text
    return writer, approver, asker


def emptied(writer):
    answer = writer.request("PATCH", PATH, json=EMPTY, **MATCH)
    assert answer.status_code == 202, answer.text
    return answer.json()


def act(actor, change, verb):
    return actor.post(f"/v1/policy-changes/{change['id']}:{verb}", {})


def shown(actor):
    return actor.get(PATH).json()


def state_of(actor, quote):
    return actor.submit(quote).json().get("state")


class TestWhoeverWritesPolicies:
    @ON_SQLITE
    def test_cannot_empty_the_steps_and_be_approved(self, people, clock):
        writer, approver, _ = people
        emptied(writer)
        assert len(shown(writer)["steps"]) == 1
        assert code(writer.submit(writer.quote())) == (403, "OWN_POLICY")
        clock.move(seconds=DAY)
        assert code(writer.submit(writer.quote())) == (403, "OWN_POLICY")
        assert state_of(approver, approver.quote()) == "approved"

    @ON_SQLITE
    def test_cannot_ask_by_a_key_that_they_made(self, callers, people):
        writer, _, _ = people
        child = Actor(callers, by=writer)
        assert code(child.submit(child.quote())) == (403, "OWN_POLICY")

    @ON_SQLITE
    def test_cannot_have_their_quote_submitted_by_another(self, people):
        writer, _, asker = people
        assert code(asker.submit(writer.quote())) == (403, "OWN_POLICY")

    def test_stays_its_author_when_somebody_else_changes_it_too(self, callers, people):
        writer, _, _ = people
        other = Actor(callers)
        assert other.request("PATCH", PATH, json={"name": "Another"}, **MATCH).status_code == 200
        assert shown(writer)["written_by"] == sorted([writer.name, other.name])
        assert code(writer.submit(writer.quote())) == (403, "OWN_POLICY")

    @ON_SQLITE
    def test_cannot_delete_or_add_one_that_asks_nobody(self, people, clock):
        writer, _, asker = people
        assert writer.request("DELETE", PATH, **MATCH).status_code == 202
        lax = policy(name="lax", requesters=[asker.name])
        assert writer.post("/v1/approval-policies", lax).status_code == 202
        assert state_of(asker, asker.quote()) == "pending"
        clock.move(seconds=DAY)
        assert state_of(asker, asker.quote()) == "approved"

    def test_is_known_from_the_audit_where_the_policy_is_older(self, callers, people):
        writer, _, _ = people
        database = callers.client.app.state.database
        with database.open_writer() as session:
            session.execute(update(ApprovalPolicyRow).values(written_by=None))
        assert "written_by" not in shown(writer)
        assert code(writer.submit(writer.quote())) == (403, "OWN_POLICY")


class TestAWaitingChange:
    def test_takes_effect_when_the_delay_is_over_without_any_job(self, people, clock):
        writer, _, asker = people
        change = emptied(writer)
        waits = datetime.fromisoformat(change["effective_at"]) - datetime.fromisoformat(change["proposed_at"])
        assert waits == timedelta(seconds=DAY)
        first, second = asker.quote(), asker.quote()
        clock.move(seconds=DAY - 1)
        assert state_of(asker, first) == "pending"
        clock.move(seconds=1)
        assert state_of(asker, second) == "approved"
        assert act(writer, change, "reject").json()["code"] == "POLICY_CHANGE_ENDED"
        ended = writer.get(f"/v1/policy-changes/{change['id']}").json()
        assert (ended["state"], "ended_by" in ended) == ("effective", False)

    def test_is_approved_by_the_policy_that_stood_before(self, callers, people):
        writer, approver, asker = people
        change = emptied(writer)
        assert code(act(writer, change, "approve")) == (403, "OWN_APPROVAL")
        assert code(act(asker, change, "approve")) == (403, "NOT_AN_APPROVER_OF_CHANGE")
        ended = act(approver, change, "approve").json()
        assert (ended["state"], ended["ended_by"]) == ("effective", approver.name)
        assert shown(writer)["version"] == 2
        assert state_of(asker, asker.quote()) == "approved"
        assert told(callers, change) == ["policy_change.proposed", "policy_change.effective"]

    @ON_SQLITE
    def test_needs_the_quorum_of_different_people_and_never_its_author(self, callers):
        first, second, third = (Actor(callers) for _ in range(3))
        again = Actor(callers, by=first)
        made = policy(step(first, again, second, third, quorum=2))
        assert Actor(callers).post("/v1/approval-policies", made).status_code == 201
        change = emptied(third)
        assert act(first, change, "approve").json()["state"] == "waiting"
        assert act(first, change, "approve").json()["version"] == 2
        assert act(again, change, "approve").json()["state"] == "waiting"
        assert act(third, change, "approve").json()["code"] == "OWN_APPROVAL"
        assert act(second, change, "approve").json()["state"] == "effective"

    @ON_SQLITE
    def test_that_reaches_further_asks_every_policy(self, callers, people):
        writer, approver, asker = people
        second = Actor(callers)
        other = policy(step(second), name="other", requesters=[asker.name])
        assert writer.post("/v1/approval-policies", other).status_code == 201
        wider = writer.request("PATCH", "/v1/approval-policies/other", json={"conditions": {}}, **MATCH)
        assert wider.status_code == 202
        assert act(second, wider.json(), "approve").json()["state"] == "waiting"
        assert act(approver, wider.json(), "approve").json()["state"] == "effective"

    def test_is_rejected_by_anybody_and_what_stands_goes_on(self, callers, people, clock):
        writer, _, asker = people
        change = emptied(writer)
        ended = act(asker, change, "reject").json()
        assert (ended["state"], ended["ended_by"]) == ("rejected", asker.name)
        clock.move(seconds=2 * DAY)
        assert shown(writer)["version"] == 1
        assert told(callers, change) == ["policy_change.proposed", "policy_change.rejected"]

    @ON_SQLITE
    def test_lets_no_other_one_be_based_on_what_may_go(self, people):
        writer, _, _ = people
        emptied(writer)
        for method, body in (("PATCH", {"name": "Another"}), ("DELETE", None)):
            answer = writer.request(method, PATH, json=body, **MATCH)
            assert code(answer) == (409, "POLICY_CHANGE_WAITS")

    def test_is_listed_and_is_nothing_to_other_tenants(self, callers, people):
        writer, _, _ = people
        change = emptied(writer)
        assert writer.get("/v1/policy-changes?state=waiting").json()["items"] == [change]
        assert writer.get("/v1/policy-changes?state=effective").json()["items"] == []
        headers = {"Authorization": f"Bearer {callers.key('*:*', tenant=callers.tenant('other'))}"}
        path = f"/v1/policy-changes/{change['id']}"
        for suffix, method in (("", "GET"), (":approve", "POST"), (":reject", "POST")):
            assert callers.client.request(method, path + suffix, headers=headers).status_code == 404

    def test_decides_nothing_about_what_is_under_way(self, people):
        writer, approver, asker = people
        approval = asker.submit(asker.quote()).json()
        act(approver, emptied(writer), "approve")
        assert writer.get(f"/v1/approvals/{approval['id']}").json()["state"] == "pending"

    def test_is_applied_by_the_service_itself_in_time(self, callers, people, clock):
        writer, _, _ = people
        change = emptied(writer)
        clock.move(seconds=DAY)
        database = callers.client.app.state.database
        means = JobDependencies(writes=callers.client.app.state.means.writes, webhooks=MEANS.webhooks)
        sweep = next(each for each in list_schedules((), means) if each.name == "policy_changes.sweep")
        assert sweep.job.run(SimpleNamespace(database=database)).result == {"policy_changes": 1}
        with database.open_reader() as session:
            assert session.get(PolicyChangeRow, ("default", change["id"])).state == "effective"
            assert list(find_deviations(session, "default")) == []
        events = writer.get("/v1/audit-events?page_size=500").json()["items"]
        done = [each for each in events if each["operation"] == "apply_policy_change"]
        assert {each["resource"] for each in done} == {
            "approval-policies/policy",
            f"policy-changes/{change['id']}",
        }
        assert {each["subject_kind"] for each in done} == {"service"}


def told(callers, change):
    database = callers.client.app.state.database
    with database.open_reader() as session:
        rows = session.query(EventRow).filter(EventRow.type.startswith("policy_change"))
        found = [row for row in rows if row.data["change_id"] == change["id"]]
    order = {"policy_change.proposed": 0}
    return sorted((row.type for row in found), key=lambda name: order.get(name, 1))


@ON_SQLITE
class TestAtOnce:
    def test_a_step_more_and_another_name(self, callers, people):
        writer, _, _ = people
        more = {"name": "More", "steps": [*shown(writer)["steps"], step(Actor(callers))]}
        changed = writer.request("PATCH", PATH, json=more, **MATCH)
        assert (changed.status_code, changed.json()["version"]) == (200, 2)

    def test_a_policy_of_quotes_that_another_asks_about(self, callers, people):
        writer, _, _ = people
        large = policy(step(Actor(callers)), name="large", total_above=usd("1000"))
        assert writer.post("/v1/approval-policies", large).status_code == 201

    @pytest.mark.parametrize(
        "patch",
        [
            {"conditions": {"total_above": usd("1")}},
            {"steps": [{"name": "step", "approvers": ["token:a", "token:b"], "quorum": 1}]},
        ],
    )
    def test_nothing_else_is(self, people, patch):
        writer, _, _ = people
        assert writer.request("PATCH", PATH, json=patch, **MATCH).status_code == 202

    def test_without_steps_a_policy_says_so(self, callers):
        admin = Actor(callers)
        at_once(admin)
        silent = {"id": "policy", "name": "policy", "conditions": {}, "steps": []}
        for body in (silent, {**policy({"name": "a", "approvers": ["token:a"]}), "automatic": True}):
            refused = admin.post("/v1/approval-policies", body)
            assert code(refused)[0] == 422
            assert refused.json()["errors"][0]["pointer"] == "/automatic"
        assert admin.post("/v1/approval-policies", policy()).json()["automatic"] is True
        named = {"steps": [{"name": "a", "approvers": ["token:a"]}]}
        assert admin.request("PATCH", PATH, json=named, **MATCH).json()["automatic"] is False
        assert admin.request("PATCH", PATH, json={"steps": []}, **MATCH).status_code == 422

    def test_a_policy_that_is_older_than_the_member_stays_as_it_is(self, callers):
        admin = Actor(callers)
        admin.post("/v1/approval-policies", policy())
        database = callers.client.app.state.database
        with database.open_writer() as session:
            row = session.query(ApprovalPolicyRow).one()
            old = {name: value for name, value in json.loads(row.document).items() if name != "automatic"}
            row.document, row.written_by = json.dumps(old), None
        assert shown(admin)["automatic"] is True
        asker = Actor(callers)
        assert state_of(asker, asker.quote(operation="memory", request=MEMORY)) == "approved"


MEMORY = {"model": {"source": "parameter_count", "parameter_count": 10**9}, "workload": {"kind": "training"}}


@ON_SQLITE
class TestTheDelay:
    PATH = "/v1/approval-settings"

    def set_(self, actor, seconds):
        return actor.request("PATCH", self.PATH, json={"change_delay_seconds": seconds}, **MATCH)

    def test_is_a_day_and_free_until_there_is_a_policy(self, callers):
        admin = Actor(callers)
        assert admin.get(self.PATH).json() == {"change_delay_seconds": DAY, "version": 1}
        assert self.set_(admin, 60).status_code == 200
        assert self.set_(admin, 30).json() == {"change_delay_seconds": 30, "version": 3}

    def test_is_longer_at_once_and_shorter_after_the_one_that_stands(self, people, clock):
        writer, _, _ = people
        assert self.set_(writer, 2 * DAY).status_code == 200
        assert self.set_(writer, 0).status_code == 202
        clock.move(seconds=2 * DAY - 1)
        emptied(writer)
        clock.move(seconds=1)
        assert writer.get(self.PATH).json()["change_delay_seconds"] == 0
        assert len(shown(writer)["steps"]) == 1

    def test_of_zero_lets_every_change_hold_at_once(self, callers):
        writer = Actor(callers)
        assert governed(writer, policy(step(Actor(callers)))).status_code == 201
        assert writer.request("PATCH", PATH, json=EMPTY, **MATCH).status_code == 200
        assert writer.request("DELETE", PATH, **MATCH).status_code == 204


class TestBudgets:
    @pytest.fixture
    def budget(self, people):
        writer, _, _ = people
        writer.post("/v1/cost-centers", {"id": "research", "name": "Research"})
        body = {"id": "now", "name": "Now", "cost_center_id": "research", "starts_on": "2025-01-01"}
        body |= {"ends_on": "2099-12-31", "amount": usd("1"), "enforcement": "block"}
        assert writer.post("/v1/budgets", body).status_code == 201
        return "/v1/budgets/now"

    @pytest.mark.parametrize("patch", [{"amount": usd("1000000")}, {"enforcement": "warn"}])
    def test_what_lets_more_pass_waits_and_bars_its_author(self, people, clock, budget, patch):
        _, approver, asker = people
        quote = asker.quote(cost_center_id="research")
        approval = asker.submit(quote).json()
        assert asker.request("PATCH", budget, json=patch, **MATCH).status_code == 202
        assert code(approver.decide(approval)) == (409, "BUDGET_EXCEEDED")
        clock.move(seconds=DAY)
        # Nothing but the decision itself looks at the time.
        assert approver.decide(approval).json()["state"] == "approved"
        another = asker.submit(asker.quote(cost_center_id="research"))
        assert code(another) == (403, "OWN_POLICY")
        assert another.json()["errors"][0]["code"] == "OWN_BUDGET"

    @ON_SQLITE
    def test_is_approved_by_whom_policies_of_the_cost_centre_ask(self, people, budget):
        writer, approver, asker = people
        change = writer.request("PATCH", budget, json={"amount": usd("9")}, **MATCH).json()
        assert code(act(asker, change, "approve")) == (403, "NOT_AN_APPROVER_OF_CHANGE")
        assert act(approver, change, "approve").json()["state"] == "effective"
        assert writer.get(budget).json()["amount"] == usd("9.00")

    def test_less_holds_at_once_and_a_deletion_waits(self, people, clock, budget):
        writer, _, _ = people
        assert writer.request("PATCH", budget, json={"amount": usd("0.5")}, **MATCH).status_code == 200
        assert writer.request("DELETE", budget, **MATCH).status_code == 202
        assert code(writer.request("PATCH", budget, json={"name": "N"}, **MATCH))[1] == "POLICY_CHANGE_WAITS"
        clock.move(seconds=DAY)
        assert writer.get(budget).status_code == 404

    def test_a_deletion_ends_where_the_budget_is_needed_by_then(self, people, clock, budget):
        writer, approver, asker = people
        assert writer.request("PATCH", budget, json={"enforcement": "warn"}, **MATCH).status_code == 202
        clock.move(seconds=DAY)
        deletion = writer.request("DELETE", budget, **MATCH).json()
        approver.decide(asker.submit(asker.quote(cost_center_id="research")).json())
        clock.move(seconds=DAY)
        assert writer.get(budget).status_code == 200
        assert writer.get(f"/v1/policy-changes/{deletion['id']}").json()["state"] == "rejected"


@ON_SQLITE
def test_an_edit_beside_the_service_is_found(callers, people):
    writer, _, asker = people
    assert writer.post("/v1/cost-centers", {"id": "research", "name": "Research"}).status_code == 201
    change = emptied(writer)
    assert TestTheDelay().set_(writer, 2 * DAY).status_code == 200
    database = callers.client.app.state.database
    resource = f"policy-changes/{change['id']}"
    edits = [
        (update(PolicyChangeRow).values(effective_at=PolicyChangeRow.proposed_at), resource),
        (update(PolicyChangeRow).values(approvals=[{"decided_by": asker.name}]), resource),
        (update(PolicyChangeRow).values(document="{}"), resource),
        (delete(PolicyChangeRow), resource),
        (update(ApprovalSettingsRow).values(change_delay_seconds=0), "approval-settings/own"),
        (delete(ApprovalSettingsRow), "approval-settings/own"),
        (update(ApprovalPolicyRow).values(written_by=[]), "approval-policies/policy"),
        (update(ApprovalPolicyRow).values(written_by=None), "approval-policies/policy"),
    ]
    for edit, edited in edits:
        with database.engine.connect() as connection:
            assert connection.execute(edit).rowcount
            with Reader(connection, autoflush=False) as session:
                assert (edited, "CHANGED") in list(find_deviations(session, "default")) or (
                    (edited, "MISSING") in list(find_deviations(session, "default"))
                ), str(edit)
            connection.rollback()


@ON_SQLITE
def test_a_budget_that_is_older_than_the_column_is_as_it_was_recorded(callers):
    client = Actor(callers)
    client.post("/v1/cost-centers", {"id": "research", "name": "Research"})
    body = {"id": "now", "name": "Now", "cost_center_id": "research", "starts_on": "2025-01-01"}
    assert client.post("/v1/budgets", body | {"ends_on": "2025-12-31", "amount": usd("1")}).status_code == 201
    with callers.client.app.state.database.open_reader() as session:
        assert session.get(BudgetRow, ("default", "now")).raised_by is None
        assert list(find_deviations(session, "default")) == []
