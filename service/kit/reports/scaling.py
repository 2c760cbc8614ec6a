"""Axes of charts. Bars begin at zero, and ticks are round in the unit of their labels."""

import math
from typing import NamedTuple

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MOST_TICKS = 5
_LEAST_SPAN = 0.2
"""Shortest close axis, as a share of its largest value: noise of a per cent or two does not fill it."""
_DAY = 86_400
_TIME_STEPS = (
    *(60 * minutes for minutes in (1, 5, 15, 60, 180, 360, 720)),
    *(_DAY * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 1826)),
)
_TIME_MARGIN = 0.04
_SHORTEST_TIME = 600.0
_LINEAR_RATIO = 20.0
"""Largest ratio of the values of a linear axis that is not to crowd the small ones."""
_LEAST_POINT_SPAN = 0.02
"""Shortest axis of points that are compared, as a share of the largest value."""


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
    return _build_steps(min(0.0, *values) / unit, max(0.0, *values) / unit, unit)


def build_close_axis(*values: float, unit: float = 1.0, least_span: float = _LEAST_SPAN) -> ChartAxis:
    """Returns a linear axis close around values from 0 up, which need not contain 0: of points, not bars."""
    low, high = min(values) / unit, max(values) / unit
    lacking = max(0.0, least_span * high - (high - low)) / 2
    return _build_steps(max(0.0, low - lacking), high + lacking, unit)


def build_point_axis(*values: float, unit: float = 1.0) -> ChartAxis:
    """Returns an axis close around values from 0 up; values of several sizes make it logarithmic."""
    if min(values) > 0 and max(values) > _LINEAR_RATIO * min(values):
        return build_logarithmic_axis(*values, unit=unit)
    return build_close_axis(*values, unit=unit, least_span=_LEAST_POINT_SPAN)


def _build_steps(low: float, high: float, unit: float) -> ChartAxis:
    """Returns an axis whose ends and ticks are round in ``unit``."""
    span = (high - low) or 1.0
    size = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    step = next(size * each for each in _STEPS if span / (size * each) <= _MOST_TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # An axis of zero length is extended by one step.
    last = max(last, first + 1)
    size = step * unit
    return ChartAxis(first * size, last * size, tuple(place * size for place in range(first, last + 1)))


def build_time_axis(first: float, last: float) -> ChartAxis:
    """Returns an axis of times in seconds since 1970, with ticks at whole minutes, hours or days of UTC."""
    span = max(last - first, _SHORTEST_TIME)
    middle, reach = (first + last) / 2, (0.5 + _TIME_MARGIN) * span
    low, high = middle - reach, middle + reach
    step = next((each for each in _TIME_STEPS if span / each <= _MOST_TICKS), _TIME_STEPS[-1])
    ticks = range(math.ceil(low / step), math.floor(high / step) + 1)
    return ChartAxis(low, high, tuple(float(place * step) for place in ticks))


def build_logarithmic_axis(*values: float, unit: float = 1.0) -> ChartAxis:
    """Returns a logarithmic axis over whole powers of ten of ``unit``."""
    first = math.floor(math.log10(min(values) / unit) + 1e-9)
    last = max(math.ceil(math.log10(max(values) / unit) - 1e-9), first + 1)
    every = math.ceil((last - first) / _MOST_TICKS)
    ticks = tuple(10.0**power * unit for power in range(first, last + 1, every))
    return ChartAxis(10.0**first * unit, 10.0**last * unit, ticks, is_log=True)


def build_doubling_axis(*values: float) -> ChartAxis:
    """Returns a logarithmic axis over whole powers of two."""
    first = math.floor(math.log2(min(values)) + 1e-9)
    last = max(math.ceil(math.log2(max(values)) - 1e-9), first + 1)
    every = math.ceil((last - first) / _MOST_TICKS)
    ticks = tuple(2.0**power for power in range(first, last + 1, every))
    return ChartAxis(2.0**first, 2.0**last, ticks, is_log=True)
