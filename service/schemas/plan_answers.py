"""What a plan answers: ranked configurations, what was ruled out, and what the choice hangs on."""

from enum import StrEnum
from typing import Literal, NotRequired

from pydantic import AwareDatetime
from typing_extensions import TypedDict

from service.schemas.answers import ParallelismDegrees
from service.schemas.base import (
    AnswerWarning,
    EstimateEvidence,
    EstimateGap,
    Integer,
    MoneyAmount,
    MoneyQuantity,
    QuantityEstimate,
)
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from service.schemas.plans import PlanGoal, PlanRequest


class PlanConstraint(StrEnum):
    """What rules a candidate out, in the order in which it is looked at; each counts for the first that does.

    No rate of the device for the ``precision``; degrees that the number of ``devices`` does not allow, or
    more of these than the plan may take; ``heads``, ``blocks`` and ``experts`` of the model, a ``sequence``
    or a ``batch`` that do not divide among the devices; tensor parallelism beyond the fast ``link``;
    ``memory`` of a device; what the ``engine`` takes; a ``service_level`` that is not kept; a run longer than
    its ``deadline``; the ``power`` of the building; ``carbon``; ``budget``; a supply whose cost in the
    currency of the plan is not known (``price``), or whose emissions are not (``emissions``).
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
    """Why a candidate needs no score: a bound proves that it is ruled out, or that enough others are better.

    What the ``state`` of a layout takes without any activation exceeds the device; the FLOPs of the run at
    the peak of all devices take longer than the ``deadline``, or (``roofline``) than as many known
    configurations of the same supply take in all as are told apart; a layout with more of the ``work`` that
    adds memory does not fit where one with less does not; an iteration of a service takes longer than its
    ``levels`` leave a token, whatever the load.
    """

    STATE = "state"
    DEADLINE = "deadline"
    ROOFLINE = "roofline"
    WORK = "work"
    LEVELS = "levels"


class RuledOutCandidates(TypedDict):
    """Candidates that one constraint rules out."""

    constraint: PlanConstraint
    """Which."""
    candidates: Integer
    """How many."""


class PrunedCandidates(TypedDict):
    """Candidates that a bound decides without a score."""

    rule: PruningRule
    """Which."""
    candidates: Integer
    """How many."""


class PlanCandidateCounts(TypedDict):
    """What was searched. Configurations are layouts, batches, precisions and devices, whoever owns these."""

    considered: Integer
    """Configurations."""
    scored: Integer
    """Those whose memory and time were worked out."""
    feasible: Integer
    """Those of them that nothing rules out before prices."""
    ruled_out: list[RuledOutCandidates]
    """Those that a constraint rules out."""
    pruned: list[PrunedCandidates]
    """Those that a bound decides."""
    priced: Integer
    """Configurations on a supply, from a start, that were worked out in full."""
    priced_feasible: Integer
    """Those of them that nothing rules out."""
    priced_ruled_out: list[RuledOutCandidates]
    """Those that a constraint rules out."""


class PlanSupply(TypedDict):
    """Where the devices come from."""

    name: str
    """Name of the question, or id of the offer."""
    kind: Literal["owned", "rented", "offer"]
    """Whether they are there already, rented on given terms, or by an offer of the catalog."""
    provider: NotRequired[str]
    """Who rents them out."""
    region: NotRequired[str]
    """Where."""
    purchase_option: NotRequired[str]
    """How they are paid."""


class PlanEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that give the same figures."""

    memory: MemoryEstimateRequest
    """Of `memory`."""
    throughput: ThroughputEstimateRequest
    """Of `throughput`."""
    cost: NotRequired[CostEstimateRequest]
    """Of `cost`, where devices or their storage are paid."""
    utility_bill: NotRequired[UtilityBillRequest]
    """Of `utility-bill`, where the building is known."""


