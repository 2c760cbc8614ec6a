"""How far an assumption is moved until a choice changes."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

PRECISION: Final = 1e-9
"""Relative width to which a switching factor is known."""


class Switch(NamedTuple):
    """Two factors of an assumption next to each other: with one the choice holds, with the other it does not.

    ``holds`` lies between 1 and ``changed``.
    """

    holds: float
    changed: float


def rungs(end: float, number: int) -> tuple[float, ...]:
    """Factors from 1 towards ``end``, above or below it, in equal ratios; 1 is not among them.

    Raises :class:`ValueError` for an end that is not above 0, or is 1.
    """
    if not end > 0.0 or end == 1.0:
        message = f"no way leads from 1 to {end}"
        raise ValueError(message)
    step = math.log(end) / number
    return (*(math.exp(step * place) for place in range(1, number)), end)


def first_switch(is_changed: Callable[[float], bool], end: float, number: int = 1) -> Switch | None:
    """The switch nearest to 1 on the way to ``end``, to a relative :data:`PRECISION`; None where none is.

    The way is tried at ``number`` factors, and the first part of it that ends in a change is halved, in the
    logarithm of the factor, until it is narrow. Of figures that are linear in the factor every one that
    betters the first from some factor on stays better, so that one try at the end misses nothing; a choice
    that changes and changes back between two tries is missed.
    """
    holds = 1.0
    for tried in rungs(end, number):
        if is_changed(tried):
            return narrowed(is_changed, Switch(holds, tried))
        holds = tried
    return None


def narrowed(is_changed: Callable[[float], bool], switch: Switch) -> Switch:
    """The switch between two factors, whose ends are relative :data:`PRECISION` apart at most."""
    holds, changed = switch
    while abs(math.log(changed / holds)) > PRECISION:
        middle = math.sqrt(holds * changed)
        if is_changed(middle):
            changed = middle
        else:
            holds = middle
    return Switch(holds, changed)
