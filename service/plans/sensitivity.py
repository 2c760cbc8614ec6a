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

from service.kit.http.wanted import check_wanted
from service.planning.errors import PlanningError
from service.planning.notes import Notes
from service.planning.search.switching import Switch, narrowed, rungs
from service.plans.assumptions import names_of_site
from service.plans.pricing import Candidate, Pricer
from service.plans.ranking import Ranking, first, key_of
from service.plans.runs import Runs
from service.plans.search import merged
from service.plans.space import REACH, Kept, Outcome, Space, Supply
from service.schemas.plan_answers import PlanRow, Sensitivity
from service.schemas.plans import MovedAssumption, PlanConstraints, PlanQuestion
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


class Moved(NamedTuple):
    """An assumption, and of what: a supply, an accelerator or a site; None of all of them."""

    assumption: Assumption
    of: str | None = None


Shown = Callable[[Space, Candidate, int, Runs], PlanRow]
"""A candidate as a row of an answer."""


def sensitivities(
    space: Space, outcome: Outcome, ranking: Ranking, shown: Shown, notes: Notes
) -> list[Sensitivity]:
    """Every assumption of the first rows, up and down; the smallest movement first, then those without one.

    A start that moves is not another choice: it follows. What would take too many bills under a tariff is
    left out, and what has no answer when it is moved; either is a gap.
    """
    if not outcome.kept and not ranking.rows:
        return []
    study = _Study(space, outcome, ranking, shown)
    moves = list(_assumptions(space, ranking))
    if study.bills > _MOST_BILLS:
        moves = [moved for moved in moves if moved.assumption not in _BILLED_ANEW]
        detail = "to move time, work and prices of electricity takes a bill of the tariff for every start"
        notes.gap("/sensitivities", "TOO_MANY_BILLS", detail)
    found: list[Sensitivity] = []
    for moved in moves:
        check_wanted()
        try:
            found += study.of(moved)
        except (PlanningError, ArithmeticError) as error:
            # The question has an answer, that in which it is moved so far may have none.
            code, why = ("OUT_OF_RANGE", "figures are too large or too small to compute with")
            if isinstance(error, PlanningError):
                code, why = error.code, error.detail
            notes.gap("/sensitivities", code, f"{moved.assumption} is not moved: {why}")
    return sorted(found, key=lambda each: abs(math.log(each["factor"])) if "factor" in each else math.inf)


def _assumptions(space: Space, ranking: Ranking) -> Iterator[Moved]:
    """Those that the question has, of what is among the rows, and of all together."""
    supplies = list({row.candidate.supply.name: row.candidate.supply for row in ranking.rows}.values())
    every, constraints = space.supplies, space.question.constraints
    yield from _of_each("price", _names_of(_paid, supplies), _names_of(_paid, every))
    if isinstance(space.question.workload, TrainingWorkloadInput):
        yield from _of_each("time", _names_of(_device, supplies), _names_of(_device, every))
    yield from _of_each("electricity_price", _names_of(_billed, supplies), _names_of(_billed, every))
    if _weighs_emissions(space.question):
        yield from _of_each("carbon_intensity", _names_of(_emitting, supplies), _names_of(_emitting, every))
    yield from _of_each("interruption_rate", _names_of(_spot, supplies), _names_of(_spot, every))
    if constraints.budget is not MISSING:
        yield Moved("budget")
    if constraints.duration_seconds is not MISSING or constraints.finish_by is not MISSING:
        yield Moved("deadline")
    if _amount(space.question.workload) is not None:
        yield Moved("work")


def _weighs_emissions(question: PlanQuestion) -> bool:
    limit = question.constraints.location_based_kg_co2e
    return question.goal in ("cleanest", "pareto") or limit is not MISSING


def _of_each(assumption: Assumption, names: Sequence[str], every: Sequence[str]) -> Iterator[Moved]:
    """Each name by itself, and all of them together where that is more than one."""
    yield from (Moved(assumption, name) for name in names)
    if len(every) > 1 or (every and not names):
        yield Moved(assumption)


