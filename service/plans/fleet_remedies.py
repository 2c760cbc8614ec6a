"""Why a workload of a fleet does not run, and what would let it, with the others where they are."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

from service.planning.cost import rounded
from service.planning.errors import PlanningError
from service.planning.notes import Notes
from service.planning.scheduling.schedule import Placed, earliest_start, least_capacity
from service.plans.fleet_options import Asking, Option, Options, Pool, currency_of, moment
from service.schemas.base import MoneyAmount
from service.schemas.fleet_plans import FleetReason, FleetRemedy, PoolReason, UnplacedWorkload
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.workloads import TrainingWorkloadInput

LAST_INSTANT = datetime(2199, 12, 31, tzinfo=UTC)
"""The last day that questions may name."""
_ORDER: Sequence[FleetReason] = ("configuration", "price", "deadline", "devices", "budget")
"""The later, the closer to running."""


class Beside(NamedTuple):
    """The schedule that others keep, with the configurations of every workload by pool."""

    asking: Asking
    found: Sequence[Mapping[int, Options]]
    placed: Sequence[Placed]
    budget: Decimal | None
    notes: Notes

    @property
    def spent(self) -> Decimal:
        """By the others."""
        return sum((one.mode.cost for one in self.placed), Decimal(0))

    def on(self, pool: int) -> list[Placed]:
        """Others on a pool."""
        return [one for one in self.placed if one.mode.pool == pool]

    def is_affordable(self, option: Option) -> bool:
        """Whether what others leave of the budget pays for it."""
        return self.budget is None or self.spent + option.mode.cost <= self.budget

    def start(self, option: Option, place: int, *, is_timely: bool = True) -> int | None:
        """The earliest start beside the others, and within the window where it has to be done in time."""
        window, pool = self.asking.windows[place], option.mode.pool
        latest = window.latest if is_timely else None
        capacity = self.asking.pools[pool].capacity
        return earliest_start(self.on(pool), capacity, option.mode, window.earliest, latest)

    def more(self, place: int, pool: int, pointer: str) -> Sequence[Option]:
        """Configurations on more devices than a pool has; a gap where more cannot be looked at."""
        try:
            return self.asking.beyond(place, pool).options
        except PlanningError as error:
            self.notes.gap(pointer, error.code, error.detail)
            return ()

    def has_date(self, seconds: int) -> bool:
        """Whether a time can be asked for."""
        return seconds <= (LAST_INSTANT - self.asking.question.starts_at).total_seconds()

    def at(self, seconds: int) -> str:
        """A time of the answer."""
        return f"{moment(self.asking.question, seconds).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    def money(self, amount: Decimal) -> MoneyAmount:
        """An amount of the answer."""
        code = currency_of(self.asking.question)
        return {"amount": f"{rounded(amount, code):f}", "currency_code": code}


def unplaced(place: int, beside: Beside, pointer: str) -> UnplacedWorkload:
    """Why a workload does not run, pool by pool, and what would let it; answered at a ``pointer``."""
    pools = [_reason(place, pool, found, beside) for pool, found in beside.found[place].items()]
    return {
        "workload": beside.asking.question.workloads[place].name,
        "reason": max((each["reason"] for each in pools), key=_ORDER.index),
        "pools": pools,
        "remedies": list(_remedies(place, beside, pointer)),
    }


def _reason(place: int, pool: int, found: Options, beside: Beside) -> PoolReason:
    reason: PoolReason = {"pool": beside.asking.pools[pool].name, "reason": _why(place, found, beside)}
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
    timely = _timely(place, found.options, beside)
    if timely:
        reason["least_cost"] = beside.money(min(option.mode.cost for option in timely))
    ends = [end for _, end, _ in _late(place, found.options, beside)]
    if ends:
        reason["could_end_at"] = beside.at(min(ends))
    return reason


def _is_training(place: int, beside: Beside) -> bool:
    return isinstance(beside.asking.question.workloads[place].workload, TrainingWorkloadInput)


def _why(place: int, found: Options, beside: Beside) -> FleetReason:
    if not found.options:
        return "price" if found.has_unpriced else "configuration"
    timely = _timely(place, found.options, beside)
    if not timely:
        return "deadline"
    payable = [one for one in timely if beside.budget is None or one.mode.cost <= beside.budget]
    if payable and all(beside.start(option, place) is None for option in payable):
        return "devices"
    return "budget"


def _timely(place: int, options: Sequence[Option], beside: Beside) -> list[Option]:
    """Those that are done in the window, if they are alone."""
    return [one for one in options if one.mode.seconds <= beside.asking.windows[place].seconds]


def _late(place: int, options: Sequence[Option], beside: Beside) -> Iterator[tuple[int, int, Option]]:
    """Start and end of a training run beside the others, whenever that is, within the budget."""
    if not _is_training(place, beside):
        return
    for option in options:
        start = beside.start(option, place, is_timely=False)
        if (
            start is not None
            and beside.is_affordable(option)
            and beside.has_date(start + option.mode.seconds)
        ):
            yield start, start + option.mode.seconds, option


def _remedies(place: int, beside: Beside, pointer: str) -> Iterator[FleetRemedy]:
    for pool, found in beside.found[place].items():
        options = [*found.options, *beside.more(place, pool, f"{pointer}/remedies")]
        yield from _more_devices(place, pool, options, beside)
    options = [option for found in beside.found[place].values() for option in found.options]
    late = min(_late(place, options, beside), key=lambda one: (one[1], one[2].mode), default=None)
    if late is not None:
        start, end, option = late
        yield {**_remedy("deadline", option, start, beside), "finish_by": beside.at(end)}
    yield from _more_budget(place, options, beside)


_Change = Literal["devices", "deadline", "budget"]


def _remedy(change: _Change, option: Option, start: int, beside: Beside) -> FleetRemedy:
    remedy: FleetRemedy = {
        "change": change,
        "pool": beside.asking.pools[option.mode.pool].name,
        "accelerator_count": option.space.cluster_of(option.candidate.kept).accelerator_count,
        "starts_at": beside.at(start),
        "ends_at": beside.at(start + option.mode.seconds),
    }
    if option.candidate.cost is not None:
        remedy["cost"] = beside.money(option.candidate.cost)
    return remedy


def _more_devices(place: int, pool: int, options: Sequence[Option], beside: Beside) -> Iterator[FleetRemedy]:
    """Fewest devices more, in whole nodes, with which it runs on a pool in its window and the budget."""
    window, own = beside.asking.windows[place], beside.asking.pools[pool]
    needed = [
        (_whole(least - own.capacity, own), option.mode, number)
        for number, option in enumerate(options)
        if beside.is_affordable(option)
        and (least := least_capacity(beside.on(pool), option.mode, *window)) is not None
    ]
    if not needed:
        return
    added, mode, number = min(needed)
    if added > 0:
        start = earliest_start(beside.on(pool), own.capacity + added, mode, *window)
        if start is not None:
            yield {**_remedy("devices", options[number], start, beside), "added_devices": added}


def _whole(devices: int, pool: Pool) -> int:
    return math.ceil(devices / pool.node) * pool.node


def _more_budget(place: int, options: Sequence[Option], beside: Beside) -> Iterator[FleetRemedy]:
    """The least budget with which it runs in its window on the devices that there are."""
    starts = ((beside.start(option, place), option) for option in _timely(place, options, beside))
    roomy = [(option.mode.cost, start, option) for start, option in starts if start is not None]
    if beside.budget is None or not roomy:
        return
    cost, start, option = min(roomy, key=lambda one: (one[0], one[1], one[2].mode))
    yield {
        **_remedy("budget", option, start, beside),
        "budget": beside.money(beside.spent + cost),
    }
