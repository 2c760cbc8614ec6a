"""Points of a discrete Fourier transform by the sum that defines them, in float64."""

from collections.abc import Callable
from math import fsum, log2
from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.complex128]]
ROW = 4096
"""Terms that are summed at a time: few, so that the order of a long sum costs no digits."""
BLOCK = 2**20
SAFETY = 8


def compute_tolerance(rounding: float, elements: int) -> float:
    """Returns the largest error of a fast transform over the root mean square of its spectrum.

    Errors grow at most as u log2 N (Higham, Accuracy and Stability of Numerical Algorithms, 24.1); 8 times
    that passes.
    """
    return SAFETY * rounding * (1 + log2(elements))


def compute_points(
    signal: Callable[[int, int], Values], points: int, dimensions: int, wanted: np.ndarray[Any, Any]
) -> tuple[Values, float]:
    """Computes X[k] = sum x[j] exp(-2 pi i j.k / n) at ``wanted`` (count, dimensions), and sqrt(sum |x|^2).

    ``signal(first, count)`` returns elements in the order of memory. That root is the root mean square of the
    spectrum (Parseval).
    """
    row = points if dimensions > 1 else min(points, ROW)
    last = _compute_phases(np.arange(row), wanted[:, -1], points)
    rows = -(-(points**dimensions) // row)
    at_once = max(BLOCK // row, 1)
    sums: list[Values] = []
    energy: list[float] = []
    for start in range(0, rows, at_once):
        count = min(at_once, rows - start)
        held = np.zeros(count * row, np.complex128)
        there = min(count * row, points**dimensions - start * row)
        held[:there] = signal(start * row, there)
        energy.append(float(np.vdot(held, held).real))
        partial = held.reshape(count, row) @ last.T
        for axis, step in _list_outer_axes(np.arange(start, start + count), points, dimensions, row):
            partial = partial * _compute_phases(step, wanted[:, axis], points).T
        sums.append(partial)
    terms = np.concatenate(sums)
    found = [complex(fsum(column.real), fsum(column.imag)) for column in terms.T]
    return np.array(found), fsum(energy) ** 0.5


def _list_outer_axes(
    rows: np.ndarray[Any, Any], points: int, dimensions: int, row: int
) -> list[tuple[int, np.ndarray[Any, Any]]]:
    """Returns the axes that determine the phase of a row, with the position of each row on them."""
    if dimensions == 1:
        return [(0, rows * row)]
    if dimensions == 2:  # noqa: PLR2004  # a square
        return [(0, rows)]
    return [(0, rows // points), (1, rows % points)]


def _compute_phases(places: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], points: int) -> Values:
    # Reduced as integers first: an angle of many turns would lose significant digits.
    turns = places[None, :].astype(np.int64) * wanted[:, None].astype(np.int64) % points
    return np.asarray(np.exp(-2j * np.pi / points * turns))
