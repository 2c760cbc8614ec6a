"""Serving engines by name and version: what they reserve, how they charge a cache, what they take by default.

The rules restate what each engine does at start-up. vLLM measures one pass at its largest batch and gives the
rest of ``gpu_memory_utilization`` x device memory to the cache; TensorRT-LLM gives the cache a share of what
is free once the engine is loaded; SGLang's static share holds weights and cache, everything else has to find
room beside it; llama.cpp allocates the whole context and reserves no share; Transformers takes as it goes.
"""

import re
from enum import StrEnum
from typing import NamedTuple

GIBIBYTE = 2**30


class EngineName(StrEnum):
    """Engines whose rules are known; any other is estimated by bare sums."""

    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"
    TRANSFORMERS = "transformers"


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


def engine_name(text: str) -> EngineName | None:
    """The engine that ``text`` names, in any case; None for one that is not known."""
    word = text.strip().lower()
    if word in _ALIASES:
        return _ALIASES[word]
    return next((name for name in EngineName if name.value == word), None)


class Reservation(StrEnum):
    """Of what the memory fraction is taken, and what it has to hold."""

    DEVICE = "device"
    """Of the device; holds weights, buffers and cache."""
    FREE = "free"
    """Of what weights and buffers leave; holds the cache."""
    STATIC = "static"
    """Of what context and communication leave; holds weights and cache."""
    NOTHING = "nothing"
    """No share is reserved."""


class EngineBuffers(NamedTuple):
    """What an engine takes beside weights and cache, each a physical quantity."""

    context_bytes: float = 0.0
    """Of the CUDA context of a process."""
    runtime_bytes: float = 0.0
    """Of libraries on one device: handles, workspaces, loaded kernels."""
    communication_bytes: float = 0.0
    """Of NCCL and of custom all-reduce, where a model lies on several devices."""
    sampler_bytes_per_logit: float = 6.0
    """While a token is drawn, for each request and word of the vocabulary."""
    graph_bytes_per_layer: float = 0.0
    """Of captured CUDA graphs."""
    weights_factor: float = 1.0
    """Weights held over weights stored."""
    iteration_factor: float = 1.0
    """Live intermediates over those of the widest layer."""


class EngineRules(NamedTuple):
    """One engine of one version."""

    name: EngineName | None = None
    reservation: Reservation = Reservation.DEVICE
    windows_kept: bool = True
    """Whether a windowed layer keeps its window only; else it is charged at full length."""
    window_slack: bool = False
    """Whether a windowed layer also holds the tokens of one iteration, while they are processed."""
    reports_full_length: bool = False
    """Whether the tokens that the engine reports count every layer at full length and alike."""
    samples_at_start: bool = False
    """Whether room is reserved to draw a token for each of the most requests."""
    graphs_charged: bool = True
    context_charged: bool = True
    paged: bool = True
    """Whether requests take blocks as they grow; else their whole length at once."""
    memory_fraction: float = 0.9
    block_tokens: int = 16
    padded_mxfp4: bool = False
    """Whether kernels want the inputs of MXFP4 experts padded to 256."""
    table_on_host: bool = False
    """Whether a token table that is no head stays in the host's memory."""
    element_bytes: int = 2
    """Of intermediates."""
    logit_bytes: int = 0
    """Of a logit, where every token of a batch passes the head and not only the last of a request."""


_VERSION = re.compile(r"(\d+)\.(\d+|x)(?:\.(\d+))?")
_Version = tuple[int, int]
_NEWEST: _Version = (10**6, 0)


def _version(text: str | None) -> _Version:
    """Major and minor of a version; the newest where none is given."""
    found = _VERSION.search(text or "")
    if found is None:
        return _NEWEST
    minor = found.group(2)
    return int(found.group(1)), 0 if minor == "x" else int(minor)


