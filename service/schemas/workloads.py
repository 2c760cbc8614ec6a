"""What the model is asked to do."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.planning.hardware.storage import GGUF_FORMATS, NAMED_FORMATS
from service.planning.models.profile import OperatorFusion
from service.planning.precision import Optimizer, TrainingPrecision
from service.planning.workload import (
    AdaptationKind,
    AttentionKernel,
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

WeightFormatName = StrEnum(  # type: ignore[misc]
    "WeightFormatName", {name: name for name in (*NAMED_FORMATS, *GGUF_FORMATS)}
)


class SoftwareVersion(StrictModel):
    """A framework or an engine by name and version."""

    name: Text
    version: Text | MISSING = MISSING
    """As it calls itself."""


class RecomputationInput(StrictModel):
    """Which activations the backward pass computes again."""

    strategy: Recomputation
    """Which activations are computed again."""
    k: Degree | MISSING = MISSING
    """Blocks from one kept input to the next; belongs to every_k, and that strategy needs it."""


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
    """Which parameters are trained."""

    kind: AdaptationKind
    """All of them (full), or small ones beside frozen weights. Scale trains norms, a factor and a shift
    behind every matrix and virtual tokens in each layer (LLaMA-Adapter V2)."""
    rank: Degree | MISSING = MISSING
    """Rank of the low-rank matrices (defaults to 16) or width of an adapter's bottleneck (to 64)."""
    target_modules: Annotated[list[TargetModule], Field(min_length=1, max_length=32)] | MISSING = MISSING
    """Matrices that low-rank ones stand beside; defaults to query and value, for qlora to all_linear."""
    base_weights: FrozenWeightFormat | MISSING = MISSING
    """How frozen weights are kept: plain is the width of the activations. Defaults to it, for qlora to
    nf4_double."""
    virtual_tokens: Degree | MISSING = MISSING
    """Virtual tokens of prompt and prefix tuning and of scale; defaults to 20."""


class OffloadInput(StrictModel):
    """What lies outside the device between its uses."""

    optimizer: TrainingStateLocation = TrainingStateLocation.NONE
    """Master weights and optimizer states; under zero_2 and zero_3 the gradients too."""
    parameters: TrainingStateLocation = TrainingStateLocation.NONE
    """Weights, gathered block by block."""
    activations: Literal[TrainingStateLocation.NONE, TrainingStateLocation.CPU] = TrainingStateLocation.NONE
    """Saved activations but those of two blocks."""


_PIXELS = Annotated[int, Field(ge=1, le=65_536, json_schema_extra=_INT64)]


class SampleInput(StrictModel):
    """What one sample holds beside its tokens. A field left out takes what the model was built for."""

    height: _PIXELS | MISSING = MISSING
    """Pixels; of latents too, those of the picture behind them."""
    width: _PIXELS | MISSING = MISSING
    """Pixels; as many as rows when left out."""
    channels: Annotated[int, Field(ge=1, le=65_536, json_schema_extra=_INT64)] | MISSING = MISSING
    """Numbers of one cell that enters, which the model sets; refused where it has another count."""
    frames: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Frames of a video."""
    images: Annotated[int, Field(ge=0, le=10_000, json_schema_extra=_INT64)] = 1
    """Pictures or videos of a sample, each encoded on its own."""
    source_tokens: Size | MISSING = MISSING
    """Tokens that an encoder reads or that a diffusion model is told; a training sequence of an
    encoder-decoder has as many as the decoder when left out."""
    audio_frames: Size | MISSING = MISSING
    """Frames of a spectrogram."""


class DataPipelineInput(StrictModel):
    """How samples reach the devices. A stage that too little is given for is left out, and a gap says so."""

    storage_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What the storage delivers to the whole cluster, read in sequence."""
    node_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What one node reads at most: its network interface, or a drive of its own."""
    access_factor: Share = 1.0
    """Share of the bandwidth that the way of reading leaves: 1 in sequence, about 0.1 if shuffled."""
    stored_bytes_per_sample: Positive | MISSING = MISSING
    """Bytes of a sequence or sample as it is stored."""
    preprocessing_seconds_per_sample: Positive | MISSING = MISSING
    """Time that one worker takes to prepare a sample."""
    worker_count: Degree = 4
    """Worker processes of each data-parallel replica."""
    prefetch: bool = True
    """Whether batches are prepared while the devices compute; else each step waits for all stages."""
    prefetch_factor: Degree = 2
    """Batches that each worker holds ready."""
    host_to_device_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What the host copies to one device."""
    device_bytes_per_sample: Positive | MISSING = MISSING
    """Bytes of a sample as it is copied to the device; defaults to 8 for each token."""
    dataset_bytes: Positive | MISSING = MISSING
    """Size of the dataset as it is stored; defaults to what the run reads, each sample once."""


