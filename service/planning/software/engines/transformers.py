"""Transformers: it allocates on demand."""

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.rules import EngineRules, MemoryReservation
from service.planning.software.engines.versions import EngineVersion, parse_version

_GPTQMODEL: EngineVersion = (4, 48, 0)
"""Version from which GPTQModel replaces AutoGPTQ and its ExLlama kernels."""
_LAST_LOGITS: EngineVersion = (4, 45, 0)
"""Version from which only the last token's logits are computed, and layers share rotary tables."""
_HIT_EXPERTS: EngineVersion = (4, 53, 0)
"""Version from which blocks with experts pass over those that a token has chosen, and not over all."""


def build_transformers_rules(version: str | None) -> EngineRules:
    """Returns the rules of Transformers."""
    number = parse_version(version)
    return EngineRules(
        name=EngineName.TRANSFORMERS,
        reservation=MemoryReservation.NOTHING,
        paged=False,
        memory_fraction=1.0,
        block_tokens=1,
        # At 16 bit and again in FP32.
        logit_bytes=0 if number >= _LAST_LOGITS else 6,
        wide_states=True,
        whole_convolutions=True,
        loads_tied_copy=True,
        keeps_tied_copy=True,
        loops_experts=number < _HIT_EXPERTS,
        unpacks_gptq=number < _GPTQMODEL,
        rotary_tables=number < _LAST_LOGITS,
        native_attention=False,
        mixes_prefill=False,
        chunks_prefill=False,
        static_batches=True,
    )
