"""The decoder families as data: what each of them does otherwise than Llama.

Names of classes, other spellings and defaults come from ``registry.json``, which an oracle script takes
from the configuration classes of transformers 5.23.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Any

from service.formats.huggingface import builders, mixers, patterns
from service.formats.huggingface.decoders import (
    SPELLINGS,
    Decoder,
    Experts,
    Heads,
    build,
    key_value_heads,
    projected,
)
from service.formats.huggingface.patterns import after, every, named_or
from service.formats.huggingface.reader import (
    ConfigReader,
    Family,
)
from service.planning.models.architecture import Architecture

_REGISTRY: Mapping[str, dict[str, Any]] = json.loads(
    (files(__package__) / "registry.json").read_text(encoding="utf-8")
)

PARALLEL = "norm mixer ffn"
AROUND = "norm mixer norm norm ffn norm"
BEHIND = "mixer norm ffn norm"


def _inner_of_four(reader: ConfigReader) -> int:
    return reader.optional_size("intermediate_size") or 4 * reader.size("hidden_size")


def _half_inner(reader: ConfigReader) -> int:
    return reader.size("intermediate_size") // 2


def _inner_of_multiple(reader: ConfigReader) -> int:
    return reader.size("intermediate_multiple_size") * reader.size("hidden_size")


def _adjusted_inner(reader: ConfigReader) -> int:
    """LFM2: two thirds, times a factor, rounded up to a multiple."""
    inner = reader.size("block_ff_dim") if reader.states("block_ff_dim") else reader.size("intermediate_size")
    if not reader.flag("block_auto_adjust_ff_dim"):
        return inner
    inner = int(2 * inner / 3)
    if "block_ffn_dim_multiplier" in reader.config and not reader.states("block_ffn_dim_multiplier"):
        return inner
    factor = reader.factor("block_ffn_dim_multiplier") if reader.states("block_ffn_dim_multiplier") else 1.0
    multiple = reader.size("block_multiple_of")
    return multiple * -(-int(factor * inner) // multiple)


def _falcon_block(reader: ConfigReader) -> str:
    norms = reader.optional_size("num_ln_in_parallel_attn")
    if norms is None:
        norms = 2 if reader.flag("new_decoder_architecture") else 1
    return "norm mixer norm ffn" if norms > 1 or not reader.flag("parallel_attn") else PARALLEL


def _falcon_heads(reader: ConfigReader, heads: int) -> int:
    if reader.flag("new_decoder_architecture"):
        return key_value_heads(reader, heads)
    return 1 if reader.flag("multi_query") else heads


def _one_or_all(reader: ConfigReader, heads: int) -> int:
    return 1 if reader.flag("multi_query") else heads


def _all_heads(reader: ConfigReader, heads: int) -> int:
    del reader
    return heads


def _stablelm_block(reader: ConfigReader) -> str:
    return PARALLEL if reader.flag("use_parallel_residual") else "norm mixer norm ffn"


def _post_norms(reader: ConfigReader) -> str:
    return AROUND if reader.flag("use_post_norm") else "norm mixer norm ffn"


def _sandwich(reader: ConfigReader) -> str:
    return AROUND if reader.flag("use_sandwich_norm") else "norm mixer norm ffn"


_NORMED = Heads(norm="head")
_NORMED_PLAIN = Heads(bias=False, norm="head")
_WHOLE = Heads(norm="projection")
_ALL_BIASED = Heads(bias=True)
_QUERY_BIASED = Heads(output_bias=False)
_PLAIN = Heads(bias=False)
_SHARED = Experts(layers=after("first_k_dense_replace"), shared_count="n_shared_experts")
_DEEPSEEK = Decoder(attention=mixers.latent, experts=_SHARED, bias=False)
_SPARSE = Decoder(attention=mixers.indexed, experts=_SHARED, bias=False)
_GEMMA_2 = Decoder(kinds=every("sliding_window_pattern", 2), block=AROUND)
_QWEN_NEXT = Heads(norm="head", gate="element", gate_bias="attention_bias")
_GPT_2 = Decoder(
    heads=Heads(bias=True, key_value_heads=_all_heads),
    norm="layer",
    gated=False,
    bias=True,
    inner=_inner_of_four,
    positions=True,
    drops=True,
)
_GPT_J = Decoder(
    heads=Heads(bias=False, key_value_heads=_all_heads),
    block=PARALLEL,
    norm="layer",
    gated=False,
    bias=True,
    inner=_inner_of_four,
    head_bias=True,
    drops=True,
)

DECODERS: Mapping[str, Decoder] = {
    "llama": Decoder(),
    "internlm3": Decoder(),
    "iquestcoder": Decoder(),
    "granite": Decoder(),
    "granite_swa": Decoder(heads=Heads(sinks=True), kinds=every("", 4)),
    "helium": Decoder(heads=_QUERY_BIASED),
    "smollm3": Decoder(kinds=named_or("full")),
    "seed_oss": Decoder(heads=Heads(output_bias="attention_out_bias")),
    "cwm": Decoder(heads=_PLAIN, kinds=named_or("full")),
    "ernie4_5": Decoder(heads=Heads(bias="use_bias"), bias="use_bias"),
    "mistral": Decoder(heads=_PLAIN, kinds=patterns.window_if_sized, bias=False),
    "ministral": Decoder(heads=_PLAIN, kinds=patterns.window_if_sized, bias=False),
    "ministral3": Decoder(heads=_PLAIN, kinds=patterns.window_if_sized, bias=False),
    "phi3": Decoder(heads=_PLAIN, kinds=patterns.window_if_sized, bias=False, drops=True),
    "qwen2": Decoder(
        heads=Heads(bias=True, output_bias=False), kinds=patterns.window_in_late_layers, bias=False
    ),
    "qwen3": Decoder(heads=_NORMED, kinds=patterns.window_in_late_layers, bias=False),
    "glm": Decoder(heads=_QUERY_BIASED, bias=False),
    "glm4": Decoder(heads=_QUERY_BIASED, block=AROUND, bias=False),
    "gemma": Decoder(bias=False),
    "gemma2": _GEMMA_2,
    "gemma3_text": Decoder(heads=_NORMED, kinds=every("sliding_window_pattern", 6), block=AROUND),
    "vaultgemma": Decoder(kinds=every("", 2), bias=False),
    "olmo": Decoder(norm_learned=False, norm="layer", bias=False),
    "olmo2": Decoder(heads=_WHOLE, block=BEHIND, bias=False),
    "olmo3": Decoder(heads=_WHOLE, kinds=every("", 4), block=BEHIND, bias=False),
    "exaone4": Decoder(
        heads=_NORMED_PLAIN, kinds=every("sliding_window_pattern", 4), block=BEHIND, bias=False
    ),
    "hunyuan_v1_dense": Decoder(heads=_NORMED, bias=False),
    "hyperclovax": Decoder(block=_post_norms),
    "bitnet": Decoder(heads=Heads(output_norm=True), inner_norm=True, bias=False),
    "apertus": Decoder(heads=_NORMED, gated=False, activation_parameters=2, bias=False),
    "arcee": Decoder(gated=False),
    "jais2": Decoder(norm="layer", gated=False),
    "nemotron": Decoder(norm="layer", gated=False),
    "nanochat": Decoder(norm_learned=False, gated=False, bias=False),
    "starcoder2": Decoder(
        heads=Heads(bias="use_bias"),
        kinds=patterns.window_if_sized,
        norm="layer",
        gated=False,
        bias="use_bias",
        drops=True,
    ),
    "stablelm": Decoder(
        heads=Heads(bias="use_qkv_bias", output_bias=False, norm="projection", normed="qk_layernorm"),
        block=_stablelm_block,
        norm="layer",
        bias=False,
        drops=True,
    ),
    "cohere": Decoder(heads=Heads(norm="projection", normed="use_qk_norm"), block=PARALLEL, bias=False),
    "cohere2": Decoder(kinds=every("sliding_window_pattern", 4), block=PARALLEL, bias=False),
    "phi": Decoder(
        heads=Heads(bias=True, norm="head", normed="qk_layernorm", norm_shift=True),
        block=PARALLEL,
        norm="layer",
        gated=False,
        bias=True,
        head_bias=True,
        drops=True,
    ),
    "persimmon": Decoder(
        heads=Heads(
            bias=True, norm="head", normed="qk_layernorm", norm_shift=True, key_value_heads=_all_heads
        ),
        norm="layer",
        gated=False,
        bias=True,
        drops=True,
    ),
    "gptj": _GPT_J,
    "codegen": _GPT_J,
    "gpt_neox": Decoder(
        heads=Heads(bias="attention_bias", key_value_heads=_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        drops=True,
    ),
    "gpt2": _GPT_2,
    "gpt-sw3": _GPT_2,
    "gpt_bigcode": Decoder(
        heads=Heads(bias=True, key_value_heads=_one_or_all),
        norm="layer",
        gated=False,
        bias=True,
        inner=_inner_of_four,
        positions=True,
        drops=True,
    ),
    "gpt_neo": Decoder(
        heads=Heads(bias=False, output_bias=True, key_value_heads=_all_heads),
        kinds=patterns.attention_types,
        norm="layer",
        gated=False,
        bias=True,
        inner=_inner_of_four,
        positions=True,
        drops=True,
    ),
    "openai-gpt": Decoder(
        heads=Heads(bias=True, key_value_heads=_all_heads),
        block=BEHIND,
        norm="layer",
        final_norm=False,
        gated=False,
        bias=True,
        inner=_inner_of_four,
        positions=True,
        drops=True,
    ),
    "ctrl": Decoder(
        heads=Heads(bias=True, key_value_heads=_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        head_bias=True,
        drops=True,
    ),
    "opt": Decoder(
        heads=Heads(bias="enable_bias", key_value_heads=_all_heads),
        norm="layer",
        norm_learned="layer_norm_elementwise_affine",
        gated=False,
        bias="enable_bias",
        positions=True,
        position_offset=2,
        drops=True,
    ),
    "xglm": Decoder(
        heads=Heads(bias=True, key_value_heads=_all_heads), norm="layer", gated=False, bias=True, drops=True
    ),
    "biogpt": Decoder(
        heads=Heads(bias=True, key_value_heads=_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        positions=True,
        position_offset=2,
        drops=True,
    ),
    "bloom": Decoder(
        heads=Heads(bias=True, key_value_heads=_all_heads),
        norm="layer",
        gated=False,
        bias=True,
        inner=lambda reader: 4 * reader.size("hidden_size"),
        embedding_norm="layer",
        drops=True,
    ),
    "falcon": Decoder(
        heads=Heads(bias="bias", key_value_heads=_falcon_heads),
        block=_falcon_block,
        norm="layer",
        gated=False,
        bias="bias",
        inner=_inner_of_four,
        drops=True,
    ),
    # A layer norm without shift has the parameters of an rms norm.
    "mpt": Decoder(
        heads=Heads(bias=False, key_value_heads=_all_heads),
        gated=False,
        bias=False,
        inner=lambda reader: 4 * reader.size("hidden_size"),
        drops=True,
    ),
    "mixtral": Decoder(
        heads=_PLAIN, kinds=patterns.window_if_sized, experts=Experts(inner="intermediate_size")
    ),
    "qwen2_moe": Decoder(
        heads=Heads(bias="qkv_bias", output_bias=False),
        kinds=patterns.window_in_late_layers,
        bias=False,
        experts=Experts(
            layers=patterns.stepped, shared_size="shared_expert_intermediate_size", shared_gate=True
        ),
    ),
    "qwen3_moe": Decoder(
        heads=_NORMED,
        kinds=patterns.window_in_late_layers,
        bias=False,
        experts=Experts(layers=patterns.stepped),
    ),
    "qwen3_next": Decoder(
        heads=_QWEN_NEXT,
        linear=mixers.gated_delta,
        kinds=every("full_attention_interval", 4, "linear"),
        bias=False,
        experts=Experts(
            layers=patterns.stepped, shared_size="shared_expert_intermediate_size", shared_gate=True
        ),
    ),
    "qwen3_5_text": Decoder(
        heads=_QWEN_NEXT,
        linear=mixers.gated_delta,
        kinds=every("full_attention_interval", 4, "linear"),
        bias=False,
    ),
    "qwen3_5_moe_text": Decoder(
        heads=_QWEN_NEXT,
        linear=mixers.gated_delta,
        kinds=every("full_attention_interval", 4, "linear"),
        experts=Experts(shared_size="shared_expert_intermediate_size", shared_gate=True),
    ),
    "olmoe": Decoder(heads=_WHOLE, experts=Experts(inner="intermediate_size")),
    "flex_olmo": Decoder(heads=_WHOLE, block=BEHIND, experts=Experts(inner="intermediate_size")),
    "olmo_hybrid": Decoder(
        heads=_WHOLE,
        linear=mixers.olmo_delta,
        kinds=patterns.full_at_last,
        blocks={"full": BEHIND},
        bias=False,
    ),
    "phimoe": Decoder(
        norm="layer",
        kinds=patterns.window_if_sized,
        experts=Experts(inner="intermediate_size"),
        head_bias="lm_head_bias",
    ),
    "gpt_oss": Decoder(
        heads=Heads(sinks=True),
        kinds=every("", 2),
        experts=Experts(inner="intermediate_size", bias=True, router_bias=True),
    ),
    "granitemoe": Decoder(experts=Experts(inner="intermediate_size")),
    "granitemoeshared": Decoder(parts={"ffn": mixers.shared_granite}),
    "granitemoe_swa": Decoder(
        heads=Heads(sinks=True), kinds=every("", 4), parts={"ffn": mixers.shared_granite}
    ),
    "granitemoehybrid": Decoder(
        linear=mixers.mamba_2_of_hybrid, kinds=named_or("linear"), parts={"ffn": mixers.shared_granite}
    ),
    "ernie4_5_moe": Decoder(
        heads=_PLAIN,
        bias=False,
        experts=Experts(layers=patterns.interval, router_bias=True, shared_count="moe_num_shared_experts"),
        refused=("use_bias",),
    ),
    "glm4_moe": Decoder(
        heads=Heads(output_bias=False, norm="head", normed="use_qk_norm"), bias=False, experts=_SHARED
    ),
    "solar_open": Decoder(
        heads=Heads(output_bias=False), bias=False, experts=Experts(shared_count="n_shared_experts")
    ),
    "dots1": Decoder(heads=_NORMED, kinds=patterns.late_windows, bias=False, experts=_SHARED),
    "hy_v3": Decoder(
        heads=_NORMED,
        experts=Experts(
            layers=after("first_k_dense_replace", 1),
            shared_count="num_shared_experts",
            shared_bias="mlp_bias",
        ),
    ),
    "exaone_moe": Decoder(
        heads=_NORMED_PLAIN,
        kinds=every("sliding_window_pattern", 4),
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace"), shared_count="num_shared_experts"),
    ),
    "afmoe": Decoder(
        heads=Heads(norm="head", gate="element"),
        kinds=every("global_attn_every_n_layers", 4),
        block=AROUND,
        bias=False,
        experts=Experts(
            layers=after("num_dense_layers"), router_bias=True, shared_count="num_shared_experts"
        ),
    ),
    "hunyuan_v1_moe": Decoder(heads=_NORMED, experts=Experts(inner="intermediate_size", shared_count=1)),
    "llama4_text": Decoder(
        kinds=patterns.chunks,
        bias=False,
        inner=lambda reader: reader.size("intermediate_size_mlp"),
        experts=Experts(inner="intermediate_size", layers=patterns.interleaved, shared_count=1),
    ),
    "minimax": Decoder(
        heads=_PLAIN,
        linear=mixers.lightning,
        kinds=patterns.linear_then_full,
        experts=Experts(inner="intermediate_size"),
    ),
    "minimax_m2": Decoder(
        heads=Heads(bias=False, norm="projection"), experts=Experts(inner="intermediate_size")
    ),
    "mimo_v2_flash": Decoder(
        attention=mixers.wide_values,
        kinds=patterns.windows_after_first,
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace", 1)),
    ),
    "gpt_neox_japanese": Decoder(
        heads=Heads(bias=False, key_value_heads=_all_heads),
        attention=mixers.biased_at_last,
        kinds=patterns.last_apart,
        norm="layer",
        gated=False,
        bias=False,
        inner=_inner_of_multiple,
        drops=True,
    ),
    "cohere2_moe": Decoder(
        kinds=patterns.cohere_windows,
        block=PARALLEL,
        bias=False,
        inner=lambda reader: reader.size("prefix_dense_intermediate_size"),
        experts=Experts(
            inner="intermediate_size",
            layers=after("first_k_dense_replace"),
            shared_count="num_shared_experts",
        ),
    ),
    "mellum": Decoder(
        heads=_NORMED, kinds=named_or("full"), bias=False, experts=Experts(layers=after("first_k_dense"))
    ),
    "kolibri1": Decoder(
        heads=_NORMED_PLAIN,
        kinds=every("", 5),
        block=AROUND,
        experts=Experts(shared_size="shared_expert_intermediate_size"),
    ),
    "flint": Decoder(
        heads=Heads(norm="head", sinks=True),
        kinds=named_or("full"),
        bias=False,
        experts=Experts(layers=patterns.stepped, shared_size="shared_expert_intermediate_size"),
    ),
    "laguna": Decoder(
        heads=Heads(norm="head", gate_names="gating"),
        kinds=named_or("full"),
        bias=False,
        experts=Experts(
            layers=after("first_k_dense", 1),
            router_bias=True,
            shared_size="shared_expert_intermediate_size",
        ),
    ),
    "aria_text": Decoder(experts=Experts(inner="intermediate_size", shared_count="moe_num_shared_experts")),
    "deepseek_v2": Decoder(
        attention=mixers.latent,
        experts=replace(_SHARED, shared_bias="mlp_bias"),
    ),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _SPARSE,
    "glm_moe_dsa": _SPARSE,
    "glm4_moe_lite": Decoder(
        attention=mixers.latent,
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace", 1), shared_count="n_shared_experts"),
    ),
    "axk1": Decoder(
        attention=mixers.latent,
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace", 1), shared_count="n_shared_experts"),
        block="norm mixer norm ffn sparse_norm",
    ),
    "kimi_linear": Decoder(
        attention=mixers.latent,
        linear=mixers.kimi_delta,
        kinds=patterns.kimi,
        ties=False,
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace", 1), shared_count="num_shared_experts"),
    ),
    "bailing_hybrid": Decoder(
        heads=Heads(gate="head"),
        attention=mixers.latent,
        linear=mixers.bailing_delta,
        kinds=every("layer_group_size", 6, "linear"),
        bias=False,
        experts=Experts(layers=after("first_k_dense_replace"), shared_count="num_shared_experts"),
    ),
    "dbrx": Decoder(
        heads=Heads(bias=False, key_value_heads=mixers.dbrx_heads),
        parts={"ffn": mixers.dbrx_experts},
    ),
    "youtu": Decoder(attention=mixers.latent, bias=False),
    "minicpm3": Decoder(attention=mixers.latent),
    "mamba": Decoder(linear=mixers.mamba, kinds=patterns.linear, block="norm mixer"),
    "falcon_mamba": Decoder(linear=mixers.mamba, kinds=patterns.linear, block="norm mixer"),
    "mamba2": Decoder(linear=mixers.mamba_2, kinds=patterns.linear, block="norm mixer"),
    "jamba": Decoder(
        heads=_PLAIN,
        state_norms=True,
        linear=mixers.mamba_of_hybrid,
        kinds=patterns.period_and_offset,
        bias=False,
        experts=Experts(inner="intermediate_size", layers=patterns.expert_period),
    ),
    "bamba": Decoder(
        linear=mixers.mamba_2_of_hybrid, kinds=patterns.at_indexes("attn_layer_indices", "linear")
    ),
    "falcon_h1": Decoder(attention=mixers.mamba_2_beside_attention),
    "recurrent_gemma": Decoder(
        heads=Heads(output_bias=True),
        linear=mixers.recurrent,
        kinds=patterns.repeated("block_types", ("recurrent", "recurrent", "attention")),
        inner=_half_inner,
        bias=True,
    ),
    "lfm2": Decoder(
        heads=_NORMED_PLAIN,
        linear=mixers.short_convolution,
        kinds=patterns.at_indexes("full_attn_idxs", "convolution"),
        inner=_adjusted_inner,
    ),
    "lfm2_moe": Decoder(
        heads=_NORMED_PLAIN,
        linear=mixers.short_convolution,
        kinds=named_or("full"),
        experts=Experts(layers=after("num_dense_layers")),
    ),
    "lfm3": Decoder(
        heads=Heads(norm="head", gate="head", gated="use_attention_gate"),
        linear=mixers.short_convolution,
        kinds=patterns.convolution_in_odd_layers,
        block=_sandwich,
        bias=False,
    ),
}
"""Every family that one description suffices for, by its ``model_type``."""


Builder = Callable[[ConfigReader, str], Architecture]

BUILDERS: Mapping[str, Builder] = {
    **{name: partial(build, family=family) for name, family in DECODERS.items()},
    "opt": partial(projected, family=DECODERS["opt"]),
    "nemotron_h": builders.nemotron_h,
    "zamba": builders.zamba,
    "zamba2": builders.zamba_2,
    "gemma4_text": builders.gemma_4,
    "gemma4_unified_text": builders.gemma_4,
}


def _names(spellings: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {**SPELLINGS, **{name: (real, name) for name, real in spellings.items()}}


def _family(model_type: str, builder: Builder) -> Family:
    """A family from what the registry says of it."""
    entry = _REGISTRY[model_type]
    names, defaults = _names(entry["names"]), entry["defaults"]
    states_context = any(name in defaults for name in names["max_position_embeddings"])
    return Family(
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
    "deepseek_v4": "hyper-connections, compressed keys and values, and an output projection in groups",
    "diffllama": "differential attention, which subtracts two maps of scores",
    "doge": "a mask made of values, and experts that are rows of a table",
    "dots3_note_text": "latent attention of two shapes and a norm on rotary keys",
    "gemma3n_text": "alternating updates (AltUp) and augmented residuals (LAuReL)",
    "hrm_text": "two stacks of layers that run in cycles",
    "hy_v4": "hyper-connections, and scorers that layers share",
    "inkling2_text": "convolved keys and values, and residuals that attend to earlier layers",
    "inkling_text": "convolved keys and values, and relative positions projected from each token",
    "jetmoe": "experts inside attention",
    "longcat_flash": "experts that compute nothing, for which its class makes gates that no checkpoint has",
    "minimax_m3_vl_text": "a scorer that picks blocks of keys beside grouped-query attention",
    "qwen4_exp_text": "hyper-connections and tables of n-grams",
    "rwkv": "time mixing without attention",
    "xlstm": "a matrix memory with input and forget gates",
    "zaya": "attention in a compressed space with convolutions, and routers of several layers",
}
"""Decoder types of transformers 5.23 that differ from all descriptions by more than shapes: in what."""

FAMILIES: Mapping[str, Family] = {
    **{model_type: _family(model_type, builder) for model_type, builder in BUILDERS.items()},
    # Types of code that is published beside the weights, as their model cards and that code describe them.
    "kimi_k2": _family("deepseek_v3", BUILDERS["deepseek_v3"]),
    "nemotron-nas": _family("llama", builders.deci)._replace(
        prefix="DeciLM", classes=("ForCausalLM", "Model"), defaults={"tie_word_embeddings": False}
    ),
    "internlm": _family("llama", partial(build, family=Decoder(heads=Heads(bias="bias"))))._replace(
        prefix="InternLM",
        classes=("ForCausalLM", "Model"),
        defaults={
            "vocab_size": 103_168,
            "hidden_size": 4096,
            "intermediate_size": 11_008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "max_position_embeddings": 2048,
            "bias": True,
            "tie_word_embeddings": False,
        },
    ),
}
