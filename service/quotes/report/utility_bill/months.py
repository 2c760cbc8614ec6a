"""The bill by billing period, and by kind of charge in each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from service.quotes.report.charts import About, Bar, bars
from service.quotes.report.money import money_ladder
from service.quotes.report.numbers import digits, money_text, scale_of, words
from service.quotes.report.rounding import printed
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Picture, Table
from service.schemas.bill_answers import BillingPeriodAnswer, ElectricityAnswer, ElectricityLine

_LONGEST_MONTH = 31


def period_name(period: BillingPeriodAnswer) -> str:
    """A calendar month, or its first and last day."""
    first, after = (date.fromisoformat(period[end]) for end in ("start_date", "end_date"))
    if first.day == after.day == 1 and (after - first).days <= _LONGEST_MONTH:
        return f"{first:%B %Y}"
    last = after - timedelta(days=1)
    return f"{period['start_date']} to {last.isoformat()}"


def periods_picture(electricity: ElectricityAnswer) -> Picture:
    """Totals by billing period."""
    periods = electricity["periods"]
    code = periods[0]["total"]["currency_code"]
    rows = [
        Bar(
            period_name(period["billing_period"]) + (", after the run" if period.get("after_run") else ""),
            money_text(**period["total"]),
            0.0,
            float(period["total"]["amount"]),
        )
        for period in periods
    ]
    scale = scale_of(money_ladder(code), max(abs(row.end) for row in rows))
    axis = linear(*(row.end for row in rows), unit=scale.factor)
    caption = "Bill by billing period"
    chart = bars(
        About("periods", caption, "; ".join(f"{row.name}: {row.shown}" for row in rows)),
        rows,
        axis,
        scale,
    )
    energy = [period["energy_kwh"] for period in periods]
    kwh = printed(energy, sum(energy))
    table = Table(
        caption,
        ("Billing period", "Energy, kWh", "Peak, kW", "Amount"),
        [
            (row.name, text, digits(period["peak_kw"]), row.shown)
            for row, text, period in zip(rows, kwh.parts, periods, strict=True)
        ],
        frozenset({1, 2, 3}),
        ("Together", kwh.whole, "", summed(periods, "total")),
    )
    return Picture(caption, chart, table)


def summed(items: Sequence[Mapping[str, Any]], member: str) -> str:
    """The sum of amounts, to the last digit of each; empty where they are of several currencies."""
    amounts = [item[member] for item in items if member in item]
    codes = {amount["currency_code"] for amount in amounts}
    if len(codes) != 1:
        return ""
    return money_text(sum((Decimal(amount["amount"]) for amount in amounts), Decimal(0)), codes.pop())


def kinds_table(electricity: ElectricityAnswer) -> Table:
    """Amounts by kind of charge, of each billing period."""
    kinds = list(dict.fromkeys(line.get("kind", "energy") for line in electricity["lines"]))
    cells: defaultdict[tuple[str, str], list[ElectricityLine]] = defaultdict(list)
    for line in electricity["lines"]:
        if "billing_period" in line:
            cells[line["billing_period"]["start_date"], line.get("kind", "energy")].append(line)
    rows = [
        (
            period_name(period["billing_period"]),
            *(summed(cells[period["billing_period"]["start_date"], kind], "amount") for kind in kinds),
            money_text(**period["total"]),
        )
        for period in electricity["periods"]
    ]
    head = ("Billing period", *(words(kind) for kind in kinds), "Together")
    return Table("Bill by kind of charge and period", head, rows, frozenset(range(1, len(head))))
