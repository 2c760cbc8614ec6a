"""Several workloads over pools of devices and a budget: who runs where and when, and what does not fit."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.schemas.base import (
    AnswerWarning,
    CurrencyCode,
    Degree,
    EstimateEvidence,
    EstimateGap,
    Instant,
    Integer,
    MoneyAmount,
    MoneyInput,
    StrictModel,
    Text,
)
from service.schemas.plan_answers import PlanRow, PrunedCandidates, RuledOutCandidates
from service.schemas.plans import OwnedNodes, RentedDevices, ServingSearch, TrainingSearch
from service.schemas.references import ModelReference
from service.schemas.workloads import WorkloadInput

_INT64 = {"format": "int64"}

FleetReason = Literal["configuration", "price", "deadline", "devices", "budget"]


class FleetWorkload(StrictModel):
    """A training run or a service that the fleet is to take."""

    name: Text
    """What the answer calls it."""
    model: ModelReference
    """What is trained or served."""
    workload: WorkloadInput
    """The work: of training its total and its global batch, of a service its load and its service levels. A
    service has no horizon of its own: it runs from earliest_start_at to finish_by."""
    priority: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 1
    """1 is the first: no number of workloads of a later priority takes the place of one."""
    earliest_start_at: Instant | MISSING = MISSING
    """Before it a training run cannot start; from it on a service runs. Defaults to that of the fleet."""
    finish_by: Instant | MISSING = MISSING
    """When a training run has to be done; until it a service runs. Defaults to the end of the fleet."""
    pools: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Names of `owned` and `rented` that it may run on; all when left out."""
    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=64)] | MISSING = MISSING
    """Numbers of devices of a training run; defaults to whole nodes in doublings, and all of a pool. A
    service takes the fewest that keep its levels."""
    training: TrainingSearch = TrainingSearch()
    """What is varied of a training run."""
    serving: ServingSearch = ServingSearch()
    """What is varied of a service."""


class FleetPlanRequest(StrictModel):
    """Who runs where, on how many devices and when?"""

    workloads: Annotated[list[FleetWorkload], Field(min_length=1, max_length=40)]
    """What is to run."""
    owned: Annotated[list[OwnedNodes], Field(max_length=20)] = []
    """Machines that are there already. Their electricity has a price per kWh: under a tariff the bill of one
    workload depends on the others."""
    rented: Annotated[list[RentedDevices], Field(max_length=20)] = []
    """Devices that can be rented."""
    starts_at: Instant
    """From when on the pools are free; the next whole second."""
    ends_at: Instant
    """Until when workloads without a time of their own have to be done."""
    budget: MoneyInput | MISSING = MISSING
    """The most that all workloads may cost together."""
    goal: Literal["cheapest", "earliest"] = "cheapest"
    """Of schedules that place as many workloads: least cost, and of equals the least time from when each may
    start until it ends, summed up; or the other way round."""
    share_nodes: bool = False
    """Whether workloads on less than a node share it. Devices are counted one by one then; left out, each
    takes whole nodes."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the costs, at the catalog's exchange rates; that of the budget, else USD."""


class FleetAssignment(TypedDict):
    """Where and when a workload runs."""

    workload: str
    """Its name."""
    pool: str
    """Whose devices."""
    devices_taken: Integer
    """Devices that no other workload can use meanwhile: those of whole nodes, unless nodes are shared."""
    starts_at: str
    """When it begins."""
    ends_at: str
    """When it is done, by the middle of its duration."""
    may_end_late: bool
    """Whether it ends after finish_by at the high end of its duration."""
    row: PlanRow
    """Its configuration, with its estimates and the requests that give them. Its rank is always 1."""


class FleetPoolReason(TypedDict):
    """Why a workload does not run on a pool."""

    pool: str
    """Which."""
    reason: FleetReason
    """No configuration that the devices hold; none whose cost is known; none that is done in its window,
    alone; devices that others have; the budget, or what others leave of it."""
    ruled_out: NotRequired[list[RuledOutCandidates]]
    """Where no configuration is left: what ruled them out."""
    pruned: NotRequired[list[PrunedCandidates]]
    """And what a bound proves to be ruled out: more state than a device holds."""
    least_duration_seconds: NotRequired[float]
    """Of a training run: of the configurations that are left."""
    least_cost: NotRequired[MoneyAmount]
    """Of the configurations that are done in the window."""
    could_end_at: NotRequired[str]
    """When it would be done at the earliest beside the others, within what is left of the budget."""


