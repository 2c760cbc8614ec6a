"""Models as a serving engine lays them over devices that their heads or experts do not divide over."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final, NamedTuple

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Attention, LatentAttention, MixtureOfExperts, SimpleLayer
from service.planning.models.profile import ModelProfile, build_profile
from service.planning.parallelism import Parallelism

_RANKS_PER_DEVICE: Final = {"neuron-v2": 2, "neuron-v3": 4, "neuron-v4": 4}
"""Logical NeuronCores of a chip, by its generation: ranks of tensor parallelism that heads are padded for.

Pairs of cores are one by default from Trainium 2 on (AWS Neuron, Logical NeuronCore configuration). Engines
of other devices refuse ranks that do not divide the heads.
"""


class ModelPadding(NamedTuple):
    """Numbers that the heads and the experts of a padded model divide over."""

    head_ranks: int = 1
    """Ranks of tensor parallelism that heads are padded for; 1 where the engine does not pad them."""
    expert_devices: int = 1
    """Devices of one replica that hold different experts."""


def choose_padding(layout: Parallelism, generation: str | None) -> ModelPadding:
    """Returns the padding of a served model on devices of ``generation``."""
    ranks = _RANKS_PER_DEVICE.get(generation or "", 0) * layout.tensor
    holders = layout.tensor * layout.expert // (layout.expert_tensor or layout.tensor)
    return ModelPadding(max(1, ranks), holders)


def pad_profile(profile: ModelProfile, padding: ModelPadding) -> ModelProfile:
    """Returns the coefficients of the model with as many heads and experts as ``padding`` divides.

    Query heads and experts are rounded up to a multiple. Key-value heads of fewer than the ranks are stored
    once a rank, and as often as query heads where the ranks are no multiple of them, as NeuronX Distributed
    Inference does (``get_shardable_head_counts``). Experts beyond those of the model are copies of others
    (EPLB of DeepSeek, 2025), so a token still takes as many. Parameters are counted without padding; weights,
    caches and FLOPs with it. Returns ``profile`` itself where nothing is padded or no shape is known.
    """
    described = profile.described
    if described is None or (_is_divided(profile, padding) and not profile.is_padded):
        return profile
    padded = _pad_architecture(described, padding)
    return _build_padded_profile(padded)._replace(
        parameter_count=profile.parameter_count,
        active_parameter_count=profile.active_parameter_count,
        described=described,
        is_padded=padded != described,
    )


def _is_divided(profile: ModelProfile, padding: ModelPadding) -> bool:
    """Returns true if no head is padded and every layer's experts divide over the devices."""
    layers = (layer for block in profile.blocks for layer in block.block.layers)
    counts = (layer.expert_count for layer in layers if isinstance(layer, MixtureOfExperts))
    return padding.head_ranks == 1 and all(count % padding.expert_devices == 0 for count in counts)


# A question asks for one model on some layouts. More would keep models of callers in memory.
_build_padded_profile = lru_cache(maxsize=8)(build_profile)


def _pad_architecture(architecture: Architecture, padding: ModelPadding) -> Architecture:
    layers = (
        replace(layer, layers=tuple(_pad_layer(each, padding) for each in layer.layers))
        if isinstance(layer, LayerBlock)
        else _pad_layer(layer, padding)
        for layer in architecture.layers
    )
    return replace(architecture, layers=tuple(layers))


def _pad_layer(layer: SimpleLayer, padding: ModelPadding) -> SimpleLayer:
    match layer:
        case Attention():
            query = _round_up(layer.query_heads, padding.head_ranks)
            stored = _pad_key_value_heads(layer, query, padding.head_ranks)
            return replace(layer, query_heads=query, key_value_heads=stored)
        case LatentAttention():
            return replace(layer, query_heads=_round_up(layer.query_heads, padding.head_ranks))
        case MixtureOfExperts():
            return _copy_experts(layer, _round_up(layer.expert_count, padding.expert_devices))
        case _:
            return layer


@dataclass(frozen=True, slots=True, kw_only=True)
class _CopiedExperts(MixtureOfExperts):
    """Experts of which some are copies, which the router does not tell apart."""

    model_experts: int

    @property
    def routed_count(self) -> int:
        return self.model_experts


def _copy_experts(layer: MixtureOfExperts, count: int) -> MixtureOfExperts:
    if count == layer.expert_count:
        return layer
    known = {each.name: getattr(layer, each.name) for each in fields(layer)}
    return _CopiedExperts(**{**known, "expert_count": count}, model_experts=layer.expert_count)


def _pad_key_value_heads(layer: Attention, query_heads: int, ranks: int) -> int:
    stored = layer.key_value_heads
    if stored == layer.query_heads:
        return query_heads
    if stored % ranks == 0:
        return stored
    return ranks if ranks % stored == 0 else query_heads


def _round_up(number: int, divisor: int) -> int:
    return -(-number // divisor) * divisor