def _names_of(name: Callable[[Supply], str | None], supplies: Iterable[Supply]) -> list[str]:
    found = (name(supply) for supply in supplies)
    return list(dict.fromkeys(each for each in found if each is not None))


def _paid(supply: Supply) -> str | None:
    return supply.name if supply.rental is not None or supply.purchase is not None else None


def _device(supply: Supply) -> str:
    return supply.accelerator_id


def _spot(supply: Supply) -> str | None:
    return supply.name if supply.rental is not None and supply.rental.spot is not MISSING else None


def _billed(supply: Supply) -> str | None:
    """Where electricity is part of the cost: of own devices."""
    site = supply.site if supply.kind == "owned" else None
    known = site is not None and not (site.electricity is MISSING and site.site_id is MISSING)
    return _place(supply) if known else None


def has_tariff(supply: Supply) -> bool:
    """Whether what electricity costs is known only from a bill."""
    if _billed(supply) is None or supply.site is None:
        return False
    return supply.site.electricity is MISSING or supply.site.electricity.price_per_kwh is MISSING


def _emitting(supply: Supply) -> str | None:
    """Where the emissions of a kWh are known."""
    site = supply.site
    if site is None or (
        site.carbon_intensity_kg_co2e_per_kwh is MISSING
        and site.grid_id is MISSING
        and site.site_id is MISSING
    ):
        return None
    return _place(supply)


def _place(supply: Supply) -> str:
    """What moves with the building of a supply: its site, else its region, else the supply itself."""
    if supply.site is not None and supply.site.site_id is not MISSING:
        return supply.site.site_id
    return supply.region or supply.name


