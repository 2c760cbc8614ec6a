"""Tables of the bill by billing period and by kind of charge."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from service.kit.reports.charts.bars import ChartBar, render_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import format_money, format_number, select_scale, to_title
from service.kit.reports.rounding import round_to_sum
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import ReportChart, ReportTable
from service.quotes.report.money import build_money_ladder
from service.schemas.bill_answers import BillingPeriod, ElectricityBill, ElectricityBillLine

_LONGEST_MONTH = 31


def format_period(period: BillingPeriod) -> str:
    """Returns the name of a calendar month, or the first and last day of another period."""
    first, after = (date.fromisoformat(period[end]) for end in ("start_date", "end_date"))
    if first.day == after.day == 1 and (after - first).days <= _LONGEST_MONTH:
        return f"{first:%B %Y}"
    last = after - timedelta(days=1)
    return f"{period['start_date']} to {last.isoformat()}"


def build_periods_picture(electricity: ElectricityBill) -> ReportChart:
    """Returns a chart of the totals by billing period."""
    periods = electricity["periods"]
    code = periods[0]["total"]["currency_code"]
    rows = [
        ChartBar(
            format_period(period["billing_period"]) + (", after the run" if period.get("after_run") else ""),
            format_money(**period["total"]),
            0.0,
            float(period["total"]["amount"]),
        )
        for period in periods
    ]
    scale = select_scale(build_money_ladder(code), max(abs(row.end) for row in rows))
    axis = build_linear_axis(*(row.end for row in rows), unit=scale.factor)
    caption = "Bill by billing period"
    chart = render_bars(
        ChartLabel("periods", caption, "; ".join(f"{row.name}: {row.shown}" for row in rows)),
        rows,
        axis,
        scale,
    )
    energy = [period["energy_kwh"] for period in periods]
    kwh = round_to_sum(energy, sum(energy))
    table = ReportTable(
        caption,
        ("Billing period", "Energy, kWh", "Peak, kW", "Amount"),
        [
            (row.name, text, format_number(period["peak_kw"]), row.shown)
            for row, text, period in zip(rows, kwh.parts, periods, strict=True)
        ],
        frozenset({1, 2, 3}),
        ("Together", kwh.whole, "", sum_amounts(periods, "total")),
    )
    return ReportChart(caption, chart, table)


def sum_amounts(items: Sequence[Mapping[str, Any]], member: str) -> str:
    """Returns the exact sum of amounts, or an empty string if their currencies differ."""
    amounts = [item[member] for item in items if member in item]
    codes = {amount["currency_code"] for amount in amounts}
    if len(codes) != 1:
        return ""
    return format_money(sum((Decimal(amount["amount"]) for amount in amounts), Decimal(0)), codes.pop())


def build_kinds_table(electricity: ElectricityBill) -> ReportTable:
    """Returns a table of amounts by kind of charge for each billing period."""
    kinds = list(dict.fromkeys(line.get("kind", "energy") for line in electricity["lines"]))
    cells: defaultdict[tuple[str, str], list[ElectricityBillLine]] = defaultdict(list)
    for line in electricity["lines"]:
        if "billing_period" in line:
            cells[line["billing_period"]["start_date"], line.get("kind", "energy")].append(line)
    rows = [
        (
            format_period(period["billing_period"]),
            *(sum_amounts(cells[period["billing_period"]["start_date"], kind], "amount") for kind in kinds),
            format_money(**period["total"]),
        )
        for period in electricity["periods"]
    ]
    head = ("Billing period", *(to_title(kind) for kind in kinds), "Together")
    return ReportTable("Bill by kind of charge and period", head, rows, frozenset(range(1, len(head))))
