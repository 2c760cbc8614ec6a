"""Workloads of requests: a training run, or a served model under a load."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.planning.hardware.storage import GGUF_FORMATS, NAMED_FORMATS
from service.planning.models.profile import FusedAttention, OperatorFusion
from service.planning.precision import Optimizer, TrainingPrecision
from service.planning.workload import (
    AdaptationKind,
    AttentionKernel,
    CudaGraphs,
    ExpertBalance,
    FrozenWeightFormat,
    GradientCompressionKind,
    LossImplementation,
    Recomputation,
    TrainingObjective,
    TrainingStateLocation,
)
from service.schemas.base import (
    Degree,
    NotNegative,
    Positive,
    PositiveInteger,
    Share,
    Size,
    StrictModel,
    Text,
)
from service.schemas.disaggregated import DisaggregationInput
from service.schemas.load import ArrivalsInput, LengthInput, ServiceLevelsInput, SpeculativeDecodingInput
from service.schemas.passes import BatchingInput, DiffusionInput, ForwardPassesInput
from service.schemas.rollouts import RolloutInput

_INT64 = {"format": "int64"}

ExpertCapacityFactor = Annotated[float, Field(ge=0.1, le=100)]

WeightFormatName = StrEnum(  # type: ignore[misc]
    "WeightFormatName", {name: name for name in (*NAMED_FORMATS, *GGUF_FORMATS)}
)


class SoftwareVersion(StrictModel):
    """A framework or an engine by name and version."""

    name: Text
    version: Text | MISSING = MISSING
    """Version, as the software names it."""


class RecomputationInput(StrictModel):
    """Activations that the backward pass recomputes."""

    strategy: Recomputation
    """Strategy of recomputation."""
    k: Degree | MISSING = MISSING
    """Blocks from one kept input to the next. Required for the strategy `every_k`, and allowed only there."""


TargetModule = Literal[
    "all_linear",
    "query",
    "key",
    "value",
    "output",
    "gate",
    "up",
    "down",
    "expert_gate",
    "expert_up",
    "expert_down",
    "query_down",
    "query_up",
    "key_value_down",
    "key_value_up",
    "query_key_value_gate",
    "input",
]


class AdaptationInput(StrictModel):
    """Parameters that are trained."""

    kind: AdaptationKind
    """Kind of adaptation: all parameters (`full`), or small ones beside frozen weights. `scale` trains norms,
    a factor and a shift behind every matrix, and virtual tokens in each layer (LLaMA-Adapter V2)."""
    rank: Degree | MISSING = MISSING
    """Rank of the low-rank matrices (default 16), or width of an adapter's bottleneck (default 64)."""
    target_modules: Annotated[list[TargetModule], Field(min_length=1, max_length=32)] | MISSING = MISSING
    """Matrices that get low-rank ones. Defaults to query and value, for qlora to all_linear."""
    base_weights: FrozenWeightFormat | MISSING = MISSING
    """Format of the frozen weights. `plain` is the width of the activations. Defaults to plain, for qlora to
    nf4_double."""
    virtual_tokens: Degree | MISSING = MISSING
    """Virtual tokens of prompt tuning, prefix tuning and scale. Defaults to 20."""


class OffloadInput(StrictModel):
    """State that is kept outside the device between its uses."""

    optimizer: TrainingStateLocation = TrainingStateLocation.NONE
    """Location of master weights and optimizer states; under zero_2 and zero_3 of the gradients too."""
    parameters: TrainingStateLocation = TrainingStateLocation.NONE
    """Location of the weights, which are gathered block by block."""
    activations: Literal[TrainingStateLocation.NONE, TrainingStateLocation.CPU] = TrainingStateLocation.NONE
    """Location of the saved activations, except those of two blocks."""


_PIXELS = Annotated[int, Field(ge=1, le=65_536, json_schema_extra=_INT64)]