class PlanRow(TypedDict):
    """A configuration with its estimates."""

    rank: Integer
    """Place by the goal among candidates that are told apart (`search.depth`) and that nothing rules out; 1
    is the best. A given configuration behind all of them has a place after them."""
    name: NotRequired[str]
    """Name of a given configuration."""
    ruled_out_by: NotRequired[PlanConstraint]
    """What rules a given configuration out; it has no place then, and its rank is 0."""
    supply: PlanSupply
    """Where the devices come from."""
    accelerator_id: str
    """What the devices are."""
    accelerator_count: Integer
    """How many."""
    parallelism: ParallelismDegrees
    """Their layout."""
    precision: NotRequired[str]
    """Of training."""
    micro_batch_size: NotRequired[Integer]
    """Sequences that a replica processes at a time."""
    gradient_accumulation_steps: NotRequired[Integer]
    """Micro-batches of an optimizer step."""
    recomputation: NotRequired[str]
    """Which activations the backward pass computes again."""
    weight_format: NotRequired[str]
    """How the weights are served."""
    kv_cache_precision: NotRequired[str]
    """How the KV cache is stored."""
    replicas: NotRequired[Integer]
    """Servers of the service."""
    starts_at: NotRequired[str]
    """When it begins, where the question says."""
    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device; absent where a part of it is not known."""
    headroom_bytes: NotRequired[Integer]
    """What is left of the device, or of the engine's share of it."""
    fit_probability: NotRequired[float]
    """Probability that a device holds it, by the intervals of its memory and of the device's."""
    step_seconds: NotRequired[QuantityEstimate]
    """One optimizer step."""
    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the run trains on."""
    model_flops_utilization: NotRequired[QuantityEstimate]
    """Of training."""
    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Of a service."""
    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Of a service."""
    request_seconds: NotRequired[QuantityEstimate]
    """Of a service."""
    service_level_share: NotRequired[QuantityEstimate]
    """Share of the requests that keep to the service levels."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""
    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""
    cost: NotRequired[MoneyQuantity]
    """Rent or share of own devices, electricity of own ones, storage and what leaves."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""
    requests: PlanEstimateRequests
    """What gives the same figures."""


class PlanRowDifference(TypedDict):
    """A figure in which two rows differ."""

    name: str
    """A setting, a phase of the step, a charge or a headline, as the rows and estimates name it."""
    first: NotRequired[str | float]
    """Of the first row; absent where it has none."""
    second: NotRequired[str | float]
    """Of the second row."""
    unit: NotRequired[str]
    """Of both, where they are numbers."""


class PlanSeparation(TypedDict):
    """What separates the first row from the second."""

    settings: list[PlanRowDifference]
    """Choices that differ."""
    figures: list[PlanRowDifference]
    """Headlines that differ, that of the goal first."""
    parts: list[PlanRowDifference]
    """Of the goal's figure: phases of all steps or of a request, charges, or emissions by kind of equipment,
    by the size of their difference."""
    within_interval: bool
    """Whether the first row is better by less than the estimates are unsure of."""


class PlanSensitivity(TypedDict):
    """An assumption that, moved so far, changes the first row; up and down by themselves where both do."""

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
    """What is moved: as in `assumptions` of the question, its constraints, or the amount of the work."""
    of: NotRequired[str]
    """Which supply, accelerator or site."""
    factor: NotRequired[float]
    """Least factor, above 1 or below, that changes the first row; absent where none within the range does."""
    searched_low: float
    """Least factor that was tried."""
    searched_high: float
    """Largest factor that was tried."""
    becomes: NotRequired[PlanRow]
    """The first row then, with its figures under the moved assumption; absent where none is left."""


class LaunchSettings(TypedDict):
    """Settings with which a framework or an engine runs the winner."""

    tool: Literal["torchrun", "megatron_lm", "deepspeed", "torchtitan", "vllm", "sglang"]
    """Which."""
    arguments: NotRequired[list[str]]
    """Of its command line."""
    configuration: NotRequired[dict[str, object]]
    """Of its configuration file, by section and key."""
    missing: list[EstimateGap]
    """What of the row the tool has no setting for."""


class PlanResult(TypedDict):
    """Which configuration does this work best?"""

    rows: list[PlanRow]
    """By the goal; of a Pareto set from the cheapest on."""
    given: list[PlanRow]
    """Configurations of the question, in its order."""
    candidates: PlanCandidateCounts
    """What was searched."""
    separation: NotRequired[PlanSeparation]
    """Of the first two rows."""
    sensitivities: list[PlanSensitivity]
    """What the choice hangs on, the smallest movement first."""
    launch_hints: list[LaunchSettings]
    """For the first row."""
    currency_code: str
    """Of all costs."""
    evidence: EstimateEvidence
    """What it takes to reproduce the answer."""
    warnings: list[AnswerWarning]
    """What to know of the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class PlanProgress(TypedDict):
    """How far a search is."""

    pieces: Integer
    """Parts of the search."""
    pieces_done: Integer
    """Those that are done."""
    candidates: Integer
    """Configurations of all of them."""
    candidates_decided: Integer
    """Those that are scored, ruled out or pruned."""


class Plan(TypedDict):
    """A search, and once it is done its answer."""

    id: str
    state: Literal["running", "done", "cancelled", "failed"]
    """A search that failed says why in error_code and error_summary."""
    goal: PlanGoal
    """What was asked for."""
    question: NotRequired[PlanRequest]
    """What was asked; left out of lists."""
    created_at: AwareDatetime
    """When it was asked."""
    finished_at: NotRequired[AwareDatetime]
    """When it ended."""
    progress: PlanProgress
    """How far it is."""
    error_code: NotRequired[str]
    """Why it failed."""
    error_summary: NotRequired[str]
    """The same in words."""
    best_cost: NotRequired[MoneyAmount]
    """Of the first row."""
    answer: NotRequired[PlanResult]
    """Once it is done; left out of lists."""
