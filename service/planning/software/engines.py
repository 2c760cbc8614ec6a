"""Serving engines by name and version: memory that they reserve, charges of a cache, and their defaults.

The rules restate the start-up of each engine. vLLM measures one pass at its largest batch and gives the rest
of ``gpu_memory_utilization`` x device memory to the cache; TensorRT-LLM gives the cache a share of the free
memory once the engine is loaded; SGLang's static share holds weights and cache, all other memory has to find
room beside it; llama.cpp allocates the whole context and reserves no share; Transformers allocates on demand.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

GIBIBYTE = 2**30


class EngineName(StrEnum):
    """Engines whose rules are known; any other is estimated by plain sums."""

    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"
    TRANSFORMERS = "transformers"


_MOST_TEXTS = 256
"""Number of cached names and versions, which callers may write freely."""

_ALIASES = {
    "trt-llm": EngineName.TENSORRT_LLM,
    "trtllm": EngineName.TENSORRT_LLM,
    "tensorrt_llm": EngineName.TENSORRT_LLM,
    "tensorrtllm": EngineName.TENSORRT_LLM,
    "llama-cpp": EngineName.LLAMA_CPP,
    "llamacpp": EngineName.LLAMA_CPP,
    "llama_cpp": EngineName.LLAMA_CPP,
    "hf-transformers": EngineName.TRANSFORMERS,
}


@lru_cache(maxsize=_MOST_TEXTS)
def resolve_engine_name(text: str) -> EngineName | None:
    """Returns the engine that ``text`` names, in any case; None for an unknown one."""
    word = text.strip().lower()
    if word in _ALIASES:
        return _ALIASES[word]
    return next((name for name in EngineName if name.value == word), None)


_LLAMA_CPP_DEVICES = {
    "apple": "Apple silicon",
    "cpu": "a processor",
    "rdna-3.5": "a GPU that shares the memory of its processor",
    "jetson-orin": "a Jetson Orin",
    "jetson-agx-orin": "a Jetson Orin",
    "pascal": "a device that is older than the kernels of vLLM",
    "vega": "a device that is older than the kernels of vLLM",
    "mi100": "a device that is older than the kernels of vLLM",
}
"""Devices that are served by llama.cpp, by the beginning of their generation or id. The installation guide of
vLLM starts at compute capability 7.0 and at gfx90a, and names community plugins for Apple silicon. vLLM or a
plugin of it serves TPU (tpu-inference), Trainium and Inferentia (vllm-neuron), Gaudi (vllm-gaudi), Ascend
(vllm-ascend), Arc and Radeon cards, and NVIDIA's containers of vLLM run on GB10 and Jetson Thor."""


def describe_llama_cpp_device(device: str, generation: str) -> str | None:
    """Returns the kind of a device on which teams serve by llama.cpp; None for one that vLLM serves."""
    names = (f"{generation}-", f"{device}-")
    for start, kind in _LLAMA_CPP_DEVICES.items():
        if any(name.startswith(f"{start}-") for name in names):
            return kind
    return None


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


_VERSION = re.compile(r"(\d+)\.(\d+|x)(?:\.(\d+))?")
_EngineVersion = tuple[int, int, int]
_NEWEST: _EngineVersion = (10**6, 0, 0)
_LAST_PATCH = 10**6


@lru_cache(maxsize=_MOST_TEXTS)
def _parse_version(text: str | None) -> _EngineVersion:
    """Returns major, minor and patch of a version.

    The newest without a version, the last patch without one.
    """
    found = _VERSION.search(text or "")
    if found is None:
        return _NEWEST
    major, minor, patch = found.groups()
    return int(major), 0 if minor == "x" else int(minor), _LAST_PATCH if patch is None else int(patch)


def is_vllm_v0(version: str | None) -> bool:
    """Returns true for the first engine of vLLM, which was the default before 0.8."""
    if version and re.search(r"\bV[01]\b", version, re.IGNORECASE):
        return re.search(r"\bV0\b", version, re.IGNORECASE) is not None
    return _parse_version(version) < (0, 8, 0)


_VLLM_ASYNCHRONOUS: _EngineVersion = (0, 13, 0)
_SGLANG_LATER: _EngineVersion = (0, 5, 0)
_TENSORRT_LLM_LATER: _EngineVersion = (1, 1, 0)


