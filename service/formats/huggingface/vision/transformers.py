"""Transformers over patches (Dosovitskiy et al. 2020), whole images or windows of them (Swin)."""

from dataclasses import replace
from typing import Literal, NamedTuple

from service.formats.huggingface.parts import (
    attend,
    classifier,
    function_named,
    learned,
    linear,
    merge,
    mlp,
    norm,
    numbers,
    part,
    patches,
    pooler,
    side,
    unsupported,
    whole,
    words,
)
from service.formats.huggingface.reader import ConfigReader, invalid
from service.planning.models.architecture import Architecture, Block, Head, Input, Layer
from service.planning.models.layers import SimpleLayer

CLASSIFICATION = "ForImageClassification"


class Patches(NamedTuple):
    """What distinguishes one vision transformer from the first (Dosovitskiy et al. 2020)."""

    class_tokens: int = 1
    positions: bool = True
    patch_bias: bool = True
    norm_first: bool = False
    final_norm: bool = True
    key_bias: bool = True
    biases: str = ""
    layer_scale: bool = False
    masked: Literal["never", "by_default", "always"] = "never"
    registers: bool = False
    usual_registers: int = 0
    inner: str = "intermediate_size"
    function: str = "gelu"


def image_input(reader: ConfigReader, *, channels: str = "num_channels", size: str = "image_size") -> Input:
    """The image that a tower sees; its published size stands in where a sample does not say."""
    return Input(name="image", kind="image", channels=reader.size_or(channels, 3), height=side(reader, size))


def grid_side(reader: ConfigReader, *, image: str = "image_size", patch: str = "patch_size") -> int:
    """Patches along one side of the published image."""
    pixels, step = side(reader, image), side(reader, patch)
    if pixels is None or step is None or pixels < step:
        raise invalid(image, f"{image} holds no patch")
    return pixels // step


def _inner(reader: ConfigReader, kind: Patches, hidden: int) -> int:
    if kind.inner != "mlp_ratio":
        return reader.size(kind.inner)
    return int(hidden * ratio(reader, "mlp_ratio", 4.0))


def ratio(reader: ConfigReader, name: str, default: float) -> float:
    """A positive number; a field left out takes ``default``."""
    value = reader.config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:  # noqa: PLR2004
        raise invalid(name, f"{name} must be a positive number")
    return float(value)


def _attention(reader: ConfigReader, kind: Patches, hidden: int, heads: int) -> tuple[SimpleLayer, ...]:
    both = reader.flag(kind.biases, default=True) if kind.biases else True
    dropout = reader.drops("attention_probs_dropout_prob") or reader.drops("attention_dropout")
    own = attend(hidden, heads, bias=both and kind.key_bias, dropout=dropout)
    if kind.key_bias or not both:
        return (own,)
    return (own, learned("bias", hidden, 2))


