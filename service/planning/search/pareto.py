"""Selection of configurations that can be among the best few for any goal that grows with their measures."""

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


def select_pareto_front(
    seconds: Floats, watts: Floats | None, depth: int, ties: Sequence[NDArray[np.generic]]
) -> Places:
    """Returns the indices of entries that fewer than ``depth`` others equal or beat in both measures.

    They are in the order of seconds, then watts; equals are in the order of ``ties``, the first of which
    counts most, and the earlier ones count as better. Without ``watts`` they are the ``depth`` fastest.

    An entry with ``depth`` betters has as many among the found ones: of the betters of one, the n-th in this
    order has at most n - 1 betters. So parts of a set may be thinned before they are joined.
    """
    if watts is None:
        found: Places = np.lexsort((*reversed(ties), seconds))[:depth]
        return found
    return _sweep_pareto_front(np.lexsort((*reversed(ties), watts, seconds)), watts, depth)


def _sweep_pareto_front(order: Places, watts: Floats, depth: int) -> Places:
    """Returns the entries of an order by time with fewer than ``depth`` earlier ones that draw no more."""
    # The least draws so far, negated: the root is the depth-th of them.
    least: list[float] = []
    kept = []
    for place, drawn in zip(order.tolist(), watts[order].tolist(), strict=True):
        if len(least) < depth:
            heapq.heappush(least, -drawn)
        elif drawn < -least[0]:
            heapq.heapreplace(least, -drawn)
        else:
            continue
        kept.append(place)
    return np.array(kept, dtype=np.intp)


def select_nondominated(seconds: Floats, watts: Floats, depth: int) -> Places:
    """Returns the indices of entries that fewer than ``depth`` others dominate.

    An entry dominates another if it is better in one measure and no worse in the other. Equals do not
    dominate each other, so that all of them are found, or none.
    """
    order = np.lexsort((watts, seconds))
    sorted_seconds, sorted_watts = seconds[order], watts[order]
    least: list[float] = []
    kept: list[int] = []
    before: tuple[float, float] | None = None
    was_kept = False
    for place, taken, drawn in zip(
        order.tolist(), sorted_seconds.tolist(), sorted_watts.tolist(), strict=True
    ):
        if (taken, drawn) != before:
            before, was_kept = (taken, drawn), len(least) < depth or drawn < -least[0]
        if was_kept:
            kept.append(place)
        if len(least) < depth:
            heapq.heappush(least, -drawn)
        elif drawn < -least[0]:
            heapq.heapreplace(least, -drawn)
    return np.array(kept, dtype=np.intp)
