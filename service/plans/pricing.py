"""Cost, power and emissions of a configuration on a supply, from the estimators of its requests."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.cost import estimate_cost_of_run
from service.estimates.memory import estimate_memory
from service.kit.clock import now
from service.planning.cost.charges import CurrencyCharges, sum_charges
from service.planning.errors import PlanningError
from service.planning.estimates import ServingRun
from service.planning.estimates.serving import ServingEstimate
from service.plans.requests import build_bill_request, build_cost_request, get_currency
from service.plans.runs import NEVER_ENDS, EvaluatedConfiguration, MeteredRun, RunCache
from service.plans.space import DeviceSupply, KeptConfiguration, SearchSpace, get_headroom_share
from service.plans.starts import StartedRun, select_starts
from service.schemas.plan_answers import PlanConstraint
from service.schemas.plans import PlanRequest
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput


class PricedCandidate(NamedTuple):
    """A configuration on a supply from a start, with the figures for goal, constraints and cost.

    ``time`` is the figure of the goal "fastest": seconds of a training run, or of a request of a service.
    ``seconds`` is the duration of the whole run including interruptions; ``kw`` is the highest power at the
    meter. An unknown figure is None, as is energy that is not needed.
    """

    kept: KeptConfiguration
    supply: DeviceSupply
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
class RequiredFigures:
    """Figures that goal and constraints of a question need."""

    question: PlanRequest

    @cached_property
    def cost(self) -> bool:
        """True if candidates need a known cost."""
        return self.question.goal == "cheapest" or self.question.constraints.budget is not MISSING

    @cached_property
    def emissions(self) -> bool:
        """True if candidates need known emissions."""
        limit = self.question.constraints.location_based_kg_co2e
        return self.question.goal == "cleanest" or limit is not MISSING

    @cached_property
    def energy(self) -> bool:
        """True if the energy of rented devices is needed."""
        limit = self.question.constraints.facility_kw
        return self.emissions or self.question.goal == "pareto" or limit is not MISSING

    @cached_property
    def has_end(self) -> bool:
        """True if the duration of the run is known, as cost and energy need."""
        workload = self.question.workload
        return not isinstance(workload, InferenceWorkloadInput) or workload.horizon is not MISSING


@contextmanager
def relocate_errors(supply: DeviceSupply) -> Iterator[None]:
    """Moves the pointer of an estimate's error to its place in the question of the plan."""
    try:
        yield
    except PlanningError as error:
        raise PlanningError(error.code, map_pointer(error.pointer, supply), error.detail) from error


def map_pointer(pointer: str, supply: DeviceSupply) -> str:
    """Returns the pointer in the plan's question for ``pointer`` of an estimate on a supply."""
    name, _, rest = pointer.removeprefix("/").partition("/")
    if name == "load_profile":
        return f"{supply.site_pointer}/pue_by_month"
    if name == "site":
        return "/".join([supply.site_pointer, *filter(None, [rest])])
    if name in ("rental", "purchase", "cluster"):
        return supply.pointer if supply.kind == "offer" else supply.pointer + pointer
    return pointer


