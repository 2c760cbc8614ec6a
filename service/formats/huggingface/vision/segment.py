"""The tower of Segment Anything (Kirillov et al. 2023): windows, and convolutions that narrow its output."""

from collections.abc import Mapping
from itertools import pairwise

from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, build_blocks, compute_head_size
from service.formats.huggingface.vision.transformers import compute_grid_side
from service.planning.models.architecture import LayerBlock
from service.planning.models.layers import SimpleLayer

SAM_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 768,
    "output_channels": 256,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 1024,
    "patch_size": 16,
    "qkv_bias": True,
    "use_abs_pos": True,
    "use_rel_pos": True,
    "window_size": 14,
    "mlp_dim": 3072,
}
_USUAL_GLOBAL = frozenset({2, 5, 8, 11})
"""Layers that attend to the whole image where a file does not number them."""


def _build_blocks(reader: ConfigReader, hidden: int, across: int) -> tuple[LayerBlock, ...]:
    heads, window = reader.read_size("num_attention_heads"), reader.read_size("window_size")
    everywhere = (
        reader.read_indexes("global_attn_indexes")
        if reader.has_value("global_attn_indexes")
        else _USUAL_GLOBAL
    )
    norm, inner = build_norm(hidden), build_mlp(hidden, reader.read_size("mlp_dim"))
    relative = reader.read_flag("use_rel_pos")
    size = compute_head_size(hidden, heads, reader.resolve_spelling("num_attention_heads"))

    def build_layer(side: int, seen: int | None) -> tuple[SimpleLayer, ...]:
        # A row for each offset of rows, and one for each of columns.
        table = (build_learned_vectors("relative_positions", size, 2 * (2 * side - 1)),) if relative else ()
        attention = build_attention(
            hidden, heads, bias=reader.read_flag("qkv_bias"), window=seen, score_bias=relative
        )
        return (norm, *table, attention, norm, inner)

    contents = [
        build_layer(across, None) if index in everywhere else build_layer(window, window**2)
        for index in range(reader.read_depth("num_hidden_layers"))
    ]
    return build_blocks(contents, over=("image",))


def build_sam_tower(reader: ConfigReader) -> tuple[LayerBlock, ...]:
    """Patches, blocks of which most attend within windows, and the convolutions behind them."""
    hidden, out, across = (
        reader.read_size("hidden_size"),
        reader.read_size("output_channels"),
        compute_grid_side(reader),
    )
    positions = (
        (build_learned_vectors("positions", hidden, across**2),) if reader.read_flag("use_abs_pos") else ()
    )
    stem = build_part(
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), hidden, read_side(reader, "patch_size") or 1
        ),
        *positions,
        over="image",
    )
    neck = build_part(
        build_convolution(hidden, out, 1, bias=False),
        build_norm(out),
        build_convolution(out, out, bias=False),
        build_norm(out),
        over="image",
    )
    return stem, *_build_blocks(reader, hidden, across), neck


def build_downsampling(*channels: int) -> tuple[SimpleLayer, ...]:
    """Convolutions that halve the grid, from each number of channels to the next."""
    return tuple(
        build_convolution(before, behind, stride=2, bias=False) for before, behind in pairwise(channels)
    )
