"""The best of what a search keeps: configurations on supplies, worked out in full in the order of bounds.

A candidate is worked out by the estimators only when no other can be before it: candidates stand in the order
of what they cost, take and emit at least (:mod:`service.plans.bounds`), and one that is worked out is ranked
once its figures are no more than the least figures of all that are not. Of equal ones given configurations
count first, then the first supply of the space, then the first configuration that the search keeps.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.kit.http.wanted import check_wanted
from service.planning.errors import PlanningError
from service.planning.notes import Notes
from service.plans.bounds import Bounds, bounds_of
from service.plans.pricing import Candidate, Pricer
from service.plans.runs import Runs
from service.plans.space import Kept, Outcome, Space, Supply
from service.resolve.hardware import resolve_cluster
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import Goal
from service.schemas.references import ClusterInput
from service.schemas.workloads import TrainingWorkloadInput

Key = tuple[float, float, float]
_Place = tuple[int, int, int]
_FIGURES: dict[Goal, tuple[str, str, str]] = {
    "cheapest": ("cost", "time", "devices"),
    "fastest": ("time", "cost", "devices"),
    "cleanest": ("kg_co2e", "cost", "time"),
    "fewest_devices": ("devices", "cost", "time"),
    "pareto": ("cost", "time", "kg_co2e"),
}
"""What is compared, by the goal: where the first are equal the second counts, then the third."""


class Ranked(NamedTuple):
    """A candidate and its place; 0 for one that is ruled out."""

    rank: int
    candidate: Candidate


class Ranking(NamedTuple):
    """The rows of an answer, given configurations in the order of the question, and what was looked at."""

    rows: tuple[Ranked, ...]
    given: tuple[Ranked, ...]
    priced: int
    priced_feasible: int
    priced_ruled_out: dict[PlanConstraint, int]
    runs: Runs


def ranked(space: Space, outcome: Outcome, runs: Runs | None = None) -> Ranking:
    """The best candidates by the goal of the question."""
    order = _Order(space, outcome, runs or Runs())
    rows = tuple(_pareto(order) if space.question.goal == "pareto" else _best(order))
    given = tuple(Ranked(order.rank_of(each), each) for each in order.given)
    return Ranking(
        rows,
        given,
        order.feasible + order.ruled_out.total(),
        order.feasible,
        dict(order.ruled_out),
        order.pricer.runs,
    )


def first(space: Space, outcome: Outcome, runs: Runs | None = None) -> Candidate | None:
    """The best candidate; of a Pareto set the cheapest. None where nothing is left."""
    return next(iter(_Order(space, outcome, runs or Runs())), None)


def key_of(goal: Goal, candidate: Candidate) -> Key:
    """What a goal compares, the first figure before the second; what is not known is behind all that is."""
    figures = (getattr(candidate, name) for name in _FIGURES[goal])
    one, two, three = (np.inf if figure is None else float(figure) for figure in figures)
    return one, two, three


class _Order:
    """Candidates that nothing rules out, the best first; each is worked out when its turn may have come."""

    def __init__(self, space: Space, outcome: Outcome, runs: Runs) -> None:
        self.space = space
        self.pricer = Pricer(space, runs)
        self.feasible = 0
        self.ruled_out: Counter[PlanConstraint] = Counter()
        self.left: Counter[str] = Counter()
        """Candidates of each supply that are not ranked yet."""
        self._kept = outcome.kept
        self._worked: list[tuple[Key, _Place, Candidate]] = []
        self._ranked: list[Candidate] = []
        self._pairs = _pairs(self.pricer, outcome.kept, self._rule_out)
        self._behind = np.zeros(len(self._pairs.supply), dtype=bool)
        self._next = 0
        self.left.update(space.supplies[place].name for place in self._pairs.supply)
        self.given = [self._given(place) for place in range(len(space.question.given))]

    def __iter__(self) -> Iterator[Candidate]:
        """All of them; what is ranked already is not worked out again."""
        place = 0
        while place < len(self._ranked) or self._rank_next():
            yield self._ranked[place]
            place += 1

    def key(self, candidate: Candidate) -> Key:
        """What the goal compares."""
        return key_of(self.space.question.goal, candidate)

    def skip(self, key: Key) -> None:
        """Leave out what by its bounds is at least as large in all figures of a key."""
        self._behind |= (self._pairs.figures >= key).all(axis=1)

    def rank_of(self, given: Candidate) -> int:
        """The place of a given configuration among all candidates; 0 where it is ruled out."""
        if given.ruled_out_by is not None:
            return 0
        return next(rank for rank, candidate in enumerate(self, start=1) if candidate is given)

    def _rank_next(self) -> bool:
        """Find the next candidate; whether there is one."""
        pairs = self._pairs
        while self._next < len(pairs.supply) or self._worked:
            if self._next < len(pairs.supply) and (
                not self._worked or pairs.bound(self._next) <= self._worked[0][:2]
            ):
                self._work_out(self._next)
                self._next += 1
                continue
            key, _, candidate = heapq.heappop(self._worked)
            self.left[candidate.supply.name] -= 1
            if not self._is_given(key, candidate):
                self._ranked.append(candidate)
                return True
        return False

    def _work_out(self, place: int) -> None:
        check_wanted()
        supply = self.space.supplies[self._pairs.supply[place]]
        self.left[supply.name] -= 1
        if self._behind[place]:
            return
        at = (int(self._pairs.supply[place]), int(self._pairs.kept[place]))
        for number, found in enumerate(self.pricer.candidates(supply, self._kept[at[1]])):
            if found.ruled_out_by is not None:
                self._rule_out(found.ruled_out_by, 1)
            else:
                self._push(found, (*at, number))

    def _push(self, found: Candidate, place: _Place) -> None:
        self.feasible += 1
        self.left[found.supply.name] += 1
        heapq.heappush(self._worked, (self.key(found), place, found))

    def _rule_out(self, constraint: PlanConstraint, number: int) -> None:
        if number:
            self.ruled_out[constraint] += number

    def _given(self, place: int) -> Candidate:
        """A given configuration on the supply of the question, else on that on which it does best."""
        given, space = self.space.question.given[place], self.space
        kept = Kept(len(space.clusters) + place, {}, {}, seconds=0.0)
        found = []
        for supply in supplies_of(space, place):
            found += self.pricer.candidates(supply, kept, given.name)
        feasible = [each for each in found if each.ruled_out_by is None]
        best = min(feasible or found, key=self.key)
        if best.ruled_out_by is None:
            self._push(best, (-1, place, 0))
        else:
            self._rule_out(best.ruled_out_by, 1)
        return best

    def _is_given(self, key: Key, candidate: Candidate) -> bool:
        """Whether a candidate that the search found is a given one."""
        return candidate.name is None and any(
            each.ruled_out_by is None
            and each.supply.name == candidate.supply.name
            and each.starts_at == candidate.starts_at
            and self.key(each) == key
            for each in self.given
        )


def _best(order: _Order) -> Iterator[Ranked]:
    """The rows of the answer: the best, but no more than a few of each supply."""
    search, shown = order.space.question.search, Counter[str]()
    for rank, candidate in enumerate(order, start=1):
        name = candidate.supply.name
        if shown[name] < search.rows_per_supply:
            shown[name] += 1
            yield Ranked(rank, candidate)
        if shown.total() == search.rows:
            return
        if not any(number and shown[other] < search.rows_per_supply for other, number in order.left.items()):
            return


def _pareto(order: _Order) -> Sequence[Ranked]:
    """Candidates that no other betters in cost, time and emissions; of many both ends and some between."""
    found: list[tuple[Key, Candidate]] = []
    for candidate in order:
        key = order.key(candidate)
        if not any(_is_as_good(other, key) for other, _ in found):
            found.append((key, candidate))
            order.skip(key)
    rows = [Ranked(rank, candidate) for rank, (_, candidate) in enumerate(found, start=1)]
    most = order.space.question.search.rows
    if len(rows) <= most:
        return rows
    if most == 1:
        return rows[:1]
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


def _is_as_good(one: Key, other: Key) -> bool:
    """Whether ``one`` is no more than ``other`` in all figures."""
    return all(own <= figure for own, figure in zip(one, other, strict=True))


class _Pairs(NamedTuple):
    """Configurations on supplies in the order of their bounds."""

    supply: NDArray[np.int64]
    kept: NDArray[np.int64]
    figures: NDArray[np.float64]

    def bound(self, place: int) -> tuple[Key, _Place]:
        """The least that a candidate is compared by."""
        one, two, three = self.figures[place].tolist()
        return (one, two, three), (int(self.supply[place]), int(self.kept[place]), -1)


def _pairs(pricer: Pricer, kept: tuple[Kept, ...], rule_out: Callable[[PlanConstraint, int], None]) -> _Pairs:
    """What no bound rules out, in order."""
    space, columns = pricer.space, pricer.runs.columns(pricer.space, kept)
    names = _FIGURES[space.question.goal]
    parts = []
    for place, supply in enumerate(space.supplies):
        bounds = bounds_of(pricer, supply, columns)
        left = np.ones(len(bounds.kept), dtype=bool)
        for constraint, broken in _broken(pricer, bounds):
            rule_out(constraint, int((left & broken).sum()))
            left &= ~broken
        figures = np.stack([getattr(bounds, name)[left] for name in names], axis=1)
        parts.append(_Pairs(np.full(int(left.sum()), place), bounds.kept[left], figures))
    supplies, places, figures = (
        np.concatenate([part.supply for part in parts]),
        np.concatenate([part.kept for part in parts]),
        np.concatenate([part.figures for part in parts]),
    )
    order = np.lexsort((places, supplies, *figures.T[::-1]))
    return _Pairs(supplies[order], places[order], figures[order])


def _broken(pricer: Pricer, bounds: Bounds) -> Iterator[tuple[PlanConstraint, NDArray[np.bool_]]]:
    """What already the least figures rule out, in the order of the constraints."""
    question, wanted = pricer.space.question, pricer.wanted
    limits, every = question.constraints, np.ones(len(bounds.kept), dtype=bool)
    if isinstance(question.workload, TrainingWorkloadInput):
        yield PlanConstraint.DEADLINE, bounds.time > _longest_seconds(pricer.space)
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


def _longest_seconds(space: Space) -> float:
    """The longest that a run may take from its first start."""
    question, limits = space.question, space.question.constraints
    longest = np.inf if limits.duration_seconds is MISSING else limits.duration_seconds
    start = question.starts_at if question.window is MISSING else question.window.earliest_start_at
    if limits.finish_by is MISSING or start is MISSING:
        return float(longest)
    return float(min(longest, (limits.finish_by - start) / timedelta(seconds=1)))


def supplies_of(space: Space, place: int) -> list[Supply]:
    """The supplies that a given configuration may run on.

    Raises:
        PlanningError: there are none of its devices, or not where it says.
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
        and _joins(supply, given.cluster, space)
    ]
    if not found:
        at = f"{pointer}/cluster" if given.supply is MISSING else f"{pointer}/supply"
        detail = "no supply of the plan has so many of these devices in such nodes: see owned and rented"
        raise PlanningError("NO_SUPPLY", at, detail)
    return found


def _joins(supply: Supply, cluster: ClusterInput, space: Space) -> bool:
    """Whether the fast link of a supply joins as many devices as that of a given cluster."""
    asked = resolve_cluster(cluster, space.catalog, Notes())
    of_supply = space.clusters[supply.clusters[0]].model_copy(
        update={"accelerator_count": cluster.accelerator_count}
    )
    return resolve_cluster(of_supply, space.catalog, Notes()).domain >= asked.domain
