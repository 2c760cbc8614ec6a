"""What budgets and approvals show of commitments: as FOCUS CSV, over HTTP, and once they are closed."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select

from service.approvals.service import find_deviations
from service.formats.focus import read_focus
from service.kit.jobs.events import EventRow
from tests.approvals.deciding import QUOTED, Actor, governed, policy, step
from tests.approvals.quoting import quoted, usd
from tests.budgets.bills import bill as table
from tests.budgets.bills import imported, row
from tests.budgets.test_budgets import TENANT, budget, committed, released
from tests.prepared import ON_SQLITE


class TestFocus:
    def test_rows_are_what_is_committed_and_charged(self, client, database):
        budget(client, amount="5000", ends_on="2027-06-30")
        run, _ = committed(database, quoted("100.01", starts_at="2027-06-30T00:00:00Z", days=4.0))
        committed(database, quoted(None))
        gone, _ = committed(database, quoted("7"))
        released(database, gone)
        client.patch("/v1/cost-centers/research", {"accounts": ["1"]}, headers={"If-Match": "*"})
        bill = row("3.25", "2027-01-30", "2027-02-02", EffectiveCost="3", BillingPeriodEnd="2027-02-01")
        imported(client, table(bill))
        answer = client.get("/v1/budgets/year/focus")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        lines = list(csv.DictReader(io.StringIO(answer.text)))
        assert {line["x_LineName"]: line["x_PriceSource"].partition("/")[0] for line in lines} == {
            "committed": "approvals",
            "charged": "actuals",
        }
        shown = client.get("/v1/budgets/year").json()
        for name, member, column in (
            ("committed", "committed", "BilledCost"),
            ("charged", "spent", "EffectiveCost"),
        ):
            amounts = [Decimal(line[column]) for line in lines if line["x_LineName"] == name]
            assert sum(amounts) == Decimal(shown[member]["amount"])
        (taken,) = (line for line in lines if line["x_LineName"] == "committed")
        assert (taken["ChargePeriodStart"], taken["ChargePeriodEnd"]) == (
            "2027-06-30T00:00:00Z",
            "2027-07-01T00:00:00Z",
        )
        tags = json.loads(taken["Tags"])
        assert tags.items() >= {"approval_id": run, "estimate": "true", "budget_id": "year"}.items()
        charges = [line for line in lines if line["x_LineName"] == "charged"]
        assert [line["ChargePeriodStart"][:10] for line in charges] == [
            "2027-01-30",
            "2027-01-31",
            "2027-02-01",
        ]
        assert sum(Decimal(line["BilledCost"]) for line in charges) == Decimal("3.25")
        # What the service writes it reads.
        assert read_focus(answer.text).faults == []
        assert client.get("/v1/budgets/none/focus").status_code == 404


@ON_SQLITE
class TestApprovals:
    """Over HTTP, with keys of their own: one asks, another decides."""

    @pytest.fixture
    def asker(self, callers):
        asker = Actor(callers)
        asker.post("/v1/cost-centers", {"id": "research", "name": "Research"})
        today = datetime.now(UTC).date()
        body = {"id": "now", "name": "Now", "cost_center_id": "research", "enforcement": "block"}
        body |= {"starts_on": str(today), "ends_on": str(today + timedelta(days=500)), "amount": usd("150")}
        assert asker.post("/v1/budgets", body).status_code == 201
        return asker

    def test_a_budget_that_blocks_undoes_the_approval_until_there_is_money(self, callers, asker):
        decider = Actor(callers)
        assert governed(asker, policy(step(decider))).status_code == 201
        quotes = [asker.quote(cost_center_id="research") for _ in range(2)]
        asked = [asker.submit(quote).json() for quote in quotes]
        total = Decimal(quotes[0]["headlines"]["total"]["amount"])
        assert 75 < total <= 150
        assert decider.decide(asked[0]).status_code == 200
        refused = decider.decide(asked[1])
        assert (refused.status_code, refused.json()["code"]) == (409, "BUDGET_EXCEEDED")
        assert decider.get(f"/v1/approvals/{asked[1]['id']}").json()["state"] == "pending"
        assert asker.get("/v1/budgets/now").json()["committed"] == usd(f"{total}")
        body = {"content_digest": quotes[0]["content_digest"]}
        assert asker.post(f"/v1/quotes/{quotes[0]['id']}:cancel", body).status_code == 200
        approved = decider.decide(asked[1])
        assert approved.status_code == 200
        (effect,) = approved.json()["budgets"]
        assert (effect["is_exceeded"], effect["remaining_after"]) == (False, usd(f"{150 - total}"))

    def test_what_is_over_commits_nothing_more(self, callers, asker):
        decider = Actor(callers)
        governed(asker, policy(step(decider)))
        quote = asker.quote(cost_center_id="research")
        approval = asker.submit(quote).json()
        path, total = f"/v1/approvals/{approval['id']}", quote["headlines"]["total"]["amount"]
        refused = asker.post(f"{path}:close", None)
        assert (refused.status_code, refused.json()["code"]) == (409, "APPROVAL_NOT_APPROVED")
        assert "commitment" not in approval
        decided = decider.decide(approval).json()
        assert (decided["commitment"]["amount"], "outstanding" in decided["commitment"]) == (
            usd(total),
            False,
        )
        bill = row("30", "2025-03-01", "2025-03-02", tags={"quote_id": quote["id"]})
        assert (
            asker.post("/v1/actuals:import", {"source": "cloud", "content": table(bill)}).status_code == 201
        )
        left = f"{Decimal(total) - 30}"
        assert asker.get(path).json()["commitment"]["outstanding"] == usd(left)
        assert asker.get("/v1/budgets/now").json()["outstanding"] == usd(total)
        tried = asker.post(f"{path}:close", None, params={"validate_only": "true"}).json()
        assert asker.get(path).json()["version"] == tried["version"] - 1
        closed = asker.post(f"{path}:close", None).json()
        assert (closed["state"], closed["commitment"]["outstanding"]) == ("approved", usd("0.00"))
        assert closed["commitment"]["released_at"] >= closed["ended_at"]
        assert asker.post(f"{path}:close", None).json() == closed
        budget = asker.get("/v1/budgets/now").json()
        assert (budget["committed"], budget["outstanding"]) == (usd("0.00"), usd("0.00"))
        history = asker.get(f"{path}/history").json()
        assert (history["items"][-1]["operation"], history["is_as_recorded"]) == ("close_approval", True)
        with callers.client.app.state.database.open_reader() as session:
            found = session.scalars(select(EventRow.data).where(EventRow.type == "approval.closed")).all()
            assert list(find_deviations(session, TENANT)) == []
        assert [each["decided_by"] for each in found] == [asker.name]
        # A purchase that is over can still be cancelled; it was released before.
        body = {"content_digest": quote["content_digest"]}
        cancelled = asker.post(f"/v1/quotes/{quote['id']}:cancel", body).json()
        assert cancelled["commitment"]["released_at"] == closed["commitment"]["released_at"]
        assert asker.post(f"{path}:close", None).status_code == 409
        assert asker.post(f"/v1/approvals/{'0' * 32}:close", None).status_code == 404

    def test_asking_says_what_is_missing(self, callers, asker):
        governed(asker, policy(step(Actor(callers))))
        asker.request("PATCH", "/v1/budgets/now", json={"amount": usd("1")}, headers={"If-Match": "*"})
        answer = asker.submit(asker.quote(cost_center_id="research"), params={"validate_only": "true"}).json()
        assert [(each["budget_id"], each["is_exceeded"]) for each in answer["budgets"]] == [("now", True)]
        last = asker.get("/v1/budgets/now").json()["ends_on"]
        bought = {name: value for name, value in QUOTED["request"].items() if name != "rental"}
        bought |= {"purchase": {"price_per_device": usd("30000")}, "starts_at": f"{last}T23:00:00Z"}
        purchase = asker.quote(cost_center_id="research", request=bought)
        (effect,) = asker.submit(purchase, params={"validate_only": "true"}).json()["budgets"]
        assert effect["amount"] == usd("240000.00")
        misspelt = asker.post("/v1/quotes", QUOTED | {"cost_center_id": "reserch"})
        assert misspelt.status_code == 422
        (error,) = misspelt.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/cost_center_id", "UNKNOWN_REFERENCE")
