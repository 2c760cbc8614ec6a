"""Rules of an engine in one version: its memory, its batches, and its defaults."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.software.engines.names import EngineName


class MemoryReservation(StrEnum):
    """Memory that the memory fraction refers to, and that it has to hold."""

    DEVICE = "device"
    """Fraction of the device; holds weights, buffers and cache."""
    FREE = "free"
    """Fraction of the memory that weights and buffers leave; holds the cache."""
    STATIC = "static"
    """Fraction of the memory that context and communication leave; holds weights and cache."""
    NOTHING = "nothing"
    """No share is reserved."""


class WindowSlack(StrEnum):
    """Tokens that a windowed layer caches beside its window while an iteration processes them."""

    NONE = "none"
    ITERATION = "iteration"
    """Those of the iteration, which all requests share."""
    REQUEST = "request"
    """As many for each request, whose cache is of a fixed size."""


class EngineBuffers(NamedTuple):
    """Memory that an engine takes beside weights and cache. Each member is a physical quantity."""

    context_bytes: float = 0.0
    """Bytes of the CUDA context of a process."""
    runtime_bytes: float = 0.0
    """Bytes of libraries on one device: handles, workspaces, loaded kernels."""
    communication_bytes: float = 0.0
    """Bytes of NCCL and of custom all-reduce, where a model lies on several devices."""
    sampler_bytes_per_logit: float = 6.0
    """Bytes per request and word of the vocabulary while a token is sampled."""
    graph_bytes_per_layer: float = 0.0
    """Bytes of captured CUDA graphs per layer."""
    graph_bytes_per_expert_layer: float = 0.0
    """Additional bytes of CUDA graphs per layer with experts, which launches more kernels."""
    weights_factor: float = 1.0
    """Weights in memory over stored weights."""
    iteration_factor: float = 1.0
    """Live intermediates over those of the widest layer."""


class EngineRules(NamedTuple):
    """Rules of one engine in one version."""

    name: EngineName | None = None
    reservation: MemoryReservation = MemoryReservation.DEVICE
    windows_kept: bool = True
    """True if a windowed layer caches its window only; else it is charged at full length."""
    window_slack: WindowSlack = WindowSlack.NONE
    reports_full_length: bool = False
    """True if the engine's report of tokens counts every layer equally, at full length."""
    samples_at_start: bool = False
    """True if memory is reserved to sample a token for each of the maximum requests."""
    graphs_charged: bool = True
    context_charged: bool = True
    libraries_charged: bool = True
    """True if memory of libraries and communication outside PyTorch's allocator counts towards the share."""
    keeps_reduced: bool = False
    """True if the first pass holds the results of its all-reduces until it ends."""
    paged: bool = True
    """True if requests take blocks as they grow; else their whole length at once."""
    memory_fraction: float = 0.9
    block_tokens: int = 16
    padded_mxfp4: bool = False
    """True if kernels pad the inputs of MXFP4 experts to 256."""
    table_on_host: bool = False
    """True if a token table that is no head stays in the host's memory."""
    element_bytes: int = 2
    """Bytes of an element of intermediates, and of the inputs that convolutions store."""
    wide_states: bool = False
    """True if recurrent states are in FP32 unless specified, and not in BF16."""
    whole_convolutions: bool = False
    """True if a convolution stores as many inputs as its width, and not one fewer."""
    logit_bytes: int = 0
    """Bytes of a logit, where every token of a batch passes the head and not only the last of a request."""
    scores_kept: bool = False
    """True if attention stores its scores: a batch of queries against the whole context."""
    loads_tied_copy: bool = False
    """True if a head that the files repeat beside its tied table is loaded before it is tied."""
    keeps_tied_copy: bool = False
    """True if the repeated head stays in memory where the weights are in FP8."""
    loops_experts: bool = False
    """True if a block with experts passes over all of them one after the other, chosen or not."""
    unpacks_gptq: bool = False
    """True if a buffer is held that the widest matrix of 4-bit GPTQ is unpacked into."""
    rotary_tables: bool = False
    """True if every attention layer holds its own sines and cosines of all positions."""
    mixes_prefill: bool = True
    """True if prompts are computed in the iterations that decode; else nothing decodes meanwhile."""
    chunks_prefill: bool = True
    """True if a prompt may be computed in several iterations."""
    admits_whole: bool = False
    """True if a request is admitted only when all of its output finds room; else it may be preempted."""
    ranks_share_tokens: bool = False
    """True if all attention ranks share the tokens of an iteration; else each has as many."""
    native_attention: bool = True
    """True if prompts are attended by kernels for the device's own instructions, such as FlashAttention-3 on
    Hopper; else by FlashAttention-2."""
    splits_layers: bool = False
    """True if devices of a replica hold whole layers by default, and pass one after the other."""
    static_batches: bool = False
    """True if a batch is served until its last request ends."""
    small_batches_on: tuple[str, ...] = ()
    """Parts of the names of large devices on which the engine takes the batches of small ones."""
    generation: str | None = None
    """Generation of versions with equal serving speed."""


class EngineDefaults(NamedTuple):
    """Settings that an engine chooses where the question leaves them open."""

    most_requests: int | None
    batched_tokens: int
    memory_fraction: float
    graph_requests: int = 0
    """Requests that its largest graph is captured for, where that holds a buffer of logits."""
