"""Engines by name."""

from enum import StrEnum
from functools import lru_cache


class EngineName(StrEnum):
    """Engines whose rules are known; any other is estimated by plain sums."""

    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"
    TRANSFORMERS = "transformers"


MOST_TEXTS = 256
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


@lru_cache(maxsize=MOST_TEXTS)
def resolve_engine_name(text: str) -> EngineName | None:
    """Returns the engine that ``text`` names, in any case; None for an unknown one."""
    word = text.strip().lower()
    if word in _ALIASES:
        return _ALIASES[word]
    return next((name for name in EngineName if name.value == word), None)
