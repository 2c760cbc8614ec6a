"""Workload of a model, with every choice made."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.storage import PLAIN_FORMATS, BlockFormat, WeightFormat
from service.planning.models.profile import FusedAttention, ModelProfile, OperatorFusion
from service.planning.precision import NumberFormat, Optimizer, TrainingRecipe
from service.planning.software.engines import EngineBuffers, EngineRules
from service.planning.software.frameworks import Framework


class AttentionKernel(StrEnum):
    """Attention kernel that stores the score matrix (standard) or does not (flash; Dao et al. 2022)."""

    STANDARD = "standard"
    FLASH = "flash"


class Recomputation(StrEnum):
    """Activations that the backward pass recomputes.

    ``selective`` saves activations that are expensive to compute, ``full`` each block's input, ``every_k``
    the input of every k-th block, ``sqrt`` of blocks whose distance is the square root of the depth (Chen et
    al. 2016).
    """

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"
    EVERY_K = "every_k"
    SQRT = "sqrt"


WHOLE_BLOCKS = frozenset({Recomputation.FULL, Recomputation.EVERY_K, Recomputation.SQRT})
"""Strategies that recompute whole blocks."""


class AdaptationKind(StrEnum):
    """Parameters that are trained: all, or small ones beside frozen weights."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    DORA = "dora"
    PROMPT = "prompt"
    PREFIX = "prefix"
    ADAPTER = "adapter"
    SCALE = "scale"


class FrozenWeightFormat(StrEnum):
    """Format of frozen weights: as wide as the activations, or matrices in NF4."""

    PLAIN = "plain"
    NF4 = "nf4"
    NF4_DOUBLE = "nf4_double"


class Adaptation(NamedTuple):
    """Adaptation; ``rank`` is that of low-rank matrices or an adapter's width, ``tokens`` are virtual ones.

    ``targets`` names the matrices that low-rank matrices adapt.
    """

    kind: AdaptationKind = AdaptationKind.FULL
    rank: int = 0
    targets: frozenset[str] = frozenset()
    tokens: int = 0
    base: FrozenWeightFormat = FrozenWeightFormat.PLAIN


class TrainingObjective(StrEnum):
    """Objective of the loss, which decides how many copies of a model are held."""

    PRETRAINING = "pretraining"
    SUPERVISED = "supervised"
    DPO = "dpo"
    SIMPO = "simpo"
    ORPO = "orpo"
    PPO = "ppo"
    GRPO = "grpo"
    DISTILLATION = "distillation"


PAIRED = frozenset({TrainingObjective.DPO, TrainingObjective.SIMPO, TrainingObjective.ORPO})
"""Objectives with a pair of sequences per sample, chosen and rejected."""

GENERATING = frozenset({TrainingObjective.PPO, TrainingObjective.GRPO})
"""Objectives whose sequences the policy generates itself."""


class Rollout(NamedTuple):
    """Generation of a policy's sequences.

    A sequence begins with ``prompt_tokens`` that are given, ``samples`` of them with the same; the longest
    response has ``longest_tokens``, None for equal lengths. A rollout makes the sequences of ``steps``
    optimizer steps, each of which is taken ``epochs`` times. ``devices`` only generate; 0 for the training
    devices. A rollout that is ``ahead`` is generated while the one before is trained on. The engine takes
    ``memory_fraction`` of a device and spreads a replica over ``tensor`` of them, None for as few as hold it.
    """

    prompt_tokens: float
    samples: int = 1
    steps: int = 1
    epochs: int = 1
    devices: int = 0
    ahead: bool = False
    tensor: int | None = None
    memory_fraction: float = 0.5
    longest_tokens: float | None = None


class TrainingStateLocation(StrEnum):
    """Location of a part of the training state."""

    NONE = "none"
    CPU = "cpu"
    NVME = "nvme"


class Offload(NamedTuple):
    """Parts of the training state that leave the device."""

    optimizer: TrainingStateLocation = TrainingStateLocation.NONE
    parameters: TrainingStateLocation = TrainingStateLocation.NONE
    activations: TrainingStateLocation = TrainingStateLocation.NONE


