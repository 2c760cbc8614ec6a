"""Answers on memory and throughput. An unknown figure is an absent member, and a gap names it."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.planning.parallelism import PipelineSchedule, Sharding
from service.planning.workload import Recomputation
from service.schemas.base import (
    AnswerWarning,
    EstimateAdvice,
    EstimateDefault,
    EstimateEvidence,
    EstimateGap,
    Integer,
    QuantityEstimate,
)
from service.schemas.disaggregated import DisaggregationEstimate
from service.schemas.passes import ForwardPassEstimate
from service.schemas.run_answers import TrainingEstimateParts
from service.schemas.serving_answers import ServingEstimateParts


class ParallelismDegrees(TypedDict):
    """The layout that the figures hold for, given or chosen."""

    tensor: Integer
    """Devices that share each layer."""
    pipeline: Integer
    """Stages that the layers are divided into."""
    data: Integer
    """Replicas that each take a share of the batch."""
    context: Integer
    """Devices that share each sequence."""
    expert: Integer
    """Replicas that the experts are spread over."""
    expert_tensor: NotRequired[Integer]
    """Devices that each expert of a served model is divided over. Absent if they are the devices of
    `tensor`."""
    sequence_parallel: bool
    """True if tensor parallelism also divides the activations between layers."""
    sharding: Sharding
    """Part of the training state that is sharded over the replicas."""
    pipeline_schedule: PipelineSchedule
    """Order in which the micro-batches pass the pipeline."""
    virtual_stages: Integer
    """Parts of the model on each pipeline device."""
    overlap_expert_communication: NotRequired[bool]
    """True if tokens travel to their experts and back while another micro-batch computes. Absent if they do
    not."""
    overlap_tensor_communication: NotRequired[bool]
    """True if collectives of tensor parallelism run in pieces beside matrix products, false if products wait
    for them. Absent if the question leaves it to the habit of the framework."""
    chosen: bool
    """True if the service chose the layout because the question did not give one."""


class BaseEstimate(TypedDict):
    """Members that every answer carries beside its figures."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    defaults: list[EstimateDefault]
    """Members that the question leaves open and that shape the answer, as they are filled."""
    warnings: list[AnswerWarning]
    """Remarks about the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class MemoryComponent(TypedDict):
    """One part of the memory of a device."""

    name: Literal[
        "weights",
        "gradients",
        "master_weights",
        "optimizer_states",
        "weight_copies",
        "auxiliary_models",
        "activations",
        "logits",
        "gathered_weights",
        "gradient_buffers",
        "kv_cache",
        "state",
        "draft_weights",
        "draft_kv_cache",
        "adapters",
        "workspace",
        "sampler",
        "cuda_graphs",
        "communication_buffers",
        "runtime",
        "device_context",
        "fragmentation",
        "framework_overhead",
    ]
    """Content of the memory. Parts of a training step that take no bytes are left out, except its training
    state."""
    bytes: Integer
    """Bytes on the fullest device."""


class DeviceMemory(TypedDict):
    """Memory of the fullest device. `known_bytes` is the sum of the components."""

    total_bytes: NotRequired[QuantityEstimate]
    """Sum of all components. Absent if one of them is unknown."""
    known_bytes: Integer
    """Sum of the components that are listed."""
    components: list[MemoryComponent]
    """Parts of the memory."""


class KvCacheUsage(TypedDict):
    """The KV cache of one request: on the fullest device, except for `model_bytes_per_token`."""

    allocation: Literal["paged", "contiguous"]
    """`paged` if a request takes blocks as it grows, `contiguous` if it takes its whole length at once."""
    block_tokens: Integer
    """Tokens that are allocated at a time."""
    bytes_per_token: float
    """Bytes of a token on the fullest device, as a mean over the length of a request. A windowed layer takes
    no more beyond its window."""
    bytes_per_request: Integer
    """Bytes of a request at its full length on the fullest device."""
    waste_bytes_per_request: Integer
    """Bytes of a request on the fullest device that are never filled: the rest of the last block, and in a
    contiguous cache on average half of the output."""
    model_bytes_per_token: float
    """Bytes of a token over all layers and heads of the model, each held once, as a mean over the length of a
    request. A tensor-parallel group divides them by its degree, at most by the key-value heads. Each of its
    devices holds a latent whole."""


class OffloadedMemory(TypedDict):
    """State of a training step that is kept outside the device, for each device."""

    memory_bytes: Integer
    """Bytes in the memory of the host."""
    nvme_bytes: Integer
    """Bytes on the drives of the host."""


class MemoryLimits(TypedDict):
    """Largest value of each dimension before the device is full, with the others as requested."""

    max_micro_batch_size: NotRequired[Integer]
    """Largest number of sequences that a replica can process at a time."""
    max_sequence_length: NotRequired[Integer]
    """Longest sequence, in tokens."""
    max_concurrency: NotRequired[Integer]
    """Largest number of concurrent requests over the whole cluster."""
    kv_cache_tokens: NotRequired[Integer]
    """Tokens that the KV cache of the whole cluster holds, as the engine counts them."""


class MemoryEstimate(BaseEstimate):
    """Memory of a workload on its fullest device, and whether it fits."""

    parameter_count: Integer
    """Parameters as PyTorch counts those of the model class: tied ones once, buffers not."""
    active_parameter_count: Integer
    """Parameters that one token uses."""
    trained_parameter_count: NotRequired[Integer]
    """Parameters that a training run changes."""
    stored_weight_bytes: NotRequired[Integer]
    """Bytes of the weights of the whole served model as they are stored, counted once: the size of its
    files."""
    per_device: DeviceMemory
    """Memory of the fullest device."""
    kv_cache: NotRequired[KvCacheUsage]
    """KV cache of a request. Present for a served model that keeps one."""
    host: NotRequired[OffloadedMemory]
    """State that is offloaded from the device. Absent if nothing is."""
    capacity_bytes: NotRequired[Integer]
    """Memory that the driver of the device reports. Absent if it is unknown."""
    usable_bytes: NotRequired[Integer]
    """Memory of the device that the workload may use. Under a serving engine: its share, and what it takes
    outside that share."""
    headroom_bytes: NotRequired[Integer]
    """Usable bytes less the total. Below 0 if the workload does not fit."""
    fits: NotRequired[bool]
    """True if the total is at most the usable bytes."""
    fit_probability: NotRequired[float]
    """Probability that the workload fits, from the intervals of total and capacity."""
    limits: MemoryLimits
    """Largest value of each dimension before the device is full."""
    advice: list[EstimateAdvice]
    """Changes that make the workload fit. For training: the cheapest set of changes, to be made together,
    ordered by their cost. For serving: single changes, or the smallest sets if no single one is enough."""


class IterationPartTime(TypedDict):
    """Time of one part of the iterations of a phase."""

    part: Literal["matrices", "experts", "attention", "other", "collectives", "launch", "host"]
    """Part of an iteration. Matrices and experts multiply; attention reads the cache; other streams
    activations; collectives are waited for; launch is the time of kernels beside their work; host is the time
    of the engine's own program."""
    seconds: float
    """Time of the phase that the part takes."""


class PhaseTime(TypedDict):
    """A part of the time and the limit that sets it."""

    phase: Literal[
        "generation",
        "weight_synchronization",
        "policy_forward",
        "reference_forward",
        "reward_forward",
        "critic_forward",
        "critic_training",
        "teacher_forward",
        "forward",
        "backward",
        "recomputation",
        "tensor_communication",
        "context_communication",
        "expert_communication",
        "data_communication",
        "pipeline_communication",
        "offload_communication",
        "bubble",
        "optimizer",
        "host",
        "stragglers",
        "data",
        "waiting",
        "encoder",
        "text_encoder",
        "denoiser",
        "autoencoder",
        "prefill",
        "transfer",
        "decode",
    ]
    """Part of a step or of a request."""
    seconds: QuantityEstimate
    """Time of the phase."""
    bound: Literal["compute", "memory", "communication", "waiting", "host", "data"]
    """The limit that sets the time."""
    parts: NotRequired[list[IterationPartTime]]
    """Time of a phase of a request by part of its iterations. The parts sum to the time of the phase."""


class OperatorEstimate(TypedDict):
    """One operator of a block on one device and one micro-batch, under the roofline."""

    operator: str
    """Name of the operator."""
    direction: Literal["forward", "backward"]
    """Pass that the operator belongs to."""
    flops: float
    """Floating-point operations."""
    moved_bytes: Integer
    """Bytes read and written in the device's memory."""
    flops_per_byte: float
    """Arithmetic intensity."""
    attainable_flops_per_second: float
    """Rate that the data sheet allows at this intensity."""
    achieved_flops_per_second: float
    """Rate that follows from the estimated time."""
    seconds: float
    """Estimated time."""
    bound: Literal["compute", "memory"]
    """The limit that sets the time."""


class Bottleneck(TypedDict):
    """Limit of the speed. `axis` is the axis of data, algorithm and machine."""

    bound: Literal["compute", "memory", "communication", "waiting", "host", "data"]
    """The limit that sets most of the time."""
    axis: Literal["algorithm", "machine", "data"]
    """Place to look for a remedy."""
    advice: list[EstimateAdvice]
    """Changes worth trying."""


class ThroughputRates(TypedDict):
    """Rates of training or of serving. Members of the other kind are absent."""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""
    peak_flops_per_second_per_device: float
    """Dense rate of the number format that the multiplications use."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""
    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""
    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens that the whole cluster trains on."""
    tokens_per_second_per_device: NotRequired[QuantityEstimate]
    """Tokens that each device trains on."""
    samples_per_second: NotRequired[QuantityEstimate]
    """Sequences that the whole cluster trains on."""
    model_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations reach."""
    hardware_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations and those of recomputation reach."""
    hardware_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """Operations that each device executes, recomputation included and attention counted in full."""
    model_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations, attention counted in full whatever its mask hides."""
    unmasked_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations without the scores that a causal mask hides."""


class NaiveLayout(TypedDict):
    """The first layout that fits in the order of practice, which the chosen one is compared with."""

    parallelism: ParallelismDegrees
    """The layout."""
    micro_batch_size: Integer
    """Sequences that a replica processes at a time on it."""
    recomputation: Recomputation
    """Activations that it recomputes."""
    step_time_ratio: float
    """Time of a step on it over the time of a step on the chosen layout: the gain of the choice. Below 1 if
    it leaves less memory free than the chosen layout has to."""


class ThroughputEstimate(BaseEstimate, ThroughputRates, TrainingEstimateParts, ServingEstimateParts):
    """Speed of a training run or of a served model, and its limits."""

    breakdown: list[PhaseTime]
    """Time of a step or of a request by phase."""
    passes: NotRequired[ForwardPassEstimate]
    """Figures of forward passes. Present if each request is a forward pass."""
    disaggregation: NotRequired[DisaggregationEstimate]
    """Figures of disaggregated serving. Present if prefill and decode have replicas of their own."""
    naive_layout: NotRequired[NaiveLayout]
    """Layout that the chosen one is compared with. Present if the service chose the layout by time and a
    naive one fits."""
    bottleneck: NotRequired[Bottleneck]
    """Limit of the speed."""
    operators: NotRequired[list[OperatorEstimate]]
    """Operators of one block of a training run, on one device and one micro-batch."""


class MemoryEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[MemoryEstimate]


class ThroughputEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[ThroughputEstimate]