class _Study:
    """A ranking, and what its first row becomes under moved assumptions."""

    def __init__(self, space: Space, outcome: Outcome, ranking: Ranking, shown: Shown) -> None:
        """Whatever is moved is moved for all of a cluster: what another betters there stays behind it."""
        self._space, self._runs, self._shown = space, ranking.runs, shown
        self._outcome = outcome
        self._chosen = ranking.rows[0].candidate if ranking.rows else None
        self._unmoved: dict[str, Candidate | None] = {}
        best = merged([outcome], 1)
        if _is_ordered(space.question) and not self._is_new(first(space, best, self._runs)):
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

    def of(self, moved: Moved) -> Iterator[Sensitivity]:
        """Up and down; one answer for both where neither changes the first row."""
        changed = False
        least, most = 1.0 / REACH, min(REACH, _MOST_FACTOR / _moved_already(self._space.question, moved))
        for low, high in ((least, 1.0), (1.0, most)):
            found = self._change(moved, low if low < 1.0 else high) if low < high else None
            if found is not None:
                changed = True
                yield self._answer(moved, low, high, found)
        if not changed:
            yield self._answer(moved, least, max(1.0, most))

    def _change(self, moved: Moved, end: float) -> "_Change | None":
        """The change nearest to 1 on the way to ``end``."""
        harder = _is_harder(moved, end)
        if harder and (self._chosen is None or not _concerns(moved, self._chosen.supply)):
            return None
        if harder and moved.assumption in _LIMITS:
            # A tighter limit lets nobody pass: the choice holds as long as it keeps to it.
            if self._lead(moved, None, end) <= 0.0:
                return None
            switch = narrowed(partial(self._lead, moved, None), Switch(1.0, end))
            return _Change(switch, self._first(moved, switch.changed))
        holds = 1.0
        for tried in rungs(end, 1 if moved.assumption in _LINEAR else _TRIES):
            rival = self._first(moved, tried)
            if self._is_new(rival):
                return self._nearest(moved, Switch(holds, tried), rival)
            holds = tried
        return None

    def _nearest(self, moved: Moved, way: Switch, rival: Candidate | None) -> "_Change":
        """The change of a way that is nearest to its start, first against the rival at its end.

        Who is not before one rival is not the first of all, so that a pair never places the switch too near;
        whoever is first of all where the pair says that the choice holds is the next rival.
        """
        start = way.holds
        while True:
            lead = partial(self._lead, moved, rival)
            if lead(way.changed) <= 0.0:
                # Figures that are equal but for their last digits: the order of all decides.
                lead = partial(self._lead_of_all, moved)
            way = narrowed(lead, way)
            nearer = self._first(moved, way.holds)
            if way.holds == start or not self._is_new(nearer):
                break
            way = Switch(start, way.holds)
            if rival is None or nearer is None or _choice(nearer) == _choice(rival):
                way = narrowed(partial(self._lead_of_all, moved), way)
                break
            rival = nearer
        return _Change(way, self._first(moved, way.changed))

    def _lead(self, moved: Moved, rival: Candidate | None, factor: float) -> float:
        """By how much a rival is before the first row with the assumption at ``factor``, in logarithms."""
        chosen, other = (self._at(moved, factor, each) for each in (self._chosen, rival))
        if chosen is None or other is None:
            return -1.0 if other is None and (chosen or not self._chosen) else 1.0
        own, against = (key_of(self._space.question.goal, each) for each in (chosen, other))
        if own == against:
            return _LEAST * self._lead_of_all(moved, factor)
        distance = math.log(own[0] / against[0]) if 0.0 < own[0] * against[0] < math.inf else 0.0
        return min(-_LEAST, distance) if own < against else max(_LEAST, distance)

    def _at(self, moved: Moved, factor: float, candidate: Candidate | None) -> Candidate | None:
        """A candidate with the assumption at ``factor``, from its best start; None where it is ruled out."""
        if candidate is None:
            return None
        if moved.assumption not in _OF_ALL and not _concerns(moved, candidate.supply):
            key = repr(_choice(candidate))
            if key not in self._unmoved:
                self._unmoved[key] = _best(Pricer(self._space, self._runs), candidate)
            return self._unmoved[key]
        space, _ = with_moved(self._space, self._outcome, moved, factor)
        return _best(Pricer(space, self._runs), candidate)

    def _lead_of_all(self, moved: Moved, factor: float) -> float:
        return 1.0 if self._is_new(self._first(moved, factor)) else -1.0

    def _first(self, moved: Moved, factor: float) -> Candidate | None:
        return first(*with_moved(self._space, self._outcome, moved, factor), self._runs)

    def _is_new(self, candidate: Candidate | None) -> bool:
        """Whether it is another choice than the first row."""
        if candidate is None or self._chosen is None:
            return candidate is not self._chosen
        return _choice(candidate) != _choice(self._chosen)

    def _answer(self, moved: Moved, low: float, high: float, change: "_Change | None" = None) -> Sensitivity:
        found: Sensitivity = {"assumption": moved.assumption, "searched_low": low, "searched_high": high}
        if moved.of is not None:
            found["of"] = moved.of
        if change is None:
            return found
        found["factor"] = change.switch.changed
        if change.becomes is not None:
            space, _ = with_moved(self._space, self._outcome, moved, change.switch.changed)
            found["becomes"] = self._shown(space, change.becomes, 1, self._runs)
        return found


class _Change(NamedTuple):
    """Where the first row changes, and what it becomes; None where nothing is left."""

    switch: Switch
    becomes: Candidate | None


def _moved_already(question: PlanQuestion, moved: Moved) -> float:
    """The most that the question itself multiplies an assumption by."""
    factors = [each.factor for each in question.assumptions if each.kind == moved.assumption]
    return math.prod(max(1.0, factor) for factor in factors)


def _is_ordered(question: PlanQuestion) -> bool:
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


