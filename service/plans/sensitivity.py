"""Sensitivity of the choice of a plan: the change of each assumption at which another row becomes first.

Nothing is searched again. No assumption changes the physics, and a search keeps the best under any of them
(``service/plans/space.py``); so each try ranks the kept configurations under the changed question, with the
result of asking that question. The time of a service is not changed, since its replicas would change.
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
"""Members with the amount of work. A number of requests that all begin at once is another load."""
_DIGITS: Final = Decimal("0.000000001")
_LINEAR: Final = frozenset({"price", "electricity_price", "carbon_intensity", "budget"})
"""Assumptions in which every figure is linear: one try at the end of the range finds every switch."""
_LIMITS: Final = frozenset({"budget", "deadline"})
_OF_ALL: Final = _LIMITS | {"work"}
_BILLED_ANEW: Final = frozenset({"time", "work", "electricity_price"})
_MOST_BILLS: Final = 1500
"""Number of tariff bills in one ranking above which assumptions that change bills are skipped: each takes
about a millisecond, and a ranking is computed about fifty times.
"""
_MOST_FACTOR: Final = 1000.0
"""Largest factor that an estimate accepts."""
_TRIES: Final = 3
"""Tries within the range of the other assumptions, since time is paid in whole blocks and failures grow
faster than time.
"""
_LEAST: Final = 1e-12
"""Lead between equals, in logarithms."""


class MovedAssumption(NamedTuple):
    """An assumption and its subject: a supply, an accelerator or a site; None for all of them."""

    assumption: Assumption
    of: str | None = None


RowPresenter = Callable[[SearchSpace, PricedCandidate, int, RunCache], PlanRow]
"""Converts a candidate into a row of an answer."""


def list_sensitivities(
    space: SearchSpace,
    outcome: SearchOutcome,
    ranking: CandidateRanking,
    shown: RowPresenter,
    notes: AnswerNotes,
) -> list[PlanSensitivity]:
    """Returns each assumption of the first rows, up and down, those with the smallest change first.

    A changed start is not another choice. Assumptions that need too many tariff bills, and changed questions
    without an answer, are left out and recorded as gaps.
    """
    if not outcome.kept and not ranking.rows:
        return []
    study = _SensitivityStudy(space, outcome, ranking, shown)
    moves = list(_list_assumptions(space, ranking))
    if study.bills > _MOST_BILLS:
        moves = [moved for moved in moves if moved.assumption not in _BILLED_ANEW]
        detail = "changes of time, work and electricity prices need a bill of the tariff for every start"
        notes.add_gap("/sensitivities", "TOO_MANY_BILLS", detail)
    found: list[PlanSensitivity] = []
    for moved in moves:
        check_cancelled()
        try:
            found += study.study_assumption(moved)
        except (PlanningError, ArithmeticError) as error:
            # The question has an answer, but the changed question may not have one.
            code, why = ("OUT_OF_RANGE", "figures are out of the numeric range")
            if isinstance(error, PlanningError):
                code, why = error.code, error.detail
            notes.add_gap("/sensitivities", code, f"{moved.assumption} is not varied: {why}")
    return sorted(found, key=lambda each: abs(math.log(each["factor"])) if "factor" in each else math.inf)


def _list_assumptions(space: SearchSpace, ranking: CandidateRanking) -> Iterator[MovedAssumption]:
    """Yields the assumptions of the question that apply to the rows, for each subject and for all."""
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
    """Yields each name, and all of them together if there are several."""
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
    """Returns the site whose electricity is part of the cost, for owned devices only."""
    site = supply.site if supply.kind == "owned" else None
    known = site is not None and not (site.electricity is MISSING and site.site_id is MISSING)
    return _get_site_name(supply) if known else None


def has_tariff(supply: DeviceSupply) -> bool:
    """Returns true if the cost of electricity needs a bill under a tariff."""
    if _get_billed_site(supply) is None or supply.site is None:
        return False
    return supply.site.electricity is MISSING or supply.site.electricity.price_per_kwh is MISSING


def _get_emitting_site(supply: DeviceSupply) -> str | None:
    """Returns the site of a supply if its emissions per kWh are known."""
    site = supply.site
    if site is None or (
        site.carbon_intensity_kg_co2e_per_kwh is MISSING
        and site.grid_id is MISSING
        and site.site_id is MISSING
    ):
        return None
    return _get_site_name(supply)


def _get_site_name(supply: DeviceSupply) -> str:
    """Returns the name of a supply's site: the id of the site, else the region, else the supply."""
    if supply.site is not None and supply.site.site_id is not MISSING:
        return supply.site.site_id
    return supply.region or supply.name


