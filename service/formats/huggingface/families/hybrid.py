"""Decoders with layers that keep a state in place of keys and values."""

from collections.abc import Mapping

from service.formats.huggingface import ngrams, patterns
from service.formats.huggingface.decoders import AttentionOptions, DecoderFamily, ExpertLayout
from service.formats.huggingface.families.options import AROUND, BEHIND, NORMED_PLAIN, PLAIN, WHOLE
from service.formats.huggingface.mixers import experts, latent, recurrent, residuals, scored
from service.formats.huggingface.patterns import (
    build_default_kinds,
    build_periodic_kinds,
    build_sparse_after_dense,
)
from service.formats.huggingface.reader import ConfigReader


def _read_half_inner(reader: ConfigReader) -> int:
    return reader.read_size("intermediate_size") // 2


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


def _select_sandwich_block(reader: ConfigReader) -> str:
    return AROUND if reader.read_flag("use_sandwich_norm") else "norm mixer norm ffn"


def _select_kimi_block(reader: ConfigReader) -> str:
    residual = "residual " if reader.read_optional_size("attn_res_block_size") else ""
    latent = "latent_norm " if reader.read_flag("latent_moe_use_norm") else ""
    return f"{residual}norm mixer {residual}norm {latent}ffn"


_QWEN_NEXT = AttentionOptions(norm="head", gate="element", gate_bias="attention_bias")


HYBRID: Mapping[str, DecoderFamily] = {
    "qwen3_next": DecoderFamily(
        heads=_QWEN_NEXT,
        linear=recurrent.build_gated_delta,
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
        linear=recurrent.build_gated_delta,
        kinds=build_periodic_kinds("full_attention_interval", 4, "linear"),
        bias=False,
    ),
    "qwen3_5_moe_text": DecoderFamily(
        heads=_QWEN_NEXT,
        linear=recurrent.build_gated_delta,
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
            "mixer": scored.build_averaging_attention,
            "ngram": ngrams.build_ngram_injection,
        },
    ),
    "olmo_hybrid": DecoderFamily(
        heads=WHOLE,
        linear=recurrent.build_olmo_delta,
        kinds=patterns.list_olmo_kinds,
        blocks={"full": BEHIND},
        bias=False,
    ),
    "granitemoehybrid": DecoderFamily(
        linear=recurrent.build_hybrid_mamba_2,
        kinds=build_default_kinds("linear"),
        parts={"ffn": experts.build_granite_experts},
    ),
    "minimax": DecoderFamily(
        heads=PLAIN,
        linear=recurrent.build_lightning_attention,
        kinds=patterns.list_alternating_kinds,
        experts=ExpertLayout(inner="intermediate_size"),
    ),
    "glm5_next_text": DecoderFamily(
        attention=latent.build_pooled_attention,
        linear=recurrent.build_kimi_delta,
        kinds=patterns.list_pooled_scorer_kinds,
        block="hyper norm mixer hyper norm ffn",
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 3), shared_count="n_shared_experts"
        ),
        parts={"hyper": residuals.build_hyper_connection},
    ),
    "kimi_linear": DecoderFamily(
        heads=AttentionOptions(gate="element", gated="mla_use_output_gate"),
        attention=latent.build_latent_attention,
        linear=recurrent.build_kimi_delta,
        kinds=patterns.list_kimi_kinds,
        block=_select_kimi_block,
        ties=False,
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace", 1),
            shared_count="num_shared_experts",
            latent="routed_expert_hidden_size",
        ),
        parts={"residual": residuals.build_attention_residual},
    ),
    "bailing_hybrid": DecoderFamily(
        heads=AttentionOptions(gate="head"),
        attention=latent.build_latent_attention,
        linear=recurrent.build_bailing_delta,
        kinds=build_periodic_kinds("layer_group_size", 6, "linear"),
        bias=False,
        experts=ExpertLayout(
            layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="num_shared_experts"
        ),
    ),
    "mamba": DecoderFamily(
        linear=recurrent.build_mamba, kinds=patterns.list_linear_kinds, block="norm mixer"
    ),
    "falcon_mamba": DecoderFamily(
        linear=recurrent.build_mamba, kinds=patterns.list_linear_kinds, block="norm mixer"
    ),
    "mamba2": DecoderFamily(
        linear=recurrent.build_mamba_2, kinds=patterns.list_linear_kinds, block="norm mixer"
    ),
    "jamba": DecoderFamily(
        heads=PLAIN,
        state_norms=True,
        linear=recurrent.build_hybrid_mamba,
        kinds=patterns.list_offset_kinds,
        bias=False,
        experts=ExpertLayout(inner="intermediate_size", layers=patterns.mark_periodic_sparse),
    ),
    "bamba": DecoderFamily(
        linear=recurrent.build_hybrid_mamba_2,
        kinds=patterns.build_indexed_kinds("attn_layer_indices", "linear"),
    ),
    "falcon_h1": DecoderFamily(attention=recurrent.build_parallel_mamba_2),
    "recurrent_gemma": DecoderFamily(
        heads=AttentionOptions(output_bias=True),
        linear=recurrent.build_recurrent_unit,
        kinds=patterns.build_repeated_kinds("block_types", ("recurrent", "recurrent", "attention")),
        inner=_read_half_inner,
        bias=True,
    ),
    "lfm2": DecoderFamily(
        heads=NORMED_PLAIN,
        linear=recurrent.build_short_convolution,
        kinds=patterns.build_indexed_kinds("full_attn_idxs", "convolution"),
        inner=_compute_adjusted_inner,
    ),
    "lfm2_moe": DecoderFamily(
        heads=NORMED_PLAIN,
        linear=recurrent.build_short_convolution,
        kinds=build_default_kinds("full"),
        experts=ExpertLayout(layers=build_sparse_after_dense("num_dense_layers")),
    ),
    "lfm3": DecoderFamily(
        heads=AttentionOptions(norm="head", gate="head", gated="use_attention_gate"),
        linear=recurrent.build_short_convolution,
        kinds=patterns.list_convolution_kinds,
        block=_select_sandwich_block,
        bias=False,
    ),
}
"""Families of this kind, by their ``model_type``."""
