"""Attention by heads over what a scorer picks, and over entries for several tokens."""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import DecoderFamily, Layers, build_attention
from service.formats.huggingface.mixers.recurrent import build_gated_delta
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.layers import Attention, CompressedAttention

_BLOCK_SCORER = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
}
"""Members of MiniMax-M3's ``sparse_attention_config`` that its flat fields have taken the place of."""


def build_block_scored_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """MiniMax-M3: attention by heads over the blocks of tokens that a scorer picks in its sparse layers."""
    (plain,) = build_attention(reader, family, "full")
    if kind != "sparse" or not isinstance(plain, Attention):
        return (plain,)
    stated = reader.read_value("sparse_attention_config")
    nested = stated if isinstance(stated, Mapping) else {}
    renamed = {name: nested[legacy] for name, legacy in _BLOCK_SCORER.items() if legacy in nested}
    scorer = ConfigReader({**reader.config, **renamed}, reader.defaults, reader.names, reader.defaulted)
    return (
        replace(
            plain,
            index_heads=scorer.read_size("index_n_heads"),
            index_head_size=scorer.read_size("index_head_dim"),
            index_tokens=scorer.read_size("index_block_size") * scorer.read_size("index_topk_blocks"),
        ),
    )


def build_averaging_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Qwen3.8-Flash-Next: linear layers, and attention by heads over pools of tokens that a scorer picks."""
    if kind.startswith("linear"):
        return build_gated_delta(reader, family, kind)
    (plain,) = build_attention(reader, family, "full")
    if reader.read_size("indexer_kv_heads") != 1:
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED", "/indexer_kv_heads", "only known where the scorer has one key"
        )
    tokens, pool = reader.read_size("indexer_budget"), reader.read_size("indexer_compress_ratio")
    if tokens % pool:
        raise build_invalid_error(
            "indexer_compress_ratio", "indexer_compress_ratio does not divide indexer_budget"
        )
    if not isinstance(plain, Attention):
        return (plain,)
    return (
        replace(
            plain,
            index_heads=reader.read_size("indexer_n_heads"),
            index_head_size=reader.read_size("indexer_head_dim"),
            index_tokens=tokens,
            index_pool=pool,
        ),
    )


def build_compressed_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Attention of DeepSeek-V4: a window, and entries for several tokens, or those that a scorer picks."""
    del family
    sparse = kind == "sparse"
    compressed = None if kind == "window" else patterns.read_compression(reader, kind)
    heads, groups = reader.read_size("num_attention_heads"), reader.read_size("o_groups")
    if heads % groups:
        raise build_invalid_error("o_groups", "o_groups does not divide the heads")
    return (
        CompressedAttention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=heads,
            query_rank=reader.read_size("q_lora_rank"),
            head_size=reader.read_size("head_dim"),
            window_tokens=reader.read_size("sliding_window"),
            output_groups=groups,
            output_rank=reader.read_size("o_lora_rank"),
            compression=compressed,
            overlapped=sparse,
            index_heads=reader.read_size("index_n_heads") if sparse else None,
            index_head_size=reader.read_size("index_head_dim") if sparse else None,
            index_entries=reader.read_size("index_topk") if sparse else None,
        ),
    )
