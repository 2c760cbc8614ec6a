"""The shapes of memory and throughput. An unknown figure is an absent member, and a gap names it."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.planning.parallelism import PipelineSchedule, Sharding
from service.schemas.base import (
    AnswerWarning,
    EstimateAdvice,
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
    """Devices that each expert of a served model is cut over; absent where they are those of tensor."""
    sequence_parallel: bool
    """Whether tensor parallelism also divides the activations between layers."""
    sharding: Sharding
    """Which part of the training state is spread over the replicas."""
    pipeline_schedule: PipelineSchedule
    """In which order the micro-batches pass the pipeline."""
    virtual_stages: Integer
    """Parts of the model on each pipeline device."""
    chosen: bool
    """Whether the service chose the layout, because the question left it out."""


class BaseEstimate(TypedDict):
    """What every answer carries beside its figures."""

    parallelism: ParallelismDegrees
    """The layout that the figures hold for."""
    evidence: EstimateEvidence
    """What it takes to reproduce the answer."""
    warnings: list[AnswerWarning]
    """What to know of the question."""
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
    """What the memory holds. Parts of a training step that hold nothing are left out, but for its state."""
    bytes: Integer
    """Bytes on the fullest device."""


class DeviceMemory(TypedDict):
    """Memory of the fullest device. `known_bytes` is the sum of the components."""

    total_bytes: NotRequired[QuantityEstimate]
    """Sum of all components; absent where one is unknown."""
    known_bytes: Integer
    """Sum of the components that follow."""
    components: list[MemoryComponent]
    """Parts of the memory."""


class KvCacheUsage(TypedDict):
    """The KV cache of one request on the fullest device."""

    allocation: Literal["paged", "contiguous"]
    """Whether a request takes blocks as it grows, or its whole length at once."""
    block_tokens: Integer
    """Tokens that are taken at a time."""
    bytes_per_token: float
    """Mean over the request's length; a windowed layer takes no more beyond its window."""
    bytes_per_request: Integer
    """At its full length."""
    waste_bytes_per_request: Integer
    """What of that is never filled: the rest of the last block, and of a contiguous cache on average half of
    the output."""


class OffloadedMemory(TypedDict):
    """What a training step keeps outside the device, for each device."""

    memory_bytes: Integer
    """Bytes of the host's memory."""
    nvme_bytes: Integer
    """Bytes of its drives."""


class MemoryLimits(TypedDict):
    """How far each dimension goes before the device is full, the others as asked."""

    max_micro_batch_size: NotRequired[Integer]
    """Most sequences that a replica can process at a time."""
    max_sequence_length: NotRequired[Integer]
    """Longest sequence, in tokens."""
    max_concurrency: NotRequired[Integer]
    """Most requests at a time over the whole cluster."""
    kv_cache_tokens: NotRequired[Integer]
    """Tokens that the KV cache of the whole cluster holds, as the engine counts them."""


class MemoryEstimate(BaseEstimate):
    """Does it fit?"""

    parameter_count: Integer
    """As PyTorch counts the parameters of the class: tied ones once, buffers not."""
    active_parameter_count: Integer
    """Parameters that one token uses."""
    trained_parameter_count: NotRequired[Integer]
    """Parameters that a training run changes."""
    stored_weight_bytes: NotRequired[Integer]
    """Weights of the whole served model as they are stored, once: what its files hold of them."""
    per_device: DeviceMemory
    """Memory of the fullest device."""
    kv_cache: NotRequired[KvCacheUsage]
    """Of a served model that keeps one."""
    host: NotRequired[OffloadedMemory]
    """What leaves the device; absent where nothing does."""
    capacity_bytes: NotRequired[Integer]
    """What the driver of the device reports; absent where it is unknown."""
    usable_bytes: NotRequired[Integer]
    """What the workload may use of it: under a serving engine its share, and what it takes outside that."""
    headroom_bytes: NotRequired[Integer]
    """Usable bytes less the total; below 0 where it does not fit."""
    fits: NotRequired[bool]
    """Whether the total is at most the usable bytes."""
    fit_probability: NotRequired[float]
    """Probability that it fits, from the intervals of total and capacity."""
    limits: MemoryLimits
    """How far each dimension goes before the device is full."""
    advice: list[EstimateAdvice]
    """Changes that would make it fit: for training the cheapest set, which does so together, in the order of
    their cost; for serving single changes, else the smallest sets of them."""


