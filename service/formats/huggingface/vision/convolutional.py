"""Convolutional networks: ResNet (He et al. 2015) and ConvNeXt (Liu et al. 2022)."""

from functools import partial

from service.formats.huggingface.parts import (
    classifier,
    conv,
    learned,
    mlp,
    norm,
    numbers,
    part,
    patches,
    pool,
    word,
)
from service.formats.huggingface.reader import ConfigReader
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    image_input,
    per_stage,
    ratio,
)
from service.planning.models.architecture import Architecture, Block, Input, Layer
from service.planning.models.layers import SimpleLayer


def convnext(reader: ConfigReader, suffix: str) -> Architecture:
    """ConvNeXt: depthwise convolutions and a feed-forward."""
    sizes = numbers(reader, "hidden_sizes", (96, 192, 384, 768))
    depths = per_stage(reader, "depths", len(sizes), (3, 3, 9, 3))
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


def resnet(reader: ConfigReader, suffix: str) -> Architecture:
    """ResNet: residual blocks of two or three convolutions."""
    sizes = numbers(reader, "hidden_sizes", (256, 512, 1024, 2048))
    depths = per_stage(reader, "depths", len(sizes), (3, 4, 6, 3))
    stem = reader.size_or("embedding_size", 64)
    bottleneck = word(reader, "layer_type", "bottleneck", "basic", "bottleneck") == "bottleneck"
    in_first = reader.flag("downsample_in_bottleneck")
    layers: list[Layer] = [
        part(*_normed(reader.size_or("num_channels", 3), stem, 7, stride=2), pool(2, stem), over="image")
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
