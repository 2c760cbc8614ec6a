"""Models that read documents: PaddleOCR-VL and HunyuanOCR, whose files have the decoder at the top."""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    read_activation_function,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, build_invalid_error
from service.formats.huggingface.vision.transformers import (
    SIGLIP_VISION,
    build_image_input,
    build_vision_transformer,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape

_PADDLE_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 384,
    "patch_size": 14,
    "spatial_merge_size": 2,
}
_HUNYUAN_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "max_image_size": 2048,
}


def build_paddle_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """PaddleOCR-VL: SigLIP, neighbours merged behind a norm, and ERNIE 4.5."""
    with read_nested(reader, "vision_config", _PADDLE_VISION) as vision:
        layers, image = build_vision_transformer(vision, SIGLIP_VISION), build_image_input(vision)
        hidden, factor = vision.read_size("hidden_size"), vision.read_size("spatial_merge_size")
    text = build_text_decoder(reader, suffix, "paddleocr_vl_text", ties=True, nested_tie=True, flat=True)
    wide = hidden * factor**2
    projector = build_part(
        build_norm(hidden),
        build_merge(factor),
        build_linear(wide, wide),
        build_linear(wide, text.width),
        over="image",
    )
    return join_vision_and_text(text, image, *layers, projector)


def _build_hunyuan_tower(vision: ConfigReader) -> tuple[LayerBlock, ...]:
    hidden, step = vision.read_size("hidden_size"), read_side(vision, "patch_size") or 1
    across = vision.read_size("max_image_size") // step
    if not across:
        raise build_invalid_error("max_image_size", "max_image_size holds no patch")
    stem = build_part(
        build_patch_embedding(vision.read_size_or("num_channels", 3), hidden, step),
        build_learned_vectors("positions", hidden, across**2 + 1),
        over="image",
    )
    inner = build_mlp(
        hidden,
        vision.read_size("intermediate_size"),
        function=read_activation_function(vision, "hidden_act", "gelu"),
    )
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            build_attention(hidden, vision.read_size("num_attention_heads")),
            build_norm(hidden),
            inner,
        ),
        count=vision.read_depth("num_hidden_layers"),
        over=("image",),
    )
    return stem, block


def build_hunyuan_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """HunyuanOCR: two convolutions merge patches; ends of rows and images are learned vectors."""
    with read_nested(reader, "vision_config", _HUNYUAN_VISION) as vision:
        vision.names = {"num_attention_heads": ("num_attention_heads", "attention_heads")}
        layers, hidden = _build_hunyuan_tower(vision), vision.read_size("hidden_size")
        factor, image = vision.read_size("spatial_merge_size"), _build_picture(vision)
    text = build_text_decoder(reader, suffix, "hunyuan_vl_text", ties=True, nested_tie=True, flat=True)
    merger = build_part(
        build_norm(hidden, "rms"),
        build_convolution(hidden, 2 * hidden, factor, stride=factor),
        build_convolution(2 * hidden, 4 * hidden, 1),
        build_learned_vectors("tokens", 4 * hidden),
        build_linear(4 * hidden, text.width),
        build_learned_vectors("tokens", text.width, 3),
        build_norm(text.width, "rms"),
        over="image",
    )
    return join_vision_and_text(text, image, *layers, merger)


def _build_picture(vision: ConfigReader) -> ModelInputShape:
    """The largest image stands in where a sample does not say."""
    return ModelInputShape(
        name="image",
        kind="image",
        channels=vision.read_size_or("num_channels", 3),
        height=vision.read_size("max_image_size"),
    )
