"""Approvals over HTTP: who is asked, who may decide, and what becomes of the quote."""

from datetime import UTC, datetime

import pytest

from service.app.examples import EXAMPLES
from service.kit.security.credentials import parse_id
from tests.approvals.deciding import QUOTED, Actor, at_once, policy, step


@pytest.fixture
def admin(callers):
    actor = Actor(callers)
    at_once(actor)
    return actor


def code(answer):
    return answer.status_code, answer.json().get("code")


def test_a_quote_is_approved_by_whom_the_policy_names(callers, admin):
    asker, approver = Actor(callers), Actor(callers)
    made = admin.post("/v1/approval-policies", policy(step(approver)))
    assert made.status_code == 201, made.text
    quote = asker.quote()
    foreseen = asker.submit(quote, params={"validate_only": "true"})
    assert foreseen.status_code == 201, foreseen.text
    assert asker.get("/v1/approvals").json()["items"] == []
    asked = asker.submit(quote)
    assert asked.status_code == 201, asked.text
    approval = asked.json()
    assert (approval["state"], approval["requester"]) == ("pending", asker.name)
    assert code(asker.decide(approval)) == (403, "OWN_APPROVAL")
    assert code(admin.decide(approval)) == (403, "NOT_AN_APPROVER")
    decided = approver.decide(approval)
    assert decided.status_code == 200, decided.text
    assert decided.json()["state"] == "approved"
    assert asker.get(f"/v1/quotes/{quote['id']}").json()["state"] == "approved"
    history = asker.get(f"/v1/approvals/{approval['id']}/history").json()
    assert [event["operation"] for event in history["items"]] == ["submit_quote", "approve_approval"]
    assert history["is_as_recorded"]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_what_is_wrong_with_an_amendment_is_named_where_it_is(admin):
    quote = admin.quote()
    unknown = {**QUOTED["request"], "rental": {"offer_id": "nothing"}}
    for wrong, place in (
        (QUOTED | {"request": unknown}, "/quote/request/rental/offer_id"),
        ({"name": "another", "plan_id": "0" * 32, "candidate": 1}, "/quote/plan_id"),
    ):
        body = {"content_digest": quote["content_digest"], "quote": wrong}
        refused = admin.post(f"/v1/quotes/{quote['id']}:amend", body)
        assert refused.status_code == 422
        assert [error["pointer"] for error in refused.json()["errors"]] == [place]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_an_amendment_that_is_sent_again_gets_its_answer_though_it_could_not_be_made_any_more(callers, admin):
    approver, asker = Actor(callers), Actor(callers)
    admin.post("/v1/approval-policies", policy(step(approver)))
    ours = {**EXAMPLES["create_accelerator"], "id": "ours"}
    assert admin.post("/v1/accelerators", ours).status_code == 201
    quote = asker.quote()
    cluster = {**QUOTED["request"]["cluster"], "accelerator": {"source": "catalog", "id": "ours"}}
    again = QUOTED | {"request": {**QUOTED["request"], "cluster": cluster}}
    body = {"content_digest": quote["content_digest"], "quote": again}
    path, key = f"/v1/quotes/{quote['id']}:amend", {"Idempotency-Key": "lost"}
    amended = asker.post(path, body, headers=key)
    assert amended.status_code == 201, amended.text
    assert admin.request("DELETE", "/v1/accelerators/ours", headers={"If-Match": "*"}).status_code == 204
    repeated = asker.post(path, body, headers=key)
    assert (repeated.status_code, repeated.json()) == (201, amended.json())
    assert repeated.headers["Idempotency-Replayed"] == "true"
    other = asker.post(path, {**body, "content_digest": "0" * 64}, headers=key)
    assert code(other) == (422, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_what_is_foreseen_is_what_comes(callers, admin):
    """`validate_only` names the approvals and the refusals that asking gets."""
    approver, asker = Actor(callers), Actor(callers)

    def both(quote):
        foreseen = asker.submit(quote, params={"validate_only": "true"})
        assert asker.get("/v1/approvals").json()["items"] == before
        return told(foreseen), told(asker.submit(quote))

    def told(answer):
        moving = {"id", "request_id", "due_until"}

        def still(value):
            if isinstance(value, list):
                return [still(each) for each in value]
            if isinstance(value, dict):
                kept = (each for each in value if each not in moving and not each.endswith(("_at", "_from")))
                return {name: still(value[name]) for name in kept}
            return value

        return answer.status_code, still(answer.json())

    before, quote = [], asker.quote()
    for made in (None, policy(step(asker), name="own"), policy(name="automatic"), policy(step(approver))):
        if made is not None:
            assert admin.post("/v1/approval-policies", made).status_code == 201
        foreseen, came = both(quote)
        assert foreseen == came
        if made is not None:
            admin.request("DELETE", f"/v1/approval-policies/{made['id']}", headers={"If-Match": "*"})
        if came[0] == 201:
            before, quote = asker.get("/v1/approvals").json()["items"], asker.quote()
    assert {one["state"] for one in before} == {"approved", "pending"}


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
class TestWhoMayDecide:
    def test_neither_a_key_that_the_asker_made_nor_the_maker_of_the_askers_key_nor_their_others(
        self, callers, admin
    ):
        maker, other = Actor(callers), Actor(callers)
        asker, sibling = Actor(callers, by=maker), Actor(callers, by=maker)
        third = Actor(callers, by=asker)
        admin.post("/v1/approval-policies", policy(step(maker, sibling, other, third)))
        approval = asker.submit(asker.quote()).json()
        for barred in (maker, sibling, third):
            assert code(barred.decide(approval)) == (403, "OWN_APPROVAL")
        assert other.decide(approval).json()["state"] == "approved"

    def test_two_keys_that_one_administrator_made_are_one_voice(self, callers, admin):
        maker, other, asker = Actor(callers), Actor(callers), Actor(callers)
        twins = [Actor(callers, by=maker) for _ in range(2)]
        admin.post("/v1/approval-policies", policy(step(*twins, other, quorum=2)))
        approval = asker.submit(asker.quote()).json()
        assert twins[0].decide(approval).json()["state"] == "pending"
        assert code(twins[1].decide(approval)) == (409, "ALREADY_DECIDED")
        assert other.decide(approval).json()["state"] == "approved"
        admin.post("/v1/approval-policies", policy(step(*twins, quorum=2), name="impossible"))
        assert code(asker.submit(asker.quote())) == (409, "TOO_FEW_APPROVERS")

    def test_whoever_was_handed_an_approvers_key_decides_nothing_that_they_asked_for(self, callers, admin):
        asker, approver, other = (Actor(callers) for _ in range(3))
        admin.post("/v1/approval-policies", policy(step(approver, other)))
        approval = asker.submit(asker.quote()).json()
        rotated = asker.post(f"/v1/api-keys/{parse_id(approver.secret)}:rotate", {"overlap_seconds": 60})
        approver.secret = rotated.json()["secret"]
        assert code(approver.decide(approval)) == (403, "OWN_APPROVAL")
        assert other.decide(approval).json()["state"] == "approved"

    def test_one_person_does_not_fill_a_quorum_by_two_keys(self, callers, admin):
        approver, other, asker = (Actor(callers) for _ in range(3))
        again = Actor(callers, by=approver)
        admin.post("/v1/approval-policies", policy(step(approver, again, other, quorum=2)))
        approval = asker.submit(asker.quote()).json()
        assert approver.decide(approval).json()["state"] == "pending"
        assert code(again.decide(approval)) == (409, "ALREADY_DECIDED")
        assert other.decide(approval).json()["state"] == "approved"
        admin.post("/v1/approval-policies", policy(step(approver, again, quorum=2), name="impossible"))
        assert code(asker.submit(asker.quote())) == (409, "TOO_FEW_APPROVERS")

    def test_a_delegate_decides_in_an_approvers_place_but_hands_nothing_on(self, callers, admin):
        approver, delegate, last, asker = (Actor(callers) for _ in range(4))
        admin.post("/v1/approval-policies", policy(step(approver)))
        until = {"ends_at": "2099-01-01T00:00:00Z"}
        made = approver.post("/v1/approval-delegations", {"delegate": delegate.name, **until})
        assert made.status_code == 201, made.text
        delegate.post("/v1/approval-delegations", {"delegate": last.name, **until})
        approval = asker.submit(asker.quote()).json()
        assert code(last.decide(approval)) == (403, "NOT_AN_APPROVER")
        assert [one["id"] for one in delegate.get("/v1/approvals?approver=me").json()["items"]] == [
            approval["id"]
        ]
        (decided,) = delegate.decide(approval).json()["steps"][0]["decisions"]
        assert (decided["approver"], decided["decided_by"]) == (approver.name, delegate.name)
        assert code(delegate.request("DELETE", made.headers["location"])) == (
            404,
            "APPROVAL_DELEGATION_NOT_FOUND",
        )
        assert approver.request("DELETE", made.headers["location"]).status_code == 204

    def test_a_delegate_who_asks_does_not_decide(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        admin.post("/v1/approval-policies", policy(step(approver)))
        until = {"ends_at": "2099-01-01T00:00:00Z"}
        approver.post("/v1/approval-delegations", {"delegate": asker.name, **until})
        approval = asker.submit(asker.quote()).json()
        assert code(asker.decide(approval)) == (403, "OWN_APPROVAL")

    def test_what_nobody_could_decide_is_refused_when_it_is_submitted(self, callers, admin):
        asker = Actor(callers)
        admin.post("/v1/approval-policies", policy(step(asker)))
        assert code(asker.submit(asker.quote())) == (409, "TOO_FEW_APPROVERS")

    def test_the_amendment_of_another_does_not_free_who_asked_first(self, callers, admin):
        approver, asker, amender = (Actor(callers) for _ in range(3))
        admin.post("/v1/approval-policies", policy(step(approver, asker)))
        quote = asker.quote()
        first = asker.submit(quote).json()
        body = {"content_digest": quote["content_digest"], "quote": QUOTED | {"name": "another"}}
        amended = amender.post(f"/v1/quotes/{quote['id']}:amend", body)
        assert amended.status_code == 201, amended.text
        second = amended.json()
        assert (second["quote_version"], second["supersedes"]) == (2, first["id"])
        assert asker.get(f"/v1/approvals/{first['id']}").json()["state"] == "superseded"
        assert code(approver.decide(first)) == (409, "APPROVAL_ENDED")
        assert code(asker.decide(second)) == (403, "OWN_APPROVAL")
        assert approver.decide(second).json()["state"] == "approved"

    def test_in_open_mode_nobody_decides_but_may_ask_who_would(self, client):
        client.post("/v1/approval-policies", policy({"name": "step", "approvers": ["token:alice"]}))
        quote = client.post("/v1/quotes", QUOTED).json()
        path, body = f"/v1/quotes/{quote['id']}:submit", {"content_digest": quote["content_digest"]}
        foreseen = client.post(path, body, params={"validate_only": "true"})
        assert foreseen.json()["steps"][0]["approvers"] == ["token:alice"]
        approval = client.post(path, body).json()
        refused = client.post(f"/v1/approvals/{approval['id']}:approve", body)
        assert code(refused) == (403, "OPEN_MODE_CANNOT_DECIDE")


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
class TestPolicies:
    def test_without_one_that_matches_nothing_can_be_submitted(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        quote = asker.quote()
        assert code(asker.submit(quote)) == (409, "NO_APPROVAL_POLICY")
        large = {"total_above": {"amount": "1000000", "currency_code": "USD"}}
        admin.post("/v1/approval-policies", policy(step(approver), **large))
        assert code(asker.submit(quote)) == (409, "NO_APPROVAL_POLICY")

    def test_one_without_steps_approves_at_once(self, callers, admin):
        asker = Actor(callers)
        admin.post("/v1/approval-policies", policy())
        quote = asker.quote()
        assert asker.submit(quote).json()["state"] == "approved"
        assert asker.get(f"/v1/quotes/{quote['id']}").json()["state"] == "approved"

    def test_steps_of_all_that_match_open_one_after_the_other(self, callers, admin):
        first, second, asker = (Actor(callers) for _ in range(3))
        admin.post("/v1/approval-policies", policy(step(second, order=2), name="a"))
        small = {"total_above": {"amount": "1", "currency_code": "EUR"}}
        admin.post("/v1/approval-policies", policy(step(first, order=1), name="b", **small))
        approval = asker.submit(asker.quote()).json()
        assert [one["policy_id"] for one in approval["steps"]] == ["b", "a"]
        assert code(second.decide(approval)) == (403, "NOT_AN_APPROVER")
        assert [one["state"] for one in first.decide(approval).json()["steps"]] == ["approved", "open"]
        # Sent again, a decision about the first step is none about the second.
        assert [one["state"] for one in first.decide(approval).json()["steps"]] == ["approved", "open"]
        assert second.decide(approval).json()["state"] == "approved"

    def test_what_leaves_out_charges_is_not_below_any_limit(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        small = {"total_above": {"amount": "1000000", "currency_code": "USD"}}
        admin.post("/v1/approval-policies", policy(name="automatic"))
        admin.post("/v1/approval-policies", policy(step(approver), **small))
        rental = {**QUOTED["request"]["rental"], "purchase_option": "spot"}
        quote = asker.quote(request={**QUOTED["request"], "rental": rental})
        approval = asker.submit(quote).json()
        assert approval["state"] == "pending"
        assert {warning["code"] for warning in approval["warnings"]} == {"TOTAL_INCOMPLETE"}
        assert asker.submit(asker.quote()).json()["state"] == "approved"

    def test_why_none_lets_pass_what_is_unknown_is_said(self, callers, admin):
        asker = Actor(callers)
        admin.post("/v1/approval-policies", policy(name="automatic"))
        unpriced = {name: value for name, value in QUOTED["request"].items() if name != "rental"}
        refused = asker.submit(asker.quote(request=unpriced))
        assert code(refused) == (409, "NO_APPROVAL_POLICY")
        assert [error["code"] for error in refused.json()["errors"]] == ["TOTAL_UNKNOWN"]

    def test_by_what_it_was_judged_stays_whatever_is_changed(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        small = {"total_above": {"amount": "1", "currency_code": "EUR"}}
        made = admin.post("/v1/approval-policies", policy(step(approver), **small))
        approval = asker.submit(asker.quote()).json()
        judged = approval["judged"]
        assert judged["policies"] == [{"policy_id": "policy", "version": 1, "matches": True}]
        (rate,) = judged["exchange_rates"]
        row = asker.get(f"/v1/exchange-rates/{rate['id']}").json()
        assert {name: row[name] for name in rate} == rate
        assert {rate["from_currency_code"], rate["to_currency_code"]} == {"EUR", "USD"}
        admin.request("PATCH", made.headers["location"], json={"steps": []}, headers={"If-Match": "*"})
        found = asker.get(f"/v1/approvals/{approval['id']}").json()
        assert (found["judged"], len(found["steps"])) == (judged, 1)
        assert approver.decide(approval).json()["judged"] == judged

    def test_nobody_asks_for_what_an_exchange_rate_of_theirs_judges(self, callers, admin):
        approver, asker, other = Actor(callers), Actor(callers), Actor(callers)
        admin.post(
            "/v1/approval-policies",
            policy(step(approver), total_above={"amount": "1", "currency_code": "EUR"}),
        )
        rate = EXAMPLES["create_exchange_rate"] | {"as_of": datetime.now(UTC).date().isoformat()}
        assert asker.post("/v1/exchange-rates", rate).status_code == 201
        refused = asker.submit(asker.quote())
        assert code(refused) == (403, "OWN_POLICY")
        assert [error["code"] for error in refused.json()["errors"]] == ["OWN_RATE"]
        (used,) = other.submit(other.quote()).json()["judged"]["exchange_rates"]
        assert used["id"] == rate["id"]

    def test_what_is_unknown_counts_as_too_much_and_is_told(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        conditions = {
            "total_high_above": {"amount": "1000000", "currency_code": "XXX"},
            "location_based_kg_co2e_above": 1e9,
        }
        admin.post("/v1/approval-policies", policy(step(approver), **conditions))
        approval = asker.submit(asker.quote()).json()
        assert [warning["code"] for warning in approval["warnings"]] == ["RATE_UNKNOWN", "CARBON_UNKNOWN"]

    def test_a_requester_is_known_by_the_maker_of_their_key(self, callers, admin):
        approver, maker = Actor(callers), Actor(callers)
        asker = Actor(callers, by=maker)
        admin.post("/v1/approval-policies", policy(step(approver), requesters=[maker.name]))
        assert asker.submit(asker.quote()).status_code == 201
        assert code(approver.submit(approver.quote())) == (409, "NO_APPROVAL_POLICY")

    def test_a_change_names_its_version_and_what_is_under_way_stays(self, callers, admin):
        approver, asker = Actor(callers), Actor(callers)
        made = admin.post("/v1/approval-policies", policy(step(approver)))
        approval = asker.submit(asker.quote()).json()
        path = made.headers["location"]
        assert code(admin.request("PATCH", path, json={"steps": []})) == (428, "VERSION_REQUIRED")
        matching = {"If-Match": made.headers["etag"]}
        changed = admin.request("PATCH", path, json={"steps": [], "automatic": True}, headers=matching)
        assert changed.json()["version"] == 2
        assert code(admin.request("DELETE", path, headers=matching)) == (412, "VERSION_CONFLICT")
        assert approver.decide(approval).json()["steps"][0]["policy_version"] == 1
        assert admin.request("DELETE", path, headers={"If-Match": "*"}).status_code == 204
        again = admin.post("/v1/approval-policies", policy())
        assert (again.status_code, again.json()["version"]) == (201, 4)

    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"quorum": 2}, ("/steps/0/quorum", "QUORUM_TOO_LARGE")),
            ({"approvers": ["person:a", "person:a"]}, ("/steps/0/approvers", "REPEATED")),
            (
                {"expires_after_seconds": 60, "escalation": {"after_seconds": 60, "to": ["person:b"]}},
                ("/steps/0/escalation/after_seconds", "ESCALATES_TOO_LATE"),
            ),
        ],
    )
    def test_what_contradicts_itself_is_refused(self, admin, changes, fault):
        body = policy({"name": "step", "approvers": ["person:a"], **changes})
        refused = admin.post("/v1/approval-policies", body)
        assert refused.status_code == 422
        assert [(error["pointer"], error["code"]) for error in refused.json()["errors"]] == [fault]


def test_a_cancelled_approval_gives_its_budget_back(callers, admin):
    approver, asker = Actor(callers), Actor(callers)
    admin.post("/v1/approval-policies", policy(step(approver)))
    admin.post("/v1/cost-centers", {"id": "research", "name": "Research"})
    budget = {
        "id": "year",
        "name": "Year",
        "cost_center_id": "research",
        "starts_on": "2020-01-01",
        "ends_on": "2099-12-31",
        "amount": {"amount": "150", "currency_code": "USD"},
        "enforcement": "block",
    }
    assert admin.post("/v1/budgets", budget).status_code == 201
    quotes = [asker.quote(cost_center_id="research") for _ in range(2)]
    first, second = (asker.submit(quote).json() for quote in quotes)
    assert not first["budgets"][0]["is_exceeded"]
    assert approver.decide(first).json()["state"] == "approved"
    refused = approver.decide(second)
    assert code(refused) == (409, "BUDGET_EXCEEDED")
    assert asker.get(f"/v1/approvals/{second['id']}").json()["state"] == "pending"
    body = {"content_digest": first["content_digest"]}
    cancelled = asker.post(f"/v1/quotes/{first['quote_id']}:cancel", body)
    assert cancelled.json()["state"] == "cancelled", cancelled.text
    assert approver.decide(second).json()["state"] == "approved"


def test_the_approval_of_a_newer_version_supersedes_that_of_the_older(callers, admin):
    approver, asker = Actor(callers), Actor(callers)
    admin.post("/v1/approval-policies", policy(step(approver)))
    quote = asker.quote()
    first = asker.submit(quote).json()
    assert code(asker.post(f"/v1/quotes/{quote['id']}:reprice", {})) == (409, "QUOTE_PENDING")
    approver.decide(first)
    newer = asker.post(f"/v1/quotes/{quote['id']}:reprice", {}).json()
    approver.decide(asker.submit(newer).json())
    assert asker.get(f"/v1/approvals/{first['id']}").json()["state"] == "superseded"
    verdict = admin.get("/v1/audit-events:verify").json()
    assert verdict["valid"]
    for one in asker.get("/v1/approvals").json()["items"]:
        assert asker.get(f"/v1/approvals/{one['id']}/history").json()["is_as_recorded"]
