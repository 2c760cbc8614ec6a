"""Comparison of the cost of the same work done in two ways.

Both ways share the errors of their estimates as far as they share model, software, device, precision and
layout: one draw of an error moves both (common random numbers: Kahn and Marshall 1953, Methods of Reducing
Sample Size in Monte Carlo Computations). The shared part of the variance is that of measured runs
(:func:`service.planning.hardware.local_evidence.compute_correlation`); it is all of it for one run at two
prices, and nothing between different devices. Errors of prices are shared where all unit prices are equal.
"""

import math
from typing import NamedTuple

from service.planning.cost import compare_equal_work
from service.planning.cost.charges import CurrencyCharges
from service.planning.estimates.runs import Run, ServingRun, TrainingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.estimates.settings import build_case_setting
from service.planning.hardware.local_evidence import RunSetting, compute_correlation
from service.planning.quantity import (
    EvidenceBasis,
    LogReach,
    Quantity,
    compute_log_reach,
    compute_ratio_reach,
    scaled,
    weakest,
)


class RunTotal(NamedTuple):
    """A run with its total cost and its duration."""

    run: Run
    total: CurrencyCharges
    duration: Quantity


class CostRatios(NamedTuple):
    """Ratios of time, device-hours and cost of the first run to the second."""

    time: Quantity
    device_hours: Quantity
    cost: Quantity


def compare_costs_of_runs(first: RunTotal, second: RunTotal) -> CostRatios:
    """Returns the ratios of two runs of the same work; totals are in one currency, the second above 0."""
    basis = weakest(first.total.quantity, second.total.quantity, first.duration, second.duration)
    shared = _compute_shared_error(first, second)
    devices = [each.run.case.cluster.accelerator_count for each in (first, second)]
    cost, against = first.total.quantity, second.total.quantity
    value = compare_equal_work(
        cost.value,
        first.duration.value * devices[0],
        first.duration.value,
        against=(against.value, second.duration.value * devices[1], second.duration.value),
    )
    timed = compute_log_reach(first.duration), compute_log_reach(second.duration)
    time = _build_ratio(value.time, basis, (*timed, shared))
    hours = scaled(time, value.device_hours / value.time)
    if min(cost.low, against.low) <= 0.0:
        # A cost that may be 0 has no logarithm; its ends are used directly, as if independent.
        ends = Quantity(value.cost, cost.low / against.high, cost.high / against.low, basis)
        return CostRatios(time, hours, ends)
    whole = compute_log_reach(cost), compute_log_reach(against)
    by_time = timed[0].limit_to(whole[0]), timed[1].limit_to(whole[1])
    beside = whole[0].subtract(by_time[0]), whole[1].subtract(by_time[1])
    same_prices = float(_list_prices(first.total) == _list_prices(second.total))
    ratio = _build_ratio(value.cost, basis, (*by_time, shared), (*beside, same_prices))
    return CostRatios(time, hours, ratio)


def _build_ratio(value: float, basis: EvidenceBasis, *parts: tuple[LogReach, LogReach, float]) -> Quantity:
    """Returns a ratio with an interval of independent parts: reaches of both sides and their correlation."""
    up = math.hypot(*(compute_ratio_reach(one, other, shared) for one, other, shared in parts))
    down = math.hypot(*(compute_ratio_reach(other, one, shared) for one, other, shared in parts))
    return Quantity(value, value * math.exp(-down), value * math.exp(up), basis)


def _list_prices(charges: CurrencyCharges) -> list[tuple[object, ...]]:
    return [(line.name, line.unit, line.unit_price, line.source) for line in charges.lines]


def _compute_shared_error(first: RunTotal, second: RunTotal) -> float:
    """Returns the share of the variance of time that both runs have in common."""
    one, other = _find_setting(first.run), _find_setting(second.run)
    if one is None or other is None:
        same_devices = first.run.case.cluster == second.run.case.cluster
        same_layout = first.run.case.layout == second.run.case.layout
        return float(one is other and same_devices and same_layout and first.duration == second.duration)
    if one == other:
        return 1.0
    family = "training_step" if isinstance(first.run, TrainingRun) else "serving_throughput"
    known = first.run.case.curves.deviations
    burst = one.group.kind.removeprefix("serving")
    deviations = known.get(f"{family}{burst}") or known.get(family)
    return 0.0 if deviations is None else compute_correlation(deviations, one, other)


def _find_setting(run: Run) -> RunSetting | None:
    """Returns the setting of a run, by which it shares errors with others; None for forward passes."""
    if isinstance(run, TrainingRun):
        return build_case_setting(run.case)
    if isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
        return run.serving.setting
    return None