def is_vllm_v0(version: str | None) -> bool:
    """Whether this is the first engine of vLLM, which was the default before 0.8."""
    if version and re.search(r"\bV[01]\b", version, re.IGNORECASE):
        return re.search(r"\bV0\b", version, re.IGNORECASE) is not None
    return _version(version) < (0, 8)


_VLLM_HYBRID_CACHE: _Version = (0, 10)
_VLLM_GRAPHS_CHARGED: _Version = (0, 21)
_VLLM_OWN_CONTEXT: _Version = (0, 3)
_TENSORRT_LLM_SMALL_BLOCKS: _Version = (0, 18)
_TRANSFORMERS_LAST_LOGITS: _Version = (4, 45)


def rules_of(name: EngineName | None, version: str | None) -> EngineRules:
    """The rules of an engine; without a version those of the newest known one."""
    number = _version(version)
    match name:
        case EngineName.VLLM:
            kept = number >= _VLLM_HYBRID_CACHE
            return EngineRules(
                name=name,
                windows_kept=kept,
                window_slack=kept,
                reports_full_length=True,
                samples_at_start=True,
                graphs_charged=number >= _VLLM_GRAPHS_CHARGED,
                context_charged=number < _VLLM_OWN_CONTEXT,
                padded_mxfp4=True,
            )
        case EngineName.TENSORRT_LLM:
            blocks = 32 if number >= _TENSORRT_LLM_SMALL_BLOCKS else 64
            return EngineRules(name=name, reservation=Reservation.FREE, block_tokens=blocks)
        case EngineName.SGLANG:
            return EngineRules(
                name=name, reservation=Reservation.STATIC, memory_fraction=0.88, block_tokens=1
            )
        case EngineName.LLAMA_CPP:
            return EngineRules(
                name=name,
                reservation=Reservation.NOTHING,
                paged=False,
                window_slack=True,
                memory_fraction=1.0,
                block_tokens=256,
                table_on_host=True,
                element_bytes=4,
                logit_bytes=4,
            )
        case EngineName.TRANSFORMERS:
            return EngineRules(
                name=name,
                reservation=Reservation.NOTHING,
                paged=False,
                memory_fraction=1.0,
                block_tokens=1,
                # At 16 bit and again in FP32.
                logit_bytes=0 if number >= _TRANSFORMERS_LAST_LOGITS else 6,
            )
        case None:
            return EngineRules()


class EngineDefaults(NamedTuple):
    """Bounds of a batch where the question leaves them open."""

    most_requests: int | None
    batched_tokens: int


LARGE_DEVICE_BYTES = 70 * GIBIBYTE
"""From which vLLM takes a device for a large one."""
_CHUNKED_ABOVE = 32_768


def defaults_of(
    rules: EngineRules, version: str | None, *, capacity_bytes: float, is_a100: bool, model_tokens: int | None
) -> EngineDefaults:
    """What the engine takes on a device of ``capacity_bytes`` for a model of ``model_tokens``.

    vLLM V1 takes 1,024 requests and 8,192 tokens on devices of 70 GiB and more other than the A100, else 256
    and 2,048. V0 takes 256, and prefills whole prompts up to 32,768 tokens of model length, else 2,048 at a
    time. Transformers passes whole prompts, which is 0 here.
    """
    large = capacity_bytes >= LARGE_DEVICE_BYTES and not is_a100
    match rules.name:
        case EngineName.VLLM if is_vllm_v0(version):
            length = model_tokens or 0
            return EngineDefaults(256, max(length, 2048) if length <= _CHUNKED_ABOVE else 2048)
        case EngineName.VLLM:
            return EngineDefaults(1024, 8192) if large else EngineDefaults(256, 2048)
        case EngineName.TENSORRT_LLM:
            return EngineDefaults(2048, 8192)
        case EngineName.SGLANG:
            return EngineDefaults(None, 8192 if large else 2048)
        case _:
            batched = {EngineName.LLAMA_CPP: 512, EngineName.TRANSFORMERS: 0}
            return EngineDefaults(None, batched.get(rules.name, 8192) if rules.name else 8192)
