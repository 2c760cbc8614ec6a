"""Ranking of the configurations that a search keeps, on their supplies, in the order of their bounds.

A candidate is estimated only when no other can precede it: candidates are sorted by their lower bounds of
cost, time and emissions (:mod:`service.plans.bounds`), and an estimated candidate is ranked once its figures
do not exceed the lower bounds of all that are not yet estimated. Ties go to given configurations, then to the
first supply of the space, then to the first configuration that the search keeps.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.kit.http.cancellation import check_cancelled
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.plans.bounds import SupplyBounds, compute_bounds
from service.plans.pricing import CandidatePricer, PricedCandidate
from service.plans.runs import RunCache
from service.plans.space import DeviceSupply, KeptConfiguration, SearchOutcome, SearchSpace
from service.resolve.hardware import resolve_cluster
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import PlanGoal
from service.schemas.references import ClusterInput
from service.schemas.workloads import TrainingWorkloadInput

RankingKey = tuple[float, float, float]
_CandidateIndex = tuple[int, int, int]
_FIGURES: dict[PlanGoal, tuple[str, str, str]] = {
    "cheapest": ("cost", "time", "devices"),
    "fastest": ("time", "cost", "devices"),
    "cleanest": ("kg_co2e", "cost", "time"),
    "fewest_devices": ("devices", "cost", "time"),
    "pareto": ("cost", "time", "kg_co2e"),
}
"""Figures that a goal compares. The second breaks ties of the first, the third those of the second."""


class RankedCandidate(NamedTuple):
    """A candidate and its rank; 0 if it is ruled out."""

    rank: int
    candidate: PricedCandidate


class CandidateRanking(NamedTuple):
    """Rows of an answer, given configurations in the order of the question, and counts."""

    rows: tuple[RankedCandidate, ...]
    given: tuple[RankedCandidate, ...]
    priced: int
    priced_feasible: int
    priced_ruled_out: dict[PlanConstraint, int]
    runs: RunCache


def rank_candidates(
    space: SearchSpace, outcome: SearchOutcome, runs: RunCache | None = None
) -> CandidateRanking:
    """Returns the best candidates by the goal of the question."""
    order = _RankedOrder(space, outcome, runs or RunCache())
    rows = tuple(_select_pareto(order) if space.question.goal == "pareto" else _select_best(order))
    given = tuple(RankedCandidate(order.find_rank(each), each) for each in order.given)
    return CandidateRanking(
        rows,
        given,
        order.feasible + order.ruled_out.total(),
        order.feasible,
        dict(order.ruled_out),
        order.pricer.runs,
    )


def find_first_candidate(
    space: SearchSpace, outcome: SearchOutcome, runs: RunCache | None = None
) -> PricedCandidate | None:
    """Returns the best candidate, or the cheapest of a Pareto set, or None if all are ruled out."""
    return next(iter(_RankedOrder(space, outcome, runs or RunCache())), None)


def build_key(goal: PlanGoal, candidate: PricedCandidate) -> RankingKey:
    """Returns the figures that a goal compares, in order. Unknown figures sort last."""
    figures = (getattr(candidate, name) for name in _FIGURES[goal])
    one, two, three = (np.inf if figure is None else float(figure) for figure in figures)
    return one, two, three


class _RankedOrder:
    """Feasible candidates in order, the best first. Each is estimated when its bound is reached."""

    def __init__(self, space: SearchSpace, outcome: SearchOutcome, runs: RunCache) -> None:
        self.space = space
        self.pricer = CandidatePricer(space, runs)
        self.feasible = 0
        self.ruled_out: Counter[PlanConstraint] = Counter()
        self.left: Counter[str] = Counter()
        """Candidates of each supply that are not yet ranked."""
        self._kept = outcome.kept
        self._worked: list[tuple[RankingKey, _CandidateIndex, PricedCandidate]] = []
        self._ranked: list[PricedCandidate] = []
        self._pairs = _build_pairs(self.pricer, outcome.kept, self._count_ruled_out)
        self._behind = np.zeros(len(self._pairs.supply), dtype=bool)
        self._next = 0
        self.left.update(space.supplies[place].name for place in self._pairs.supply)
        self.given = [self._price_given(place) for place in range(len(space.question.given))]

    def __iter__(self) -> Iterator[PricedCandidate]:
        """Yields all candidates in order. Ranked candidates are kept."""
        place = 0
        while place < len(self._ranked) or self._rank_next():
            yield self._ranked[place]
            place += 1

    def build_key(self, candidate: PricedCandidate) -> RankingKey:
        """Returns the figures that the goal compares."""
        return build_key(self.space.question.goal, candidate)

    def skip_dominated(self, key: RankingKey) -> None:
        """Skips candidates whose bounds are at least as large as a key in all figures."""
        self._behind |= (self._pairs.figures >= key).all(axis=1)

    def find_rank(self, given: PricedCandidate) -> int:
        """Returns the rank of a given configuration among all candidates, or 0 if it is ruled out."""
        if given.ruled_out_by is not None:
            return 0
        return next(rank for rank, candidate in enumerate(self, start=1) if candidate is given)

    def _rank_next(self) -> bool:
        """Ranks the next candidate. Returns false if there is none."""
        pairs = self._pairs
        while self._next < len(pairs.supply) or self._worked:
            if self._next < len(pairs.supply) and (
                not self._worked or pairs.get_bound(self._next) <= self._worked[0][:2]
            ):
                self._price_pair(self._next)
                self._next += 1
                continue
            key, _, candidate = heapq.heappop(self._worked)
            self.left[candidate.supply.name] -= 1
            if not self._is_given(key, candidate):
                self._ranked.append(candidate)
                return True
        return False

    def _price_pair(self, place: int) -> None:
        check_cancelled()
        supply = self.space.supplies[self._pairs.supply[place]]
        self.left[supply.name] -= 1
        if self._behind[place]:
            return
        at = (int(self._pairs.supply[place]), int(self._pairs.kept[place]))
        for number, found in enumerate(self.pricer.list_candidates(supply, self._kept[at[1]])):
            if found.ruled_out_by is not None:
                self._count_ruled_out(found.ruled_out_by, 1)
            else:
                self._push_candidate(found, (*at, number))

    def _push_candidate(self, found: PricedCandidate, place: _CandidateIndex) -> None:
        self.feasible += 1
        self.left[found.supply.name] += 1
        heapq.heappush(self._worked, (self.build_key(found), place, found))

    def _count_ruled_out(self, constraint: PlanConstraint, number: int) -> None:
        if number:
            self.ruled_out[constraint] += number

    def _price_given(self, place: int) -> PricedCandidate:
        """Returns a given configuration on its best supply."""
        given, space = self.space.question.given[place], self.space
        kept = KeptConfiguration(len(space.clusters) + place, {}, {}, seconds=0.0)
        found = []
        for supply in list_supplies(space, place):
            found += self.pricer.list_candidates(supply, kept, given.name)
        feasible = [each for each in found if each.ruled_out_by is None]
        best = min(feasible or found, key=self.build_key)
        if best.ruled_out_by is None:
            self._push_candidate(best, (-1, place, 0))
        else:
            self._count_ruled_out(best.ruled_out_by, 1)
        return best

    def _is_given(self, key: RankingKey, candidate: PricedCandidate) -> bool:
        """Returns true if a candidate of the search equals a given configuration."""
        return candidate.name is None and any(
            each.ruled_out_by is None
            and each.supply.name == candidate.supply.name
            and each.starts_at == candidate.starts_at
            and self.build_key(each) == key
            for each in self.given
        )


def _select_best(order: _RankedOrder) -> Iterator[RankedCandidate]:
    """Yields the rows of the answer: the best candidates, at most a few of each supply."""
    search, shown = order.space.question.search, Counter[str]()
    for rank, candidate in enumerate(order, start=1):
        name = candidate.supply.name
        if shown[name] < search.rows_per_supply:
            shown[name] += 1
            yield RankedCandidate(rank, candidate)
        if shown.total() == search.rows:
            return
        if not any(number and shown[other] < search.rows_per_supply for other, number in order.left.items()):
            return


def _select_pareto(order: _RankedOrder) -> Sequence[RankedCandidate]:
    """Returns the candidates that no other dominates in cost, time and emissions.

    If there are too many, both ends and some in between are returned.
    """
    found: list[tuple[RankingKey, PricedCandidate]] = []
    for candidate in order:
        key = order.build_key(candidate)
        if not any(_is_as_good(other, key) for other, _ in found):
            found.append((key, candidate))
            order.skip_dominated(key)
    rows = [RankedCandidate(rank, candidate) for rank, (_, candidate) in enumerate(found, start=1)]
    most = order.space.question.search.rows
    if len(rows) <= most:
        return rows
    if most == 1:
        return rows[:1]
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


def _is_as_good(one: RankingKey, other: RankingKey) -> bool:
    """Returns true if ``one`` does not exceed ``other`` in any figure."""
    return all(own <= figure for own, figure in zip(one, other, strict=True))


class _BoundedPairs(NamedTuple):
    """Configurations on supplies in the order of their bounds."""

    supply: NDArray[np.int64]
    kept: NDArray[np.int64]
    figures: NDArray[np.float64]

    def get_bound(self, place: int) -> tuple[RankingKey, _CandidateIndex]:
        """Returns the lower bound of a candidate's key."""
        one, two, three = self.figures[place].tolist()
        return (one, two, three), (int(self.supply[place]), int(self.kept[place]), -1)


