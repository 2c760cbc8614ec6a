"""What a configuration costs, draws and emits on a supply, by the estimators that answer its requests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.estimates.carbon import location_based
from service.estimates.charges import Charges, added
from service.estimates.cost import charged_of_run
from service.estimates.currencies import currencies_of
from service.estimates.electricity import electricity
from service.estimates.energy import Energy, Site, machines_of, resolve_site, run_energy
from service.estimates.load import Machines
from service.estimates.memory import estimate_memory
from service.estimates.passes import Passing
from service.estimates.power import Draw, device_draw
from service.estimates.rates import plan_run
from service.estimates.run import Run
from service.estimates.serving import Serving
from service.estimates.serving_parts import levels_of
from service.estimates.shift import Costs, Moves, Shifted, shifted
from service.kit.clock import now
from service.planning.errors import PlanningError
from service.planning.quantity import exact
from service.plans.assumptions import time_factor
from service.plans.requests import (
    Configuration,
    bill_request,
    configuration_of,
    cost_request,
    currency_of,
)
from service.plans.space import Kept, Space, Supply
from service.questions.catalog import Catalog
from service.questions.estimates import UtilityBillQuestion
from service.questions.hardware import resolve_cluster
from service.questions.notes import Notes
from service.questions.plan_answers import PlanConstraint
from service.questions.plans import PlanQuestion
from service.questions.references import ClusterInput
from service.questions.resolve.calibrated import calibrated
from service.questions.what_if import ShiftQuestion, StartWindow
from service.questions.workloads import InferenceWorkloadInput, TrainingWorkloadInput

NEVER_ENDS: Final = "NO_PROGRESS"
"""Refused by estimates of a run that failures or interruptions stop faster than it goes on."""


class Worked(NamedTuple):
    """A configuration with its rates."""

    configuration: Configuration
    catalog: Catalog
    """As its devices see it."""
    run: Run
    draw: Draw | None

    def again(self) -> Run:
        """The run, to which notes may be added."""
        return self.run._replace(notes=self.run.notes.copy())

    @property
    def request_seconds(self) -> float | None:
        """Mean time of a request of a service."""
        serving, passing = self.run.serving, self.run.passing
        if isinstance(serving, Serving):
            return serving.request_seconds.value
        found = passing.request_seconds if isinstance(passing, Passing) else None
        return None if found is None else found.value


class Runs:
    """Rates of configurations, each worked out once: neither prices nor buildings change them."""

    def __init__(self) -> None:
        self._worked: dict[tuple[str, ...], Worked] = {}
        self._machines: dict[tuple[object, ...], Machines | None] = {}

    def of(self, space: Space, kept: Kept, accelerator_id: str) -> Worked:
        """The rates of a configuration of the space."""
        key = (
            space.cluster_of(kept).model_dump_json(),
            json.dumps([dict(kept.parallelism), dict(kept.workload)], sort_keys=True),
            space.question.workload.model_dump_json(),
            str(max(-1, kept.cluster - len(space.clusters))),
            repr(time_factor(space.question, accelerator_id)),
        )
        found = self._worked.get(key)
        if found is None:
            found = self._worked[key] = worked_of(
                configuration_of(space, kept, accelerator_id), space.catalog
            )
        return found

    def machines(self, space: Space, asked: ClusterInput, site: Site) -> Machines | None:
        """The machines of a cluster in a building; None where their power is not known."""
        given = site.given
        assert given is not None  # noqa: S101
        key = (asked.model_dump_json(), given.cooling, str(given.fabric_power_watts_per_device))
        if key not in self._machines:
            catalog = calibrated(space.catalog, asked)
            found = resolve_cluster(asked, catalog, Notes())
            limit = found.accelerator.power_limit_watts
            self._machines[key] = (
                None if limit is None else machines_of(found, site, catalog.curves, exact(limit), limit)[0]
            )
        return self._machines[key]


def worked_of(configuration: Configuration, catalog: Catalog) -> Worked:
    """The rates of a configuration."""
    question = configuration.throughput
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    return Worked(configuration, catalog, run, device_draw(run, catalog))


class Candidate(NamedTuple):
    """A configuration on a supply from a start, with the figures that goal, constraints and cost need.

    ``time`` is what the goal "fastest" weighs: the seconds of a training run, of a service those of a
    request. ``seconds`` are those of the whole run, interruptions included; ``kw`` is the highest power at
    the meter. A figure is None where it is not known, and of energy where nothing asks for it.
    """

    kept: Kept
    supply: Supply
    devices: int
    time: float
    starts_at: datetime | None = None
    name: str | None = None
    seconds: float | None = None
    cost: Decimal | None = None
    kg_co2e: float | None = None
    kw: float | None = None
    ruled_out_by: PlanConstraint | None = None


@dataclass(frozen=True)
class Wanted:
    """What goal and constraints of a question need to know."""

    question: PlanQuestion

    @cached_property
    def cost(self) -> bool:
        """Whether a candidate without a cost is of no use."""
        return self.question.goal == "cheapest" or self.question.constraints.budget is not MISSING

    @cached_property
    def emissions(self) -> bool:
        """Whether one without emissions is."""
        limit = self.question.constraints.location_based_kg_co2e
        return self.question.goal == "cleanest" or limit is not MISSING

    @cached_property
    def energy(self) -> bool:
        """Whether the energy of rented devices is looked at."""
        limit = self.question.constraints.facility_kw
        return self.emissions or self.question.goal == "pareto" or limit is not MISSING

    @cached_property
    def has_end(self) -> bool:
        """Whether it is known how long the run lasts, which cost and energy need."""
        workload = self.question.workload
        return not isinstance(workload, InferenceWorkloadInput) or workload.horizon is not MISSING


@contextmanager
def located(supply: Supply) -> Iterator[None]:
    """What an estimate refuses, at its place in the question of the plan."""
    try:
        yield
    except PlanningError as error:
        raise PlanningError(error.code, place_of(error.pointer, supply), error.detail) from error


def place_of(pointer: str, supply: Supply) -> str:
    """Where the question of a plan says what an estimate on a supply reads at ``pointer``."""
    name, _, rest = pointer.removeprefix("/").partition("/")
    if name == "load_profile":
        return f"{supply.site_pointer}/pue_by_month"
    if name == "site":
        return "/".join([supply.site_pointer, *filter(None, [rest])])
    if name in ("rental", "purchase", "cluster"):
        return supply.pointer if supply.kind == "offer" else supply.pointer + pointer
    return pointer


@dataclass
class Metered:
    """A run with its energy in a building."""

    request: UtilityBillQuestion
    site: Site
    energy: Energy
    notes: Notes


@dataclass
class Pricer:
    """Figures of the configurations of a space."""

    space: Space
    runs: Runs = field(default_factory=Runs)

    @cached_property
    def wanted(self) -> Wanted:
        """What the question needs."""
        return Wanted(self.space.question)

    def needs_energy(self, supply: Supply) -> bool:
        """Whether what a candidate draws is looked at."""
        if supply.site is None or not self.wanted.has_end:
            return False
        return supply.kind == "owned" or self.wanted.energy

    def at(
        self, supply: Supply, kept: Kept, starts_at: datetime | None = None, name: str | None = None
    ) -> Candidate:
        """A configuration from a start, with what rules it out."""
        try:
            worked = self.runs.of(self.space, kept, supply.accelerator_id)
            with located(supply):
                return self._ruled(self._figures(worked, supply, kept, starts_at)._replace(name=name), worked)
        except PlanningError as error:
            if error.code != NEVER_ENDS:
                raise
        devices = self.space.cluster_of(kept).accelerator_count
        late = PlanConstraint.DEADLINE
        return Candidate(kept, supply, devices, float("inf"), starts_at, name, ruled_out_by=late)

    def trial(self, worked: Worked, supply: Supply) -> None:
        """Refuse terms, a purchase or a building of which the estimators can make nothing."""
        question, kept = self.space.question, Kept(supply.clusters[0], {}, {}, 0.0)
        window = question.window
        start = question.starts_at if window is MISSING else window.earliest_start_at
        with located(supply):
            first = self._figures(worked, supply, kept, None if start is MISSING else start)
            if window is not MISSING:
                self._moved(first, window, worked)

    def _figures(self, worked: Worked, supply: Supply, kept: Kept, starts_at: datetime | None) -> Candidate:
        run = worked.again()
        lasting = None if run.duration_seconds is None else run.duration_seconds.value
        parts: list[Charges] | None = []
        if self.wanted.has_end:
            request = cost_request(self.space, worked.configuration, supply, starts_at)
            if request is not None:
                rental, charged = charged_of_run(request, run, worked.catalog)
                parts = None if charged is None else [charged]
                if rental is not None and rental.spot is not None:
                    lasting = rental.spot.lasting.value
        is_service = isinstance(self.space.question.workload, InferenceWorkloadInput)
        time = worked.request_seconds if is_service else lasting
        found = Candidate(
            kept,
            supply,
            run.cluster.accelerator_count,
            float("inf") if time is None else time,
            starts_at,
            seconds=lasting,
        )
        metered = self.metered(worked, supply, starts_at) if self.needs_energy(supply) else None
        if metered is not None:
            found = _with_energy(found, metered)
        if supply.kind == "owned":
            paid = None if metered is None else self.electricity_of(metered, worked.catalog)
            parts = None if paid is None or parts is None else [*parts, paid]
        whole = added(parts) if parts and self.wanted.has_end else None
        return found if whole is None else found._replace(cost=whole.amount)

    def metered(self, worked: Worked, supply: Supply, starts_at: datetime | None) -> Metered | None:
        """The energy of a run in the building of the supply; None where this is not known."""
        request = bill_request(self.space, worked.configuration, supply, starts_at)
        if request is None:
            return None
        run = worked.again()
        site = resolve_site(request, worked.catalog, run.notes)
        return Metered(request, site, run_energy(run, site, worked.catalog.curves, worked.draw), run.notes)

    def electricity_of(self, metered: Metered, catalog: Catalog) -> Charges | None:
        """What the electricity of own nodes costs, in the currency of the plan."""
        billed = electricity(metered.request, metered.energy, metered.site, catalog, metered.notes)
        if billed.charged is None:
            return None
        currencies = currencies_of(metered.request, catalog, metered.notes)
        return currencies.charges(billed.charged, "/electricity/total")

    def _ruled(self, found: Candidate, worked: Worked) -> Candidate:
        """With the first constraint that rules it out."""
        if found.name is not None:
            broken = self._not_run(found, worked)
            if broken is not None:
                return found._replace(ruled_out_by=broken)
        return found._replace(ruled_out_by=next(self._broken(found), None))

    def _not_run(self, found: Candidate, worked: Worked) -> PlanConstraint | None:
        """What rules a given configuration out before its price: the search has not looked at it."""
        limit = self.space.question.constraints.accelerator_count
        if limit is not MISSING and found.devices > limit:
            return PlanConstraint.DEVICES
        if estimate_memory(worked.configuration.memory, worked.catalog).get("fits") is False:
            return PlanConstraint.MEMORY
        workload, serving = worked.configuration.throughput.workload, worked.run.serving
        if not isinstance(workload, InferenceWorkloadInput) or workload.service_levels is MISSING:
            return None
        levels = workload.service_levels
        if isinstance(serving, Serving):
            share = serving.goodput(levels_of(levels)).value
            return PlanConstraint.SERVICE_LEVEL if share < levels.percentile / 100.0 else None
        return PlanConstraint.SERVICE_LEVEL

    def _broken(self, found: Candidate) -> Iterator[PlanConstraint]:
        """Constraints of time, power, emissions and money that it does not keep."""
        question, limits = self.space.question, self.space.question.constraints
        if isinstance(question.workload, TrainingWorkloadInput) and not self.is_in_time(found):
            yield PlanConstraint.DEADLINE
        if limits.facility_kw is not MISSING and (found.kw is None or found.kw > limits.facility_kw):
            yield PlanConstraint.POWER
        most = limits.location_based_kg_co2e
        if most is not MISSING and found.kg_co2e is not None and found.kg_co2e > most:
            yield PlanConstraint.CARBON
        if self.budget is not None and found.cost is not None and found.cost > self.budget:
            yield PlanConstraint.BUDGET
        if self.wanted.cost and found.cost is None:
            yield PlanConstraint.PRICE
        if self.wanted.emissions and found.kg_co2e is None:
            yield PlanConstraint.EMISSIONS

    def is_in_time(self, found: Candidate) -> bool:
        """Whether a training run ends by its deadline."""
        limits = self.space.question.constraints
        if limits.duration_seconds is not MISSING and found.time > limits.duration_seconds:
            return False
        if limits.finish_by is MISSING or found.starts_at is None:
            return True
        return found.time <= (limits.finish_by - found.starts_at) / timedelta(seconds=1)

    @cached_property
    def budget(self) -> Decimal | None:
        """The most that may be paid, in the currency of the plan."""
        question, limit = self.space.question, self.space.question.constraints.budget
        if limit is MISSING:
            return None
        on = now() if question.starts_at is MISSING else question.starts_at
        currency, rates = currency_of(question), self.space.catalog.exchange_rates
        found = rates.convert(Decimal(limit.amount), limit.currency_code, currency, on.date())
        if found is None:
            detail = f"no exchange rate from {limit.currency_code} to {currency} is known"
            raise PlanningError("CURRENCY_MISMATCH", "/constraints/budget/currency_code", detail)
        return found.amount

    def candidates(self, supply: Supply, kept: Kept, name: str | None = None) -> list[Candidate]:
        """A configuration from the best of the starts; of a Pareto set from all that no other betters."""
        question = self.space.question
        if question.window is MISSING:
            start = None if question.starts_at is MISSING else question.starts_at
            return [self.at(supply, kept, start, name)]
        first = self.at(supply, kept, question.window.earliest_start_at, name)
        starts = self._starts(first, question.window)
        return [first if start == first.starts_at else self.at(supply, kept, start, name) for start in starts]

    def _starts(self, first: Candidate, window: StartWindow) -> list[datetime]:
        """The starts that are best by cost and emissions, of those that keep to the constraints if any do."""
        at = window.earliest_start_at
        worked = self.runs.of(self.space, first.kept, first.supply.accelerator_id)
        with located(first.supply):
            found = self._moved(first, window, worked)
        if found is None:
            return [at]
        moves, costs, emissions = found
        electricity = self._electricity(first, costs)
        if electricity is None and emissions is None:
            return [at]
        places = np.arange(moves.starts.number)
        allowed = self._allowed(first, moves, electricity, emissions)
        chosen = places[allowed] if allowed.any() else places
        none = np.zeros(moves.starts.number)
        paid = none if electricity is None else electricity
        emitted = none if emissions is None else emissions
        clean_first = self.space.question.goal == "cleanest" and emissions is not None
        ends = (paid, emitted) if clean_first else (emitted, paid)
        order = chosen[np.lexsort((chosen, ends[0][chosen], ends[1][chosen]))]
        if self.space.question.goal != "pareto":
            return [moves.starts.at(int(order[0]))]
        lowest = np.minimum.accumulate(np.concatenate(([np.inf], ends[0][order][:-1])))
        return [moves.starts.at(int(place)) for place in order[ends[0][order] < lowest]]

    def _moved(self, first: Candidate, window: StartWindow, worked: Worked) -> Shifted | None:
        """The run from every start of the window; None where its start changes nothing."""
        supply = first.supply
        if not self.needs_energy(supply):
            return None
        metered = self.metered(worked, supply, first.starts_at)
        if metered is None or metered.energy.facility_kwh is None:
            return None
        request = metered.request
        said = {name: getattr(request, name) for name in request.model_fields_set}
        question = ShiftQuestion.model_construct(**said, window=window)
        return shifted(question, metered.energy, metered.site, worked.catalog, metered.notes)

    def _electricity(self, first: Candidate, costs: Costs | None) -> NDArray[np.float64] | None:
        """What the electricity of own nodes costs from every start, in the currency of the plan."""
        if first.supply.kind != "owned" or costs is None or first.starts_at is None:
            return None
        rates, currency = self.space.catalog.exchange_rates, currency_of(self.space.question)
        found = rates.convert(Decimal(1), costs.currency_code, currency, first.starts_at.date())
        return None if found is None else costs.ranked * float(found.amount)

    def _allowed(
        self,
        first: Candidate,
        moves: Moves,
        electricity: NDArray[np.float64] | None,
        emissions: NDArray[np.float64] | None,
    ) -> NDArray[np.bool_]:
        """Starts from which a configuration keeps to deadline, emissions and budget."""
        limits, number = self.space.question.constraints, moves.starts.number
        allowed = np.ones(number, dtype=bool)
        if limits.finish_by is not MISSING:
            left = (limits.finish_by - moves.starts.first) / timedelta(seconds=1) - first.time
            allowed &= np.arange(number) * (60.0 * moves.starts.step_minutes) <= left
        if limits.location_based_kg_co2e is not MISSING and emissions is not None:
            allowed &= emissions <= limits.location_based_kg_co2e
        if self.budget is not None and electricity is not None and first.cost is not None:
            allowed &= float(first.cost) + electricity - electricity[0] <= float(self.budget)
        return allowed


def _with_energy(found: Candidate, metered: Metered) -> Candidate:
    emitted = location_based(metered.energy, metered.site, metered.notes)
    peak = metered.energy.peak_kw
    return found._replace(
        kg_co2e=None if emitted is None else emitted.value, kw=None if peak is None else peak.value
    )
