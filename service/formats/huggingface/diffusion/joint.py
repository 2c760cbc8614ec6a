"""Transformers with a joint attention over text and latents (Esser et al. 2024)."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    FREQUENCIES,
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
    part,
    patches,
    plain_norm,
    unsupported,
    word,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture, Block, Layer
from service.planning.models.layers import Attention, SimpleLayer


def _stream(
    hidden: int, attention: Attention, *, over: str, joins: str, count: int, vectors: int = 6
) -> Block:
    """One of the two streams of a joint block, modulated by the same condition."""
    return Block(
        layers=(
            plain_norm(hidden),
            modulate(hidden, hidden, vectors),
            attention,
            plain_norm(hidden),
            mlp(hidden, 4 * hidden),
        ),
        count=count,
        over=(over,),
        joins=(joins,),
    )


def sd3(reader: ConfigReader, suffix: str) -> Architecture:
    """Stable Diffusion 3: two streams, the text's last block cut short."""
    del suffix
    hidden, heads, depth = width_of(reader), reader.size("num_attention_heads"), reader.depth("num_layers")
    channels, step = reader.size_or("in_channels", 16), reader.size_or("patch_size", 2)
    if reader.size_or("caption_projection_dim", hidden) != hidden:
        raise unsupported("caption_projection_dim", "caption_projection_dim must be the width of the model")
    normed = word(reader, "qk_norm", "", "rms_norm") == "rms_norm"
    attention = attend(hidden, heads, query_key_norm="head" if normed else "none")
    dual = reader.indexes("dual_attention_layers")
    streams: list[Layer] = []
    for twice in (False, True):
        count = sum((index in dual) is twice for index in range(depth))
        if count:
            vectors = 9 if twice else 6
            streams.append(
                _stream(hidden, attention, over="latent", joins="text", count=count, vectors=vectors)
            )
    if dual:
        # The second attention of these layers sees the latents alone.
        streams.append(part(attention, over="latent", count=len(dual)))
    if depth > 1:
        streams.append(_stream(hidden, attention, over="text", joins="latent", count=depth - 1))
    # The last block gives the text's queries, keys and values, and nothing behind them.
    last: tuple[SimpleLayer, ...] = (
        plain_norm(hidden),
        modulate(hidden, hidden, 2),
        linear(hidden, 3 * hidden),
    )
    if normed:
        last = (*last, learned("scale", hidden // heads, 2))
    return Architecture(
        inputs=(latent_input(reader, channels), text_input(333)),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            once(*embed(FREQUENCIES, hidden), *embed(reader.size("pooled_projection_dim"), hidden)),
            part(linear(reader.size("joint_attention_dim"), hidden), over="text"),
            *streams,
            part(*last, over="text"),
            part(
                plain_norm(hidden),
                modulate(hidden, hidden, 2),
                linear(hidden, step**2 * reader.size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


def _joint(reader: ConfigReader, hidden: int, heads: int, *, ratio: int = 4) -> tuple[Layer, ...]:
    """Blocks of two streams, then blocks of one over text and latents in a row (Flux)."""
    attention = attend(hidden, heads, query_key_norm="head")
    depth, single = reader.depth("num_layers"), reader.depth("num_single_layers")
    alone = (
        plain_norm(hidden),
        modulate(hidden, hidden, 3),
        # One matrix is the output of attention and of the feed-forward beside it, with one bias.
        attend(hidden, heads, output_bias=False, query_key_norm="head"),
        mlp(hidden, ratio * hidden),
    )
    return (
        _stream(hidden, attention, over="latent", joins="text", count=depth),
        _stream(hidden, attention, over="text", joins="latent", count=depth),
        Block(layers=alone, count=single, over=("text", "latent")),
    )


def _pooled_condition(reader: ConfigReader, hidden: int) -> Block:
    layers = [*embed(FREQUENCIES, hidden), *embed(reader.size("pooled_projection_dim"), hidden)]
    if reader.flag("guidance_embeds"):
        layers += embed(FREQUENCIES, hidden)
    return once(*layers)


def flux(reader: ConfigReader, suffix: str) -> Architecture:
    """Flux: blocks of two streams, then of one."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 64)
    out = reader.size_or("patch_size", 1) ** 2 * reader.size_or("out_channels", channels)
    return Architecture(
        # Two by two latents are packed into one position before the model.
        inputs=(latent_input(reader, channels, downsampling=16), text_input(512)),
        layers=(
            part(linear(channels, hidden), over="latent"),
            _pooled_condition(reader, hidden),
            part(linear(reader.size("joint_attention_dim"), hidden), over="text"),
            *_joint(reader, hidden, heads),
            part(plain_norm(hidden), modulate(hidden, hidden, 2), linear(hidden, out), over="latent"),
        ),
    )


def hunyuan_video(reader: ConfigReader, suffix: str) -> Architecture:
    """HunyuanVideo: Flux over video, behind a refiner of the text."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels, text = reader.size_or("in_channels", 16), reader.size("text_embed_dim")
    step, frames = reader.size_or("patch_size", 2), reader.size_or("patch_size_t", 1)
    only(reader, "qk_norm", ("rms_norm",))
    only(
        reader,
        "image_condition_type",
        (
            None,
            "latent_concat",
        ),
    )
    only(
        reader,
        "mlp_ratio",
        (
            4.0,
            4,
        ),
    )
    refiner = Block(
        layers=(
            norm(hidden),
            attend(hidden, heads),
            norm(hidden),
            mlp(hidden, 4 * hidden),
            modulate(hidden, hidden, 2),
        ),
        count=reader.depth("num_refiner_layers"),
        over=("text",),
    )
    out = step**2 * frames * reader.size_or("out_channels", 16)
    return Architecture(
        inputs=(latent_input(reader, channels, frames=4), text_input(256)),
        layers=(
            part(patches(channels, hidden, step, frames=frames, frame_stride=frames), over="latent"),
            once(*embed(FREQUENCIES, hidden), *embed(text, hidden), over="text"),
            part(linear(text, hidden), over="text"),
            refiner,
            _pooled_condition(reader, hidden),
            *_joint(reader, hidden, heads),
            part(plain_norm(hidden), modulate(hidden, hidden, 2), linear(hidden, out), over="latent"),
        ),
    )


def cogvideox(reader: ConfigReader, suffix: str) -> Architecture:
    """CogVideoX: text and video in one sequence."""
    del suffix
    hidden, heads = width_of(reader), reader.size("num_attention_heads")
    channels, step = reader.size_or("in_channels", 16), reader.size_or("patch_size", 2)
    time, text = reader.size("time_embed_dim"), reader.size("text_embed_dim")
    frames = reader.size_or("patch_size_t", 1)
    only(reader, "use_learned_positional_embeddings", (False,))
    only(reader, "norm_elementwise_affine", (True,))
    reader_bias = reader.flag("attention_bias", default=True)
    attention = attend(hidden, heads, bias=reader_bias, query_key_norm="head", query_key_norm_shift=True)
    block = Block(
        layers=(
            modulate(time, hidden, 6, streams=2),
            norm(hidden),
            attention,
            modulate(time, hidden, 6, streams=2),
            norm(hidden),
            mlp(hidden, 4 * hidden),
        ),
        count=reader.depth("num_layers"),
        over=("text", "latent"),
    )
    # Patches of several frames are made by a matrix, which always has a bias.
    bias = reader.flag("patch_bias", default=True) or reader.states("patch_size_t")
    condition = [linear(hidden, time), linear(time, time)]
    if reader.states("ofs_embed_dim"):
        condition += embed(reader.size("ofs_embed_dim"), reader.size("ofs_embed_dim"))  # type: ignore[arg-type]
    out = step**2 * frames * reader.size_or("out_channels", 16)
    return Architecture(
        inputs=(latent_input(reader, channels, frames=4), text_input(226)),
        layers=(
            part(
                patches(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames), over="latent"
            ),
            part(linear(text, hidden), over="text"),
            once(*condition),
            block,
            part(norm(hidden), over="latent"),
            part(norm(hidden), modulate(time, hidden, 2), linear(hidden, out), over="latent"),
        ),
    )


def mochi(reader: ConfigReader, suffix: str) -> Architecture:
    """Mochi: two streams of different width."""
    del suffix
    hidden, heads, size = (
        width_of(reader),
        reader.size("num_attention_heads"),
        reader.size("attention_head_dim"),
    )
    pooled, text = reader.size("pooled_projection_dim"), reader.size("text_embed_dim")
    channels, step, depth = (
        reader.size_or("in_channels", 12),
        reader.size_or("patch_size", 2),
        reader.depth("num_layers"),
    )
    only(reader, "activation_fn", ("swiglu",))
    only(reader, "qk_norm", ("rms_norm",))
    attention = partial(attend, heads=heads, head_size=size, bias=False, query_key_norm="head")

    def stream(width: int, over: str, joins: str, count: int) -> Block:
        layers = (
            plain_norm(width),
            modulate(hidden, width, 4),
            attention(width),
            plain_norm(width),
            mlp(width, 4 * width * 2 // 3, gated=True, bias=False),
        )
        return Block(layers=layers, count=count, over=(over,), joins=(joins,))

    texts = (stream(pooled, "text", "latent", depth - 1),) if depth > 1 else ()
    last = part(
        plain_norm(pooled),
        modulate(hidden, pooled, 1),
        linear(pooled, 3 * hidden, bias=False),
        learned("scale", size, 2),
        over="text",
    )
    return Architecture(
        inputs=(latent_input(reader, channels, frames=6), text_input(256)),
        layers=(
            part(
                patches(channels, hidden, step), learned("positions", heads * (size // 2), 3), over="latent"
            ),
            once(linear(reader.size("time_embed_dim"), hidden), linear(hidden, hidden)),
            # One query gathers the text into the condition; every token is narrowed beside it.
            part(linear(text, 2 * text), linear(text, pooled), over="text"),
            once(linear(text, text), linear(text, hidden), over="text"),
            stream(hidden, "latent", "text", depth),
            *texts,
            last,
            part(
                plain_norm(hidden),
                modulate(hidden, hidden, 2),
                linear(hidden, step**2 * reader.size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )
