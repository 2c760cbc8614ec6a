"""Rounding of the parts of a whole, so that printed parts sum to the printed whole."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from service.kit.locales import localize_number

_SUM = 1e-6
"""Relative tolerance between a whole and the sum of its parts."""
_WHOLE_DIGITS = 4
_PART_DIGITS = 2
_MOST_MORE = 3


class PrintedSum(NamedTuple):
    """Formatted parts and their formatted whole."""

    parts: list[str]
    whole: str


def is_sum_of(values: Sequence[float], whole: float) -> bool:
    """Returns true if values sum to a whole."""
    return math.isclose(math.fsum(values), whole, rel_tol=_SUM, abs_tol=0.0)


def round_to_sum(values: Sequence[float], whole: float, places: int | None = None) -> PrintedSum:
    """Returns parts and whole with the same number of decimals, chosen so that printed parts sum to it.

    If no number of decimals does, parts are rounded down and the missing units go to those with the largest
    remainders: each differs from its value by less than a unit of its last place.
    """
    least, most = (places, places) if places is not None else _count_decimals(values, whole)
    for tried in range(least, most + 1):
        counts = [round(value * 10**tried) for value in values]
        if sum(counts) == round(whole * 10**tried):
            return _build_printed(counts, values, whole, tried)
    return _build_printed(_apportion_counts(values, whole, most), values, whole, most)


def _apportion_counts(values: Sequence[float], whole: float, places: int) -> list[int]:
    scaled = [value * 10**places for value in values]
    counts = [math.floor(value) for value in scaled]
    missing = round(whole * 10**places) - sum(counts)
    if not is_sum_of(values, whole) or not 0 <= missing <= len(counts):
        return [round(value) for value in scaled]
    by_loss = sorted(range(len(counts)), key=lambda place: counts[place] - scaled[place])
    for place in by_loss[:missing]:
        counts[place] += 1
    return counts


def _build_printed(counts: Sequence[int], values: Sequence[float], whole: float, places: int) -> PrintedSum:
    parts = [_format_count(count, value, places) for count, value in zip(counts, values, strict=True)]
    return PrintedSum(parts, _format_count(round(whole * 10**places), whole, places))


def round_shares(values: Sequence[float], whole: float) -> PrintedSum:
    """Returns shares of a whole in percent, which sum to 100."""
    if not whole:
        return PrintedSum([""] * len(values), "")
    found = round_to_sum([value / whole * 100 for value in values], 100.0, places=1)
    return PrintedSum(
        [f"{text}\N{NO-BREAK SPACE}%" for text in found.parts], f"{found.whole}\N{NO-BREAK SPACE}%"
    )


def _count_decimals(values: Sequence[float], whole: float) -> tuple[int, int]:
    """Returns fewest and most decimals: four digits of the whole, two of small parts if few suffice."""
    sizes = [abs(value) for value in (*values, whole) if value]
    if not sizes or all(value == int(value) for value in (*values, whole)):
        return 0, 0
    enough = max(0, _WHOLE_DIGITS - 1 - math.floor(math.log10(max(sizes))))
    wanted = _PART_DIGITS - 1 - math.floor(math.log10(min(sizes)))
    most = enough + _MOST_MORE
    return max(enough, min(wanted, most)), most


def _format_count(count: int, value: float, places: int) -> str:
    if not count and value > 0:
        return localize_number(f"< {10.0**-places:.{places}f}")
    return localize_number(f"{count / 10**places:,.{places}f}")
