"""Qwen-VL: a tower for images of any size and for videos, whose neighbours are merged."""

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
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigReader, build_blocks, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import SimpleLayer

_QWEN_VISION = {"num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}


_QWEN2_VISION = {**_QWEN_VISION, "depth": 32, "embed_dim": 1280, "hidden_size": 3584}


QWEN25_VISION = {
    **_QWEN_VISION,
    "depth": 32,
    "hidden_size": 3584,
    "intermediate_size": 3420,
    "out_hidden_size": 3584,
    "window_size": 112,
}


QWEN3_VISION = {
    **_QWEN_VISION,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "out_hidden_size": 3584,
    "num_position_embeddings": 2304,
    "patch_size": 16,
}


QWEN_PICTURE = ModelInputShape(name="image", kind="video", channels=3, frames=1)


def _build_qwen_stem(reader: ConfigReader, hidden: int, *, bias: bool) -> SimpleLayer:
    frames = reader.read_size("temporal_patch_size")
    channels = reader.read_size_or("in_channels", 3)
    step = read_side(reader, "patch_size") or 1
    return build_patch_embedding(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames)


def _build_qwen_merger(reader: ConfigReader, hidden: int, out: int, before: SimpleLayer) -> LayerBlock:
    factor = reader.read_size("spatial_merge_size")
    wide = hidden * factor**2
    return build_part(
        before, build_merge(factor), build_linear(wide, wide), build_linear(wide, out), over="image"
    )


def build_qwen2_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2-VL."""
    with read_nested(reader, "vision_config", _QWEN2_VISION) as vision:
        hidden, heads = vision.read_size("embed_dim"), vision.read_size("num_heads")
        inner = hidden * vision.read_size_or("mlp_ratio", 4)
        block = LayerBlock(
            layers=(
                build_norm(hidden),
                build_attention(hidden, heads, heads_field="num_heads"),
                build_norm(hidden),
                build_mlp(hidden, inner),
            ),
            count=vision.read_depth("depth"),
            over=("image",),
        )
        layers = (
            build_part(_build_qwen_stem(vision, hidden, bias=False), over="image"),
            block,
            _build_qwen_merger(vision, hidden, vision.read_size("hidden_size"), build_norm(hidden)),
        )
    return join_vision_and_text(
        build_text_decoder(reader, suffix, "qwen2_vl_text", flat=True), QWEN_PICTURE, *layers
    )


def build_windowed_tower(vision: ConfigReader) -> tuple[ModelLayer, ...]:
    """The tower of Qwen2.5-VL: most blocks attend within windows."""
    hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_heads")
    window = (vision.read_size("window_size") // (read_side(vision, "patch_size") or 1)) ** 2
    everywhere = (
        vision.read_indexes("fullatt_block_indexes")
        if vision.has_value("fullatt_block_indexes")
        else frozenset({7, 15, 23, 31})
    )
    around = build_norm(hidden, "rms")
    feed_forward = build_mlp(hidden, vision.read_size("intermediate_size"), gated=True)
    contents: list[tuple[SimpleLayer, ...]] = [
        (
            around,
            build_attention(
                hidden,
                heads,
                key_value_heads=vision.read_optional_size("num_key_value_heads"),
                window=None if index in everywhere else window,
                heads_field="num_heads",
            ),
            around,
            feed_forward,
        )
        for index in range(vision.read_depth("depth"))
    ]
    return (
        build_part(_build_qwen_stem(vision, hidden, bias=False), over="image"),
        *build_blocks(contents, over=("image",)),
        _build_qwen_merger(vision, hidden, vision.read_size("out_hidden_size"), around),
    )


def build_qwen25_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2.5-VL."""
    with read_nested(reader, "vision_config", QWEN25_VISION) as vision:
        layers = build_windowed_tower(vision)
    return join_vision_and_text(
        build_text_decoder(reader, suffix, "qwen2_5_vl_text", flat=True), QWEN_PICTURE, *layers
    )


def build_exaone_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """EXAONE 4.5: the tower of Qwen2.5-VL, with fewer heads of keys and values."""
    with read_nested(reader, "vision_config", {**QWEN25_VISION, "num_key_value_heads": 8}) as vision:
        layers = build_windowed_tower(vision)
    return join_vision_and_text(build_text_decoder(reader, suffix, "exaone4"), QWEN_PICTURE, *layers)


def build_hyperclovax_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """HyperCLOVA X Vision 2: the tower of Qwen2.5-VL and one matrix."""
    with read_nested(reader, "vision_config", QWEN25_VISION) as vision:
        layers, seen = build_windowed_tower(vision), vision.read_size("out_hidden_size")
    text = build_text_decoder(reader, suffix, "hyperclovax", ties=True)
    projector = build_part(build_linear(seen, text.width), over="image")
    return join_vision_and_text(text, QWEN_PICTURE, *layers, projector)


def build_deep_tower(vision: ConfigReader, deep: tuple[int, ...] = (8, 16, 24)) -> tuple[ModelLayer, ...]:
    """The tower of Qwen3-VL: outputs of some blocks enter the decoder too."""
    hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_heads")
    out, factor = vision.read_size("out_hidden_size"), vision.read_size("spatial_merge_size")
    wide = hidden * factor**2
    block = LayerBlock(
        layers=(
            build_norm(hidden),
            build_attention(hidden, heads, heads_field="num_heads"),
            build_norm(hidden),
            build_mlp(hidden, vision.read_size("intermediate_size")),
        ),
        count=vision.read_depth("depth"),
        over=("image",),
    )
    taken = vision.config.get("deepstack_visual_indexes", list(deep))
    if not isinstance(taken, list):
        raise build_invalid_error(
            "deepstack_visual_indexes", "deepstack_visual_indexes must be a list of integers"
        )
    stem = (
        _build_qwen_stem(vision, hidden, bias=True),
        build_learned_vectors("positions", hidden, vision.read_size("num_position_embeddings")),
    )
    merger = _build_qwen_merger(vision, hidden, out, build_norm(hidden))
    # Outputs of some layers are merged on their own and added to the first layers of the decoder.
    beside = build_part(
        build_norm(wide),
        build_linear(wide, wide),
        build_linear(wide, out),
        over="image",
        count=len(taken) or 1,
    )
    return (build_part(*stem, over="image"), block, merger, *((beside,) if taken else ()))


def build_qwen3_vl(
    reader: ConfigReader, suffix: str, *, text: str, deep: tuple[int, ...] = (8, 16, 24)
) -> Architecture:
    """Qwen3-VL and later ones."""
    with read_nested(reader, "vision_config", QWEN3_VISION) as vision:
        layers = build_deep_tower(vision, deep)
    return join_vision_and_text(build_text_decoder(reader, suffix, text), QWEN_PICTURE, *layers)
