"""Latent attention, and scorers that pick the tokens or pools of tokens that it reads."""

from dataclasses import replace

from service.formats.huggingface.decoders import DecoderFamily, Layers, is_enabled
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.layers import LatentAttention


def build_latent_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Multi-head latent attention, with a gate if the family has one."""
    del kind
    return (_build_latent(reader, family, reader.read_size("qk_rope_head_dim")),)


def _build_latent(reader: ConfigReader, family: DecoderFamily, rotary: int) -> LatentAttention:
    return LatentAttention(
        hidden_size=reader.read_size("hidden_size"),
        query_heads=reader.read_size("num_attention_heads"),
        query_rank=reader.read_optional_size("q_lora_rank"),
        key_value_rank=reader.read_size("kv_lora_rank"),
        rotary_head_size=rotary,
        plain_head_size=reader.read_size("qk_nope_head_dim"),
        value_head_size=reader.read_size("v_head_dim"),
        gate=family.heads.gate if is_enabled(reader, family.heads.gated) else "none",
        sinks=family.heads.sinks,
        bias=is_enabled(reader, family.heads.bias),
    )


def build_indexed_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Latent attention over the tokens that a small scorer picks, its own or that of an earlier layer."""
    plain = _build_latent(reader, family, reader.read_size("qk_rope_head_dim"))
    return (_add_scorer(reader, plain, kind),)


def _add_scorer(reader: ConfigReader, plain: LatentAttention, kind: str) -> LatentAttention:
    spread = reader.read_value("index_topk_freq") not in (None, 1) or reader.has_value("index_topk_pattern")
    if spread and not reader.has_value("indexer_types"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED",
            "/index_topk_freq",
            "scorers are shared by layers that indexer_types does not name",
        )
    if plain.query_rank is None:
        raise build_invalid_error("q_lora_rank", "the scorer of sparse attention reads the compressed query")
    return replace(
        plain,
        index_heads=None if kind == "shared" else reader.read_size("index_n_heads"),
        index_head_size=None if kind == "shared" else reader.read_size("index_head_dim"),
        index_tokens=reader.read_size("index_topk"),
    )


def build_pooled_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """GLM-5.3-Flash: latent attention without positions, over pools of tokens that a scorer picks."""
    if reader.read_count("qk_rope_head_dim"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED", "/qk_rope_head_dim", "only known where no part of a head rotates"
        )
    pool = reader.read_size("index_kpool")
    if reader.read_size("index_topk") % pool:
        raise build_invalid_error("index_kpool", "index_kpool does not divide index_topk")
    scored = _add_scorer(reader, _build_latent(reader, family, 0), kind)
    return (replace(scored, index_pool=None if kind == "shared" else pool),)
