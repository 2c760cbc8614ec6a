"""llama.cpp: it allocates the whole context and reserves no share."""

import re

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.rules import EngineRules, MemoryReservation, WindowSlack

_DEVICES = {
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
    for start, kind in _DEVICES.items():
        if any(name.startswith(f"{start}-") for name in names):
            return kind
    return None


_BUILD = re.compile(r"\bb?(\d{3,5})\b")
_DATE = re.compile(r"\b(20\d\d)-(\d\d)")
_FLASH_BUILD = 6325
_FLASH_DATE = (2025, 9)


def _has_stored_scores(version: str | None) -> bool:
    """Returns true if llama.cpp stores attention scores by default: before build 6325 of August 2025."""
    dated = _DATE.search(version or "")
    if dated:
        return (int(dated[1]), int(dated[2])) < _FLASH_DATE
    built = _BUILD.search(version or "")
    return built is not None and int(built[1]) < _FLASH_BUILD


def build_llama_cpp_rules(version: str | None) -> EngineRules:
    """Returns the rules of llama.cpp."""
    return EngineRules(
        name=EngineName.LLAMA_CPP,
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
