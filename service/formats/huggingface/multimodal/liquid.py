"""LFM2-VL and LFM3-VL: a tower for images of any size, neighbours merged, in front of a decoder of LFM."""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.multimodal.projected import build_tower
from service.formats.huggingface.multimodal.qwen import QWEN_PICTURE
from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_unsupported_error,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_blocks
from service.formats.huggingface.vision.pairs import SIGLIP_2_IMAGE
from service.planning.models.architecture import Architecture, ModelLayer
from service.planning.models.layers import SimpleLayer

_PROJECTOR: Mapping[str, ConfigDefault] = {
    "projector_hidden_size": 2560,
    "projector_bias": True,
    "projector_use_layernorm": True,
    "downsample_factor": 2,
}
_LATER_PROJECTOR: Mapping[str, ConfigDefault] = {"projector_hidden_size": 4096, "projector_bias": True}
_LATER_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1024,
    "intermediate_size": 2560,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_hidden_layers": 14,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "conv_kernel_size": 3,
}
_FIRST_CONVOLUTIONS = 2
"""Layers of the tower of LFM3-VL in front of the first attention, where a file lists no kinds."""


def _build_projector(reader: ConfigReader, wide: int, width: int) -> tuple[SimpleLayer, ...]:
    inner, bias = reader.read_size("projector_hidden_size"), reader.read_flag("projector_bias")
    return build_linear(wide, inner, bias=bias), build_linear(inner, width, bias=bias)


def _build_lfm2_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """LFM2-VL: SigLIP 2, neighbours merged."""
    seen = build_tower(reader, "siglip2_vision_model", SIGLIP_2_IMAGE)
    text = build_text_decoder(reader, suffix, "lfm2", ties=True)
    factor = reader.read_size("downsample_factor")
    wide = seen.width * factor**2
    norm = (build_norm(wide),) if reader.read_flag("projector_use_layernorm") else ()
    projector = build_part(
        build_merge(factor), *norm, *_build_projector(reader, wide, text.width), over="image"
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


def _list_tower_kinds(vision: ConfigReader, depth: int) -> list[str]:
    words = vision.read_words("layer_types", depth)
    if words is None:
        return [
            "conv" if index < _FIRST_CONVOLUTIONS or index % 2 else "full_attention" for index in range(depth)
        ]
    if not {"conv", "full_attention"}.issuperset(words):
        raise build_unsupported_error("layer_types", "only conv and full_attention are known")
    return words


def _build_later_tower(vision: ConfigReader) -> tuple[ModelLayer, ...]:
    """Patches of two frames, and blocks of gated convolutions over the grid or of attention."""
    hidden, frames = vision.read_size("hidden_size"), vision.read_size("temporal_patch_size")
    norm = build_norm(hidden, "rms")
    convolved = (
        build_linear(hidden, 3 * hidden, bias=False),
        build_convolution(hidden, hidden, vision.read_size("conv_kernel_size"), groups=hidden, bias=False),
        build_linear(hidden, hidden, bias=False),
    )
    attention = build_attention(
        hidden,
        vision.read_size("num_attention_heads"),
        key_value_heads=vision.read_size("num_key_value_heads"),
        bias=False,
        output_bias=False,
        query_key_norm="head",
    )
    inner = build_mlp(hidden, vision.read_size("intermediate_size"), gated=True, bias=False)
    mixers: Mapping[str, tuple[SimpleLayer, ...]] = {"conv": convolved, "full_attention": (attention,)}
    kinds = _list_tower_kinds(vision, vision.read_depth("num_hidden_layers"))
    stem = build_patch_embedding(
        vision.read_size_or("in_channels", 3),
        hidden,
        read_side(vision, "patch_size") or 1,
        bias=False,
        frames=frames,
        frame_stride=frames,
    )
    blocks = build_blocks([(norm, *mixers[kind], norm, inner) for kind in kinds], over=("image",))
    return build_part(stem, over="image"), *blocks, build_part(norm, over="image")


def _build_lfm3_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """LFM3-VL: a tower like its decoder, neighbours merged behind a norm."""
    with read_nested(reader, "vision_config", _LATER_VISION) as vision:
        layers = _build_later_tower(vision)
        hidden, factor = vision.read_size("hidden_size"), vision.read_size("spatial_merge_size")
    text = build_text_decoder(reader, suffix, "lfm3", ties=True)
    projector = build_part(
        build_norm(hidden),
        build_merge(factor),
        *_build_projector(reader, hidden * factor**2, text.width),
        over="image",
    )
    return join_vision_and_text(text, QWEN_PICTURE, *layers, projector)


_CLASSES = ("ForConditionalGeneration", "Model")
LFM2_VL = ModelFamily(
    prefix="Lfm2Vl",
    build=_build_lfm2_vl,
    classes=_CLASSES,
    unnamed_class=_CLASSES[0],
    context_field=None,
    defaults=_PROJECTOR,
    names={"tie_word_embeddings": ("tie_embedding", "tie_word_embeddings")},
)
LFM3_VL = ModelFamily(
    prefix="Lfm3Vl",
    build=_build_lfm3_vl,
    classes=_CLASSES,
    unnamed_class=_CLASSES[0],
    context_field=None,
    defaults=_LATER_PROJECTOR,
)
