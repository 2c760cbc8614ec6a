"""What a purchase amounts to, what owning costs the run, and when it has paid itself back."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.app.examples import REFERENCE_QUESTION
from tests.asking import ask, codes, gaps, refusal, shipped, usd

CLUSTER = {
    "price_per_device": usd("30000"),
    "hosts": {"price_per_host": usd("50000")},
    "network_per_device": usd("3000"),
    "storage": usd("400000"),
}
OWNED = {
    "years": 4.0,
    "residual_share": 0.1,
    "interest_rate": 0.06,
    "maintenance_share": 0.05,
    "utilization": 0.7,
    "staff_per_year": usd("500000"),
    "space_per_year": usd("250000"),
}
BOUGHT = {**CLUSTER, "ownership": OWNED}


RENTED = REFERENCE_QUESTION["rental"]


def asked(purchase, rental=RENTED):
    question = {**REFERENCE_QUESTION, "purchase": purchase, "rental": rental}
    if rental is None:
        del question["rental"]
    return question


def amounts(charged):
    return {line["name"]: line["amount"]["amount"] for line in charged["lines"]}


def test_the_whole_cluster_is_the_purchase(snapshot):
    """1,000 devices in 125 hosts, with network and storage."""
    answer = ask(snapshot, "cost", asked(CLUSTER))
    assert amounts(answer["purchase"]) == {
        "devices": "30000000.00",
        "hosts": "6250000.00",
        "network": "3000000.00",
        "storage": "400000.00",
    }
    assert answer["purchase"]["total"]["amount"] == "39650000.00"
    assert answer["break_even_runs"]["value"] == pytest.approx(39_650_000 / 1_415_571.28)
    assert "ownership" not in answer


def test_hosts_are_bought_whole(snapshot):
    purchase = {**CLUSTER, "hosts": {"price_per_host": usd("1"), "devices_per_host": 3}}
    assert amounts(ask(snapshot, "cost", asked(purchase))["purchase"])["hosts"] == "334.00"


def test_the_utility_bill_counts_the_whole_purchase_too(snapshot):
    bill = ask(snapshot, "utility-bill", asked(CLUSTER))
    assert bill["purchase"]["total"]["amount"] == "39650000.00"
    assert bill["break_even_runs"]["value"] == pytest.approx(39_650_000 / 1_415_571.28)


def test_the_run_bears_its_share_of_a_year(snapshot):
    """Of 39,650,000 USD a year takes 8,921,250 depreciation, 1,615,037.41 interest, 1,982,500 maintenance,
    500,000 for staff and 250,000 for space; the run 471,857.09 of 6,136,200 device-hours, 7.69%."""
    answer = ask(snapshot, "cost", asked(BOUGHT, rental=None))
    owned = answer["ownership"]
    yearly = amounts(owned["yearly"])
    assert yearly == {
        "depreciation": "8921250.00",
        "financing": "1615037.41",
        "maintenance": "1982500.00",
        "staff": "500000.00",
        "space": "250000.00",
    }
    assert owned["device_hours_per_year"]["value"] == pytest.approx(6_136_200.0)
    share = 471_857.0947 / 6_136_200
    for line in owned["lines"]:
        assert float(line["amount"]["amount"]) == pytest.approx(share * float(yearly[line["name"]]), abs=0.01)
    whole = sum(float(amount) for amount in yearly.values())
    assert float(owned["price_per_device_hour"]["amount"]) == pytest.approx(whole / 6_136_200, abs=1e-6)
    assert answer["lines"] == owned["lines"]
    assert answer["total"] == owned["total"]
    assert float(answer["total"]["amount"]) == pytest.approx(share * whole, abs=0.03)


def test_devices_that_cost_nothing_cost_nothing_a_year(snapshot):
    given = {"price_per_device": usd("0"), "ownership": {"years": 4.0}}
    answer = ask(snapshot, "cost", asked(given))
    assert answer["ownership"]["total"]["amount"] == "0.00"
    assert answer["break_even"][0]["months"]["value"] == 0.0


def test_rent_comes_first(snapshot):
    answer = ask(snapshot, "cost", asked(BOUGHT))
    assert answer["total"]["amount"] == "1415571.28"
    assert "PURCHASE_NOT_IN_TOTAL" in codes(answer["warnings"])


class TestBreakEven:
    def test_each_assumption_adds_to_the_one_before(self, snapshot):
        rows = ask(snapshot, "cost", asked(BOUGHT))["break_even"]
        assert [(row["counts"], row["utilization"]) for row in rows] == [
            (["purchase"], 1.0),
            (["purchase"], 0.7),
            (["purchase", "running_costs"], 0.7),
            (["purchase", "running_costs", "financing"], 0.7),
        ]
        months = [row["months"]["value"] for row in rows]
        assert months == sorted(months)
        month = 730.5 * 3600
        run, rent, price = 1_698_685.541, 1_415_571.28, 39_650_000
        assert months[0] == pytest.approx(price / rent * run / month)
        assert months[1] == pytest.approx(months[0] / 0.7)
        running = (1_982_500 + 500_000 + 250_000) / 12
        assert months[2] == pytest.approx(price / (0.7 * month / run * rent - running))
        for row in rows:
            runs = row["months"]["value"] * row["utilization"] * month / run
            assert row["runs"]["value"] == pytest.approx(runs)

    def test_the_reference_run_takes_13_69_months(self, snapshot):
        (row,) = ask(snapshot, "cost", REFERENCE_QUESTION)["break_even"]
        assert round(row["runs"]["value"], 2) == 21.19
        assert row["months"]["value"] * 730.5 / 24 == pytest.approx(416.667, abs=0.001)

    def test_what_never_pays_back_is_a_gap(self, snapshot):
        dear = {**BOUGHT, "ownership": {**OWNED, "staff_per_year": usd("90000000")}}
        answer = ask(snapshot, "cost", asked(dear))
        assert gaps(answer)["/break_even/2/months"] == "NEVER"
        assert "months" not in answer["break_even"][2]
        assert "months" in answer["break_even"][1]

    def test_what_may_never_pay_back_is_unbounded(self, snapshot):
        purchase = {**BOUGHT, "ownership": {**OWNED, "staff_per_year": usd("8000000")}}
        rental = {"price_per_device_hour": usd("3"), "price_range": {"low": "1.5", "high": "4"}}
        assert (
            gaps(ask(snapshot, "cost", asked(purchase, rental=rental)))["/break_even/2/months"] == "UNBOUNDED"
        )

    def test_ranges_of_prices_bound_it(self, snapshot):
        purchase = {"price_per_device": usd("30000"), "price_range": {"low": "24000", "high": "33000"}}
        rental = {"price_per_device_hour": usd("3"), "price_range": {"low": "2", "high": "4"}}
        answer = ask(snapshot, "cost", asked(purchase, rental=rental))
        hours = 471_857.0947
        for found in (answer["break_even_runs"], answer["break_even"][0]["runs"]):
            assert found["low"] == pytest.approx(24e6 / (4 * hours), rel=1e-6)
            assert found["high"] == pytest.approx(33e6 / (2 * hours), rel=1e-6)


class TestCurrencies:
    def test_a_purchase_in_two_currencies_is_no_total(self, snapshot):
        purchase = {**CLUSTER, "network_per_device": usd("3000", "EUR")}
        answer = ask(snapshot, "cost", asked(purchase, rental=None))
        assert gaps(answer)["/purchase/total"] == "CURRENCY_MISMATCH"
        assert gaps(answer)["/total"] == "CURRENCY_MISMATCH"
        assert "total" not in answer

    def test_yearly_costs_are_in_the_currency_of_the_purchase(self, snapshot):
        purchase = {**CLUSTER, "ownership": {**OWNED, "staff_per_year": usd("1", "EUR")}}
        where = "/purchase/ownership/staff_per_year/currency_code"
        assert refusal(snapshot, "cost", asked(purchase)) == ("CURRENCY_MISMATCH", where)

    def test_rent_and_purchase_in_two_have_no_break_even(self, snapshot):
        answer = ask(snapshot, "cost", asked({"price_per_device": usd("30000", "EUR")}))
        assert gaps(answer)["/break_even_runs"] == "CURRENCY_MISMATCH"
        assert answer["total"]["amount"] == "1415571.28"


class TestExchange:
    """On 5 March 2026 a euro was worth 1.1618 USD (ECB)."""

    EUROS = {**CLUSTER, "network_per_device": usd("3000", "EUR")}

    def exchanged(self, code, **members):
        return {**asked(self.EUROS), "starts_at": "2026-03-06T00:00:00Z", "currency_code": code, **members}

    def test_prices_are_in_the_currency_asked_for(self, snapshot):
        answer = ask(snapshot, "cost", self.exchanged("USD"))
        assert amounts(answer["purchase"])["network"] == "3485400.00"
        assert answer["purchase"]["total"]["amount"] == "40135400.00"
        (line,) = [line for line in answer["purchase"]["lines"] if line["name"] == "network"]
        assert line["source"].endswith("at 1.1618 USD/EUR of 2026-03-05")
        assert answer["total"]["amount"] == "1415571.28"

    def test_all_of_them(self, snapshot):
        kept = {"price_per_gigabyte_month": usd("0.023"), "dataset_bytes": 1e15}
        answer = ask(snapshot, "cost", self.exchanged("EUR", storage=kept))
        assert answer["rent"]["total"]["amount"] == f"{1_415_571.28412538 / 1.1618:.2f}"
        assert amounts(answer["purchase"])["network"] == "3000000.00"
        everything = [*answer["lines"], *answer["purchase"]["lines"]]
        assert {line["amount"]["currency_code"] for line in everything} == {"EUR"}
        assert answer["break_even_runs"]["value"] == pytest.approx(40_135_400 / 1_415_571.28)

    def test_an_old_rate_warns(self, snapshot):
        said = ask(snapshot, "cost", self.exchanged("USD", starts_at="2026-10-01T00:00:00Z"))["warnings"]
        (detail,) = [note["detail"] for note in said if note["code"] == "EXCHANGE_RATE_STALE"]
        assert "2026-03-05, 210 days old" in detail

    def test_without_a_rate_there_is_no_total(self, snapshot):
        answer = ask(snapshot, "cost", self.exchanged("KWD"))
        for pointer in ("/rent/total", "/purchase/total", "/total"):
            assert gaps(answer)[pointer] == "CURRENCY_MISMATCH"
        assert "total" not in answer
        assert answer["lines"] == []


class TestHoldings:
    STORAGE = {"price_per_gigabyte_month": usd("0.023"), "dataset_bytes": 8e12}

    def holding(self, workload=None, **members):
        return {
            **REFERENCE_QUESTION,
            "workload": {**REFERENCE_QUESTION["workload"], **(workload or {})},
            **members,
        }

    def test_data_and_checkpoints_are_lines(self, snapshot):
        """8 TB and three checkpoints of 980 GB (14 bytes of 70e9 parameters) for 19.66 days at 0.023 USD."""
        asked = self.holding({"checkpointing": {"interval_seconds": 3600.0, "stall_seconds": 1.0}},
                             storage={**self.STORAGE, "checkpoints_kept": 3.0})  # fmt: skip
        answer = ask(snapshot, "cost", asked)
        months = answer["duration_seconds"]["value"] / (730.5 * 3600)
        found = {line["name"]: line["quantity"] for line in answer["lines"]}
        assert found["storage_dataset"] == pytest.approx(8000 * months)
        assert found["storage_checkpoints"] == pytest.approx(3 * 980 * months)
        total = sum(Decimal(line["amount"]["amount"]) for line in answer["lines"])
        assert total == Decimal(answer["total"]["amount"])
        assert Decimal(answer["rent"]["total"]["amount"]) < total

    def test_egress_by_bytes_or_by_rate(self, snapshot):
        """100 MB/s for 30 days at 0.09 USD a gigabyte are 23,328 USD."""
        rate = {"price_per_gigabyte": usd("0.09"), "bytes_per_second": 1e8}
        served = {
            **REFERENCE_QUESTION,
            "workload": {"kind": "inference", "horizon": {"duration_seconds": 30 * 86_400.0}},
            "egress": rate,
        }
        (line,) = [line for line in ask(snapshot, "cost", served)["lines"] if line["name"] == "egress"]
        assert (line["quantity"], line["amount"]["amount"]) == (pytest.approx(259_200.0), "23328.00")
        sent = {"price_per_gigabyte": usd("0.09"), "bytes": 2e12}
        (line,) = ask(snapshot, "cost", self.holding(egress=sent))["lines"][1:]
        assert line["amount"]["amount"] == "180.00"

    @pytest.mark.parametrize(
        ("members", "code", "pointer"),
        [
            ({"storage": {"price_per_gigabyte_month": usd("1")}}, "STORAGE_EMPTY", "/storage"),
            (
                {"storage": {"price_per_gigabyte_month": usd("1"), "checkpoints_kept": 1.0}},
                "CHECKPOINTING_REQUIRED",
                "/storage/checkpoint_bytes",
            ),
            ({"egress": {"price_per_gigabyte": usd("1")}}, "EGRESS_BYTES", "/egress"),
        ],
    )
    def test_what_is_not_said_is_asked_for(self, snapshot, members, code, pointer):
        assert refusal(snapshot, "cost", self.holding(**members)) == (code, pointer)

    def test_other_currencies_are_not_added(self, snapshot):
        asked = self.holding(egress={"price_per_gigabyte": usd("1", "EUR"), "bytes": 1e9})
        answer = ask(snapshot, "cost", asked)
        assert gaps(answer)["/total"] == "CURRENCY_MISMATCH"
        assert answer["rent"]["total"]["amount"] == "1415571.28"

    def test_holdings_alone_are_no_total(self, snapshot):
        asked = self.holding(egress={"price_per_gigabyte": usd("1"), "bytes": 1e9})
        del asked["rental"], asked["purchase"]
        assert gaps(ask(snapshot, "cost", asked))["/total"] == "PRICE_REQUIRED"


TERMS = st.fixed_dictionaries(
    {
        "years": st.floats(0.5, 10.0),
        "residual_share": st.floats(0.0, 0.9),
        "interest_rate": st.floats(0.0, 0.3),
        "maintenance_share": st.floats(0.0, 0.3),
        "utilization": st.floats(0.01, 1.0),
    }
)


@given(TERMS, st.sampled_from(["USD", "JPY", "KWD"]))
def test_lines_of_owning_sum_to_its_total(terms, currency):
    purchase = {"price_per_device": usd("31415.92", currency), "ownership": terms}
    owned = ask(shipped(), "cost", asked(purchase, rental=None))["ownership"]
    for charged in (owned, owned["yearly"]):
        summed = sum(Decimal(line["amount"]["amount"]) for line in charged["lines"])
        assert summed == Decimal(charged["total"]["amount"])


class TestElectricity:
    """The utility bill sets electricity against the rent too."""

    def test_it_lengthens_the_break_even(self, snapshot):
        site = {"pue": 1.12, "electricity": {"price_per_kwh": usd("0.12")}}
        bill = ask(snapshot, "utility-bill", {**asked(BOUGHT), "site": site})
        rows = bill["break_even"]
        assert rows[:-1] == ask(snapshot, "cost", asked(BOUGHT))["break_even"]
        assert rows[-1]["counts"] == ["purchase", "running_costs", "financing", "electricity"]
        assert rows[-1]["months"]["value"] > rows[-2]["months"]["value"]

    def test_alone_it_is_the_figure_of_the_bill(self, snapshot):
        site = {"pue": 1.12, "electricity": {"price_per_kwh": usd("0.12")}}
        bill = ask(snapshot, "utility-bill", {**REFERENCE_QUESTION, "site": site})
        last = bill["break_even"][-1]
        assert (last["counts"], last["utilization"]) == (["purchase", "electricity"], 1.0)
        for end in ("value", "low", "high"):
            assert last["runs"][end] == pytest.approx(bill["break_even_runs_with_electricity"][end], rel=1e-4)
