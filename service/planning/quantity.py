"""A number, its 80% interval and its evidence.

Intervals are made in this module only. A formula computes point values; :func:`combine` evaluates it at the
low, middle and high value of its inputs, and :meth:`IntervalFactors.around` widens a point by the known error
of the formula.
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
"""Evidence of a tenant's own devices."""

_RANK = {basis: rank for rank, basis in enumerate(EvidenceBasis)}


class Quantity(NamedTuple):
    """``low <= value <= high``; the true value lies between low and high in 80% of cases."""

    value: float
    low: float
    high: float
    basis: EvidenceBasis


class IntervalFactors(NamedTuple):
    """Low, high and middle as factors of a formula's value, with the source of the factors.

    The middle differs from 1 where runs of the same kind were measured: these are the better evidence, with a
    separate ``basis``, and ``calibration_ids`` name them.
    """

    low: float
    high: float
    source: str
    middle: float = 1.0
    basis: EvidenceBasis | None = None
    calibration_ids: tuple[str, ...] = ()

    def around(self, value: float, basis: EvidenceBasis) -> Quantity:
        """Returns the interval of a formula whose error is this spread."""
        return Quantity(value * self.middle, value * self.low, value * self.high, self.basis_over(basis))

    def basis_over(self, basis: EvidenceBasis) -> EvidenceBasis:
        """Returns the stronger of the evidence of the formula and that of the spread's own runs."""
        return basis if self.basis is None else min(basis, self.basis, key=_RANK.__getitem__)


def exact(value: float) -> Quantity:
    """Returns a figure that follows from the question alone."""
    return Quantity(value, value, value, EvidenceBasis.EXACT)


def assumed(value: float) -> Quantity:
    """Returns a figure that the caller gave."""
    return Quantity(value, value, value, EvidenceBasis.ASSUMED)


def scaled(quantity: Quantity, factor: float) -> Quantity:
    """Returns ``quantity`` times an exactly known factor above zero."""
    value, low, high, basis = quantity
    return Quantity(value * factor, low * factor, high * factor, basis)


def weakest_basis(*bases: EvidenceBasis) -> EvidenceBasis:
    """Returns the weakest of several bases."""
    return max(bases, key=_RANK.__getitem__)


_ROUNDING = 1024 * 2.0**-53
"""Share of a figure by which a thousand roundings move it at most; no evidence is as narrow."""


def has_interval(quantity: Quantity) -> bool:
    """Returns true if the ends lie further apart than roundings bring them."""
    return not math.isclose(quantity.low, quantity.high, rel_tol=_ROUNDING)


def weakest(first: Quantity, *rest: Quantity) -> EvidenceBasis:
    """Returns the basis of a figure derived from these.

    The weakest evidence among those with an interval; where none has one, the weakest of all.
    """
    basis, is_uncertain = first.basis, has_interval(first)
    for quantity in rest:
        brings_interval = has_interval(quantity)
        if brings_interval and not is_uncertain:
            basis, is_uncertain = quantity.basis, True
        elif brings_interval == is_uncertain and _RANK[quantity.basis] > _RANK[basis]:
            basis = quantity.basis
    return basis


def combine(formula: Callable[..., float], *inputs: Quantity) -> Quantity:
    """Evaluates ``formula`` at the low, middle and high value of all ``inputs``.

    The formula must grow with every input or fall with every input; :func:`inverted` exchanges the ends of an
    input where it does not. All inputs at their ends at once give a wider interval than independent errors
    would, which is the safe side.
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
    """Returns the quantity with its ends exchanged, for a formula that falls with it."""
    return Quantity(quantity.value, quantity.high, quantity.low, quantity.basis)


_STANDARD_DEVIATIONS_OF_80_PERCENT = 1.2815515655446004


def probability_at_most(quantity: Quantity, limit: Quantity) -> float:
    """Returns the probability in 0..1 that ``quantity`` does not exceed ``limit``.

    Both are taken as normal around their value, with the distance to low and high as the 10th and 90th
    percentile on either side; the side that faces the other quantity counts.
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
        """Returns the reach without a part of the uncertainty; ends are those of all parts at once."""
        return LogReach(max(0.0, self.down - part.down), max(0.0, self.up - part.up))

    def limit_to(self, whole: "LogReach") -> "LogReach":
        """Returns the reach, limited to another."""
        return LogReach(min(self.down, whole.down), min(self.up, whole.up))


def compute_log_reach(quantity: Quantity) -> LogReach:
    """Returns the interval of a figure whose low end is above 0, in logarithms."""
    value, low, high, _ = quantity
    return LogReach(math.log(value / low), math.log(high / value))


def compute_ratio_reach(first: LogReach, second: LogReach, correlation: float) -> float:
    """Returns the upper end of the 80% interval of ln(first / second) over its middle, for correlated errors.

    The error is a part that moves both to the same side of their intervals, and a part of each alone: with
    the same intervals the variance is the sum of both less twice the shared part, and where all is shared the
    ratio is certain.
    """
    alone = math.hypot(first.up, second.down)
    alike = max(0.0, first.up - second.up, second.down - first.down)
    return math.hypot(math.sqrt(1.0 - correlation) * alone, math.sqrt(correlation) * alike)
