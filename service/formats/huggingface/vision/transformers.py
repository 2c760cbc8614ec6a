"""Transformers over patches (Dosovitskiy et al. 2020), whole images or windows of them (Swin)."""

from dataclasses import replace
from typing import Literal, NamedTuple

from service.formats.huggingface.parts import (
    build_attention,
    build_classifier,
    build_language_head,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_pooler,
    build_unsupported_error,
    read_activation_function,
    read_count_or_zero,
    read_numbers,
    read_side,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import (
    Architecture,
    LayerBlock,
    ModelHead,
    ModelInputShape,
    ModelLayer,
)
from service.planning.models.layers import SimpleLayer

CLASSIFICATION = "ForImageClassification"


class PatchTransformer(NamedTuple):
    """Differences of one vision transformer from the first (Dosovitskiy et al. 2020)."""

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


def build_image_input(reader: ConfigReader) -> ModelInputShape:
    """The image that a tower sees; its published size stands in where a sample does not say."""
    return ModelInputShape(
        name="image",
        kind="image",
        channels=reader.read_size_or("num_channels", 3),
        height=read_side(reader, "image_size"),
    )


def compute_grid_side(reader: ConfigReader) -> int:
    """Patches along one side of the published image."""
    pixels, step = read_side(reader, "image_size"), read_side(reader, "patch_size")
    if pixels is None or step is None or pixels < step:
        raise build_invalid_error("image_size", "image_size holds no patch")
    return pixels // step


def _read_inner_size(reader: ConfigReader, kind: PatchTransformer, hidden: int) -> int:
    if kind.inner != "mlp_ratio":
        return reader.read_size(kind.inner)
    return int(hidden * read_ratio(reader, "mlp_ratio", 4.0))


def read_ratio(reader: ConfigReader, name: str, default: float) -> float:
    """A positive number; a field left out takes ``default``."""
    value = reader.config.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:  # noqa: PLR2004
        raise build_invalid_error(name, f"{name} must be a positive number")
    return float(value)


def _build_attention(
    reader: ConfigReader, kind: PatchTransformer, hidden: int, heads: int
) -> tuple[SimpleLayer, ...]:
    both = reader.read_flag(kind.biases, default=True) if kind.biases else True
    dropout = reader.has_dropout("attention_probs_dropout_prob") or reader.has_dropout("attention_dropout")
    own = build_attention(hidden, heads, bias=both and kind.key_bias, dropout=dropout)
    if kind.key_bias or not both:
        return (own,)
    return (own, build_learned_vectors("bias", hidden, 2))


def build_vision_transformer(reader: ConfigReader, kind: PatchTransformer) -> tuple[ModelLayer, ...]:
    """Patches, class tokens and positions, the blocks, and the norm behind them."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    step = read_side(reader, "patch_size") or 1
    stem: list[SimpleLayer] = [
        build_patch_embedding(reader.read_size_or("num_channels", 3), hidden, step, bias=kind.patch_bias)
    ]
    extra = kind.class_tokens + (
        read_count_or_zero(reader, "num_register_tokens", kind.usual_registers) if kind.registers else 0
    )
    if extra:
        stem.append(build_learned_vectors("class_tokens", hidden, extra))
    if kind.positions:
        stem.append(
            build_learned_vectors("positions", hidden, compute_grid_side(reader) ** 2 + kind.class_tokens)
        )
    switched = kind.masked == "by_default" and reader.read_flag("use_mask_token", default=True)
    if kind.masked == "always" or switched:
        stem.append(build_learned_vectors("mask_token", hidden))
    if kind.norm_first:
        stem.append(build_norm(hidden))
    scale = (build_learned_vectors("layer_scale", hidden),) if kind.layer_scale else ()
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            *_build_attention(reader, kind, hidden, heads),
            *scale,
            build_norm(hidden),
            _build_feed_forward(reader, kind, hidden),
            *scale,
        ),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    behind = (build_part(build_norm(hidden), over="image"),) if kind.final_norm else ()
    return (build_part(*stem, over="image"), block, *behind)


def _build_feed_forward(reader: ConfigReader, kind: PatchTransformer, hidden: int) -> SimpleLayer:
    inner = _read_inner_size(reader, kind, hidden)
    if reader.read_flag("use_swiglu_ffn"):
        # Two thirds of the width, rounded up to eight, keep the parameters of an ungated one.
        return build_mlp(hidden, (int(inner * 2 / 3) + 7) // 8 * 8, gated=True)
    return build_mlp(
        hidden,
        inner,
        gated=reader.read_flag("use_gated_mlp"),
        bias=reader.read_flag("mlp_bias", default=True),
        function=read_activation_function(reader, "hidden_act", kind.function),
        dropout=reader.has_dropout("hidden_dropout_prob"),
    )


VIT = PatchTransformer(biases="qkv_bias")


DEIT = PatchTransformer(class_tokens=2, biases="qkv_bias")


DINOV2 = PatchTransformer(biases="qkv_bias", layer_scale=True, masked="by_default", inner="mlp_ratio")


REGISTERS = DINOV2._replace(registers=True, usual_registers=4)


DINOV3 = PatchTransformer(positions=False, key_bias=False, layer_scale=True, masked="always", registers=True)


CLIP_VISION = PatchTransformer(patch_bias=False, norm_first=True, function="quick_gelu")


SIGLIP_VISION = PatchTransformer(class_tokens=0)


def build_vit(kind: PatchTransformer, reader: ConfigReader, suffix: str) -> Architecture:
    """A vision transformer with the heads of its class."""
    hidden = reader.read_size("hidden_size")
    heads: tuple[ModelHead, ...] = ()
    if suffix == CLASSIFICATION:
        # DINOv2 classifies on its class token beside the mean of its patches.
        doubled = kind in (DINOV2, REGISTERS)
        heads = (build_classifier(hidden * (2 if doubled else 1), reader.count_labels()),)
    elif suffix == "ForImageClassificationWithTeacher":
        heads = (
            build_classifier(hidden, reader.count_labels()),
            build_classifier(hidden, reader.count_labels()),
        )
    elif kind in (VIT, DEIT):
        heads = (build_pooler(hidden, reader.read_size_or("pooler_output_size", hidden)),)
    if kind is DINOV3:
        for name, usual in (
            ("query_bias", True),
            ("key_bias", False),
            ("value_bias", True),
            ("proj_bias", True),
        ):
            if reader.read_flag(name, default=usual) is not usual:
                raise build_unsupported_error(
                    name, f"{name} other than {str(usual).lower()} is not supported"
                )
    return Architecture(
        inputs=(build_image_input(reader),), layers=build_vision_transformer(reader, kind), heads=heads
    )


def build_beit(reader: ConfigReader, suffix: str) -> Architecture:
    """BEiT: relative positions, and values and queries that alone have a bias."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    step = read_side(reader, "patch_size") or 1
    across = compute_grid_side(reader)
    stem: list[SimpleLayer] = [
        build_patch_embedding(reader.read_size_or("num_channels", 3), hidden, step),
        build_learned_vectors("class_tokens", hidden),
    ]
    if reader.read_flag("use_mask_token"):
        stem.append(build_learned_vectors("mask_token", hidden))
    if reader.read_flag("use_absolute_position_embeddings"):
        stem.append(build_learned_vectors("positions", hidden, across**2 + 1))
    # A row for each offset between two patches, and three for the class token.
    table = build_learned_vectors("relative_positions", heads, (2 * across - 1) ** 2 + 3)
    if reader.read_flag("use_shared_relative_position_bias"):
        stem.append(table)
    each = (table,) if reader.read_flag("use_relative_position_bias") else ()
    scales = read_ratio(reader, "layer_scale_init_value", 0.1) > 0
    scale = (build_learned_vectors("layer_scale", hidden),) if scales else ()
    own = build_attention(
        hidden,
        heads,
        bias=False,
        dropout=reader.has_dropout("attention_probs_dropout_prob"),
        score_bias=True,
    )
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            own,
            build_learned_vectors("bias", hidden, 2),
            *each,
            *scale,
            build_norm(hidden),
            build_mlp(hidden, reader.read_size("intermediate_size")),
            *scale,
        ),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    made: tuple[ModelHead, ...] = ()
    behind = build_norm(hidden)
    if suffix == CLASSIFICATION:
        made = (build_classifier(hidden, reader.count_labels()),)
    elif suffix == "ForMaskedImageModeling":
        # This class has a norm of its own behind that of the model, which mean pooling leaves out.
        behind = replace(behind, count=1 if reader.read_flag("use_mean_pooling", default=True) else 2)
        made = (build_language_head(hidden, reader.read_size("vocab_size"), bias=True),)
    return Architecture(
        inputs=(build_image_input(reader),),
        layers=(build_part(*stem, over="image"), block, build_part(behind, over="image")),
        heads=made,
    )


