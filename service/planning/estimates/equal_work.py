"""Comparison of the cost of the same work done in two ways."""

from typing import NamedTuple

from service.planning.cost import EqualWork, compare_equal_work
from service.planning.cost.charges import CurrencyCharges
from service.planning.estimates.runs import Run
from service.planning.quantity import Quantity, weakest


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
    value, low, high = (_compare_ends(first, one, second, other) for one, other in ((0, 0), (1, 2), (2, 1)))
    basis = weakest(first.total.quantity, second.total.quantity, first.duration, second.duration)
    return CostRatios(
        Quantity(value.time, low.time, high.time, basis),
        Quantity(value.device_hours, low.device_hours, high.device_hours, basis),
        Quantity(value.cost, low.cost, high.cost, basis),
    )


def _compare_ends(first: RunTotal, one: int, second: RunTotal, other: int) -> EqualWork:
    """Compares the first run at one end of its cost and time with the second at another end."""
    (cost, seconds, devices), (against, lasting, others) = (
        (each.total.quantity[:3][end], each.duration[:3][end], each.run.case.cluster.accelerator_count)
        for each, end in ((first, one), (second, other))
    )
    return compare_equal_work(cost, seconds * devices, seconds, against=(against, lasting * others, lasting))
