"""Generations of versions with equal serving speed."""

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.versions import NEWEST, EngineVersion, parse_version
from service.planning.software.engines.vllm import is_vllm_v0

_VLLM_ASYNCHRONOUS: EngineVersion = (0, 13, 0)
_SGLANG_LATER: EngineVersion = (0, 5, 0)
_TENSORRT_LLM_LATER: EngineVersion = (1, 1, 0)


def resolve_generation(name: EngineName | None, version: str | None) -> str | None:
    """Returns the generation of versions with equal serving speed; None where none is distinguished."""
    number = parse_version(version)
    if version is None or number == NEWEST:
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
