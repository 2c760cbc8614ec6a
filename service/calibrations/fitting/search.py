"""Robust fit of a few constants within their ranges to measured times.

Residuals are logarithms of estimated over measured times and the constants are searched as logarithms. Steps
are those of Levenberg (1944) and Marquardt (1963), with each residual weighed by its inverse (iteratively
reweighted least squares), so that the sum of their absolute values becomes least and one outlier moves
little.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Vector: TypeAlias = NDArray[np.float64]
_STEPS: Final = 60
_STEP: Final = 1e-4
_DAMPING: Final = 1e-3
_LEAST_RESIDUAL: Final = 1e-3
"""Residual below which the weight no longer grows."""
_PULL: Final = 1e-4
"""Weight that holds constants that no time determines at their start."""


class ConstantRange(NamedTuple):
    """Start of a constant and its plausible range; all above zero."""

    low: float
    start: float
    high: float

    def is_inside(self, value: float) -> bool:
        """Returns true if a value is not at an end of the range, where the search would have continued."""
        return self.low * 1.001 < value < self.high * 0.999


Residuals = Callable[[Mapping[str, float]], Sequence[float]]


def fit_values(ranges: Mapping[str, ConstantRange], residuals: Residuals) -> dict[str, float]:
    """Returns the values of least absolute residuals; undetermined constants stay at their start."""
    names = list(ranges)
    low, start, high = (
        np.log([getattr(ranges[name], end) for name in names]) for end in ConstantRange._fields
    )

    def compute_residuals(point: _Vector) -> _Vector:
        values = dict(zip(names, np.exp(point).tolist(), strict=True))
        return np.array([*residuals(values), *(_PULL * (point - start))])

    point, damping = start, _DAMPING
    found = compute_residuals(point)
    for _ in range(_STEPS):
        slopes = np.array(
            [(compute_residuals(point + _STEP * unit) - found) / _STEP for unit in np.eye(len(names))]
        ).T
        weighed = slopes.T / np.maximum(np.abs(found), _LEAST_RESIDUAL)
        normal = weighed @ slopes
        scale = np.diag(np.diag(normal) + _PULL**2)
        moved = np.clip(point - np.linalg.solve(normal + damping * scale, weighed @ found), low, high)
        tried = compute_residuals(moved)
        if _compute_loss(tried) < _compute_loss(found):
            point, found, damping = moved, tried, max(damping / 3.0, _PULL**2)
        else:
            damping *= 4.0
            if not math.isfinite(damping) or damping > 1.0 / _PULL**2:
                break
    return dict(zip(names, np.exp(point).tolist(), strict=True))


def _compute_loss(residuals: _Vector) -> float:
    """Sums absolute values, but squares of the smallest, so that the sum has a slope everywhere."""
    size = np.abs(residuals)
    return float(np.sum(np.where(size > _LEAST_RESIDUAL, size, size**2 / _LEAST_RESIDUAL)))
