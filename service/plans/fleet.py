"""Several workloads over pools of devices and a budget: who runs where and when, and what does not fit."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from service.kit.http.wanted import check_wanted
from service.planning.cost import rounded
from service.planning.errors import PlanningError
from service.planning.notes import Notes
from service.planning.scheduling.schedule import Fleet, Placed, Schedule, Task, schedule
from service.plans.answer import row_of
from service.plans.fleet_options import (
    Asking,
    Option,
    Options,
    budget_of,
    currency_of,
    moment,
    pointer_of,
    pools_of,
)
from service.plans.fleet_remedies import Beside, unplaced
from service.resolve.catalog import CatalogView
from service.schemas.answer import evidence
from service.schemas.base import MoneyAmount, QuantityAnswer
from service.schemas.fleet_plans import (
    FleetAnswer,
    FleetAssignment,
    FleetBound,
    FleetQuestion,
    MonthSpend,
    PoolOccupation,
    PoolSpan,
)
from service.schemas.workloads import TrainingWorkloadInput


def estimate_fleet(question: FleetQuestion, catalog: CatalogView) -> FleetAnswer:
    """Who runs where, on how many devices and when, what that costs, and what does not fit."""
    return _Answering(question, catalog).answer()


class _Assigned(NamedTuple):
    placed: Placed
    option: Option


class _Answering:
    def __init__(self, question: FleetQuestion, catalog: CatalogView) -> None:
        self.asked, self.catalog = question, catalog
        whole = question.starts_at + timedelta(microseconds=-question.starts_at.microsecond % 1_000_000)
        self.question = question = question.model_copy(update={"starts_at": whole})
        _check_names(question)
        self.budget = budget_of(question, catalog)
        self.pools = pools_of(question, catalog)
        self.asking = Asking(question, catalog, self.pools)
        self.code = currency_of(question)
        # What is too much is refused before anything is searched.
        for place in range(len(question.workloads)):
            for pool in self.asking.allowed(place):
                self.asking.count(place, pool)
        # By workload and pool.
        self.found: Sequence[Mapping[int, Options]] = [
            {pool: self.asking.options(place, pool) for pool in self.asking.allowed(place)}
            for place in range(len(question.workloads))
        ]

    def answer(self) -> FleetAnswer:
        capacities = tuple(pool.capacity for pool in self.pools)
        fleet = Fleet(capacities, self.budget, self.question.goal)
        tasks = [self._task(place) for place in range(len(self.found))]
        made = schedule(tasks, fleet, between=check_wanted)
        assigned = [_Assigned(placed, self._option(placed)) for placed in made.placed]
        notes = Notes()
        beside = Beside(self.asking, self.found, made.placed, self.budget, notes)
        missing = sorted(set(range(len(self.found))) - {one.task for one in made.placed})
        answer: FleetAnswer = {
            "assignments": [self._assignment(one, number, notes) for number, one in enumerate(assigned)],
            "unplaced": [
                unplaced(place, beside, f"/unplaced/{number}") for number, place in enumerate(missing)
            ],
            "is_optimal": made.is_optimal,
            "bound": self._bound(made),
            "pools": [self._occupation(number, made.placed) for number in range(len(self.pools))],
            "months": [],
            "currency_code": self.code,
            "evidence": evidence(self.asked, notes, self.catalog.revision),
            "warnings": notes.warnings,
            "gaps": notes.gaps,
        }
        if all(one.option.candidate.cost is not None for one in assigned):
            answer["cost"] = self._money(_spent(made.placed))
            answer["months"] = list(self._months(made.placed))
        else:
            notes.gap("/cost", "PRICE_REQUIRED", "the cost of a workload that runs is not known")
        return answer

    def _task(self, place: int) -> Task:
        window = self.asking.windows[place]
        modes = (option.mode for found in self.found[place].values() for option in found.options)
        return Task(self.question.workloads[place].priority, *window, tuple(modes))

    def _option(self, placed: Placed) -> Option:
        options = self.found[placed.task][placed.mode.pool].options
        return next(option for option in options if option.mode == placed.mode)

    def _assignment(self, one: _Assigned, number: int, notes: Notes) -> FleetAssignment:
        placed, option = one
        own, pool = Notes(), self.pools[placed.mode.pool]
        at = f"/assignments/{number}/row"
        row = row_of(option.space, option.candidate, 1, option.runs, notes=own, pointer=at)
        for said in (*own.warnings, *own.sources):
            said["pointer"] = pointer_of(said["pointer"], placed.task, pool)
        notes.take(own)
        return {
            "workload": self.question.workloads[placed.task].name,
            "pool": pool.name,
            "devices_taken": placed.mode.devices,
            "starts_at": self._at(placed.start),
            "ends_at": self._at(placed.end),
            "may_end_late": self._may_end_late(placed, row.get("duration_seconds")),
            "row": row,
        }

    def _may_end_late(self, placed: Placed, duration: QuantityAnswer | None) -> bool:
        is_training = isinstance(self.question.workloads[placed.task].workload, TrainingWorkloadInput)
        if not is_training or duration is None:
            return False
        return placed.start + duration["high"] > self.asking.windows[placed.task].latest

    def _bound(self, made: Schedule) -> FleetBound:
        least = made.bound.least_figure
        most = made.bound.most_placed
        found: FleetBound = {
            "most_workloads": [{"priority": one, "workloads": most[one]} for one in sorted(most)],
            "most_in_all": made.bound.most_in_all,
        }
        if self.question.goal == "cheapest":
            found["least_cost"] = self._money(least)
        else:
            found["least_seconds"] = float(least)
        return found

    def _occupation(self, number: int, placed: Sequence[Placed]) -> PoolOccupation:
        own = [one for one in placed if one.mode.pool == number]
        capacity = self.pools[number].capacity
        lasting = int((self.question.ends_at - self.question.starts_at).total_seconds())
        until = max([lasting, *(one.end for one in own)])
        used = sum(one.mode.devices * one.mode.seconds for one in own)
        return {
            "pool": self.pools[number].name,
            "accelerator_count": capacity,
            "share_taken": used / (capacity * until),
            "spans": list(self._spans(own)),
        }

    def _spans(self, own: Sequence[Placed]) -> Iterator[PoolSpan]:
        moments = sorted({moment for one in own for moment in (one.start, one.end)})
        for begin, end in pairwise(moments):
            running = [one for one in own if one.start <= begin < one.end]
            if running:
                yield {
                    "starts_at": self._at(begin),
                    "ends_at": self._at(end),
                    "devices_taken": sum(one.mode.devices for one in running),
                    "workloads": [self.question.workloads[one.task].name for one in running],
                }

    def _months(self, placed: Sequence[Placed]) -> Iterator[MonthSpend]:
        """Spend by calendar month; what is spent until the end of each is rounded, so that months add up."""
        before = Decimal(0)
        for begin, end in _calendar(self._when(placed)):
            until = (end - self.question.starts_at).total_seconds()
            spent = rounded(_spent_until(placed, Decimal(str(until))), self.code)
            found: MonthSpend = {
                "month": f"{begin:%Y-%m}",
                "spend": self._money(spent - before),
                "spend_so_far": self._money(spent),
            }
            if self.budget is not None:
                found["budget_left"] = self._money(self.budget - spent)
            yield found
            before = spent

    def _when(self, placed: Sequence[Placed]) -> list[datetime]:
        return [
            moment(self.question, second).astimezone(UTC) for one in placed for second in (one.start, one.end)
        ]

    def _money(self, amount: Decimal) -> MoneyAmount:
        return {"amount": f"{rounded(amount, self.code):f}", "currency_code": self.code}

    def _at(self, seconds: int) -> str:
        return written(moment(self.question, seconds))


def written(when: datetime) -> str:
    """A time of the answer."""
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _check_names(question: FleetQuestion) -> None:
    seen = set[str]()
    for place, workload in enumerate(question.workloads):
        if workload.name in seen:
            raise PlanningError("NAME_TWICE", f"/workloads/{place}/name", "another workload has this name")
        seen.add(workload.name)


def _calendar(moments: Sequence[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Calendar months from the first moment to the last."""
    if not moments:
        return
    begin = min(moments).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while begin < max(moments):
        end = (begin + timedelta(days=31)).replace(day=1)
        yield begin, end
        begin = end


def _spent(placed: Sequence[Placed]) -> Decimal:
    return sum((one.mode.cost for one in placed), Decimal(0))


def _spent_until(placed: Sequence[Placed], seconds: Decimal) -> Decimal:
    """What workloads cost until a moment, spread evenly over their time."""
    parts = (
        one.mode.cost * max(Decimal(0), min(Decimal(1), (seconds - one.start) / one.mode.seconds))
        for one in placed
    )
    return sum(parts, Decimal(0))
