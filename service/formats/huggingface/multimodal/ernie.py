"""ERNIE-4.5-VL: experts of images beside those of text, and a resampler that merges patches and frames.

transformers nests the decoder in ``text_config``; the published files have its members at the top, and two
numbers of some of them, that for text before that for images.
"""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface.decoders import (
    SPELLINGS,
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    build_architecture,
)
from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.multimodal.qwen import QWEN_PICTURE
from service.formats.huggingface.parts import (
    build_attention,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_unsupported_error,
    read_activation_function,
    read_nested,
    read_numbers,
    read_side,
)
from service.formats.huggingface.patterns import build_sparse_after_dense
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelLayer
from service.planning.models.layers import Resampling

_VISION: Mapping[str, ConfigDefault] = {
    "depth": 32,
    "hidden_size": 1280,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_merge_size": 2,
}
_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 103_424,
    "hidden_size": 2560,
    "intermediate_size": 12_288,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131_072,
    "moe_k": 6,
    "moe_num_experts": 64,
    "moe_num_shared_experts": 2,
    "tie_word_embeddings": True,
}
_USUAL_INNER_SIZES = (1536, 512)
"""Inner widths of experts, of text and of images, of the configuration class of transformers."""

_MERGED = {"spatial_merge_size": "spatial_conv_size", "temporal_merge_size": "temporal_conv_size"}
"""Members of the tower that published files have at the top, for the resampler."""

_DECODER = DecoderFamily(
    heads=AttentionOptions(bias=False),
    bias=False,
    experts=ExpertLayout(
        layers=build_sparse_after_dense("", 1),
        router_bias=True,
        shared_count="moe_num_shared_experts",
        image_inner="image_moe_intermediate_size",
    ),
    refused=("use_bias",),
)


