"""Experts and feed-forwards whose fields or places are a family's own."""

from collections.abc import Mapping

from service.formats.huggingface.decoders import (
    DecoderFamily,
    ExpertLayout,
    Layers,
    build_experts,
    read_expert_counts,
    read_key_value_heads,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.errors import PlanningError
from service.planning.models.layers import FeedForward, MixtureOfExperts


def _read_nested(reader: ConfigReader, name: str) -> ConfigReader:
    value = reader.config.get(name)
    if not isinstance(value, Mapping):
        raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", f"{name} is missing")
    return ConfigReader(value, {})


def read_dbrx_heads(reader: ConfigReader, heads: int) -> int:
    """DBRX nests the key-value heads."""
    return read_key_value_heads(_read_nested(reader, "attn_config"), heads, "kv_n_heads")


def build_dbrx_experts(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """DBRX nests the shapes of its experts."""
    del family, kind
    nested = _read_nested(reader, "ffn_config")
    count, taken = read_expert_counts(nested, "moe_num_experts", "moe_top_k")
    return (
        MixtureOfExperts(
            hidden_size=reader.read_size("hidden_size"),
            expert_count=count,
            experts_per_token=taken,
            expert_inner_size=nested.read_size("ffn_hidden_size"),
        ),
    )


def build_granite_experts(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Granite: an expert of its own width that every token takes beside the routed ones, or alone."""
    del kind
    hidden = reader.read_size("hidden_size")
    shared = reader.read_count("shared_intermediate_size")
    del family
    if reader.read_count("num_experts") == 0:
        return (FeedForward(hidden_size=hidden, inner_size=shared, gated=True),)
    count, taken = read_expert_counts(reader)
    return (
        MixtureOfExperts(
            hidden_size=hidden,
            expert_count=count,
            experts_per_token=taken,
            expert_inner_size=reader.read_size("intermediate_size"),
            shared_inner_size=shared or None,
        ),
    )


def build_square_feed_forward(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Arctic: a feed-forward as wide inside as outside."""
    del family, kind
    hidden = reader.read_size("hidden_size")
    return (FeedForward(hidden_size=hidden, inner_size=hidden, gated=True),)


def build_grok_experts(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Grok: each token of Grok-2 takes a feed-forward beside its experts, which have their own width."""
    del family, kind
    inner = "moe_intermediate_size" if reader.has_value("moe_intermediate_size") else "intermediate_size"
    shared = "intermediate_size" if reader.read_flag("residual_moe") else None
    return build_experts(reader, ExpertLayout(inner=inner, shared_size=shared))
