"""Budgets: what approvals commit, what is left, what is refused, and of what events tell."""

import itertools
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text

from service.approvals.tables import ApprovalRow
from service.budgets.commitments import commit_budgets, estimate_budget_effects, release_commitment
from service.budgets.errors import AmountTooLarge, BudgetExceeded, CostCenterUnknown
from service.budgets.periods import Period, prorate_amount
from service.budgets.schemas import BudgetRequest
from service.budgets.service import create_budget
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.jobs.events import EventRow
from service.planning.cost.exchange import ExchangeRate, ExchangeRates
from tests.approvals.quoting import approval_of, quoted, usd
from tests.prepared import ON_SQLITE

TENANT = "default"


class Rates:
    """A catalog of exchange rates."""

    def __init__(self, *rates):
        day = datetime(2026, 1, 2, tzinfo=UTC).date()
        self.exchange_rates = ExchangeRates(
            ExchangeRate(first, second, Decimal(rate), day, "of a test") for first, second, rate in rates
        )


CATALOG = Rates(("EUR", "USD", "1.1"))


def budget(client, name="year", starts_on="2027-01-01", ends_on="2027-12-31", amount="1000", **members):
    centers = client.post("/v1/cost-centers", {"id": "research", "name": "Research"})
    assert centers.status_code in (201, 409)
    body = {"id": name, "name": name, "cost_center_id": "research", "amount": usd(amount), **members}
    made = client.post("/v1/budgets", body | {"starts_on": starts_on, "ends_on": ends_on})
    assert made.status_code == 201, made.text
    return made


def committed(database, quote, catalog=CATALOG, at=None):
    """Approve a quote; the approval and what it takes."""
    with database.open_writer() as session:
        row = approval_of(quote)
        session.add(row)
        return row.id, commit_budgets(session, row, quote, at or now(), catalog.exchange_rates)[0]


def released(database, approval_id):
    with database.open_writer() as session:
        release_commitment(session.get(ApprovalRow, (TENANT, approval_id)), now())


def told(database):
    """What events have told, in order."""
    with database.open_reader() as session:
        rows = session.scalars(select(EventRow).order_by(EventRow.occurred_at, EventRow.id)).all()
    return [(row.type, row.data.get("threshold_share")) for row in rows]


def wait_for_lock(database):
    """Return once another transaction waits for a lock that this one holds."""
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    for _ in range(500):
        with database.engine.connect() as connection:
            if connection.scalar(waiting):
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def left(client, name="year"):
    return client.get(f"/v1/budgets/{name}").json()["remaining"]["amount"]


class TestPeriods:
    @given(
        st.integers(-(10**15), 10**15),
        st.integers(1, 10**9),
        st.lists(st.integers(0, 10**9), min_size=1, max_size=5),
    )
    def test_periods_that_follow_each_other_share_all_of_it(self, micros, seconds, cuts):
        start = datetime(2027, 1, 1, tzinfo=UTC)
        run = Period(start, start + timedelta(seconds=seconds))
        ends = sorted({start, run.end, *(start + timedelta(seconds=cut % (seconds + 1)) for cut in cuts)})
        parts = [
            prorate_amount(micros, run, Period(first, second)) for first, second in itertools.pairwise(ends)
        ]
        assert sum(parts) == micros

    def test_a_run_over_two_years_is_split_by_time(self, client, database):
        budget(client, "first", ends_on="2027-12-31")
        budget(client, "second", starts_on="2028-01-01", ends_on="2028-12-31")
        quote = quoted("100.01", starts_at="2027-12-30T00:00:00Z", days=6.0)
        _, effects_of_it = committed(database, quote)
        # 100.01 USD over six days of which two are of the first year: 33.336666... and 66.673333...
        assert [each["amount"]["amount"] for each in effects_of_it] == ["33.336667", "66.673333"]

    @ON_SQLITE
    def test_a_purchase_falls_due_when_it_is_made(self, client, database):
        budget(client, "first", ends_on="2027-12-31", amount="50000000")
        budget(client, "second", starts_on="2028-01-01", ends_on="2028-12-31")
        cost = {"purchase": {"lines": []}, "lines": []}
        quote = quoted("30000000", starts_at="2027-12-30T00:00:00Z", days=20.0, answers={"cost": cost})
        _, taken = committed(database, quote)
        assert [(each["budget_id"], each["amount"]) for each in taken] == [("first", usd("30000000.00"))]

    @ON_SQLITE
    def test_a_quote_without_a_start_begins_when_it_is_approved(self, client, database):
        today = datetime.now(UTC).date()
        budget(client, "now", starts_on=str(today), ends_on=str(today + timedelta(days=1)))
        budget(client, "later", starts_on=str(today + timedelta(days=300)), ends_on="2099-01-01")
        _, taken = committed(database, quoted("10", starts_at=None, days=0.25))
        assert [(each["budget_id"], each["amount"]) for each in taken] == [("now", usd("10.00"))]


