"""Qwen-VL: a tower for images of any size and for videos, whose neighbours are merged."""

from service.formats.huggingface.multimodal.parts import in_front_of, text_decoder
from service.formats.huggingface.parts import (
    attend,
    learned,
    linear,
    merge,
    mlp,
    nested,
    norm,
    part,
    patches,
    side,
)
from service.formats.huggingface.reader import ConfigReader, as_blocks, invalid
from service.planning.models.architecture import Architecture, Block, Input, Layer
from service.planning.models.layers import SimpleLayer

_QWEN_VISION = {"num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}


_QWEN2_VISION = {**_QWEN_VISION, "depth": 32, "embed_dim": 1280, "hidden_size": 3584}


_QWEN25_VISION = {
    **_QWEN_VISION,
    "depth": 32,
    "hidden_size": 3584,
    "intermediate_size": 3420,
    "out_hidden_size": 3584,
    "window_size": 112,
}


_QWEN3_VISION = {
    **_QWEN_VISION,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "out_hidden_size": 3584,
    "num_position_embeddings": 2304,
    "patch_size": 16,
}


_QWEN_PICTURE = Input(name="image", kind="video", channels=3, frames=1)


def _qwen_stem(reader: ConfigReader, hidden: int, *, bias: bool) -> SimpleLayer:
    frames = reader.size("temporal_patch_size")
    channels = reader.size_or("in_channels", 3)
    step = side(reader, "patch_size") or 1
    return patches(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames)


def _qwen_merger(reader: ConfigReader, hidden: int, out: int, before: SimpleLayer) -> Block:
    factor = reader.size("spatial_merge_size")
    wide = hidden * factor**2
    return part(before, merge(factor), linear(wide, wide), linear(wide, out), over="image")


def qwen2_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2-VL."""
    with nested(reader, "vision_config", _QWEN2_VISION) as vision:
        hidden, heads = vision.size("embed_dim"), vision.size("num_heads")
        inner = hidden * vision.size_or("mlp_ratio", 4)
        block = Block(
            layers=(
                norm(hidden),
                attend(hidden, heads, heads_field="num_heads"),
                norm(hidden),
                mlp(hidden, inner),
            ),
            count=vision.depth("depth"),
            over=("image",),
        )
        layers = (
            part(_qwen_stem(vision, hidden, bias=False), over="image"),
            block,
            _qwen_merger(vision, hidden, vision.size("hidden_size"), norm(hidden)),
        )
    return in_front_of(text_decoder(reader, suffix, "qwen2_vl_text", flat=True), _QWEN_PICTURE, *layers)


def qwen25_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2.5-VL: most blocks attend within windows."""
    with nested(reader, "vision_config", _QWEN25_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_heads")
        window = (vision.size("window_size") // (side(vision, "patch_size") or 1)) ** 2
        everywhere = (
            vision.indexes("fullatt_block_indexes")
            if vision.states("fullatt_block_indexes")
            else frozenset({7, 15, 23, 31})
        )
        around = norm(hidden, "rms")
        feed_forward = mlp(hidden, vision.size("intermediate_size"), gated=True)
        contents: list[tuple[SimpleLayer, ...]] = [
            (
                around,
                attend(
                    hidden, heads, window=None if index in everywhere else window, heads_field="num_heads"
                ),
                around,
                feed_forward,
            )
            for index in range(vision.depth("depth"))
        ]
        layers = (
            part(_qwen_stem(vision, hidden, bias=False), over="image"),
            *_over_image(as_blocks(contents)),
            _qwen_merger(vision, hidden, vision.size("out_hidden_size"), around),
        )
    return in_front_of(text_decoder(reader, suffix, "qwen2_5_vl_text", flat=True), _QWEN_PICTURE, *layers)


def _over_image(blocks: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(
        Block(layers=block.layers, count=block.count, over=("image",))
        for block in blocks
        if isinstance(block, Block)
    )


def qwen3_vl(
    reader: ConfigReader, suffix: str, *, text: str, deep: tuple[int, ...] = (8, 16, 24)
) -> Architecture:
    """Qwen3-VL: outputs of some blocks enter the decoder too."""
    with nested(reader, "vision_config", _QWEN3_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_heads")
        out, factor = vision.size("out_hidden_size"), vision.size("spatial_merge_size")
        wide = hidden * factor**2
        block = Block(
            layers=(
                norm(hidden),
                attend(hidden, heads, heads_field="num_heads"),
                norm(hidden),
                mlp(hidden, vision.size("intermediate_size")),
            ),
            count=vision.depth("depth"),
            over=("image",),
        )
        taken = vision.config.get("deepstack_visual_indexes", list(deep))
        if not isinstance(taken, list):
            raise invalid("deepstack_visual_indexes", "deepstack_visual_indexes must be a list of integers")
        stem = (
            _qwen_stem(vision, hidden, bias=True),
            learned("positions", hidden, vision.size("num_position_embeddings")),
        )
        merger = _qwen_merger(vision, hidden, out, norm(hidden))
        # Outputs of some layers are merged on their own and added to the first layers of the decoder.
        beside = part(norm(wide), linear(wide, wide), linear(wide, out), over="image", count=len(taken) or 1)
        layers = (part(*stem, over="image"), block, merger, *((beside,) if taken else ()))
    return in_front_of(text_decoder(reader, suffix, text), _QWEN_PICTURE, *layers)
