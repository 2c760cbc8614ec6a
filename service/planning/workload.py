"""What a model is asked to do, with every choice made."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.hardware.storage import PLAIN_FORMATS, BlockFormat, WeightFormat
from service.planning.models.profile import ModelProfile, OperatorFusion
from service.planning.precision import NumberFormat, Optimizer, TrainingRecipe
from service.planning.software.engines import EngineBuffers, EngineRules
from service.planning.software.frameworks import Framework


class AttentionKernel(StrEnum):
    """Whether the kernel stores the score matrix (standard) or not (flash; Dao et al. 2022)."""

    STANDARD = "standard"
    FLASH = "flash"


class Recomputation(StrEnum):
    """Which activations the backward pass computes again.

    ``selective`` keeps what is dear to compute, ``full`` each block's input, ``every_k`` the input of every
    k-th block, ``sqrt`` of every block whose distance is the square root of the depth (Chen et al. 2016).
    """

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"
    EVERY_K = "every_k"
    SQRT = "sqrt"


WHOLE_BLOCKS = frozenset({Recomputation.FULL, Recomputation.EVERY_K, Recomputation.SQRT})
"""Strategies that compute whole blocks again."""


class AdaptationKind(StrEnum):
    """Which parameters are trained: all, or small ones beside frozen weights."""

    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    DORA = "dora"
    PROMPT = "prompt"
    PREFIX = "prefix"
    ADAPTER = "adapter"
    SCALE = "scale"


class FrozenWeightFormat(StrEnum):
    """How frozen weights are kept: as wide as the activations, or matrices in NF4."""

    PLAIN = "plain"
    NF4 = "nf4"
    NF4_DOUBLE = "nf4_double"


class Adaptation(NamedTuple):
    """``rank`` is that of the low-rank matrices or the width of an adapter, ``tokens`` are virtual ones.

    ``targets`` names the matrices that low-rank matrices stand beside.
    """

    kind: AdaptationKind = AdaptationKind.FULL
    rank: int = 0
    targets: frozenset[str] = frozenset()
    tokens: int = 0
    base: FrozenWeightFormat = FrozenWeightFormat.PLAIN


class TrainingObjective(StrEnum):
    """What the loss is taken on, which decides how many copies of a model are held."""

    PRETRAINING = "pretraining"
    SUPERVISED = "supervised"
    DPO = "dpo"
    SIMPO = "simpo"
    ORPO = "orpo"
    PPO = "ppo"
    GRPO = "grpo"
    DISTILLATION = "distillation"


PAIRED = frozenset({TrainingObjective.DPO, TrainingObjective.SIMPO, TrainingObjective.ORPO})
"""Objectives of which a sample is a pair of sequences, chosen and rejected."""

GENERATING = frozenset({TrainingObjective.PPO, TrainingObjective.GRPO})
"""Objectives whose sequences the policy generates itself."""


class Rollout(NamedTuple):
    """How the sequences of a policy are generated.

    A sequence begins with ``prompt_tokens`` that are given, ``samples`` of them with the same; the longest
    response has ``longest_tokens``, None for as many as all. A rollout makes the sequences of ``steps``
    optimizer steps, each of which is taken ``epochs`` times. ``devices`` generate and do nothing else, 0 for
    those that train. One that is ``ahead`` is made while the one before is trained on. The engine takes
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
    """Where a part of the training state lies."""

    NONE = "none"
    CPU = "cpu"
    NVME = "nvme"


class Offload(NamedTuple):
    """Parts of the training state that leave the device."""

    optimizer: TrainingStateLocation = TrainingStateLocation.NONE
    parameters: TrainingStateLocation = TrainingStateLocation.NONE
    activations: TrainingStateLocation = TrainingStateLocation.NONE


class LossImplementation(StrEnum):
    """How logits become a loss: in FP32, at the width of the activations, in chunks, or never stored."""

    FP32 = "fp32"
    NARROW = "narrow"
    CHUNKED = "chunked"
    FUSED = "fused"


class GradientCompressionKind(StrEnum):
    """What replicas send in place of their gradients.

    ``fp16`` and ``int8`` narrow each element, ``one_bit`` sends its sign and a scale, ``top_k`` the largest
    elements with their places, ``random_k`` those that a common seed draws, ``power_sgd`` two thin matrices.
    """

    FP16 = "fp16"
    INT8 = "int8"
    ONE_BIT = "one_bit"
    TOP_K = "top_k"
    RANDOM_K = "random_k"
    POWER_SGD = "power_sgd"