class LossImplementation(StrEnum):
    """Computation of the loss from logits: in FP32, at the activations' width, in chunks, or never stored."""

    FP32 = "fp32"
    NARROW = "narrow"
    CHUNKED = "chunked"
    FUSED = "fused"


class GradientCompressionKind(StrEnum):
    """Data that replicas send in place of their gradients.

    ``fp16`` and ``int8`` narrow each element, ``one_bit`` sends its sign and a scale, ``top_k`` the largest
    elements with their indices, ``random_k`` those that a common seed selects, ``power_sgd`` two thin
    matrices.
    """

    FP16 = "fp16"
    INT8 = "int8"
    ONE_BIT = "one_bit"
    TOP_K = "top_k"
    RANDOM_K = "random_k"
    POWER_SGD = "power_sgd"


class Compression(NamedTuple):
    """Compression.

    ``kept_share`` of elements is sent under top_k and random_k, ``rank`` is that of power_sgd.
    ``error_feedback`` holds the unsent part and adds it to the next gradient.
    """

    kind: GradientCompressionKind
    kept_share: float = 0.01
    rank: int = 4
    error_feedback: bool = True


class CudaGraphs(StrEnum):
    """Kernels of a step that are launched together, in graphs."""

    NONE = "none"
    LAYER = "layer"
    ITERATION = "iteration"


class ExpertBalance(StrEnum):
    """Load of the experts of a trained model."""

    TRAINED = "trained"
    FORCED = "forced"


class TrainingWorkload(NamedTuple):
    """One training run. ``micro_batches`` counts those of one step on one data-parallel replica.

    ``interval`` is the k of ``every_k``. ``teacher_parameters`` is the size of the frozen model of a
    distillation, ``reward_parameters`` and ``critic_parameters`` are those of the models beside a policy;
    None for one as large as the model, and under GRPO for a reward without a model. ``weight_average`` holds
    a moving average in FP32. ``steps_in_backward`` updates each block as soon as its gradients are computed,
    which are then freed.
    """

    sequence_length: int
    micro_batch_size: int
    micro_batches: int
    recipe: TrainingRecipe
    optimizer: Optimizer
    kernel: AttentionKernel
    recomputation: Recomputation
    interval: int = 1
    adaptation: Adaptation = Adaptation()
    objective: TrainingObjective = TrainingObjective.PRETRAINING
    offload: Offload = Offload()
    framework: Framework = Framework.GENERIC
    loss: LossImplementation = LossImplementation.FP32
    teacher_parameters: int | None = None
    weight_average: bool = False
    optimizer_rank: int = 128
    steps_in_backward: bool = False
    fusion: OperatorFusion | None = None
    """Fusion of operators without a multiplication into kernels; None for the framework's default. Compiled

    blocks save nothing that their backward pass does not read.
    """
    fused: FusedAttention | None = None
    """Release of the fused attention; None for the framework's default."""
    graphs: CudaGraphs = CudaGraphs.NONE
    compression: Compression | None = None
    """Compression of gradients between replicas."""
    rollout: Rollout | None = None
    """Rollout of PPO and GRPO; None where nothing is generated."""
    reward_parameters: int | None = None
    critic_parameters: int | None = None

    @property
    def sequences(self) -> int:
        """Sequences of a micro-batch: two for a pair."""
        return self.micro_batch_size * (2 if self.objective in PAIRED else 1)

    @property
    def sample_tokens(self) -> int:
        """Tokens of a sample: those of both sequences of a pair."""
        return self.sequence_length * (2 if self.objective in PAIRED else 1)

    @property
    def compiled(self) -> bool:
        """True if a compiler builds the blocks."""
        return self.fusion is OperatorFusion.COMPILED

    @property
    def measured_recomputation(self) -> Recomputation:
        """Measured strategy among ``none`` and ``full`` that comes closest to this one."""
        return Recomputation.FULL if self.recomputation in WHOLE_BLOCKS else Recomputation.NONE


class HorizonUnit(StrEnum):
    """Unit of the length of a service."""

    DURATION = "duration_seconds"
    REQUESTS = "total_requests"
    OUTPUT_TOKENS = "total_output_tokens"


class Horizon(NamedTuple):
    """Length of a service."""

    unit: HorizonUnit
    amount: float


