"""Granite Vision 4: queries in windows read outputs of several layers of the tower, each set of its own.

What they give is added to layers of the decoder, over the same positions.
"""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.multimodal.projected import build_tower
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_norm,
    build_part,
    build_unsupported_error,
    read_choice,
    read_nested,
)
from service.formats.huggingface.reader import (
    ConfigDefault,
    ConfigReader,
    build_invalid_error,
    compute_head_size,
)
from service.formats.huggingface.vision.pairs import CLIP_IMAGE
from service.formats.huggingface.vision.transformers import compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Resampling, SimpleLayer

_HEAD_SIZE = 64
"""Width of the heads of the queries."""

_SPATIAL_PROJECTORS = 4
"""Projectors that each start from another neighbour of four."""

_QUERIES: Mapping[str, ConfigDefault] = {
    "num_hidden_layers": 12,
    "intermediate_size": 3072,
    "cross_attention_frequency": 2,
}
_ABSENT_QUERIES: Mapping[str, ConfigDefault] = {
    **_QUERIES,
    "num_hidden_layers": 1,
    "cross_attention_frequency": 1,
}


def _read_sides(reader: ConfigReader) -> tuple[int, int]:
    """Queries and patches along one side of a window."""
    stated = read_choice(reader, "downsample_rate", "")
    sides = [int(side) if side.isdecimal() else 0 for side in stated.split("/")]
    if len(sides) != 2 or min(sides) < 1 or sides[0] > sides[1]:  # noqa: PLR2004
        raise build_invalid_error(
            "downsample_rate", "downsample_rate must be queries over patches along a side, such as 4/8"
        )
    return sides[0], sides[1]


def _count_projectors(reader: ConfigReader) -> int:
    layers = reader.config.get("deepstack_layer_map")
    if not isinstance(layers, list):
        raise build_invalid_error(
            "deepstack_layer_map", "deepstack_layer_map must list layers of the tower and of the decoder"
        )
    return len(layers) + _SPATIAL_PROJECTORS


def _build_query_layers(
    reader: ConfigReader, hidden: int, queries: int, patches: int
) -> tuple[SimpleLayer, ...]:
    """Layers in which the queries of a window read each other, then its patches."""
    reader.refuse_flags("use_qformer_text_input")
    heads = hidden // _HEAD_SIZE
    if not heads:
        raise build_unsupported_error("hidden_size", f"only known where it is {_HEAD_SIZE} or more")
    size = compute_head_size(hidden, heads, "num_attention_heads")
    norm, inner = build_norm(hidden), reader.read_size("intermediate_size")
    own = build_attention(hidden, heads, head_size=size, window=queries)
    across = build_attention(hidden, heads, head_size=size, cross=hidden, window=patches)
    layers: list[SimpleLayer] = []
    for index in range(reader.read_depth("num_hidden_layers")):
        crossing = not index % reader.read_size("cross_attention_frequency")
        layers += [own, norm, *((across, norm) if crossing else ())]
        layers += [build_linear(hidden, inner), build_linear(inner, hidden), norm]
    return tuple(layers)


def _build_projectors(reader: ConfigReader, hidden: int, width: int) -> tuple[LayerBlock, LayerBlock]:
    """All projectors side by side: the norms of what they read, and the queries that read it."""
    queries, patches = _read_sides(reader)
    drops = read_choice(reader, "vision_feature_select_strategy", "default", "default", "full") == "default"
    usual = _QUERIES if reader.has_value("qformer_config") else _ABSENT_QUERIES
    with read_nested(reader, "qformer_config", usual) as nested:
        layers = _build_query_layers(nested, hidden, queries**2, patches**2)
    count = _count_projectors(reader)
    read = (build_norm(hidden), build_learned_vectors("positions", hidden, patches**2))
    asked = (
        build_learned_vectors("query_tokens", hidden, queries**2),
        build_norm(hidden),
        *layers,
        build_linear(hidden, width),
    )
    return (
        build_part(
            build_merge(1, drops=drops), *(replace(layer, count=count) for layer in read), over="image"
        ),
        build_part(
            Resampling(factor=patches / queries),
            *(replace(layer, count=count) for layer in asked),
            build_learned_vectors("tokens", width),
            over="image",
            reads="image",
        ),
    )


def build_granite_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """Granite Vision 4."""
    seen = build_tower(reader, "clip_vision_model", CLIP_IMAGE)
    with read_nested(reader, "vision_config", CLIP_IMAGE) as vision:
        across = compute_grid_side(vision)
    if across % _read_sides(reader)[1]:
        raise build_invalid_error("downsample_rate", "the windows of downsample_rate do not divide the grid")
    text = build_text_decoder(reader, suffix, "granite4_vision_text")
    projectors = _build_projectors(reader, seen.width, text.width)
    return join_vision_and_text(text, seen.image, *seen.layers, *projectors)
