"""What a model is asked to do, with every choice made."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.engines import EngineBuffers, EngineRules
from service.planning.precision import NumberFormat, Optimizer, TrainingRecipe
from service.planning.profile import Profile
from service.planning.storage import PLAIN_FORMATS, BlockFormat, WeightFormat


class AttentionKernel(StrEnum):
    """Whether the kernel stores the score matrix (standard) or not (flash; Dao et al. 2022)."""

    STANDARD = "standard"
    FLASH = "flash"


class Recomputation(StrEnum):
    """Which activations the backward pass computes again; ``full`` keeps each block's input only."""

    NONE = "none"
    FULL = "full"


class TrainingWorkload(NamedTuple):
    """One training run. ``micro_batches`` counts those of one step on one data-parallel replica."""

    sequence_length: int
    micro_batch_size: int
    micro_batches: int
    recipe: TrainingRecipe
    optimizer: Optimizer
    kernel: AttentionKernel
    recomputation: Recomputation


class HorizonUnit(StrEnum):
    """In what the length of a service is counted."""

    DURATION = "duration_seconds"
    REQUESTS = "total_requests"
    OUTPUT_TOKENS = "total_output_tokens"


class Horizon(NamedTuple):
    """How long a service runs."""

    unit: HorizonUnit
    amount: float


class Draft(NamedTuple):
    """A smaller model beside the served one, that proposes ``tokens`` at a time (speculative decoding)."""

    profile: Profile
    stored: WeightFormat
    tokens: int


class Adapters(NamedTuple):
    """Low-rank adapters on every matrix inside blocks but experts', loaded at a time (LoRA)."""

    loaded: int
    rank: int


class InferenceWorkload(NamedTuple):
    """A served model under a constant number of requests at a time, over the whole cluster.

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
    draft: Draft | None = None
    adapters: Adapters | None = None
    reserved_tokens: int = 0
    """Tokens that a request takes at least, where the cache is no paged one."""
    device_layers: int | None = None
    """Blocks that lie on the device; the others on the host. None for all."""

    @property
    def storage(self) -> WeightFormat:
        """How the weights are stored."""
        return self.stored or PLAIN_FORMATS[self.weight_format]

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
