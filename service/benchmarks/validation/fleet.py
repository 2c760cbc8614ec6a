"""Fleet: a figure among those of equal devices, or within its published window while these are few."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from service.benchmarks.validation.case import RuleOutcomes, ValidationCase
from service.benchmarks.verdicts import ResultVerdict, RuleFinding, UncheckedRule

FEWEST_PEERS = 5
"""Least number of nodes of a baseline (benchmark-worker.md, 7.9)."""
LARGEST_Z = 3.5
MAD_TO_DEVIATION = 1.4826


class FleetBaseline(NamedTuple):
    """Middle and scale of the figures of equal devices."""

    middle: float
    scale: float

    def compute_z_score(self, figure: float) -> float:
        """Returns the robust distance of a figure from the middle."""
        return abs(figure - self.middle) / self.scale


def check_fleet(case: ValidationCase) -> RuleOutcomes:
    """Checks ``fleet.outlier`` among at least five peers, and ``fleet.outside_window`` before that."""
    if len(case.peers) >= FEWEST_PEERS:
        beside = compute_baseline(case.peers, least_spread=case.limits.repeat_spread)
        z = beside.compute_z_score(case.figure)
        if z > LARGEST_Z:
            detail = f"robust z among {len(case.peers)} nodes of equal hardware around {beside.middle:.6g}"
            yield RuleFinding("fleet.outlier", ResultVerdict.SUSPECT, detail, z, LARGEST_Z)
        return
    windows = case.result.benchmark.windows
    if not case.is_accelerator or not windows:
        return
    if case.datasheet is None:
        yield UncheckedRule("fleet.outside_window", "which accelerator of the catalog it is, is unknown")
        return
    for window in windows:
        if window.accelerator_id != case.datasheet.accelerator_id:
            continue
        low = window.low if isinstance(window.low, float) else 0.0
        if not low <= case.figure <= window.high:
            limit = window.high if case.figure > window.high else low
            detail = f"figure outside of what is published: {window.source}"
            yield RuleFinding("fleet.outside_window", ResultVerdict.SUSPECT, detail, case.figure, limit)


def compute_baseline(figures: Sequence[float], *, least_spread: float) -> FleetBaseline:
    """Returns middle and scale of figures, leaving out those that lie outside until none does.

    SuperBench draws its baselines so (2.5), with median and 1.4826 MAD (7.9). A figure within
    ``least_spread`` of the middle, as repeats of one node may be, is never outside.
    """
    kept = list(figures)
    while True:
        middle = median(kept)
        deviation = MAD_TO_DEVIATION * median(abs(figure - middle) for figure in kept)
        found = FleetBaseline(middle, max(deviation, least_spread * middle / LARGEST_Z))
        inside = [figure for figure in kept if found.compute_z_score(figure) <= LARGEST_Z]
        if len(inside) == len(kept):
            return found
        kept = inside
