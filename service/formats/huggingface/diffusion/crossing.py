"""Transformers over patches of latents with an adaptive norm (Peebles and Xie 2022); some read a text."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    FREQUENCIES,
    build_caption_projection,
    build_embedding_layers,
    build_latent_input,
    build_modulation,
    build_sample_part,
    build_text_input,
    check_supported_value,
    compute_width,
)
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_plain_norm,
    build_unsupported_error,
    read_choice,
    read_numbers,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Convolution, SimpleLayer


def build_dit(reader: ConfigReader, suffix: str) -> Architecture:
    """DiT: time and class modulate every block."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    depth, channels = reader.read_depth("num_layers"), reader.read_size_or("in_channels", 4)
    step, out = reader.read_size_or("patch_size", 2), reader.read_size_or("out_channels", channels)
    check_supported_value(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    check_supported_value(reader, "norm_elementwise_affine", (False,))
    bias = reader.read_flag("attention_bias", default=True)
    classes = reader.read_size("num_embeds_ada_norm") + 1
    # Each block embeds time and class anew; one class stands for none.
    condition = build_sample_part(
        *build_embedding_layers(FREQUENCIES, hidden),
        build_learned_vectors("tokens", hidden, classes),
        count=depth,
    )
    block = LayerBlock(
        layers=(
            build_plain_norm(hidden),
            build_modulation(hidden, hidden, 6),
            build_attention(hidden, heads, bias=bias),
            build_plain_norm(hidden),
            build_mlp(hidden, 4 * hidden),
        ),
        count=depth,
        over=("latent",),
    )
    return Architecture(
        inputs=(build_latent_input(reader, channels),),
        layers=(
            build_part(build_patch_embedding(channels, hidden, step), over="latent"),
            condition,
            block,
            build_part(
                build_plain_norm(hidden),
                build_modulation(hidden, hidden, 2),
                build_linear(hidden, step**2 * out),
                over="latent",
            ),
        ),
    )


# The block of PixArt, LTX and Wan, which adds a learned table to one shared modulation.
def _build_modulated_layers(
    hidden: int, *attention: SimpleLayer, inner: int, between: SimpleLayer | None = None
) -> tuple[SimpleLayer, ...]:
    own, cross = attention
    return (
        build_learned_vectors("modulation", hidden, 6),
        build_plain_norm(hidden),
        own,
        *((between,) if between else ()),
        cross,
        build_plain_norm(hidden),
        build_mlp(hidden, inner),
    )


def build_pixart(reader: ConfigReader, suffix: str) -> Architecture:
    """PixArt: one shared modulation, and a text that is read."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels, step = reader.read_size_or("in_channels", 4), reader.read_size_or("patch_size", 2)
    out, bias = (
        reader.read_size_or("out_channels", channels),
        reader.read_flag("attention_bias", default=True),
    )
    check_supported_value(reader, "norm_elementwise_affine", (False,))
    check_supported_value(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    own = build_attention(hidden, heads, bias=bias)
    cross = build_attention(hidden, heads, bias=bias, cross=reader.read_size("cross_attention_dim"))
    condition: list[SimpleLayer] = [
        *build_embedding_layers(FREQUENCIES, hidden),
        build_modulation(hidden, hidden, 6),
    ]
    # The models for 1024 pixels are conditioned on height, width and their ratio.
    if reader.read_flag("use_additional_conditions", default=reader.config.get("sample_size") == 128):  # noqa: PLR2004
        condition += [*build_embedding_layers(FREQUENCIES, hidden // 3)] * 2
    return Architecture(
        inputs=(build_latent_input(reader, channels), build_text_input(120)),
        layers=(
            build_part(build_patch_embedding(channels, hidden, step), over="latent"),
            build_sample_part(*condition),
            build_caption_projection(reader.read_size("caption_channels"), hidden),
            LayerBlock(
                layers=_build_modulated_layers(hidden, own, cross, inner=4 * hidden),
                count=reader.read_depth("num_layers"),
                over=("latent",),
                reads=("text",),
            ),
            build_part(
                build_learned_vectors("modulation", hidden, 2),
                build_plain_norm(hidden),
                build_linear(hidden, step**2 * out),
                over="latent",
            ),
        ),
    )


def build_ltx(reader: ConfigReader, suffix: str) -> Architecture:
    """LTX-Video, over latents of 32 pixels and 8 frames."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels = reader.read_size_or("in_channels", 128)
    check_supported_value(reader, "norm_elementwise_affine", (False,))
    check_supported_value(reader, "qk_norm", ("rms_norm_across_heads",))
    bias, out_bias = (
        reader.read_flag(name, default=True) for name in ("attention_bias", "attention_out_bias")
    )
    attention = partial(
        build_attention, hidden, heads, bias=bias, output_bias=out_bias, query_key_norm="projection"
    )
    block = _build_modulated_layers(
        hidden, attention(), attention(cross=reader.read_size("cross_attention_dim")), inner=4 * hidden
    )
    return Architecture(
        inputs=(build_latent_input(reader, channels, downsampling=32, frames=8), build_text_input(128)),
        layers=(
            build_part(build_linear(channels, hidden), over="latent"),
            build_sample_part(
                *build_embedding_layers(FREQUENCIES, hidden), build_modulation(hidden, hidden, 6)
            ),
            build_caption_projection(reader.read_size("caption_channels"), hidden),
            LayerBlock(
                layers=block, count=reader.read_depth("num_layers"), over=("latent",), reads=("text",)
            ),
            build_part(
                build_learned_vectors("modulation", hidden, 2),
                build_plain_norm(hidden),
                build_linear(hidden, reader.read_size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


_CHANNELS_OF_16_PIXELS = 48
"""Channels of the autoencoder of Wan 2.2 5B, whose cells are 16 pixels wide; those of the others are 8."""


def build_wan(reader: ConfigReader, suffix: str) -> Architecture:
    """Wan, over patches of frames, rows and columns."""
    del suffix
    hidden, heads = compute_width(reader), reader.read_size("num_attention_heads")
    channels = reader.read_size_or("in_channels", 16)
    frames, high, wide = _read_patch_size(reader, "patch_size", (1, 2, 2))
    check_supported_value(reader, "qk_norm", ("rms_norm_across_heads",))
    check_supported_value(reader, "image_dim", (None,))
    check_supported_value(reader, "added_kv_proj_dim", (None,))
    attention = partial(build_attention, hidden, heads, query_key_norm="projection")
    block = _build_modulated_layers(
        hidden,
        attention(),
        attention(cross=hidden),
        inner=reader.read_size("ffn_dim"),
        between=build_norm(hidden) if reader.read_flag("cross_attn_norm", default=True) else None,
    )
    out = reader.read_size_or("out_channels", 16) * frames * high * wide
    stem = Convolution(
        input_channels=channels,
        output_channels=hidden,
        kernel_frames=frames,
        kernel_height=high,
        kernel_width=wide,
        frame_stride=frames,
        stride=high,
        bias=True,
        padded=False,
    )
    pixels = 16 if channels == _CHANNELS_OF_16_PIXELS else 8
    return Architecture(
        inputs=(
            build_latent_input(reader, channels, downsampling=pixels, frames=4),
            build_text_input(512),
        ),
        layers=(
            build_part(stem, over="latent"),
            build_sample_part(
                *build_embedding_layers(reader.read_size_or("freq_dim", 256), hidden),
                build_modulation(hidden, hidden, 6),
            ),
            build_caption_projection(reader.read_size_or("text_dim", 4096), hidden),
            LayerBlock(
                layers=block, count=reader.read_depth("num_layers"), over=("latent",), reads=("text",)
            ),
            build_part(
                build_learned_vectors("modulation", hidden, 2),
                build_plain_norm(hidden),
                build_linear(hidden, out),
                over="latent",
            ),
        ),
    )


def _read_patch_size(reader: ConfigReader, name: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
    values = read_numbers(reader, name, default)
    if len(values) != 3 or values[1] != values[2]:  # noqa: PLR2004
        raise build_invalid_error(name, f"{name} must be frames, rows and as many columns")
    return values[0], values[1], values[2]


def build_transformer_2d(reader: ConfigReader, suffix: str) -> Architecture:
    """The older class of DiT and PixArt, told apart by their norm."""
    kind = read_choice(reader, "norm_type", "layer_norm")
    if kind == "ada_norm_zero":
        return build_dit(reader, suffix)
    if kind == "ada_norm_single":
        return build_pixart(reader, suffix)
    raise build_unsupported_error("norm_type", "known values of norm_type are ada_norm_zero, ada_norm_single")
