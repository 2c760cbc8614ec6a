"""A published vision tower (CLIP, SigLIP, Pixtral, InternViT) and a projector in front of a decoder."""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import NamedTuple

from service.formats.huggingface.multimodal.parts import Seen, in_front_of, text_decoder
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
    word,
)
from service.formats.huggingface.reader import ConfigReader, invalid
from service.formats.huggingface.vision.pairs import CLIP_IMAGE, SIGLIP_IMAGE, siglip_tower
from service.formats.huggingface.vision.transformers import (
    CLIP_VISION,
    SIGLIP_VISION,
    grid_side,
    image_input,
    vision_transformer,
)
from service.planning.models.architecture import Architecture, Block
from service.planning.models.layers import SimpleLayer

_LLAVA_VISION = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}


_ONEVISION_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "image_size": 384,
    "patch_size": 14,
}


_PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 1024,
    "patch_size": 16,
}


def _pixtral(reader: ConfigReader) -> Seen:
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    step = side(reader, "patch_size") or 1
    before = norm(hidden, "rms")
    stem = (patches(reader.size_or("num_channels", 3), hidden, step, bias=False), before)
    block = Block(
        layers=(
            before,
            attend(hidden, heads, bias=False, output_bias=False),
            before,
            mlp(hidden, reader.size("intermediate_size"), gated=True, bias=False),
        ),
        count=reader.depth("num_hidden_layers"),
        over=("image",),
    )
    return Seen(image_input(reader), (part(*stem, over="image"), block), hidden)


def _clip(reader: ConfigReader) -> Seen:
    return Seen(image_input(reader), vision_transformer(reader, CLIP_VISION), reader.size("hidden_size"))


def _siglip(reader: ConfigReader) -> Seen:
    return Seen(image_input(reader), siglip_tower(reader), reader.size("hidden_size"))


class Tower(NamedTuple):
    """How a vision tower is built, and what its configuration class leaves to defaults."""

    build: Callable[[ConfigReader], Seen]
    defaults: Mapping[str, int]


_TOWERS: Mapping[str, Tower] = {
    "clip_vision_model": Tower(_clip, CLIP_IMAGE),
    "siglip_vision_model": Tower(_siglip, SIGLIP_IMAGE),
    "pixtral": Tower(_pixtral, _PIXTRAL),
}


def _seen(reader: ConfigReader, default: str, absent: Mapping[str, int]) -> Seen:
    """The tower of ``vision_config``; ``absent`` are its sizes where there is none at all."""
    stated = reader.config.get("vision_config")
    defaults = absent
    if isinstance(stated, Mapping):
        tower = _TOWERS.get(str(stated.get("model_type", default)))
        defaults = tower.defaults if tower else {}
    with nested(reader, "vision_config", defaults) as vision:
        name = word(vision, "model_type", default, *_TOWERS)
        return _TOWERS[name].build(vision)


def _features(reader: ConfigReader) -> int:
    """Layers of the tower whose outputs are projected side by side."""
    value = reader.config.get("vision_feature_layer")
    return len(value) if isinstance(value, list) and value else 1


def llava(reader: ConfigReader, suffix: str, *, next_one: bool = False, siglip: bool = False) -> Architecture:
    """LLaVA: a tower, two matrices and a decoder."""
    kind, absent = (
        ("siglip_vision_model", _ONEVISION_VISION) if siglip else ("clip_vision_model", _LLAVA_VISION)
    )
    seen = _seen(reader, kind, absent)
    text = text_decoder(reader, suffix, "qwen2" if siglip else "llama")
    bias = reader.flag("multimodal_projector_bias", default=True)
    strategy = word(reader, "vision_feature_select_strategy", "default", "default", "full")
    layers: list[SimpleLayer] = [
        merge(1, drops=strategy == "default"),
        linear(seen.width * _features(reader), text.width, bias=bias),
        linear(text.width, text.width, bias=bias),
    ]
    if next_one:
        layers.append(learned("tokens", text.width))
    return in_front_of(text, seen.image, *seen.layers, part(*layers, over="image"))


def mistral3(reader: ConfigReader, suffix: str) -> Architecture:
    """Mistral 3: Pixtral, neighbours merged."""
    seen = _seen(reader, "pixtral", {**_PIXTRAL, "image_size": 1540, "patch_size": 14})
    text = text_decoder(reader, suffix, "mistral", ties=True)
    factor = reader.size_or("spatial_merge_size", 2)
    bias = reader.flag("multimodal_projector_bias")
    projector = part(
        norm(seen.width, "rms"),
        merge(factor),
        linear(seen.width * factor**2, seen.width, bias=False),
        linear(seen.width * _features(reader), text.width, bias=bias),
        linear(text.width, text.width, bias=bias),
        over="image",
    )
    return in_front_of(text, seen.image, *seen.layers, projector)