def _build_pairs(
    pricer: CandidatePricer,
    kept: tuple[KeptConfiguration, ...],
    rule_out: Callable[[PlanConstraint, int], None],
) -> _BoundedPairs:
    """Returns the pairs that no bound rules out, in order."""
    space, columns = pricer.space, pricer.runs.get_columns(pricer.space, kept)
    names = _FIGURES[space.question.goal]
    parts = []
    for place, supply in enumerate(space.supplies):
        bounds = compute_bounds(pricer, supply, columns)
        left = np.ones(len(bounds.kept), dtype=bool)
        for constraint, broken in _list_broken_constraints(pricer, bounds):
            rule_out(constraint, int((left & broken).sum()))
            left &= ~broken
        figures = np.stack([getattr(bounds, name)[left] for name in names], axis=1)
        parts.append(_BoundedPairs(np.full(int(left.sum()), place), bounds.kept[left], figures))
    supplies, places, figures = (
        np.concatenate([part.supply for part in parts]),
        np.concatenate([part.kept for part in parts]),
        np.concatenate([part.figures for part in parts]),
    )
    order = np.lexsort((places, supplies, *figures.T[::-1]))
    return _BoundedPairs(supplies[order], places[order], figures[order])


def _list_broken_constraints(
    pricer: CandidatePricer, bounds: SupplyBounds
) -> Iterator[tuple[PlanConstraint, NDArray[np.bool_]]]:
    """Yields the constraints that lower bounds already violate, in the order of the constraints."""
    question, wanted = pricer.space.question, pricer.wanted
    limits, every = question.constraints, np.ones(len(bounds.kept), dtype=bool)
    if isinstance(question.workload, TrainingWorkloadInput):
        yield PlanConstraint.DEADLINE, bounds.time > _compute_longest_seconds(pricer.space)
    if limits.facility_kw is not MISSING:
        yield PlanConstraint.POWER, bounds.kw > limits.facility_kw
    if limits.location_based_kg_co2e is not MISSING:
        yield PlanConstraint.CARBON, bounds.kg_co2e > limits.location_based_kg_co2e
    if pricer.budget is not None:
        yield PlanConstraint.BUDGET, bounds.cost > float(pricer.budget)
    if wanted.cost and not bounds.price_known:
        yield PlanConstraint.PRICE, every
    if wanted.emissions and not bounds.emissions_known:
        yield PlanConstraint.EMISSIONS, every