def resolve_generation(name: EngineName | None, version: str | None) -> str | None:
    """Returns the generation of versions with equal serving speed; None where none is distinguished."""
    number = _parse_version(version)
    if version is None or number == _NEWEST:
        return None
    match name:
        case EngineName.VLLM:
            if is_vllm_v0(version):
                return "v0"
            return "v1" if number < _VLLM_ASYNCHRONOUS else "asynchronous"
        case EngineName.SGLANG:
            return "early" if number < _SGLANG_LATER else "later"
        case EngineName.TENSORRT_LLM:
            return "early" if number < _TENSORRT_LLM_LATER else "later"
        case _:
            return None


_VLLM_HYBRID_CACHE: _EngineVersion = (0, 10, 0)
_VLLM_GRAPHS_CHARGED: _EngineVersion = (0, 21, 0)
_VLLM_SHARE = 0.92
"""Share from the version that charges graphs to it (CacheConfig.gpu_memory_utilization; 0.9 before)."""
_VLLM_FREE_MEMORY: _EngineVersion = (0, 2, 5)
"""Version from which vLLM asks the driver for free memory and not PyTorch for its own (pull request 2031)."""
_VLLM_REDUCED_FREED: _EngineVersion = (0, 2, 6)
"""Version from which all-reduces release their tensors at once (pull request 2151)."""
_VLLM_OWN_CONTEXT: _EngineVersion = (0, 3, 0)
_VLLM_ALL_CONTEXTS: tuple[_EngineVersion, _EngineVersion] = ((0, 6, 5), (0, 7, 0))
"""Versions that count all memory in use as outside PyTorch, contexts too (pull requests 10511, 11809)."""
_VLLM_CHUNKED: _EngineVersion = (0, 5, 4)
"""Version from which V0 passes prompts of long models in chunks (pull request 6666)."""
_VLLM_LARGE_CHUNKS: _EngineVersion = (0, 6, 5)
_VLLM_SMALL_BATCHES = ("a100",)
"""Devices that vLLM excepts by name from those of ``LARGE_DEVICE_BYTES`` (``vllm/engine/arg_utils.py``)."""
_VLLM_SMALL_DEVICES: _EngineVersion = (0, 8, 3)
"""Version from which V1 takes fewer requests on small devices; before, warming up 1,024 ran out of memory."""
_VLLM_FLASH_3: _EngineVersion = (0, 7, 0)
"""Version from which vLLM takes FlashAttention-3 on Hopper (pull request 12093)."""
_SGLANG_FLASH_3: _EngineVersion = (0, 4, 6)
"""Version from which SGLang does; before, FlashInfer (issue 5064, April 2025)."""
_SGLANG_BY_DEVICE: _EngineVersion = (0, 5, 0)
_TENSORRT_LLM_SMALL_BLOCKS: _EngineVersion = (0, 18, 0)
_TRANSFORMERS_GPTQMODEL: _EngineVersion = (4, 48, 0)
"""Version from which GPTQModel replaces AutoGPTQ and its ExLlama kernels."""
_TRANSFORMERS_LAST_LOGITS: _EngineVersion = (4, 45, 0)
"""Version from which only the last token's logits are computed, and layers share rotary tables."""
_TRANSFORMERS_HIT_EXPERTS: _EngineVersion = (4, 53, 0)
"""Version from which blocks with experts pass over those that a token has chosen, and not over all."""


_LLAMA_CPP_BUILD = re.compile(r"\bb?(\d{3,5})\b")
_LLAMA_CPP_DATE = re.compile(r"\b(20\d\d)-(\d\d)")
_LLAMA_CPP_FLASH_BUILD, _LLAMA_CPP_FLASH_DATE = 6325, (2025, 9)


def _has_stored_scores(version: str | None) -> bool:
    """Returns true if llama.cpp stores attention scores by default: before build 6325 of August 2025."""
    dated = _LLAMA_CPP_DATE.search(version or "")
    if dated:
        return (int(dated[1]), int(dated[2])) < _LLAMA_CPP_FLASH_DATE
    built = _LLAMA_CPP_BUILD.search(version or "")
    return built is not None and int(built[1]) < _LLAMA_CPP_FLASH_BUILD


@lru_cache(maxsize=_MOST_TEXTS)
def resolve_rules(name: EngineName | None, version: str | None) -> EngineRules:
    """Returns the rules of an engine; without a version those of the newest known one."""
    return _build_rules(name, version)._replace(generation=resolve_generation(name, version))


