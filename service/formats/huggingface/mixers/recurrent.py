"""Mixers that keep a state in place of keys and values: delta rules, state spaces, convolutions."""

from collections.abc import Mapping

from service.formats.huggingface.decoders import DecoderFamily, Layers, build_attention
from service.formats.huggingface.reader import ConfigReader, build_invalid_error, compute_head_size
from service.planning.errors import PlanningError
from service.planning.models.layers import Convolution, Linear, LinearAttention, StateSpace


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


def build_bailing_delta(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The linear layers of Ling 2.5, whose gates are full projections."""
    del family, kind
    heads, size = reader.read_size("num_attention_heads"), reader.read_size("head_dim")
    return _build_channel_delta(reader, heads, size, reader.read_size("short_conv_kernel_size"), None)


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


def _build_hybrid_layer(reader: ConfigReader, inner: int, *, gated_norm: bool = True) -> StateSpace:
    """Mamba 2 of ``inner`` channels, with the fields of models that have attention as well."""
    return _build_mamba_2_layer(
        reader,
        inner=inner,
        heads=reader.read_size("mamba_n_heads"),
        state="mamba_d_state",
        width="mamba_d_conv",
        groups="mamba_n_groups",
        bias="mamba_proj_bias",
        convolution_bias=reader.read_flag("mamba_conv_bias"),
        gated_norm=gated_norm,
    )


def build_hybrid_mamba_2(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Mamba 2 inside Bamba and Granite 4."""
    del family, kind
    inner = reader.read_size("mamba_expand") * reader.read_size("hidden_size")
    return (_build_hybrid_layer(reader, inner),)


def build_parallel_mamba_2(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Falcon-H1: Mamba 2 and attention on the same input."""
    inner = reader.read_optional_size("mamba_d_ssm") or reader.read_size("mamba_expand") * reader.read_size(
        "hidden_size"
    )
    if reader.read_flag("projectors_bias") != reader.read_flag("mamba_proj_bias"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED", "/projectors_bias", "only known where it equals mamba_proj_bias"
        )
    mixer = _build_hybrid_layer(reader, inner, gated_norm=reader.read_flag("mamba_rms_norm"))
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
