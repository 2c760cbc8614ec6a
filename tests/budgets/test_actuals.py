"""Actuals: what the rows of a bill belong to, which bills count, and how far quotes are off."""

import threading
from datetime import datetime

import pytest

from service.budgets.actuals import service
from service.budgets.actuals.comparison import compare_charges
from service.budgets.actuals.errors import ImportedBefore
from service.budgets.actuals.repository import QuoteCharge
from service.budgets.actuals.schemas import ActualsImportRequest
from service.budgets.actuals.tables import ActualsPeriodRow
from service.kit.clock import now
from tests.approvals.quoting import quoted as quote_of
from tests.approvals.quoting import usd
from tests.budgets.bills import COLUMNS, bill, imported, row
from tests.budgets.test_budgets import CATALOG, budget, committed, left, told
from tests.prepared import ON_SQLITE
from tests.quotes.asking import OWNED, RENTED, RUN, START, quoted


class TestOwners:
    def test_a_row_is_known_by_quote_tag_or_account(self, client):
        centers = {
            "of-quote": {},
            "of-tag": {"tags": [{"key": "team", "value": "x"}]},
            "of-sub": {"accounts": ["sub"]},
            "of-account": {"accounts": ["1"]},
        }
        for name, members in centers.items():
            client.post("/v1/cost-centers", {"id": name, "name": name, **members})
            budget(client, f"b-{name}", "2025-01-01", "2025-12-31", cost_center_id=name)
        quote = quoted(client, cost_center_id="of-quote")
        answer = imported(
            client,
            bill(
                row("1", tags={"quote_id": quote["id"], "team": "x"}),
                row("2", tags={"user:quote_id": quote["id"]}),
                row("4", tags={"cost_center_id": "of-tag"}),
                row("8", tags={"team": "x"}, SubAccountId="sub"),
                row("16", SubAccountId="sub"),
                row("32", tags={"quote_id": "0" * 32}),
                row("64", BillingAccountId="unknown"),
            ),
        )
        spent = {name: client.get(f"/v1/budgets/b-{name}").json()["spent"]["amount"] for name in centers}
        assert spent == {"of-quote": "3.00", "of-tag": "12.00", "of-sub": "16.00", "of-account": "32.00"}
        assert (answer["row_count"], answer["matched_row_count"]) == (7, 6)
        notes = {note["code"]: note["row_count"] for note in answer["notes"]}
        assert notes == {"QUOTE_UNKNOWN": 1, "UNMATCHED": 1}
        assert answer["periods"][0]["billed"] == [usd("127")]