def _build_rules(name: EngineName | None, version: str | None) -> EngineRules:
    number = _parse_version(version)
    match name:
        case EngineName.VLLM:
            kept = number >= _VLLM_HYBRID_CACHE
            after_load = _VLLM_FREE_MEMORY <= number < _VLLM_OWN_CONTEXT
            first, last = _VLLM_ALL_CONTEXTS
            return EngineRules(
                name=name,
                windows_kept=kept,
                window_slack=WindowSlack.ITERATION if kept else WindowSlack.NONE,
                reports_full_length=True,
                samples_at_start=True,
                graphs_charged=number >= _VLLM_GRAPHS_CHARGED,
                context_charged=after_load or first <= number < last,
                libraries_charged=number >= _VLLM_FREE_MEMORY,
                memory_fraction=_VLLM_SHARE if number >= _VLLM_GRAPHS_CHARGED else 0.9,
                keeps_reduced=_VLLM_FREE_MEMORY <= number < _VLLM_REDUCED_FREED,
                padded_mxfp4=True,
                native_attention=number >= _VLLM_FLASH_3,
                small_batches_on=_VLLM_SMALL_BATCHES,
                mixes_prefill=not is_vllm_v0(version),
                chunks_prefill=not is_vllm_v0(version),
            )
        case EngineName.TENSORRT_LLM:
            blocks = 32 if number >= _TENSORRT_LLM_SMALL_BLOCKS else 64
            return EngineRules(
                name=name,
                reservation=MemoryReservation.FREE,
                block_tokens=blocks,
                chunks_prefill=False,
                admits_whole=True,
            )
        case EngineName.SGLANG:
            return EngineRules(
                name=name,
                reservation=MemoryReservation.STATIC,
                memory_fraction=0.88,
                block_tokens=1,
                wide_states=True,
                native_attention=number >= _SGLANG_FLASH_3,
                mixes_prefill=False,
                ranks_share_tokens=True,
            )
        case EngineName.LLAMA_CPP:
            return EngineRules(
                name=name,
                reservation=MemoryReservation.NOTHING,
                paged=False,
                window_slack=WindowSlack.REQUEST,
                memory_fraction=1.0,
                block_tokens=256,
                table_on_host=True,
                element_bytes=4,
                wide_states=True,
                logit_bytes=4,
                native_attention=False,
                scores_kept=_has_stored_scores(version),
                # --split-mode layer.
                splits_layers=True,
            )
        case EngineName.TRANSFORMERS:
            return EngineRules(
                name=name,
                reservation=MemoryReservation.NOTHING,
                paged=False,
                memory_fraction=1.0,
                block_tokens=1,
                # At 16 bit and again in FP32.
                logit_bytes=0 if number >= _TRANSFORMERS_LAST_LOGITS else 6,
                wide_states=True,
                whole_convolutions=True,
                loads_tied_copy=True,
                keeps_tied_copy=True,
                loops_experts=number < _TRANSFORMERS_HIT_EXPERTS,
                unpacks_gptq=number < _TRANSFORMERS_GPTQMODEL,
                rotary_tables=number < _TRANSFORMERS_LAST_LOGITS,
                native_attention=False,
                mixes_prefill=False,
                chunks_prefill=False,
                static_batches=True,
            )
        case None:
            return EngineRules()


class EngineDefaults(NamedTuple):
    """Settings that an engine chooses where the question leaves them open."""

    most_requests: int | None
    batched_tokens: int
    memory_fraction: float
    graph_requests: int = 0
    """Requests that its largest graph is captured for, where that holds a buffer of logits."""


LARGE_DEVICE_BYTES = 70 * GIBIBYTE
"""Memory from which vLLM counts a device as large."""
_CHUNKED_ABOVE = 32_768
_LEAST_BATCH = 2048
_MEBIBYTE = 2**20


class _SglangTier(NamedTuple):
    """Settings of SGLang on devices of less than ``below_mib``.

    Tokens, and graphs of few and many devices.
    """

    below_mib: float
    chunk: int
    graphs: int
    graphs_from_four: int