def paligemma(reader: ConfigReader, suffix: str) -> Architecture:
    """PaliGemma: SigLIP and one matrix."""
    absent = {**SIGLIP_IMAGE, **_PALIGEMMA_VISION}
    seen = _seen(reader, "siglip_vision_model", absent)
    text = text_decoder(reader, suffix, "gemma", ties=True)
    width = reader.size_or("projection_dim", 2048)
    return in_front_of(text, seen.image, *seen.layers, part(linear(seen.width, width), over="image"))


_PALIGEMMA_VISION = {
    "intermediate_size": 4304,
    "hidden_size": 1152,
    "patch_size": 14,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
}


def gemma3(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 3: SigLIP, pooled to a fixed number of positions."""
    seen = _seen(reader, "siglip_vision_model", SIGLIP_IMAGE)
    text = text_decoder(reader, suffix, "gemma3_text", ties=True)
    pooled = reader.size_or("mm_tokens_per_image", 256)
    with nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        across = grid_side(vision)
    if isqrt(pooled) ** 2 != pooled or across % isqrt(pooled):
        raise invalid("mm_tokens_per_image", "mm_tokens_per_image does not divide the grid of patches")
    projector = part(
        merge(across // isqrt(pooled)),
        norm(seen.width, "rms"),
        linear(seen.width, text.width, bias=False),
        over="image",
    )
    return in_front_of(text, seen.image, *seen.layers, projector)


_IDEFICS_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}


def idefics3(reader: ConfigReader, suffix: str) -> Architecture:
    """Idefics 3 and SmolVLM: SigLIP, neighbours merged."""
    with nested(reader, "vision_config", _IDEFICS_VISION) as vision:
        layers, image = vision_transformer(vision, SIGLIP_VISION), image_input(vision)
        width = vision.size("hidden_size")
    text = text_decoder(reader, suffix, "llama")
    factor = reader.size_or("scale_factor", 2)
    projector = part(merge(factor), linear(width * factor**2, text.width, bias=False), over="image")
    return in_front_of(text, image, *layers, projector)


_INTERN_VISION = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14,
}


def _intern_tower(reader: ConfigReader) -> Seen:
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    kind = word(reader, "norm_type", "layer_norm", "layer_norm", "rms_norm")
    around = norm(hidden, "layer" if kind == "layer_norm" else "rms")
    stem: list[SimpleLayer] = [
        patches(reader.size_or("num_channels", 3), hidden, side(reader, "patch_size") or 1),
        learned("class_tokens", hidden),
    ]
    if reader.flag("use_mask_token"):
        stem.append(learned("mask_token", hidden))
    if reader.flag("use_absolute_position_embeddings", default=True):
        stem.append(learned("positions", hidden, grid_side(reader) ** 2 + 1))
    scale = learned("layer_scale", hidden)
    block = Block(
        layers=(
            around,
            attend(
                hidden,
                heads,
                bias=reader.flag("attention_bias"),
                query_key_norm="projection" if reader.flag("use_qk_norm") else "none",
            ),
            scale,
            around,
            mlp(hidden, reader.size("intermediate_size")),
            scale,
        ),
        count=reader.depth("num_hidden_layers"),
        over=("image",),
    )
    pooled = reader.flag("use_mean_pooling", default=True)
    behind = () if pooled else (part(norm(hidden), over="image"),)
    return Seen(image_input(reader), (part(*stem, over="image"), block, *behind), hidden)


def internvl(reader: ConfigReader, suffix: str) -> Architecture:
    """InternVL: InternViT, neighbours merged."""
    with nested(reader, "vision_config", _INTERN_VISION) as vision:
        seen = _intern_tower(vision)
    text = text_decoder(reader, suffix, "qwen2", ties=True)
    ratio = reader.config.get("downsample_ratio", 0.5)
    if not isinstance(ratio, float) or not 0 < ratio <= 1 or (1 / ratio) % 1:
        raise invalid("downsample_ratio", "downsample_ratio must be one over a whole number")
    factor = int(1 / ratio)
    wide = seen.width * factor**2
    projector = part(
        merge(factor, drops=True),
        norm(wide),
        linear(wide, text.width),
        linear(text.width, text.width),
        over="image",
    )
    return in_front_of(text, seen.image, *seen.layers, projector)
