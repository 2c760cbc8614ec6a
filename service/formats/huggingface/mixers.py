"""Token mixers other than plain attention by heads: latent, linear, state-space, convolution."""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import (
    DecoderFamily,
    ExpertLayout,
    Layers,
    build_attention,
    build_experts,
    build_feed_forward,
    is_enabled,
    read_expert_counts,
    read_key_value_heads,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error, compute_head_size
from service.planning.errors import PlanningError
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    Convolution,
    FeedForward,
    LatentAttention,
    LearnedVectors,
    Linear,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    StateSpace,
)


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


def build_hyper_connection(
    reader: ConfigReader, family: DecoderFamily, kind: str, *, mixes: bool = True
) -> Layers:
    """Hyper-connection: weights of the streams in front of a layer and behind it, and of each for each other.

    DeepSeek-V4 mixes its streams (manifold-constrained, mHC), Hy4 leaves them independent (iHC).
    """
    del family, kind
    streams = reader.read_size("hc_mult")
    weights = (2 + streams if mixes else 2) * streams
    return (
        Linear(input_size=streams * reader.read_size("hidden_size"), output_size=weights, bias=True),
        LearnedVectors(purpose="scale", rows=1, size=3 if mixes else 2),
    )


def build_gated_delta(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gated DeltaNet, as in Qwen3-Next."""
    del family, kind
    return (
        LinearAttention(
            hidden_size=reader.read_size("hidden_size"),
            key_heads=reader.read_size("linear_num_key_heads"),
            value_heads=reader.read_size("linear_num_value_heads"),
            key_head_size=reader.read_size("linear_key_head_dim"),
            value_head_size=reader.read_size("linear_value_head_dim"),
            convolution_width=reader.read_size("linear_conv_kernel_dim"),
        ),
    )


def build_olmo_delta(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gated DeltaNet whose heads default to those of attention."""
    heads = reader.read_size("num_attention_heads")
    hidden = reader.read_size("hidden_size")
    key_heads = reader.read_optional_size("linear_num_key_heads") or heads
    key_size = reader.read_optional_size("linear_key_head_dim") or int(0.75 * hidden / key_heads)
    del family, kind
    return (
        LinearAttention(
            hidden_size=hidden,
            key_heads=key_heads,
            value_heads=reader.read_optional_size("linear_num_value_heads") or heads,
            key_head_size=key_size,
            value_head_size=reader.read_optional_size("linear_value_head_dim") or 2 * key_size,
            convolution_width=reader.read_size("linear_conv_kernel_dim"),
        ),
    )


def _build_channel_delta(
    reader: ConfigReader, heads: int, size: int, width: int, rank: int | None, *, full_output: bool = False
) -> Layers:
    return (
        LinearAttention(
            hidden_size=reader.read_size("hidden_size"),
            key_heads=heads,
            value_heads=heads,
            key_head_size=size,
            value_head_size=size,
            convolution_width=width,
            rule="channel_delta",
            gate_rank=rank,
            full_output_gate=full_output,
        ),
    )


def build_kimi_delta(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Kimi Delta Attention, whose gates pass a rank of one head; published files nest its fields.

    The output gate is full in Kimi K3.
    """
    del family, kind
    nested = reader.config.get("linear_attn_config")
    inner = ConfigReader(nested if isinstance(nested, Mapping) else {}, {})
    full = inner.read_flag("use_full_rank_gate")
    size = inner.read_optional_size("head_dim") or reader.read_size("linear_head_dim")
    heads = inner.read_optional_size("num_heads") or reader.read_size("linear_num_heads")
    width = inner.read_optional_size("short_conv_kernel_size") or reader.read_size("linear_conv_kernel_dim")
    return _build_channel_delta(reader, heads, size, width, size, full_output=full)


def build_attention_residual(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The norm and the scores by which a part weighs what earlier blocks have added up."""
    del family, kind
    hidden = reader.read_size("hidden_size")
    return Normalization(size=hidden), Linear(input_size=hidden, output_size=1)


def build_bailing_delta(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The linear layers of Ling 2.5, whose gates are full projections."""
    del family, kind
    heads, size = reader.read_size("num_attention_heads"), reader.read_size("head_dim")
    return _build_channel_delta(reader, heads, size, reader.read_size("short_conv_kernel_size"), None)


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


def build_lightning_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Lightning attention of MiniMax."""
    del family, kind
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    size = reader.read_optional_size("head_dim") or compute_head_size(hidden, heads, "num_attention_heads")
    return (
        LinearAttention(
            hidden_size=hidden,
            key_heads=heads,
            value_heads=heads,
            key_head_size=size,
            value_head_size=size,
            convolution_width=1,
            rule="fixed",
        ),
    )


def _build_mamba_2_layer(
    reader: ConfigReader,
    *,
    inner: int,
    heads: int,
    state: str,
    width: str,
    groups: str,
    bias: str,
    **more: bool,
) -> StateSpace:
    return StateSpace(
        hidden_size=reader.read_size("hidden_size"),
        inner_size=inner,
        state_size=reader.read_size(state),
        convolution_width=reader.read_size(width),
        heads=heads,
        groups=reader.read_size(groups),
        projection_bias=reader.read_flag(bias),
        **more,
    )


def build_mamba(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 1, with the fields of its own model type."""
    del family, kind
    hidden = reader.read_size("hidden_size")
    return (
        StateSpace(
            hidden_size=hidden,
            inner_size=reader.read_size("expand") * hidden,
            state_size=reader.read_size("state_size"),
            convolution_width=reader.read_size("conv_kernel"),
            time_step_rank=_read_time_step_rank(reader, "time_step_rank", hidden),
            convolution_bias=reader.read_flag("use_conv_bias"),
            projection_bias=reader.read_flag("use_bias"),
        ),
    )


def build_hybrid_mamba(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 1 inside a hybrid; Jamba's normalizes step and state."""
    del kind
    hidden = reader.read_size("hidden_size")
    return (
        StateSpace(
            hidden_size=hidden,
            inner_size=reader.read_size("mamba_expand") * hidden,
            state_size=reader.read_size("mamba_d_state"),
            convolution_width=reader.read_size("mamba_d_conv"),
            time_step_rank=_read_time_step_rank(reader, "mamba_dt_rank", hidden),
            state_norms=family.state_norms,
            convolution_bias=reader.read_flag("mamba_conv_bias"),
            projection_bias=reader.read_flag("mamba_proj_bias"),
        ),
    )


def _read_time_step_rank(reader: ConfigReader, name: str, hidden: int) -> int:
    """A time-step rank; ``auto`` is a sixteenth of the width, rounded up."""
    return -(-hidden // 16) if reader.read_value(name) == "auto" else reader.read_size(name)


def build_mamba_2(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 2, with the fields of its own model type."""
    del family, kind
    inner = reader.read_size("expand") * reader.read_size("hidden_size")
    heads, size = reader.read_size("num_heads"), reader.read_size("head_dim")
    if heads * size != inner:
        raise build_invalid_error("num_heads", "num_heads times head_dim must be expand times hidden_size")
    return (
        _build_mamba_2_layer(
            reader,
            inner=inner,
            heads=heads,
            state="state_size",
            width="conv_kernel",
            groups="n_groups",
            bias="use_bias",
            convolution_bias=reader.read_flag("use_conv_bias"),
        ),
    )


def build_hybrid_mamba_2(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 2 inside Bamba and Granite 4."""
    del family, kind
    return (
        _build_mamba_2_layer(
            reader,
            inner=reader.read_size("mamba_expand") * reader.read_size("hidden_size"),
            heads=reader.read_size("mamba_n_heads"),
            state="mamba_d_state",
            width="mamba_d_conv",
            groups="mamba_n_groups",
            bias="mamba_proj_bias",
            convolution_bias=reader.read_flag("mamba_conv_bias"),
        ),
    )


def build_parallel_mamba_2(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Falcon-H1: Mamba 2 and attention on the same input."""
    inner = reader.read_optional_size("mamba_d_ssm") or reader.read_size("mamba_expand") * reader.read_size(
        "hidden_size"
    )
    if reader.read_flag("projectors_bias") != reader.read_flag("mamba_proj_bias"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED", "/projectors_bias", "only known where it equals mamba_proj_bias"
        )
    mixer = _build_mamba_2_layer(
        reader,
        inner=inner,
        heads=reader.read_size("mamba_n_heads"),
        state="mamba_d_state",
        width="mamba_d_conv",
        groups="mamba_n_groups",
        bias="mamba_proj_bias",
        convolution_bias=reader.read_flag("mamba_conv_bias"),
        gated_norm=reader.read_flag("mamba_rms_norm"),
    )
    return (mixer, *build_attention(reader, family, kind))


def build_nemotron_mamba(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 2 of Nemotron-H, whose width is heads times their size."""
    del family, kind
    heads = reader.read_size("mamba_num_heads")
    return (
        _build_mamba_2_layer(
            reader,
            inner=heads * reader.read_size("mamba_head_dim"),
            heads=heads,
            state="ssm_state_size",
            width="conv_kernel",
            groups="n_groups",
            bias="use_bias",
            convolution_bias=reader.read_flag("use_conv_bias"),
        ),
    )


def build_recurrent_unit(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The real-gated linear recurrent unit of RecurrentGemma."""
    del family, kind
    hidden = reader.read_size("hidden_size")
    return (
        StateSpace(
            hidden_size=hidden,
            inner_size=reader.read_size_or("lru_width", hidden),
            state_size=1,
            convolution_width=reader.read_size("conv1d_width"),
            gate_blocks=reader.read_size("num_attention_heads"),
            projection_bias=True,
        ),
    )


def build_short_convolution(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """LFM2: a gated convolution over a few tokens."""
    del family, kind
    hidden, bias = reader.read_size("hidden_size"), reader.read_flag("conv_bias")
    return (
        Linear(input_size=hidden, output_size=3 * hidden, bias=bias),
        Convolution(
            input_channels=hidden,
            output_channels=hidden,
            kernel_height=1,
            kernel_width=reader.read_size("conv_L_cache"),
            groups=hidden,
            bias=bias,
        ),
        Linear(input_size=hidden, output_size=hidden, bias=bias),
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


def build_mimo_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """MiMo: values narrower than keys; layers with a window have twice the key-value heads, and sinks."""
    del family
    windowed = kind == "window"
    heads = reader.read_size("num_attention_heads")
    return (
        Attention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=heads,
            key_value_heads=read_key_value_heads(reader, heads) * (2 if windowed else 1),
            head_size=reader.read_size("head_dim"),
            value_head_size=reader.read_size("v_head_dim"),
            window_tokens=reader.read_size("sliding_window") if windowed else None,
            query_key_value_bias=reader.read_flag("attention_bias"),
            sinks=windowed,
            dropout=reader.has_dropout("attention_dropout"),
        ),
    )


def build_laguna_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Laguna: layers with a window have more query heads than the others."""
    name, _, heads = kind.partition(" ")
    if heads:
        reader = replace(reader, config={**reader.config, "num_attention_heads": int(heads)})
    return build_attention(reader, family, name)


def build_last_bias_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """GPT-NeoX Japanese: only the last layer adds a learned vector to its output."""
    (plain,) = build_attention(reader, family, kind)
    return (replace(plain, output_bias=kind == "last"),) if isinstance(plain, Attention) else ()


def build_zamba_2_mamba(reader: ConfigReader) -> StateSpace:
    """Mamba 2 inside Zamba 2."""
    return _build_mamba_2_layer(
        reader,
        inner=reader.read_size("mamba_expand") * reader.read_size("hidden_size"),
        heads=reader.read_size("n_mamba_heads"),
        state="mamba_d_state",
        width="mamba_d_conv",
        groups="mamba_ngroups",
        bias="add_bias_linear",
        convolution_bias=True,
    )


def build_gemma_4_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gemma 4: wider heads in full layers, values that are the keys, keys and values of earlier layers."""
    del family
    wide = kind.startswith("full")
    heads = reader.read_size("num_attention_heads")
    count = read_key_value_heads(reader, heads)
    same = wide and reader.read_flag("attention_k_eq_v")
    if same:
        count = reader.read_size_or("num_global_key_value_heads", count)
    own: str = "key_as_value" if same else "own"
    bias = reader.read_flag("attention_bias")
    return (
        Attention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=heads,
            key_value_heads=count,
            head_size=reader.read_size_or("global_head_dim", 512) if wide else reader.read_size("head_dim"),
            window_tokens=None if wide else reader.read_size("sliding_window"),
            key_value="shared" if kind.endswith("shared") else own,  # type: ignore[arg-type]
            query_key_value_bias=bias,
            output_bias=bias,
            query_key_norm="head",
            dropout=reader.has_dropout("attention_dropout"),
        ),
    )


def build_gemma_4_feed_forward(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The dense feed-forward, twice as wide in sharing layers if so switched, and experts beside it."""
    (dense,) = build_feed_forward(reader, family)
    hidden = reader.read_size("hidden_size")
    if isinstance(dense, FeedForward) and kind.endswith("shared") and reader.read_flag("use_double_wide_mlp"):
        dense = FeedForward(hidden_size=hidden, inner_size=2 * dense.inner_size, gated=True)
    if not reader.read_flag("enable_moe_block"):
        return (dense,)
    count, taken = read_expert_counts(reader)
    sparse = MixtureOfExperts(
        hidden_size=hidden,
        expert_count=count,
        experts_per_token=taken,
        expert_inner_size=reader.read_size("moe_intermediate_size"),
        router_scales=True,
    )
    norm = Normalization(size=hidden)
    return (dense, norm, norm, sparse, norm)


def build_gemma_4_token_input(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Projection of each layer's own embedding table of tokens."""
    del family, kind
    hidden, width = reader.read_size("hidden_size"), reader.read_count("hidden_size_per_layer_input")
    if not width:
        return ()
    return (
        Linear(input_size=hidden, output_size=width),
        Linear(input_size=width, output_size=hidden),
        Normalization(size=hidden),
    )


def build_gemma_3n_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gemma 3n: the last layers read the keys and values of earlier ones."""
    (plain,) = build_attention(reader, family, kind.removesuffix(" shared"))
    if kind.endswith("shared") and isinstance(plain, Attention):
        return (replace(plain, key_value="shared"),)
    return (plain,)


def build_gemma_3n_token_input(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """As in Gemma 4, but the norm stands where there is no table, too."""
    norm = Normalization(size=reader.read_size("hidden_size"))
    return build_gemma_4_token_input(reader, family, kind) or (norm,)


def build_laurel(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Augmented residual of Gemma 3n (LAuReL): a product of low rank beside attention."""
    del family, kind
    hidden, rank = reader.read_size("hidden_size"), reader.read_size("laurel_rank")
    return (
        Linear(input_size=hidden, output_size=rank),
        Linear(input_size=rank, output_size=hidden),
        Normalization(size=hidden),
    )


def build_alternating_updates(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Alternating updates of Gemma 3n (AltUp, Baykal et al. 2023): what mixes the streams around a layer."""
    del family, kind
    hidden, streams = reader.read_size("hidden_size"), reader.read_size("altup_num_inputs")
    return (
        Normalization(size=hidden),
        Linear(input_size=hidden, output_size=streams),
        Linear(input_size=streams, output_size=streams**2),
        Linear(input_size=streams, output_size=streams),
        LearnedVectors(purpose="scale", rows=1, size=hidden),
    )