class CheckpointingInput(StrictModel):
    """How often and how the training state is saved."""

    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    """Whether training waits until the checkpoint is written, or only until it is copied to the host."""
    interval_seconds: Positive | MISSING = MISSING
    """Training from one checkpoint to the next. Without it and interval_steps, the time that loses least
    (Daly 2006), for which reliability must be given."""
    interval_steps: PositiveInteger | MISSING = MISSING
    """The same in optimizer steps."""
    storage_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What the storage takes from all devices together."""
    read_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What it delivers to all devices after a failure; defaults to what it takes."""
    device_to_host_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """What one device copies to its host; an asynchronous checkpoint needs it."""
    sharded: bool = True
    """Whether every device saves a share of the state; else one of them saves it all."""
    stall_seconds: Positive | MISSING = MISSING
    """Time that training stops for a checkpoint, where it was measured."""


class ReliabilityInput(StrictModel):
    """How often devices fail and how long it takes to go on. An empty object takes published figures."""

    device_mtbf_hours: Positive | MISSING = MISSING
    """Mean time between failures of one device with its share of node and network, in hours; n devices fail n
    times as often. Defaults to that of published runs."""
    restart_seconds: NotNegative | MISSING = MISSING
    """From a failure until training starts to load its checkpoint: detection, replacement, start. Defaults to
    that of published runs."""


class GradientCompressionInput(StrictModel):
    """What replicas send in place of their gradients; for replicas that hold them whole (sharding none)."""

    kind: GradientCompressionKind
    """fp16 and int8 narrow, one_bit sends signs, top_k and random_k a share, power_sgd two thin matrices."""
    kept_share: Share | MISSING = MISSING
    """Share of the elements that top_k and random_k send; 0.01 when left out."""
    rank: Degree | MISSING = MISSING
    """Columns of the thin matrices of power_sgd; 4 when left out."""
    error_feedback: bool = True
    """Whether what was not sent is kept in FP32 and added to the next gradient."""


class LearningRateInput(StrictModel):
    """A learning rate that is known to work, for hints at another batch size."""

    base: Positive
    """The learning rate."""
    base_batch_size: PositiveInteger
    """Sequences per optimizer step that it worked at."""


