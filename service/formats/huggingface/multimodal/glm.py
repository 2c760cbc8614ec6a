"""GLM-V, GLM-5.3-Flash and GLM-OCR: a tower for images of any size, whose patches a convolution merges."""

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigReader
from service.formats.huggingface.vision.transformers import compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape

_VISION = {
    "depth": 24,
    "hidden_size": 1536,
    "num_heads": 12,
    "image_size": 336,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 4096,
    "intermediate_size": 13_696,
}
_FLASH_VISION = {
    "depth": 24,
    "hidden_size": 1024,
    "num_heads": 16,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 1536,
    "intermediate_size": 4096,
    "projection_intermediate_size": 10_240,
}
_OCR_VISION = {name: size for name, size in _FLASH_VISION.items() if name != "projection_intermediate_size"}
_PICTURE = ModelInputShape(name="image", kind="video", channels=3, frames=1)


def _build_tower(reader: ConfigReader) -> tuple[LayerBlock, ...]:
    """Patches, blocks, the merge, and a gated feed-forward as wide as the decoder."""
    hidden, out = reader.read_size("hidden_size"), reader.read_size("out_hidden_size")
    around = build_norm(hidden, "rms")
    frames = reader.read_size("temporal_patch_size")
    channels, step = reader.read_size_or("in_channels", 3), read_side(reader, "patch_size") or 1
    stem = build_part(
        build_patch_embedding(channels, hidden, step, frames=frames, frame_stride=frames),
        around,
        build_learned_vectors("positions", hidden, compute_grid_side(reader) ** 2),
        over="image",
    )
    attention = build_attention(
        hidden,
        reader.read_size("num_heads"),
        bias=reader.read_flag("attention_bias"),
        output_bias=False,
        heads_field="num_heads",
    )
    # The feed-forwards of the tower are as wide inside as the decoder is outside.
    block = LayerBlock(
        layers=(around, attention, around, build_mlp(hidden, out, gated=True, bias=False)),
        count=reader.read_depth("depth"),
        over=("image",),
    )
    return stem, block, _build_merger(reader, reader.read_size("intermediate_size"))


def _build_merger(reader: ConfigReader, inner: int) -> LayerBlock:
    """Joins neighbouring patches into one of the decoder's width, and passes it by one of ``inner``."""
    hidden, out = reader.read_size("hidden_size"), reader.read_size("out_hidden_size")
    factor = reader.read_size("spatial_merge_size")
    return build_part(
        build_norm(hidden, "rms"),
        build_convolution(hidden, out, factor, stride=factor),
        build_linear(out, out, bias=False),
        build_norm(out),
        build_mlp(out, inner, gated=True, bias=False),
        over="image",
    )


def build_glm_v(reader: ConfigReader, suffix: str, *, text: str) -> Architecture:
    """GLM-4.1V to 4.6V."""
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers = _build_tower(vision)
    return join_vision_and_text(build_text_decoder(reader, suffix, text), _PICTURE, *layers)


def _build_flash_tower(reader: ConfigReader, inner_of_merger: int) -> tuple[LayerBlock, ...]:
    """Patches, blocks whose positions rotate, the merge, and a gated feed-forward of a width of its own."""
    hidden = reader.read_size("hidden_size")
    around, bias = build_norm(hidden, "rms"), reader.read_flag("attention_bias", default=True)
    frames = reader.read_size("temporal_patch_size")
    channels, step = reader.read_size_or("in_channels", 3), read_side(reader, "patch_size") or 1
    stem = build_part(
        build_patch_embedding(channels, hidden, step, frames=frames, frame_stride=frames), over="image"
    )
    attention = build_attention(
        hidden,
        reader.read_size("num_heads"),
        bias=bias,
        output_bias=bias,
        query_key_norm="head",
        heads_field="num_heads",
    )
    inner = build_mlp(hidden, reader.read_size("intermediate_size"), gated=True, bias=bias)
    block = LayerBlock(
        layers=(around, attention, around, inner), count=reader.read_depth("depth"), over=("image",)
    )
    return stem, block, _build_merger(reader, inner_of_merger)


def build_glm5_next(reader: ConfigReader, suffix: str) -> Architecture:
    """GLM-5.3-Flash."""
    with read_nested(reader, "vision_config", _FLASH_VISION) as vision:
        layers = _build_flash_tower(vision, vision.read_size("projection_intermediate_size"))
    text = build_text_decoder(reader, suffix, "glm5_next_text", flat=True)
    return join_vision_and_text(text, _PICTURE, *layers)


def build_glm_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """GLM-OCR: the tower of GLM-5.3-Flash, whose merger is as wide inside as all channels of the decoder."""
    with read_nested(reader, "vision_config", _OCR_VISION) as vision:
        out, channels = vision.read_size("out_hidden_size"), vision.read_size_or("in_channels", 3)
        layers = _build_flash_tower(vision, out * channels)
    text = build_text_decoder(reader, suffix, "glm_ocr_text", nested_tie=True)
    return join_vision_and_text(text, _PICTURE, *layers)
