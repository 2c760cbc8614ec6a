"""U-Nets of convolutions with cross-attention (Rombach et al. 2022), and their autoencoder."""

from functools import partial

from service.formats.huggingface.diffusion.parts import (
    build_embedding_layers,
    build_latent_input,
    build_modulation,
    build_sample_part,
    build_text_input,
    check_supported_value,
)
from service.formats.huggingface.parts import (
    build_activation,
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_unsupported_error,
    read_choice,
    read_numbers,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import Resampling, SimpleLayer

_MOST_REPEATS = 32


def build_residual(
    channels: int, output: int, condition: int, over: str, *, scaled: bool = False
) -> LayerBlock:
    """Two convolutions behind group norms; a condition is added between them."""
    added = (build_modulation(condition, output, 2 if scaled else 1),) if condition else ()
    beside = (build_convolution(channels, output, 1, shortcut=True),) if channels != output else ()
    layers = (
        build_norm(channels, "group"),
        build_activation(channels),
        build_convolution(channels, output),
        *added,
        build_norm(output, "group"),
        build_activation(output),
        build_convolution(output, output),
        *beside,
    )
    return LayerBlock(layers=layers, over=(over,))


def _build_spatial_transformer(channels: int, heads: int, depth: int, cross: int) -> tuple[LayerBlock, ...]:
    """A transformer over the cells of a grid that reads a text, between two matrices."""
    block = LayerBlock(
        layers=(
            build_norm(channels),
            build_attention(channels, heads, bias=False, heads_field="attention_head_dim"),
            build_norm(channels),
            build_attention(channels, heads, bias=False, cross=cross, heads_field="attention_head_dim"),
            build_norm(channels),
            build_mlp(channels, 4 * channels, gated=True),
        ),
        count=depth,
        over=("latent",),
        reads=("text",),
    )
    return (
        build_part(build_norm(channels, "group"), build_linear(channels, channels), over="latent"),
        block,
        build_part(build_linear(channels, channels), over="latent"),
    )


def _read_stage_numbers(reader: ConfigReader, name: str, stages: int, default: int) -> tuple[int, ...]:
    """A number for each stage, or one for all."""
    if isinstance(reader.config.get(name), list):
        values = read_numbers(reader, name)
        if len(values) != stages:
            raise build_invalid_error(name, f"{name} must have a number for each of the {stages} stages")
        return values
    return (reader.read_size_or(name, default),) * stages


def _check_repeats(name: str, *repeats: int) -> None:
    """Refuses more repeats than any model has layers."""
    if max(repeats) > _MOST_REPEATS:
        raise build_invalid_error(name, f"{name} must be at most {_MOST_REPEATS}")


def _read_stage_kinds(
    reader: ConfigReader, name: str, stages: int, known: tuple[str, str]
) -> tuple[bool, ...]:
    """Returns for each stage true if it is of the second kind."""
    value = reader.config.get(name)
    if not isinstance(value, list) or len(value) != stages:
        raise build_invalid_error(name, f"{name} must name a block for each of the {stages} stages")
    for kind in value:
        if kind not in known:
            raise build_unsupported_error(name, f"known blocks are {' and '.join(dict.fromkeys(known))}")
    return tuple(kind == known[1] for kind in value)


_UNET_OFF = (
    "only_cross_attention",
    "dual_cross_attention",
    "resnet_skip_time_act",
    "class_embeddings_concat",
    "mid_block_only_cross_attention",
)


class _UNet:
    """A U-Net under construction, with the places where skip connections leave and rejoin."""

    def __init__(self, reader: ConfigReader) -> None:
        reader.refuse_flags(*_UNET_OFF)
        for name in (
            "encoder_hid_dim_type",
            "class_embed_type",
            "cross_attention_norm",
            "num_attention_heads",
        ):
            check_supported_value(reader, name, (None,))
        check_supported_value(reader, "mid_block_type", ("UNetMidBlock2DCrossAttn",))
        check_supported_value(reader, "time_embedding_type", ("positional",))
        check_supported_value(reader, "attention_type", ("default",))
        check_supported_value(reader, "conv_in_kernel", (3,))
        check_supported_value(reader, "conv_out_kernel", (3,))
        self.reader = reader
        self.sizes = read_numbers(reader, "block_out_channels", (320, 640, 1280, 1280))
        stages = len(self.sizes)
        self.depths = _read_stage_numbers(reader, "layers_per_block", stages, 2)
        _check_repeats("block_out_channels", stages)
        _check_repeats("layers_per_block", *self.depths)
        self.heads = _read_stage_numbers(reader, "attention_head_dim", stages, 8)
        self.crossed = _read_stage_numbers(reader, "cross_attention_dim", stages, 1280)
        self.transformers = _read_stage_numbers(reader, "transformer_layers_per_block", stages, 1)
        self.condition = reader.read_size_or("time_embedding_dim", 4 * self.sizes[0])
        scaling = read_choice(reader, "resnet_time_scale_shift", "default", "default", "scale_shift")
        self.residual = partial(
            build_residual, condition=self.condition, over="latent", scaled=scaling == "scale_shift"
        )

    def _build_attention(self, stage: int) -> tuple[LayerBlock, ...]:
        return _build_spatial_transformer(
            self.sizes[stage], self.heads[stage], self.transformers[stage], self.crossed[stage]
        )

    def build_conditions(self) -> LayerBlock:
        """Time, and the other conditions of the model, once a sample."""
        reader, size = self.reader, self.condition
        layers: list[SimpleLayer] = [build_linear(self.sizes[0], size), build_linear(size, size)]
        if reader.has_value("time_cond_proj_dim"):
            layers.append(build_linear(reader.read_size("time_cond_proj_dim"), self.sizes[0], bias=False))
        if reader.has_value("num_class_embeds"):
            layers.append(build_learned_vectors("tokens", size, reader.read_size("num_class_embeds")))
        if read_choice(reader, "addition_embed_type", "", "text_time"):
            layers += build_embedding_layers(reader.read_size("projection_class_embeddings_input_dim"), size)
        return build_sample_part(*layers)

    def build_down_blocks(self) -> list[ModelLayer]:
        """From the finest grid to the coarsest."""
        kinds = ("DownBlock2D", "CrossAttnDownBlock2D")
        attends = _read_stage_kinds(self.reader, "down_block_types", len(self.sizes), kinds)
        layers: list[ModelLayer] = []
        channels = self.sizes[0]
        for stage, size in enumerate(self.sizes):
            for _ in range(self.depths[stage]):
                layers.append(self.residual(channels, size))
                layers += self._build_attention(stage) if attends[stage] else ()
                channels = size
            if stage < len(self.sizes) - 1:
                layers.append(build_part(build_convolution(size, size, stride=2), over="latent"))
        return layers

    def build_middle_blocks(self) -> list[ModelLayer]:
        """On the coarsest grid."""
        size = self.sizes[-1]
        return [self.residual(size, size), *self._build_attention(-1), self.residual(size, size)]

    def build_up_blocks(self) -> list[ModelLayer]:
        """Back to the finest grid, each block beside the output of one on the way down."""
        kinds = ("UpBlock2D", "CrossAttnUpBlock2D")
        stages = len(self.sizes)
        attends = _read_stage_kinds(self.reader, "up_block_types", stages, kinds)
        layers: list[ModelLayer] = []
        channels = self.sizes[-1]
        for step in range(stages):
            stage = stages - 1 - step
            size, skipped = self.sizes[stage], self.sizes[max(stage - 1, 0)]
            repeats = self.depths[stage] + 1
            for index in range(repeats):
                beside = skipped if index == repeats - 1 else size
                layers.append(self.residual(channels + beside, size))
                layers += self._build_attention(stage) if attends[step] else ()
                channels = size
            if step < stages - 1:
                layers.append(
                    build_part(Resampling(factor=0.5), build_convolution(size, size), over="latent")
                )
        return layers


def build_unet(reader: ConfigReader, suffix: str) -> Architecture:
    """The U-Net of latent diffusion."""
    del suffix
    net = _UNet(reader)
    first = net.sizes[0]
    channels, out = reader.read_size_or("in_channels", 4), reader.read_size_or("out_channels", 4)
    return Architecture(
        inputs=(build_latent_input(reader, channels), build_text_input(77)),
        layers=(
            build_part(build_convolution(channels, first), over="latent"),
            net.build_conditions(),
            *net.build_down_blocks(),
            *net.build_middle_blocks(),
            *net.build_up_blocks(),
            build_part(
                build_norm(first, "group"),
                build_activation(first),
                build_convolution(first, out),
                over="latent",
            ),
        ),
    )


def _build_middle(size: int, over: str, *, attends: bool) -> tuple[ModelLayer, ...]:
    """The middle of an autoencoder, on its coarsest grid."""
    residual = build_residual(size, size, 0, over)
    if not attends:
        return residual, residual
    return (
        residual,
        LayerBlock(layers=(build_norm(size, "group"), build_attention(size, 1)), over=(over,)),
        residual,
    )


def _build_encoder(
    reader: ConfigReader, sizes: tuple[int, ...], latent: int, *, attends: bool
) -> list[ModelLayer]:
    """From pixels to mean and variance of the latents."""
    depth, last = reader.read_size_or("layers_per_block", 1), sizes[-1]
    layers: list[ModelLayer] = [
        build_part(build_convolution(reader.read_size_or("in_channels", 3), sizes[0]), over="image")
    ]
    channels = sizes[0]
    for stage, size in enumerate(sizes):
        for _ in range(depth):
            layers.append(build_residual(channels, size, 0, "image"))
            channels = size
        if stage < len(sizes) - 1:
            layers.append(build_part(build_convolution(size, size, stride=2), over="image"))
    layers += _build_middle(last, "image", attends=attends)
    layers.append(
        build_part(
            build_norm(last, "group"),
            build_activation(last),
            build_convolution(last, 2 * latent),
            over="image",
        )
    )
    if reader.read_flag("use_quant_conv", default=True):
        layers.append(build_part(build_convolution(2 * latent, 2 * latent, 1), over="image"))
    return layers


def _build_decoder(
    reader: ConfigReader, sizes: tuple[int, ...], latent: int, *, attends: bool
) -> list[ModelLayer]:
    """From latents back to pixels."""
    depth, channels = reader.read_size_or("layers_per_block", 1), sizes[-1]
    layers: list[ModelLayer] = []
    if reader.read_flag("use_post_quant_conv", default=True):
        layers.append(build_part(build_convolution(latent, latent, 1), over="latent"))
    layers += [
        build_part(build_convolution(latent, channels), over="latent"),
        *_build_middle(channels, "latent", attends=attends),
    ]
    for step, size in enumerate(reversed(sizes)):
        for _ in range(depth + 1):
            layers.append(build_residual(channels, size, 0, "latent"))
            channels = size
        if step < len(sizes) - 1:
            layers.append(build_part(Resampling(factor=0.5), build_convolution(size, size), over="latent"))
    shown = reader.read_size_or("out_channels", 3)
    return [
        *layers,
        build_part(
            build_norm(channels, "group"),
            build_activation(channels),
            build_convolution(channels, shown),
            over="latent",
        ),
    ]


def build_autoencoder(reader: ConfigReader, suffix: str) -> Architecture:
    """The autoencoder, from pixels to latents and back."""
    del suffix
    sizes = read_numbers(reader, "block_out_channels", (64,))
    _read_stage_kinds(reader, "down_block_types", len(sizes), ("DownEncoderBlock2D",) * 2)
    _read_stage_kinds(reader, "up_block_types", len(sizes), ("UpDecoderBlock2D",) * 2)
    _check_repeats("block_out_channels", len(sizes))
    _check_repeats("layers_per_block", reader.read_size_or("layers_per_block", 1))
    latent = reader.read_size_or("latent_channels", 4)
    attends = reader.read_flag("mid_block_add_attention", default=True)
    seen = reader.read_size_or("in_channels", 3)
    inner = ModelInputShape(name="latent", kind="latent", channels=latent, downsampling=2 ** (len(sizes) - 1))
    return Architecture(
        inputs=(ModelInputShape(name="image", kind="image", channels=seen), inner),
        layers=(
            *_build_encoder(reader, sizes, latent, attends=attends),
            *_build_decoder(reader, sizes, latent, attends=attends),
        ),
    )
