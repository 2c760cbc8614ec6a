"""Costs of equal work: two ways of doing it, a request, a million tokens, storage and egress."""

from typing import NamedTuple

from service.planning.cost.ownership import MONTH_HOURS
from service.planning.units import GIGABYTE_BYTES, HOUR_SECONDS


class EqualWork(NamedTuple):
    """Ratios of one way of doing a piece of work to another."""

    time: float
    device_hours: float
    cost: float


def compare_equal_work(
    cost: float, device_hours: float, seconds: float, *, against: tuple[float, float, float]
) -> EqualWork:
    """Compares the cost of the same work; ``against`` is cost, device-hours and seconds of the other way.

    Hours on fewer devices are cheaper but more of them are needed: only whole runs compare.
    """
    other_cost, other_hours, other_seconds = against
    return EqualWork(seconds / other_seconds, device_hours / other_hours, cost / other_cost)


def gigabyte_months(kept_bytes: float, seconds: float) -> float:
    """Returns gigabytes (1e9 bytes) times months (730.5 hours)."""
    return kept_bytes / GIGABYTE_BYTES * seconds / (MONTH_HOURS * HOUR_SECONDS)


def apportion_by_tokens(
    prefill_share: float, input_tokens: float, output_tokens: float
) -> tuple[float, float]:
    """Returns the shares of a total that one input and one output token bear.

    Prompts bear the share of the devices' busy time in which they are computed, generated tokens the rest;
    idle time follows the same shares. A model that generates nothing has all of it on its inputs.
    """
    prompts = prefill_share if output_tokens else 1.0
    each = prompts / input_tokens if input_tokens else 0.0
    return each, (1.0 - prompts) / output_tokens if output_tokens else 0.0