def _best(pricer: Pricer, candidate: Candidate) -> Candidate | None:
    found = pricer.candidates(candidate.supply, candidate.kept, candidate.name)
    feasible = [each for each in found if each.ruled_out_by is None]
    return min(feasible, key=partial(key_of, pricer.space.question.goal), default=None)


def _choice(candidate: Candidate) -> tuple[object, ...]:
    """What tells candidates apart."""
    kept = candidate.kept
    return candidate.supply.name, kept.cluster, kept.accelerator_count, kept.parallelism, kept.workload


def _is_harder(moved: Moved, end: float) -> bool:
    """Whether the way makes figures larger or limits tighter: it helps none, and harms what it concerns."""
    return (end < 1.0) == (moved.assumption in _LIMITS)


def _concerns(moved: Moved, supply: Supply) -> bool:
    """Whether an assumption is moved of a supply."""
    return moved.of is None or moved.of in _names(moved.assumption, supply)


def _names(assumption: Assumption, supply: Supply) -> tuple[str | None, ...]:
    """By what an assumption may name a supply."""
    if assumption == "time":
        return (supply.accelerator_id,)
    if assumption in ("electricity_price", "carbon_intensity"):
        return names_of_site(supply)
    return (supply.name,)


def with_moved(space: Space, outcome: Outcome, moved: Moved, factor: float) -> tuple[Space, Outcome]:
    """A space whose question has an assumption moved, and what is kept of it."""
    question = space.question
    if moved.assumption in _LIMITS:
        moves = (
            _move_budget(question.constraints, factor)
            if moved.assumption == "budget"
            else _deadline(question, factor)
        )
        constraints = question.constraints.model_copy(update=moves)
        return space._replace(question=question.model_copy(update={"constraints": constraints})), outcome
    if moved.assumption == "work":
        return _with_work(space, outcome, factor)
    members = {"kind": moved.assumption, "factor": factor} | ({"of": moved.of} if moved.of else {})
    assumptions = [*question.assumptions, MovedAssumption.model_validate(members)]
    return space._replace(question=question.model_copy(update={"assumptions": assumptions})), outcome


def _move_budget(constraints: PlanConstraints, factor: float) -> dict[str, Any]:
    budget = constraints.budget
    if budget is MISSING:
        return {}
    amount = (Decimal(budget.amount) * Decimal(factor)).quantize(_DIGITS)
    return {"budget": budget.model_copy(update={"amount": f"{amount:f}"})}


def _deadline(question: PlanQuestion, factor: float) -> dict[str, Any]:
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


def _with_work(space: Space, outcome: Outcome, factor: float) -> tuple[Space, Outcome]:
    """More or less of the same work takes as much more or less time."""
    question = space.question
    workload, share = _scaled(question.workload, factor)
    given = [
        each.model_copy(update={"workload": _scaled(each.workload, factor)[0]}) for each in question.given
    ]
    asked = question.model_copy(update={"workload": workload, "given": given})
    is_training = isinstance(workload, TrainingWorkloadInput)
    kept = tuple(_longer(each, share, is_training=is_training) for each in outcome.kept)
    return space._replace(question=asked), outcome._replace(kept=kept)


def _longer(kept: Kept, share: float, *, is_training: bool) -> Kept:
    lasting = None if kept.lasting_seconds is None else kept.lasting_seconds * share
    return kept._replace(
        seconds=kept.seconds * share if is_training else kept.seconds, lasting_seconds=lasting
    )


def _scaled(workload: WorkloadInput, factor: float) -> tuple[WorkloadInput, float]:
    """The workload with its total times a factor, and what that is once counts are whole."""
    found = _amount(workload)
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


def _amount(workload: WorkloadInput) -> tuple[str, float] | None:
    """The total of a run by its name; None where there is none that can be moved."""
    holder = workload if isinstance(workload, TrainingWorkloadInput) else workload.horizon
    known = ((name, getattr(holder, name, MISSING)) for name in _TOTALS)
    return next(((name, total) for name, total in known if total is not MISSING), None)