def read_stage_numbers(
    reader: ConfigReader, name: str, stages: int, default: tuple[int, ...]
) -> tuple[int, ...]:
    """A number for each stage."""
    values = read_numbers(reader, name, default)
    if len(values) != stages:
        raise build_invalid_error(name, f"{name} must have a number for each of the {stages} stages")
    return values


def build_swin(reader: ConfigReader, suffix: str) -> Architecture:
    """Swin: windows, and neighbours merged between stages."""
    size = reader.read_size("embed_dim")
    depths = read_numbers(reader, "depths", (2, 2, 6, 2))
    head_counts = read_stage_numbers(reader, "num_heads", len(depths), (3, 6, 12, 24))
    window = reader.read_size("window_size")
    bias = reader.read_flag("qkv_bias", default=True)
    stem: list[SimpleLayer] = [
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), size, read_side(reader, "patch_size") or 1
        ),
        build_norm(size),
    ]
    if reader.read_flag("use_absolute_embeddings"):
        stem.append(build_learned_vectors("positions", size, compute_grid_side(reader) ** 2))
    layers: list[ModelLayer] = [build_part(*stem, over="image")]
    for index, (depth, heads) in enumerate(zip(depths, head_counts, strict=True)):
        block = (
            build_norm(size),
            build_attention(
                size, heads, bias=bias, window=window**2, score_bias=True, heads_field="num_heads"
            ),
            build_learned_vectors("relative_positions", heads, (2 * window - 1) ** 2),
            build_norm(size),
            build_mlp(size, int(size * read_ratio(reader, "mlp_ratio", 4.0))),
        )
        layers.append(LayerBlock(layers=block, count=depth, over=("image",)))
        if index < len(depths) - 1:
            joined = (build_merge(2), build_norm(4 * size), build_linear(4 * size, 2 * size, bias=False))
            layers.append(build_part(*joined, over="image"))
            size *= 2
    layers.append(build_part(build_norm(size), over="image"))
    heads_made = (build_classifier(size, reader.count_labels()),) if suffix == CLASSIFICATION else ()
    return Architecture(inputs=(build_image_input(reader),), layers=tuple(layers), heads=heads_made)
