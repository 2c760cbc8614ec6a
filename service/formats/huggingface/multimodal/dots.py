"""dots.ocr: gated blocks for images of any size, neighbours merged, and Qwen2 at the top of its file."""

from collections.abc import Mapping

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
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily
from service.planning.models.architecture import Architecture, LayerBlock

_VISION: Mapping[str, ConfigDefault] = {
    "embed_dim": 1536,
    "hidden_size": 1536,
    "intermediate_size": 4224,
    "num_hidden_layers": 42,
    "num_attention_heads": 12,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 1,
    "post_norm": True,
}
"""Defaults of the code beside the weights."""


def _build_tower(vision: ConfigReader) -> tuple[LayerBlock, ...]:
    hidden, bias = vision.read_size("embed_dim"), vision.read_flag("use_bias")
    if vision.read_size("temporal_patch_size") != 1:
        raise build_unsupported_error("temporal_patch_size", "only known where it is 1")
    norm = build_norm(hidden, "rms")
    stem = build_part(
        build_patch_embedding(
            vision.read_size_or("num_channels", 3), hidden, read_side(vision, "patch_size") or 1
        ),
        norm,
        over="image",
    )
    attention = build_attention(hidden, vision.read_size("num_attention_heads"), bias=bias, output_bias=bias)
    inner = build_mlp(hidden, vision.read_size("intermediate_size"), gated=True, bias=bias)
    block = LayerBlock(
        layers=(norm, attention, norm, inner), count=vision.read_depth("num_hidden_layers"), over=("image",)
    )
    behind = (build_part(norm, over="image"),) if vision.read_flag("post_norm") else ()
    return stem, block, *behind


def _build_dots_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """dots.ocr and dots.mocr."""
    del suffix
    text = build_text_decoder(reader, "ForConditionalGeneration", "qwen2", flat=True)
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers, hidden = _build_tower(vision), vision.read_size("embed_dim")
        factor = vision.read_size("spatial_merge_size")
        if vision.read_size("hidden_size") != text.width:
            raise build_unsupported_error(
                "hidden_size", f"only known where it is that of the decoder, {text.width}"
            )
    wide = hidden * factor**2
    merger = build_part(
        build_norm(hidden),
        build_merge(factor),
        build_linear(wide, wide),
        build_linear(wide, text.width),
        over="image",
    )
    return join_vision_and_text(text, QWEN_PICTURE, *layers, merger)


DOTS_OCR = ModelFamily(
    prefix="DotsOCR",
    build=_build_dots_ocr,
    classes=("ForCausalLM",),
    unnamed_class="ForCausalLM",
    context_field="max_position_embeddings",
    defaults={},
)
