"""What the choice of a plan hangs on: how far each assumption is moved until another row is the first.

Nothing is searched again. No assumption moves the physics, and what a search keeps holds the best under any
of them (``service/plans/space.py``); so each try ranks what is kept under the moved question, as asking that
question would. Of a service time is not moved: its replicas would change.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from pydantic import MISSING

from service.kit.http.cancellation import check_cancelled
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.search.switching import SwitchingFactors, build_factor_steps, refine_switch
from service.plans.assumptions import list_site_names
from service.plans.pricing import CandidatePricer, PricedCandidate
from service.plans.ranking import CandidateRanking, build_key, find_first_candidate
from service.plans.runs import RunCache
from service.plans.search import merge_outcomes
from service.plans.space import REACH, DeviceSupply, KeptConfiguration, SearchOutcome, SearchSpace
from service.schemas.plan_answers import PlanRow, PlanSensitivity
from service.schemas.plans import PlanConstraints, PlanRequest, SensitivityAssumption
from service.schemas.workloads import TrainingWorkloadInput, WorkloadInput

Assumption = Literal[
    "price",
    "time",
    "electricity_price",
    "carbon_intensity",
    "interruption_rate",
    "budget",
    "deadline",
    "work",
]
_TOTALS: Final = ("total_tokens", "total_steps", "total_samples", "duration_seconds", "total_output_tokens")
"""What the work is an amount of; a number of requests that all begin at once is another load."""
_DIGITS: Final = Decimal("0.000000001")
_LINEAR: Final = frozenset({"price", "electricity_price", "carbon_intensity", "budget"})
"""Assumptions in which every figure is linear: one try at the end of the way misses no switch."""
_LIMITS: Final = frozenset({"budget", "deadline"})
_OF_ALL: Final = _LIMITS | {"work"}
_BILLED_ANEW: Final = frozenset({"time", "work", "electricity_price"})
_MOST_BILLS: Final = 1500
"""Bills of tariffs in one ranking, beyond which the assumptions that change them are not moved: each takes
about a millisecond, and a ranking is made some fifty times."""
_MOST_FACTOR: Final = 1000.0
"""The largest that an estimate is asked with."""
_TRIES: Final = 3
"""On the way of the others: time is paid in whole blocks, and failures grow faster than time."""
_LEAST: Final = 1e-12
"""The lead of one of equals, in logarithms."""


class MovedAssumption(NamedTuple):
    """An assumption, and of what: a supply, an accelerator or a site; None of all of them."""

    assumption: Assumption
    of: str | None = None


RowPresenter = Callable[[SearchSpace, PricedCandidate, int, RunCache], PlanRow]
"""A candidate as a row of an answer."""


def list_sensitivities(
    space: SearchSpace,
    outcome: SearchOutcome,
    ranking: CandidateRanking,
    shown: RowPresenter,
    notes: AnswerNotes,
) -> list[PlanSensitivity]:
    """Every assumption of the first rows, up and down; the smallest movement first, then those without one.

    A start that moves is not another choice: it follows. What would take too many bills under a tariff is
    left out, and what has no answer when it is moved; either is a gap.
    """
    if not outcome.kept and not ranking.rows:
        return []
    study = _SensitivityStudy(space, outcome, ranking, shown)
    moves = list(_list_assumptions(space, ranking))
    if study.bills > _MOST_BILLS:
        moves = [moved for moved in moves if moved.assumption not in _BILLED_ANEW]
        detail = "to move time, work and prices of electricity takes a bill of the tariff for every start"
        notes.add_gap("/sensitivities", "TOO_MANY_BILLS", detail)
    found: list[PlanSensitivity] = []
    for moved in moves:
        check_cancelled()
        try:
            found += study.study_assumption(moved)
        except (PlanningError, ArithmeticError) as error:
            # The question has an answer, that in which it is moved so far may have none.
            code, why = ("OUT_OF_RANGE", "figures are too large or too small to compute with")
            if isinstance(error, PlanningError):
                code, why = error.code, error.detail
            notes.add_gap("/sensitivities", code, f"{moved.assumption} is not moved: {why}")
    return sorted(found, key=lambda each: abs(math.log(each["factor"])) if "factor" in each else math.inf)


def _list_assumptions(space: SearchSpace, ranking: CandidateRanking) -> Iterator[MovedAssumption]:
    """Those that the question has, of what is among the rows, and of all together."""
    supplies = list({row.candidate.supply.name: row.candidate.supply for row in ranking.rows}.values())
    every, constraints = space.supplies, space.question.constraints
    yield from _list_moves("price", _list_names(_get_paid_name, supplies), _list_names(_get_paid_name, every))
    if isinstance(space.question.workload, TrainingWorkloadInput):
        yield from _list_moves(
            "time", _list_names(_get_device_name, supplies), _list_names(_get_device_name, every)
        )
    yield from _list_moves(
        "electricity_price", _list_names(_get_billed_site, supplies), _list_names(_get_billed_site, every)
    )
    if _is_emission_relevant(space.question):
        yield from _list_moves(
            "carbon_intensity",
            _list_names(_get_emitting_site, supplies),
            _list_names(_get_emitting_site, every),
        )
    yield from _list_moves(
        "interruption_rate", _list_names(_get_spot_name, supplies), _list_names(_get_spot_name, every)
    )
    if constraints.budget is not MISSING:
        yield MovedAssumption("budget")
    if constraints.duration_seconds is not MISSING or constraints.finish_by is not MISSING:
        yield MovedAssumption("deadline")
    if _find_total(space.question.workload) is not None:
        yield MovedAssumption("work")


def _is_emission_relevant(question: PlanRequest) -> bool:
    limit = question.constraints.location_based_kg_co2e
    return question.goal in ("cleanest", "pareto") or limit is not MISSING


def _list_moves(
    assumption: Assumption, names: Sequence[str], every: Sequence[str]
) -> Iterator[MovedAssumption]:
    """Each name by itself, and all of them together where that is more than one."""
    yield from (MovedAssumption(assumption, name) for name in names)
    if len(every) > 1 or (every and not names):
        yield MovedAssumption(assumption)


def _list_names(name: Callable[[DeviceSupply], str | None], supplies: Iterable[DeviceSupply]) -> list[str]:
    found = (name(supply) for supply in supplies)
    return list(dict.fromkeys(each for each in found if each is not None))


def _get_paid_name(supply: DeviceSupply) -> str | None:
    return supply.name if supply.rental is not None or supply.purchase is not None else None


def _get_device_name(supply: DeviceSupply) -> str:
    return supply.accelerator_id


def _get_spot_name(supply: DeviceSupply) -> str | None:
    return supply.name if supply.rental is not None and supply.rental.spot is not MISSING else None


def _get_billed_site(supply: DeviceSupply) -> str | None:
    """Where electricity is part of the cost: of own devices."""
    site = supply.site if supply.kind == "owned" else None
    known = site is not None and not (site.electricity is MISSING and site.site_id is MISSING)
    return _get_site_name(supply) if known else None


def has_tariff(supply: DeviceSupply) -> bool:
    """Whether what electricity costs is known only from a bill."""
    if _get_billed_site(supply) is None or supply.site is None:
        return False
    return supply.site.electricity is MISSING or supply.site.electricity.price_per_kwh is MISSING


def _get_emitting_site(supply: DeviceSupply) -> str | None:
    """Where the emissions of a kWh are known."""
    site = supply.site
    if site is None or (
        site.carbon_intensity_kg_co2e_per_kwh is MISSING
        and site.grid_id is MISSING
        and site.site_id is MISSING
    ):
        return None
    return _get_site_name(supply)


def _get_site_name(supply: DeviceSupply) -> str:
    """What moves with the building of a supply: its site, else its region, else the supply itself."""
    if supply.site is not None and supply.site.site_id is not MISSING:
        return supply.site.site_id
    return supply.region or supply.name


class _SensitivityStudy:
    """A ranking, and what its first row becomes under moved assumptions."""

    def __init__(
        self, space: SearchSpace, outcome: SearchOutcome, ranking: CandidateRanking, shown: RowPresenter
    ) -> None:
        """Whatever is moved is moved for all of a cluster: what another betters there stays behind it."""
        self._space, self._runs, self._shown = space, ranking.runs, shown
        self._outcome = outcome
        self._chosen = ranking.rows[0].candidate if ranking.rows else None
        self._unmoved: dict[str, PricedCandidate | None] = {}
        best = merge_outcomes([outcome], 1)
        if _is_ordered(space.question) and not self._is_new(find_first_candidate(space, best, self._runs)):
            self._outcome = best

    @property
    def bills(self) -> int:
        """Bills under tariffs that a ranking takes, each configuration from each start."""
        window, kept = self._space.question.window, Counter(each.cluster for each in self._outcome.kept)
        minutes = 0.0
        if window is not MISSING:
            minutes = (window.latest_start_at - window.earliest_start_at) / timedelta(minutes=1)
        starts = 1 if window is MISSING else int(minutes // window.step_minutes) + 1
        supplies = [supply for supply in self._space.supplies if has_tariff(supply)]
        return starts * sum(kept[cluster] for supply in supplies for cluster in supply.clusters)

    def study_assumption(self, moved: MovedAssumption) -> Iterator[PlanSensitivity]:
        """Up and down; one answer for both where neither changes the first row."""
        changed = False
        least, most = (
            1.0 / REACH,
            min(REACH, _MOST_FACTOR / _compute_applied_factor(self._space.question, moved)),
        )
        for low, high in ((least, 1.0), (1.0, most)):
            found = self._find_change(moved, low if low < 1.0 else high) if low < high else None
            if found is not None:
                changed = True
                yield self._to_sensitivity(moved, low, high, found)
        if not changed:
            yield self._to_sensitivity(moved, least, max(1.0, most))

    def _find_change(self, moved: MovedAssumption, end: float) -> "_RankingChange | None":
        """The change nearest to 1 on the way to ``end``."""
        harder = _is_harder(moved, end)
        if harder and (self._chosen is None or not _is_concerned(moved, self._chosen.supply)):
            return None
        if harder and moved.assumption in _LIMITS:
            # A tighter limit lets nobody pass: the choice holds as long as it keeps to it.
            if self._compute_lead(moved, None, end) <= 0.0:
                return None
            switch = refine_switch(partial(self._compute_lead, moved, None), SwitchingFactors(1.0, end))
            return _RankingChange(switch, self._find_first(moved, switch.changed))
        holds = 1.0
        for tried in build_factor_steps(end, 1 if moved.assumption in _LINEAR else _TRIES):
            rival = self._find_first(moved, tried)
            if self._is_new(rival):
                return self._find_nearest_change(moved, SwitchingFactors(holds, tried), rival)
            holds = tried
        return None

    def _find_nearest_change(
        self, moved: MovedAssumption, way: SwitchingFactors, rival: PricedCandidate | None
    ) -> "_RankingChange":
        """The change of a way that is nearest to its start, first against the rival at its end.

        Who is not before one rival is not the first of all, so that a pair never places the switch too near;
        whoever is first of all where the pair says that the choice holds is the next rival.
        """
        start = way.holds
        while True:
            lead = partial(self._compute_lead, moved, rival)
            if lead(way.changed) <= 0.0:
                # Figures that are equal but for their last digits: the order of all decides.
                lead = partial(self._compute_overall_lead, moved)
            way = refine_switch(lead, way)
            nearer = self._find_first(moved, way.holds)
            if way.holds == start or not self._is_new(nearer):
                break
            way = SwitchingFactors(start, way.holds)
            if rival is None or nearer is None or _build_choice_key(nearer) == _build_choice_key(rival):
                way = refine_switch(partial(self._compute_overall_lead, moved), way)
                break
            rival = nearer
        return _RankingChange(way, self._find_first(moved, way.changed))

    def _compute_lead(self, moved: MovedAssumption, rival: PricedCandidate | None, factor: float) -> float:
        """By how much a rival is before the first row with the assumption at ``factor``, in logarithms."""
        chosen, other = (self._price_candidate(moved, factor, each) for each in (self._chosen, rival))
        if chosen is None or other is None:
            return -1.0 if other is None and (chosen or not self._chosen) else 1.0
        own, against = (build_key(self._space.question.goal, each) for each in (chosen, other))
        if own == against:
            return _LEAST * self._compute_overall_lead(moved, factor)
        distance = math.log(own[0] / against[0]) if 0.0 < own[0] * against[0] < math.inf else 0.0
        return min(-_LEAST, distance) if own < against else max(_LEAST, distance)

    def _price_candidate(
        self, moved: MovedAssumption, factor: float, candidate: PricedCandidate | None
    ) -> PricedCandidate | None:
        """A candidate with the assumption at ``factor``, from its best start; None where it is ruled out."""
        if candidate is None:
            return None
        if moved.assumption not in _OF_ALL and not _is_concerned(moved, candidate.supply):
            key = repr(_build_choice_key(candidate))
            if key not in self._unmoved:
                self._unmoved[key] = _find_best(CandidatePricer(self._space, self._runs), candidate)
            return self._unmoved[key]
        space, _ = move_assumption(self._space, self._outcome, moved, factor)
        return _find_best(CandidatePricer(space, self._runs), candidate)

    def _compute_overall_lead(self, moved: MovedAssumption, factor: float) -> float:
        return 1.0 if self._is_new(self._find_first(moved, factor)) else -1.0

    def _find_first(self, moved: MovedAssumption, factor: float) -> PricedCandidate | None:
        return find_first_candidate(*move_assumption(self._space, self._outcome, moved, factor), self._runs)

    def _is_new(self, candidate: PricedCandidate | None) -> bool:
        """Whether it is another choice than the first row."""
        if candidate is None or self._chosen is None:
            return candidate is not self._chosen
        return _build_choice_key(candidate) != _build_choice_key(self._chosen)

    def _to_sensitivity(
        self, moved: MovedAssumption, low: float, high: float, change: "_RankingChange | None" = None
    ) -> PlanSensitivity:
        found: PlanSensitivity = {"assumption": moved.assumption, "searched_low": low, "searched_high": high}
        if moved.of is not None:
            found["of"] = moved.of
        if change is None:
            return found
        found["factor"] = change.switch.changed
        if change.becomes is not None:
            space, _ = move_assumption(self._space, self._outcome, moved, change.switch.changed)
            found["becomes"] = self._shown(space, change.becomes, 1, self._runs)
        return found


class _RankingChange(NamedTuple):
    """Where the first row changes, and what it becomes; None where nothing is left."""

    switch: SwitchingFactors
    becomes: PricedCandidate | None


def _compute_applied_factor(question: PlanRequest, moved: MovedAssumption) -> float:
    """The most that the question itself multiplies an assumption by."""
    factors = [each.factor for each in question.assumptions if each.kind == moved.assumption]
    return math.prod(max(1.0, factor) for factor in factors)


def _is_ordered(question: PlanRequest) -> bool:
    """Whether the order of configurations on a cluster by time holds however time is moved.

    Waiting for data does not grow with the time of the work, and checkpoints are as large as the precision
    makes them.
    """
    workload = question.workload
    if not isinstance(workload, TrainingWorkloadInput):
        return True
    precisions = question.search.training.precisions
    several = precisions is not MISSING and len(precisions) > 1
    return workload.data_pipeline is MISSING and not (several and workload.checkpointing is not MISSING)


def _find_best(pricer: CandidatePricer, candidate: PricedCandidate) -> PricedCandidate | None:
    found = pricer.list_candidates(candidate.supply, candidate.kept, candidate.name)
    feasible = [each for each in found if each.ruled_out_by is None]
    return min(feasible, key=partial(build_key, pricer.space.question.goal), default=None)


def _build_choice_key(candidate: PricedCandidate) -> tuple[object, ...]:
    """What tells candidates apart."""
    kept = candidate.kept
    return candidate.supply.name, kept.cluster, kept.accelerator_count, kept.parallelism, kept.workload


def _is_harder(moved: MovedAssumption, end: float) -> bool:
    """Whether the way makes figures larger or limits tighter: it helps none, and harms what it concerns."""
    return (end < 1.0) == (moved.assumption in _LIMITS)


def _is_concerned(moved: MovedAssumption, supply: DeviceSupply) -> bool:
    """Whether an assumption is moved of a supply."""
    return moved.of is None or moved.of in _get_supply_names(moved.assumption, supply)


def _get_supply_names(assumption: Assumption, supply: DeviceSupply) -> tuple[str | None, ...]:
    """By what an assumption may name a supply."""
    if assumption == "time":
        return (supply.accelerator_id,)
    if assumption in ("electricity_price", "carbon_intensity"):
        return list_site_names(supply)
    return (supply.name,)


def move_assumption(
    space: SearchSpace, outcome: SearchOutcome, moved: MovedAssumption, factor: float
) -> tuple[SearchSpace, SearchOutcome]:
    """A space whose question has an assumption moved, and what is kept of it."""
    question = space.question
    if moved.assumption in _LIMITS:
        moves = (
            _move_budget(question.constraints, factor)
            if moved.assumption == "budget"
            else _scale_deadline(question, factor)
        )
        constraints = question.constraints.model_copy(update=moves)
        return space._replace(question=question.model_copy(update={"constraints": constraints})), outcome
    if moved.assumption == "work":
        return _scale_work(space, outcome, factor)
    members = {"kind": moved.assumption, "factor": factor} | ({"of": moved.of} if moved.of else {})
    assumptions = [*question.assumptions, SensitivityAssumption.model_validate(members)]
    return space._replace(question=question.model_copy(update={"assumptions": assumptions})), outcome


def _move_budget(constraints: PlanConstraints, factor: float) -> dict[str, Any]:
    budget = constraints.budget
    if budget is MISSING:
        return {}
    amount = (Decimal(budget.amount) * Decimal(factor)).quantize(_DIGITS)
    return {"budget": budget.model_copy(update={"amount": f"{amount:f}"})}


def _scale_deadline(question: PlanRequest, factor: float) -> dict[str, Any]:
    """The longest time, and that from the first start until the end."""
    moves: dict[str, Any] = {}
    constraints, start = question.constraints, question.starts_at
    if question.window is not MISSING:
        start = question.window.earliest_start_at
    if constraints.duration_seconds is not MISSING:
        moves["duration_seconds"] = constraints.duration_seconds * factor
    if constraints.finish_by is not MISSING and start is not MISSING:
        seconds = (constraints.finish_by - start).total_seconds()
        moves["finish_by"] = start + timedelta(seconds=seconds * factor)
    return moves


def _scale_work(
    space: SearchSpace, outcome: SearchOutcome, factor: float
) -> tuple[SearchSpace, SearchOutcome]:
    """More or less of the same work takes as much more or less time."""
    question = space.question
    workload, share = _scale_workload(question.workload, factor)
    given = [
        each.model_copy(update={"workload": _scale_workload(each.workload, factor)[0]})
        for each in question.given
    ]
    asked = question.model_copy(update={"workload": workload, "given": given})
    is_training = isinstance(workload, TrainingWorkloadInput)
    kept = tuple(_scale_duration(each, share, is_training=is_training) for each in outcome.kept)
    return space._replace(question=asked), outcome._replace(kept=kept)


def _scale_duration(kept: KeptConfiguration, share: float, *, is_training: bool) -> KeptConfiguration:
    lasting = None if kept.lasting_seconds is None else kept.lasting_seconds * share
    return kept._replace(
        seconds=kept.seconds * share if is_training else kept.seconds, lasting_seconds=lasting
    )


def _scale_workload(workload: WorkloadInput, factor: float) -> tuple[WorkloadInput, float]:
    """The workload with its total times a factor, and what that is once counts are whole."""
    found = _find_total(workload)
    if found is None:
        return workload, 1.0
    name, total = found
    amount = max(1, round(total * factor)) if isinstance(total, int) else total * factor
    if isinstance(workload, TrainingWorkloadInput):
        return workload.model_copy(update={name: amount}), amount / total
    if workload.horizon is MISSING:
        return workload, 1.0
    horizon = workload.horizon.model_copy(update={name: amount})
    return workload.model_copy(update={"horizon": horizon}), amount / total


def _find_total(workload: WorkloadInput) -> tuple[str, float] | None:
    """The total of a run by its name; None where there is none that can be moved."""
    holder = workload if isinstance(workload, TrainingWorkloadInput) else workload.horizon
    known = ((name, getattr(holder, name, MISSING)) for name in _TOTALS)
    return next(((name, total) for name, total in known if total is not MISSING), None)
