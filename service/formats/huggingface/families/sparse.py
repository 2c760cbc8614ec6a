"""Decoders with experts, as their differences from Llama."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import AttentionOptions, DecoderFamily, ExpertLayout
from service.formats.huggingface.families.options import (
    AROUND,
    BEHIND,
    NORMED,
    NORMED_PLAIN,
    PARALLEL,
    PLAIN,
    WHOLE,
)
from service.formats.huggingface.mixers import experts, heads, latent, residuals, scored
from service.formats.huggingface.patterns import (
    build_default_kinds,
    build_periodic_kinds,
    build_sparse_after_dense,
)

_SHARED = ExpertLayout(
    layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="n_shared_experts"
)
_DEEPSEEK = DecoderFamily(attention=latent.build_latent_attention, experts=_SHARED, bias=False)
_SPARSE = DecoderFamily(
    attention=latent.build_indexed_attention,
    kinds=patterns.list_scorer_kinds,
    experts=_SHARED,
    bias=False,
)


SPARSE: Mapping[str, DecoderFamily] = {
    "mixtral": DecoderFamily(
        heads=PLAIN, kinds=patterns.list_window_kinds, experts=ExpertLayout(inner="intermediate_size")
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
        heads=NORMED,
        kinds=patterns.list_late_window_kinds,
        bias=False,
        experts=ExpertLayout(layers=patterns.mark_stepped_sparse),
    ),
    "olmoe": DecoderFamily(heads=WHOLE, experts=ExpertLayout(inner="intermediate_size")),
    "flex_olmo": DecoderFamily(heads=WHOLE, block=BEHIND, experts=ExpertLayout(inner="intermediate_size")),
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
    "granitemoeshared": DecoderFamily(parts={"ffn": experts.build_granite_experts}),
    "granitemoe_swa": DecoderFamily(
        heads=AttentionOptions(sinks=True),
        kinds=build_periodic_kinds("", 4),
        parts={"ffn": experts.build_granite_experts},
    ),
    "ernie4_5_moe": DecoderFamily(
        heads=PLAIN,
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
    "dots1": DecoderFamily(heads=NORMED, kinds=patterns.list_dots_kinds, bias=False, experts=_SHARED),
    "hy_v3": DecoderFamily(
        heads=NORMED,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1),
            shared_count="num_shared_experts",
            shared_bias="mlp_bias",
        ),
    ),
    "exaone_moe": DecoderFamily(
        heads=NORMED_PLAIN,
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
        heads=NORMED, experts=ExpertLayout(inner="intermediate_size", shared_count=1)
    ),
    "llama4_text": DecoderFamily(
        kinds=patterns.list_chunk_kinds,
        bias=False,
        inner=lambda reader: reader.read_size("intermediate_size_mlp"),
        experts=ExpertLayout(
            inner="intermediate_size", layers=patterns.mark_interleaved_sparse, shared_count=1
        ),
    ),
    "minimax_m2": DecoderFamily(
        heads=AttentionOptions(bias=False, norm="projection"), experts=ExpertLayout(inner="intermediate_size")
    ),
    "minimax_m3_vl_text": DecoderFamily(
        heads=NORMED_PLAIN,
        attention=scored.build_block_scored_attention,
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
        attention=heads.build_mimo_attention,
        kinds=patterns.list_mimo_kinds,
        bias=False,
        experts=ExpertLayout(layers=build_sparse_after_dense("first_k_dense_replace", 1)),
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
        heads=NORMED,
        kinds=build_default_kinds("full"),
        bias=False,
        experts=ExpertLayout(layers=build_sparse_after_dense("first_k_dense")),
    ),
    "kolibri1": DecoderFamily(
        heads=NORMED_PLAIN,
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
        attention=heads.build_laguna_attention,
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
        attention=latent.build_latent_attention,
        experts=replace(_SHARED, shared_bias="mlp_bias"),
    ),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _SPARSE,
    "deepseek_v4": DecoderFamily(
        attention=scored.build_compressed_attention,
        kinds=patterns.list_compressed_kinds,
        block="hyper norm mixer hyper norm ffn",
        experts=ExpertLayout(shared_count=1, shared_bias="mlp_bias"),
        parts={"hyper": residuals.build_hyper_connection},
    ),
    "hy_v4": DecoderFamily(
        heads=AttentionOptions(gate="element", sinks=True),
        attention=latent.build_indexed_attention,
        kinds=patterns.list_spread_scorer_kinds,
        block="hyper norm mixer hyper norm ffn",
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
        parts={"hyper": partial(residuals.build_hyper_connection, mixes=False)},
    ),
    "glm_moe_dsa": _SPARSE,
    "glm4_moe_lite": DecoderFamily(
        attention=latent.build_latent_attention,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
    ),
    "axk1": DecoderFamily(
        attention=latent.build_latent_attention,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
        ),
        block="norm mixer norm ffn sparse_norm",
    ),
    "dbrx": DecoderFamily(
        heads=AttentionOptions(bias=False, key_value_heads=experts.read_dbrx_heads),
        parts={"ffn": experts.build_dbrx_experts},
    ),
}
"""Families of this kind, by their ``model_type``."""
