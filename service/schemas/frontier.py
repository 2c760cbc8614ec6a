"""Requests for the best configurations of a served model, and their answers."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.planning.inference import FrontierConstraint
from service.schemas.answers import ParallelismDegrees
from service.schemas.base import (
    AnswerWarning,
    Degree,
    EstimateEvidence,
    EstimateGap,
    Integer,
    QuantityEstimate,
    StrictModel,
)
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.references import AcceleratorReference, ClusterInput, ModelReference
from service.schemas.workloads import InferenceWorkloadInput, WeightFormatName

MOST_CONFIGURATIONS = 100_000
"""Most configurations of one search."""
MOST_VARIANTS = 1_000
"""Most configurations of one search that differ in more than the number of concurrent requests."""

_Degrees = Annotated[list[Degree], Field(min_length=1, max_length=32)]


class StorageSearch(StrictModel):
    """Storage formats of a served model to search. Each defaults to the format of the workload."""

    weight_formats: Annotated[list[WeightFormatName], Field(min_length=1, max_length=16)] | MISSING = MISSING
    """Formats that the weights may be stored in. Defaults to the format of the workload."""
    weight_precisions: (
        Annotated[
            list[Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"]],
            Field(min_length=1, max_length=7),
        ]
        | MISSING
    ) = MISSING
    """Precisions that the weights may have, beside `weight_formats`. Defaults to the precision of the
    workload."""
    kv_cache_precisions: (
        Annotated[
            list[Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4", "q8_0", "q5_0", "q4_0"]],
            Field(min_length=1, max_length=9),
        ]
        | MISSING
    ) = MISSING
    """Formats that the KV cache may be stored in. Defaults to the format of the workload."""


class FrontierSearchInput(StorageSearch):
    """Settings to search: layouts and concurrent requests; precisions and accelerators if listed."""

    requests_per_replica: Annotated[list[Degree], Field(min_length=1, max_length=4096)] | MISSING = MISSING
    """Concurrent requests on each replica. Defaults to each number from 1 to 32 and steps of 5% up to
    4,096."""
    tensor: _Degrees | MISSING = MISSING
    """Tensor-parallel degrees. Defaults to those that divide the cluster."""
    pipeline: _Degrees | MISSING = MISSING
    """Numbers of pipeline stages. Defaults to those that divide the cluster."""
    expert: _Degrees | MISSING = MISSING
    """Numbers of replicas that the experts are spread over. Defaults to those that divide the number of
    replicas. Values other than 1 need a model with experts."""
    expert_tensor: _Degrees | MISSING = MISSING
    """Devices that each expert is divided over. Defaults to 1 and the tensor-parallel degree."""
    accelerators: Annotated[list[AcceleratorReference], Field(min_length=1, max_length=16)] | MISSING = (
        MISSING
    )
    """Accelerators that the devices of the cluster may be. Defaults to the accelerator of the cluster."""
    most_points: Annotated[int, Field(ge=2, le=1000, json_schema_extra={"format": "int64"})] = 100
    """Most points of the answer. Of a larger Pareto set the answer has both ends and an even selection
    between them."""


class ThroughputFrontierRequest(StrictModel):
    """Request for the configurations of a served model that are best for its users and for the devices."""

    model: ModelReference
    """Model that is served."""
    workload: InferenceWorkloadInput
    """Load of the model. Concurrent requests are searched. With `service_levels`, only requests that meet
    them count."""
    cluster: ClusterInput
    """Cluster that the model runs on. Each configuration uses all of it."""
    search: FrontierSearchInput = FrontierSearchInput()
    """Settings to search. Defaults to layouts and concurrent requests."""


class FrontierPoint(TypedDict):
    """A configuration that no other exceeds in both rates."""

    parallelism: ParallelismDegrees
    """Layout of the configuration."""
    accelerator_id: str
    """Id of the accelerator."""
    weight_format: str
    """Format of the stored weights."""
    kv_cache_precision: str
    """Format of the stored KV cache."""
    concurrency: Integer
    """Concurrent requests over the whole cluster."""
    requests_per_replica: Integer
    """Concurrent requests on each replica, or on each part of a replica whose experts are spread."""
    output_tokens_per_second_per_device: QuantityEstimate
    """Tokens that each device generates."""
    output_tokens_per_second_per_user: QuantityEstimate
    """Tokens that a user receives after the first: 1 over the time per output token."""
    output_tokens_per_second: QuantityEstimate
    """Tokens that the whole cluster generates."""
    requests_per_second: QuantityEstimate
    """Requests that the whole cluster completes."""
    time_to_first_token_seconds: QuantityEstimate
    """Time from a request to its first token."""
    time_per_output_token_seconds: QuantityEstimate
    """Time from one token of a request to the next."""
    request_seconds: QuantityEstimate
    """Time from a request to its last token."""
    service_level_share: NotRequired[QuantityEstimate]
    """Share of the requests that meet the service levels. Present if these are given."""
    headroom_bytes: NotRequired[Integer]
    """Bytes of the engine's share of the fullest device that are free. Absent if its capacity is unknown."""
    throughput_question: ThroughputEstimateRequest
    """Body of `POST /v1/estimates/throughput` that returns the same figures."""


class RuledOutConfigurations(TypedDict):
    """Configurations that one constraint rules out. Each counts for the first constraint that does."""

    constraint: FrontierConstraint
    """Constraint: no rate of the accelerator for the precision of the weights; heads, blocks or experts of
    the model that do not divide among the devices; tensor parallelism beyond the fast link; device memory;
    the most requests that the engine takes at a time; a service level."""
    configurations: Integer
    """Number of configurations."""


class FrontierConfigurationCounts(TypedDict):
    """Configurations of a search by outcome."""

    considered: Integer
    """Combinations of layout, precision, accelerator and concurrent requests."""
    feasible: Integer
    """Configurations that no constraint rules out."""
    pareto: Integer
    """Feasible configurations that no other exceeds in both rates."""
    ruled_out: list[RuledOutConfigurations]
    """Configurations that a constraint rules out, in the order in which constraints are checked."""


class ThroughputFrontier(TypedDict):
    """Best configurations of a served model."""

    best: NotRequired[FrontierPoint]
    """Point with the most tokens per second and device within the service levels. Present if these are given
    and can be met."""
    points: list[FrontierPoint]
    """Pareto set, or an even selection of it, by descending tokens per second and device."""
    configurations: FrontierConfigurationCounts
    """Configurations of the search by outcome."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    warnings: list[AnswerWarning]
    """Remarks about the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
