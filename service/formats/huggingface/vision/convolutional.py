"""Convolutional networks: ResNet (He et al. 2015) and ConvNeXt (Liu et al. 2022)."""

from functools import partial

from service.formats.huggingface.parts import (
    build_classifier,
    build_convolution,
    build_learned_vectors,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_pool,
    read_choice,
    read_numbers,
)
from service.formats.huggingface.reader import ConfigReader
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    build_image_input,
    read_ratio,
    read_stage_numbers,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import SimpleLayer


def build_convnext(reader: ConfigReader, suffix: str) -> Architecture:
    """ConvNeXt: depthwise convolutions and a feed-forward."""
    sizes = read_numbers(reader, "hidden_sizes", (96, 192, 384, 768))
    depths = read_stage_numbers(reader, "depths", len(sizes), (3, 3, 9, 3))
    scale = read_ratio(reader, "layer_scale_init_value", 1e-6) > 0
    step = reader.read_size_or("patch_size", 4)
    stem = build_part(
        build_patch_embedding(reader.read_size_or("num_channels", 3), sizes[0], step),
        build_norm(sizes[0]),
        over="image",
    )
    layers: list[ModelLayer] = [stem]
    before = sizes[0]
    for index, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
        if index:
            layers.append(
                build_part(build_norm(before), build_patch_embedding(before, size, 2), over="image")
            )
        block = (
            build_convolution(size, size, 7, groups=size),
            build_norm(size),
            build_mlp(size, 4 * size),
            *((build_learned_vectors("layer_scale", size),) if scale else ()),
        )
        layers.append(LayerBlock(layers=block, count=depth, over=("image",)))
        before = size
    layers.append(build_part(build_norm(before), over="image"))
    heads = (build_classifier(before, reader.count_labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(build_image_input(reader),), layers=tuple(layers), heads=heads)


def _build_normed_convolution(
    channels: int, output: int, kernel: int, *, stride: int = 1
) -> tuple[SimpleLayer, ...]:
    return build_convolution(channels, output, kernel, stride=stride, bias=False), build_norm(output, "batch")


def _build_residual(
    channels: int, output: int, *, stride: int, bottleneck: bool, in_first: bool
) -> LayerBlock:
    """One residual block: two 3 x 3 convolutions, or one between two of 1 x 1 (He et al. 2015)."""
    beside: tuple[SimpleLayer, ...] = ()
    if channels != output or stride != 1:
        beside = (
            build_convolution(channels, output, 1, stride=stride, bias=False, shortcut=True),
            build_norm(output, "batch"),
        )
    if bottleneck:
        inner = output // 4
        first, second = (stride, 1) if in_first else (1, stride)
        layers = (
            *_build_normed_convolution(channels, inner, 1, stride=first),
            *_build_normed_convolution(inner, inner, 3, stride=second),
            *_build_normed_convolution(inner, output, 1),
        )
    else:
        layers = (
            *_build_normed_convolution(channels, output, 3, stride=stride),
            *_build_normed_convolution(output, output, 3),
        )
    return LayerBlock(layers=(*layers, *beside), over=("image",))


def build_resnet(reader: ConfigReader, suffix: str) -> Architecture:
    """ResNet: residual blocks of two or three convolutions."""
    sizes = read_numbers(reader, "hidden_sizes", (256, 512, 1024, 2048))
    depths = read_stage_numbers(reader, "depths", len(sizes), (3, 4, 6, 3))
    stem = reader.read_size_or("embedding_size", 64)
    bottleneck = read_choice(reader, "layer_type", "bottleneck", "basic", "bottleneck") == "bottleneck"
    in_first = reader.read_flag("downsample_in_bottleneck")
    layers: list[ModelLayer] = [
        build_part(
            *_build_normed_convolution(reader.read_size_or("num_channels", 3), stem, 7, stride=2),
            build_pool(2, stem),
            over="image",
        )
    ]
    channels = stem
    for index, (size, depth) in enumerate(zip(sizes, depths, strict=True)):
        stride = 2 if index or reader.read_flag("downsample_in_first_stage") else 1
        make = partial(_build_residual, output=size, bottleneck=bottleneck, in_first=in_first)
        layers.append(make(channels, stride=stride))
        if depth > 1:
            repeated = make(size, stride=1)
            layers.append(LayerBlock(layers=repeated.layers, count=depth - 1, over=("image",)))
        channels = size
    heads = (build_classifier(channels, reader.count_labels()),) if suffix == CLASSIFICATION else ()
    # The pyramid is published for 224 pixels; the configuration does not say.
    image = ModelInputShape(name="image", kind="image", channels=3, height=224)
    return Architecture(inputs=(image,), layers=tuple(layers), heads=heads)
