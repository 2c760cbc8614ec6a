"""Aria: learned queries read what a tower sees, as many as belong to the size of the image."""

from collections.abc import Mapping
from math import sqrt

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_norm,
    build_part,
    build_unsupported_error,
    read_choice,
    read_nested,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, build_invalid_error
from service.formats.huggingface.vision.transformers import (
    SIGLIP_VISION,
    build_image_input,
    build_vision_transformer,
    compute_grid_side,
)
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Resampling

_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}
_USUAL_QUERIES: Mapping[str, int] = {"1225": 128, "4900": 256}


def _read_queries(reader: ConfigReader) -> Mapping[int, int]:
    """Queries by the number of patches that they read."""
    stated = reader.config.get("projector_patch_to_query_dict")
    if stated is None:
        reader.defaulted.append("projector_patch_to_query_dict")
        stated = _USUAL_QUERIES
    name = "projector_patch_to_query_dict"
    if not isinstance(stated, Mapping) or not stated:
        raise build_invalid_error(name, f"{name} must name queries by a number of patches")
    found: dict[int, int] = {}
    for patches, queries in stated.items():
        if not str(patches).isdecimal() or isinstance(queries, bool) or not isinstance(queries, int):
            raise build_invalid_error(name, f"{name} must name queries by a number of patches")
        found[int(patches)] = queries
    if min(found.values()) < 1:
        raise build_invalid_error(name, f"{name} must name one query or more")
    return found


def _build_projector(
    hidden: int, heads: int, width: int, queries: int, factor: float
) -> tuple[LayerBlock, ...]:
    """Keys and values of all patches, the queries that read them, and a feed-forward of another width."""
    read = build_part(
        build_norm(hidden),
        build_linear(hidden, hidden, bias=False),
        build_linear(hidden, hidden, bias=False),
        over="image",
    )
    asked = build_part(
        Resampling(factor=factor, drops_extra_tokens=True),
        build_learned_vectors("query_tokens", hidden, queries),
        build_norm(hidden),
        build_linear(hidden, hidden, bias=False),
        build_attention(hidden, heads, cross=hidden),
        build_linear(hidden, hidden),
        build_norm(hidden),
        build_linear(hidden, width, bias=False),
        build_linear(width, width, bias=False),
        over="image",
        reads="image",
    )
    return read, asked


def build_aria(reader: ConfigReader, suffix: str) -> Architecture:
    """Aria: the tower of Idefics 3, queries, and a decoder of experts."""
    with read_nested(reader, "vision_config", _VISION) as vision:
        read_choice(vision, "model_type", "idefics3_vision", "idefics3_vision")
        layers, image = build_vision_transformer(vision, SIGLIP_VISION), build_image_input(vision)
        hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_attention_heads")
        across = compute_grid_side(vision)
    queries = _read_queries(reader)
    taken = queries.get(across**2)
    if taken is None:
        raise build_unsupported_error(
            "projector_patch_to_query_dict", f"only known where it has queries for {across**2} patches"
        )
    text = build_text_decoder(reader, suffix, "aria_text")
    factor = across / max(1, round(sqrt(taken)))
    projector = _build_projector(hidden, heads, text.width, max(queries.values()), factor)
    return join_vision_and_text(text, image, *layers, *projector)
