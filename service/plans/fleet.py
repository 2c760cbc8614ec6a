"""Schedule of several workloads on pools of devices within a budget."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from service.kit.http.cancellation import check_cancelled
from service.planning.cost import round_amount
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.scheduling.schedule import (
    FleetDevices,
    FleetSchedule,
    FleetTask,
    PlacedTask,
    find_schedule,
)
from service.plans.answer import build_row
from service.plans.defaults import LEVELS_MISSED
from service.plans.fleet_options import (
    FleetOption,
    FleetOptions,
    FleetRequestReader,
    build_pools,
    get_currency,
    map_pointer,
    resolve_budget,
    to_moment,
)
from service.plans.fleet_remedies import ReplacementSchedule, to_unplaced
from service.plans.space import SearchOutcome, SearchPiece
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence
from service.schemas.base import MoneyAmount, QuantityEstimate
from service.schemas.fleet_plans import (
    FleetAssignment,
    FleetBound,
    FleetMonthlySpend,
    FleetPlan,
    FleetPlanRequest,
    FleetPoolOccupation,
    FleetPoolSpan,
)
from service.schemas.workloads import TrainingWorkloadInput


def estimate_fleet(question: FleetPlanRequest, catalog: CatalogView) -> FleetPlan:
    """Returns the schedule of a fleet with its costs, and the workloads that do not fit."""
    return _FleetAnswerBuilder(question, catalog).build_answer()


def split_fleet(question: FleetPlanRequest, catalog: CatalogView) -> tuple[SearchPiece, ...]:
    """Returns the pieces of the search of a fleet, each of a workload on a pool."""
    asking = _read_fleet(question, catalog)
    asking.count_all_configurations()
    return asking.list_pieces()


def search_fleet_piece(question: FleetPlanRequest, catalog: CatalogView, piece: SearchPiece) -> SearchOutcome:
    """Returns the outcome of one piece of the search of a fleet."""
    return _read_fleet(question, catalog).search_piece(piece)


def schedule_fleet(
    question: FleetPlanRequest, catalog: CatalogView, outcomes: Iterable[SearchOutcome]
) -> FleetPlan:
    """Returns the schedule of a fleet from the outcomes of all pieces, in the order of the pieces."""
    return _FleetAnswerBuilder(question, catalog, outcomes).build_answer()


def _read_fleet(question: FleetPlanRequest, catalog: CatalogView) -> FleetRequestReader:
    """Returns the reader of a question that starts at a whole second."""
    whole = question.starts_at + timedelta(microseconds=-question.starts_at.microsecond % 1_000_000)
    question = question.model_copy(update={"starts_at": whole})
    _check_names(question)
    resolve_budget(question, catalog)
    return FleetRequestReader(question, catalog, build_pools(question, catalog))


class _AssignedWorkload(NamedTuple):
    placed: PlacedTask
    option: FleetOption


class _FleetAnswerBuilder:
    def __init__(
        self,
        question: FleetPlanRequest,
        catalog: CatalogView,
        outcomes: Iterable[SearchOutcome] | None = None,
    ) -> None:
        self.asked, self.catalog = question, catalog
        self.asking = _read_fleet(question, catalog)
        self.question = question = self.asking.question
        self.budget, self.code = resolve_budget(question, catalog), get_currency(question)
        self.pools = self.asking.pools
        self.asking.count_all_configurations()
        if outcomes is not None:
            self.asking.take_outcomes(outcomes)
        # Options by workload and pool.
        self.found: Sequence[Mapping[int, FleetOptions]] = [
            {pool: self.asking.list_options(place, pool) for pool in self.asking.list_allowed_pools(place)}
            for place in range(len(question.workloads))
        ]

    def build_answer(self) -> FleetPlan:
        capacities = tuple(pool.capacity for pool in self.pools)
        fleet = FleetDevices(capacities, self.budget, self.question.goal)
        tasks = [self._build_task(place) for place in range(len(self.found))]
        made = find_schedule(tasks, fleet, between=check_cancelled)
        assigned = [_AssignedWorkload(placed, self._find_option(placed)) for placed in made.placed]
        notes = AnswerNotes()
        beside = ReplacementSchedule(self.asking, self.found, made.placed, self.budget, notes)
        missing = sorted(set(range(len(self.found))) - {one.task for one in made.placed})
        answer: FleetPlan = {
            "assignments": [self._to_assignment(one, number, notes) for number, one in enumerate(assigned)],
            "unplaced": [
                to_unplaced(place, beside, f"/unplaced/{number}") for number, place in enumerate(missing)
            ],
            "is_optimal": made.is_optimal,
            "bound": self._to_bound(made),
            "pools": [self._to_occupation(number, made.placed) for number in range(len(self.pools))],
            "months": [],
            "currency_code": self.code,
            "evidence": to_evidence(self.asked, notes, self.catalog.revision),
            "defaults": notes.defaults,
            "warnings": notes.warnings,
            "gaps": notes.gaps,
        }
        if all(one.option.candidate.cost is not None for one in assigned):
            answer["cost"] = self._to_money(_sum_cost(made.placed))
            answer["months"] = list(self._list_months(made.placed))
        else:
            notes.add_gap("/cost", "PRICE_REQUIRED", "the cost of a scheduled workload is unknown")
        return answer

    def _build_task(self, place: int) -> FleetTask:
        window = self.asking.windows[place]
        modes = (option.mode for found in self.found[place].values() for option in found.options)
        return FleetTask(self.question.workloads[place].priority, *window, tuple(modes))

    def _find_option(self, placed: PlacedTask) -> FleetOption:
        options = self.found[placed.task][placed.mode.pool].options
        return next(option for option in options if option.mode == placed.mode)

    def _to_assignment(self, one: _AssignedWorkload, number: int, notes: AnswerNotes) -> FleetAssignment:
        placed, option = one
        filled = [each.copy() for each in option.space.defaults if each["pointer"].startswith("/workload")]
        missed = [each.copy() for each in option.space.warnings if each["code"] == LEVELS_MISSED]
        own, pool = AnswerNotes(missed, defaults=filled), self.pools[placed.mode.pool]
        at = f"/assignments/{number}/row"
        row = build_row(option.space, option.candidate, 1, option.runs, notes=own, pointer=at)
        for said in (*own.warnings, *own.sources, *own.defaults):
            said["pointer"] = map_pointer(said["pointer"], placed.task, pool)
        notes.merge(own)
        return {
            "workload": self.question.workloads[placed.task].name,
            "pool": pool.name,
            "devices_taken": placed.mode.devices,
            "starts_at": self._format_moment(placed.start),
            "ends_at": self._format_moment(placed.end),
            "may_end_late": self._may_end_late(placed, row.get("duration_seconds")),
            "row": row,
        }

    def _may_end_late(self, placed: PlacedTask, duration: QuantityEstimate | None) -> bool:
        is_training = isinstance(self.question.workloads[placed.task].workload, TrainingWorkloadInput)
        if not is_training or duration is None:
            return False
        return placed.start + duration["high"] > self.asking.windows[placed.task].latest

    def _to_bound(self, made: FleetSchedule) -> FleetBound:
        least = made.bound.least_figure
        most = made.bound.most_placed
        found: FleetBound = {
            "most_workloads": [{"priority": one, "workloads": most[one]} for one in sorted(most)],
            "most_in_all": made.bound.most_in_all,
        }
        if self.question.goal == "cheapest":
            found["least_cost"] = self._to_money(least)
        else:
            found["least_seconds"] = float(least)
        return found

    def _to_occupation(self, number: int, placed: Sequence[PlacedTask]) -> FleetPoolOccupation:
        own = [one for one in placed if one.mode.pool == number]
        capacity = self.pools[number].capacity
        lasting = int((self.question.ends_at - self.question.starts_at).total_seconds())
        until = max([lasting, *(one.end for one in own)])
        used = sum(one.mode.devices * one.mode.seconds for one in own)
        return {
            "pool": self.pools[number].name,
            "accelerator_count": capacity,
            "share_taken": used / (capacity * until),
            "spans": list(self._list_spans(own)),
        }

    def _list_spans(self, own: Sequence[PlacedTask]) -> Iterator[FleetPoolSpan]:
        moments = sorted({moment for one in own for moment in (one.start, one.end)})
        for begin, end in pairwise(moments):
            running = [one for one in own if one.start <= begin < one.end]
            if running:
                yield {
                    "starts_at": self._format_moment(begin),
                    "ends_at": self._format_moment(end),
                    "devices_taken": sum(one.mode.devices for one in running),
                    "workloads": [self.question.workloads[one.task].name for one in running],
                }

    def _list_months(self, placed: Sequence[PlacedTask]) -> Iterator[FleetMonthlySpend]:
        """Yields the spend by calendar month. Cumulative sums are rounded, so that months add up."""
        before = Decimal(0)
        for begin, end in _list_calendar_months(self._list_moments(placed)):
            until = (end - self.question.starts_at).total_seconds()
            spent = round_amount(_sum_cost_until(placed, Decimal(str(until))), self.code)
            found: FleetMonthlySpend = {
                "month": f"{begin:%Y-%m}",
                "spend": self._to_money(spent - before),
                "spend_so_far": self._to_money(spent),
            }
            if self.budget is not None:
                found["budget_left"] = self._to_money(self.budget - spent)
            yield found
            before = spent

    def _list_moments(self, placed: Sequence[PlacedTask]) -> list[datetime]:
        return [
            to_moment(self.question, second).astimezone(UTC)
            for one in placed
            for second in (one.start, one.end)
        ]

    def _to_money(self, amount: Decimal) -> MoneyAmount:
        return {"amount": f"{round_amount(amount, self.code):f}", "currency_code": self.code}

    def _format_moment(self, seconds: int) -> str:
        return format_time(to_moment(self.question, seconds))


def format_time(when: datetime) -> str:
    """Returns a time in the format of answers."""
    return f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _check_names(question: FleetPlanRequest) -> None:
    seen = set[str]()
    for place, workload in enumerate(question.workloads):
        if workload.name in seen:
            raise PlanningError("NAME_TWICE", f"/workloads/{place}/name", "another workload has this name")
        seen.add(workload.name)


def _list_calendar_months(moments: Sequence[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Yields the calendar months from the first moment to the last."""
    if not moments:
        return
    begin = min(moments).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    while begin < max(moments):
        end = (begin + timedelta(days=31)).replace(day=1)
        yield begin, end
        begin = end


def _sum_cost(placed: Sequence[PlacedTask]) -> Decimal:
    return sum((one.mode.cost for one in placed), Decimal(0))


def _sum_cost_until(placed: Sequence[PlacedTask], seconds: Decimal) -> Decimal:
    """Returns the cost of workloads until a moment, spread evenly over their time."""
    parts = (
        one.mode.cost * max(Decimal(0), min(Decimal(1), (seconds - one.start) / one.mode.seconds))
        for one in placed
    )
    return sum(parts, Decimal(0))