def _build_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The decoder, with the inner widths of its experts under names of their own."""
    sizes = read_numbers(reader, "moe_intermediate_size", _USUAL_INNER_SIZES)
    if len(sizes) != len(_USUAL_INNER_SIZES):
        raise build_invalid_error(
            "moe_intermediate_size", "moe_intermediate_size must have a width for text and one for images"
        )
    of_text, of_images = sizes
    config = {
        **reader.config,
        "moe_intermediate_size": of_text,
        "image_moe_intermediate_size": of_images,
    }
    return build_architecture(replace(reader, config=config), suffix, _DECODER)


ERNIE_TEXT = ModelFamily(
    prefix="Ernie4_5_VLMoe",
    build=_build_text,
    classes=("TextModel",),
    unnamed_class="TextModel",
    context_field="max_position_embeddings",
    defaults=_TEXT,
    names=SPELLINGS,
)
"""The decoder inside of ERNIE-4.5-VL."""


def _read_pair(reader: ConfigReader, name: str) -> tuple[int, int]:
    """A number for text and one for images; a single one is both."""
    value = reader.config.get(name)
    if value is None:
        raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", f"{name} is missing")
    both = value if isinstance(value, list) else [value, value]
    pair = [item for item in both if isinstance(item, int) and not isinstance(item, bool)]
    if len(both) != 2 or len(pair) != 2:  # noqa: PLR2004
        raise build_invalid_error(name, f"{name} must be an integer, or one for text and one for images")
    return pair[0], pair[1]


def _read_shared(reader: ConfigReader, name: str, most: int | None = None) -> int:
    """A number that text and images share, as far as it is not above ``most``."""
    text, images = (item if most is None else min(item, most) for item in _read_pair(reader, name))
    if text != images:
        raise build_unsupported_error(name, "only known where it is the same for text and images")
    return text


def _nest_published(reader: ConfigReader) -> ConfigReader:
    """A reader of a published file with its members as transformers nests them."""
    text = dict(reader.config)
    for name in ("text_config", "vision_config", "architectures", "model_type"):
        text.pop(name, None)
    depth = ConfigReader(text, {}).read_depth("num_hidden_layers")
    first = _read_shared(reader, "moe_layer_start_index")
    last = _read_shared(reader, "moe_layer_end_index", depth - 1)
    if reader.read_size_or("moe_layer_interval", 1) != 1:
        raise build_unsupported_error("moe_layer_interval", "only known where it is 1")
    for name in (*_TEXT, "moe_intermediate_size"):
        if name != "tie_word_embeddings" and text.get(name) is None:
            raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", f"{name} is missing")
    text["moe_num_experts"] = _read_shared(reader, "moe_num_experts")
    text["mlp_layer_types"] = ["sparse" if first <= index <= last else "dense" for index in range(depth)]
    vision = reader.config.get("vision_config")
    if isinstance(vision, Mapping):
        stated = {merged: reader.read_size(name) for merged, name in _MERGED.items()}
        if any(vision.get(merged, size) != size for merged, size in stated.items()):
            raise build_unsupported_error("vision_config", "only known where it merges as the resampler does")
        vision = {**vision, **stated}
    return replace(reader, config={**reader.config, "text_config": text, "vision_config": vision})


def _build_tower(vision: ConfigReader) -> tuple[ModelLayer, ...]:
    hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_heads")
    if vision.read_size_or("embed_dim", hidden) != hidden:
        raise build_unsupported_error("embed_dim", "only known where it equals hidden_size")
    inner = vision.read_optional_size("intermediate_size") or hidden * vision.read_size_or("mlp_ratio", 4)
    stem = build_patch_embedding(
        vision.read_size_or("in_channels", 3), hidden, read_side(vision, "patch_size") or 1, bias=False
    )
    function = read_activation_function(vision, "hidden_act", "quick_gelu")
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            build_attention(hidden, heads, heads_field="num_heads"),
            build_norm(hidden),
            build_mlp(hidden, inner, function=function),
        ),
        count=vision.read_depth("depth"),
        over=("image",),
    )
    return build_part(stem, over="image"), block, build_part(build_norm(hidden), over="image")


def _build_resampler(vision: ConfigReader, width: int) -> LayerBlock:
    """Merges patches, then frames, of which a picture has the same twice."""
    factor, frames = vision.read_size("spatial_merge_size"), vision.read_size("temporal_merge_size")
    wide = vision.read_size("hidden_size") * factor**2
    return build_part(
        build_merge(factor),
        build_linear(wide, wide),
        build_linear(wide, wide),
        build_norm(wide),
        Resampling(factor=1.0, frame_factor=float(frames)),
        build_linear(frames * wide, wide),
        build_linear(wide, wide),
        build_norm(wide),
        build_linear(wide, width),
        build_norm(width, "rms"),
        over="image",
    )


def build_ernie_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """ERNIE-4.5-VL."""
    whole = "ForConditionalGeneration" if suffix.endswith("ForConditionalGeneration") else "Model"
    decoder = build_text_decoder(reader, whole, "ernie4_5_vl_moe_text", ties=True)
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers = (*_build_tower(vision), _build_resampler(vision, decoder.width))
    return join_vision_and_text(decoder, QWEN_PICTURE, *layers)


def build_published_ernie_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """ERNIE-4.5-VL, as its files are published."""
    if reader.has_value("text_config"):
        return build_ernie_vl(reader, suffix)
    if not reader.read_flag("use_temporal_conv", default=True):
        raise build_unsupported_error("use_temporal_conv", "only known where frames are merged")
    nested = _nest_published(reader)
    try:
        return build_ernie_vl(nested, suffix)
    except PlanningError as error:
        raise PlanningError(error.code, error.pointer.removeprefix("/text_config"), error.detail) from error


_CLASSES = tuple(f"{mark}Moe{name}" for mark in ("", "_") for name in ("ForConditionalGeneration", "Model"))
"""Classes behind ``Ernie4_5_VL``, under both names that transformers has had."""

ERNIE = ModelFamily("Ernie4_5_VL", build_ernie_vl, _CLASSES, _CLASSES[0], None, {})
PUBLISHED_ERNIE = ERNIE._replace(build=build_published_ernie_vl, context_field="max_position_embeddings")