class SampleInput(StrictModel):
    """Content of one sample beside its tokens. Members default to the values that the model was built for."""

    height: _PIXELS | MISSING = MISSING
    """Height in pixels. For latents, the height of the picture that they encode."""
    width: _PIXELS | MISSING = MISSING
    """Width in pixels. Defaults to the height."""
    channels: Annotated[int, Field(ge=1, le=65_536, json_schema_extra=_INT64)] | MISSING = MISSING
    """Numbers of one input cell. The model sets it, and another number is refused."""
    frames: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Frames of a video."""
    images: Annotated[int, Field(ge=0, le=10_000, json_schema_extra=_INT64)] = 1
    """Pictures or videos of a sample, each encoded on its own."""
    source_tokens: Size | MISSING = MISSING
    """Tokens that an encoder reads, or that condition a diffusion model. A training sequence of an
    encoder-decoder defaults to as many as the decoder has."""
    audio_frames: Size | MISSING = MISSING
    """Frames of a spectrogram."""


class DataPipelineInput(StrictModel):
    """Path of samples to the devices. A stage with too few figures is left out and reported as a gap."""

    storage_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of sequential reads from the storage, for the whole cluster."""
    node_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Highest read bandwidth of one node: of its network interface, or of a drive of its own."""
    access_factor: Share = 1.0
    """Share of the bandwidth that the access pattern achieves: 1 in sequence, about 0.1 if shuffled."""
    stored_bytes_per_sample: Positive | MISSING = MISSING
    """Bytes of a stored sequence or sample."""
    preprocessing_seconds_per_sample: Positive | MISSING = MISSING
    """Time that one worker takes to prepare a sample."""
    worker_count: Degree = 4
    """Worker processes of each data-parallel replica."""
    prefetch: bool = True
    """True if batches are prepared while the devices compute. Otherwise each step waits for all stages."""
    prefetch_factor: Degree = 2
    """Batches that each worker keeps ready."""
    host_to_device_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of copies from the host to one device."""
    device_bytes_per_sample: Positive | MISSING = MISSING
    """Bytes of a sample as it is copied to the device. Defaults to 8 for each token."""
    dataset_bytes: Positive | MISSING = MISSING
    """Size of the stored dataset. Defaults to what the run reads, each sample once."""