class TestCommitments:
    def test_are_taken_shown_and_given_back(self, client, database):
        budget(client)
        quote = quoted("400")
        approval_id, taken = committed(database, quote)
        assert taken == [
            {
                "budget_id": "year",
                "amount": usd("400.00"),
                "remaining_before": usd("1000.00"),
                "remaining_after": usd("600.00"),
                "is_exceeded": False,
                "blocks": False,
            }
        ]
        shown = client.get("/v1/budgets/year").json()
        assert (shown["committed"], shown["spent"]) == (usd("400.00"), usd("0.00"))
        assert shown["commitments"][0]["approval_id"] == approval_id
        assert shown["commitments"][0]["quote_id"] == quote["id"]
        assert client.delete("/v1/budgets/year", headers={"If-Match": "*"}).status_code == 409
        released(database, approval_id)
        after = client.get("/v1/budgets/year").json()
        assert (after["committed"]["amount"], after["remaining"]["amount"]) == ("0.00", "1000.00")
        assert "released_at" in after["commitments"][0]
        assert client.delete("/v1/budgets/year", headers={"If-Match": "*"}).status_code == 204

    def test_a_budget_that_blocks_takes_no_more_than_there_is(self, client, database):
        budget(client, enforcement="block")
        committed(database, quoted("1000"))
        with pytest.raises(BudgetExceeded):
            committed(database, quoted("0.000001"))
        assert left(client) == "0.00"

    @ON_SQLITE
    def test_a_budget_that_warns_is_exceeded_and_says_so(self, client, database):
        budget(client)
        _, (effect,) = committed(database, quoted("1000.01"))
        assert (effect["is_exceeded"], effect["remaining_after"]) == (True, usd("-0.01"))
        assert told(database)[-1] == ("budget.exceeded", None)

    @ON_SQLITE
    def test_another_currency_is_converted_and_its_rate_kept(self, client, database):
        budget(client)
        catalog = client.app.state.snapshots.get_current(TENANT)
        _, (effect,) = committed(database, quoted("100", currency="EUR"), catalog)
        rate = catalog.exchange_rates.convert(Decimal(1), "EUR", "USD", now().date())
        kept = client.get("/v1/budgets/year").json()["commitments"][0]
        assert (kept["quoted"]["amount"], kept["quoted"]["currency_code"]) == ("100.00", "EUR")
        assert (kept["rate"], kept["rate_on"]) == (f"{rate.rate:f}", rate.oldest_on.isoformat())
        assert kept["amount"] == effect["amount"] == usd(f"{(100 * rate.rate).normalize():f}")

    @ON_SQLITE
    def test_what_was_approved_without_a_known_amount_is_a_gap_and_blocks(self, client, database):
        client.post("/v1/cost-centers", {"id": "research", "name": "Research"})
        committed(database, quoted(None))
        committed(database, quoted("1", currency="XTS"))
        budget(client, enforcement="block")
        shown = client.get("/v1/budgets/year").json()
        gaps = [(gap["pointer"], gap["code"]) for gap in shown["gaps"]]
        assert gaps == [("/committed", "RATE_UNKNOWN"), ("/committed", "TOTAL_UNKNOWN")]
        assert [("amount" in each, "quoted" in each) for each in shown["commitments"]] == [
            (False, True),
            (False, False),
        ]
        with pytest.raises(BudgetExceeded):
            committed(database, quoted("1"))

    def test_a_budget_counts_what_was_approved_before_it(self, client, database):
        client.post("/v1/cost-centers", {"id": "research", "name": "Research"})
        first, _ = committed(database, quoted("400", starts_at="2027-12-30T00:00:00Z", days=4.0))
        committed(database, quoted("5", starts_at="2026-12-30T00:00:00Z", days=2.0))
        gone, _ = committed(database, quoted("90"))
        released(database, gone)
        budget(client, thresholds=[0.1])
        assert told(database) == [("budget.threshold_reached", 0.1)]
        shown = client.get("/v1/budgets/year").json()
        assert (shown["committed"], shown["remaining"]) == (usd("200.00"), usd("800.00"))
        found = {each["approval_id"]: each["amount"]["amount"] for each in shown["commitments"]}
        assert found == {first: "200.00", gone: "90.00"}
        # A cost centre stays as long as something is committed for it.
        client.delete("/v1/budgets/year", headers={"If-Match": "*"})
        refused = client.delete("/v1/cost-centers/research", headers={"If-Match": "*"})
        assert (refused.status_code, refused.json()["code"]) == (409, "COST_CENTER_IN_USE")

    @ON_SQLITE
    def test_another_version_takes_the_place_of_what_was_committed(self, client, database):
        budget(client)
        quote = quoted("400")
        committed(database, quote)
        with database.open_reader() as session:
            (effect,) = estimate_budget_effects(
                session, TENANT, quote | {"version": 2}, CATALOG.exchange_rates
            )
        assert (effect["remaining_before"], effect["remaining_after"]) == (usd("600.00"), usd("600.00"))

    def test_a_budget_that_is_made_meanwhile_is_not_passed_by(self, client, database):
        """An approval waits for a budget that is being written, and an approval for another one."""
        client.post("/v1/cost-centers", {"id": "research", "name": "Research"})
        made, outcomes = threading.Event(), []
        body = {"id": "year", "name": "year", "cost_center_id": "research", "enforcement": "block"}
        body |= {"starts_on": "2027-01-01", "ends_on": "2027-12-31", "amount": usd("10")}
        shape = BudgetRequest.model_validate_json(json.dumps(body))

        def approve():
            made.wait()
            try:
                committed(database, quoted("11"))
            except BudgetExceeded:
                outcomes.append("refused")

        thread = threading.Thread(target=approve)
        thread.start()
        with database.open_writer() as session:
            create_budget(session, TENANT, shape, CATALOG)
            made.set()
            if not database.is_sqlite:
                wait_for_lock(database)
        thread.join()
        assert outcomes == ["refused"]

    @ON_SQLITE
    @pytest.mark.parametrize(
        ("quote", "unknown"),
        [(quoted(None), "TOTAL_UNKNOWN"), (quoted("1", currency="JPY"), "RATE_UNKNOWN")],
    )
    def test_what_nobody_can_tell_is_not_nothing(self, client, database, quote, unknown):
        budget(client)
        budget(client, "other", ends_on="2027-06-30", enforcement="block")
        with database.open_reader() as session:
            found = estimate_budget_effects(session, TENANT, quote, CATALOG.exchange_rates)
        assert [(each["is_exceeded"], each["unknown"]) for each in found] == [(True, unknown)] * 2
        with pytest.raises(BudgetExceeded) as refused:
            committed(database, quote)
        assert [error.code for error in refused.value.errors] == [unknown]

    @ON_SQLITE
    def test_what_no_budget_holds_is_refused(self, client, database):
        budget(client)
        with pytest.raises(AmountTooLarge):
            committed(database, quoted("1000000000000"))

    @ON_SQLITE
    def test_a_misspelt_cost_center_does_not_go_past_a_budget(self, client, database):
        budget(client, enforcement="block")
        with pytest.raises(CostCenterUnknown):
            committed(database, quoted(cost_center_id="reserch"))

    @ON_SQLITE
    def test_a_quote_of_nobody_takes_of_no_budget(self, client, database):
        budget(client)
        quote = quoted()
        del quote["cost_center_id"]
        assert committed(database, quote)[1] == []

    def test_many_at_once_never_take_more_than_there_is(self, client, database):
        """Thirty approvals of 100 USD against 1,000 USD: ten are made, whoever comes first."""
        budget(client, enforcement="block")
        urls, outcomes, ready = database.url, [], threading.Barrier(30)
        others = [Database(urls) for _ in range(3)]

        def approve(number):
            ready.wait()
            try:
                committed(others[number % 3], quoted("100"))
                outcomes.append("made")
            except BudgetExceeded:
                outcomes.append("refused")

        threads = [threading.Thread(target=approve, args=(number,)) for number in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in others:
            other.dispose()
        assert sorted(outcomes) == ["made"] * 10 + ["refused"] * 20
        assert left(client) == "0.00"


class TestEvents:
    def test_each_threshold_is_told_of_once(self, client, database):
        budget(client, thresholds=[0.5, 0.8, 1.0])
        first, _ = committed(database, quoted("499.99"))
        assert told(database) == []
        committed(database, quoted("0.01"))
        assert told(database) == [("budget.threshold_reached", 0.5)]
        released(database, first)
        committed(database, quoted("900"))
        assert told(database)[1:] == [("budget.threshold_reached", 0.8)]
        committed(database, quoted("100"))
        assert {*told(database)[2:]} == {("budget.threshold_reached", 1.0), ("budget.exceeded", None)}

    @ON_SQLITE
    def test_another_amount_lets_it_be_told_again(self, client, database):
        budget(client, thresholds=[0.5])
        committed(database, quoted("600"))
        client.patch("/v1/budgets/year", {"amount": usd("2000")}, headers={"If-Match": "*"})
        client.patch("/v1/budgets/year", {"amount": usd("1100")}, headers={"If-Match": "*"})
        assert told(database) == [("budget.threshold_reached", 0.5)] * 2


@ON_SQLITE
class TestOperations:
    def test_a_change_needs_the_version_that_it_is_based_on(self, client):
        etag = budget(client).headers["etag"]
        change = {"name": "Another"}
        assert client.patch("/v1/budgets/year", change).status_code == 428
        assert client.patch("/v1/budgets/year", change, headers={"If-Match": etag}).status_code == 200
        assert client.patch("/v1/budgets/year", change, headers={"If-Match": etag}).status_code == 412
        assert client.delete("/v1/cost-centers/research", headers={"If-Match": "*"}).status_code == 409

    @pytest.mark.parametrize(
        ("members", "pointer", "code"),
        [
            ({"ends_on": "2026-12-31"}, "/ends_on", "BEFORE_START"),
            ({"starts_on": "2027-02-30"}, "/starts_on", "DAY_UNKNOWN"),
            ({"ends_on": "9999-12-31"}, "/ends_on", "DAY_UNKNOWN"),
            ({"cost_center_id": "nobody"}, "/cost_center_id", "UNKNOWN_REFERENCE"),
        ],
    )
    def test_a_budget_that_contradicts_itself_is_refused(self, client, members, pointer, code):
        budget(client)
        body = {"id": "other", "name": "x", "cost_center_id": "research", "amount": usd("1")}
        body |= {"starts_on": "2027-01-01", "ends_on": "2027-12-31", **members}
        refused = client.post("/v1/budgets", body)
        assert refused.status_code == 422
        assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [(pointer, code)]

    def test_a_budget_keeps_its_currency(self, client):
        budget(client)
        change = {"amount": {"amount": "5", "currency_code": "EUR"}}
        refused = client.patch("/v1/budgets/year", change, headers={"If-Match": "*"})
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "CURRENCY_FIXED")

    def test_an_account_is_of_one_cost_center(self, client):
        client.post("/v1/cost-centers", {"id": "one", "name": "One", "accounts": ["1"]})
        refused = client.post("/v1/cost-centers", {"id": "two", "name": "Two", "accounts": ["2", "1"]})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/accounts")

    def test_lists_are_in_order_and_paged(self, client):
        for name in ("b", "a", "c"):
            budget(client, name)
        page = client.get("/v1/budgets?page_size=2").json()
        rest = client.get(f"/v1/budgets?page_size=2&page_token={page['next_page_token']}").json()
        assert [each["id"] for each in page["items"] + rest["items"]] == ["a", "b", "c"]
        assert client.get("/v1/budgets?cost_center_id=other").json()["items"] == []
