"""Step-3, Step3-VL and Step-3.7: a tower, and two convolutions behind it that halve the grid.

Blocks of Step-3 have their norms behind attention and feed-forward, those of the later towers learned scales.
"""

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
    build_unsupported_error,
    read_activation_function,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader
from service.formats.huggingface.vision.transformers import build_image_input, compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock

_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1536,
    "num_hidden_layers": 47,
    "num_attention_heads": 16,
    "image_size": 728,
    "patch_size": 14,
    "mlp_ratio": 8960 / 1536,
}
_NAMES = {
    "hidden_size": ("width", "hidden_size"),
    "num_hidden_layers": ("layers", "num_hidden_layers"),
    "num_attention_heads": ("heads", "num_attention_heads"),
}
"""Names in the files that the maker publishes, before those of transformers."""

_STRIDE = 2
"""Stride of the convolutions behind the tower."""


def _build_tower(reader: ConfigReader) -> tuple[LayerBlock, ...]:
    reader.refuse_flags("use_cls_token", "ues_cls_token", "use_ln_post")
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    norm, scale = build_norm(hidden), build_learned_vectors("layer_scale", hidden)
    stem = build_part(
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), hidden, read_side(reader, "patch_size") or 1, bias=False
        ),
        build_learned_vectors("positions", hidden, compute_grid_side(reader) ** 2),
        norm,
        over="image",
    )
    inner = build_mlp(
        hidden,
        int(hidden * reader.read_factor("mlp_ratio")),
        function=read_activation_function(reader, "hidden_act", "quick_gelu"),
    )
    block = LayerBlock(
        layers=(norm, build_attention(hidden, heads), scale, norm, inner, scale),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    behind = build_part(
        build_convolution(hidden, 2 * hidden, stride=_STRIDE),
        build_convolution(2 * hidden, 4 * hidden, stride=_STRIDE),
        over="image",
    )
    return stem, block, behind


def build_step_vision(reader: ConfigReader, suffix: str, *, text: str) -> Architecture:
    """A decoder of Step or Qwen behind the tower."""
    if reader.read_size_or("understand_projector_stride", _STRIDE) != _STRIDE:
        raise build_unsupported_error("understand_projector_stride", "only known where it is 2")
    with read_nested(reader, "vision_config", _VISION) as vision:
        vision.names = _NAMES
        layers, image = _build_tower(vision), build_image_input(vision)
        wide = 4 * vision.read_size("hidden_size")
    decoder = build_text_decoder(reader, suffix, text)
    projector = build_part(
        build_linear(wide, decoder.width, bias=reader.read_flag("projector_bias")), over="image"
    )
    return join_vision_and_text(decoder, image, *layers, projector)


STEP_3_CLASSES = ("VLForConditionalGeneration", "vForConditionalGeneration")
"""Classes behind ``Step3``: that of the published file and of engines, and that of the code beside it."""

_STEP_3_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1792,
    "output_hidden_size": 4096,
    "num_hidden_layers": 63,
    "num_attention_heads": 16,
    "image_size": 728,
    "patch_size": 14,
}
"""Defaults of the code beside the weights, except for the inner width, which the published file overrides."""


def _build_step_3_tower(reader: ConfigReader) -> tuple[LayerBlock, ...]:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    norm, wide = build_norm(hidden), reader.read_size("output_hidden_size")
    stem = build_part(
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), hidden, read_side(reader, "patch_size") or 1
        ),
        build_learned_vectors("class_tokens", hidden),
        build_learned_vectors("positions", hidden, compute_grid_side(reader) ** 2 + 1),
        over="image",
    )
    inner = build_mlp(
        hidden,
        reader.read_size("intermediate_size"),
        function=read_activation_function(reader, "hidden_act", "quick_gelu"),
    )
    block = LayerBlock(
        layers=(build_attention(hidden, heads), norm, inner, norm),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    behind = build_part(
        build_merge(1, drops=True),
        build_convolution(hidden, wide, kernel=2, stride=_STRIDE),
        build_convolution(wide, 2 * wide, stride=_STRIDE),
        over="image",
    )
    return stem, block, behind


def build_step_3(reader: ConfigReader, suffix: str) -> Architecture:
    """Step-3."""
    del suffix
    if reader.read_size("understand_projector_stride") != _STRIDE:
        raise build_unsupported_error("understand_projector_stride", "only known where it is 2")
    with read_nested(reader, "vision_config", _STEP_3_VISION) as vision:
        layers, image = _build_step_3_tower(vision), build_image_input(vision)
        wide = 2 * vision.read_size("output_hidden_size")
    decoder = build_text_decoder(reader, "ForConditionalGeneration", "step3_text")
    bias = reader.read_flag("projector_bias", default=True)
    projector = build_part(build_linear(wide, decoder.width, bias=bias), over="image")
    return join_vision_and_text(decoder, image, *layers, projector)
