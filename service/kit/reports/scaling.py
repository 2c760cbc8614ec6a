"""Axes of charts. Bars begin at zero, and ticks are round in the unit of their labels."""

import math
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS = 5
_LINEAR_RATIO = 20.0
"""Largest ratio of the values of a linear axis that is not to crowd the small ones."""
_LEAST_SPAN = 0.02
"""Least length of an axis around values, as a share of the largest."""


class ChartAxis(NamedTuple):
    """A scale from 0 to 1 with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def to_position(self, value: float) -> float:
        """Returns the position of a value from 0 to 1. Values beyond the axis are at its ends."""
        if self.is_log:
            at = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            at = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, at))


def build_linear_axis(*values: float, unit: float = 1.0) -> ChartAxis:
    """Returns a linear axis that contains 0 and all values, with steps that are round in ``unit``."""
    return _build_round_axis(min(0.0, *values) / unit, max(0.0, *values) / unit, unit)


def build_close_axis(*values: float, unit: float = 1.0) -> ChartAxis:
    """Returns an axis around all values, with steps that are round in ``unit``.

    It suits points, which have no length that would need a zero. Values of several sizes make it logarithmic.
    """
    low, high = min(values) / unit, max(values) / unit
    if low > 0 and high > _LINEAR_RATIO * low:
        axis = build_logarithmic_axis(low, high)
        return ChartAxis(
            axis.low * unit, axis.high * unit, tuple(at * unit for at in axis.ticks), is_log=True
        )
    lacking = max(0.0, _LEAST_SPAN * (abs(high) or 1.0) - (high - low))
    return _build_round_axis(low - lacking / 2, high + lacking / 2, unit)


def _build_round_axis(low: float, high: float, unit: float) -> ChartAxis:
    span = (high - low) or 1.0
    size = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    step = next(size * each for each in _STEPS if span / (size * each) <= _MOST_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # An axis of zero length is extended by one step.
    last = max(last, first + 1)
    size = step * unit
    return ChartAxis(first * size, last * size, tuple(place * size for place in range(first, last + 1)))


def build_logarithmic_axis(*values: float) -> ChartAxis:
    """Returns a logarithmic axis over whole powers of ten."""
    first = math.floor(math.log10(min(values)) + 1e-9)
    last = max(math.ceil(math.log10(max(values)) - 1e-9), first + 1)
    every = math.ceil((last - first) / _MOST_TICKS)
    ticks = tuple(10.0**power for power in range(first, last + 1, every))
    return ChartAxis(10.0**first, 10.0**last, ticks, is_log=True)


def build_doubling_axis(*values: float) -> ChartAxis:
    """Returns a logarithmic axis over whole powers of two."""
    first = math.floor(math.log2(min(values)) + 1e-9)
    last = max(math.ceil(math.log2(max(values)) - 1e-9), first + 1)
    every = math.ceil((last - first) / _MOST_TICKS)
    ticks = tuple(2.0**power for power in range(first, last + 1, every))
    return ChartAxis(2.0**first, 2.0**last, ticks, is_log=True)
