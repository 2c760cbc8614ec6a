"""Requests and answers of fleet plans: several workloads over pools of devices, within a budget."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.schemas.base import (
    AnswerWarning,
    CurrencyCode,
    Degree,
    EstimateDefault,
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
    """A training run or a service that the fleet is to run."""

    name: Text
    """Name of the workload in the answer."""
    model: ModelReference
    """Model that is trained or served."""
    workload: WorkloadInput
    """Work of the model. For training: its total and its global batch. For a service: its load and its
    service levels, which default to those of a plan. A service has no horizon of its own: it runs from
    `earliest_start_at` to `finish_by`."""
    priority: Annotated[int, Field(ge=1, le=100, json_schema_extra=_INT64)] = 1
    """Priority of the workload, 1 being the highest. No number of workloads of a lower priority displaces one
    of a higher."""
    earliest_start_at: Instant | MISSING = MISSING
    """Earliest start of a training run; start of a service. Defaults to the start of the fleet."""
    finish_by: Instant | MISSING = MISSING
    """Latest end of a training run; end of a service. Defaults to the end of the fleet."""
    pools: Annotated[list[Text], Field(min_length=1, max_length=100)] | MISSING = MISSING
    """Names of the `owned` and `rented` pools that the workload may run on. Defaults to all of them."""
    accelerator_counts: Annotated[list[Degree], Field(min_length=1, max_length=64)] | MISSING = MISSING
    """Numbers of devices of a training run. Defaults to whole nodes in doublings, and all of a pool. A
    service takes the fewest devices that meet its service levels."""
    training: TrainingSearch = TrainingSearch()
    """Settings of a training run that are searched."""
    serving: ServingSearch = ServingSearch()
    """Settings of a service that are searched."""


class FleetPlanRequest(StrictModel):
    """Request for a schedule of several workloads over pools of devices."""

    workloads: Annotated[list[FleetWorkload], Field(min_length=1, max_length=40)]
    """Workloads to schedule."""
    owned: Annotated[list[OwnedNodes], Field(max_length=20)] = []
    """Machines that are already available. Their electricity has a price per kWh, because under a tariff the
    bill of one workload would depend on the others."""
    rented: Annotated[list[RentedDevices], Field(max_length=20)] = []
    """Devices that can be rented."""
    starts_at: Instant
    """Time from which the pools are free, rounded up to the next whole second."""
    ends_at: Instant
    """Latest end of workloads that give no time of their own."""
    budget: MoneyInput | MISSING = MISSING
    """Most that all workloads may cost together."""
    goal: Literal["cheapest", "earliest"] = "cheapest"
    """Objective among schedules that place as many workloads. `cheapest` takes the least cost, then the least
    sum of the times from the earliest start of each workload to its end; `earliest` takes them in the other
    order."""
    share_nodes: bool = False
    """Set to true to let workloads on less than a node share it, with devices counted one by one. By default
    each workload takes whole nodes."""
    currency_code: CurrencyCode | MISSING = MISSING
    """Currency of the costs, at the exchange rates of the catalog. Defaults to the currency of the budget,
    else USD."""


class FleetAssignment(TypedDict):
    """Placement of a workload on a pool, in time."""

    workload: str
    """Name of the workload."""
    pool: str
    """Name of the pool."""
    devices_taken: Integer
    """Devices that no other workload can use meanwhile: those of whole nodes, unless nodes are shared."""
    starts_at: str
    """Start of the workload."""
    ends_at: str
    """End of the workload, by the middle of the interval of its duration."""
    may_end_late: bool
    """True if the workload ends after `finish_by` at the high end of its duration."""
    row: PlanRow
    """Configuration with its estimates and the requests that give them. Its rank is always 1."""


class FleetPoolReason(TypedDict):
    """Reason why a workload does not run on a pool."""

    pool: str
    """Name of the pool."""
    reason: FleetReason
    """Reason: no configuration that the devices hold; none whose cost is known; none that alone ends within
    its window; devices that others occupy; the budget, or what others leave of it."""
    ruled_out: NotRequired[list[RuledOutCandidates]]
    """Constraints that ruled out the configurations. Present if none is left."""
    pruned: NotRequired[list[PrunedCandidates]]
    """Configurations that a bound proves to be ruled out, because their state exceeds the memory of a device.
    Present if none is left."""
    least_duration_seconds: NotRequired[float]
    """Shortest duration of a training run among the configurations that are left."""
    least_cost: NotRequired[MoneyAmount]
    """Least cost among the configurations that end within the window."""
    could_end_at: NotRequired[str]
    """Earliest end of the workload beside the others, within what is left of the budget."""


class FleetRemedy(TypedDict):
    """One change that lets a workload run while the others stay where they are."""

    change: Literal["devices", "deadline", "budget"]
    """Change: more devices of a pool, a later `finish_by`, or a larger budget."""
    pool: str
    """Pool that the workload would run on."""
    added_devices: NotRequired[Integer]
    """Number of devices to add to the pool."""
    finish_by: NotRequired[str]
    """Earliest time by which the workload can end."""
    budget: NotRequired[MoneyAmount]
    """Least budget of the fleet that includes the workload."""
    accelerator_count: Integer
    """Devices that the workload would run on."""
    starts_at: str
    """Start of the workload after the change."""
    ends_at: str
    """End of the workload after the change."""
    cost: NotRequired[MoneyAmount]
    """Cost of the workload after the change."""


class UnplacedFleetWorkload(TypedDict):
    """A workload that the schedule does not place."""

    workload: str
    """Name of the workload."""
    reason: FleetReason
    """Reason of the pool where the workload comes closest, in the order configuration, price, deadline,
    devices and budget."""
    pools: list[FleetPoolReason]
    """Reasons by pool."""
    remedies: list[FleetRemedy]
    """Changes that would place the workload. More devices are tried in the numbers that the workload names,
    else in doublings of a pool, up to 16 times its size."""


class FleetPoolSpan(TypedDict):
    """A span of time in which the same workloads run on a pool."""

    starts_at: str
    """Start of the span."""
    ends_at: str
    """End of the span."""
    devices_taken: Integer
    """Devices that are occupied."""
    workloads: list[str]
    """Names of the workloads that occupy them."""


class FleetPoolOccupation(TypedDict):
    """Occupation of a pool over time."""

    pool: str
    """Name of the pool."""
    accelerator_count: Integer
    """Devices of the pool."""
    share_taken: float
    """Share of the pool's device-hours that is occupied, from the start of the fleet to its end, or to the
    end of the last workload."""
    spans: list[FleetPoolSpan]
    """Spans in which workloads run, in order of time."""


class FleetMonthlySpend(TypedDict):
    """Cost of a calendar month (UTC). The cost of a workload is spread evenly over its time."""

    month: str
    """Month, such as 2026-11."""
    spend: MoneyAmount
    """Cost in the month."""
    spend_so_far: MoneyAmount
    """Cost from the start until the end of the month."""
    budget_left: NotRequired[MoneyAmount]
    """Budget that is left after the month."""


class FleetPriorityBound(TypedDict):
    """Most workloads of a priority that any schedule places."""

    priority: Integer
    """Priority of the workloads."""
    workloads: Integer
    """Number of workloads."""


class FleetBound(TypedDict):
    """Bounds that no schedule exceeds."""

    most_workloads: list[FleetPriorityBound]
    """Most workloads of each priority, as if it were alone."""
    most_in_all: Integer
    """Most workloads of all priorities."""
    least_cost: NotRequired[MoneyAmount]
    """Least cost of the placed workloads. Present if the goal is `cheapest`."""
    least_seconds: NotRequired[float]
    """Least sum of the times from the earliest start of each placed workload to its end. Present if the goal
    is `earliest`."""


class FleetPlan(TypedDict):
    """Schedule of several workloads over pools of devices."""

    assignments: list[FleetAssignment]
    """Placed workloads, by start."""
    unplaced: list[UnplacedFleetWorkload]
    """Workloads that are not placed, in the order of the request."""
    is_optimal: bool
    """True if no schedule of these configurations is better. Otherwise `bound` limits how much better one
    could be."""
    bound: FleetBound
    """Bounds that no schedule exceeds."""
    pools: list[FleetPoolOccupation]
    """Occupation of the pools in the order of the request, owned ones first."""
    months: list[FleetMonthlySpend]
    """Cost by month, from the first month with a cost to the last. Empty if a cost is unknown."""
    cost: NotRequired[MoneyAmount]
    """Cost of all placed workloads. Absent if the cost of one is unknown."""
    currency_code: str
    """Currency of all costs."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    defaults: list[EstimateDefault]
    """Service levels that workloads leave open, as the search fills them."""
    warnings: list[AnswerWarning]
    """Remarks about the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
