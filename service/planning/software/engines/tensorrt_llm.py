"""TensorRT-LLM: the cache gets a share of the memory that is free once the engine is loaded."""

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.rules import EngineRules, MemoryReservation
from service.planning.software.engines.versions import EngineVersion, parse_version

_SMALL_BLOCKS: EngineVersion = (0, 18, 0)


def build_tensorrt_llm_rules(version: str | None) -> EngineRules:
    """Returns the rules of TensorRT-LLM."""
    number = parse_version(version)
    blocks = 32 if number >= _SMALL_BLOCKS else 64
    return EngineRules(
        name=EngineName.TENSORRT_LLM,
        reservation=MemoryReservation.FREE,
        block_tokens=blocks,
        chunks_prefill=False,
        admits_whole=True,
    )