class TestImports:
    @pytest.fixture
    def spent(self, client):
        client.post("/v1/cost-centers", {"id": "research", "name": "Research", "accounts": ["1"]})
        budget(client, starts_on="2025-01-01", ends_on="2025-12-31")
        return lambda: client.get("/v1/budgets/year").json()["spent"]["amount"]

    def test_a_later_bill_of_the_same_months_takes_the_place_of_the_earlier(self, client, spent):
        both = bill(row("10", "2025-02-01", "2025-03-01"), row("20"))
        first = imported(client, both)
        imported(client, bill(row("5")), source="another")
        assert spent() == "35.00"
        second = imported(client, bill(row("21")))
        assert spent() == "36.00"
        third = imported(client, bill(row("11", "2025-02-01", "2025-03-01")))
        assert spent() == "37.00"
        states = {each["id"]: each["state"] for each in client.get("/v1/actuals").json()["items"]}
        ids = (first["id"], second["id"], third["id"])
        assert [states[each] for each in ids] == ["superseded", "active", "active"]

    def test_of_bills_of_one_source_that_come_at_once_one_counts(self, client, database, spent):
        body = ActualsImportRequest(source="cloud", content=bill(row("10")))
        read, ready = service.parse_bill(body), threading.Barrier(6)
        with database.open_reader() as session:
            matched = service.match_bill(session, "default", read)

        refused = []

        def keep():
            ready.wait()
            try:
                with database.open_writer() as session:
                    service.store_bill(session, "default", body, matched, CATALOG)
            except ImportedBefore as error:
                refused.append(error.code)

        threads = [threading.Thread(target=keep) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert spent() == "10.00"
        states = [each["state"] for each in client.get("/v1/actuals").json()["items"]]
        assert (states, refused) == (["active"], ["IMPORTED_BEFORE"] * 5)

    def test_the_same_bill_again_is_refused_or_replaces_the_one_that_it_names(self, client, spent):
        content = bill(row("10", BillingAccountId="2"))
        first = imported(client, content)
        for source in ("cloud", "another"):
            refused = imported(client, content, source=source, status=409)
            assert (refused["code"], refused["errors"][0]["pointer"]) == ("IMPORTED_BEFORE", "/content")
            assert first["id"] in refused["errors"][0]["detail"]
        assert spent() == "0.00"
        client.patch("/v1/cost-centers/research", {"accounts": ["2"]}, headers={"If-Match": "*"})
        body = {"source": "cloud", "content": content, "replaces": first["id"]}
        assert client.post("/v1/actuals:import", body | {"source": "another"}).status_code == 409
        again = client.post("/v1/actuals:import", body).json()
        assert (spent(), client.get(f"/v1/actuals/{first['id']}").json()["state"]) == ("10.00", "superseded")
        unknown = client.post("/v1/actuals:import", body | {"content": bill(row("3"))})
        assert [error["pointer"] for error in unknown.json()["errors"]] == ["/replaces"]
        client.post(f"/v1/actuals/{again['id']}:withdraw", {"reason": "test"})
        client.post(f"/v1/actuals/{first['id']}:withdraw", {"reason": "test"})
        imported(client, content, source="another")
        assert spent() == "10.00"

    @ON_SQLITE
    def test_a_commitment_counts_where_it_is_used_and_once(self, client, spent):
        columns = (*COLUMNS, "CommitmentDiscountId", "ChargeFrequency")
        bought = {"ChargeCategory": "Purchase", "CommitmentDiscountId": "c", "ChargeFrequency": "Recurring"}
        used = {"BilledCost": "0", "CommitmentDiscountId": "c", "ChargeFrequency": "Usage-Based"}
        rows = [row("30", **bought), row("20", **used), row("10", **used)]
        answer = imported(client, bill(*rows, columns=columns))
        assert [(note["code"], note["row_count"]) for note in answer["notes"]] == [("COMMITMENT_COUNTED", 1)]
        period = answer["periods"][0]
        assert (spent(), period["billed"], period["effective"]) == ("30.00", [usd("30")], [usd("30")])
        # As the specification wants it, nothing is changed; and a purchase that nobody uses is one.
        rows[0]["EffectiveCost"] = "0"
        rows.append(row("5", **{**bought, "CommitmentDiscountId": "d"}))
        assert (imported(client, bill(*rows, columns=columns))["notes"], spent()) == ([], "35.00")

    @ON_SQLITE
    @pytest.mark.usefixtures("spent")
    def test_what_is_paid_once_falls_due_at_once(self, client):
        budget(client, "march", starts_on="2025-03-01", ends_on="2025-03-31")
        columns = (*COLUMNS, "ChargeFrequency")
        yearly = row(
            "1200", "2025-03-15", "2026-03-15", ChargeFrequency="One-Time", ChargeCategory="Purchase"
        )
        imported(client, bill(yearly, row("31", ChargeFrequency="Recurring"), columns=columns))
        assert client.get("/v1/budgets/march").json()["spent"] == usd("1231.00")

    @ON_SQLITE
    def test_credits_and_corrections_take_away_what_they_correct(self, client, spent):
        budget(client, "february", starts_on="2025-02-01", ends_on="2025-02-28")
        corrected = row("-4", "2025-02-10", "2025-02-11", BillingPeriodStart="2025-03-01")
        imported(client, bill(row("10"), row("-3", ChargeCategory="Credit"), corrected))
        assert (spent(), client.get("/v1/budgets/february").json()["spent"]["amount"]) == ("3.00", "-4.00")

    @ON_SQLITE
    @pytest.mark.usefixtures("spent")
    def test_a_month_that_is_not_over_is_spoken_for_as_far_as_its_use(self, client):
        columns = (*COLUMNS, "ChargeFrequency")
        open_period = {"BillingPeriodStart": "2099-01-01", "BillingPeriodEnd": "2099-02-01"}
        support = row("1", "2099-01-01", "2099-02-01", ChargeFrequency="Recurring", **open_period)
        used = row("1", "2099-01-01", "2099-01-11", ChargeFrequency="Usage-Based", **open_period)
        answer = imported(client, bill(support, used, columns=columns))
        assert answer["periods"][0]["covered_until"][:10] == "2099-01-11"

    def test_a_bill_that_is_withdrawn_counts_no_longer(self, client, spent):
        made = imported(client, bill(row("10")))
        url = f"/v1/actuals/{made['id']}"
        gone = client.post(f"{url}:withdraw", {"reason": "not final"}).json()
        assert (gone["state"], gone["reason"], spent()) == ("withdrawn", "not final", "0.00")
        assert client.get(url).json() == gone
        assert client.post(f"{url}:withdraw", {"reason": "again"}).status_code == 409

    def test_a_dry_run_answers_the_same_and_keeps_nothing(self, client, spent):
        content = bill(row("10"))
        tried = imported(client, content, validate_only=True)
        assert (spent(), client.get("/v1/actuals").json()["items"]) == ("0.00", [])
        made = imported(client, content)
        assert {**made, "id": "", "created_at": ""} == {**tried, "id": "", "created_at": ""}

    @ON_SQLITE
    def test_a_charge_over_several_days_is_split_by_time(self, client, spent):
        budget(client, "february", starts_on="2025-02-01", ends_on="2025-02-28")
        imported(client, bill(row("59", "2025-02-01", "2025-04-01")))
        assert client.get("/v1/budgets/february").json()["spent"] == usd("28.00")
        assert spent() == "59.00"

    @ON_SQLITE
    def test_a_currency_without_a_rate_is_a_gap_and_blocks(self, client, database, spent):
        imported(client, bill(row("10"), row("10", BillingCurrency="XTS")))
        shown = client.get("/v1/budgets/year").json()
        assert (spent(), [gap["code"] for gap in shown["gaps"]]) == ("10.00", ["RATE_UNKNOWN"])
        quote = quote_of("1", starts_at="2025-05-01T00:00:00Z")
        (effect,) = committed(database, quote)[1]
        assert (effect["amount"], effect["unknown"]) == (usd("1.00"), "RATE_UNKNOWN")
        assert client.get("/v1/budgets/year").json()["committed"] == usd("1.00")

    @ON_SQLITE
    def test_thresholds_are_told_of_when_money_is_spent(self, client, database, spent):
        imported(client, bill(row("850")))
        assert told(database) == [("budget.threshold_reached", 0.5), ("budget.threshold_reached", 0.8)]
        imported(client, bill(row("1200")))
        assert {*told(database)[2:]} == {("budget.threshold_reached", 1.0), ("budget.exceeded", None)}
        assert spent() == "1200.00"

    def test_what_is_committed_and_then_billed_counts_once(self, client, database, spent):
        quote = quoted(client, cost_center_id="research")
        as_committed = quote_of("400", starts_at="2025-03-01T00:00:00Z", id=quote["id"])
        committed(database, as_committed)
        imported(client, bill(row("300", tags={"quote_id": quote["id"]}), row("7")))
        assert (spent(), left(client)) == ("307.00", "593.00")
        imported(client, bill(row("450", tags={"quote_id": quote["id"]}), row("7")))
        assert left(client) == "543.00"


BOUGHT = {**RUN, "purchase": {"price_per_device": usd("30000")}, "starts_at": START}
BLOCK = {**RENTED, "rental": {"price_per_device_hour": usd("2"), "capacity_block": {"block_hours": 24.0}}}
LONG = {**RENTED, "workload": {**RENTED["workload"], "total_tokens": 2_000_000_000_000}}
"""Five weeks from 25 January on."""


class TestRoundTrip:
    @pytest.mark.parametrize(
        "request_", [OWNED, BOUGHT, BLOCK, LONG], ids=["owned", "bought", "block", "long"]
    )
    def test_charges_of_a_quote_that_come_back_as_a_bill_are_what_it_said(self, client, request_):
        quote = quoted(client, request_, "utility-bill" if "site" in request_ else "cost")
        charges = client.get(f"/v1/quotes/{quote['id']}/focus").text
        answer = imported(client, charges)
        assert {note["code"] for note in answer["notes"]} == {"ESTIMATED"}
        found = client.get(f"/v1/quotes/{quote['id']}/actuals").json()
        assert (found["ratio"], found["covered_share"], found["is_within_interval"]) == (1.0, 1.0, True)
        assert found["effective"]["amount"] == quote["headlines"]["total"]["amount"]
        assert found["gaps"] == []
        for each in found["services"]:
            assert each["expected"] == each["effective"]
        accuracy = client.get("/v1/actuals:accuracy").json()
        assert (accuracy["partly_billed_count"], accuracy["without_figure"]) == (0, [])
        figures = {"quote_count": 1, "median_absolute_error": 0.0, "bias": 0.0, "interval_coverage": 1.0}
        assert accuracy.items() >= figures.items()
        assert accuracy["by_accelerator"] == [{"name": "h100-sxm", **figures}]

    @ON_SQLITE
    def test_the_first_month_alone_is_what_was_said_of_that_month(self, client):
        quote = quoted(client, LONG)
        head, *rows = client.get(f"/v1/quotes/{quote['id']}/focus").text.splitlines(keepends=True)
        imported(client, head + "".join(line for line in rows if "2027-02-01T00:00:00Z,2027-01-01" in line))
        found = client.get(f"/v1/quotes/{quote['id']}/actuals").json()
        week = 7 * 86400 / quote["headlines"]["duration_seconds"]["value"]
        assert (found["ratio"], found["covered_share"]) == (1.0, pytest.approx(week, rel=1e-6))
        assert found["left_out"] == []
        assert client.get("/v1/actuals:accuracy").json()["partly_billed_count"] == 1

    @ON_SQLITE
    def test_a_quote_that_nothing_is_billed_for_has_no_ratio(self, client):
        quote = quoted(client)
        found = client.get(f"/v1/quotes/{quote['id']}/actuals").json()
        assert [gap["code"] for gap in found["gaps"]] == ["NO_ACTUALS"]
        assert not {"ratio", "effective", "expected"} & found.keys()
        assert client.get(f"/v1/quotes/{'0' * 32}/actuals").status_code == 404
        assert client.get("/v1/actuals:accuracy").json()["quote_count"] == 0


def charged(cost, currency, day="2025-01-01"):
    """A charge for a quote by a bill of the cloud, in millionths."""
    return QuoteCharge("q", "i", "cloud", now(), "Compute", currency, day, cost, cost)


class TestComparison:
    """A run of 100 days from 1 January 2025 at 1,000 USD, between 900 and 1,200."""

    QUOTE = quote_of("1000", starts_at="2025-01-01T00:00:00Z", days=100.0, state="approved")

    def against(self, *spent, covered=("2025-01-01", "2025-02-01"), quote=QUOTE, **members):
        total = {"amount": "1000", "low": "900", "high": "1200", "currency_code": "USD"}
        quote = quote | {"headlines": {**quote["headlines"], "total": total}} | members
        charges = [charged(*each) for each in spent]
        start, end = (datetime.fromisoformat(f"{day}T00:00:00+00:00") for day in covered)
        periods = [
            ActualsPeriodRow(source="cloud", starts_at=start, covered_until=end),
            ActualsPeriodRow(source="of others", starts_at=start, covered_until=end.replace(year=2026)),
        ]
        return compare_charges(quote, None, charges, periods, CATALOG.exchange_rates)

    def test_a_month_of_a_run_is_compared_with_that_month(self):
        found = self.against((341_000_000, "USD"))
        assert (found["covered_share"], found["expected"]["amount"]) == (0.31, "310.00")
        assert (found["expected"]["low"], found["expected"]["high"]) == ("279.00", "372.00")
        assert (found["ratio"], found["is_within_interval"]) == (1.1, True)

    def test_outside_of_its_interval_is_said(self):
        assert self.against((400_000_000, "USD"))["is_within_interval"] is False

    def test_a_run_that_ends_early_is_cheaper_and_not_shorter(self):
        found = self.against((500_000_000, "USD"), covered=("2025-01-01", "2025-06-01"))
        assert (found["covered_share"], found["ratio"]) == (1.0, 0.5)

    def test_charges_of_other_days_are_left_out_as_long_as_the_run_is_not_billed(self):
        spent = [(341_000_000, "USD", "2025-01-31"), (50_000_000, "USD", "2024-12-30")]
        spent += [(7_000_000, "EUR", "2025-03-01"), (-1_000_000, "USD", "2025-04-11")]
        found = self.against(*spent)
        assert (found["compared"], found["ratio"]) == (usd("341.00"), 1.1)
        assert found["effective"] == usd("397.70")
        left = [(each["code"], each["effective"]) for each in found["left_out"]]
        assert left == [("OUTSIDE_RUN", usd("49.00")), ("NOT_COVERED", usd("7.70"))]
        assert found["services"][0]["effective"] == usd("341.00")

    def test_once_the_run_is_billed_a_longer_one_counts_whole(self):
        spent = [(900_000_000, "USD"), (600_000_000, "USD", "2025-05-01")]
        found = self.against(*spent, covered=("2025-01-01", "2025-06-01"))
        assert (found["ratio"], found["left_out"]) == (1.5, [])

    def test_another_currency_is_converted(self):
        assert self.against((100_000_000, "EUR"))["effective"] == usd("110.00")
        found = self.against((1, "USD"), (1, "XTS"))
        assert [gap["code"] for gap in found["gaps"]] == ["RATE_UNKNOWN"]
        assert not {"effective", "ratio"} & found.keys()

    @pytest.mark.parametrize(
        ("headlines", "code"),
        [({}, "TOTAL_UNKNOWN"), ({"total": usd("1")}, "DURATION_UNKNOWN")],
    )
    def test_what_is_not_known_is_a_gap(self, headlines, code):
        found = self.against((1, "USD"), headlines=headlines)
        assert [gap["code"] for gap in found["gaps"]] == [code]
        assert "ratio" not in found

    def test_without_a_start_it_begins_with_its_first_charge(self):
        quote = {name: value for name, value in self.QUOTE.items() if name != "starts_at"}
        found = self.against((341_000_000, "USD"), quote=quote)
        assert (found["starts_at"].isoformat(), found["ratio"]) == ("2025-01-01T00:00:00+00:00", 1.1)
