"""Diffusion models from the ``config.json`` of diffusers, which names its class in ``_class_name``.

U-Nets of convolutions with cross-attention (Rombach et al. 2022), their autoencoder, and transformers over
patches of latents: with an adaptive norm (Peebles and Xie 2022), with cross-attention to a text, or with a
joint attention over text and latents (Esser et al. 2024).
"""

from collections.abc import Callable, Mapping
from functools import partial

from service.planning.architecture import Architecture, Block, Input, Layer
from service.planning.formats.huggingface.parts import (
    attend,
    conv,
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
from service.planning.formats.huggingface.reader import ConfigReader, Family, invalid
from service.planning.layers import (
    Attention,
    Convolution,
    Modulation,
    Resampling,
    SimpleLayer,
)

_FREQUENCIES = 256
"""Sines and cosines that a time step is spread over."""
_TEXT = Input(name="text", kind="source_tokens")


def _latent(
    reader: ConfigReader, channels: int, *, downsampling: int = 8, frames: int = 1, size: str = "sample_size"
) -> Input:
    """Latents of the autoencoder that these models are published with, in pixels of the sample."""
    cells = reader.config.get(size)
    known = isinstance(cells, int) and not isinstance(cells, bool) and cells > 0
    return Input(
        name="latent",
        kind="latent",
        channels=channels,
        height=int(cells) * downsampling if known and isinstance(cells, int) else None,
        downsampling=downsampling,
        frame_downsampling=frames,
    )


def modulate(condition: int, hidden: int, vectors: int) -> Modulation:
    """Shifts, scales and gates."""
    return Modulation(condition_size=condition, hidden_size=hidden, vectors=vectors)


def _embed(columns: int, hidden: int) -> tuple[SimpleLayer, SimpleLayer]:
    """Two matrices with an activation between them, on one vector a sample."""
    return linear(columns, hidden), linear(hidden, hidden)


def _once(*layers: SimpleLayer, over: str = "latent", count: int = 1) -> Block:
    return part(*layers, over=over, once=True, count=count)


def _width(reader: ConfigReader) -> int:
    return reader.size("num_attention_heads") * reader.size("attention_head_dim")


def _only(reader: ConfigReader, name: str, allowed: tuple[object, ...]) -> None:
    """Refuse a setting other than those that are known to leave the tensors as they are."""
    if name in reader.config and reader.config[name] not in allowed:
        raise unsupported(name, f"{name} is known as {' or '.join(str(value) for value in allowed)} only")


def _dit(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    depth, channels = reader.depth("num_layers"), reader.size_or("in_channels", 4)
    step, out = reader.size_or("patch_size", 2), reader.size_or("out_channels", channels)
    _only(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    _only(reader, "norm_elementwise_affine", (False,))
    bias = reader.flag("attention_bias", default=True)
    classes = reader.size("num_embeds_ada_norm") + 1
    # Each block embeds time and class anew; one class stands for none.
    condition = _once(*_embed(_FREQUENCIES, hidden), learned("tokens", hidden, classes), count=depth)
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
        inputs=(_latent(reader, channels),),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            condition,
            block,
            _once(modulate(hidden, hidden, 2)),
            part(plain_norm(hidden), linear(hidden, step**2 * out), over="latent"),
        ),
    )


def _captions(columns: int, hidden: int) -> Block:
    return part(*_embed(columns, hidden), over="text")


def _tabled(  # the block of PixArt, LTX and Wan, which adds a learned table to one shared modulation
    hidden: int, *attention: SimpleLayer, inner: int, between: SimpleLayer | None = None
) -> tuple[SimpleLayer, ...]:
    own, cross = attention
    return (
        learned("scale", hidden, 6),
        plain_norm(hidden),
        own,
        *((between,) if between else ()),
        cross,
        plain_norm(hidden),
        mlp(hidden, inner),
    )


def _pixart(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels, step = reader.size_or("in_channels", 4), reader.size_or("patch_size", 2)
    out, bias = reader.size_or("out_channels", channels), reader.flag("attention_bias", default=True)
    _only(reader, "norm_elementwise_affine", (False,))
    _only(
        reader,
        "activation_fn",
        (
            "gelu-approximate",
            "gelu",
        ),
    )
    own = attend(hidden, heads, bias=bias)
    cross = attend(hidden, heads, bias=bias, cross=reader.size("cross_attention_dim"))
    condition: list[SimpleLayer] = [*_embed(_FREQUENCIES, hidden), modulate(hidden, hidden, 6)]
    # The models for 1024 pixels are told height and width and their ratio.
    if reader.flag("use_additional_conditions", default=reader.config.get("sample_size") == 128):  # noqa: PLR2004
        condition += [*_embed(_FREQUENCIES, hidden // 3)] * 2
    return Architecture(
        inputs=(_latent(reader, channels), _TEXT),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            _once(*condition),
            _captions(reader.size("caption_channels"), hidden),
            Block(
                layers=_tabled(hidden, own, cross, inner=4 * hidden),
                count=reader.depth("num_layers"),
                over=("latent",),
                reads=("text",),
            ),
            part(
                learned("scale", hidden, 2), plain_norm(hidden), linear(hidden, step**2 * out), over="latent"
            ),
        ),
    )


def _ltx(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 128)
    _only(reader, "norm_elementwise_affine", (False,))
    _only(reader, "qk_norm", ("rms_norm_across_heads",))
    bias, out_bias = (reader.flag(name, default=True) for name in ("attention_bias", "attention_out_bias"))
    attention = partial(attend, hidden, heads, bias=bias, output_bias=out_bias, query_key_norm="projection")
    block = _tabled(
        hidden, attention(), attention(cross=reader.size("cross_attention_dim")), inner=4 * hidden
    )
    return Architecture(
        inputs=(_latent(reader, channels, downsampling=32, frames=8), _TEXT),
        layers=(
            part(linear(channels, hidden), over="latent"),
            _once(*_embed(_FREQUENCIES, hidden), modulate(hidden, hidden, 6)),
            _captions(reader.size("caption_channels"), hidden),
            Block(layers=block, count=reader.depth("num_layers"), over=("latent",), reads=("text",)),
            part(
                learned("scale", hidden, 2),
                plain_norm(hidden),
                linear(hidden, reader.size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


def _wan(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 16)
    frames, high, wide = _three(reader, "patch_size", (1, 2, 2))
    _only(reader, "qk_norm", ("rms_norm_across_heads",))
    _only(reader, "image_dim", (None,))
    _only(reader, "added_kv_proj_dim", (None,))
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
        inputs=(_latent(reader, channels, frames=4), _TEXT),
        layers=(
            part(stem, over="latent"),
            _once(*_embed(reader.size_or("freq_dim", 256), hidden), modulate(hidden, hidden, 6)),
            _captions(reader.size_or("text_dim", 4096), hidden),
            Block(layers=block, count=reader.depth("num_layers"), over=("latent",), reads=("text",)),
            part(learned("scale", hidden, 2), plain_norm(hidden), linear(hidden, out), over="latent"),
        ),
    )


def _three(reader: ConfigReader, name: str, default: tuple[int, int, int]) -> tuple[int, int, int]:
    values = numbers(reader, name, default)
    if len(values) != 3 or values[1] != values[2]:  # noqa: PLR2004
        raise invalid(name, f"{name} must be frames, rows and as many columns")
    return values[0], values[1], values[2]


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


def _sd3(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads, depth = _width(reader), reader.size("num_attention_heads"), reader.depth("num_layers")
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
        inputs=(_latent(reader, channels), _TEXT),
        layers=(
            part(patches(channels, hidden, step), over="latent"),
            _once(*_embed(_FREQUENCIES, hidden), *_embed(reader.size("pooled_projection_dim"), hidden)),
            part(linear(reader.size("joint_attention_dim"), hidden), over="text"),
            *streams,
            part(*last, over="text"),
            _once(modulate(hidden, hidden, 2)),
            part(
                plain_norm(hidden),
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
        _once(modulate(hidden, hidden, 2)),
    )


def _pooled_condition(reader: ConfigReader, hidden: int) -> Block:
    layers = [*_embed(_FREQUENCIES, hidden), *_embed(reader.size("pooled_projection_dim"), hidden)]
    if reader.flag("guidance_embeds"):
        layers += _embed(_FREQUENCIES, hidden)
    return _once(*layers)


def _flux(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels = reader.size_or("in_channels", 64)
    out = reader.size_or("patch_size", 1) ** 2 * reader.size_or("out_channels", channels)
    return Architecture(
        # Two by two latents are packed into one position before the model.
        inputs=(_latent(reader, channels, downsampling=16), _TEXT),
        layers=(
            part(linear(channels, hidden), over="latent"),
            _pooled_condition(reader, hidden),
            part(linear(reader.size("joint_attention_dim"), hidden), over="text"),
            *_joint(reader, hidden, heads),
            part(plain_norm(hidden), linear(hidden, out), over="latent"),
        ),
    )


def _hunyuan_video(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels, text = reader.size_or("in_channels", 16), reader.size("text_embed_dim")
    step, frames = reader.size_or("patch_size", 2), reader.size_or("patch_size_t", 1)
    _only(reader, "qk_norm", ("rms_norm",))
    _only(
        reader,
        "image_condition_type",
        (
            None,
            "latent_concat",
        ),
    )
    _only(
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
        inputs=(_latent(reader, channels, frames=4), _TEXT),
        layers=(
            part(patches(channels, hidden, step, frames=frames, frame_stride=frames), over="latent"),
            _once(*_embed(_FREQUENCIES, hidden), *_embed(text, hidden), over="text"),
            part(linear(text, hidden), over="text"),
            refiner,
            _pooled_condition(reader, hidden),
            *_joint(reader, hidden, heads),
            part(plain_norm(hidden), linear(hidden, out), over="latent"),
        ),
    )


def _cogvideox(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads = _width(reader), reader.size("num_attention_heads")
    channels, step = reader.size_or("in_channels", 16), reader.size_or("patch_size", 2)
    time, text = reader.size("time_embed_dim"), reader.size("text_embed_dim")
    frames = reader.size_or("patch_size_t", 1)
    _only(reader, "use_learned_positional_embeddings", (False,))
    _only(reader, "norm_elementwise_affine", (True,))
    reader_bias = reader.flag("attention_bias", default=True)
    attention = attend(hidden, heads, bias=reader_bias, query_key_norm="head")
    block = Block(
        layers=(
            modulate(time, hidden, 6),
            norm(hidden),
            attention,
            # The norms of queries and keys shift as well.
            learned("bias", hidden // heads, 2),
            modulate(time, hidden, 6),
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
        condition += _embed(reader.size("ofs_embed_dim"), reader.size("ofs_embed_dim"))  # type: ignore[arg-type]
    out = step**2 * frames * reader.size_or("out_channels", 16)
    return Architecture(
        inputs=(_latent(reader, channels, frames=4), _TEXT),
        layers=(
            part(
                patches(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames), over="latent"
            ),
            part(linear(text, hidden), over="text"),
            _once(*condition),
            block,
            part(norm(hidden), over="latent"),
            _once(modulate(time, hidden, 2)),
            part(norm(hidden), linear(hidden, out), over="latent"),
        ),
    )


def _mochi(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    hidden, heads, size = (
        _width(reader),
        reader.size("num_attention_heads"),
        reader.size("attention_head_dim"),
    )
    pooled, text = reader.size("pooled_projection_dim"), reader.size("text_embed_dim")
    channels, step, depth = (
        reader.size_or("in_channels", 12),
        reader.size_or("patch_size", 2),
        reader.depth("num_layers"),
    )
    _only(reader, "activation_fn", ("swiglu",))
    _only(reader, "qk_norm", ("rms_norm",))
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
        inputs=(_latent(reader, channels, frames=6), _TEXT),
        layers=(
            part(
                patches(channels, hidden, step), learned("positions", heads * (size // 2), 3), over="latent"
            ),
            _once(linear(reader.size("time_embed_dim"), hidden), linear(hidden, hidden)),
            # One query gathers the text into the condition; every token is narrowed beside it.
            part(linear(text, 2 * text), linear(text, pooled), over="text"),
            _once(linear(text, text), linear(text, hidden), over="text"),
            stream(hidden, "latent", "text", depth),
            *texts,
            last,
            _once(modulate(hidden, hidden, 2)),
            part(
                plain_norm(hidden),
                linear(hidden, step**2 * reader.size_or("out_channels", channels)),
                over="latent",
            ),
        ),
    )


def _residual(channels: int, output: int, condition: int, over: str, *, scaled: bool = False) -> Block:
    """Two convolutions behind group norms; a condition is added between them."""
    added = (modulate(condition, output, 2 if scaled else 1),) if condition else ()
    beside = (conv(channels, output, 1, shortcut=True),) if channels != output else ()
    layers = (
        norm(channels, "group"),
        conv(channels, output),
        *added,
        norm(output, "group"),
        conv(output, output),
        *beside,
    )
    return Block(layers=layers, over=(over,))


def _spatial(channels: int, heads: int, depth: int, cross: int) -> tuple[Block, ...]:
    """A transformer over the cells of a grid that reads a text, between two matrices."""
    block = Block(
        layers=(
            norm(channels),
            attend(channels, heads, bias=False, heads_field="attention_head_dim"),
            norm(channels),
            attend(channels, heads, bias=False, cross=cross, heads_field="attention_head_dim"),
            norm(channels),
            mlp(channels, 4 * channels, gated=True),
        ),
        count=depth,
        over=("latent",),
        reads=("text",),
    )
    return (
        part(norm(channels, "group"), linear(channels, channels), over="latent"),
        block,
        part(linear(channels, channels), over="latent"),
    )


def _each(reader: ConfigReader, name: str, stages: int, default: int) -> tuple[int, ...]:
    """A number for each stage, or one for all."""
    if isinstance(reader.config.get(name), list):
        values = numbers(reader, name)
        if len(values) != stages:
            raise invalid(name, f"{name} must have a number for each of the {stages} stages")
        return values
    return (reader.size_or(name, default),) * stages


def _kinds(reader: ConfigReader, name: str, stages: int, known: tuple[str, str]) -> tuple[bool, ...]:
    """Whether each stage is of the second kind."""
    value = reader.config.get(name)
    if not isinstance(value, list) or len(value) != stages:
        raise invalid(name, f"{name} must name a block for each of the {stages} stages")
    for kind in value:
        if kind not in known:
            raise unsupported(name, f"known blocks are {' and '.join(dict.fromkeys(known))}")
    return tuple(kind == known[1] for kind in value)


_UNET_OFF = (
    "only_cross_attention",
    "dual_cross_attention",
    "resnet_skip_time_act",
    "class_embeddings_concat",
    "mid_block_only_cross_attention",
)


class _UNet:
    """A U-Net while it is put together: where its skip connections leave and meet again."""

    def __init__(self, reader: ConfigReader) -> None:
        reader.refuse(*_UNET_OFF)
        for name in (
            "encoder_hid_dim_type",
            "class_embed_type",
            "cross_attention_norm",
            "num_attention_heads",
        ):
            _only(reader, name, (None,))
        _only(reader, "mid_block_type", ("UNetMidBlock2DCrossAttn",))
        _only(reader, "time_embedding_type", ("positional",))
        _only(reader, "attention_type", ("default",))
        _only(reader, "conv_in_kernel", (3,))
        _only(reader, "conv_out_kernel", (3,))
        self.reader = reader
        self.sizes = numbers(reader, "block_out_channels", (320, 640, 1280, 1280))
        stages = len(self.sizes)
        self.depths = _each(reader, "layers_per_block", stages, 2)
        self.heads = _each(reader, "attention_head_dim", stages, 8)
        self.crossed = _each(reader, "cross_attention_dim", stages, 1280)
        self.transformers = _each(reader, "transformer_layers_per_block", stages, 1)
        self.condition = reader.size_or("time_embedding_dim", 4 * self.sizes[0])
        scaling = word(reader, "resnet_time_scale_shift", "default", "default", "scale_shift")
        self.residual = partial(
            _residual, condition=self.condition, over="latent", scaled=scaling == "scale_shift"
        )

    def _attention(self, stage: int) -> tuple[Block, ...]:
        return _spatial(self.sizes[stage], self.heads[stage], self.transformers[stage], self.crossed[stage])

    def conditions(self) -> Block:
        """Time, and what else the model is told once a sample."""
        reader, size = self.reader, self.condition
        layers: list[SimpleLayer] = [linear(self.sizes[0], size), linear(size, size)]
        if reader.states("time_cond_proj_dim"):
            layers.append(linear(reader.size("time_cond_proj_dim"), self.sizes[0], bias=False))
        if reader.states("num_class_embeds"):
            layers.append(learned("tokens", size, reader.size("num_class_embeds")))
        if word(reader, "addition_embed_type", "", "text_time"):
            layers += _embed(reader.size("projection_class_embeddings_input_dim"), size)
        return _once(*layers)

    def down(self) -> list[Layer]:
        """From the finest grid to the coarsest."""
        kinds = ("DownBlock2D", "CrossAttnDownBlock2D")
        attends = _kinds(self.reader, "down_block_types", len(self.sizes), kinds)
        layers: list[Layer] = []
        channels = self.sizes[0]
        for stage, size in enumerate(self.sizes):
            for _ in range(self.depths[stage]):
                layers.append(self.residual(channels, size))
                layers += self._attention(stage) if attends[stage] else ()
                channels = size
            if stage < len(self.sizes) - 1:
                layers.append(part(conv(size, size, stride=2), over="latent"))
        return layers

    def middle(self) -> list[Layer]:
        """On the coarsest grid."""
        size = self.sizes[-1]
        return [self.residual(size, size), *self._attention(-1), self.residual(size, size)]

    def up(self) -> list[Layer]:
        """Back to the finest grid, each block beside the output of one on the way down."""
        kinds = ("UpBlock2D", "CrossAttnUpBlock2D")
        stages = len(self.sizes)
        attends = _kinds(self.reader, "up_block_types", stages, kinds)
        layers: list[Layer] = []
        channels = self.sizes[-1]
        for step in range(stages):
            stage = stages - 1 - step
            size, skipped = self.sizes[stage], self.sizes[max(stage - 1, 0)]
            repeats = self.depths[stage] + 1
            for index in range(repeats):
                beside = skipped if index == repeats - 1 else size
                layers.append(self.residual(channels + beside, size))
                layers += self._attention(stage) if attends[step] else ()
                channels = size
            if step < stages - 1:
                layers.append(part(Resampling(factor=0.5), conv(size, size), over="latent"))
        return layers


def _unet(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    net = _UNet(reader)
    first = net.sizes[0]
    channels, out = reader.size_or("in_channels", 4), reader.size_or("out_channels", 4)
    return Architecture(
        inputs=(_latent(reader, channels), _TEXT),
        layers=(
            part(conv(channels, first), over="latent"),
            net.conditions(),
            *net.down(),
            *net.middle(),
            *net.up(),
            part(norm(first, "group"), conv(first, out), over="latent"),
        ),
    )


def _flat(size: int, over: str, *, attends: bool) -> tuple[Layer, ...]:
    """The middle of an autoencoder, on its coarsest grid."""
    residual = _residual(size, size, 0, over)
    if not attends:
        return residual, residual
    return residual, Block(layers=(norm(size, "group"), attend(size, 1)), over=(over,)), residual


def _encoded(reader: ConfigReader, sizes: tuple[int, ...], latent: int, *, attends: bool) -> list[Layer]:
    """From pixels to mean and variance of the latents."""
    depth, last = reader.size_or("layers_per_block", 1), sizes[-1]
    layers: list[Layer] = [part(conv(reader.size_or("in_channels", 3), sizes[0]), over="image")]
    channels = sizes[0]
    for stage, size in enumerate(sizes):
        for _ in range(depth):
            layers.append(_residual(channels, size, 0, "image"))
            channels = size
        if stage < len(sizes) - 1:
            layers.append(part(conv(size, size, stride=2), over="image"))
    layers += _flat(last, "image", attends=attends)
    layers.append(part(norm(last, "group"), conv(last, 2 * latent), over="image"))
    if reader.flag("use_quant_conv", default=True):
        layers.append(part(conv(2 * latent, 2 * latent, 1), over="image"))
    return layers


def _decoded(reader: ConfigReader, sizes: tuple[int, ...], latent: int, *, attends: bool) -> list[Layer]:
    """From latents back to pixels."""
    depth, channels = reader.size_or("layers_per_block", 1), sizes[-1]
    layers: list[Layer] = []
    if reader.flag("use_post_quant_conv", default=True):
        layers.append(part(conv(latent, latent, 1), over="latent"))
    layers += [part(conv(latent, channels), over="latent"), *_flat(channels, "latent", attends=attends)]
    for step, size in enumerate(reversed(sizes)):
        for _ in range(depth + 1):
            layers.append(_residual(channels, size, 0, "latent"))
            channels = size
        if step < len(sizes) - 1:
            layers.append(part(Resampling(factor=0.5), conv(size, size), over="latent"))
    shown = reader.size_or("out_channels", 3)
    return [*layers, part(norm(channels, "group"), conv(channels, shown), over="latent")]


def _autoencoder(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    sizes = numbers(reader, "block_out_channels", (64,))
    _kinds(reader, "down_block_types", len(sizes), ("DownEncoderBlock2D",) * 2)
    _kinds(reader, "up_block_types", len(sizes), ("UpDecoderBlock2D",) * 2)
    latent = reader.size_or("latent_channels", 4)
    attends = reader.flag("mid_block_add_attention", default=True)
    seen = reader.size_or("in_channels", 3)
    inner = Input(name="latent", kind="latent", channels=latent, downsampling=2 ** (len(sizes) - 1))
    return Architecture(
        inputs=(Input(name="image", kind="image", channels=seen), inner),
        layers=(
            *_encoded(reader, sizes, latent, attends=attends),
            *_decoded(reader, sizes, latent, attends=attends),
        ),
    )


def _transformer_2d(reader: ConfigReader, suffix: str) -> Architecture:
    """The older class of DiT and PixArt, told apart by their norm."""
    kind = word(reader, "norm_type", "layer_norm")
    if kind == "ada_norm_zero":
        return _dit(reader, suffix)
    if kind == "ada_norm_single":
        return _pixart(reader, suffix)
    raise unsupported("norm_type", "known values of norm_type are ada_norm_zero, ada_norm_single")


def _class(name: str, build: Callable[[ConfigReader, str], Architecture], **defaults: int) -> Family:
    return Family(name, build, ("",), "", None, defaults)


_DIT = {"num_attention_heads": 16, "attention_head_dim": 72, "num_layers": 28, "num_embeds_ada_norm": 1000}

FAMILIES: Mapping[str, Family] = {
    "DiTTransformer2DModel": _class("DiTTransformer2DModel", _dit, **_DIT),
    "PixArtTransformer2DModel": _class(
        "PixArtTransformer2DModel",
        _pixart,
        num_attention_heads=16,
        attention_head_dim=72,
        num_layers=28,
        cross_attention_dim=1152,
    ),
    "Transformer2DModel": _class("Transformer2DModel", _transformer_2d),
    "SD3Transformer2DModel": _class(
        "SD3Transformer2DModel",
        _sd3,
        num_layers=18,
        attention_head_dim=64,
        num_attention_heads=18,
        joint_attention_dim=4096,
        pooled_projection_dim=2048,
    ),
    "FluxTransformer2DModel": _class(
        "FluxTransformer2DModel",
        _flux,
        num_layers=19,
        num_single_layers=38,
        attention_head_dim=128,
        num_attention_heads=24,
        joint_attention_dim=4096,
        pooled_projection_dim=768,
    ),
    "HunyuanVideoTransformer3DModel": _class(
        "HunyuanVideoTransformer3DModel",
        _hunyuan_video,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=20,
        num_single_layers=40,
        num_refiner_layers=2,
        text_embed_dim=4096,
        pooled_projection_dim=768,
    ),
    "CogVideoXTransformer3DModel": _class(
        "CogVideoXTransformer3DModel",
        _cogvideox,
        num_attention_heads=30,
        attention_head_dim=64,
        time_embed_dim=512,
        text_embed_dim=4096,
        num_layers=30,
    ),
    "WanTransformer3DModel": _class(
        "WanTransformer3DModel",
        _wan,
        num_attention_heads=40,
        attention_head_dim=128,
        ffn_dim=13_824,
        num_layers=40,
    ),
    "MochiTransformer3DModel": _class(
        "MochiTransformer3DModel",
        _mochi,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=48,
        pooled_projection_dim=1536,
        text_embed_dim=4096,
        time_embed_dim=256,
    ),
    "LTXVideoTransformer3DModel": _class(
        "LTXVideoTransformer3DModel",
        _ltx,
        num_attention_heads=32,
        attention_head_dim=64,
        cross_attention_dim=2048,
        num_layers=28,
        caption_channels=4096,
    ),
    "UNet2DConditionModel": _class("UNet2DConditionModel", _unet),
    "AutoencoderKL": _class("AutoencoderKL", _autoencoder),
}
