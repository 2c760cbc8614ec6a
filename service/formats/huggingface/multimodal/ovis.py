"""Ovis 2: patches become shares of a vocabulary of looks, and rows of a table in these shares."""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
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
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.formats.huggingface.vision.transformers import build_image_input, compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock

_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 24,
    "num_attention_heads": 8,
    "image_size": 224,
    "patch_size": 14,
    "qkv_bias": False,
    "mlp_bias": False,
    "vocab_size": 16_384,
    "hidden_stride": 1,
    "num_visual_indicator_tokens": 5,
}
_DEFAULTS: Mapping[str, ConfigDefault] = {"hidden_size": 1536, "vocab_size": 151_643}
"""Sizes that the outer configuration repeats of the decoder."""


def _build_tower(vision: ConfigReader) -> tuple[LayerBlock, ...]:
    hidden, bias = vision.read_size("hidden_size"), vision.read_flag("qkv_bias")
    norm = build_norm(hidden, "rms")
    stem = build_part(
        build_patch_embedding(
            vision.read_size_or("num_channels", 3), hidden, read_side(vision, "patch_size") or 1
        ),
        build_learned_vectors("positions", hidden, compute_grid_side(vision) ** 2),
        norm,
        over="image",
    )
    inner = build_mlp(
        hidden, vision.read_size("intermediate_size"), gated=True, bias=vision.read_flag("mlp_bias")
    )
    attention = build_attention(hidden, vision.read_size("num_attention_heads"), bias=bias, output_bias=bias)
    block = LayerBlock(
        layers=(norm, attention, norm, inner), count=vision.read_depth("num_hidden_layers"), over=("image",)
    )
    return stem, block, build_part(norm, over="image")


def _build_looks(vision: ConfigReader, width: int) -> LayerBlock:
    """Neighbours merged, scores of the looks, and the product of their shares with the table."""
    looks, marks = vision.read_size("vocab_size"), vision.read_size("num_visual_indicator_tokens")
    if marks >= looks:
        raise build_invalid_error("vocab_size", "vocab_size has to exceed num_visual_indicator_tokens")
    stride = vision.read_size("hidden_stride")
    return build_part(
        build_merge(stride),
        build_linear(vision.read_size("hidden_size") * stride**2, looks - marks, bias=False),
        build_norm(looks - marks),
        build_linear(looks, width, bias=False),
        over="image",
    )


def _build_ovis(reader: ConfigReader, suffix: str) -> Architecture:
    """Ovis 2."""
    text = build_text_decoder(reader, suffix, "qwen2", ties=True)
    table = text.architecture.embeddings
    for name, size in (
        ("hidden_size", text.width),
        ("vocab_size", table.vocabulary_size if table else 0),
    ):
        if reader.read_size(name) != size:
            raise build_unsupported_error(name, f"only known where it is that of text_config, {size}")
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers, image = _build_tower(vision), build_image_input(vision)
        looks = _build_looks(vision, text.width)
    return join_vision_and_text(text, image, *layers, looks)


_CLASSES = ("ForConditionalGeneration", "Model")
OVIS_2 = ModelFamily("Ovis2", _build_ovis, _CLASSES, _CLASSES[0], None, _DEFAULTS)
