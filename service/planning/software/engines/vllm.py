"""vLLM: it measures one pass at its largest batch, and the cache gets what that leaves of its share."""

import re

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.rules import EngineRules, WindowSlack
from service.planning.software.engines.versions import EngineVersion, parse_version
from service.planning.units import GIBIBYTE_BYTES

_HYBRID_CACHE: EngineVersion = (0, 10, 0)
_GRAPHS_CHARGED: EngineVersion = (0, 21, 0)
_SHARE = 0.92
"""Share from the version that charges graphs to it (CacheConfig.gpu_memory_utilization; 0.9 before)."""
_FREE_MEMORY: EngineVersion = (0, 2, 5)
"""Version from which vLLM asks the driver for free memory and not PyTorch for its own (pull request 2031)."""
_REDUCED_FREED: EngineVersion = (0, 2, 6)
"""Version from which all-reduces release their tensors at once (pull request 2151)."""
_OWN_CONTEXT: EngineVersion = (0, 3, 0)
_ALL_CONTEXTS: tuple[EngineVersion, EngineVersion] = ((0, 6, 5), (0, 7, 0))
"""Versions that count all memory in use as outside PyTorch, contexts too (pull requests 10511, 11809)."""
_CHUNKED: EngineVersion = (0, 5, 4)
"""Version from which V0 passes prompts of long models in chunks (pull request 6666)."""
_LARGE_CHUNKS: EngineVersion = (0, 6, 5)
_SMALL_BATCHES = ("a100",)
"""Devices that vLLM excepts by name from those of ``LARGE_DEVICE_BYTES`` (``vllm/engine/arg_utils.py``)."""
_SMALL_DEVICES: EngineVersion = (0, 8, 3)
"""Version from which V1 takes fewer requests on small devices; before, warming up 1,024 ran out of memory."""
_FLASH_3: EngineVersion = (0, 7, 0)
"""Version from which vLLM takes FlashAttention-3 on Hopper (pull request 12093)."""
LARGE_DEVICE_BYTES = 70 * GIBIBYTE_BYTES
"""Memory from which vLLM counts a device as large."""
_CHUNKED_ABOVE = 32_768
_LEAST_BATCH = 2048


def is_vllm_v0(version: str | None) -> bool:
    """Returns true for the first engine of vLLM, which was the default before 0.8."""
    if version and re.search(r"\bV[01]\b", version, re.IGNORECASE):
        return re.search(r"\bV0\b", version, re.IGNORECASE) is not None
    return parse_version(version) < (0, 8, 0)


def build_vllm_rules(version: str | None) -> EngineRules:
    """Returns the rules of vLLM."""
    number = parse_version(version)
    kept = number >= _HYBRID_CACHE
    after_load = _FREE_MEMORY <= number < _OWN_CONTEXT
    first, last = _ALL_CONTEXTS
    return EngineRules(
        name=EngineName.VLLM,
        windows_kept=kept,
        window_slack=WindowSlack.ITERATION if kept else WindowSlack.NONE,
        reports_full_length=True,
        samples_at_start=True,
        graphs_charged=number >= _GRAPHS_CHARGED,
        context_charged=after_load or first <= number < last,
        libraries_charged=number >= _FREE_MEMORY,
        memory_fraction=_SHARE if number >= _GRAPHS_CHARGED else 0.9,
        keeps_reduced=_FREE_MEMORY <= number < _REDUCED_FREED,
        padded_mxfp4=True,
        native_attention=number >= _FLASH_3,
        small_batches_on=_SMALL_BATCHES,
        mixes_prefill=not is_vllm_v0(version),
        chunks_prefill=not is_vllm_v0(version),
    )


def resolve_vllm_defaults(version: str | None, *, large: bool, model_tokens: int) -> tuple[int, int]:
    """Returns the maximum requests, and the tokens of an iteration."""
    number = parse_version(version)
    if not is_vllm_v0(version):
        tokens = 8192 if large else 2048
        return (1024 if large or number < _SMALL_DEVICES else 256), tokens
    if model_tokens > _CHUNKED_ABOVE and number >= _CHUNKED:
        return 256, 2048 if number >= _LARGE_CHUNKS else 512
    return 256, max(model_tokens, _LEAST_BATCH)
