"""Contributions to the change of a total between two quotes: by line, quantity, price and exchange rate.

With both quantities ``q`` and prices ``p`` of a line known, the change of its amount by quantity is (q1 - q0)
(p0 + p1) / 2 and by price (p1 - p0) (q0 + q1) / 2: the split does not depend on an order, and the parts add
up. Amounts are rounded to the minor unit; the price takes the remainder of rounding, so that the sum of all
is the change of the total.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.planning.cost import round_amount
from service.quotes.differences import QuoteChargeSum, QuoteLineChange, QuoteTotalChange
from service.quotes.lines import LinePurpose, PurposeLine, QuoteDocument, sum_lines
from service.schemas.base import AnswerWarning, EstimateGap, MoneyAmount

_CAUSES: Final = ("by_quantity", "by_price", "by_exchange_rate")


class ChargeContributions(NamedTuple):
    """Comparison of the charges of two quotes."""

    total: QuoteTotalChange | None
    lines: list[QuoteLineChange]
    warnings: list[AnswerWarning]
    gaps: list[EstimateGap]


def compute_contributions(before: QuoteDocument, after: QuoteDocument) -> ChargeContributions:
    """Returns the lines that differ and, if the totals can be compared, the contribution of each."""
    then, now = sum_lines(before), sum_lines(after)
    gap = _find_incomparability(before, after, [*then.values(), *now.values()])
    code = None if gap else after["headlines"]["total"]["currency_code"]
    has_moved = _list_rates(before) != _list_rates(after)
    lines = [
        _build_changed_line(purpose, then.get(purpose), now.get(purpose), code, has_moved=has_moved)
        for purpose in dict.fromkeys([*then, *now])
        if _is_different(then.get(purpose), now.get(purpose))
    ]
    lines.sort(key=lambda line: -abs(_get_amount(line, "contribution")))
    total = None if code is None else _build_total_change(lines, before, after, code)
    return ChargeContributions(total, lines, _build_warnings(before, after), [gap] if gap else [])


def _find_incomparability(
    before: QuoteDocument, after: QuoteDocument, lines: Sequence[PurposeLine]
) -> EstimateGap | None:
    """Returns the reason why the totals of two quotes cannot be compared, or None."""
    then, now = (quote["headlines"].get("total") for quote in (before, after))
    code = detail = ""
    if then is None or now is None:
        names = " and ".join(name for name, one in (("first", then), ("second", now)) if one is None)
        code, detail = "TOTAL_UNKNOWN", f"the {names} quote has no total"
    elif then["currency_code"] != now["currency_code"]:
        code = "CURRENCY_DIFFERS"
        detail = f"the totals are in {then['currency_code']} and {now['currency_code']}"
    elif _get_measure(before)[0] != _get_measure(after)[0]:
        code = "HORIZON_DIFFERS"
        detail = f"the first quote counts {_get_measure(before)[0]}, the second {_get_measure(after)[0]}"
    elif any(line.paid is None for line in lines):
        code, detail = "LINES_DO_NOT_ADD_UP", "the lines of one quote do not add up to its total"
    return {"pointer": "/total_change", "code": code, "detail": detail} if code else None


_TRAINED: Final = ("total_tokens", "total_steps", "total_samples")


def _get_measure(quote: QuoteDocument) -> tuple[str, Mapping[str, Any]]:
    """Returns the measure that a total is for: its name in words, and its amount."""
    workload: Mapping[str, Any] = next(reversed(quote["requests"].values()))["workload"]
    if workload["kind"] == "training":
        return "training", {name: workload[name] for name in _TRAINED if name in workload}
    horizon: Mapping[str, Any] = workload.get("horizon", {})
    return f"{workload['kind']} over {' and '.join(sorted(horizon)) or 'no horizon'}", horizon


def _build_warnings(before: QuoteDocument, after: QuoteDocument) -> list[AnswerWarning]:
    (kind, then), (other, now) = _get_measure(before), _get_measure(after)
    if kind != other or then == now or not then or not now:
        return []
    told = [", ".join(f"{name} {value}" for name, value in each.items()) for each in (then, now)]
    detail = f"the amounts cover different work: {told[0]} and {told[1]}"
    return [{"code": "HORIZON_DIFFERS", "pointer": "/total_change", "detail": detail}]


def _list_rates(quote: QuoteDocument) -> list[tuple[str, Any]]:
    """Returns the exchange rates that a quote uses."""
    rows = (row for row in quote["inputs"] if row["kind"] == "exchange_rate")
    return sorted((row["id"], row["row"].get("rate", "")) for row in rows)


def _is_different(before: PurposeLine | None, after: PurposeLine | None) -> bool:
    """Returns true if a line differs in more than its exchange rate."""
    if before is None or after is None:
        return True
    return before._replace(rate=after.rate) != after


def _build_changed_line(
    purpose: LinePurpose,
    before: PurposeLine | None,
    after: PurposeLine | None,
    code: str | None,
    *,
    has_moved: bool,
) -> QuoteLineChange:
    changed = _build_line_identity(purpose)
    if before is not None:
        changed["before"] = _to_compared_charge(before)
    if after is not None:
        changed["after"] = _to_compared_charge(after)
    if before is None:
        changed["change"] = "new"
    elif after is None:
        changed["change"] = "removed"
    if code is None:
        return changed
    moved = ((after and after.paid) or Decimal(0)) - ((before and before.paid) or Decimal(0))
    changed["contribution"] = _to_money_amount(moved, code)
    if before is not None and after is not None:
        split = _split_contribution(before, after, moved, code, has_moved=has_moved)
        if isinstance(split, str):
            changed["not_split"] = split  # type: ignore[typeddict-item]
        else:
            changed |= {name: _to_money_amount(part, code) for name, part in split.items()}  # type: ignore[typeddict-item]
    return changed


def _build_line_identity(purpose: LinePurpose) -> QuoteLineChange:
    named: QuoteLineChange = {"part": purpose.part, "name": purpose.name, "change": "changed"}
    if purpose.resource:
        named["resource"] = purpose.resource
    if purpose.start_date:
        named["billing_period"] = {"start_date": purpose.start_date, "end_date": purpose.end_date}
    if purpose.price_period:
        named["price_period"] = purpose.price_period
    if purpose.tier:
        named["tier"] = purpose.tier
    return named


def _split_contribution(
    before: PurposeLine, after: PurposeLine, moved: Decimal, code: str, *, has_moved: bool
) -> dict[str, Decimal] | str:
    """Returns the three parts of a contribution, or the code of the reason why it cannot be split.

    The part of an unchanged cause is 0.
    """
    if before.unit != after.unit:
        return "UNIT_DIFFERS"
    if before.currency_code != after.currency_code:
        return "CURRENCY_DIFFERS"
    quantity, price = before.quantity, before.unit_price
    next_quantity, next_price = after.quantity, after.unit_price
    if quantity is None or price is None or next_quantity is None or next_price is None:
        return "PRICE_UNKNOWN"
    if not (before.is_product and after.is_product):
        return "NOT_A_PRODUCT"
    if (quantity, price) == (next_quantity, next_price) and not has_moved:
        return "ROUNDING"
    amount, rate = (before.amount + after.amount) / 2, (before.rate + after.rate) / 2
    by_rate = round_amount(amount * (after.rate - before.rate), code) if has_moved else Decimal(0)
    by_quantity = round_amount(rate * (next_quantity - quantity) * (price + next_price) / 2, code)
    if price == next_price:
        if quantity == next_quantity:
            by_rate, by_quantity = moved, Decimal(0)
        else:
            by_quantity = moved - by_rate
    return dict(zip(_CAUSES, (by_quantity, moved - by_rate - by_quantity, by_rate), strict=True))


def _build_total_change(
    lines: Sequence[QuoteLineChange], before: QuoteDocument, after: QuoteDocument, code: str
) -> QuoteTotalChange:
    then, now = (Decimal(quote["headlines"]["total"]["amount"]) for quote in (before, after))
    sums = dict.fromkeys([*_CAUSES, "by_new", "by_removed", "not_split"], Decimal(0))
    for line in lines:
        if line["change"] != "changed":
            sums[f"by_{line['change']}"] += _get_amount(line, "contribution")
        elif "not_split" in line:
            sums["not_split"] += _get_amount(line, "contribution")
        for cause in _CAUSES:
            sums[cause] += _get_amount(line, cause)
    total: dict[str, MoneyAmount] = {"difference": _to_money_amount(now - then, code)}
    total |= {name: _to_money_amount(amount, code) for name, amount in sums.items()}
    found: QuoteTotalChange = total  # type: ignore[assignment]
    return found


def _get_amount(line: QuoteLineChange, name: str) -> Decimal:
    money: MoneyAmount | None = line.get(name)  # type: ignore[assignment]
    return Decimal(money["amount"]) if money else Decimal(0)


def _to_compared_charge(line: PurposeLine) -> QuoteChargeSum:
    side: QuoteChargeSum = {"amount": _to_money_amount(line.amount, line.currency_code)}
    if line.quantity is not None and line.unit is not None:
        side["quantity"], side["unit"] = float(line.quantity), line.unit
    if line.unit_price is not None:
        side["unit_price"] = {"amount": f"{line.unit_price:f}", "currency_code": line.currency_code}
    return side


def _to_money_amount(amount: Decimal, code: str) -> MoneyAmount:
    return {"amount": f"{round_amount(amount, code):f}", "currency_code": code}
