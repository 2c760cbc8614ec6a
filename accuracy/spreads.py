"""Spread of the errors outside of a fit, for each kind of answer at each level of evidence."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from accuracy.folds import group_of
from accuracy.metrics import METRICS, SERVING_TARGETS, SERVING_TIMES, MetricFamily
from accuracy.scoring import ScoredRow, percentile
from service.planning.hardware.distance import resolve_family

DIGITS: Final = 6
"""Significant digits of a fitted value."""


def rounded(value: float) -> float:
    """Returns a value rounded to the digits of a fit."""
    return float(f"{value:.{DIGITS - 1}e}")


class MeasuredRatio(NamedTuple):
    """Measured over estimated: 10th percentile, median and 90th percentile.

    For figures around 0 it is their difference in bytes.
    """

    family: str
    level: str
    low: float
    value: float
    high: float
    rows: int


_FEWEST = 5
"""Least number of rows of a spread."""
_TAIL = 0.1


def tail(count: float) -> float:
    """Returns the share of ``count`` rows that leaves a tenth of new ones below: less of few rows, 0 of nine.

    The rank of the k-th of n exchangeable figures is k / (n + 1) (Vovk et al. 2005, section 2.2).
    """
    return max(0.0, (_TAIL * (count + 1) - 1.0) / (count - 1)) if count > 1.0 else 0.0


_ALL_AS_GROUPS: Final = 4
"""Weight of the spread over all software, in groups, against that of one."""


def pooled_ends(
    own: Sequence[float], of_all: Sequence[float], groups: int, as_groups: int = _ALL_AS_GROUPS
) -> tuple[float, float]:
    """Returns the ends of the spread of one software, drawn towards those of all if it has few groups.

    Rows of one group have similar errors: two groups say less about a third than their number of rows
    suggests.
    """
    weight = groups / (groups + as_groups)
    low, high = (
        math.exp(weight * math.log(one) + (1.0 - weight) * math.log(every))
        for one, every in zip(own, of_all, strict=True)
    )
    return low, high


_TOTALS = frozenset({"peak_memory_per_gpu", "gpu_memory_total"})


def _families(one: ScoredRow) -> list[str]:
    """Returns the kinds of answer of a row: of a device in all and under its software, else its metric."""
    metric = METRICS[one.row.metric]
    if metric.family is MetricFamily.SERVING and metric.spread:
        # The levels of serving include the engine.
        return [resolve_family(metric.spread, all_at_once=one.all_at_once and metric.spread in SERVING_TIMES)]
    if metric.spread:
        family = metric.spread
    elif one.row.metric in _TOTALS:
        family = f"{one.row.kind}_memory"
    else:
        return [one.row.metric]
    return [family, f"{family}/{one.software}"] if one.software else [family]


def is_of_serving(family: str) -> bool:
    """Returns true if a kind of answer belongs to serving, under a steady load or of a burst."""
    return family.partition("/")[0] in SERVING_TARGETS


class FamilyRatios(NamedTuple):
    """Measured over estimated of the rows of a family, and their groups."""

    figures: list[float]
    groups: list[str]
    """Group of each figure."""

    @property
    def ends(self) -> tuple[float, float]:
        """Figures that leave a tenth of new ones below, and above."""
        share = tail(len(self.figures))
        return percentile(self.figures, share), percentile(self.figures, 1.0 - share)

    @property
    def ends_by_group(self) -> tuple[float, float]:
        """Figures that leave a tenth of new ones below and above, with groups weighed by root of rows.

        Rows of unequal weight count as (sum of w)^2 / (sum of w^2) (Kish 1965).
        """
        sizes = Counter(self.groups)
        weighted = sorted(
            (figure, sizes[group] ** -0.5) for figure, group in zip(self.figures, self.groups, strict=True)
        )
        weights = [weight for _, weight in weighted]
        whole = math.fsum(weights)
        share = tail(whole**2 / math.fsum(weight**2 for weight in weights))
        passed = list(accumulate(weights))
        places = (bisect_left(passed, whole * end) for end in (share, 1.0 - share))
        low, high = (weighted[min(place, len(weighted) - 1)][0] for place in places)
        return low, high


def ratios_of(scored: Sequence[ScoredRow]) -> dict[tuple[str, str], FamilyRatios]:
    """Returns the ratios of rows by kind of answer and level of evidence."""
    ratios: dict[tuple[str, str], FamilyRatios] = {}
    for one in scored:
        metric = METRICS[one.row.metric]
        if one.figure is None or metric.unit == "bool" or not one.basis:
            continue
        measured, estimated = one.row.value, one.figure.value
        if one.ways:
            # Open facts of a row widen its interval separately: the spread is what lies outside of that.
            estimated = min(max(measured, one.ways[0]), one.ways[1])
        if metric.signed:
            found = measured - estimated
        elif measured > 0.0 < estimated:
            found = measured / estimated
            if metric.family is MetricFamily.THROUGHPUT and not metric.counts_time:
                # The time of a step is the inverse of its rate.
                found = estimated / measured
        else:
            continue
        for family in _families(one):
            of = ratios.setdefault((family, one.basis), FamilyRatios([], []))
            of.figures.append(found)
            of.groups.append(group_of(one.row))
    return ratios


def residuals(scored: Sequence[ScoredRow]) -> list[MeasuredRatio]:
    """Returns the spread of estimates by kind of answer and level of evidence, outside of their fit."""
    ratios = ratios_of(scored)
    found = []
    for (family, level), of in sorted(ratios.items()):
        if len(of.figures) < _FEWEST:
            continue
        low, high = of.ends
        if "/" in family:
            every = ratios[family.partition("/")[0], level]
            low, high = pooled_ends(of.ends, every.ends, len(set(of.groups)))
        value = percentile(of.figures, 0.5)
        found.append(
            MeasuredRatio(family, level, rounded(low), rounded(value), rounded(high), len(of.figures))
        )
    return found