class TrainingWorkloadInput(StrictModel):
    """A training run. One of the three totals sets its length."""

    kind: Literal["training"]
    sequence_length: Size = 4096
    """Tokens per sequence; those of pictures in it are among them. Models without tokens have none."""
    sample: SampleInput | MISSING = MISSING
    """What a sample holds beside its tokens: sizes of pictures, videos and of what an encoder reads."""
    micro_batch_size: Degree = 1
    """Sequences or other samples that a data-parallel replica processes at a time; pairs of them under dpo,
    simpo and orpo."""
    global_batch_size: PositiveInteger | MISSING = MISSING
    """Sequences per optimizer step over all replicas."""
    gradient_accumulation_steps: Degree | MISSING = MISSING
    """Micro-batches per optimizer step. Left out, they follow from the global batch size; without one
    they are 1, or four for each pipeline stage."""
    precision: TrainingPrecision | MISSING = MISSING
    """All but fp32, tf32 and pure_bf16 keep an FP32 master copy, as the framework does it. Defaults to bf16,
    or where the accelerator has no bf16 rate to fp16, then fp32."""
    gradient_precision: Literal["fp32", "bf16", "fp16"] | MISSING = MISSING
    """Format that gradients are kept in; defaults to that of precision and framework."""
    optimizer_state_precision: Literal["fp32", "bf16", "fp16"] | MISSING = MISSING
    """Format of the optimizer's states; defaults to that of the precision."""
    optimizer: Optimizer = Optimizer.ADAMW
    """Sets the state kept for each parameter."""
    optimizer_rank: Degree = 128
    """Rank of the projection of galore."""
    optimizer_in_backward: bool = False
    """Whether each block is updated as soon as its gradients are there, which then go; for a step of one
    micro-batch."""
    attention: AttentionKernel = AttentionKernel.FLASH
    """Whether the attention kernel stores the score matrix (standard) or not (flash)."""
    fusion: OperatorFusion | MISSING = MISSING
    """How operators without a multiplication become kernels: each its own (eager), chains by hand (fused), or
    chains by a compiler such as torch.compile (compiled), which keeps nothing that no backward pass reads.
    Defaults to the framework's own way."""
    loss: LossImplementation = LossImplementation.FP32
    """How logits become a loss: whole in FP32, whole at the width of the activations (narrow), in eight parts
    (chunked), or without storing logits (fused)."""
    recomputation: RecomputationInput = RecomputationInput(strategy=Recomputation.NONE)
    """None when left out."""
    adaptation: AdaptationInput = AdaptationInput(kind=AdaptationKind.FULL)
    """All parameters when left out."""
    objective: TrainingObjective = TrainingObjective.PRETRAINING
    """What the loss is taken on; pretraining and supervised cost the same, dpo and distillation run a frozen
    model beside, ppo and grpo generate their sequences and score them, ppo trains a critic."""
    teacher_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the teacher of a distillation; defaults to those of the model."""
    reward_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the reward model of ppo, which defaults to those of the model, or of grpo, where without
    it no model rewards."""
    critic_parameter_count: PositiveInteger | MISSING = MISSING
    """Parameters of the critic of ppo; defaults to those of the model."""
    rollout: RolloutInput | MISSING = MISSING
    """How ppo and grpo generate what they train on; defaults are those of its fields."""
    weight_average: bool = False
    """Whether a moving average of the weights is kept in FP32."""
    offload: OffloadInput = OffloadInput()
    """Nothing when left out."""
    data_pipeline: DataPipelineInput | MISSING = MISSING
    """Without it the devices never wait for data."""
    gradient_compression: GradientCompressionInput | MISSING = MISSING
    """Without it gradients are sent as they are kept."""
    checkpointing: CheckpointingInput | MISSING = MISSING
    """Without it no checkpoint is written."""
    reliability: ReliabilityInput | MISSING = MISSING
    """Without it nothing fails."""
    learning_rate: LearningRateInput | MISSING = MISSING
    """Without it hints scale the rate of one data-parallel replica."""
    total_tokens: PositiveInteger | MISSING = MISSING
    """Tokens of the whole run."""
    total_steps: PositiveInteger | MISSING = MISSING
    """Optimizer steps of the whole run."""
    total_samples: PositiveInteger | MISSING = MISSING
    """Sequences of the whole run."""
    framework: SoftwareVersion | MISSING = MISSING
    """Framework that trains: megatron_lm, megatron_deepspeed, deepspeed, ddp, fsdp, torchtitan, torchtune,
    litgpt, internevo or transformers. Another name keeps what the precision says and no more, with a
    warning."""


class ServingEngineInput(StrictModel):
    """The serving engine and the settings that bound a batch.

    Memory follows the rules of vllm, tensorrt-llm, sglang, llama.cpp and transformers; of another engine, as
    without one, weights, cache and the largest intermediates are summed.
    """

    name: Text
    """Its name, in any case."""
    version: Text | MISSING = MISSING
    """As it calls itself; "V0" or "V1" in it names the engine core of vLLM. The newest when left out."""
    cuda_graphs: bool = True
    """Whether a decode step is launched as one graph, whose buffers are held."""
    warmed_up: bool = True
    """Whether kernels were compiled and chosen before the first request of a run that begins cold."""
    block_tokens: Annotated[int, Field(ge=1, le=4096, json_schema_extra=_INT64)] | MISSING = MISSING
    """Tokens of one block of the KV cache. Defaults to the engine's, else 16."""
    max_num_seqs: Degree | MISSING = MISSING
    """Most requests of one replica in one iteration. Defaults to the engine's by version and device."""
    max_batched_tokens: Size | MISSING = MISSING
    """Most tokens of one iteration. Defaults to the engine's by version and device, else 8192."""
    max_model_len: Size | MISSING = MISSING
    """Longest sequence that the engine is started for; each request takes all of it where the cache is not
    paged (llama.cpp, transformers). Defaults to the model's, there to the request's length."""
    chunked_prefill: bool | MISSING = MISSING
    """Whether a long prompt is computed in several iterations beside decoding. Defaults to the engine's
    way."""
    device_layers: Annotated[int, Field(ge=0, le=10_000, json_schema_extra=_INT64)] | MISSING = MISSING
    """Blocks of the model on the device, the others with their cache on the host (llama.cpp). All when left
    out."""


