"""Ranking of a plan under changed assumptions, and the change nearest to the question."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from pydantic import MISSING

from service.planning.search.switching import SwitchingFactors, build_factor_steps, refine_switch
from service.plans.pricing import CandidatePricer, PricedCandidate
from service.plans.ranking import CandidateRanking, build_key, find_first_candidate
from service.plans.runs import RunCache
from service.plans.search import merge_outcomes
from service.plans.sensitivity.moves import move_assumption
from service.plans.sensitivity.subjects import LIMITS, MovedAssumption, has_tariff, is_concerned
from service.plans.space import REACH, SearchOutcome, SearchSpace
from service.schemas.plan_answers import PlanRow, PlanSensitivity
from service.schemas.plans import PlanRequest
from service.schemas.workloads import TrainingWorkloadInput

_LINEAR: Final = frozenset({"price", "electricity_price", "carbon_intensity", "budget"})
"""Assumptions in which every figure is linear: one try at the end of the range finds every switch."""
_OF_ALL: Final = LIMITS | {"work"}
_MOST_FACTOR: Final = 1000.0
"""Largest factor that an estimate accepts."""
_TRIES: Final = 3
"""Tries within the range of the other assumptions, since time is paid in whole blocks and failures grow
faster than time.
"""
_LEAST: Final = 1e-12
"""Lead between equals, in logarithms."""
RowPresenter = Callable[[SearchSpace, PricedCandidate, int, RunCache], PlanRow]
"""Converts a candidate into a row of an answer."""


class SensitivityStudy:
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
        if harder and (self._chosen is None or not is_concerned(moved, self._chosen.supply)):
            return None
        if harder and moved.assumption in LIMITS:
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
        if moved.assumption not in _OF_ALL and not is_concerned(moved, candidate.supply):
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
    return (end < 1.0) == (moved.assumption in LIMITS)
