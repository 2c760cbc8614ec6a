"""Operations that apply to one number and to NumPy arrays of them alike.

Planning's arithmetic is written once: a formula that takes a float takes an array of floats too, one entry
for each layout, as long as it does not branch on a number.
"""

import math
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Figure: TypeAlias = float | NDArray[np.float64]
"""A number, or one for each of many layouts."""


def larger(first: Figure, second: Figure) -> float:
    """Returns the larger of two figures, entry by entry."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return cast("float", np.maximum(first, second))
    return max(first, second)


def smaller(first: Figure, second: Figure) -> float:
    """Returns the smaller of two figures, entry by entry."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return cast("float", np.minimum(first, second))
    return min(first, second)


def is_only(figure: Figure, number: float) -> bool:
    """Returns true if the figure is this single number, so that arrays of other values need no evaluation."""
    return not isinstance(figure, np.ndarray) and figure == number


def is_zero(figure: Figure) -> bool:
    """Returns true if the figure is 0, in every entry of an array."""
    return not (figure.any() if isinstance(figure, np.ndarray) else figure)


def rounded_up(figure: Figure) -> float:
    """Returns the least whole number that is not below ``figure``."""
    if isinstance(figure, np.ndarray):
        return cast("float", np.ceil(figure))
    return float(-(-figure // 1))


def rounded_down(figure: Figure) -> float:
    """Returns the greatest whole number that is not above ``figure``."""
    if isinstance(figure, np.ndarray):
        return cast("float", np.floor(figure))
    return float(figure // 1)


def square_root(figure: Figure) -> float:
    """Returns the square root, entry by entry."""
    if isinstance(figure, np.ndarray):
        return cast("float", np.sqrt(figure))
    return math.sqrt(figure)


def exponential_growth(exponent: Figure) -> float:
    """Returns e to the power of ``exponent``, less 1, exact for small exponents.

    Raises :class:`OverflowError` for a number beyond the range of floats; an array has infinity there.
    """
    if isinstance(exponent, np.ndarray):
        with np.errstate(over="ignore"):
            return cast("float", np.expm1(exponent))
    return math.expm1(exponent)


def natural_log(figure: Figure) -> float:
    """Returns the natural logarithm."""
    if isinstance(figure, np.ndarray):
        return cast("float", np.log(figure))
    return math.log(figure)


def doublings(count: Figure) -> float:
    """Returns the least number of doublings that reach ``count`` from 1."""
    if isinstance(count, np.ndarray):
        return cast("float", np.ceil(np.log2(count)))
    return float(math.ceil(math.log2(count)))


def power_of_two(exponent: Figure) -> float:
    """Returns 2 to a whole power."""
    return cast("float", 2.0**exponent)