class AdaptersInput(StrictModel):
    """Low-rank adapters served beside the model, on every matrix inside its blocks but those of experts."""

    max_loras: Annotated[int, Field(ge=1, le=10_000, json_schema_extra=_INT64)] = 1
    """Adapters that are loaded at a time."""
    rank: Annotated[int, Field(ge=1, le=4096, json_schema_extra=_INT64)] = 16
    """Largest rank of them; room for it is taken for each."""


class HorizonInput(StrictModel):
    """How long the service runs. Give one."""

    duration_seconds: Positive | MISSING = MISSING
    """How long the service runs."""
    total_requests: PositiveInteger | MISSING = MISSING
    """How many requests it answers; the first of a constant number all begin at once."""
    total_output_tokens: PositiveInteger | MISSING = MISSING
    """How many tokens it generates."""


class InferenceWorkloadInput(StrictModel):
    """A served model under requests that arrive or are kept at a constant number.

    Without concurrency, a rate or a trace there is one request at a time.
    """

    kind: Literal["inference"]
    weight_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"] | MISSING = MISSING
    """Width of the weights, without scales; below 16 bit only matrices inside blocks are narrow. Defaults to
    the checkpoint's own format where the model's configuration has a quantization_config, else bf16."""
    weight_format: WeightFormatName | MISSING = MISSING
    """How a quantised checkpoint stores the weights, with scales and zero points: a layout of a quantisation
    tool, or a file type of llama.cpp. Takes the place of weight_precision."""
    kv_cache_precision: Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4", "q8_0", "q5_0", "q4_0"] = (
        "bf16"
    )
    """Format that the KV cache is stored in; q8_0, q5_0 and q4_0 are those of llama.cpp."""
    state_precision: Literal["fp32", "fp16", "bf16"] | MISSING = MISSING
    """Format that recurrent states (state space, linear attention) are stored in. Defaults to the engine's:
    fp32 for transformers, sglang and llama.cpp, else bf16."""
    input_tokens: LengthInput = 1024
    """Tokens of a prompt; those of pictures come on top where sample says how large they are."""
    sample: SampleInput | MISSING = MISSING
    """What a request holds beside its tokens: sizes of pictures, videos and of what an encoder reads."""
    output_tokens: LengthInput = 256
    """Tokens that are generated for a prompt."""
    concurrency: Degree | MISSING = MISSING
    """Requests at a time over the whole cluster: a new one follows each that ends."""
    request_rate_per_second: Annotated[float, Field(gt=0, le=1e6)] | MISSING = MISSING
    """Requests that arrive at the whole cluster, however many are there."""
    arrivals: ArrivalsInput | MISSING = MISSING
    """How they arrive; poisson when left out."""
    prefix_cache_hit_rate: Annotated[float, Field(ge=0, le=0.999)] = 0.0
    """Share of the tokens of prompts whose keys and values are found in the cache."""
    service_levels: ServiceLevelsInput | MISSING = MISSING
    """What a request may take. Without them there is no goodput."""
    engine: ServingEngineInput | MISSING = MISSING
    """The serving engine."""
    scheduler: Literal["continuous", "static"] | MISSING = MISSING
    """Whether requests join and leave the batch at every step, or a batch runs until its last one ends.
    Defaults to continuous, for transformers to static."""
    memory_fraction: Share | MISSING = MISSING
    """Share of the device's memory that the engine may use, as it reads it: of the device (vllm), of what is
    free once the model is loaded (tensorrt-llm), for weights and cache alone (sglang). Defaults to 0.9, to
    what sglang reckons by version, device and group, to 1 for llama.cpp and transformers."""
    speculative: SpeculativeDecodingInput | MISSING = MISSING
    """Speculative decoding; without it a pass makes one token."""
    passes: ForwardPassesInput | MISSING = MISSING
    """Requests that are forward passes of a model that could generate, such as a decoder that embeds."""
    diffusion: DiffusionInput | MISSING = MISSING
    """How a request of a denoiser is sampled; without it a request is one evaluation of one sample."""
    batching: BatchingInput | MISSING = MISSING
    """How requests that are passes are batched; all that wait, when left out."""
    disaggregated: DisaggregationInput | MISSING = MISSING
    """Prefill and decode on replicas of their own, which take the place of parallelism."""
    adapters: AdaptersInput | MISSING = MISSING
    """Low-rank adapters served beside the model."""
    horizon: HorizonInput | MISSING = MISSING
    """Needed for cost and utility bill."""


WorkloadInput = TypeAliasType(
    "WorkloadInput", Annotated[TrainingWorkloadInput | InferenceWorkloadInput, Field(discriminator="kind")]
)
