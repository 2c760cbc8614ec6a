"""SGLang: its static share holds weights and cache, and all other memory finds room beside it."""

from typing import NamedTuple

from service.planning.software.engines.names import EngineName
from service.planning.software.engines.rules import EngineDefaults, EngineRules, MemoryReservation
from service.planning.software.engines.versions import EngineVersion, parse_version
from service.planning.units import MEBIBYTE_BYTES

_FLASH_3: EngineVersion = (0, 4, 6)
"""Version from which SGLang takes FlashAttention-3 on Hopper; before, FlashInfer (issue 5064, April 2025)."""
_BY_DEVICE: EngineVersion = (0, 5, 0)


class _DeviceTier(NamedTuple):
    """Settings of SGLang on devices of less than ``below_mib``.

    Tokens, and graphs of few and many devices.
    """

    below_mib: float
    chunk: int
    graphs: int
    graphs_from_four: int


_TIERS = (
    _DeviceTier(20 * 1024, 2048, 8, 8),
    _DeviceTier(35 * 1024, 2048, 24, 80),
    _DeviceTier(60 * 1024, 4096, 32, 160),
    _DeviceTier(160 * 1024, 8192, 256, 512),
    _DeviceTier(float("inf"), 16_384, 512, 512),
)
_OLDER_GRAPHS = 160
_OLDER_SHARES = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))
"""Share by the least devices of a tensor-parallel group."""
_FOUR = 4


def build_sglang_rules(version: str | None) -> EngineRules:
    """Returns the rules of SGLang."""
    number = parse_version(version)
    return EngineRules(
        name=EngineName.SGLANG,
        reservation=MemoryReservation.STATIC,
        memory_fraction=0.88,
        block_tokens=1,
        wide_states=True,
        native_attention=number >= _FLASH_3,
        mixes_prefill=False,
        ranks_share_tokens=True,
    )


def resolve_sglang_defaults(version: str | None, *, capacity_bytes: float, devices: int) -> EngineDefaults:
    """Returns the share that activations and graphs leave, as SGLang estimates them.

    From 0.5 in MiB: 512 + 1.5 for each token of a chunk + 2 for each request of the largest graph + 128 for
    each device of a group, at least 10,240 from 60 GiB; before, a share by the devices of a group.
    """
    mib = capacity_bytes / MEBIBYTE_BYTES
    tier = next(tier for tier in _TIERS if mib < tier.below_mib)
    if parse_version(version) < _BY_DEVICE:
        share = next(share for least, share in _OLDER_SHARES if devices >= least)
        return EngineDefaults(None, tier.chunk, share, min(tier.graphs_from_four, _OLDER_GRAPHS))
    graphs = tier.graphs if devices < _FOUR else tier.graphs_from_four
    if not capacity_bytes:
        return EngineDefaults(None, 4096, 0.88, 160)
    kept = 512 + 1.5 * tier.chunk + 2 * graphs + 128 * devices
    if mib > 60 * 1024:
        kept = max(kept, 10 * 1024)
    return EngineDefaults(None, tier.chunk, round(max(mib - kept, 0.0) / mib, 3), graphs)