_SGLANG_TIERS = (
    _SglangTier(20 * 1024, 2048, 8, 8),
    _SglangTier(35 * 1024, 2048, 24, 80),
    _SglangTier(60 * 1024, 4096, 32, 160),
    _SglangTier(160 * 1024, 8192, 256, 512),
    _SglangTier(float("inf"), 16_384, 512, 512),
)
_SGLANG_OLDER_GRAPHS = 160
_SGLANG_OLDER_SHARES = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""Share by the least devices of a tensor-parallel group."""
_FOUR = 4


def _resolve_vllm_defaults(version: str | None, *, large: bool, model_tokens: int) -> tuple[int, int]:
    """Returns the maximum requests, and the tokens of an iteration."""
    number = _parse_version(version)
    if not is_vllm_v0(version):
        tokens = 8192 if large else 2048
        return (1024 if large or number < _VLLM_SMALL_DEVICES else 256), tokens
    if model_tokens > _CHUNKED_ABOVE and number >= _VLLM_CHUNKED:
        return 256, 2048 if number >= _VLLM_LARGE_CHUNKS else 512
    return 256, max(model_tokens, _LEAST_BATCH)


def _resolve_sglang_defaults(version: str | None, *, capacity_bytes: float, devices: int) -> EngineDefaults:
    """Returns the share that activations and graphs leave, as SGLang estimates them.

    From 0.5 in MiB: 512 + 1.5 for each token of a chunk + 2 for each request of the largest graph + 128 for
    each device of a group, at least 10,240 from 60 GiB; before, a share by the devices of a group.
    """
    mib = capacity_bytes / _MEBIBYTE
    tier = next(tier for tier in _SGLANG_TIERS if mib < tier.below_mib)
    if _parse_version(version) < _SGLANG_BY_DEVICE:
        share = next(share for least, share in _SGLANG_OLDER_SHARES if devices >= least)
        return EngineDefaults(None, tier.chunk, share, min(tier.graphs_from_four, _SGLANG_OLDER_GRAPHS))
    graphs = tier.graphs if devices < _FOUR else tier.graphs_from_four
    if not capacity_bytes:
        return EngineDefaults(None, 4096, 0.88, 160)
    kept = 512 + 1.5 * tier.chunk + 2 * graphs + 128 * devices
    if mib > 60 * 1024:
        kept = max(kept, 10 * 1024)
    return EngineDefaults(None, tier.chunk, round(max(mib - kept, 0.0) / mib, 3), graphs)


def resolve_defaults(
    rules: EngineRules,
    version: str | None,
    *,
    capacity_bytes: float,
    device: str = "",
    model_tokens: int | None,
    devices: int = 1,
) -> EngineDefaults:
    """Returns the defaults on ``devices`` of ``capacity_bytes`` each for a model of ``model_tokens``.

    ``device`` is the id of the device.

    vLLM V1 takes 1,024 requests and 8,192 tokens on devices of 70 GiB and more other than the A100, else 256
    and 2,048. V0 takes 256, and prefills whole prompts up to 32,768 tokens of model length, else 2,048 at a
    time. Transformers passes whole prompts, which is 0 here.
    """
    share = rules.memory_fraction
    match rules.name:
        case EngineName.VLLM:
            excepted = any(name in device for name in rules.small_batches_on)
            large = capacity_bytes >= LARGE_DEVICE_BYTES and not excepted
            return EngineDefaults(
                *_resolve_vllm_defaults(version, large=large, model_tokens=model_tokens or 0), share
            )
        case EngineName.TENSORRT_LLM:
            return EngineDefaults(2048, 8192, share)
        case EngineName.SGLANG:
            return _resolve_sglang_defaults(version, capacity_bytes=capacity_bytes, devices=devices)
        case _:
            batched = {EngineName.LLAMA_CPP: 512, EngineName.TRANSFORMERS: 0}
            return EngineDefaults(None, batched.get(rules.name, 8192) if rules.name else 8192, share)


class EngineSettings(NamedTuple):
    """An engine and its start options; None for those that it sets itself, by version, model and devices."""

    name: EngineName | None
    version: str | None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    block_tokens: int | None = None
    memory_fraction: float | None = None
    cuda_graphs: bool = True
    warmed_up: bool = True
    device_layers: int | None = None

    @property
    def rules(self) -> EngineRules:
        """Rules of the engine in this version."""
        return resolve_rules(self.name, self.version)

    def defaults_on(
        self, *, capacity_bytes: float, device: str, model_tokens: int | None, devices: int
    ) -> EngineDefaults:
        """Returns the defaults on ``devices`` per replica, each a ``device`` of ``capacity_bytes``."""
        return resolve_defaults(
            self.rules,
            self.version,
            capacity_bytes=capacity_bytes,
            device=device,
            model_tokens=model_tokens if self.max_model_len is None else self.max_model_len,
            devices=devices,
        )