class Compression(NamedTuple):
    """``kept_share`` of the elements is sent under top_k and random_k, ``rank`` is that of power_sgd.

    ``error_feedback`` keeps what was not sent and adds it to the next gradient.
    """

    kind: GradientCompressionKind
    kept_share: float = 0.01
    rank: int = 4
    error_feedback: bool = True


class TrainingWorkload(NamedTuple):
    """One training run. ``micro_batches`` counts those of one step on one data-parallel replica.

    ``interval`` is the k of ``every_k``. ``teacher_parameters`` is the size of the frozen model of a
    distillation, ``reward_parameters`` and ``critic_parameters`` are those of the models beside a policy;
    None for one as large as the model, and under GRPO for a reward without a model. ``weight_average`` keeps
    a moving average in FP32.
    ``steps_in_backward`` updates each block as soon as its gradients are there, which then go.
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
    """How operators without a multiplication become kernels; None for the framework's own way. Compiled
    blocks keep nothing that their backward pass does not read."""
    compression: Compression | None = None
    """Of gradients between replicas."""
    rollout: Rollout | None = None
    """Of PPO and GRPO; None where nothing is generated."""
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
        """Whether a compiler makes the blocks."""
        return self.fusion is OperatorFusion.COMPILED

    @property
    def measured_recomputation(self) -> Recomputation:
        """The strategy among ``none`` and ``full`` that was measured and comes closest to this one."""
        return Recomputation.FULL if self.recomputation in WHOLE_BLOCKS else Recomputation.NONE


class HorizonUnit(StrEnum):
    """In what the length of a service is counted."""

    DURATION = "duration_seconds"
    REQUESTS = "total_requests"
    OUTPUT_TOKENS = "total_output_tokens"


class Horizon(NamedTuple):
    """How long a service runs."""

    unit: HorizonUnit
    amount: float


class DraftModel(NamedTuple):
    """A smaller model beside the served one, that proposes ``tokens`` at a time (speculative decoding)."""

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
    """A served model with so many requests at a time over the whole cluster; lengths are means.

    ``batched_tokens`` is the most that one iteration of the engine processes, ``most_requests`` the most
    requests that a replica takes at a time. ``weight_format`` is what the weights are multiplied from,
    ``stored`` how they are packed where that is more than a width.
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
    """Of recurrent states."""
    rules: EngineRules = EngineRules()
    buffers: EngineBuffers = EngineBuffers()
    least_buffers: EngineBuffers = EngineBuffers()
    most_buffers: EngineBuffers = EngineBuffers()
    """Ends of the interval of ``buffers``."""
    cuda_graphs: bool = True
    warmed_up: bool = True
    """Whether kernels were compiled and chosen before the first request."""
    graph_requests: int = 0
    """Requests that captured graphs hold a buffer of FP32 logits for."""
    position_tokens: int = 0
    """Positions that the model knows, where the engine holds tables of them."""
    draft: DraftModel | None = None
    adapters: Adapters | None = None
    companions: tuple[CompanionModel, ...] = ()
    reserved_tokens: int = 0
    """Tokens that a request takes at least, where the cache is no paged one."""
    device_layers: int | None = None
    """Blocks that lie on the device; the others on the host. None for all."""
    pass_elements: float = 0.0
    """Most that a forward pass over one request holds: of a model that decodes nothing, or of a tower."""
    source_tokens: float | None = None
    """Positions that cross-attention reads, where they are not those of the input."""
    chunks_prefill: bool = True
    """Whether a prompt may be computed in several iterations."""
    is_static: bool = False
    """Whether a batch is served until its last request ends."""

    @property
    def storage(self) -> WeightFormat:
        """How the weights are stored."""
        return self.stored or PLAIN_FORMATS[self.weight_format]

    @property
    def is_low_precision(self) -> bool:
        """Whether weights are stored below 16 bits: they are scaled or unpacked when they multiply."""
        return self.storage.mean_bits < _PLAIN_BITS

    @property
    def context_tokens(self) -> float:
        """Tokens that a request holds in the cache when it ends, in whole blocks."""
        tokens = max(int(self.input_tokens + self.output_tokens), self.reserved_tokens)
        return float(-(-tokens // self.block_tokens) * self.block_tokens)

    def requests_per_replica(self, replicas: int) -> int:
        """Requests at a time on the busiest of ``replicas`` copies of the model."""
        requests = -(-self.concurrency // replicas)
        return requests if self.most_requests is None else min(requests, self.most_requests)

    def busy_replicas(self, replicas: int) -> int:
        """Replicas that have a request at a time."""
        return min(replicas, self.concurrency)

    def mean_requests(self, replicas: int) -> float:
        """Requests at a time on a busy replica, on average."""
        requests = self.concurrency / self.busy_replicas(replicas)
        return requests if self.most_requests is None else min(requests, float(self.most_requests))