def _compute_longest_seconds(space: SearchSpace) -> float:
    """Returns the longest time that a run may take from its first start."""
    question, limits = space.question, space.question.constraints
    longest = np.inf if limits.duration_seconds is MISSING else limits.duration_seconds
    start = question.starts_at if question.window is MISSING else question.window.earliest_start_at
    if limits.finish_by is MISSING or start is MISSING:
        return float(longest)
    return float(min(longest, (limits.finish_by - start) / timedelta(seconds=1)))


def list_supplies(space: SearchSpace, place: int) -> list[DeviceSupply]:
    """Returns the supplies that a given configuration may run on.

    Raises:
        PlanningError: no supply has its devices, or not in its region.
    """
    given, pointer = space.question.given[place], f"/given/{place}"
    reference, count = given.cluster.accelerator, given.cluster.accelerator_count
    name = reference.id if reference.source == "catalog" else reference.specification.name
    if reference.source == "catalog" and name in space.catalog.accelerators:
        name = space.catalog.accelerators[name].accelerator.id
    found = [
        supply
        for supply in space.supplies
        if supply.accelerator_id == name
        and supply.most_devices >= count
        and given.supply in (MISSING, supply.name)
        and _is_joining(supply, given.cluster, space)
    ]
    if not found:
        at = f"{pointer}/cluster" if given.supply is MISSING else f"{pointer}/supply"
        detail = "no supply of the plan has that many of these devices in such nodes: see owned and rented"
        raise PlanningError("NO_SUPPLY", at, detail)
    return found


def _is_joining(supply: DeviceSupply, cluster: ClusterInput, space: SearchSpace) -> bool:
    """Returns true if the fast link of a supply joins as many devices as that of a given cluster."""
    asked = resolve_cluster(cluster, space.catalog, AnswerNotes())
    of_supply = space.clusters[supply.clusters[0]].model_copy(
        update={"accelerator_count": cluster.accelerator_count}
    )
    return resolve_cluster(of_supply, space.catalog, AnswerNotes()).domain >= asked.domain
