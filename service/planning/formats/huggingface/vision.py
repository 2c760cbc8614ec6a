"""Vision encoders: transformers over patches, Swin, convolutional networks, and image-text pairs."""

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple

from service.planning.architecture import Architecture, Block, Embeddings, Head, Input, Layer
from service.planning.errors import PlanningError
from service.planning.formats.huggingface.parts import (
    attend,
    classifier,
    conv,
    learned,
    linear,
    merge,
    mlp,
    nested,
    norm,
    numbers,
    part,
    patches,
    pooler,
    side,
    unsupported,
    whole,
    word,
    words,
)
from service.planning.formats.huggingface.reader import ConfigReader, Family, invalid
from service.planning.layers import SimpleLayer

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
    inner: str = "intermediate_size"


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
    extra = kind.class_tokens + (whole(reader, "num_register_tokens") if kind.registers else 0)
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
        dropout=reader.drops("hidden_dropout_prob"),
    )


_VIT = Patches(biases="qkv_bias")
_DEIT = Patches(class_tokens=2, biases="qkv_bias")
_DINOV2 = Patches(biases="qkv_bias", layer_scale=True, masked="by_default", inner="mlp_ratio")
_DINOV3 = Patches(positions=False, key_bias=False, layer_scale=True, masked="always", registers=True)
CLIP_VISION = Patches(patch_bias=False, norm_first=True)
SIGLIP_VISION = Patches(class_tokens=0)


def _vit(kind: Patches, reader: ConfigReader, suffix: str) -> Architecture:
    hidden = reader.size("hidden_size")
    heads: tuple[Head, ...] = ()
    if suffix == CLASSIFICATION:
        # DINOv2 classifies on its class token beside the mean of its patches.
        doubled = kind is _DINOV2
        heads = (classifier(hidden * (2 if doubled else 1), reader.labels()),)
    elif suffix == "ForImageClassificationWithTeacher":
        heads = (classifier(hidden, reader.labels()), classifier(hidden, reader.labels()))
    elif kind in (_VIT, _DEIT):
        heads = (pooler(hidden, reader.size_or("pooler_output_size", hidden)),)
    if kind is _DINOV3:
        for name, usual in (
            ("query_bias", True),
            ("key_bias", False),
            ("value_bias", True),
            ("proj_bias", True),
        ):
            if reader.flag(name, default=usual) is not usual:
                raise unsupported(name, f"{name} other than {str(usual).lower()} is not supported")
    return Architecture(inputs=(image_input(reader),), layers=vision_transformer(reader, kind), heads=heads)


def _beit(reader: ConfigReader, suffix: str) -> Architecture:
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
    own = attend(hidden, heads, bias=False, dropout=reader.drops("attention_probs_dropout_prob"))
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
    if suffix == CLASSIFICATION:
        made = (classifier(hidden, reader.labels()),)
    elif suffix == "ForMaskedImageModeling":
        made = (words(hidden, reader.size("vocab_size"), bias=True),)
    return Architecture(
        inputs=(image_input(reader),),
        layers=(part(*stem, over="image"), block, part(norm(hidden), over="image")),
        heads=made,
    )


def _per_stage(reader: ConfigReader, name: str, stages: int, default: tuple[int, ...]) -> tuple[int, ...]:
    values = numbers(reader, name, default)
    if len(values) != stages:
        raise invalid(name, f"{name} must have a number for each of the {stages} stages")
    return values


def _swin(reader: ConfigReader, suffix: str) -> Architecture:
    size = reader.size("embed_dim")
    depths = numbers(reader, "depths", (2, 2, 6, 2))
    head_counts = _per_stage(reader, "num_heads", len(depths), (3, 6, 12, 24))
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
            attend(size, heads, bias=bias, window=window**2, heads_field="num_heads"),
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


