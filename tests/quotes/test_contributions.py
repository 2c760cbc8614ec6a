"""What moves the total: line by line, exactly, and nothing where the totals are not of one kind."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost import round_amount
from service.quotes.compare import compare_quotes
from service.quotes.lines import sum_lines
from tests.quotes.asking import OWNED, RENTED, SITE
from tests.quotes.reading import SERVED, quoted

PARTS = ("by_quantity", "by_price", "by_exchange_rate", "by_new", "by_removed", "not_split")


def amount(money):
    return Decimal(money["amount"])


def summed(shown):
    """The change of the total, once everything that has to add up does."""
    total, lines = shown["total_change"], shown["lines"]
    difference = amount(total["difference"])
    assert difference == sum(amount(line["contribution"]) for line in lines)
    assert difference == sum(amount(total[part]) for part in PARTS)
    for line in lines:
        split = [amount(line[part]) for part in PARTS if isinstance(line.get(part), dict)]
        assert (
            line["change"] != "changed" or "not_split" in line or sum(split) == amount(line["contribution"])
        )
    return difference


def moved(request, **members):
    return {**request, **members}


def rented_at(price, count=64):
    rental = {"price_per_device_hour": {"amount": price, "currency_code": "USD"}}
    return moved(RENTED, rental=rental, cluster={**RENTED["cluster"], "accelerator_count": count})


class TestOfRealAnswers:
    def test_quantity_and_price_apart(self):
        """Twice the tokens at 3 and then at 4: (2h - h) 3.5 by quantity, (4 - 3) 1.5 h by price."""
        before = quoted(RENTED)
        after = quoted(
            moved(
                rented_at("4"),
                workload={**RENTED["workload"], "total_tokens": 2 * RENTED["workload"]["total_tokens"]},
            )
        )
        shown = compare_quotes(before, after)
        line = next(line for line in shown["lines"] if line["part"] == "cost")
        hours = Decimal(repr(line["before"]["quantity"]))
        assert amount(line["by_quantity"]) == round_amount(hours * Decimal("3.5"), "USD")
        assert amount(line["by_price"]) == pytest.approx(hours * Decimal("1.5"), abs=Decimal("0.02"))
        assert line["resource"] == "h100-sxm"
        assert summed(shown) == amount(after["headlines"]["total"]) - amount(before["headlines"]["total"])
        assert [warning["code"] for warning in shown["warnings"]] == ["HORIZON_DIFFERS"]

    def test_electricity_counts_where_it_is_paid(self):
        dearer = moved(
            SITE, electricity={"price_per_kwh": {"amount": "0.24", "currency_code": "USD"}}, pue=1.2
        )
        owned = compare_quotes(quoted(OWNED), quoted(moved(OWNED, site=dearer)))
        assert summed(owned) == amount(owned["total_change"]["by_price"]) > 0
        rented = compare_quotes(quoted(RENTED), quoted(moved(RENTED, site=dearer)))
        assert summed(rented) == 0
        assert {line["part"] for line in rented["lines"]} == {"electricity"}

    def test_what_one_has_alone(self):
        """Rented, and then bought: the rent goes, the years of the devices and their electricity come."""
        before, after = quoted(RENTED), quoted(OWNED)
        shown = compare_quotes(before, after)
        assert summed(shown) == amount(after["headlines"]["total"]) - amount(before["headlines"]["total"])
        assert shown["total_change"]["by_removed"]["amount"] == f"-{before['headlines']['total']['amount']}"
        changes = {line["name"]: line["change"] for line in shown["lines"]}
        assert (changes["rental"], changes["depreciation"]) == ("removed", "new")

    def test_charges_of_a_tariff_by_billing_period(self):
        before, after = quoted(SERVED), quoted({**SERVED, "starts_at": "2026-02-28T08:00:00Z"})
        shown = compare_quotes(before, after)
        months = {(line["billing_period"]["start_date"], line["change"]) for line in shown["lines"]}
        assert ("2026-01-01", "removed") in months
        assert ("2026-02-01", "changed") in months
        assert ("2026-03-01", "new") in months
        assert summed(shown) == 0

    def test_devices_of_another_kind_are_other_lines(self):
        cluster = {"accelerator": {"source": "catalog", "id": "a100-sxm-80gb"}, "accelerator_count": 64}
        shown = compare_quotes(quoted(RENTED), quoted(moved(RENTED, cluster=cluster)))
        changes = {(line["resource"], line["change"]) for line in shown["lines"] if line["part"] == "cost"}
        assert changes == {("h100-sxm", "removed"), ("a100-sxm-80gb", "new")}
        summed(shown)

    def test_devices_of_another_specification_are_other_lines(self):
        def asked(name):
            given = {"name": name, "peak_flops_per_second": {"bf16": 1e15}}
            accelerator = {"source": "specification", "specification": given}
            return moved(RENTED, cluster={"accelerator": accelerator, "accelerator_count": 8})

        shown = compare_quotes(quoted(asked("one")), quoted(asked("other")))
        rental = [line for line in shown["lines"] if line["part"] == "cost"]
        assert {(line["resource"], line["change"]) for line in rental} == {
            ("one", "removed"),
            ("other", "new"),
        }

    @pytest.mark.parametrize("price", ["0.2", "0.3"])
    def test_electricity_in_another_currency(self, price):
        def asked(price):
            euros = {"price_per_kwh": {"amount": price, "currency_code": "EUR"}}
            return moved(OWNED, site={**SITE, "electricity": euros}, currency_code="USD")

        before, after = quoted(asked("0.2")), quoted(asked(price))
        shown = compare_quotes(before, after)
        if price == "0.2":
            assert shown["lines"] == []
            return
        assert summed(shown) == amount(after["headlines"]["total"]) - amount(before["headlines"]["total"])
        assert amount(shown["total_change"]["by_price"]) == summed(shown)
        assert {line["after"]["amount"]["currency_code"] for line in shown["lines"]} == {"EUR"}


class TestOfNumbersThatCannotBeSubtracted:
    def gap(self, before, after):
        shown = compare_quotes(before, after)
        assert "total_change" not in shown
        assert all("contribution" not in line for line in shown["lines"])
        (gap,) = shown["gaps"]
        assert gap["pointer"] == "/total_change"
        return gap["code"]

    def test_of_two_currencies(self):
        euros = {"price_per_device_hour": {"amount": "3", "currency_code": "EUR"}}
        assert self.gap(quoted(RENTED), quoted(moved(RENTED, rental=euros))) == "CURRENCY_DIFFERS"

    def test_of_no_total(self):
        free = {name: value for name, value in RENTED.items() if name != "rental"}
        assert self.gap(quoted(RENTED), quoted(free)) == "TOTAL_UNKNOWN"

    @pytest.mark.parametrize(
        "workload",
        [RENTED["workload"], {**SERVED["workload"], "horizon": {"total_requests": 1000}}],
        ids=["training", "requests"],
    )
    def test_of_other_horizons(self, workload):
        assert self.gap(quoted(SERVED), quoted({**SERVED, "workload": workload})) == "HORIZON_DIFFERS"

    def test_a_longer_horizon_is_said(self):
        longer = {**SERVED["workload"], "horizon": {"duration_seconds": 14 * 86400.0}}
        shown = compare_quotes(quoted(SERVED), quoted({**SERVED, "workload": longer}))
        assert [warning["code"] for warning in shown["warnings"]] == ["HORIZON_DIFFERS"]
        summed(shown)


CURRENCIES = ("USD", "EUR", "JPY")
NAMES = ("rental", "storage", "egress", "energy")
UNITS = ("device_hour", "kWh")


@st.composite
def charged(draw, currency):
    """A line as an answer says it; some are no product of their quantity and price."""
    quantity = draw(st.floats(0, 1e7, allow_nan=False).map(lambda each: round(each, 6)))
    price = draw(st.decimals("-5", "500", places=6))
    exact = round_amount(Decimal(repr(quantity)) * price, currency)
    line = {
        "name": draw(st.sampled_from(NAMES)),
        "quantity": quantity,
        "unit": draw(st.sampled_from(UNITS)),
        "amount": {
            "amount": f"{exact + draw(st.sampled_from([0, 0, 0, 7])):f}",
            "currency_code": currency,
        },
        "source": draw(st.sampled_from(["tariff a", "tariff b"])),
    }
    if draw(st.integers(0, 4)):
        line["unit_price"] = {"amount": f"{price:f}", "currency_code": currency}
    if draw(st.booleans()):
        month = draw(st.sampled_from(["01", "02"]))
        line |= {
            "kind": "energy",
            "billing_period": {"start_date": f"2026-{month}-01", "end_date": f"2026-{month}-28"},
            "price_period": draw(st.sampled_from(["peak", "off_peak"])),
            "tier": draw(st.integers(1, 2)),
        }
    return line


@st.composite
def documents(draw):
    """A quote's document: bills in one currency or two, with a total that is made of them."""
    currency, abroad = draw(st.sampled_from(CURRENCIES[:2])), draw(st.sampled_from(CURRENCIES))
    cost = draw(st.lists(charged(currency), max_size=5))
    bill = draw(st.lists(charged(abroad), max_size=5))
    whole = sum((amount(line["amount"]) for line in cost), Decimal(0))
    power = sum((amount(line["amount"]) for line in bill), Decimal(0))
    rate = Decimal(1) if abroad == currency else draw(st.decimals("0.01", "2", places=4))
    owns = draw(st.booleans())
    total = whole + (round_amount(power * rate, currency) if owns else 0)
    return {
        "id": "0" * 32,
        "accelerator_id": draw(st.sampled_from(["a", "b"])),
        "owns_devices": owns,
        "requests": {"utility_bill": {"workload": RENTED["workload"]}},
        "inputs": [{"kind": "exchange_rate", "id": abroad, "version": 1, "row": {"rate": str(rate)}}],
        "headlines": {
            "total": {
                "amount": f"{total:f}",
                "low": f"{total:f}",
                "high": f"{total:f}",
                "currency_code": currency,
            }
        },
        "answers": {
            "cost": {
                "lines": cost,
                "total": {"amount": f"{whole:f}", "currency_code": currency},
            },
            "utility_bill": {"electricity": {"lines": bill}},
        },
    }


@given(before=documents(), after=documents())
def test_contributions_are_the_change_of_the_total(before, after):
    shown = compare_quotes(before, after)
    if before["headlines"]["total"]["currency_code"] != after["headlines"]["total"]["currency_code"]:
        assert [gap["code"] for gap in shown["gaps"]] == ["CURRENCY_DIFFERS"]
        return
    if shown["gaps"]:
        assert [gap["code"] for gap in shown["gaps"]] == ["LINES_DO_NOT_ADD_UP"]
        return
    then, now = (amount(quote["headlines"]["total"]) for quote in (before, after))
    assert summed(shown) == now - then
    assert sum(amount(line["contribution"]) for line in compare_quotes(after, before)["lines"]) == then - now


@given(quote=documents())
def test_lines_take_all_of_the_total(quote):
    lines = sum_lines(quote).values()
    if all(line.paid is not None for line in lines):
        assert sum(line.paid for line in lines) == amount(quote["headlines"]["total"])
    assert compare_quotes(quote, quote)["lines"] == []
