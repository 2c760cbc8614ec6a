"""Answers of plans: ranked configurations, what was ruled out, and the sensitivity of the choice."""

from enum import StrEnum
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.answers import ParallelismDegrees
from service.schemas.base import (
    AnswerWarning,
    EstimateDefault,
    EstimateEvidence,
    EstimateGap,
    Integer,
    MoneyQuantity,
    QuantityEstimate,
)
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)


class PlanConstraint(StrEnum):
    """Constraint that rules a candidate out. Constraints are checked in this order; the first one counts.

    No rate of the device for the ``precision``; degrees that the number of ``devices`` does not allow, or
    more devices than the plan may take; ``heads``, ``blocks`` and ``experts`` of the model, a ``sequence`` or
    a ``batch`` that do not divide among the devices; tensor parallelism beyond the fast ``link``; ``memory``
    of a device, less its headroom; limits of the ``engine``; a ``service_level`` that is not met; a run
    longer than its ``deadline``; the ``power`` of the building; ``carbon``; ``budget``; a supply whose cost
    in the currency of the plan is unknown (``price``), or whose emissions are (``emissions``).
    """

    PRECISION = "precision"
    DEVICES = "devices"
    HEADS = "heads"
    BLOCKS = "blocks"
    EXPERTS = "experts"
    SEQUENCE = "sequence"
    BATCH = "batch"
    LINK = "link"
    MEMORY = "memory"
    ENGINE = "engine"
    SERVICE_LEVEL = "service_level"
    DEADLINE = "deadline"
    POWER = "power"
    CARBON = "carbon"
    BUDGET = "budget"
    PRICE = "price"
    EMISSIONS = "emissions"


class PruningRule(StrEnum):
    """Bound that decides a candidate without a score: it is ruled out, or enough others are better.

    The ``state`` of a layout without any activation exceeds the memory of the device; the FLOPs of the run at
    the peak of all devices take longer than the ``deadline``, or (``roofline``) longer than the full time of
    enough known configurations of the same supply to fill its ranked ones; a layout with more of the ``work``
    that adds memory does not fit where one with less does not; an iteration of a service takes longer than
    its service ``levels`` allow for a token, whatever the load.
    """

    STATE = "state"
    DEADLINE = "deadline"
    ROOFLINE = "roofline"
    WORK = "work"
    LEVELS = "levels"


class RuledOutCandidates(TypedDict):
    """Candidates that one constraint rules out."""

    constraint: PlanConstraint
    """Constraint that rules the candidates out."""
    candidates: Integer
    """Number of candidates."""


class PrunedCandidates(TypedDict):
    """Candidates that a bound decides without a score."""

    rule: PruningRule
    """Rule that decides the candidates."""
    candidates: Integer
    """Number of candidates."""


class PlanCandidateCounts(TypedDict):
    """Counts of a search. A configuration is a layout, batch, precision and devices, whoever owns these."""

    considered: Integer
    """Configurations that were considered."""
    scored: Integer
    """Configurations whose memory and time were computed."""
    feasible: Integer
    """Scored configurations that no constraint rules out before prices."""
    ruled_out: list[RuledOutCandidates]
    """Configurations that a constraint rules out."""
    pruned: list[PrunedCandidates]
    """Configurations that a bound decides."""
    priced: Integer
    """Configurations with a supply and a start that were computed in full."""
    priced_feasible: Integer
    """Priced configurations that no constraint rules out."""
    priced_ruled_out: list[RuledOutCandidates]
    """Priced configurations that a constraint rules out."""


class PlanSupply(TypedDict):
    """Supply of the devices."""

    name: str
    """Name of the supply in the request, or id of the offer."""
    kind: Literal["owned", "rented", "offer"]
    """Kind of the supply: owned already, rented on given terms, or rented by an offer of the catalog."""
    provider: NotRequired[str]
    """Provider that rents the devices out."""
    region: NotRequired[str]
    """Region of the devices."""
    purchase_option: NotRequired[str]
    """Purchase option of the rental."""


class PlanEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that return the same figures."""

    memory: MemoryEstimateRequest
    """Body for `memory`."""
    throughput: ThroughputEstimateRequest
    """Body for `throughput`."""
    cost: NotRequired[CostEstimateRequest]
    """Body for `cost`. Present if devices or their storage are paid for."""
    utility_bill: NotRequired[UtilityBillRequest]
    """Body for `utility-bill`. Present if the building is known."""


class PlanRow(TypedDict):
    """A configuration with its estimates."""

    rank: Integer
    """Rank by the goal among the candidates that are ranked individually (`search.depth`) and not ruled out;
    1 is the best. A given configuration worse than all of them ranks after them."""
    name: NotRequired[str]
    """Name of a given configuration."""
    ruled_out_by: NotRequired[PlanConstraint]
    """Constraint that rules a given configuration out. Its rank is then 0."""
    supply: PlanSupply
    """Supply of the devices."""
    accelerator_id: str
    """Id of the accelerator."""
    accelerator_count: Integer
    """Number of devices."""
    parallelism: ParallelismDegrees
    """Layout of the devices."""
    precision: NotRequired[str]
    """Precision of training."""
    micro_batch_size: NotRequired[Integer]
    """Sequences that a replica processes at a time."""
    gradient_accumulation_steps: NotRequired[Integer]
    """Micro-batches of an optimizer step."""
    recomputation: NotRequired[str]
    """Activations that the backward pass recomputes."""
    weight_format: NotRequired[str]
    """Format of the served weights."""
    kv_cache_precision: NotRequired[str]
    """Format of the stored KV cache."""
    replicas: NotRequired[Integer]
    """Replicas of the service."""
    starts_at: NotRequired[str]
    """Start of the run. Present if the request gives one."""
    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device. Absent if a part of it is unknown."""
    headroom_bytes: NotRequired[Integer]
    """Bytes that are left of the device, or of the engine's share of it."""
    fit_probability: NotRequired[float]
    """Probability that a device holds the configuration, from the intervals of its memory and of the device's
    capacity."""
    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""
    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the run trains on."""
    model_flops_utilization: NotRequired[QuantityEstimate]
    """Model FLOPs utilization of training."""
    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request of a service to its first token."""
    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time from one token of a request of a service to the next."""
    request_seconds: NotRequired[QuantityEstimate]
    """Time from a request of a service to its last token."""
    service_level_share: NotRequired[QuantityEstimate]
    """Share of the requests that meet the service levels."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""
    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""
    cost: NotRequired[MoneyQuantity]
    """Rent or share of owned devices, electricity of owned devices, storage and egress."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""
    requests: PlanEstimateRequests
    """Requests that return the same figures."""


class PlanRowDifference(TypedDict):
    """A figure in which two rows differ."""

    name: str
    """A setting, a phase of the step, a charge or a headline, as the rows and estimates name it."""
    first: NotRequired[str | float]
    """Value of the first row. Absent if it has none."""
    second: NotRequired[str | float]
    """Value of the second row. Absent if it has none."""
    unit: NotRequired[str]
    """Unit of both values, if they are numbers."""


class PlanSeparation(TypedDict):
    """Differences between the first row and the second."""

    settings: list[PlanRowDifference]
    """Settings that differ."""
    figures: list[PlanRowDifference]
    """Headline figures that differ, the figure of the goal first."""
    parts: list[PlanRowDifference]
    """Parts of the goal's figure that differ, by the size of the difference: phases of all steps or of a
    request, charges, or emissions by kind of equipment."""
    within_interval: bool
    """True if the first row is better by less than the uncertainty of the estimates."""


class PlanSensitivity(TypedDict):
    """Change of an assumption that changes the first row. Changes up and down are reported separately."""

    assumption: Literal[
        "price",
        "time",
        "electricity_price",
        "carbon_intensity",
        "interruption_rate",
        "budget",
        "deadline",
        "work",
    ]
    """Assumption that is changed: one of `assumptions` of the request, a constraint, or the amount of
    work."""
    of: NotRequired[str]
    """Supply, accelerator or site of the assumption."""
    factor: NotRequired[float]
    """Factor closest to 1, above or below, that changes the first row. Absent if none within the range
    does."""
    searched_low: float
    """Smallest factor that was tried."""
    searched_high: float
    """Largest factor that was tried."""
    becomes: NotRequired[PlanRow]
    """First row under the changed assumption, with its figures. Absent if no row is left."""


class LaunchSettings(TypedDict):
    """Settings with which a framework or an engine runs the first row."""

    tool: Literal["torchrun", "megatron_lm", "deepspeed", "torchtitan", "vllm", "sglang"]
    """Framework or engine."""
    arguments: NotRequired[list[str]]
    """Arguments of its command line."""
    configuration: NotRequired[dict[str, object]]
    """Configuration file by section and key."""
    missing: list[EstimateGap]
    """Settings of the row that the tool does not have."""


class PlanResult(TypedDict):
    """Best configurations for some work."""

    rows: list[PlanRow]
    """Ranked rows by the goal. A Pareto set starts with the cheapest."""
    given: list[PlanRow]
    """Given configurations in the order of the request."""
    candidates: PlanCandidateCounts
    """Counts of the search."""
    separation: NotRequired[PlanSeparation]
    """Differences between the first two rows."""
    sensitivities: list[PlanSensitivity]
    """Assumptions that the choice depends on, the smallest change first."""
    launch_hints: list[LaunchSettings]
    """Settings for running the first row."""
    currency_code: str
    """Currency of all costs."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    defaults: list[EstimateDefault]
    """Limits that the question leaves open, as the search fills them."""
    warnings: list[AnswerWarning]
    """Remarks about the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
