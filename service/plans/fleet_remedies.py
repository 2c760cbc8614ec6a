"""Reasons why a workload of a fleet does not run, and remedies that leave other workloads in place."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from service.planning.cost import round_amount
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.scheduling.schedule import PlacedTask, find_earliest_start, find_least_capacity
from service.plans.fleet_options import (
    FleetOption,
    FleetOptions,
    FleetPool,
    FleetRequestReader,
    get_currency,
    to_moment,
)
from service.schemas.base import MoneyAmount
from service.schemas.fleet_plans import FleetPoolReason, FleetReason, FleetRemedy, UnplacedFleetWorkload
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.workloads import TrainingWorkloadInput

LAST_INSTANT = datetime(2199, 12, 31, tzinfo=UTC)
"""Last day that a question may name."""
_ORDER: Sequence[FleetReason] = ("configuration", "price", "deadline", "devices", "budget")
"""Reasons in order, from the furthest from running to the closest."""


class ReplacementSchedule(NamedTuple):
    """Schedule of the other workloads, with the configurations of every workload by pool."""

    asking: FleetRequestReader
    found: Sequence[Mapping[int, FleetOptions]]
    placed: Sequence[PlacedTask]
    budget: Decimal | None
    notes: AnswerNotes

    @property
    def spent(self) -> Decimal:
        """Cost of the other workloads."""
        return sum((one.mode.cost for one in self.placed), Decimal(0))

    def list_placed(self, pool: int) -> list[PlacedTask]:
        """Returns the other workloads on a pool."""
        return [one for one in self.placed if one.mode.pool == pool]

    def is_affordable(self, option: FleetOption) -> bool:
        """Returns true if the rest of the budget covers the option."""
        return self.budget is None or self.spent + option.mode.cost <= self.budget

    def find_start(self, option: FleetOption, place: int, *, is_timely: bool = True) -> int | None:
        """Returns the earliest start next to the others, within the window if ``is_timely``."""
        window, pool = self.asking.windows[place], option.mode.pool
        latest = window.latest if is_timely else None
        capacity = self.asking.pools[pool].capacity
        return find_earliest_start(self.list_placed(pool), capacity, option.mode, window.earliest, latest)

    def list_larger_options(self, place: int, pool: int, pointer: str) -> Sequence[FleetOption]:
        """Returns configurations on more devices than a pool has. Records a gap if the limit is exceeded."""
        try:
            return self.asking.list_larger_options(place, pool).options
        except PlanningError as error:
            self.notes.add_gap(pointer, error.code, error.detail)
            return ()

    def has_date(self, seconds: int) -> bool:
        """Returns true if a question may name this time."""
        return seconds <= (LAST_INSTANT - self.asking.question.starts_at).total_seconds()

    def format_moment(self, seconds: int) -> str:
        """Returns a time in the format of answers."""
        return f"{to_moment(self.asking.question, seconds).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def to_money(self, amount: Decimal) -> MoneyAmount:
        """Returns an amount in the currency of the costs."""
        code = get_currency(self.asking.question)
        return {"amount": f"{round_amount(amount, code):f}", "currency_code": code}


def to_unplaced(place: int, beside: ReplacementSchedule, pointer: str) -> UnplacedFleetWorkload:
    """Returns the reasons why a workload does not run, by pool, and its remedies; answered at ``pointer``."""
    pools = [_to_reason(place, pool, found, beside) for pool, found in beside.found[place].items()]
    return {
        "workload": beside.asking.question.workloads[place].name,
        "reason": max((each["reason"] for each in pools), key=_ORDER.index),
        "pools": pools,
        "remedies": list(_list_remedies(place, beside, pointer)),
    }


def _to_reason(place: int, pool: int, found: FleetOptions, beside: ReplacementSchedule) -> FleetPoolReason:
    reason: FleetPoolReason = {
        "pool": beside.asking.pools[pool].name,
        "reason": _find_reason(place, found, beside),
    }
    if reason["reason"] == "configuration":
        reason["ruled_out"] = [
            {"constraint": constraint, "candidates": found.ruled_out[constraint]}
            for constraint in PlanConstraint
            if found.ruled_out.get(constraint)
        ]
        reason["pruned"] = [
            {"rule": rule, "candidates": found.pruned[rule]} for rule in PruningRule if found.pruned.get(rule)
        ]
    seconds = [option.candidate.seconds for option in found.options if option.candidate.seconds is not None]
    if seconds and _is_training(place, beside):
        reason["least_duration_seconds"] = min(seconds)
    timely = _select_timely(place, found.options, beside)
    if timely:
        reason["least_cost"] = beside.to_money(min(option.mode.cost for option in timely))
    ends = [end for _, end, _ in _list_late_runs(place, found.options, beside)]
    if ends:
        reason["could_end_at"] = beside.format_moment(min(ends))
    return reason


def _is_training(place: int, beside: ReplacementSchedule) -> bool:
    return isinstance(beside.asking.question.workloads[place].workload, TrainingWorkloadInput)


def _find_reason(place: int, found: FleetOptions, beside: ReplacementSchedule) -> FleetReason:
    if not found.options:
        return "price" if found.has_unpriced else "configuration"
    timely = _select_timely(place, found.options, beside)
    if not timely:
        return "deadline"
    payable = [one for one in timely if beside.budget is None or one.mode.cost <= beside.budget]
    if payable and all(beside.find_start(option, place) is None for option in payable):
        return "devices"
    return "budget"


def _select_timely(
    place: int, options: Sequence[FleetOption], beside: ReplacementSchedule
) -> list[FleetOption]:
    """Returns the options that fit in the window on an empty pool."""
    return [one for one in options if one.mode.seconds <= beside.asking.windows[place].seconds]


def _list_late_runs(
    place: int, options: Sequence[FleetOption], beside: ReplacementSchedule
) -> Iterator[tuple[int, int, FleetOption]]:
    """Yields start and end of a training run next to the others, without a deadline but within the budget."""
    if not _is_training(place, beside):
        return
    for option in options:
        start = beside.find_start(option, place, is_timely=False)
        if (
            start is not None
            and beside.is_affordable(option)
            and beside.has_date(start + option.mode.seconds)
        ):
            yield start, start + option.mode.seconds, option


def _list_remedies(place: int, beside: ReplacementSchedule, pointer: str) -> Iterator[FleetRemedy]:
    for pool, found in beside.found[place].items():
        options = [*found.options, *beside.list_larger_options(place, pool, f"{pointer}/remedies")]
        yield from _list_device_remedies(place, pool, options, beside)
    options = [option for found in beside.found[place].values() for option in found.options]
    late = min(_list_late_runs(place, options, beside), key=lambda one: (one[1], one[2].mode), default=None)
    if late is not None:
        start, end, option = late
        yield {**_to_remedy("deadline", option, start, beside), "finish_by": beside.format_moment(end)}
    yield from _list_budget_remedies(place, options, beside)


_RemedyKind = Literal["devices", "deadline", "budget"]


def _to_remedy(
    change: _RemedyKind, option: FleetOption, start: int, beside: ReplacementSchedule
) -> FleetRemedy:
    remedy: FleetRemedy = {
        "change": change,
        "pool": beside.asking.pools[option.mode.pool].name,
        "accelerator_count": option.space.get_cluster(option.candidate.kept).accelerator_count,
        "starts_at": beside.format_moment(start),
        "ends_at": beside.format_moment(start + option.mode.seconds),
    }
    if option.candidate.cost is not None:
        remedy["cost"] = beside.to_money(option.candidate.cost)
    return remedy


def _list_device_remedies(
    place: int, pool: int, options: Sequence[FleetOption], beside: ReplacementSchedule
) -> Iterator[FleetRemedy]:
    """Yields the smallest addition of whole nodes that lets a workload run in its window and the budget."""
    window, own = beside.asking.windows[place], beside.asking.pools[pool]
    needed = [
        (_round_up_to_nodes(least - own.capacity, own), option.mode, number)
        for number, option in enumerate(options)
        if beside.is_affordable(option)
        and (least := find_least_capacity(beside.list_placed(pool), option.mode, *window)) is not None
    ]
    if not needed:
        return
    added, mode, number = min(needed)
    if added > 0:
        start = find_earliest_start(beside.list_placed(pool), own.capacity + added, mode, *window)
        if start is not None:
            yield {**_to_remedy("devices", options[number], start, beside), "added_devices": added}


def _round_up_to_nodes(devices: int, pool: FleetPool) -> int:
    return math.ceil(devices / pool.node) * pool.node


def _list_budget_remedies(
    place: int, options: Sequence[FleetOption], beside: ReplacementSchedule
) -> Iterator[FleetRemedy]:
    """Yields the least budget that lets a workload run in its window on the present devices."""
    starts = ((beside.find_start(option, place), option) for option in _select_timely(place, options, beside))
    roomy = [(option.mode.cost, start, option) for start, option in starts if start is not None]
    if beside.budget is None or not roomy:
        return
    cost, start, option = min(roomy, key=lambda one: (one[0], one[1], one[2].mode))
    yield {
        **_to_remedy("budget", option, start, beside),
        "budget": beside.to_money(beside.spent + cost),
    }