class CheckpointingInput(StrictModel):
    """Interval and method of saving the training state."""

    mode: Literal["synchronous", "asynchronous", "none"] = "synchronous"
    """`synchronous` if training waits until the checkpoint is written, `asynchronous` if it waits only until
    the checkpoint is copied to the host, `none` if the run saves nothing."""
    interval_seconds: Positive | MISSING = MISSING
    """Training time from one checkpoint to the next. Without it and `interval_steps`, the interval that loses
    the least time (Daly 2006), which needs `reliability`."""
    interval_steps: PositiveInteger | MISSING = MISSING
    """Optimizer steps from one checkpoint to the next."""
    storage_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Write bandwidth of the storage for all devices together."""
    read_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Read bandwidth of the storage for all devices after a failure. Defaults to the write bandwidth."""
    device_to_host_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of copies from one device to its host. Required for asynchronous checkpoints."""
    sharded: bool = True
    """True if every device saves a share of the state. Otherwise one device saves all of it."""
    stall_seconds: Positive | MISSING = MISSING
    """Measured time that training stops for a checkpoint."""


class ReliabilityInput(StrictModel):
    """Failures of devices and the time to recover. An empty object takes published figures."""

    device_mtbf_hours: Positive | MISSING = MISSING
    """Mean time between failures of one device with its share of node and network, in hours. n devices fail n
    times as often. Defaults to the value of published runs."""
    restart_seconds: NotNegative | MISSING = MISSING
    """Time from a failure until training starts to load its checkpoint: detection, replacement and start.
    Defaults to the value of published runs."""


class GradientCompressionInput(StrictModel):
    """Compression of the gradients that replicas exchange. They must hold whole gradients (sharding none)."""

    kind: GradientCompressionKind
    """Kind of compression: fp16 and int8 narrow the format, one_bit sends signs, top_k and random_k send a
    share, and power_sgd sends two thin matrices."""
    kept_share: Share | MISSING = MISSING
    """Share of the elements that top_k and random_k send. Defaults to 0.01."""
    rank: Degree | MISSING = MISSING
    """Columns of the thin matrices of power_sgd. Defaults to 4."""
    error_feedback: bool = True
    """True if the part that was not sent is kept in FP32 and added to the next gradient."""


class LearningRateInput(StrictModel):
    """A learning rate that is known to work. Hints at other batch sizes start from it."""

    base: Positive
    """The learning rate."""
    base_batch_size: PositiveInteger
    """Sequences per optimizer step at which it worked."""


class TrainingWorkloadInput(StrictModel):
    """A training run. One of the three totals sets its length."""

    kind: Literal["training"]
    sequence_length: Size = 4096
    """Tokens per sequence, including those of its pictures. Models without tokens do not use it."""
    sample: SampleInput | MISSING = MISSING
    """Content of a sample beside its tokens: sizes of pictures and videos, and the input of an encoder."""
    micro_batch_size: Degree | MISSING = MISSING
    """Sequences or other samples that a data-parallel replica processes at a time. For dpo, simpo and orpo:
    pairs of them. Defaults to the fastest that fits if the layout is open, else to 1."""
    global_batch_size: PositiveInteger | MISSING = MISSING
    """Sequences per optimizer step over all replicas. Defaults to the batch of published runs of this kind if
    there is a cluster and the question states neither micro-batch nor micro-batches."""
    gradient_accumulation_steps: Degree | MISSING = MISSING
    """Micro-batches per optimizer step. Defaults to the number that follows from the global batch size. With
    a micro-batch alone it is 1, or four for each pipeline stage."""
    precision: TrainingPrecision | MISSING = MISSING
    """Number format of training. All but fp32, tf32 and pure_bf16 keep an FP32 master copy in the way of the
    framework. Defaults to bf16; on an accelerator without a bf16 rate to fp16, then to fp32."""
    gradient_precision: Literal["fp32", "bf16", "fp16"] | MISSING = MISSING
    """Format that gradients are kept in. Defaults to the format of the precision and the framework."""
    optimizer_state_precision: Literal["fp32", "bf16", "fp16"] | MISSING = MISSING
    """Format of the optimizer's states. Defaults to the format of the precision."""
    optimizer: Optimizer = Optimizer.ADAMW
    """Optimizer, which sets the state that is kept for each parameter."""
    optimizer_rank: Degree = 128
    """Rank of the projection of galore."""
    optimizer_in_backward: bool = False
    """True if each block is updated as soon as its gradients are ready, which are then freed. Allowed for a
    step of one micro-batch."""
    attention: AttentionKernel = AttentionKernel.FLASH
    """Attention kernel: `standard` stores the score matrix, `flash` does not."""
    attention_release: FusedAttention | MISSING = MISSING
    """Release of the fused attention: `first` (FlashAttention), `second` (FlashAttention-2), or `native` for
    kernels of the device's own instructions, such as FlashAttention-3 and cuDNN on Hopper. Defaults to that
    of the framework: native for megatron_core and where none is named, first for megatron_lm and
    megatron_deepspeed, else second."""
    fusion: OperatorFusion | MISSING = MISSING
    """Grouping of operators without a multiplication into kernels: each in a kernel of its own (`eager`), in
    chains that are fused by hand (`fused`), or in chains from a compiler such as torch.compile (`compiled`),
    which keeps only what a backward pass reads. Defaults to the way of the framework."""
    expert_capacity_factor: ExpertCapacityFactor | MISSING = MISSING
    """Tokens that each expert takes over the mean of all experts: those beyond it are dropped, missing ones
    padded (`--moe-expert-capacity-factor` with `--moe-pad-expert-input-to-capacity` of Megatron-LM,
    `capacity_factor` of MaxText). Without it no token is dropped."""
    expert_balance: ExpertBalance = ExpertBalance.TRAINED
    """Load of the experts: as a trained router spreads tokens over them (`trained`), or the same for each
    (`forced`), as in benchmarks that override the router (`--moe-router-force-load-balancing`)."""
    cuda_graphs: CudaGraphs = CudaGraphs.NONE
    """CUDA graphs of a step: `none`, one for each layer but for its routed experts (`layer`;
    `--cuda-graph-impl transformer_engine` or `local` of Megatron-LM), or one for the whole iteration
    (`iteration`). The host launches the kernels of a graph at once."""
    loss: LossImplementation = LossImplementation.FP32
    """Computation of the loss from the logits: all in FP32 (`fp32`), all at the width of the activations
    (`narrow`), in eight parts (`chunked`), or without storing logits (`fused`)."""
    recomputation: RecomputationInput | MISSING = MISSING
    """Activations that the backward pass recomputes. Defaults to the way of the framework, else to the
    fastest strategy that fits."""
    adaptation: AdaptationInput = AdaptationInput(kind=AdaptationKind.FULL)
    """Parameters that are trained. Defaults to all."""
    objective: TrainingObjective = TrainingObjective.PRETRAINING
    """Objective that the loss is taken on. Pretraining and supervised cost the same; dpo and distillation
    also run a frozen model; ppo and grpo generate their sequences and score them; ppo also trains a
    critic."""
    teacher_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the teacher of a distillation. Defaults to those of the model."""
    reward_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the reward model. Defaults to those of the model for ppo; for grpo no model rewards by
    default."""
    critic_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the critic of ppo. Defaults to those of the model."""
    rollout: RolloutInput | MISSING = MISSING
    """Generation of the sequences that ppo and grpo train on. Defaults to the defaults of its members."""
    weight_average: bool = False
    """Set to true to keep a moving average of the weights in FP32."""
    offload: OffloadInput = OffloadInput()
    """State that is kept outside the device. Defaults to none."""
    data_pipeline: DataPipelineInput | MISSING = MISSING
    """Path of samples to the devices. Without it the devices never wait for data."""
    gradient_compression: GradientCompressionInput | MISSING = MISSING
    """Compression of the gradients. Without it gradients are sent in the format that they are kept in."""
    checkpointing: CheckpointingInput | MISSING = MISSING
    """Saving of the training state. Without it no checkpoint is written, except on spot devices: there as
    often as loses the least time, to storage as fast as that of published runs."""
    reliability: ReliabilityInput | MISSING = MISSING
    """Failures of devices. Without it nothing fails."""
    learning_rate: LearningRateInput | MISSING = MISSING
    """Learning rate for hints. Without it hints scale the rate of one data-parallel replica."""
    total_tokens: PositiveInteger | MISSING = MISSING
    """Tokens of the whole run."""
    total_steps: PositiveInteger | MISSING = MISSING
    """Optimizer steps of the whole run."""
    total_samples: PositiveInteger | MISSING = MISSING
    """Sequences of the whole run."""
    framework: SoftwareVersion | MISSING = MISSING
    """Framework of the run: megatron_lm, megatron_core, megatron_deepspeed, deepspeed, ddp, fsdp, torchtitan,
    torchtune, litgpt, internevo, transformers, maxtext or neuronx_distributed. Another name gives a warning,
    and memory follows the precision alone."""


class ServingEngineInput(StrictModel):
    """The serving engine and its settings.

    Memory follows the rules of vllm, tensorrt-llm, sglang, llama.cpp and transformers. For another engine, or
    none, weights, cache and the largest intermediates are summed.
    """

    name: Annotated[Text, Field(examples=["vllm"])]
    """Name of the engine, in any case."""
    version: Text | MISSING = MISSING
    """Version, as the engine names it. "V0" or "V1" in it names the engine core of vLLM. Defaults to the
    newest."""
    cuda_graphs: bool = True
    """True if a decode step is launched as one graph, whose buffers take memory."""
    warmed_up: bool = True
    """True if kernels were compiled and selected before the first request of a run that begins cold."""
    block_tokens: Annotated[int, Field(ge=1, le=4096, json_schema_extra=_INT64)] | MISSING = MISSING
    """Tokens of one block of the KV cache. Defaults to the value of the engine, else 16."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration. Defaults to the value of the engine by version and
    device."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration. Defaults to the value of the engine by version and device, else 8192."""
    max_model_len: Size | MISSING = MISSING
    """Longest sequence that the engine is started for. If the cache is not paged (llama.cpp, transformers),
    each request takes all of it. Defaults to the length of the model, or without a paged cache to the length
    of the request."""
    chunked_prefill: bool | MISSING = MISSING
    """True if a long prompt is computed in several iterations beside decoding. Defaults to the way of the
    engine."""
    attention_release: FusedAttention | MISSING = MISSING
    """Release of the fused attention of prompts: `first` (FlashAttention), `second` (FlashAttention-2), or
    `native` for kernels of the device's own instructions, such as FlashAttention-3 on Hopper. Defaults to
    native, and to second for llama.cpp, transformers, vllm before 0.7 and sglang before 0.4.6."""
    device_layers: Annotated[int, Field(ge=0, le=10_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Blocks of the model on the device. The others are on the host with their cache (llama.cpp). Defaults to
    all."""


class AdaptersInput(StrictModel):
    """Low-rank adapters served beside the model, on every matrix inside its blocks but those of experts."""

    max_loras: Annotated[int, Field(ge=1, le=10_000, json_schema_extra=_INT64)] = 1
    """Adapters that are loaded at a time."""
    rank: Annotated[int, Field(ge=1, le=4096, json_schema_extra=_INT64)] = 16
    """Largest rank of the adapters. Memory is reserved for it, for each adapter."""


class HorizonInput(StrictModel):
    """Length of the service. Give one member."""

    duration_seconds: Positive | MISSING = MISSING
    """Time that the service runs."""
    total_requests: PositiveInteger | MISSING = MISSING
    """Number of requests that it answers. If the number of concurrent requests is constant, the first of them
    all begin at once."""
    total_output_tokens: PositiveInteger | MISSING = MISSING
    """Number of tokens that it generates."""


class InferenceWorkloadInput(StrictModel):
    """A served model under requests that arrive, or that are kept at a constant number.

    Without concurrency, a rate or a trace there is one request at a time.
    """

    kind: Literal["inference"]
    weight_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"] | MISSING = MISSING
    """Width of the weights, without scales. Below 16 bit only matrices inside blocks are narrow. Defaults to
    the format of the checkpoint if the model's configuration has a `quantization_config`, else to bf16, on
    an accelerator without a bf16 rate to fp16, then to fp32. llama.cpp loads gguf_q4_k_m by default, or the
    mxfp4 of the checkpoint."""
    weight_format: WeightFormatName | MISSING = MISSING
    """Storage format of a quantised checkpoint, with scales and zero points: a layout of a quantisation tool,
    or a file type of llama.cpp. Replaces `weight_precision`."""
    kv_cache_precision: (
        Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4", "q8_0", "q5_0", "q4_0"] | MISSING
    ) = MISSING
    """Format that the KV cache is stored in. q8_0, q5_0 and q4_0 are formats of llama.cpp. Defaults to the
    format that the `quantization_config` of the checkpoint states for the cache, else to bf16, fp16 or
    fp32 like weights."""
    state_precision: Literal["fp32", "fp16", "bf16"] | MISSING = MISSING
    """Format that recurrent states (state space, linear attention) are stored in. Defaults to the format of
    the engine: fp32 for transformers, sglang and llama.cpp, else bf16."""
    input_tokens: LengthInput = 1024
    """Tokens of a prompt. Tokens of pictures are added if `sample` gives their sizes."""
    sample: SampleInput | MISSING = MISSING
    """Content of a request beside its tokens: sizes of pictures and videos, and the input of an encoder."""
    output_tokens: LengthInput = 256
    """Tokens that are generated for a prompt."""
    concurrency: Degree | MISSING = MISSING
    """Concurrent requests over the whole cluster. A new request follows each that ends."""
    request_rate_per_second: Annotated[float, Field(gt=0, le=1e6)] | MISSING = MISSING
    """Requests per second that arrive at the whole cluster, however many are being served."""
    arrivals: ArrivalsInput | MISSING = MISSING
    """Arrival process of the requests. Defaults to poisson."""
    prefix_cache_hit_rate: Annotated[float, Field(ge=0, le=0.999)] | MISSING = MISSING
    """Share of the tokens of prompts whose keys and values are found in the cache. Defaults to 0."""
    service_levels: ServiceLevelsInput | MISSING = MISSING
    """Limits of a request. Without them there is no goodput."""
    engine: ServingEngineInput | MISSING = MISSING
    """The serving engine. Defaults to the newest vllm for a model that generates tokens, and to llama.cpp for
    its formats and on devices that are served by it, such as Apple silicon and processors."""
    scheduler: Literal["continuous", "static"] | MISSING = MISSING
    """`continuous` if requests join and leave the batch at every step, `static` if a batch runs until its
    last request ends. Defaults to continuous, for transformers to static."""
    memory_fraction: Share | MISSING = MISSING
    """Share of the device's memory that the engine may use, as the engine defines it: of the device (vllm),
    of the free memory once the model is loaded (tensorrt-llm), for weights and cache alone (sglang). Defaults
    to 0.92 for vllm, or 0.9 before version 0.21; to 0.9 for tensorrt-llm; for sglang to its own value by
    version, device and group; for llama.cpp and transformers to 1. If the engine is open too and no request
    fits, it is raised to 0.95."""
    speculative: SpeculativeDecodingInput | MISSING = MISSING
    """Speculative decoding. Without it a pass generates one token."""
    passes: ForwardPassesInput | MISSING = MISSING
    """Requests that are forward passes of a model that could generate, such as a decoder that embeds."""
    diffusion: DiffusionInput | MISSING = MISSING
    """Sampling of a request of a denoiser. Without it a request is one evaluation of one sample."""
    batching: BatchingInput | MISSING = MISSING
    """Batching of requests that are passes. Defaults to all requests that wait."""
    disaggregated: DisaggregationInput | MISSING = MISSING
    """Prefill and decode on replicas of their own. They replace `parallelism`."""
    adapters: AdaptersInput | MISSING = MISSING
    """Low-rank adapters served beside the model."""
    horizon: HorizonInput | MISSING = MISSING
    """Length of the service. Required for cost and utility bill."""


WorkloadInput = TypeAliasType(
    "WorkloadInput", Annotated[TrainingWorkloadInput | InferenceWorkloadInput, Field(discriminator="kind")]
)
