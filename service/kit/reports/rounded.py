"""Figures in three digits, which is more than their intervals are sure of."""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from service.kit.locales import localize_number
from service.kit.reports.numbers import UnitLadder, UnitScale, add_unit, format_number, select_scale

_DIGITS: Final = 3
_WHOLE_FROM: Final = 1000
_CENT_FROM: Final = 1
_SPACE: Final = "\N{NO-BREAK SPACE}"


class RoundedFigure(NamedTuple):
    """A figure and its interval in words, which is empty for a figure without one."""

    shown: str
    likely: str = ""


def round_quantity(quantity: Mapping[str, Any], ladder: UnitLadder) -> RoundedFigure:
    """Returns a quantity and its interval, in the unit of its size."""
    scale = select_scale(ladder, quantity["value"])
    shown, low, high = (round_value(quantity[end], scale) for end in ("value", "low", "high"))
    return RoundedFigure(shown, _format_likely(low, high))


def round_money(money: Mapping[str, Any]) -> RoundedFigure:
    """Returns an amount and its interval."""
    shown, low, high = (round_amount(money[end]) for end in ("amount", "low", "high"))
    return RoundedFigure(f"{shown}{_SPACE}{money['currency_code']}", _format_likely(low, high))


def round_value(value: float, scale: UnitScale) -> str:
    """Returns a value in a unit with three digits."""
    rounded = float(f"{value / scale.factor:.{_DIGITS}g}")
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(rounded)))) if rounded else 0
    text = f"{rounded:,.{places}f}"
    return add_unit(localize_number(text.rstrip("0").rstrip(".") if "." in text else text), scale)


def round_in_unit(value: float, ladder: UnitLadder) -> str:
    """Returns a value with three digits, in the unit of its size."""
    return round_value(value, select_scale(ladder, value))


def round_amount(amount: str) -> str:
    """Returns an amount without cents from a thousand on, and with four digits below one."""
    value = Decimal(amount)
    if abs(value) >= _WHOLE_FROM:
        return localize_number(f"{value:,.0f}")
    if abs(value) >= _CENT_FROM or not value:
        return localize_number(f"{value:,.2f}")
    return format_number(float(value))


def _format_likely(low: str, high: str) -> str:
    """Returns an interval in words. A unit that both ends have is said once."""
    if low == high:
        return ""
    _, _, unit = low.partition(_SPACE)
    shared = unit and high.endswith(f"{_SPACE}{unit}")
    return f"likely {low.removesuffix(f'{_SPACE}{unit}') if shared else low} to {high}"
