"""A number, its 80% interval and the evidence it rests on.

This is the one place where intervals are made. A formula computes point values; :func:`combine`
evaluates it at the low, middle and high value of its inputs, and :meth:`IntervalFactors.around` widens a
point by what is known of the formula's own error.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple


class EvidenceBasis(StrEnum):
    """The evidence behind a number, strongest first; ``assumed`` was given by the caller."""

    EXACT = "exact"
    CALIBRATED_NODE = "calibrated_node"
    CALIBRATED_SKU = "calibrated_sku"
    CALIBRATED_GENERATION = "calibrated_generation"
    REFERENCE = "reference"
    DATASHEET = "datasheet"
    ASSUMED = "assumed"


CALIBRATED = frozenset(
    {EvidenceBasis.CALIBRATED_NODE, EvidenceBasis.CALIBRATED_SKU, EvidenceBasis.CALIBRATED_GENERATION}
)
"""Evidence of devices of one's own."""

_RANK = {basis: rank for rank, basis in enumerate(EvidenceBasis)}


class Quantity(NamedTuple):
    """``low <= value <= high``; the true value lies between low and high in 80% of cases."""

    value: float
    low: float
    high: float
    basis: EvidenceBasis


class IntervalFactors(NamedTuple):
    """Low, high and middle as factors of a formula's value, with the source of the factors.

    The middle is other than 1 where runs of the same kind were measured beside the formula: these are the
    better evidence, with a ``basis`` of their own, and ``calibration_ids`` name them.
    """

    low: float
    high: float
    source: str
    middle: float = 1.0
    basis: EvidenceBasis | None = None
    calibration_ids: tuple[str, ...] = ()

    def around(self, value: float, basis: EvidenceBasis) -> Quantity:
        """The interval of a formula whose error is this spread."""
        return Quantity(value * self.middle, value * self.low, value * self.high, self.basis_over(basis))

    def basis_over(self, basis: EvidenceBasis) -> EvidenceBasis:
        """The stronger of the evidence of the formula and that of the spread's own runs."""
        return basis if self.basis is None else min(basis, self.basis, key=_RANK.__getitem__)


def exact(value: float) -> Quantity:
    """A figure that follows from the question alone."""
    return Quantity(value, value, value, EvidenceBasis.EXACT)


def assumed(value: float) -> Quantity:
    """A figure that the caller gave."""
    return Quantity(value, value, value, EvidenceBasis.ASSUMED)


def scaled(quantity: Quantity, factor: float) -> Quantity:
    """``quantity`` times a factor above zero that is known exactly."""
    value, low, high, basis = quantity
    return Quantity(value * factor, low * factor, high * factor, basis)


def weakest_basis(*bases: EvidenceBasis) -> EvidenceBasis:
    """The weakest of some evidence."""
    return max(bases, key=_RANK.__getitem__)


def weakest(first: Quantity, *rest: Quantity) -> EvidenceBasis:
    """The basis of a figure made of these.

    The weakest evidence among those that bring an interval; where none does, the weakest of all.
    """
    basis, has_interval = first.basis, first.low != first.high
    for quantity in rest:
        brings_interval = quantity.low != quantity.high
        if brings_interval and not has_interval:
            basis, has_interval = quantity.basis, True
        elif brings_interval == has_interval and _RANK[quantity.basis] > _RANK[basis]:
            basis = quantity.basis
    return basis


def combine(formula: Callable[..., float], *inputs: Quantity) -> Quantity:
    """``formula`` at the low, middle and high value of all ``inputs``.

    The formula must grow with every input or fall with every input; :func:`inverted` turns an input
    round where it does not. Taking every input at its end at once is wider than independent errors
    would be, which is the side to err on.
    """
    values, lows, highs, _ = zip(*inputs, strict=True)
    basis = weakest(*inputs)
    value = formula(*values)
    if lows == highs:
        return Quantity(value, value, value, basis)
    low, high = formula(*lows), formula(*highs)
    if high < low:
        low, high = high, low
    return Quantity(value, low, high, basis)


def inverted(quantity: Quantity) -> Quantity:
    """The same quantity with its ends exchanged, for a formula that falls with it."""
    return Quantity(quantity.value, quantity.high, quantity.low, quantity.basis)


_STANDARD_DEVIATIONS_OF_80_PERCENT = 1.2815515655446004


def probability_at_most(quantity: Quantity, limit: Quantity) -> float:
    """Probability in 0..1 that ``quantity`` does not exceed ``limit``.

    Both are read as normal around their value, with the distance to low and high as the 10th and
    90th percentile on either side; the side that faces the other quantity counts.
    """
    margin = limit.value - quantity.value
    if margin >= 0:
        spread = math.hypot(quantity.high - quantity.value, limit.value - limit.low)
    else:
        spread = math.hypot(quantity.value - quantity.low, limit.high - limit.value)
    deviation = spread / _STANDARD_DEVIATIONS_OF_80_PERCENT
    if deviation == 0.0:
        return 1.0 if margin >= 0 else 0.0
    return 0.5 * (1.0 + math.erf(margin / (deviation * math.sqrt(2.0))))


class LogReach(NamedTuple):
    """Distances of a figure above 0 from the ends of its interval, in logarithms; neither is below 0."""

    down: float
    up: float

    def subtract(self, part: "LogReach") -> "LogReach":
        """What is left once a part of the doubt is taken out; ends are those of all parts at once."""
        return LogReach(max(0.0, self.down - part.down), max(0.0, self.up - part.up))

    def limit_to(self, whole: "LogReach") -> "LogReach":
        """No more of it than of another."""
        return LogReach(min(self.down, whole.down), min(self.up, whole.up))


def compute_log_reach(quantity: Quantity) -> LogReach:
    """The interval of a figure whose low end is above 0, in logarithms."""
    value, low, high, _ = quantity
    return LogReach(math.log(value / low), math.log(high / value))


def compute_ratio_reach(first: LogReach, second: LogReach, correlation: float) -> float:
    """Upper end of the 80% interval of ln(first / second) over its middle, for errors so correlated.

    The error is a part that moves both alike, to the same side of their intervals, and one of each alone:
    with the same intervals the variance is the sum of both less twice what they share, and where all is
    shared nothing of the ratio is in doubt.
    """
    alone = math.hypot(first.up, second.down)
    alike = max(0.0, first.up - second.up, second.down - first.down)
    return math.hypot(math.sqrt(1.0 - correlation) * alone, math.sqrt(correlation) * alike)
