"""Transformers over patches of latents with an adaptive norm (Peebles and Xie 2022); some read a text."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    FREQUENCIES,
    caption_projection,
    embed,
    latent_input,
    modulate,
    once,
    only,
    text_input,
    width_of,
)
from service.formats.huggingface.parts import (
    attend,
    learned,
    linear,
    mlp,
    norm,
    numbers,
    part,
    patches,
    plain_norm,
    unsupported,
    word,
)
from service.formats.huggingface.reader import ConfigReader, invalid
from service.planning.models.architecture import Architecture, Block
from service.planning.models.layers import Convolution, SimpleLayer


def dit(reader: ConfigReader, suffix: str) -> Architecture:
    """DiT: time and class modulate every block."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    depth, channels = reader.depth("num_layers"), reader.size_or("in_channels", 4)
    step, out = reader.size_or("patch_size", 2), reader.size_or("out_channels", channels)
    only(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    only(reader, "norm_elementwise_affine", (False,))
    bias = reader.flag("attention_bias", default=True)
    classes = reader.size("num_embeds_ada_norm") + 1
    # Each block embeds time and class anew; one class stands for none.
    condition = once(*embed(FREQUENCIES, hidden), learned("tokens", hidden, classes), count=depth)
    block = Block(
        layers=(
            plain_norm(hidden),
            modulate(hidden, hidden, 6),
            attend(hidden, heads, bias=bias),
            plain_norm(hidden),
            mlp(hidden, 4 * hidden),
        ),
        count=depth,
        over=("latent",),
    )
    return Architecture(
        inputs=(latent_input(reader, channels),),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            condition,
            block,
            part(
                plain_norm(hidden),
                modulate(hidden, hidden, 2),
                linear(hidden, step**2 * out),
                over="latent",
            ),
        ),
    )


def _tabled(  # the block of PixArt, LTX and Wan, which adds a learned table to one shared modulation
    hidden: int, *attention: SimpleLayer, inner: int, between: SimpleLayer | None = None
) -> tuple[SimpleLayer, ...]:
    own, cross = attention
    return (
        learned("modulation", hidden, 6),
        plain_norm(hidden),
        own,
        *((between,) if between else ()),
        cross,
        plain_norm(hidden),
        mlp(hidden, inner),
    )


def pixart(reader: ConfigReader, suffix: str) -> Architecture:
    """PixArt: one shared modulation, and a text that is read."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels, step = reader.size_or("in_channels", 4), reader.size_or("patch_size", 2)
    out, bias = reader.size_or("out_channels", channels), reader.flag("attention_bias", default=True)
    only(reader, "norm_elementwise_affine", (False,))
    only(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    own = attend(hidden, heads, bias=bias)
    cross = attend(hidden, heads, bias=bias, cross=reader.size("cross_attention_dim"))
    condition: list[SimpleLayer] = [*embed(FREQUENCIES, hidden), modulate(hidden, hidden, 6)]
    # The models for 1024 pixels are told height and width and their ratio.
    if reader.flag("use_additional_conditions", default=reader.config.get("sample_size") == 128):  # noqa: PLR2004
        condition += [*embed(FREQUENCIES, hidden // 3)] * 2
    return Architecture(
        inputs=(latent_input(reader, channels), text_input(120)),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            once(*condition),
            caption_projection(reader.size("caption_channels"), hidden),
            Block(
                layers=_tabled(hidden, own, cross, inner=4 * hidden),
                count=reader.depth("num_layers"),
                over=("latent",),
                reads=("text",),
            ),
            part(
                learned("modulation", hidden, 2),
                plain_norm(hidden),
                linear(hidden, step**2 * out),
                over="latent",
            ),
        ),
    )


def ltx(reader: ConfigReader, suffix: str) -> Architecture:
    """LTX-Video, over latents of 32 pixels and 8 frames."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 128)
    only(reader, "norm_elementwise_affine", (False,))
    only(reader, "qk_norm", ("rms_norm_across_heads",))
    bias, out_bias = (reader.flag(name, default=True) for name in ("attention_bias", "attention_out_bias"))
    attention = partial(attend, hidden, heads, bias=bias, output_bias=out_bias, query_key_norm="projection")
    block = _tabled(
        hidden, attention(), attention(cross=reader.size("cross_attention_dim")), inner=4 * hidden
    )
    return Architecture(
        inputs=(latent_input(reader, channels, downsampling=32, frames=8), text_input(128)),
        layers=(
            part(linear(channels, hidden), over="latent"),
            once(*embed(FREQUENCIES, hidden), modulate(hidden, hidden, 6)),
            caption_projection(reader.size("caption_channels"), hidden),
            Block(layers=block, count=reader.depth("num_layers"), over=("latent",), reads=("text",)),
            part(
                learned("modulation", hidden, 2),
                plain_norm(hidden),
                linear(hidden, reader.size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


def wan(reader: ConfigReader, suffix: str) -> Architecture:
    """Wan, over patches of frames, rows and columns."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 16)
    frames, high, wide = _three(reader, "patch_size", (1, 2, 2))
    only(reader, "qk_norm", ("rms_norm_across_heads",))
    only(reader, "image_dim", (None,))
    only(reader, "added_kv_proj_dim", (None,))
    attention = partial(attend, hidden, heads, query_key_norm="projection")
    block = _tabled(
        hidden,
        attention(),
        attention(cross=hidden),
        inner=reader.size("ffn_dim"),
        between=norm(hidden) if reader.flag("cross_attn_norm", default=True) else None,
    )
    out = reader.size_or("out_channels", 16) * frames * high * wide
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
    return Architecture(
        inputs=(latent_input(reader, channels, frames=4), text_input(512)),
        layers=(
            part(stem, over="latent"),
            once(*embed(reader.size_or("freq_dim", 256), hidden), modulate(hidden, hidden, 6)),
            caption_projection(reader.size_or("text_dim", 4096), hidden),
            Block(layers=block, count=reader.depth("num_layers"), over=("latent",), reads=("text",)),
            part(learned("modulation", hidden, 2), plain_norm(hidden), linear(hidden, out), over="latent"),
        ),
    )


def _three(reader: ConfigReader, name: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
    values = numbers(reader, name, default)
    if len(values) != 3 or values[1] != values[2]:  # noqa: PLR2004
        raise invalid(name, f"{name} must be frames, rows and as many columns")
    return values[0], values[1], values[2]


def transformer_2d(reader: ConfigReader, suffix: str) -> Architecture:
    """The older class of DiT and PixArt, told apart by their norm."""
    kind = word(reader, "norm_type", "layer_norm")
    if kind == "ada_norm_zero":
        return dit(reader, suffix)
    if kind == "ada_norm_single":
        return pixart(reader, suffix)
    raise unsupported("norm_type", "known values of norm_type are ada_norm_zero, ada_norm_single")
