"""Decoder families as data: their differences from Llama.

Names of classes, other spellings and defaults come from ``registry.json``, which an oracle script takes from
the configuration classes of transformers 5.23.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Any

from service.formats.huggingface import builders, longcat, mixers, ngrams, patterns, published, step
from service.formats.huggingface.decoders import (
    SPELLINGS,
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    build_architecture,
    build_projected,
    read_key_value_heads,
)
from service.formats.huggingface.patterns import (
    build_default_kinds,
    build_periodic_kinds,
    build_sparse_after_dense,
)
from service.formats.huggingface.reader import (
    ConfigReader,
    ModelFamily,
)
from service.planning.models.architecture import Architecture

_REGISTRY: Mapping[str, dict[str, Any]] = json.loads(
    (files(__package__) / "registry.json").read_text(encoding="utf-8")
)

PARALLEL = "norm mixer ffn"
AROUND = "norm mixer norm norm ffn norm"
BEHIND = "mixer norm ffn norm"


def _read_quadruple_inner(reader: ConfigReader) -> int:
    return reader.read_optional_size("intermediate_size") or 4 * reader.read_size("hidden_size")


def _read_half_inner(reader: ConfigReader) -> int:
    return reader.read_size("intermediate_size") // 2


def _read_multiple_inner(reader: ConfigReader) -> int:
    return reader.read_size("intermediate_multiple_size") * reader.read_size("hidden_size")


def _compute_adjusted_inner(reader: ConfigReader) -> int:
    """LFM2: two thirds, times a factor, rounded up to a multiple."""
    inner = (
        reader.read_size("block_ff_dim")
        if reader.has_value("block_ff_dim")
        else reader.read_size("intermediate_size")
    )
    if not reader.read_flag("block_auto_adjust_ff_dim"):
        return inner
    inner = int(2 * inner / 3)
    if "block_ffn_dim_multiplier" in reader.config and not reader.has_value("block_ffn_dim_multiplier"):
        return inner
    factor = (
        reader.read_factor("block_ffn_dim_multiplier")
        if reader.has_value("block_ffn_dim_multiplier")
        else 1.0
    )
    multiple = reader.read_size("block_multiple_of")
    return multiple * -(-int(factor * inner) // multiple)


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


def _select_sandwich_block(reader: ConfigReader) -> str:
    return AROUND if reader.read_flag("use_sandwich_norm") else "norm mixer norm ffn"


def _select_kimi_block(reader: ConfigReader) -> str:
    residual = "residual " if reader.read_optional_size("attn_res_block_size") else ""
    latent = "latent_norm " if reader.read_flag("latent_moe_use_norm") else ""
    return f"{residual}norm mixer {residual}norm {latent}ffn"


_NORMED = AttentionOptions(norm="head")
_NORMED_PLAIN = AttentionOptions(bias=False, norm="head")
_WHOLE = AttentionOptions(norm="projection")
_ALL_BIASED = AttentionOptions(bias=True)
_QUERY_BIASED = AttentionOptions(output_bias=False)
_PLAIN = AttentionOptions(bias=False)
_SHARED = ExpertLayout(
    layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="n_shared_experts"
)
_DEEPSEEK = DecoderFamily(attention=mixers.build_latent_attention, experts=_SHARED, bias=False)
_SPARSE = DecoderFamily(
    attention=mixers.build_indexed_attention,
    kinds=patterns.list_scorer_kinds,
    experts=_SHARED,
    bias=False,
)
_GEMMA_2 = DecoderFamily(kinds=build_periodic_kinds("sliding_window_pattern", 2), block=AROUND)
_QWEN_NEXT = AttentionOptions(norm="head", gate="element", gate_bias="attention_bias")
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

DECODERS: Mapping[str, DecoderFamily] = {
    "llama": DecoderFamily(),
    "internlm3": DecoderFamily(),
    "iquestcoder": DecoderFamily(),
    "granite": DecoderFamily(),
    "granite_swa": DecoderFamily(heads=AttentionOptions(sinks=True), kinds=build_periodic_kinds("", 4)),
    "helium": DecoderFamily(heads=_QUERY_BIASED),
    "smollm3": DecoderFamily(kinds=build_default_kinds("full")),
    "seed_oss": DecoderFamily(heads=AttentionOptions(output_bias="attention_out_bias")),
    "cwm": DecoderFamily(heads=_PLAIN, kinds=build_default_kinds("full")),
    "ernie4_5": DecoderFamily(heads=AttentionOptions(bias="use_bias"), bias="use_bias"),
    "mistral": DecoderFamily(heads=_PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "ministral": DecoderFamily(heads=_PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "ministral3": DecoderFamily(heads=_PLAIN, kinds=patterns.list_window_kinds, bias=False),
    "phi3": DecoderFamily(heads=_PLAIN, kinds=patterns.list_window_kinds, bias=False, drops=True),
    "qwen2": DecoderFamily(
        heads=AttentionOptions(bias=True, output_bias=False),
        kinds=patterns.list_late_window_kinds,
        bias=False,
    ),
    "qwen3": DecoderFamily(heads=_NORMED, kinds=patterns.list_late_window_kinds, bias=False),
    "glm": DecoderFamily(heads=_QUERY_BIASED, bias=False),
    "glm4": DecoderFamily(heads=_QUERY_BIASED, block=AROUND, bias=False),
    "gemma": DecoderFamily(bias=False),
    "gemma2": _GEMMA_2,
    "gemma3_text": DecoderFamily(
        heads=_NORMED, kinds=build_periodic_kinds("sliding_window_pattern", 6), block=AROUND
    ),
    "vaultgemma": DecoderFamily(kinds=build_periodic_kinds("", 2), bias=False),
    "olmo": DecoderFamily(norm_learned=False, norm="layer", bias=False),
    "olmo2": DecoderFamily(heads=_WHOLE, block=BEHIND, bias=False),
    "olmo3": DecoderFamily(heads=_WHOLE, kinds=build_periodic_kinds("", 4), block=BEHIND, bias=False),
    "exaone4": DecoderFamily(
        heads=_NORMED_PLAIN, kinds=build_periodic_kinds("sliding_window_pattern", 4), block=BEHIND, bias=False
    ),
    "hunyuan_v1_dense": DecoderFamily(heads=_NORMED, bias=False),
    "hyperclovax": DecoderFamily(block=_select_post_norm_block),
    "bitnet": DecoderFamily(heads=AttentionOptions(output_norm=True), inner_norm=True, bias=False),
    "apertus": DecoderFamily(heads=_NORMED, gated=False, activation_parameters=2, bias=False),
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
    "mixtral": DecoderFamily(
        heads=_PLAIN, kinds=patterns.list_window_kinds, experts=ExpertLayout(inner="intermediate_size")
    ),
    "qwen2_moe": DecoderFamily(
        heads=AttentionOptions(bias="qkv_bias", output_bias=False),
        kinds=patterns.list_late_window_kinds,
        bias=False,
        experts=ExpertLayout(
            layers=patterns.mark_stepped_sparse,
            shared_size="shared_expert_intermediate_size",
            shared_gate=True,
        ),
    ),
    "qwen3_moe": DecoderFamily(
        heads=_NORMED,
        kinds=patterns.list_late_window_kinds,
        bias=False,
        experts=ExpertLayout(layers=patterns.mark_stepped_sparse),
    ),
    "qwen3_next": DecoderFamily(
        heads=_QWEN_NEXT,
        linear=mixers.build_gated_delta,
        kinds=build_periodic_kinds("full_attention_interval", 4, "linear"),
        bias=False,
        experts=ExpertLayout(
            layers=patterns.mark_stepped_sparse,
            shared_size="shared_expert_intermediate_size",
            shared_gate=True,
        ),
    ),
    "qwen3_5_text": DecoderFamily(
        heads=_QWEN_NEXT,
        linear=mixers.build_gated_delta,
        kinds=build_periodic_kinds("full_attention_interval", 4, "linear"),
        bias=False,
    ),
    "qwen3_5_moe_text": DecoderFamily(
        heads=_QWEN_NEXT,
        linear=mixers.build_gated_delta,
        kinds=build_periodic_kinds("full_attention_interval", 4, "linear"),
        experts=ExpertLayout(shared_size="shared_expert_intermediate_size", shared_gate=True),
    ),
    "qwen4_exp_text": DecoderFamily(
        heads=_QWEN_NEXT,
        kinds=ngrams.list_ngram_kinds,
        block="hyper mixer hyper ffn",
        blocks={"linear ngram": "ngram hyper mixer hyper ffn"},
        final_norm=False,
        experts=ExpertLayout(shared_size="shared_expert_intermediate_size", shared_gate=True),
        parts={
            "hyper": ngrams.build_gated_residual,
            "mixer": mixers.build_averaging_attention,
            "ngram": ngrams.build_ngram_injection,
        },
    ),
    "olmoe": DecoderFamily(heads=_WHOLE, experts=ExpertLayout(inner="intermediate_size")),
    "flex_olmo": DecoderFamily(heads=_WHOLE, block=BEHIND, experts=ExpertLayout(inner="intermediate_size")),
    "olmo_hybrid": DecoderFamily(
        heads=_WHOLE,
        linear=mixers.build_olmo_delta,
        kinds=patterns.list_olmo_kinds,
        blocks={"full": BEHIND},
        bias=False,
    ),
    "phimoe": DecoderFamily(
        norm="layer",
        kinds=patterns.list_window_kinds,
        experts=ExpertLayout(inner="intermediate_size"),
        head_bias="lm_head_bias",
    ),
    "gpt_oss": DecoderFamily(
        heads=AttentionOptions(sinks=True),
        kinds=build_periodic_kinds("", 2),
        experts=ExpertLayout(inner="intermediate_size", bias=True, router_bias=True),
    ),
    "granitemoe": DecoderFamily(experts=ExpertLayout(inner="intermediate_size")),
    "granitemoeshared": DecoderFamily(parts={"ffn": mixers.build_granite_experts}),
    "granitemoe_swa": DecoderFamily(
        heads=AttentionOptions(sinks=True),
        kinds=build_periodic_kinds("", 4),
        parts={"ffn": mixers.build_granite_experts},
    ),
    "granitemoehybrid": DecoderFamily(
        linear=mixers.build_hybrid_mamba_2,
        kinds=build_default_kinds("linear"),
        parts={"ffn": mixers.build_granite_experts},
    ),
    "ernie4_5_moe": DecoderFamily(
        heads=_PLAIN,
        bias=False,
        experts=ExpertLayout(
            layers=patterns.mark_interval_sparse, router_bias=True, shared_count="moe_num_shared_experts"
        ),
        refused=("use_bias",),
    ),
    "glm4_moe": DecoderFamily(
        heads=AttentionOptions(output_bias=False, norm="head", normed="use_qk_norm"),
        bias=False,
        experts=_SHARED,
    ),
    "solar_open": DecoderFamily(
        heads=AttentionOptions(output_bias=False),
        bias=False,
        experts=ExpertLayout(shared_count="n_shared_experts"),
    ),
    "dots1": DecoderFamily(heads=_NORMED, kinds=patterns.list_dots_kinds, bias=False, experts=_SHARED),
    "hy_v3": DecoderFamily(
        heads=_NORMED,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1),
            shared_count="num_shared_experts",
            shared_bias="mlp_bias",
        ),
    ),
    "exaone_moe": DecoderFamily(
        heads=_NORMED_PLAIN,
        kinds=build_periodic_kinds("sliding_window_pattern", 4),
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="num_shared_experts"
        ),
    ),
    "afmoe": DecoderFamily(
        heads=AttentionOptions(norm="head", gate="element"),
        kinds=build_periodic_kinds("global_attn_every_n_layers", 4),
        block=AROUND,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("num_dense_layers"),
            router_bias=True,
            shared_count="num_shared_experts",
        ),
    ),
    "hunyuan_v1_moe": DecoderFamily(
        heads=_NORMED, experts=ExpertLayout(inner="intermediate_size", shared_count=1)
    ),
    "llama4_text": DecoderFamily(
        kinds=patterns.list_chunk_kinds,
        bias=False,
        inner=lambda reader: reader.read_size("intermediate_size_mlp"),
        experts=ExpertLayout(
            inner="intermediate_size", layers=patterns.mark_interleaved_sparse, shared_count=1
        ),
    ),
    "minimax": DecoderFamily(
        heads=_PLAIN,
        linear=mixers.build_lightning_attention,
        kinds=patterns.list_alternating_kinds,
        experts=ExpertLayout(inner="intermediate_size"),
    ),
    "minimax_m2": DecoderFamily(
        heads=AttentionOptions(bias=False, norm="projection"), experts=ExpertLayout(inner="intermediate_size")
    ),
    "minimax_m3_vl_text": DecoderFamily(
        heads=_NORMED_PLAIN,
        attention=mixers.build_block_scored_attention,
        kinds=patterns.list_block_scorer_kinds,
        inner=lambda reader: reader.read_size("dense_intermediate_size"),
        bias=False,
        experts=ExpertLayout(
            inner="intermediate_size",
            layers=build_sparse_after_dense("first_k_dense_replace"),
            shared_size="shared_intermediate_size",
        ),
    ),
    "mimo_v2_flash": DecoderFamily(
        attention=mixers.build_mimo_attention,
        kinds=patterns.list_mimo_kinds,
        bias=False,
        experts=ExpertLayout(layers=build_sparse_after_dense("first_k_dense_replace", 1)),
    ),
    "gpt_neox_japanese": DecoderFamily(
        heads=AttentionOptions(bias=False, key_value_heads=_get_all_heads),
        attention=mixers.build_last_bias_attention,
        kinds=patterns.list_distinct_last_kinds,
        norm="layer",
        gated=False,
        bias=False,
        inner=_read_multiple_inner,
        drops=True,
    ),
    "cohere2_moe": DecoderFamily(
        kinds=patterns.list_cohere_kinds,
        block=PARALLEL,
        bias=False,
        inner=lambda reader: reader.read_size("prefix_dense_intermediate_size"),
        experts=ExpertLayout(
            inner="intermediate_size",
            layers=build_sparse_after_dense("first_k_dense_replace"),
            shared_count="num_shared_experts",
        ),
    ),
    "mellum": DecoderFamily(
        heads=_NORMED,
        kinds=build_default_kinds("full"),
        bias=False,
        experts=ExpertLayout(layers=build_sparse_after_dense("first_k_dense")),
    ),
    "kolibri1": DecoderFamily(
        heads=_NORMED_PLAIN,
        kinds=build_periodic_kinds("", 5),
        block=AROUND,
        experts=ExpertLayout(shared_size="shared_expert_intermediate_size"),
    ),
    "flint": DecoderFamily(
        heads=AttentionOptions(norm="head", sinks=True),
        kinds=build_default_kinds("full"),
        bias=False,
        experts=ExpertLayout(
            layers=patterns.mark_stepped_sparse, shared_size="shared_expert_intermediate_size"
        ),
    ),
    "laguna": DecoderFamily(
        heads=AttentionOptions(norm="head", gate_names="gating"),
        attention=mixers.build_laguna_attention,
        kinds=patterns.list_laguna_kinds,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense", 1),
            router_bias=True,
            shared_size="shared_expert_intermediate_size",
        ),
    ),
    "aria_text": DecoderFamily(
        experts=ExpertLayout(inner="intermediate_size", shared_count="moe_num_shared_experts")
    ),
    "deepseek_v2": DecoderFamily(
        attention=mixers.build_latent_attention,
        experts=replace(_SHARED, shared_bias="mlp_bias"),
    ),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _SPARSE,
    "deepseek_v4": DecoderFamily(
        attention=mixers.build_compressed_attention,
        kinds=patterns.list_compressed_kinds,
        block="hyper norm mixer hyper norm ffn",
        experts=ExpertLayout(shared_count=1, shared_bias="mlp_bias"),
        parts={"hyper": mixers.build_hyper_connection},
    ),
    "hy_v4": DecoderFamily(
        heads=AttentionOptions(gate="element", sinks=True),
        attention=mixers.build_indexed_attention,
        kinds=patterns.list_spread_scorer_kinds,
        block="hyper norm mixer hyper norm ffn",
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
        parts={"hyper": partial(mixers.build_hyper_connection, mixes=False)},
    ),
    "glm_moe_dsa": _SPARSE,
    "glm5_next_text": DecoderFamily(
        attention=mixers.build_pooled_attention,
        linear=mixers.build_kimi_delta,
        kinds=patterns.list_pooled_scorer_kinds,
        block="hyper norm mixer hyper norm ffn",
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 3), shared_count="n_shared_experts"
        ),
        parts={"hyper": mixers.build_hyper_connection},
    ),
    "glm4_moe_lite": DecoderFamily(
        attention=mixers.build_latent_attention,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
    ),
    "axk1": DecoderFamily(
        attention=mixers.build_latent_attention,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
        block="norm mixer norm ffn sparse_norm",
    ),
    "kimi_linear": DecoderFamily(
        heads=AttentionOptions(gate="element", gated="mla_use_output_gate"),
        attention=mixers.build_latent_attention,
        linear=mixers.build_kimi_delta,
        kinds=patterns.list_kimi_kinds,
        block=_select_kimi_block,
        ties=False,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1),
            shared_count="num_shared_experts",
            latent="routed_expert_hidden_size",
        ),
        parts={"residual": mixers.build_attention_residual},
    ),
    "bailing_hybrid": DecoderFamily(
        heads=AttentionOptions(gate="head"),
        attention=mixers.build_latent_attention,
        linear=mixers.build_bailing_delta,
        kinds=build_periodic_kinds("layer_group_size", 6, "linear"),
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="num_shared_experts"
        ),
    ),
    "dbrx": DecoderFamily(
        heads=AttentionOptions(bias=False, key_value_heads=mixers.read_dbrx_heads),
        parts={"ffn": mixers.build_dbrx_experts},
    ),
    "youtu": DecoderFamily(attention=mixers.build_latent_attention, bias=False),
    "minicpm3": DecoderFamily(attention=mixers.build_latent_attention),
    "mamba": DecoderFamily(linear=mixers.build_mamba, kinds=patterns.list_linear_kinds, block="norm mixer"),
    "falcon_mamba": DecoderFamily(
        linear=mixers.build_mamba, kinds=patterns.list_linear_kinds, block="norm mixer"
    ),
    "mamba2": DecoderFamily(
        linear=mixers.build_mamba_2, kinds=patterns.list_linear_kinds, block="norm mixer"
    ),
    "jamba": DecoderFamily(
        heads=_PLAIN,
        state_norms=True,
        linear=mixers.build_hybrid_mamba,
        kinds=patterns.list_offset_kinds,
        bias=False,
        experts=ExpertLayout(inner="intermediate_size", layers=patterns.mark_periodic_sparse),
    ),
    "bamba": DecoderFamily(
        linear=mixers.build_hybrid_mamba_2, kinds=patterns.build_indexed_kinds("attn_layer_indices", "linear")
    ),
    "falcon_h1": DecoderFamily(attention=mixers.build_parallel_mamba_2),
    "recurrent_gemma": DecoderFamily(
        heads=AttentionOptions(output_bias=True),
        linear=mixers.build_recurrent_unit,
        kinds=patterns.build_repeated_kinds("block_types", ("recurrent", "recurrent", "attention")),
        inner=_read_half_inner,
        bias=True,
    ),
    "lfm2": DecoderFamily(
        heads=_NORMED_PLAIN,
        linear=mixers.build_short_convolution,
        kinds=patterns.build_indexed_kinds("full_attn_idxs", "convolution"),
        inner=_compute_adjusted_inner,
    ),
    "lfm2_moe": DecoderFamily(
        heads=_NORMED_PLAIN,
        linear=mixers.build_short_convolution,
        kinds=build_default_kinds("full"),
        experts=ExpertLayout(layers=build_sparse_after_dense("num_dense_layers")),
    ),
    "lfm3": DecoderFamily(
        heads=AttentionOptions(norm="head", gate="head", gated="use_attention_gate"),
        linear=mixers.build_short_convolution,
        kinds=patterns.list_convolution_kinds,
        block=_select_sandwich_block,
        bias=False,
    ),
}
"""Every family that one description suffices for, by its ``model_type``."""


ArchitectureBuilder = Callable[[ConfigReader, str], Architecture]

BUILDERS: Mapping[str, ArchitectureBuilder] = {
    **{name: partial(build_architecture, family=family) for name, family in DECODERS.items()},
    "opt": partial(build_projected, family=DECODERS["opt"]),
    "hunyuan_v1_moe": partial(builders.build_hunyuan_experts, family=DECODERS["hunyuan_v1_moe"]),
    "nemotron_h": builders.build_nemotron_h,
    "zamba": builders.build_zamba,
    "zamba2": builders.build_zamba_2,
    "kimi_linear": partial(builders.build_kimi_linear, family=DECODERS["kimi_linear"]),
    "deepseek_v4": partial(builders.build_hyper_connected, family=DECODERS["deepseek_v4"]),
    "hy_v4": partial(builders.build_hyper_connected, family=DECODERS["hy_v4"]),
    "qwen4_exp_text": partial(builders.build_ngram_decoder, family=DECODERS["qwen4_exp_text"]),
    "longcat_flash": longcat.build_longcat,
    "gemma3n_text": builders.build_gemma_3n,
    "gemma4_text": builders.build_gemma_4,
    "gemma4_unified_text": builders.build_gemma_4,
}


def _build_spellings(spellings: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {**SPELLINGS, **{name: (real, name) for name, real in spellings.items()}}


def _build_family(model_type: str, builder: ArchitectureBuilder) -> ModelFamily:
    """Builds a family from its registry entry."""
    entry = _REGISTRY[model_type]
    names, defaults = _build_spellings(entry["names"]), entry["defaults"]
    states_context = any(name in defaults for name in names["max_position_embeddings"])
    return ModelFamily(
        prefix=entry["prefix"],
        build=builder,
        classes=tuple(entry["classes"]),
        unnamed_class=entry["classes"][0],
        context_field="max_position_embeddings" if states_context else None,
        defaults=defaults,
        names=names,
    )


NOT_IMPORTED: Mapping[str, str] = {
    "axk2": "norms that pass a gate of low rank, and a gate fused with the compressed query",
    "beam": "a gate by element with a learned vector by head",
    "cohere_compass_text": "a configuration that its own defaults cannot build: nothing was compared",
    "cpmant": "a table of relative positions and segments beside that of tokens",
    "diffllama": "differential attention, which subtracts two maps of scores",
    "doge": "a mask made of values, and experts that are rows of a table",
    "dots3_note_text": "latent attention of two shapes and a norm on rotary keys",
    "hrm_text": "two stacks of layers that run in cycles",
    "inkling2_text": "convolved keys and values, and residuals that attend to earlier layers",
    "inkling_text": "convolved keys and values, and relative positions projected from each token",
    "jetmoe": "experts inside attention",
    "rwkv": "time mixing without attention",
    "step3_text": "a compressed query in front of attention with one key and value head",
    "xlstm": "a matrix memory with input and forget gates",
    "zaya": "attention in a compressed space with convolutions, and routers of several layers",
}
"""Decoder types of transformers 5.23 that differ from all descriptions by more than shapes, with reasons."""

FAMILIES: Mapping[str, ModelFamily] = {
    **{model_type: _build_family(model_type, builder) for model_type, builder in BUILDERS.items()},
    **published.FAMILIES,
    "step3p5": _build_family("step3p5", step.build_step)._replace(
        prefix="Step3p",
        classes=step.CLASSES,
        unnamed_class=step.CLASSES[0],
        names={**SPELLINGS, **step.NAMES},
    ),
    "kimi_k2": _build_family("deepseek_v3", BUILDERS["deepseek_v3"]),
    # The decoder inside of Mistral Small 4 and Mistral Large 3, which stands in no file of its own.
    "mistral4": _build_family("deepseek_v3", BUILDERS["deepseek_v3"])._replace(prefix="Mistral4"),
}
