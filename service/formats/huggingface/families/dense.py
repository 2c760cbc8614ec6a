"""Decoders with one feed-forward a layer, as their differences from Llama."""

from collections.abc import Mapping

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import AttentionOptions, DecoderFamily, read_key_value_heads
from service.formats.huggingface.families.options import (
    AROUND,
    BEHIND,
    NORMED,
    NORMED_PLAIN,
    PARALLEL,
    PLAIN,
    WHOLE,
)
from service.formats.huggingface.mixers import heads, latent
from service.formats.huggingface.patterns import build_default_kinds, build_periodic_kinds
from service.formats.huggingface.reader import ConfigReader


def _read_quadruple_inner(reader: ConfigReader) -> int:
    return reader.read_optional_size("intermediate_size") or 4 * reader.read_size("hidden_size")


def _read_multiple_inner(reader: ConfigReader) -> int:
    return reader.read_size("intermediate_multiple_size") * reader.read_size("hidden_size")


def _select_falcon_block(reader: ConfigReader) -> str:
    norms = reader.read_optional_size("num_ln_in_parallel_attn")
    if norms is None:
        norms = 2 if reader.read_flag("new_decoder_architecture") else 1
    return "norm mixer norm ffn" if norms > 1 or not reader.read_flag("parallel_attn") else PARALLEL


def _read_falcon_heads(reader: ConfigReader, heads: int) -> int:
    if reader.read_flag("new_decoder_architecture"):
        return read_key_value_heads(reader, heads)
    return 1 if reader.read_flag("multi_query") else heads


def _read_multi_query_heads(reader: ConfigReader, heads: int) -> int:
    return 1 if reader.read_flag("multi_query") else heads


def _get_all_heads(reader: ConfigReader, heads: int) -> int:
    del reader
    return heads


def _select_stablelm_block(reader: ConfigReader) -> str:
    return PARALLEL if reader.read_flag("use_parallel_residual") else "norm mixer norm ffn"


def _select_post_norm_block(reader: ConfigReader) -> str:
    return AROUND if reader.read_flag("use_post_norm") else "norm mixer norm ffn"


_QUERY_BIASED = AttentionOptions(output_bias=False)
_GEMMA_2 = DecoderFamily(kinds=build_periodic_kinds("sliding_window_pattern", 2), block=AROUND)
_GPT_2 = DecoderFamily(
    heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
    norm="layer",
    gated=False,
    bias=True,
    inner=_read_quadruple_inner,
    positions=True,
    drops=True,
)
_GPT_J = DecoderFamily(
    heads=AttentionOptions(bias=False, key_value_heads=_get_all_heads),
    block=PARALLEL,
    norm="layer",
    gated=False,
    bias=True,
    inner=_read_quadruple_inner,
    head_bias=True,
    drops=True,
)


