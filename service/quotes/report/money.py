"""Section of the cost: charges, and other terms that the answer compares."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.formats.providers import get_provider_name
from service.kit.reports.charts.bars import ChartBar, render_bars, stack_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import (
    NOT_KNOWN,
    PERCENT,
    UnitLadder,
    UnitScale,
    build_money_figure,
    build_quantity_figure,
    format_money,
    format_quantity,
    format_value,
    list_figures,
    select_scale,
    to_title,
)
from service.kit.reports.scaling import build_linear_axis
from service.kit.reports.shapes import (
    FigureList,
    ReportBlock,
    ReportChart,
    ReportSection,
    ReportTable,
    select_blocks,
)
from service.schemas.base import CostLine, MoneyQuantity
from service.schemas.cost_answers import BreakEven, CostEstimate, TokenListPrice

_SIZES = ((1.0, ""), (1e3, "thousand"), (1e6, "million"), (1e9, "billion"), (1e12, "trillion"))
_FEW, _MANY = 2, 40
_NOT_SHOWN = frozenset({"parallelism", "evidence", "total"})


def build_money_ladder(currency_code: str) -> UnitLadder:
    """Returns the units of an amount on an axis."""
    return tuple(UnitScale(size, f"{name} {currency_code}".strip()) for size, name in _SIZES)


def format_amount(line: CostLine) -> str:
    """Returns the amount of a charge, if it is known."""
    return format_money(**line["amount"]) if "amount" in line else NOT_KNOWN


def build_cost_section(answer: CostEstimate, *, is_alone: bool = True) -> ReportSection:
    """Returns the section of charges, total and other terms of payment.

    A utility bill adds break-even tables.
    """
    others: list[ReportBlock | None] = []
    purchase, ownership = answer.get("purchase"), answer.get("ownership")
    if purchase and any(line not in answer["lines"] for line in purchase["lines"]):
        counted = (
            "of which the total counts the run's share" if ownership else "which the total does not count"
        )
        others.append(build_lines_table(f"Purchase, {counted}", purchase))
    if ownership:
        others.append(build_lines_table("Yearly cost of ownership, at any utilization", ownership["yearly"]))
        others.append(FigureList("Owning", list_figures(ownership, without=frozenset({"total"}))))
    rent = answer.get("rent")
    interruptions = list_figures(rent.get("interruptions", {})) if rent else []
    return ReportSection(
        "cost",
        "Cost",
        _format_lead(answer),
        select_blocks(
            build_lines_picture("cost-lines", "Charges of the run", answer["lines"], answer.get("total")),
            build_lines_table("Charges of the run", answer) if not _is_chartable(answer["lines"]) else None,
            FigureList(
                "Time and rates",
                list_figures(answer, without=_NOT_SHOWN if is_alone else _NOT_SHOWN | {"break_even_runs"}),
            ),
            FigureList("Renting", list_figures(rent, without=frozenset({"total"})) if rent else []),
            FigureList("Interruptions of spot devices", interruptions),
            *others,
            build_break_even_table(answer.get("break_even", [])) if is_alone else None,
            _build_list_prices_table(answer.get("list_prices", [])),
        ),
    )


def _format_lead(answer: CostEstimate) -> str:
    if "total" not in answer:
        return "The total is unknown."
    total = build_money_figure("total", answer["total"])
    return f"The charges of the run sum to {total.shown}" + (
        f" (80% interval {total.low} to {total.high})." if total.low else "."
    )


def _is_chartable(lines: Sequence[CostLine]) -> bool:
    """Returns true if there are several amounts in one currency, and not too many for a chart."""
    codes = [line["amount"]["currency_code"] for line in lines if "amount" in line]
    return len(codes) == len(lines) and _FEW <= len(lines) <= _MANY and len(set(codes)) == 1


def build_lines_picture(
    key: str, caption: str, lines: Sequence[CostLine], total: MoneyQuantity | None
) -> ReportChart | None:
    """Returns a chart of charges as parts of their total."""
    if not _is_chartable(lines):
        return None
    code = lines[0]["amount"]["currency_code"]
    parts = [(to_title(line["name"]), format_amount(line), float(line["amount"]["amount"])) for line in lines]
    rows = stack_bars(parts)
    if total is not None and total["currency_code"] == code:
        low, value, high = (float(total[end]) for end in ("low", "amount", "high"))
        name = "Total, with its 80% interval" if low != high else "Total"
        rows.append(ChartBar(name, format_money(total["amount"], code), 0.0, value, low, high, is_total=True))
    ends = [end for row in rows for end in (row.start, row.end, row.high or 0.0)]
    scale = select_scale(build_money_ladder(code), max(map(abs, ends)))
    description = f"{len(parts)} charges, each from the end of the one before: " + "; ".join(
        f"{name} {text}" for name, text, _ in parts
    )
    axis = build_linear_axis(*ends, unit=scale.factor)
    chart = render_bars(ChartLabel(key, caption, description), rows, axis, scale)
    return ReportChart(caption, chart, build_lines_table(caption, {"lines": lines, "total": total}))


def build_lines_table(caption: str, charges: Mapping[str, Any]) -> ReportTable:
    """Returns a table of charges as quantity times price."""
    lines: Sequence[CostLine] = charges["lines"]
    rows = [
        (
            to_title(line["name"]),
            f"{format_quantity(line['quantity'])} {line['unit'].replace('_', ' ')}",
            format_money(**line["unit_price"]) if "unit_price" in line else NOT_KNOWN,
            format_amount(line),
            line["source"],
        )
        for line in lines
    ]
    total = charges.get("total")
    last = ("Total", "", "", build_money_figure("total", total).shown, "") if total else ()
    head = ("Charge", "Quantity", "Unit price", "Amount", "Source of the price")
    return ReportTable(caption, head, rows, frozenset({1, 2, 3}), last)


def build_break_even_table(points: Sequence[BreakEven]) -> ReportTable:
    """Returns a table of the runs and months until a purchase breaks even."""
    rows = [
        (
            ", ".join(to_title(counted).lower() for counted in point["counts"]),
            format_value(point["utilization"], PERCENT),
            *(
                build_quantity_figure(unit, point[unit]).cell if unit in point else "never"
                for unit in ("runs", "months")
            ),
        )
        for point in points
    ]
    caption = "Break-even of the purchase against the rent"
    return ReportTable(caption, ("Counted", "In use", "Runs", "Months"), rows, frozenset({1, 2, 3}))


def _build_list_prices_table(prices: Sequence[TokenListPrice]) -> ReportTable:
    rows = [
        (
            f"{get_provider_name(price['provider'])}: {price['model']}",
            format_money(**price["price_per_million_input_tokens"]),
            format_money(**price["price_per_million_output_tokens"]),
            build_money_figure("total", price["total"]).shown if "total" in price else NOT_KNOWN,
            price["as_of"],
        )
        for price in prices
    ]
    head = ("Provider", "Million tokens in", "Million tokens out", "These tokens", "As of")
    return ReportTable("List prices of providers for the same tokens", head, rows, frozenset({1, 2, 3}))
