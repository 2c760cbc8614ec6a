"""Request and answer of the summary: the four questions about a model on hardware, in one."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.planning.precision import TrainingPrecision
from service.schemas.base import (
    AnswerWarning,
    CatalogName,
    Degree,
    EstimateAdvice,
    EstimateDefault,
    EstimateEvidence,
    EstimateGap,
    Instant,
    Integer,
    MoneyQuantity,
    PositiveInteger,
    QuantityEstimate,
    Size,
    StrictModel,
)
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)
from service.schemas.purchase import Purchase
from service.schemas.rental import Rental
from service.schemas.site import RunSiteInput

HOURS_OF_A_MONTH = 730.0
MOST_HOURS = 876_000.0
"""A hundred years."""
MOST_ACCELERATORS = 1_000_000
HARDWARE = r"^([1-9][0-9]{0,5} ?[xX] ?)?[A-Za-z0-9][A-Za-z0-9 ._/+()-]{0,199}$"


class ServingGoal(StrictModel):
    """Serving the model."""

    kind: Literal["serve"]
    context_tokens: Size | MISSING = MISSING
    """Longest request, its prompt and its answer together. Defaults to the context of the model."""
    input_tokens: Size | MISSING = MISSING
    """Tokens of a usual prompt. Defaults to 1024, or to what the context of the model has room for."""
    output_tokens: Size = 256
    """Tokens that are generated for it."""
    concurrency: Degree = 1
    """Usual requests at a time."""
    weights: Annotated[str, Field(max_length=40, pattern=r"^[A-Za-z0-9_.-]+$")] | MISSING = MISSING
    """Storage of the weights, in any case: a width such as `fp8` (`weight_precision`), or a format such as
    `q4_k_m` or `awq` (`weight_format`). Defaults to the published one."""


class TrainingGoal(StrictModel):
    """Training the model, or low-rank adapters of it."""

    kind: Literal["train"]
    adaptation: Literal["full", "lora", "qlora"] = "full"
    """Parameters that are trained."""
    total_tokens: PositiveInteger | MISSING = MISSING
    """Tokens of the whole run. Without them there are neither a price nor a bill."""
    sequence_length: Size | MISSING = MISSING
    """Tokens of a sequence. Defaults to 4096, or to the context of the model if that is shorter."""
    precision: TrainingPrecision | MISSING = MISSING
    """Format of the arithmetic. Defaults to that of the accelerator."""


SummaryGoal = TypeAliasType("SummaryGoal", Annotated[ServingGoal | TrainingGoal, Field(discriminator="kind")])


class SummaryRequest(StrictModel):
    """Request for fit, users, speed, price and bill of a model on hardware."""

    model: CatalogName
    """Model of the catalog, by any of its names."""
    hardware: Annotated[str, Field(max_length=210, pattern=HARDWARE, examples=["8xh100-sxm"])]
    """Accelerators: `<count>x<name>` with any name of an accelerator, or of an instance of a cloud or a slice
    of TPUs, whose accelerators are counted. Without a count there is one."""
    goal: SummaryGoal = ServingGoal(kind="serve")
    """Purpose of the hardware. Defaults to serving."""
    hours: Annotated[float, Field(gt=0, le=MOST_HOURS)] = HOURS_OF_A_MONTH
    """Hours that a served model runs for its price and its bill. Defaults to a month."""
    rental: Rental | MISSING = MISSING
    """Terms and price of renting the devices. Defaults to the cheapest on-demand offer of the catalog, of
    those in instances that hold the accelerators that work together, unless all of these have more
    accelerators than the question."""
    purchase: Purchase | MISSING = MISSING
    """Price of buying the devices."""
    site: RunSiteInput | MISSING = MISSING
    """Building that houses the run. Without it the bill has no price of electricity and no emissions."""
    starts_at: Instant | MISSING = MISSING
    """Start of the run, for a tariff whose prices depend on the time."""


class SummaryFit(TypedDict):
    """Memory of the usual request, or of a training step, on the fullest device."""

    fits: NotRequired[bool]
    """True if the total is at most the usable bytes."""
    fit_probability: NotRequired[float]
    """Probability that it fits, from the intervals of total and capacity."""
    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device."""
    usable_bytes: NotRequired[Integer]
    """Memory of the device that the workload may use."""
    advice: NotRequired[list[EstimateAdvice]]
    """Advice of the memory estimate, and the least doubling of the accelerators with which it fits. Present
    if it does not fit."""


class SummaryUsers(TypedDict):
    """Requests of the full context that the hardware holds at a time."""

    context_tokens: Integer
    """Tokens of such a request."""
    max_concurrency: NotRequired[Integer]
    """Most of them at a time, over all devices."""
    max_sequence_length: NotRequired[Integer]
    """Tokens of the longest request that fits, where none of the full context does."""


class SummarySpeed(TypedDict):
    """Speed of the usual requests, or of training. Members of the other kind are absent."""

    time_to_first_token_seconds: NotRequired[QuantityEstimate]
    """Time from a request to its first token."""
    time_per_output_token_seconds: NotRequired[QuantityEstimate]
    """Time between tokens of an answer."""
    output_tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that all devices generate."""
    requests_per_second: NotRequired[QuantityEstimate]
    """Requests that all devices answer."""
    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""
    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster trains on."""
    model_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations reach."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""


class SummaryPrice(TypedDict):
    """Price of the hours of a served model, or of a training run."""

    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""
    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens that are trained on or generated."""


class SummaryBill(TypedDict):
    """Energy and emissions of the same hours or run."""

    it_kwh: NotRequired[QuantityEstimate]
    """Energy of accelerators and hosts."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""
    electricity_total: NotRequired[MoneyQuantity]
    """Cost of the electricity."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the grid."""


class SummaryEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that return the same figures."""

    memory: MemoryEstimateRequest
    """Body of `fit`, for `memory`."""
    full_context: NotRequired[MemoryEstimateRequest]
    """Body of `users`, for `memory`. Present for a served model that generates tokens."""
    throughput: ThroughputEstimateRequest
    """Body of `speed`, for `throughput`."""
    cost: CostEstimateRequest
    """Body of `price`, for `cost`."""
    utility_bill: UtilityBillRequest
    """Body of `bill`, for `utility-bill`."""


class SummaryEstimate(TypedDict):
    """Fit, users, speed, price and bill of a model on hardware."""

    model_id: str
    """Model of the catalog that the name stands for."""
    accelerator_id: str
    """Accelerator of the catalog that the name stands for."""
    accelerator_count: Integer
    """Accelerators of the hardware."""
    fit: SummaryFit
    """Memory of the usual request, or of a training step."""
    users: NotRequired[SummaryUsers]
    """Requests of the full context at a time. Present for a served model."""
    speed: SummarySpeed
    """Speed of the usual requests, or of training."""
    price: SummaryPrice
    """Price of the hours of a served model, or of a training run."""
    bill: SummaryBill
    """Energy and emissions of the same hours or run."""
    requests: SummaryEstimateRequests
    """Full requests that give the same figures."""
    defaults: list[EstimateDefault]
    """Members of the full requests that are left open, as they are filled. Pointers begin at `requests`."""
    warnings: list[AnswerWarning]
    """Remarks about the full requests. Pointers begin at `requests`."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