@dataclass
class CandidatePricer:
    """Estimator of cost, energy and emissions for the configurations of a space."""

    space: SearchSpace
    runs: RunCache = field(default_factory=RunCache)

    @cached_property
    def wanted(self) -> RequiredFigures:
        """Figures that the question needs."""
        return RequiredFigures(self.space.question)

    def needs_energy(self, supply: DeviceSupply) -> bool:
        """Returns true if the energy of candidates on this supply is needed."""
        if supply.site is None or not self.wanted.has_end:
            return False
        return supply.kind == "owned" or self.wanted.energy

    def price_start(
        self,
        supply: DeviceSupply,
        kept: KeptConfiguration,
        starts_at: datetime | None = None,
        name: str | None = None,
    ) -> PricedCandidate:
        """Returns a configuration from a start, with the constraint that rules it out, if any."""
        try:
            worked = self.runs.get_run(self.space, kept, supply.accelerator_id)
            with relocate_errors(supply):
                return self._apply_constraints(
                    self._compute_figures(worked, supply, kept, starts_at)._replace(name=name), worked
                )
        except PlanningError as error:
            if error.code != NEVER_ENDS:
                raise
        devices = self.space.get_cluster(kept).accelerator_count
        late = PlanConstraint.DEADLINE
        return PricedCandidate(kept, supply, devices, float("inf"), starts_at, name, ruled_out_by=late)

    def check_supply(self, worked: EvaluatedConfiguration, supply: DeviceSupply) -> None:
        """Refuses terms, a purchase or a site that the estimators cannot use."""
        question, kept = self.space.question, KeptConfiguration(supply.clusters[0], {}, {}, 0.0)
        window = question.window
        start = question.starts_at if window is MISSING else window.earliest_start_at
        begins = None if start is MISSING else start
        with relocate_errors(supply):
            first = self._compute_figures(worked, supply, kept, begins)
            if window is not MISSING and self.needs_energy(supply):
                alone = window.model_copy(update={"latest_start_at": window.earliest_start_at})
                question = question.model_copy(update={"window": alone})
                select_starts(question, self._build_started(first), self.meter_run(worked, supply, begins))

    def _compute_figures(
        self,
        worked: EvaluatedConfiguration,
        supply: DeviceSupply,
        kept: KeptConfiguration,
        starts_at: datetime | None,
    ) -> PricedCandidate:
        run = worked.copy_run()
        lasting = None if run.duration_seconds is None else run.duration_seconds.value
        parts: list[CurrencyCharges] | None = []
        if self.wanted.has_end:
            request = build_cost_request(self.space, worked.configuration, supply, starts_at)
            if request is not None:
                cost = estimate_cost_of_run(request, run, worked.catalog)
                parts = None if cost.total is None else [cost.total]
                if cost.rent is not None and cost.rent.spot is not None:
                    lasting = cost.rent.spot.lasting.value
        is_service = isinstance(self.space.question.workload, InferenceWorkloadInput)
        time = worked.request_seconds if is_service else lasting
        found = PricedCandidate(
            kept,
            supply,
            run.case.cluster.accelerator_count,
            float("inf") if time is None else time,
            starts_at,
            seconds=lasting,
        )
        metered = self.meter_run(worked, supply, starts_at) if self.needs_energy(supply) else None
        if metered is not None:
            found = _add_energy(found, metered)
        if supply.kind == "owned":
            paid = None if metered is None else metered.electricity
            parts = None if paid is None or parts is None else [*parts, paid]
        whole = sum_charges(parts) if parts and self.wanted.has_end else None
        return found if whole is None else found._replace(cost=whole.amount)

    def meter_run(
        self, worked: EvaluatedConfiguration, supply: DeviceSupply, starts_at: datetime | None
    ) -> MeteredRun | None:
        """Returns the energy of a run at the site of the supply, or None if the site is unknown."""
        request = build_bill_request(self.space, worked.configuration, supply, starts_at)
        if request is None or supply.site is None:
            return None
        return worked.meter_run(request, supply.site)

    def _build_started(self, first: PricedCandidate) -> StartedRun:
        return StartedRun(first.supply, first.time, first.cost, self.budget)

    def _apply_constraints(self, found: PricedCandidate, worked: EvaluatedConfiguration) -> PricedCandidate:
        """Returns the candidate with the first constraint that rules it out."""
        if found.name is not None:
            broken = self._find_run_constraint(found, worked)
            if broken is not None:
                return found._replace(ruled_out_by=broken)
        return found._replace(ruled_out_by=next(self._list_broken_constraints(found), None))

    def _find_run_constraint(
        self, found: PricedCandidate, worked: EvaluatedConfiguration
    ) -> PlanConstraint | None:
        """Returns the constraint that rules a given configuration out, which no search has checked."""
        limit = self.space.question.constraints.accelerator_count
        if limit is not MISSING and found.devices > limit:
            return PlanConstraint.DEVICES
        memory = estimate_memory(worked.configuration.memory, worked.catalog)
        left = get_headroom_share(self.space.asked) * memory.get("usable_bytes", 0.0)
        if memory.get("fits") is False or memory.get("headroom_bytes", left) < left:
            return PlanConstraint.MEMORY
        workload, run = worked.configuration.throughput.workload, worked.run
        if not isinstance(workload, InferenceWorkloadInput) or workload.service_levels is MISSING:
            return None
        if (
            isinstance(run, ServingRun)
            and isinstance(run.serving, ServingEstimate)
            and run.case.levels is not None
        ):
            limits, share = run.case.levels
            return (
                PlanConstraint.SERVICE_LEVEL if run.serving.estimate_goodput(limits).value < share else None
            )
        return PlanConstraint.SERVICE_LEVEL

    def _list_broken_constraints(self, found: PricedCandidate) -> Iterator[PlanConstraint]:
        """Yields violated constraints of time, power, emissions and money."""
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

    def is_in_time(self, found: PricedCandidate) -> bool:
        """Returns true if a training run ends by its deadline."""
        limits = self.space.question.constraints
        if limits.duration_seconds is not MISSING and found.time > limits.duration_seconds:
            return False
        if limits.finish_by is MISSING or found.starts_at is None:
            return True
        return found.time <= (limits.finish_by - found.starts_at) / timedelta(seconds=1)

    @cached_property
    def day(self) -> date:
        """Day of the exchange rates: that of the first start, else today."""
        question = self.space.question
        if question.window is not MISSING:
            return question.window.earliest_start_at.date()
        return (now() if question.starts_at is MISSING else question.starts_at).date()

    @cached_property
    def budget(self) -> Decimal | None:
        """The budget in the currency of the plan, or None."""
        limit = self.space.question.constraints.budget
        if limit is MISSING:
            return None
        currency, rates = get_currency(self.space.question), self.space.catalog.exchange_rates
        found = rates.convert(Decimal(limit.amount), limit.currency_code, currency, self.day)
        if found is None:
            detail = f"no exchange rate from {limit.currency_code} to {currency} is known"
            raise PlanningError("CURRENCY_MISMATCH", "/constraints/budget/currency_code", detail)
        return found.amount

    def list_candidates(
        self, supply: DeviceSupply, kept: KeptConfiguration, name: str | None = None
    ) -> list[PricedCandidate]:
        """Returns a configuration from its best start; for a Pareto set, from all that are not dominated."""
        question = self.space.question
        if question.window is MISSING:
            start = None if question.starts_at is MISSING else question.starts_at
            return [self.price_start(supply, kept, start, name)]
        first = self.price_start(supply, kept, question.window.earliest_start_at, name)
        if first.time == float("inf"):
            return [first]
        worked = self.runs.get_run(self.space, kept, supply.accelerator_id)
        with relocate_errors(supply):
            metered = self.meter_run(worked, supply, first.starts_at) if self.needs_energy(supply) else None
            starts = select_starts(question, self._build_started(first), metered)
        return [
            first if start == first.starts_at else self.price_start(supply, kept, start, name)
            for start in starts
        ]


def _add_energy(found: PricedCandidate, metered: MeteredRun) -> PricedCandidate:
    emitted, peak = metered.emissions, metered.energy.peak_kw
    return found._replace(
        kg_co2e=None if emitted is None else emitted.value, kw=None if peak is None else peak.value
    )
