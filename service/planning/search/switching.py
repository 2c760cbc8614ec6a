"""Factor of an assumption at which a choice changes."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

PRECISION: Final = 1e-6
"""Relative width to which a switching factor is determined."""
_TRUNCATION: Final = 0.1
_ORDER: Final = 1.5
_SLACK: Final = 2
"""Power of the width by which a step is drawn towards the middle, and tries beyond those of halving."""


class SwitchingFactors(NamedTuple):
    """Two factors of an assumption next to each other: the choice holds with one, and changes with the other.

    ``holds`` lies between 1 and ``changed``.
    """

    holds: float
    changed: float


def build_factor_steps(end: float, number: int) -> tuple[float, ...]:
    """Returns ``number`` factors from 1 to ``end``, above or below it, in equal ratios; 1 is not included.

    Raises :class:`ValueError` for an end that is not above 0, or is 1.
    """
    if not end > 0.0 or end == 1.0:
        message = f"no factors lead from 1 to {end}"
        raise ValueError(message)
    step = math.log(end) / number
    return (*(math.exp(step * place) for place in range(1, number)), end)


def refine_switch(lead: Callable[[float], float], switch: SwitchingFactors) -> SwitchingFactors:
    """Narrows the switch between two factors to a relative width of :data:`PRECISION` at most.

    ``lead`` returns the advantage of a rival at a factor, above 0 where the choice has changed. Where it is
    smooth some ten evaluations suffice; where it jumps, few more than halving takes (the ITP method of
    Oliveira and Takahashi 2020, in the logarithm of the factor).
    """
    low, high = (math.log(factor) for factor in switch)
    if abs(high - low) <= PRECISION:
        return switch
    behind, ahead = lead(switch.holds), lead(switch.changed)
    most = math.ceil(math.log2(abs(high - low) / PRECISION)) + _SLACK
    for tries in range(most + 1):
        width = high - low
        if abs(width) <= PRECISION:
            break
        middle = low + 0.5 * width
        line = low + width * behind / (behind - ahead) if behind < ahead else middle
        towards = math.copysign(1.0, middle - line)
        drawn = _TRUNCATION * abs(width) ** _ORDER
        tried = line + towards * drawn if drawn <= abs(middle - line) else middle
        reach = 0.5 * (PRECISION * 2.0 ** (most - tries) - abs(width))
        tried = tried if abs(tried - middle) <= reach else middle - towards * reach
        found = lead(math.exp(tried))
        if found > 0.0:
            high, ahead = tried, found
        else:
            low, behind = tried, found
    return SwitchingFactors(math.exp(low), math.exp(high))
