"""Formats of numbers for readers: with a unit of their size and separators of thousands."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from service.kit.http.html import format_money as _money
from service.kit.locales import format_count, localize_number

TIMES = "\N{MULTIPLICATION SIGN}"
_SPACE = "\N{NO-BREAK SPACE}"
_DIGITS = 4
_COUNTED_DIGITS = 12
NOT_KNOWN = "not known"
_LARGEST = 1e15
_SMALLEST = 1e-4
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class UnitScale(NamedTuple):
    """A unit for readers, as a multiple of the unit of the document."""

    factor: float
    unit: str


UnitLadder = Sequence[UnitScale]
"""Units of one quantity, the smallest first."""

PLAIN: UnitLadder = (UnitScale(1.0, ""),)
PERCENT: UnitLadder = (UnitScale(0.01, "%"),)
BYTES: UnitLadder = tuple(
    UnitScale(2.0 ** (10 * power), unit)
    for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
)
BYTES_PER_SECOND: UnitLadder = tuple(
    UnitScale(10.0 ** (3 * power), unit)
    for power, unit in enumerate(("B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"))
)
SECONDS: UnitLadder = (
    UnitScale(1e-6, "µs"),
    UnitScale(1e-3, "ms"),
    UnitScale(1.0, "s"),
    UnitScale(60.0, "min"),
    UnitScale(3600.0, "h"),
    UnitScale(86400.0, "days"),
)
HOURS: UnitLadder = (UnitScale(1.0, "h"),)
KWH: UnitLadder = (
    UnitScale(1e-3, "Wh"),
    UnitScale(1.0, "kWh"),
    UnitScale(1e3, "MWh"),
    UnitScale(1e6, "GWh"),
    UnitScale(1e9, "TWh"),
)
KW: UnitLadder = (UnitScale(1e-3, "W"), UnitScale(1.0, "kW"), UnitScale(1e3, "MW"), UnitScale(1e6, "GW"))
WATTS: UnitLadder = (UnitScale(1.0, "W"), UnitScale(1e3, "kW"), UnitScale(1e6, "MW"), UnitScale(1e9, "GW"))
JOULES: UnitLadder = (UnitScale(1.0, "J"), UnitScale(1e3, "kJ"), UnitScale(1e6, "MJ"))
KG_CO2E: UnitLadder = (UnitScale(1e-3, "g CO₂e"), UnitScale(1.0, "kg CO₂e"), UnitScale(1e3, "t CO₂e"))
LITERS: UnitLadder = (UnitScale(1.0, "L"), UnitScale(1e3, "m³"))
FLOPS_PER_SECOND: UnitLadder = (
    UnitScale(1.0, "FLOP/s"),
    UnitScale(1e9, "GFLOP/s"),
    UnitScale(1e12, "TFLOP/s"),
    UnitScale(1e15, "PFLOP/s"),
)
FLOPS: UnitLadder = (UnitScale(1.0, "FLOP"),)
_MONTHS: UnitLadder = (UnitScale(1.0, "months"),)

_LADDERS: Sequence[tuple[str, UnitLadder]] = (
    ("flops_per_second_per_device", FLOPS_PER_SECOND),
    ("seconds", SECONDS),
    ("seconds_without", SECONDS),
    ("bytes", BYTES),
    ("bytes_per_token", BYTES),
    ("bytes_per_request", BYTES),
    ("bytes_per_device", BYTES),
    ("device_hours", HOURS),
    ("kwh", KWH),
    ("kw", KW),
    ("watts", WATTS),
    ("joules", JOULES),
    ("kg_co2e", KG_CO2E),
    ("liters", LITERS),
    ("utilization", PERCENT),
    ("share", PERCENT),
    ("probability", PERCENT),
    ("goodput", PERCENT),
    ("total_flops", FLOPS),
    ("months", _MONTHS),
)
_WORDS = {
    "kv": "KV",
    "gpu": "GPU",
    "cpu": "CPU",
    "it": "IT",
    "nvme": "NVMe",
    "cuda": "CUDA",
    "flops": "FLOP",
    "pue": "PUE",
    "id": "ID",
    "co2e": "CO₂e",
}
_JOINED = {"break even": "break-even", " based": "-based", "device hours": "device-hours"}
_UNITS = {
    "_seconds": "",
    "_bytes": "",
    "_kwh": "energy",
    "_kw": "power",
    "_watts": "",
    "_joules": "",
    "_kg_co2e": "emissions",
    "_liters": "water",
}


class FormattedFigure(NamedTuple):
    """A figure with its formatted value and interval."""

    name: str
    shown: str
    low: str = ""
    high: str = ""
    basis: str = ""

    @property
    def cell(self) -> str:
        """The figure with its interval, in one cell of a table."""
        return f"{self.shown} ({self.low} to {self.high})" if self.low else self.shown

    @property
    def stacked(self) -> Markup:
        """The figure above its interval, for a narrow column."""
        if not self.low:
            return escape(self.shown)
        return Markup('{}<span class="hint">{} to {}</span>').format(self.shown, self.low, self.high)


def select_ladder(name: str) -> UnitLadder:
    """Returns the units of a member, by the suffix of its name."""
    for ending, ladder in _LADDERS:
        if name.endswith(ending) and not name.endswith(f"_per_{ending}"):
            return ladder
    return PLAIN


def select_scale(ladder: UnitLadder, size: float) -> UnitScale:
    """Returns the largest unit that does not exceed ``size``, else the smallest."""
    fitting = [scale for scale in ladder if scale.factor <= abs(size)]
    if fitting:
        return fitting[-1]
    return ladder[0] if size else min(ladder, key=lambda scale: abs(math.log(scale.factor)))


def format_number(value: float, digits: int = _DIGITS) -> str:
    """Returns a number with ``digits`` significant digits. Whole numbers are written in full."""
    if not math.isfinite(value):
        return NOT_KNOWN
    size = abs(value)
    if size >= _LARGEST or 0 < size < _SMALLEST:
        mantissa, _, exponent = localize_number(f"{value:.{digits - 1}e}").partition("e")
        return f"{mantissa}{_SPACE}{TIMES}{_SPACE}10{str(int(exponent)).translate(_RAISED)}"
    if value == int(value):
        return format_count(int(value))
    # Rounded first, so that 9.9999 is written as 10.00 instead of 10.000.
    places = max(0, digits - 1 - math.floor(math.log10(float(f"{size:.{digits - 1}e}"))))
    return localize_number(f"{value:,.{places}f}")


def format_quantity(value: float) -> str:
    """Returns a quantity with enough digits that its product with the price is the amount."""
    if not math.isfinite(value):
        return NOT_KNOWN
    whole, _, part = f"{Decimal(f'{value:.{_COUNTED_DIGITS}g}'):,f}".partition(".")
    return localize_number(f"{whole}.{part.rstrip('0')}".rstrip("."))


def format_money(amount: str | Decimal, currency_code: str) -> str:
    """Returns an amount with all digits. Zero has no sign."""
    return _money(Decimal(amount) + 0, currency_code)


def format_in_scale(value: float, scale: UnitScale) -> str:
    """Returns a value in a unit, with the unit."""
    return add_unit(format_number(value / scale.factor), scale)


def add_unit(text: str, scale: UnitScale) -> str:
    """Returns a formatted number with its unit."""
    return f"{text}{_SPACE}{scale.unit}".rstrip(_SPACE)


def format_value(value: float, ladder: UnitLadder) -> str:
    """Returns a value in the unit of its size."""
    return format_in_scale(value, select_scale(ladder, value))


def to_plain_words(name: str) -> str:
    """Returns the name of a member in words."""
    text = " ".join(_WORDS.get(part, part) for part in name.replace("-", "_").split("_") if part)
    for apart, joined in _JOINED.items():
        text = text.replace(apart, joined)
    return text


def to_title(name: str) -> str:
    """Returns the name of a member in words, capitalised."""
    text = to_plain_words(name)
    return text[:1].upper() + text[1:]


def format_figure_title(name: str) -> str:
    """Returns the name of a figure in words, without its unit, which is shown with the number."""
    for unit, noun in _UNITS.items():
        if name.endswith(unit):
            before = name.removesuffix(unit)
            return to_title(before if before in noun or not noun else f"{before}_{noun}")
    return to_title(name.replace("flops_per_second", "rate").replace("_seconds_without", "_without"))


def build_tick_format(scale: UnitScale) -> Callable[[float], str]:
    """Returns a function that formats labels of an axis in a unit."""
    return lambda value: localize_number(f"{value / scale.factor:,.10g}")


def build_quantity_figure(
    name: str, quantity: Mapping[str, Any], ladder: UnitLadder | None = None
) -> FormattedFigure:
    """Returns a quantity with its interval, all in one unit."""
    scale = select_scale(ladder or select_ladder(name), quantity["value"])
    value, low, high = (format_in_scale(quantity[end], scale) for end in ("value", "low", "high"))
    # An interval that is narrower than the shown digits is left out.
    ends = ("", "") if value == low == high else (low, high)
    return FormattedFigure(format_figure_title(name), value, *ends, quantity["basis"])


def build_money_figure(name: str, money: Mapping[str, Any]) -> FormattedFigure:
    """Returns an amount with its interval."""
    code = money["currency_code"]
    ends = ("", "")
    if Decimal(money["low"]) != Decimal(money["high"]):
        ends = (format_money(money["low"], code), format_money(money["high"], code))
    return FormattedFigure(
        format_figure_title(name), format_money(money["amount"], code), *ends, money["basis"]
    )


def build_figure(name: str, value: object) -> FormattedFigure | None:
    """Returns a member of an answer as a figure, or None."""
    if isinstance(value, bool):
        return FormattedFigure(format_figure_title(name), "yes" if value else "no")
    if isinstance(value, int | float):
        return FormattedFigure(format_figure_title(name), format_value(value, select_ladder(name)))
    if not isinstance(value, Mapping):
        return None
    if value.keys() >= {"value", "low", "high", "basis"}:
        return build_quantity_figure(name, value)
    if value.keys() >= {"amount", "low", "high", "basis"}:
        return build_money_figure(name, value)
    return None


def list_figures(
    answer: Mapping[str, Any], *, without: frozenset[str] = frozenset()
) -> list[FormattedFigure]:
    """Returns all figures of an answer, in its order."""
    found = (build_figure(name, value) for name, value in answer.items() if name not in without)
    return [one for one in found if one is not None]