DENSE: Mapping[str, DecoderFamily] = {
    "llama": DecoderFamily(),
    "internlm3": DecoderFamily(),
    "iquestcoder": DecoderFamily(),
    "granite": DecoderFamily(),
    "granite_swa": DecoderFamily(heads=AttentionOptions(sinks=True), kinds=build_periodic_kinds("", 4)),
    "helium": DecoderFamily(heads=_QUERY_BIASED),
    "smollm3": DecoderFamily(kinds=build_default_kinds("full")),
    "seed_oss": DecoderFamily(heads=AttentionOptions(output_bias="attention_out_bias")),
    "cwm": DecoderFamily(heads=PLAIN, kinds=build_default_kinds("full")),
    "ernie4_5": DecoderFamily(heads=AttentionOptions(bias="use_bias"), bias="use_bias"),
    "mistral": DecoderFamily(heads=PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "ministral": DecoderFamily(heads=PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "ministral3": DecoderFamily(heads=PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "phi3": DecoderFamily(heads=PLAIN, kinds=patterns.list_window_kinds, bias=False, drops=True),
    "qwen2": DecoderFamily(
        heads=AttentionOptions(bias=True, output_bias=False),
        kinds=patterns.list_late_window_kinds,
        bias=False,
    ),
    "qwen3": DecoderFamily(heads=NORMED, kinds=patterns.list_late_window_kinds, bias=False),
    "glm": DecoderFamily(heads=_QUERY_BIASED, bias=False),
    "glm4": DecoderFamily(heads=_QUERY_BIASED, block=AROUND, bias=False),
    "gemma": DecoderFamily(bias=False),
    "gemma2": _GEMMA_2,
    "gemma3_text": DecoderFamily(
        heads=NORMED, kinds=build_periodic_kinds("sliding_window_pattern", 6), block=AROUND
    ),
    "vaultgemma": DecoderFamily(kinds=build_periodic_kinds("", 2), bias=False),
    "olmo": DecoderFamily(norm_learned=False, norm="layer", bias=False),
    "olmo2": DecoderFamily(heads=WHOLE, block=BEHIND, bias=False),
    "olmo3": DecoderFamily(heads=WHOLE, kinds=build_periodic_kinds("", 4), block=BEHIND, bias=False),
    "exaone4": DecoderFamily(
        heads=NORMED_PLAIN, kinds=build_periodic_kinds("sliding_window_pattern", 4), block=BEHIND, bias=False
    ),
    "hunyuan_v1_dense": DecoderFamily(heads=NORMED, bias=False),
    "hyperclovax": DecoderFamily(block=_select_post_norm_block),
    "bitnet": DecoderFamily(heads=AttentionOptions(output_norm=True), inner_norm=True, bias=False),
    "apertus": DecoderFamily(heads=NORMED, gated=False, activation_parameters=2, bias=False),
    "arcee": DecoderFamily(gated=False),
    "jais2": DecoderFamily(norm="layer", gated=False),
    "nemotron": DecoderFamily(norm="layer", gated=False),
    "nanochat": DecoderFamily(norm_learned=False, gated=False, bias=False),
    "starcoder2": DecoderFamily(
        heads=AttentionOptions(bias="use_bias"),
        kinds=patterns.list_window_kinds,
        norm="layer",
        gated=False,
        bias="use_bias",
        drops=True,
    ),
    "stablelm": DecoderFamily(
        heads=AttentionOptions(
            bias="use_qkv_bias", output_bias=False, norm="projection", normed="qk_layernorm"
        ),
        block=_select_stablelm_block,
        norm="layer",
        bias=False,
        drops=True,
    ),
    "cohere": DecoderFamily(
        heads=AttentionOptions(norm="projection", normed="use_qk_norm"), block=PARALLEL, bias=False
    ),
    "cohere2": DecoderFamily(
        kinds=build_periodic_kinds("sliding_window_pattern", 4), block=PARALLEL, bias=False
    ),
    "phi": DecoderFamily(
        heads=AttentionOptions(bias=True, norm="head", normed="qk_layernorm", norm_shift=True),
        block=PARALLEL,
        norm="layer",
        gated=False,
        bias=True,
        head_bias=True,
        drops=True,
    ),
    "persimmon": DecoderFamily(
        heads=AttentionOptions(
            bias=True, norm="head", normed="qk_layernorm", norm_shift=True, key_value_heads=_get_all_heads
        ),
        norm="layer",
        gated=False,
        bias=True,
        drops=True,
    ),
    "gptj": _GPT_J,
    "codegen": _GPT_J,
    "gpt_neox": DecoderFamily(
        heads=AttentionOptions(bias="attention_bias", key_value_heads=_get_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        drops=True,
    ),
    "gpt2": _GPT_2,
    "gpt-sw3": _GPT_2,
    "gpt_bigcode": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_read_multi_query_heads),
        norm="layer",
        gated=False,
        bias=True,
        inner=_read_quadruple_inner,
        positions=True,
        drops=True,
    ),
    "gpt_neo": DecoderFamily(
        heads=AttentionOptions(bias=False, output_bias=True, key_value_heads=_get_all_heads),
        kinds=patterns.list_gpt_neo_kinds,
        norm="layer",
        gated=False,
        bias=True,
        inner=_read_quadruple_inner,
        positions=True,
        drops=True,
    ),
    "openai-gpt": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
        block=BEHIND,
        norm="layer",
        final_norm=False,
        gated=False,
        bias=True,
        inner=_read_quadruple_inner,
        positions=True,
        drops=True,
    ),
    "ctrl": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        head_bias=True,
        drops=True,
    ),
    "opt": DecoderFamily(
        heads=AttentionOptions(bias="enable_bias", key_value_heads=_get_all_heads),
        norm="layer",
        norm_learned="layer_norm_elementwise_affine",
        gated=False,
        bias="enable_bias",
        positions=True,
        position_offset=2,
        drops=True,
    ),
    "xglm": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        drops=True,
    ),
    "biogpt": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        positions=True,
        position_offset=2,
        drops=True,
    ),
    "bloom": DecoderFamily(
        heads=AttentionOptions(bias=True, key_value_heads=_get_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        inner=lambda reader: 4 * reader.read_size("hidden_size"),
        embedding_norm="layer",
        drops=True,
    ),
    "falcon": DecoderFamily(
        heads=AttentionOptions(bias="bias", key_value_heads=_read_falcon_heads),
        block=_select_falcon_block,
        norm="layer",
        gated=False,
        bias="bias",
        inner=_read_quadruple_inner,
        drops=True,
    ),
    # A layer norm without shift has the parameters of an rms norm.
    "mpt": DecoderFamily(
        heads=AttentionOptions(bias=False, key_value_heads=_get_all_heads),
        gated=False,
        bias=False,
        inner=lambda reader: 4 * reader.read_size("hidden_size"),
        drops=True,
    ),
    "gpt_neox_japanese": DecoderFamily(
        heads=AttentionOptions(bias=False, key_value_heads=_get_all_heads),
        attention=heads.build_last_bias_attention,
        kinds=patterns.list_distinct_last_kinds,
        norm="layer",
        gated=False,
        bias=False,
        inner=_read_multiple_inner,
        drops=True,
    ),
    "youtu": DecoderFamily(attention=latent.build_latent_attention, bias=False),
    "minicpm3": DecoderFamily(attention=latent.build_latent_attention),
}
"""Families of this kind, by their ``model_type``."""
