"""U-Nets of convolutions with cross-attention (Rombach et al. 2022), and their autoencoder."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    embed,
    latent_input,
    modulate,
    once,
    only,
    text_input,
)
from service.formats.huggingface.parts import (
    activation,
    attend,
    conv,
    learned,
    linear,
    mlp,
    norm,
    numbers,
    part,
    unsupported,
    word,
)
from service.formats.huggingface.reader import ConfigReader, invalid
from service.planning.models.architecture import Architecture, Block, Input, Layer
from service.planning.models.layers import Resampling, SimpleLayer

_MOST_REPEATS = 32


def _residual(channels: int, output: int, condition: int, over: str, *, scaled: bool = False) -> Block:
    """Two convolutions behind group norms; a condition is added between them."""
    added = (modulate(condition, output, 2 if scaled else 1),) if condition else ()
    beside = (conv(channels, output, 1, shortcut=True),) if channels != output else ()
    layers = (
        norm(channels, "group"),
        activation(channels),
        conv(channels, output),
        *added,
        norm(output, "group"),
        activation(output),
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


def _bounded(name: str, *repeats: int) -> None:
    """Refuse what would be written out more often than any model is deep."""
    if max(repeats) > _MOST_REPEATS:
        raise invalid(name, f"{name} must be at most {_MOST_REPEATS}")


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
            only(reader, name, (None,))
        only(reader, "mid_block_type", ("UNetMidBlock2DCrossAttn",))
        only(reader, "time_embedding_type", ("positional",))
        only(reader, "attention_type", ("default",))
        only(reader, "conv_in_kernel", (3,))
        only(reader, "conv_out_kernel", (3,))
        self.reader = reader
        self.sizes = numbers(reader, "block_out_channels", (320, 640, 1280, 1280))
        stages = len(self.sizes)
        self.depths = _each(reader, "layers_per_block", stages, 2)
        _bounded("block_out_channels", stages)
        _bounded("layers_per_block", *self.depths)
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
            layers += embed(reader.size("projection_class_embeddings_input_dim"), size)
        return once(*layers)

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


def unet(reader: ConfigReader, suffix: str) -> Architecture:
    """The U-Net of latent diffusion."""
    del suffix
    net = _UNet(reader)
    first = net.sizes[0]
    channels, out = reader.size_or("in_channels", 4), reader.size_or("out_channels", 4)
    return Architecture(
        inputs=(latent_input(reader, channels), text_input(77)),
        layers=(
            part(conv(channels, first), over="latent"),
            net.conditions(),
            *net.down(),
            *net.middle(),
            *net.up(),
            part(norm(first, "group"), activation(first), conv(first, out), over="latent"),
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
    layers.append(part(norm(last, "group"), activation(last), conv(last, 2 * latent), over="image"))
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
    return [
        *layers,
        part(norm(channels, "group"), activation(channels), conv(channels, shown), over="latent"),
    ]


def autoencoder(reader: ConfigReader, suffix: str) -> Architecture:
    """The autoencoder, from pixels to latents and back."""
    del suffix
    sizes = numbers(reader, "block_out_channels", (64,))
    _kinds(reader, "down_block_types", len(sizes), ("DownEncoderBlock2D",) * 2)
    _kinds(reader, "up_block_types", len(sizes), ("UpDecoderBlock2D",) * 2)
    _bounded("block_out_channels", len(sizes))
    _bounded("layers_per_block", reader.size_or("layers_per_block", 1))
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