class IterationPartTime(TypedDict):
    """What takes a part of an iteration."""

    part: Literal["matrices", "experts", "attention", "other", "collectives", "launch", "host"]
    """Matrices and experts multiply, attention reads the cache, other streams activations; collectives are
    waited for, launch is time of kernels beside their work, host that of the engine's own program."""
    seconds: float
    """Its time of the phase."""


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
    """Time that it takes."""
    bound: Literal["compute", "memory", "communication", "waiting", "host", "data"]
    """The limit that sets the time."""
    parts: NotRequired[list[IterationPartTime]]
    """What the iterations of a phase of a request spend its time on; they sum to it."""


class OperatorEstimate(TypedDict):
    """One operator of a block on one device and one micro-batch, under the roofline."""

    operator: str
    """What is executed."""
    direction: Literal["forward", "backward"]
    """In which pass."""
    flops: float
    """Floating-point operations."""
    moved_bytes: Integer
    """Bytes read and written in the device's memory."""
    flops_per_byte: float
    """Arithmetic intensity."""
    attainable_flops_per_second: float
    """What the data sheet allows at this intensity."""
    achieved_flops_per_second: float
    """What the estimated time amounts to."""
    seconds: float
    """Estimated time."""
    bound: Literal["compute", "memory"]
    """The limit that sets the time."""


class Bottleneck(TypedDict):
    """What limits the speed. `axis` is that of data, algorithm and machine."""

    bound: Literal["compute", "memory", "communication", "waiting", "host", "data"]
    """The limit that sets most of the time."""
    axis: Literal["algorithm", "machine", "data"]
    """Where to look for a remedy."""
    advice: list[EstimateAdvice]
    """Changes worth trying."""


class ThroughputRates(TypedDict):
    """Figures of training or of serving; those of the other kind are absent."""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""
    peak_flops_per_second_per_device: float
    """Dense rate of the format that is multiplied in."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""
    step_seconds: NotRequired[QuantityEstimate]
    """Time of one optimizer step."""
    tokens_per_second: NotRequired[QuantityEstimate]
    """Tokens trained on by the whole cluster."""
    tokens_per_second_per_device: NotRequired[QuantityEstimate]
    """Tokens trained on by each device."""
    samples_per_second: NotRequired[QuantityEstimate]
    """Sequences trained on by the whole cluster."""
    model_flops_utilization: NotRequired[QuantityEstimate]
    """Share of the peak rate that the model's own operations reach."""
    hardware_flops_utilization: NotRequired[QuantityEstimate]
    """The same with the operations of recomputation."""
    hardware_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """What each device executes, recomputation included and attention counted whole."""
    model_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations, attention counted whole whatever its mask hides."""
    unmasked_flops_per_second_per_device: NotRequired[QuantityEstimate]
    """The model's own operations without the scores that a causal mask hides."""


class ThroughputEstimate(BaseEstimate, ThroughputRates, TrainingEstimateParts, ServingEstimateParts):
    """How fast will it go?"""

    breakdown: list[PhaseTime]
    """Where the time of a step or of a request goes."""
    passes: NotRequired[ForwardPassEstimate]
    """Where requests are passes."""
    disaggregation: NotRequired[DisaggregationEstimate]
    """Where prefill and decode have replicas of their own."""
    bottleneck: NotRequired[Bottleneck]
    """What limits the speed."""
    operators: NotRequired[list[OperatorEstimate]]
    """Operators of one block of a training run, on one device and one micro-batch."""


class MemoryEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[MemoryEstimate]


class ThroughputEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[ThroughputEstimate]
