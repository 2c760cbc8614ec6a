"""What will it cost? Charges, and what else the answer weighs."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.quotes.report.charts import About, Bar, bars, stacked
from service.quotes.report.numbers import (
    NOT_KNOWN,
    PERCENT,
    Ladder,
    Scale,
    counted,
    figures,
    money_figure,
    money_text,
    quantity_figure,
    scale_of,
    shown,
    words,
)
from service.quotes.report.scaling import linear
from service.quotes.report.shapes import Block, Figures, Picture, Section, Table, shown_blocks
from service.schemas.base import Line, MoneyQuantity
from service.schemas.cost_answers import BreakEven, CostAnswer, ListPrice

_SIZES = ((1.0, ""), (1e3, "thousand"), (1e6, "million"), (1e9, "billion"), (1e12, "trillion"))
_FEW, _MANY = 2, 40
_NOT_SHOWN = frozenset({"parallelism", "evidence", "total"})


def money_ladder(currency_code: str) -> Ladder:
    """Sizes of an amount on an axis."""
    return tuple(Scale(size, f"{name} {currency_code}".strip()) for size, name in _SIZES)


def amount_of(line: Line) -> str:
    """The amount of a charge, if it is known."""
    return money_text(**line["amount"]) if "amount" in line else NOT_KNOWN


def cost_section(answer: CostAnswer, *, is_alone: bool = True) -> Section:
    """Charges of the run, their total, and other ways to pay; a utility bill says more of the break-even."""
    others: list[Block | None] = []
    purchase, ownership = answer.get("purchase"), answer.get("ownership")
    if purchase and any(line not in answer["lines"] for line in purchase["lines"]):
        counted = "of which the total has the run's share" if ownership else "which the total does not count"
        others.append(lines_table(f"Purchase, {counted}", purchase))
    if ownership:
        others.append(lines_table("A year of owning the devices, whatever runs", ownership["yearly"]))
        others.append(Figures("Owning", figures(ownership, without=frozenset({"total"}))))
    rent = answer.get("rent")
    interruptions = figures(rent.get("interruptions", {})) if rent else []
    return Section(
        "cost",
        "Cost",
        _lead(answer),
        shown_blocks(
            lines_picture("cost-lines", "Charges of the run", answer["lines"], answer.get("total")),
            lines_table("Charges of the run", answer) if not _is_drawn(answer["lines"]) else None,
            Figures(
                "Time and rates",
                figures(answer, without=_NOT_SHOWN if is_alone else _NOT_SHOWN | {"break_even_runs"}),
            ),
            Figures("Renting", figures(rent, without=frozenset({"total"})) if rent else []),
            Figures("Interruptions of spot devices", interruptions),
            *others,
            break_even_table(answer.get("break_even", [])) if is_alone else None,
            _list_prices(answer.get("list_prices", [])),
        ),
    )


def _lead(answer: CostAnswer) -> str:
    if "total" not in answer:
        return "The total is not known."
    total = money_figure("total", answer["total"])
    return f"The charges of the run sum to {total.shown}" + (
        f" (80% interval {total.low} to {total.high})." if total.low else "."
    )


def _is_drawn(lines: Sequence[Line]) -> bool:
    """Whether there are several amounts of one currency, and not more than a chart has room for."""
    codes = [line["amount"]["currency_code"] for line in lines if "amount" in line]
    return len(codes) == len(lines) and _FEW <= len(lines) <= _MANY and len(set(codes)) == 1


def lines_picture(
    key: str, caption: str, lines: Sequence[Line], total: MoneyQuantity | None, names: Sequence[str] = ()
) -> Picture | None:
    """Charges as parts of their total."""
    if not _is_drawn(lines):
        return None
    code = lines[0]["amount"]["currency_code"]
    titles = names or [words(line["name"]) for line in lines]
    parts = [
        (title, amount_of(line), float(line["amount"]["amount"]))
        for title, line in zip(titles, lines, strict=True)
    ]
    rows = stacked(parts)
    if total is not None and total["currency_code"] == code:
        low, value, high = (float(total[end]) for end in ("low", "amount", "high"))
        name = "Total, with its 80% interval" if low != high else "Total"
        rows.append(Bar(name, money_text(total["amount"], code), 0.0, value, low, high, is_total=True))
    ends = [end for row in rows for end in (row.start, row.end, row.high or 0.0)]
    scale = scale_of(money_ladder(code), max(map(abs, ends)))
    description = f"{len(parts)} charges, each from the end of the one before: " + "; ".join(
        f"{name} {text}" for name, text, _ in parts
    )
    axis = linear(*ends, unit=scale.factor)
    chart = bars(About(key, caption, description), rows, axis, scale)
    return Picture(caption, chart, lines_table(caption, {"lines": lines, "total": total}, titles))


def lines_table(caption: str, charges: Mapping[str, Any], names: Sequence[str] = ()) -> Table:
    """Charges: quantity times price."""
    lines: Sequence[Line] = charges["lines"]
    titles = names or [words(line["name"]) for line in lines]
    rows = [
        (
            title,
            f"{counted(line['quantity'])} {line['unit'].replace('_', ' ')}",
            money_text(**line["unit_price"]) if "unit_price" in line else NOT_KNOWN,
            amount_of(line),
            line["source"],
        )
        for title, line in zip(titles, lines, strict=True)
    ]
    total = charges.get("total")
    last = ("Total", "", "", money_figure("total", total).shown, "") if total else ()
    head = ("Charge", "Quantity", "Price of one", "Amount", "Source of the price")
    return Table(caption, head, rows, frozenset({1, 2, 3}), last)


def break_even_table(points: Sequence[BreakEven]) -> Table:
    """When a purchase has paid itself back."""
    rows = [
        (
            ", ".join(words(counted).lower() for counted in point["counts"]),
            shown(point["utilization"], PERCENT),
            *(
                quantity_figure(unit, point[unit]).cell if unit in point else "never"
                for unit in ("runs", "months")
            ),
        )
        for point in points
    ]
    caption = "When the purchase has paid itself back against the rent"
    return Table(caption, ("Counted", "In use", "Runs", "Months"), rows, frozenset({1, 2, 3}))


def _list_prices(prices: Sequence[ListPrice]) -> Table:
    rows = [
        (
            f"{price['provider']}: {price['model']}",
            money_text(**price["price_per_million_input_tokens"]),
            money_text(**price["price_per_million_output_tokens"]),
            money_figure("total", price["total"]).shown if "total" in price else NOT_KNOWN,
            price["as_of"],
        )
        for price in prices
    ]
    head = ("Provider", "Million tokens in", "Million tokens out", "These tokens", "As of")
    return Table("What providers ask for the same tokens", head, rows, frozenset({1, 2, 3}))