def vision_transformer(reader: ConfigReader, kind: Patches, over: str = "image") -> tuple[Layer, ...]:
    """Patches, class tokens and positions, the blocks, and the norm behind them."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    step = side(reader, "patch_size") or 1
    stem: list[SimpleLayer] = [patches(reader.size_or("num_channels", 3), hidden, step, bias=kind.patch_bias)]
    extra = kind.class_tokens + (
        whole(reader, "num_register_tokens", kind.usual_registers) if kind.registers else 0
    )
    if extra:
        stem.append(learned("class_tokens", hidden, extra))
    if kind.positions:
        stem.append(learned("positions", hidden, grid_side(reader) ** 2 + kind.class_tokens))
    switched = kind.masked == "by_default" and reader.flag("use_mask_token", default=True)
    if kind.masked == "always" or switched:
        stem.append(learned("mask_token", hidden))
    if kind.norm_first:
        stem.append(norm(hidden))
    scale = (learned("layer_scale", hidden),) if kind.layer_scale else ()
    block = Block(
        layers=(
            norm(hidden),
            *_attention(reader, kind, hidden, heads),
            *scale,
            norm(hidden),
            _feed_forward(reader, kind, hidden),
            *scale,
        ),
        count=reader.depth("num_hidden_layers"),
        over=(over,),
    )
    behind = (part(norm(hidden), over=over),) if kind.final_norm else ()
    return (part(*stem, over=over), block, *behind)


def _feed_forward(reader: ConfigReader, kind: Patches, hidden: int) -> SimpleLayer:
    inner = _inner(reader, kind, hidden)
    if reader.flag("use_swiglu_ffn"):
        # Two thirds of the width, rounded up to eight, keep the parameters of an ungated one.
        return mlp(hidden, (int(inner * 2 / 3) + 7) // 8 * 8, gated=True)
    return mlp(
        hidden,
        inner,
        gated=reader.flag("use_gated_mlp"),
        bias=reader.flag("mlp_bias", default=True),
        function=function_named(reader, "hidden_act", kind.function),
        dropout=reader.drops("hidden_dropout_prob"),
    )


VIT = Patches(biases="qkv_bias")


DEIT = Patches(class_tokens=2, biases="qkv_bias")


DINOV2 = Patches(biases="qkv_bias", layer_scale=True, masked="by_default", inner="mlp_ratio")


REGISTERS = DINOV2._replace(registers=True, usual_registers=4)


DINOV3 = Patches(positions=False, key_bias=False, layer_scale=True, masked="always", registers=True)


CLIP_VISION = Patches(patch_bias=False, norm_first=True, function="quick_gelu")


SIGLIP_VISION = Patches(class_tokens=0)


def vit(kind: Patches, reader: ConfigReader, suffix: str) -> Architecture:
    """A vision transformer with the heads of its class."""
    hidden = reader.size("hidden_size")
    heads: tuple[Head, ...] = ()
    if suffix == CLASSIFICATION:
        # DINOv2 classifies on its class token beside the mean of its patches.
        doubled = kind in (DINOV2, REGISTERS)
        heads = (classifier(hidden * (2 if doubled else 1), reader.labels()),)
    elif suffix == "ForImageClassificationWithTeacher":
        heads = (classifier(hidden, reader.labels()), classifier(hidden, reader.labels()))
    elif kind in (VIT, DEIT):
        heads = (pooler(hidden, reader.size_or("pooler_output_size", hidden)),)
    if kind is DINOV3:
        for name, usual in (
            ("query_bias", True),
            ("key_bias", False),
            ("value_bias", True),
            ("proj_bias", True),
        ):
            if reader.flag(name, default=usual) is not usual:
                raise unsupported(name, f"{name} other than {str(usual).lower()} is not supported")
    return Architecture(inputs=(image_input(reader),), layers=vision_transformer(reader, kind), heads=heads)


def beit(reader: ConfigReader, suffix: str) -> Architecture:
    """BEiT: relative positions, and values and queries that alone have a bias."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    step = side(reader, "patch_size") or 1
    across = grid_side(reader)
    stem: list[SimpleLayer] = [
        patches(reader.size_or("num_channels", 3), hidden, step),
        learned("class_tokens", hidden),
    ]
    if reader.flag("use_mask_token"):
        stem.append(learned("mask_token", hidden))
    if reader.flag("use_absolute_position_embeddings"):
        stem.append(learned("positions", hidden, across**2 + 1))
    # A row for each offset between two patches, and three for the class token.
    table = learned("relative_positions", heads, (2 * across - 1) ** 2 + 3)
    if reader.flag("use_shared_relative_position_bias"):
        stem.append(table)
    each = (table,) if reader.flag("use_relative_position_bias") else ()
    scales = ratio(reader, "layer_scale_init_value", 0.1) > 0
    scale = (learned("layer_scale", hidden),) if scales else ()
    own = attend(
        hidden,
        heads,
        bias=False,
        dropout=reader.drops("attention_probs_dropout_prob"),
        score_bias=True,
    )
    block = Block(
        layers=(
            norm(hidden),
            own,
            learned("bias", hidden, 2),
            *each,
            *scale,
            norm(hidden),
            mlp(hidden, reader.size("intermediate_size")),
            *scale,
        ),
        count=reader.depth("num_hidden_layers"),
        over=("image",),
    )
    made: tuple[Head, ...] = ()
    behind = norm(hidden)
    if suffix == CLASSIFICATION:
        made = (classifier(hidden, reader.labels()),)
    elif suffix == "ForMaskedImageModeling":
        # This class has a norm of its own behind that of the model, which mean pooling leaves out.
        behind = replace(behind, count=1 if reader.flag("use_mean_pooling", default=True) else 2)
        made = (words(hidden, reader.size("vocab_size"), bias=True),)
    return Architecture(
        inputs=(image_input(reader),),
        layers=(part(*stem, over="image"), block, part(behind, over="image")),
        heads=made,
    )


def per_stage(reader: ConfigReader, name: str, stages: int, default: tuple[int, ...]) -> tuple[int, ...]:
    """A number for each stage."""
    values = numbers(reader, name, default)
    if len(values) != stages:
        raise invalid(name, f"{name} must have a number for each of the {stages} stages")
    return values


def swin(reader: ConfigReader, suffix: str) -> Architecture:
    """Swin: windows, and neighbours merged between stages."""
    size = reader.size("embed_dim")
    depths = numbers(reader, "depths", (2, 2, 6, 2))
    head_counts = per_stage(reader, "num_heads", len(depths), (3, 6, 12, 24))
    window = reader.size("window_size")
    bias = reader.flag("qkv_bias", default=True)
    stem: list[SimpleLayer] = [
        patches(reader.size_or("num_channels", 3), size, side(reader, "patch_size") or 1),
        norm(size),
    ]
    if reader.flag("use_absolute_embeddings"):
        stem.append(learned("positions", size, grid_side(reader) ** 2))
    layers: list[Layer] = [part(*stem, over="image")]
    for index, (depth, heads) in enumerate(zip(depths, head_counts, strict=True)):
        block = (
            norm(size),
            attend(size, heads, bias=bias, window=window**2, score_bias=True, heads_field="num_heads"),
            learned("relative_positions", heads, (2 * window - 1) ** 2),
            norm(size),
            mlp(size, int(size * ratio(reader, "mlp_ratio", 4.0))),
        )
        layers.append(Block(layers=block, count=depth, over=("image",)))
        if index < len(depths) - 1:
            joined = (merge(2), norm(4 * size), linear(4 * size, 2 * size, bias=False))
            layers.append(part(*joined, over="image"))
            size *= 2
    layers.append(part(norm(size), over="image"))
    heads_made = (classifier(size, reader.labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(image_input(reader),), layers=tuple(layers), heads=heads_made)