class DraftModel(NamedTuple):
    """A smaller model beside the served one, which proposes ``tokens`` at a time (speculative decoding)."""

    profile: ModelProfile
    stored: WeightFormat
    tokens: int


class CompanionModel(NamedTuple):
    """A model on the same devices that a request passes too, such as a text encoder."""

    profile: ModelProfile
    stored: WeightFormat


class Adapters(NamedTuple):
    """Low-rank adapters on every matrix inside blocks but experts', loaded at a time (LoRA)."""

    loaded: int
    rank: int


_PLAIN_BITS = 16.0


class InferenceWorkload(NamedTuple):
    """A served model with so many concurrent requests over the whole cluster; lengths are means.

    ``batched_tokens`` is the maximum that one iteration of the engine processes, ``most_requests`` the
    maximum of concurrent requests of a replica. ``weight_format`` is the format that weights are multiplied
    from, ``stored`` their packing where that is more than a width.
    """

    weight_format: NumberFormat
    cache_format: NumberFormat | BlockFormat
    input_tokens: float
    output_tokens: float
    concurrency: int
    batched_tokens: int
    block_tokens: int
    memory_fraction: float
    most_requests: int | None = None
    horizon: Horizon | None = None
    stored: WeightFormat | None = None
    state_format: NumberFormat = NumberFormat.BF16
    """Format of recurrent states."""
    rules: EngineRules = EngineRules()
    buffers: EngineBuffers = EngineBuffers()
    least_buffers: EngineBuffers = EngineBuffers()
    most_buffers: EngineBuffers = EngineBuffers()
    """Ends of the interval of ``buffers``."""
    cuda_graphs: bool = True
    warmed_up: bool = True
    """True if kernels were compiled and chosen before the first request."""
    graph_requests: int = 0
    """Requests that captured graphs hold a buffer of FP32 logits for."""
    position_tokens: int = 0
    """Positions that the model supports, where the engine holds tables of them."""
    draft: DraftModel | None = None
    adapters: Adapters | None = None
    companions: tuple[CompanionModel, ...] = ()
    reserved_tokens: int = 0
    """Least tokens that a request takes, where the cache is not paged."""
    device_layers: int | None = None
    """Blocks on the device; the others are on the host. None for all."""
    pass_elements: float = 0.0
    """Maximum elements of a forward pass over one request, for a model without decoding, or for a tower."""
    source_tokens: float | None = None
    """Positions that cross-attention reads, where they are not those of the input."""
    image_share: float = 0.0
    """Share of ``input_tokens`` that are positions of images, where a sample tells them."""
    chunks_prefill: bool = True
    """True if a prompt may be computed in several iterations."""
    is_static: bool = False
    """True if a batch is served until its last request ends."""
    fused: FusedAttention = FusedAttention.NATIVE
    """Release of the fused attention of prompts."""

    @property
    def storage(self) -> WeightFormat:
        """Storage format of the weights."""
        return self.stored or PLAIN_FORMATS[self.weight_format]

    @property
    def is_low_precision(self) -> bool:
        """True if weights are stored below 16 bits: they are scaled or unpacked when they multiply."""
        return self.storage.mean_bits < _PLAIN_BITS

    @property
    def context_tokens(self) -> float:
        """Tokens that a request holds in the cache when it ends, in whole blocks."""
        tokens = max(int(self.input_tokens + self.output_tokens), self.reserved_tokens)
        return float(-(-tokens // self.block_tokens) * self.block_tokens)

    def requests_per_replica(self, replicas: int) -> int:
        """Returns the concurrent requests on the busiest of ``replicas`` copies of the model."""
        requests = -(-self.concurrency // replicas)
        return requests if self.most_requests is None else min(requests, self.most_requests)

    def busy_replicas(self, replicas: int) -> int:
        """Returns the replicas that have a request at a time."""
        return min(replicas, self.concurrency)

    def mean_requests(self, replicas: int) -> float:
        """Returns the mean concurrent requests on a busy replica."""
        requests = self.concurrency / self.busy_replicas(replicas)
        return requests if self.most_requests is None else min(requests, float(self.most_requests))
