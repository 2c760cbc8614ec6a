"""How far an assumption is moved until a choice changes."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

PRECISION: Final = 1e-6
"""Relative width to which a switching factor is known."""
_TRUNCATION: Final = 0.1
_ORDER: Final = 1.5
_SLACK: Final = 2
"""A step is drawn towards the middle by so much of this power of the width; tries beyond those of halving."""


class SwitchingFactors(NamedTuple):
    """Two factors of an assumption next to each other: with one the choice holds, with the other it does not.

    ``holds`` lies between 1 and ``changed``.
    """

    holds: float
    changed: float


def build_factor_steps(end: float, number: int) -> tuple[float, ...]:
    """``number`` factors from 1 to ``end``, above or below it, in equal ratios; 1 is not among them.

    Raises :class:`ValueError` for an end that is not above 0, or is 1.
    """
    if not end > 0.0 or end == 1.0:
        message = f"no way leads from 1 to {end}"
        raise ValueError(message)
    step = math.log(end) / number
    return (*(math.exp(step * place) for place in range(1, number)), end)


def refine_switch(lead: Callable[[float], float], switch: SwitchingFactors) -> SwitchingFactors:
    """The switch between two factors, whose ends are then a relative :data:`PRECISION` apart at most.

    ``lead`` says by how much a rival is better at a factor, above 0 where the choice has changed. Where it is
    smooth some ten tries do; where it jumps few more than halving takes (the ITP method of Oliveira and
    Takahashi 2020, in the logarithm of the factor).
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