class FleetRemedy(TypedDict):
    """A change of one thing that lets a workload run, with the others where they are."""

    change: Literal["devices", "deadline", "budget"]
    """More devices of a pool, a later finish_by, or a larger budget."""
    pool: str
    """Where it would run."""
    added_devices: NotRequired[Integer]
    """How many more devices the pool would need."""
    finish_by: NotRequired[str]
    """The earliest time by which it can be done."""
    budget: NotRequired[MoneyAmount]
    """The least budget of the fleet with it."""
    accelerator_count: Integer
    """Devices that it would run on."""
    starts_at: str
    """When it would start."""
    ends_at: str
    """When it would be done."""
    cost: NotRequired[MoneyAmount]
    """What it would cost then."""


class UnplacedFleetWorkload(TypedDict):
    """A workload that does not fit."""

    workload: str
    """Its name."""
    reason: FleetReason
    """That of the pool where it comes closest: after the order of configuration, price, deadline, devices and
    budget."""
    pools: list[FleetPoolReason]
    """Pool by pool."""
    remedies: list[FleetRemedy]
    """What would make it fit. More devices are looked for in the numbers that the workload names, else in
    doublings of a pool, up to 16 times what it has."""


class FleetPoolSpan(TypedDict):
    """A time in which the same workloads run on a pool."""

    starts_at: str
    """Its beginning."""
    ends_at: str
    """Its end."""
    devices_taken: Integer
    """Devices that are taken."""
    workloads: list[str]
    """By whom."""


class FleetPoolOccupation(TypedDict):
    """What a pool does over time."""

    pool: str
    """Which."""
    accelerator_count: Integer
    """Its devices."""
    share_taken: float
    """Of its device-hours from the start of the fleet to its end, or that of the last workload."""
    spans: list[FleetPoolSpan]
    """Where something runs, in order."""


class FleetMonthlySpend(TypedDict):
    """What a calendar month costs, by UTC; the cost of a workload is spread evenly over its time."""

    month: str
    """Such as 2026-11."""
    spend: MoneyAmount
    """In it."""
    spend_so_far: MoneyAmount
    """Until its end."""
    budget_left: NotRequired[MoneyAmount]
    """After it."""


class FleetPriorityBound(TypedDict):
    """The most workloads of a priority that any schedule places."""

    priority: Integer
    """Which."""
    workloads: Integer
    """How many."""


class FleetBound(TypedDict):
    """What no schedule exceeds."""

    most_workloads: list[FleetPriorityBound]
    """By priority, as if it were alone."""
    most_in_all: Integer
    """Of all priorities."""
    least_cost: NotRequired[MoneyAmount]
    """Of the workloads that are placed, where the goal is the cheapest."""
    least_seconds: NotRequired[float]
    """The same where the goal is the earliest: from when each may start until it ends, summed up."""


class FleetPlan(TypedDict):
    """Who runs where, on how many devices and when?"""

    assignments: list[FleetAssignment]
    """By start."""
    unplaced: list[UnplacedFleetWorkload]
    """What does not fit, in the order of the question."""
    is_optimal: bool
    """Whether no schedule of these configurations is better; else `bound` says by how much one could be."""
    bound: FleetBound
    """What no schedule exceeds."""
    pools: list[FleetPoolOccupation]
    """In the order of the question, owned ones first."""
    months: list[FleetMonthlySpend]
    """From the first month with a cost to the last; empty where a cost is not known."""
    cost: NotRequired[MoneyAmount]
    """Of all workloads that run; absent where that of one is not known."""
    currency_code: str
    """Of all costs."""
    evidence: EstimateEvidence
    """What it takes to reproduce the answer."""
    warnings: list[AnswerWarning]
    """What to know of the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