class _SensitivityStudy:
    """Ranking of a plan under changed assumptions."""

    def __init__(
        self, space: SearchSpace, outcome: SearchOutcome, ranking: CandidateRanking, shown: RowPresenter
    ) -> None:
        """Reduces the outcome to the best per cluster, if a change of an assumption keeps their order."""
        self._space, self._runs, self._shown = space, ranking.runs, shown
        self._outcome = outcome
        self._chosen = ranking.rows[0].candidate if ranking.rows else None
        self._unmoved: dict[str, PricedCandidate | None] = {}
        best = merge_outcomes([outcome], 1)
        if _is_ordered(space.question) and not self._is_new(find_first_candidate(space, best, self._runs)):
            self._outcome = best

    @property
    def bills(self) -> int:
        """Number of tariff bills that a ranking needs, over configurations and starts."""
        window, kept = self._space.question.window, Counter(each.cluster for each in self._outcome.kept)
        minutes = 0.0
        if window is not MISSING:
            minutes = (window.latest_start_at - window.earliest_start_at) / timedelta(minutes=1)
        starts = 1 if window is MISSING else int(minutes // window.step_minutes) + 1
        supplies = [supply for supply in self._space.supplies if has_tariff(supply)]
        return starts * sum(kept[cluster] for supply in supplies for cluster in supply.clusters)

    def study_assumption(self, moved: MovedAssumption) -> Iterator[PlanSensitivity]:
        """Yields the changes up and down, or one result for both if neither changes the first row."""
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
        """Returns the change nearest to 1 on the way to ``end``."""
        harder = _is_harder(moved, end)
        if harder and (self._chosen is None or not _is_concerned(moved, self._chosen.supply)):
            return None
        if harder and moved.assumption in _LIMITS:
            # A tighter limit admits no new candidate: the choice holds as long as it keeps the limit.
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
        """Returns the change nearest to the start of the range, at first against the rival at its end.

        A candidate that does not beat one rival is not first, so a pair never places the switch too near. If
        another candidate is first where the pair still holds, it becomes the next rival.
        """
        start = way.holds
        while True:
            lead = partial(self._compute_lead, moved, rival)
            if lead(way.changed) <= 0.0:
                # Figures that differ only in their last digits: the full order decides.
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
        """Returns the lead of a rival over the first row with the assumption at ``factor``, in logarithms."""
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
        """Returns a candidate from its best start with the assumption at ``factor``, if feasible."""
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
        """Returns true if the candidate differs from the first row."""
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
    """The factor at which the first row changes, and the new first row; None if no candidate is left."""

    switch: SwitchingFactors
    becomes: PricedCandidate | None


def _compute_applied_factor(question: PlanRequest, moved: MovedAssumption) -> float:
    """Returns the largest factor that the question itself applies to an assumption."""
    factors = [each.factor for each in question.assumptions if each.kind == moved.assumption]
    return math.prod(max(1.0, factor) for factor in factors)


def _is_ordered(question: PlanRequest) -> bool:
    """Returns true if the order of configurations on a cluster by time holds for any factor of time.

    Waiting for data does not grow with the time of the work, and the size of checkpoints depends on the
    precision.
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
    """Returns the key that identifies a choice."""
    kept = candidate.kept
    return candidate.supply.name, kept.cluster, kept.accelerator_count, kept.parallelism, kept.workload


def _is_harder(moved: MovedAssumption, end: float) -> bool:
    """Returns true if the change makes figures larger or limits tighter, which helps no candidate."""
    return (end < 1.0) == (moved.assumption in _LIMITS)


def _is_concerned(moved: MovedAssumption, supply: DeviceSupply) -> bool:
    """Returns true if an assumption applies to a supply."""
    return moved.of is None or moved.of in _get_supply_names(moved.assumption, supply)


def _get_supply_names(assumption: Assumption, supply: DeviceSupply) -> tuple[str | None, ...]:
    """Returns the names by which an assumption may refer to a supply."""
    if assumption == "time":
        return (supply.accelerator_id,)
    if assumption in ("electricity_price", "carbon_intensity"):
        return list_site_names(supply)
    return (supply.name,)


def move_assumption(
    space: SearchSpace, outcome: SearchOutcome, moved: MovedAssumption, factor: float
) -> tuple[SearchSpace, SearchOutcome]:
    """Returns the space and outcome of a question with one assumption changed."""
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
    """Returns the longest duration and the latest end, with the time from the first start scaled."""
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
    """Returns space and outcome with the work and its time scaled."""
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
    """Returns the workload with its total scaled, and the factor after rounding to whole counts."""
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
    """Returns name and amount of a run's total, or None if there is none to scale."""
    holder = workload if isinstance(workload, TrainingWorkloadInput) else workload.horizon
    known = ((name, getattr(holder, name, MISSING)) for name in _TOTALS)
    return next(((name, total) for name, total in known if total is not MISSING), None)
