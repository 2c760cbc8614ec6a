"""Numbers as people read them: in a unit of their size, with separators of thousands."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from service.kit.http.html import money as _money

TIMES = "\N{MULTIPLICATION SIGN}"
_SPACE = "\N{NO-BREAK SPACE}"
_DIGITS = 4
_COUNTED_DIGITS = 12
NOT_KNOWN = "not known"
_LARGEST = 1e15
_SMALLEST = 1e-4
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Scale(NamedTuple):
    """A unit that people read, in units of the document."""

    factor: float
    unit: str


Ladder = Sequence[Scale]
"""Units of one quantity, the smallest first."""

PLAIN: Ladder = (Scale(1.0, ""),)
PERCENT: Ladder = (Scale(0.01, "%"),)
BYTES: Ladder = tuple(
    Scale(2.0 ** (10 * power), unit) for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB"))
)
SECONDS: Ladder = (
    Scale(1e-6, "µs"),
    Scale(1e-3, "ms"),
    Scale(1.0, "s"),
    Scale(60.0, "min"),
    Scale(3600.0, "h"),
    Scale(86400.0, "days"),
)
HOURS: Ladder = (Scale(1.0, "h"),)
KWH: Ladder = (Scale(1e-3, "Wh"), Scale(1.0, "kWh"), Scale(1e3, "MWh"), Scale(1e6, "GWh"), Scale(1e9, "TWh"))
KW: Ladder = (Scale(1e-3, "W"), Scale(1.0, "kW"), Scale(1e3, "MW"), Scale(1e6, "GW"))
WATTS: Ladder = (Scale(1.0, "W"), Scale(1e3, "kW"), Scale(1e6, "MW"), Scale(1e9, "GW"))
JOULES: Ladder = (Scale(1.0, "J"), Scale(1e3, "kJ"), Scale(1e6, "MJ"))
KG_CO2E: Ladder = (Scale(1e-3, "g CO₂e"), Scale(1.0, "kg CO₂e"), Scale(1e3, "t CO₂e"))
LITERS: Ladder = (Scale(1.0, "L"), Scale(1e3, "m³"))
FLOPS_PER_SECOND: Ladder = (
    Scale(1.0, "FLOP/s"),
    Scale(1e9, "GFLOP/s"),
    Scale(1e12, "TFLOP/s"),
    Scale(1e15, "PFLOP/s"),
)
FLOPS: Ladder = (Scale(1.0, "FLOP"),)
_MONTHS: Ladder = (Scale(1.0, "months"),)

_LADDERS: Sequence[tuple[str, Ladder]] = (
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


class Figure(NamedTuple):
    """A figure as it is shown."""

    name: str
    shown: str
    low: str = ""
    high: str = ""
    basis: str = ""

    @property
    def cell(self) -> str:
        """The figure with its interval, in one cell of a table."""
        return f"{self.shown} ({self.low} to {self.high})" if self.low else self.shown


def ladder_of(name: str) -> Ladder:
    """The units of a member, by what its name ends in."""
    for ending, ladder in _LADDERS:
        if name.endswith(ending) and not name.endswith(f"_per_{ending}"):
            return ladder
    return PLAIN


def scale_of(ladder: Ladder, size: float) -> Scale:
    """The largest unit that ``size`` has at least one of, else the smallest."""
    fitting = [scale for scale in ladder if scale.factor <= abs(size)]
    if fitting:
        return fitting[-1]
    return ladder[0] if size else min(ladder, key=lambda scale: abs(math.log(scale.factor)))


def digits(value: float) -> str:
    """A number to four significant digits, whole numbers whole."""
    if not math.isfinite(value):
        return NOT_KNOWN
    size = abs(value)
    if size >= _LARGEST or 0 < size < _SMALLEST:
        mantissa, _, exponent = f"{value:.{_DIGITS - 1}e}".partition("e")
        return f"{mantissa}{_SPACE}{TIMES}{_SPACE}10{str(int(exponent)).translate(_RAISED)}"
    if value == int(value):
        return f"{int(value):,}"
    # Rounded first: 9.9999 is 10.00, and not 10.000.
    places = max(0, _DIGITS - 1 - math.floor(math.log10(float(f"{size:.{_DIGITS - 1}e}"))))
    return f"{value:,.{places}f}"


def counted(value: float) -> str:
    """How much is charged for: so many digits that its product with the price is the amount."""
    if not math.isfinite(value):
        return NOT_KNOWN
    whole, _, part = f"{Decimal(f'{value:.{_COUNTED_DIGITS}g}'):,f}".partition(".")
    return f"{whole}.{part.rstrip('0')}".rstrip(".")


def money_text(amount: str | Decimal, currency_code: str) -> str:
    """An amount to its last digit; what is nothing has no sign."""
    return _money(Decimal(amount) + 0, currency_code)


def in_scale(value: float, scale: Scale) -> str:
    """A value in a unit, with it."""
    return with_unit(digits(value / scale.factor), scale)


def with_unit(text: str, scale: Scale) -> str:
    """A number that is written already, and its unit."""
    return f"{text}{_SPACE}{scale.unit}".rstrip(_SPACE)


def shown(value: float, ladder: Ladder) -> str:
    """A value in the unit of its size."""
    return in_scale(value, scale_of(ladder, value))


def plain_words(name: str) -> str:
    """The name of a member in words."""
    text = " ".join(_WORDS.get(part, part) for part in name.replace("-", "_").split("_") if part)
    for apart, joined in _JOINED.items():
        text = text.replace(apart, joined)
    return text


def words(name: str) -> str:
    """The same, as a title."""
    text = plain_words(name)
    return text[:1].upper() + text[1:]


def title_of(name: str) -> str:
    """The name of a figure in words: what it is instead of its unit, which is shown with the number."""
    for unit, noun in _UNITS.items():
        if name.endswith(unit):
            before = name.removesuffix(unit)
            return words(before if before in noun or not noun else f"{before}_{noun}")
    return words(name.replace("flops_per_second", "rate").replace("_seconds_without", "_without"))


def tick(scale: Scale) -> Callable[[float], str]:
    """Labels of an axis in a unit."""
    return lambda value: f"{value / scale.factor:,.10g}"


def quantity_figure(name: str, quantity: Mapping[str, Any], ladder: Ladder | None = None) -> Figure:
    """A quantity with its interval, all in one unit."""
    scale = scale_of(ladder or ladder_of(name), quantity["value"])
    value, low, high = (in_scale(quantity[end], scale) for end in ("value", "low", "high"))
    # An interval that is narrower than what is shown says nothing.
    ends = ("", "") if value == low == high else (low, high)
    return Figure(title_of(name), value, *ends, quantity["basis"])


def money_figure(name: str, money: Mapping[str, Any]) -> Figure:
    """An amount with its interval."""
    code = money["currency_code"]
    ends = ("", "")
    if Decimal(money["low"]) != Decimal(money["high"]):
        ends = (money_text(money["low"], code), money_text(money["high"], code))
    return Figure(title_of(name), money_text(money["amount"], code), *ends, money["basis"])


def figure(name: str, value: object) -> Figure | None:
    """A member of an answer as a figure; None where it is none."""
    if isinstance(value, bool):
        return Figure(title_of(name), "yes" if value else "no")
    if isinstance(value, int | float):
        return Figure(title_of(name), shown(value, ladder_of(name)))
    if not isinstance(value, Mapping):
        return None
    if value.keys() >= {"value", "low", "high", "basis"}:
        return quantity_figure(name, value)
    if value.keys() >= {"amount", "low", "high", "basis"}:
        return money_figure(name, value)
    return None


def figures(answer: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> list[Figure]:
    """All figures of an answer, in its order."""
    found = (figure(name, value) for name, value in answer.items() if name not in without)
    return [one for one in found if one is not None]