def _convnext(reader: ConfigReader, suffix: str) -> Architecture:
    sizes = numbers(reader, "hidden_sizes", (96, 192, 384, 768))
    depths = _per_stage(reader, "depths", len(sizes), (3, 3, 9, 3))
    scale = ratio(reader, "layer_scale_init_value", 1e-6) > 0
    step = reader.size_or("patch_size", 4)
    stem = part(patches(reader.size_or("num_channels", 3), sizes[0], step), norm(sizes[0]), over="image")
    layers: list[Layer] = [stem]
    before = sizes[0]
    for index, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
        if index:
            layers.append(part(norm(before), patches(before, size, 2), over="image"))
        block = (
            conv(size, size, 7, groups=size),
            norm(size),
            mlp(size, 4 * size),
            *((learned("layer_scale", size),) if scale else ()),
        )
        layers.append(Block(layers=block, count=depth, over=("image",)))
        before = size
    layers.append(part(norm(before), over="image"))
    heads = (classifier(before, reader.labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(image_input(reader),), layers=tuple(layers), heads=heads)


def _normed(channels: int, output: int, kernel: int, *, stride: int = 1) -> tuple[SimpleLayer, ...]:
    return conv(channels, output, kernel, stride=stride, bias=False), norm(output, "batch")


def _residual(channels: int, output: int, *, stride: int, bottleneck: bool, in_first: bool) -> Block:
    """One residual block: two 3 x 3 convolutions, or one between two of 1 x 1 (He et al. 2015)."""
    beside: tuple[SimpleLayer, ...] = ()
    if channels != output or stride != 1:
        beside = (
            conv(channels, output, 1, stride=stride, bias=False, shortcut=True),
            norm(output, "batch"),
        )
    if bottleneck:
        inner = output // 4
        first, second = (stride, 1) if in_first else (1, stride)
        layers = (
            *_normed(channels, inner, 1, stride=first),
            *_normed(inner, inner, 3, stride=second),
            *_normed(inner, output, 1),
        )
    else:
        layers = (*_normed(channels, output, 3, stride=stride), *_normed(output, output, 3))
    return Block(layers=(*layers, *beside), over=("image",))


def _resnet(reader: ConfigReader, suffix: str) -> Architecture:
    sizes = numbers(reader, "hidden_sizes", (256, 512, 1024, 2048))
    depths = _per_stage(reader, "depths", len(sizes), (3, 4, 6, 3))
    stem = reader.size_or("embedding_size", 64)
    bottleneck = word(reader, "layer_type", "bottleneck", "basic", "bottleneck") == "bottleneck"
    in_first = reader.flag("downsample_in_bottleneck")
    layers: list[Layer] = [
        part(*_normed(reader.size_or("num_channels", 3), stem, 7, stride=2), merge(2), over="image")
    ]
    channels = stem
    for index, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
        stride = 2 if index or reader.flag("downsample_in_first_stage") else 1
        make = partial(_residual, output=size, bottleneck=bottleneck, in_first=in_first)
        layers.append(make(channels, stride=stride))
        if depth > 1:
            repeated = make(size, stride=1)
            layers.append(Block(layers=repeated.layers, count=depth - 1, over=("image",)))
        channels = size
    heads = (classifier(channels, reader.labels()),) if suffix == CLASSIFICATION else ()
    # The pyramid is published for 224 pixels; the configuration does not say.
    image = Input(name="image", kind="image", channels=3, height=224)
    return Architecture(inputs=(image,), layers=tuple(layers), heads=heads)


def text_tower(reader: ConfigReader) -> tuple[Layer, ...]:
    """The text side of an image-text pair: norms first, learned positions in the embeddings."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    block = Block(
        layers=(
            norm(hidden),
            attend(hidden, heads, dropout=reader.drops("attention_dropout")),
            norm(hidden),
            mlp(hidden, reader.size("intermediate_size")),
        ),
        count=reader.depth("num_hidden_layers"),
        over=("text",),
    )
    return (block, part(norm(hidden), over="text"))


def _text_embeddings(reader: ConfigReader) -> Embeddings:
    return Embeddings(
        size=reader.size("hidden_size"),
        vocabulary_size=reader.size("vocab_size"),
        position_count=reader.size("max_position_embeddings"),
    )


def text_input(reader: ConfigReader) -> Input:
    """Prompts are padded to the positions that there are."""
    return Input(name="text", kind="tokens", length=reader.size("max_position_embeddings"))


def attention_pool(reader: ConfigReader) -> Block:
    """One learned query that attends to all patches, and a feed-forward behind it (SigLIP)."""
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    return Block(
        layers=(
            learned("query_tokens", hidden),
            attend(hidden, heads, cross=hidden),
            norm(hidden),
            mlp(hidden, reader.size("intermediate_size")),
        ),
        over=("image",),
        reads=("image",),
        per="sample",
        unit=False,
    )


_CLIP_TEXT = {
    "vocab_size": 49_408,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
    "projection_dim": 512,
}
_CLIP_IMAGE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
    "projection_dim": 512,
}
_SIGLIP_TEXT = {
    "vocab_size": 32_000,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 64,
}
SIGLIP_IMAGE = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 16,
}
CLIP_IMAGE = _CLIP_IMAGE


def _once(columns: int, rows: int, over: str, *, bias: bool = False) -> Block:
    return part(linear(columns, rows, bias=bias), over=over, once=True)


def _clip_text(reader: ConfigReader, suffix: str) -> Architecture:
    hidden = reader.size("hidden_size")
    projected = (_once(hidden, reader.size("projection_dim"), "text"),) if "Projection" in suffix else ()
    return Architecture(
        inputs=(text_input(reader),),
        embeddings=_text_embeddings(reader),
        layers=(*text_tower(reader), *projected),
    )


def _clip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    hidden = reader.size("hidden_size")
    projected = (_once(hidden, reader.size("projection_dim"), "image"),) if "Projection" in suffix else ()
    return Architecture(
        inputs=(image_input(reader),), layers=(*vision_transformer(reader, CLIP_VISION), *projected)
    )


def _clip(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    width = reader.size("projection_dim")
    with nested(reader, "text_config", _CLIP_TEXT) as text:
        tower, table, prompt = text_tower(text), _text_embeddings(text), text_input(text)
        text_size = text.size("hidden_size")
    with nested(reader, "vision_config", _CLIP_IMAGE) as vision:
        image, picture = vision_transformer(vision, CLIP_VISION), image_input(vision)
        image_size = vision.size("hidden_size")
    joint = (
        _once(text_size, width, "text"),
        _once(image_size, width, "image"),
        part(learned("scale", 1), over="text", once=True),
    )
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, *joint))


def siglip_tower(reader: ConfigReader) -> tuple[Layer, ...]:
    """A vision transformer without a class token, and its pooling by attention where there is one."""
    tower = vision_transformer(reader, SIGLIP_VISION)
    if reader.flag("vision_use_head", default=True):
        return (*tower, attention_pool(reader))
    return tower


def _siglip_vision(reader: ConfigReader, suffix: str) -> Architecture:
    heads = (classifier(reader.size("hidden_size"), reader.labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(image_input(reader),), layers=siglip_tower(reader), heads=heads)


def _siglip_head(reader: ConfigReader) -> Block:
    hidden = reader.size("hidden_size")
    return _once(hidden, reader.size_or("projection_size", hidden), "text", bias=True)


def _siglip_text(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    return Architecture(
        inputs=(text_input(reader),),
        embeddings=_text_embeddings(reader),
        layers=(*text_tower(reader), _siglip_head(reader)),
    )


def _siglip(reader: ConfigReader, suffix: str) -> Architecture:
    del suffix
    with nested(reader, "text_config", _SIGLIP_TEXT) as text:
        tower, table = (*text_tower(text), _siglip_head(text)), _text_embeddings(text)
        prompt = text_input(text)
    with nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        image, picture = siglip_tower(vision), image_input(vision)
    # The temperature and the bias of the sigmoid loss.
    joint = part(learned("scale", 1), learned("bias", 1), over="text", once=True)
    return Architecture(inputs=(prompt, picture), embeddings=table, layers=(*tower, *image, joint))


def check_even_grid(reader: ConfigReader, name: str, factor: int) -> None:
    """Refuse a grid that does not divide into squares of ``factor``."""
    if grid_side(reader) % factor:
        raise PlanningError("CONFIG_FIELD_INVALID", f"/{name}", f"{name} does not divide the grid of patches")


_VIT_SIZES = {**SIGLIP_IMAGE}
_DINO_SIZES = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 14,
}
_CLASSES = ("Model", CLASSIFICATION)


def _image_family(prefix: str, kind: Patches, defaults: Mapping[str, int], *more: str) -> Family:
    return Family(prefix, partial(_vit, kind), (*_CLASSES, *more), "Model", None, defaults)


FAMILIES: Mapping[str, Family] = {
    "vit": _image_family("ViT", _VIT, _VIT_SIZES),
    "deit": _image_family("DeiT", _DEIT, _VIT_SIZES, "ForImageClassificationWithTeacher"),
    "dinov2": _image_family("Dinov2", _DINOV2, _DINO_SIZES),
    "dinov3_vit": Family(
        "DINOv3ViT",
        partial(_vit, _DINOV3),
        ("Model",),
        "Model",
        None,
        {
            "patch_size": 16,
            "hidden_size": 384,
            "intermediate_size": 1536,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
            "image_size": 224,
        },
    ),
    "beit": Family(
        "Beit",
        _beit,
        (*_CLASSES, "ForMaskedImageModeling"),
        "Model",
        None,
        {**_VIT_SIZES, "vocab_size": 8192},
    ),
    "swin": Family(
        "Swin",
        _swin,
        _CLASSES,
        "Model",
        None,
        {"embed_dim": 96, "window_size": 7, "image_size": 224, "patch_size": 4},
    ),
    "convnext": Family("ConvNext", _convnext, _CLASSES, "Model", None, {"image_size": 224}),
    "resnet": Family("ResNet", _resnet, _CLASSES, "Model", None, {}),
    "clip": Family("CLIP", _clip, ("Model",), "Model", None, {"projection_dim": 512}),
    "clip_text_model": Family(
        "CLIPTextModel", _clip_text, ("", "WithProjection"), "", "max_position_embeddings", _CLIP_TEXT
    ),
    "clip_vision_model": Family(
        "CLIPVisionModel", _clip_vision, ("", "WithProjection"), "", None, _CLIP_IMAGE
    ),
    "siglip": Family("Siglip", _siglip, ("Model",), "Model", None, {}),
    "siglip_text_model": Family(
        "SiglipText", _siglip_text, ("Model",), "Model", "max_position_embeddings", _SIGLIP_TEXT
    ),
    "siglip_vision_model": Family("SiglipVision", _siglip_vision, ("Model",), "Model", None, SIGLIP_IMAGE),
}
