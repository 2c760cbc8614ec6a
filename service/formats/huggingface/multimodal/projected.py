"""A published vision tower (CLIP, SigLIP, Pixtral, InternViT) and a projector in front of a decoder."""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import NamedTuple

from service.formats.huggingface.multimodal.parts import (
    TextDecoder,
    VisionTower,
    build_text_decoder,
    join_vision_and_text,
)
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
    read_choice,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.formats.huggingface.vision.pairs import (
    CLIP_IMAGE,
    SIGLIP_2_IMAGE,
    SIGLIP_IMAGE,
    build_siglip_tower,
    fix_patches,
)
from service.formats.huggingface.vision.transformers import (
    CLIP_VISION,
    SIGLIP_VISION,
    build_image_input,
    build_vision_transformer,
    compute_grid_side,
)
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock
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


def _build_pixtral(reader: ConfigReader) -> VisionTower:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    step = read_side(reader, "patch_size") or 1
    before = build_norm(hidden, "rms")
    stem = (build_patch_embedding(reader.read_size_or("num_channels", 3), hidden, step, bias=False), before)
    block = LayerBlock(
        layers=(
            before,
            build_attention(hidden, heads, bias=False, output_bias=False),
            before,
            build_mlp(hidden, reader.read_size("intermediate_size"), gated=True, bias=False),
        ),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    return VisionTower(build_image_input(reader), (build_part(*stem, over="image"), block), hidden)


def _build_clip(reader: ConfigReader) -> VisionTower:
    return VisionTower(
        build_image_input(reader),
        build_vision_transformer(reader, CLIP_VISION),
        reader.read_size("hidden_size"),
    )


def _build_siglip(reader: ConfigReader) -> VisionTower:
    return VisionTower(build_image_input(reader), build_siglip_tower(reader), reader.read_size("hidden_size"))


def _build_siglip_2(reader: ConfigReader) -> VisionTower:
    return _build_siglip(fix_patches(reader))


class TowerKind(NamedTuple):
    """Builder of a vision tower, and the defaults of its configuration class."""

    build: Callable[[ConfigReader], VisionTower]
    defaults: Mapping[str, int]


_TOWERS: Mapping[str, TowerKind] = {
    "clip_vision_model": TowerKind(_build_clip, CLIP_IMAGE),
    "siglip_vision_model": TowerKind(_build_siglip, SIGLIP_IMAGE),
    "siglip2_vision_model": TowerKind(_build_siglip_2, SIGLIP_2_IMAGE),
    "pixtral": TowerKind(_build_pixtral, _PIXTRAL),
}


def build_tower(reader: ConfigReader, default: str, absent: Mapping[str, int]) -> VisionTower:
    """The tower of ``vision_config``; ``absent`` are its sizes where there is none at all."""
    stated = reader.config.get("vision_config")
    defaults = absent
    if isinstance(stated, Mapping):
        tower = _TOWERS.get(str(stated.get("model_type", default)))
        defaults = tower.defaults if tower else {}
    with read_nested(reader, "vision_config", defaults) as vision:
        name = read_choice(vision, "model_type", default, *_TOWERS)
        return _TOWERS[name].build(vision)


def _count_feature_layers(reader: ConfigReader, usual: int = 1) -> int:
    """Layers of the tower whose outputs are projected side by side."""
    value = reader.config.get("vision_feature_layer")
    if value is None:
        return usual
    return len(value) if isinstance(value, list) and value else 1


def build_llava(
    reader: ConfigReader,
    suffix: str,
    *,
    next_one: bool = False,
    siglip: bool = False,
    nested_tie: bool = False,
) -> Architecture:
    """LLaVA: a tower, two matrices and a decoder."""
    kind, absent = (
        ("siglip_vision_model", _ONEVISION_VISION) if siglip else ("clip_vision_model", _LLAVA_VISION)
    )
    seen = build_tower(reader, kind, absent)
    text = build_text_decoder(reader, suffix, "qwen2" if siglip else "llama", nested_tie=nested_tie)
    bias = reader.read_flag("multimodal_projector_bias", default=True)
    strategy = read_choice(reader, "vision_feature_select_strategy", "default", "default", "full")
    layers: list[SimpleLayer] = [
        build_merge(1, drops=strategy == "default"),
        build_linear(seen.width * _count_feature_layers(reader), text.width, bias=bias),
        build_linear(text.width, text.width, bias=bias),
    ]
    if next_one:
        layers.append(build_learned_vectors("tokens", text.width))
    return join_vision_and_text(text, seen.image, *seen.layers, build_part(*layers, over="image"))


def build_llava_next_video(reader: ConfigReader, suffix: str) -> Architecture:
    """LLaVA-NeXT-Video: LLaVA-NeXT, whose frames of a video are pooled without parameters."""
    read_choice(reader, "spatial_pool_mode", "average", "average", "max")
    return build_llava(reader, suffix, next_one=True, nested_tie=True)


_VIP_LAYERS = 5
"""Layers of the tower that ViP-LLaVA projects where its configuration does not list them."""


def build_vip_llava(reader: ConfigReader, suffix: str) -> Architecture:
    """ViP-LLaVA: CLIP, of which outputs of several layers pass a norm and two matrices."""
    seen = build_tower(reader, "clip_vision_model", _LLAVA_VISION)
    text = build_text_decoder(reader, suffix, "llama")
    wide = seen.width * _count_feature_layers(reader, _VIP_LAYERS)
    projector = build_part(
        build_merge(1, drops=True),
        build_norm(wide),
        build_linear(wide, text.width),
        build_linear(text.width, text.width),
        over="image",
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


def build_deepseek_vl(reader: ConfigReader, suffix: str) -> Architecture:
    """DeepSeek-VL: SigLIP, whose pooling stands beside, and two matrices."""
    seen = build_tower(reader, "siglip_vision_model", SIGLIP_IMAGE)
    text = build_text_decoder(reader, suffix, "llama", ties=True)
    projector = build_part(
        build_linear(seen.width, text.width), build_linear(text.width, text.width), over="image"
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


def build_lighton_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """LightOnOCR: the tower and projector of Mistral 3, and Qwen3."""
    if not reader.has_value("text_config"):
        raise PlanningError("CONFIG_FIELD_MISSING", "/text_config", "text_config is missing")
    return build_mistral3(reader, suffix, text_type="qwen3")


MISTRAL_VISION: Mapping[str, int] = {**_PIXTRAL, "image_size": 1540, "patch_size": 14}
MISTRAL_LARGE_VISION: Mapping[str, int] = {
    **MISTRAL_VISION,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 30,
}


def build_mistral3(
    reader: ConfigReader,
    suffix: str,
    *,
    text_type: str = "mistral",
    absent: Mapping[str, int] = MISTRAL_VISION,
    ties: bool = True,
) -> Architecture:
    """Mistral 3 and LightOnOCR: Pixtral, neighbours merged."""
    seen = build_tower(reader, "pixtral", absent)
    text = build_text_decoder(reader, suffix, text_type, ties=ties)
    factor = reader.read_size_or("spatial_merge_size", 2)
    bias = reader.read_flag("multimodal_projector_bias")
    projector = build_part(
        build_norm(seen.width, "rms"),
        build_merge(factor),
        build_linear(seen.width * factor**2, seen.width, bias=False),
        build_linear(seen.width * _count_feature_layers(reader), text.width, bias=bias),
        build_linear(text.width, text.width, bias=bias),
        over="image",
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


def build_paligemma(reader: ConfigReader, suffix: str) -> Architecture:
    """PaliGemma: SigLIP and one matrix."""
    absent = {**SIGLIP_IMAGE, **_PALIGEMMA_VISION}
    seen = build_tower(reader, "siglip_vision_model", absent)
    text = build_text_decoder(reader, suffix, "gemma", ties=True)
    width = reader.read_size_or("projection_dim", 2048)
    return join_vision_and_text(
        text, seen.image, *seen.layers, build_part(build_linear(seen.width, width), over="image")
    )


_PALIGEMMA_VISION = {
    "intermediate_size": 4304,
    "hidden_size": 1152,
    "patch_size": 14,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
}


def build_gemma3(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 3: SigLIP, pooled to a fixed number of positions."""
    seen = build_tower(reader, "siglip_vision_model", SIGLIP_IMAGE)
    text = build_text_decoder(reader, suffix, "gemma3_text", ties=True)
    pooled = reader.read_size_or("mm_tokens_per_image", 256)
    with read_nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        across = compute_grid_side(vision)
    if isqrt(pooled) ** 2 != pooled or across % isqrt(pooled):
        raise build_invalid_error(
            "mm_tokens_per_image", "mm_tokens_per_image does not divide the grid of patches"
        )
    projector = build_part(
        build_merge(across // isqrt(pooled)),
        build_norm(seen.width, "rms"),
        build_linear(seen.width, text.width, bias=False),
        over="image",
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


_IDEFICS_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}


def build_idefics3(reader: ConfigReader, suffix: str) -> Architecture:
    """Idefics 3 and SmolVLM: SigLIP, neighbours merged."""
    with read_nested(reader, "vision_config", _IDEFICS_VISION) as vision:
        layers, image = build_vision_transformer(vision, SIGLIP_VISION), build_image_input(vision)
        width = vision.read_size("hidden_size")
    text = build_text_decoder(reader, suffix, "llama")
    factor = reader.read_size_or("scale_factor", 2)
    projector = build_part(
        build_merge(factor), build_linear(width * factor**2, text.width, bias=False), over="image"
    )
    return join_vision_and_text(text, image, *layers, projector)


_INTERN_VISION = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14,
}


def _build_intern_tower(reader: ConfigReader) -> VisionTower:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    kind = read_choice(reader, "norm_type", "layer_norm", "layer_norm", "rms_norm")
    around = build_norm(hidden, "layer" if kind == "layer_norm" else "rms")
    stem: list[SimpleLayer] = [
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), hidden, read_side(reader, "patch_size") or 1
        ),
        build_learned_vectors("class_tokens", hidden),
    ]
    if reader.read_flag("use_mask_token"):
        stem.append(build_learned_vectors("mask_token", hidden))
    if reader.read_flag("use_absolute_position_embeddings", default=True):
        stem.append(build_learned_vectors("positions", hidden, compute_grid_side(reader) ** 2 + 1))
    scale = build_learned_vectors("layer_scale", hidden)
    block = LayerBlock(
        layers=(
            around,
            build_attention(
                hidden,
                heads,
                bias=reader.read_flag("attention_bias"),
                query_key_norm="projection" if reader.read_flag("use_qk_norm") else "none",
            ),
            scale,
            around,
            build_mlp(hidden, reader.read_size("intermediate_size")),
            scale,
        ),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    pooled = reader.read_flag("use_mean_pooling", default=True)
    behind = () if pooled else (build_part(build_norm(hidden), over="image"),)
    return VisionTower(build_image_input(reader), (build_part(*stem, over="image"), block, *behind), hidden)


def build_internvl(reader: ConfigReader, suffix: str) -> Architecture:
    """InternVL: InternViT, neighbours merged."""
    with read_nested(reader, "vision_config", _INTERN_VISION) as vision:
        seen = _build_intern_tower(vision)
    text = build_text_decoder(reader, suffix, "qwen2", ties=True)
    return _join_intern(reader, seen, text)


def build_qianfan_ocr(reader: ConfigReader, suffix: str) -> Architecture:
    """Qianfan-OCR: InternVL with a decoder of Qwen3."""
    with read_nested(reader, "vision_config", {**_INTERN_VISION, "attention_bias": True}) as vision:
        seen = _build_intern_tower(vision)
    return _join_intern(reader, seen, build_text_decoder(reader, suffix, "qwen3"))


_INTERN_NAMES = {
    "attention_bias": ("qkv_bias", "attention_bias"),
    "use_qk_norm": ("qk_normalization", "use_qk_norm"),
}


def build_internvl_chat(reader: ConfigReader, suffix: str) -> Architecture:
    """InternVL as it is published beside its code: other names, and a tie of the decoder's own."""
    del suffix
    with read_nested(reader, "vision_config", {}) as vision:
        vision.names = _INTERN_NAMES
        seen = _build_intern_tower(vision)
    text = build_text_decoder(reader, "ForConditionalGeneration", "qwen2", own_tie=True, field="llm_config")
    return _join_intern(reader, seen, text)


def _join_intern(reader: ConfigReader, seen: VisionTower, text: TextDecoder) -> Architecture:
    ratio = reader.config.get("downsample_ratio", 0.5)
    if not isinstance(ratio, float) or not 0 < ratio <= 1 or (1 / ratio) % 1:
        raise build_invalid_error("downsample_ratio", "downsample_ratio must be one over a whole number")
    factor = int(1 / ratio)
    wide = seen.width * factor**2
    projector = build_part(
        build_merge(factor, drops=True),
        build_norm(wide),
        build_linear(wide, text.width),
        build_linear(text.width, text.width),
        over="image",
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


def build_cohere_vision(reader: ConfigReader, suffix: str, *, norm: bool) -> Architecture:
    """Aya Vision, with a norm, and Command A Vision: SigLIP, neighbours merged, a gated projector."""
    seen = build_tower(reader, "siglip_vision_model", SIGLIP_IMAGE)
    text = build_text_decoder(reader, suffix, "cohere2", ties=True)
    factor = reader.read_size_or("downsample_factor", 2)
    wide = seen.width * factor**2
    inner = reader.read_size_or("alignment_intermediate_size", text.width if norm else 36_864)
    projector = build_part(
        build_merge(factor),
        *((build_norm(wide),) if norm else ()),
        build_linear(wide, inner),
        build_linear(inner // 2, text.width),
        over="image",
    )
    return join_vision_and_text(text, seen.image, *seen.layers, projector)


_MINICPM_DECODERS = {"2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}
_MINICPM_HEAD = 128


def build_minicpm_v(reader: ConfigReader, suffix: str) -> Architecture:
    """MiniCPM-V: SigLIP, of which learned queries read a fixed number of positions."""
    del suffix
    if reader.read_flag("drop_vision_last_layer"):
        raise build_unsupported_error("drop_vision_last_layer", "only known where it is false")
    decoder = _MINICPM_DECODERS.get(str(reader.config.get("version")))
    if decoder is None:
        known = ", ".join(_MINICPM_DECODERS)
        raise build_unsupported_error("version", f"decoders are known of the versions {known}")
    with read_nested(reader, "vision_config", SIGLIP_IMAGE) as vision:
        layers, image = build_vision_transformer(vision, SIGLIP_VISION), build_image_input(vision)
        width = vision.read_size("hidden_size")
    text = build_text_decoder(reader, "ForConditionalGeneration", decoder, own_tie=True, flat=True)
    norm = build_norm(text.width)
    resampler = build_part(
        build_linear(width, text.width, bias=False),
        norm,
        build_learned_vectors("query_tokens", text.width, reader.read_size("query_num")),
        norm,
        build_attention(text.width, max(1, text.width // _MINICPM_HEAD)),
        norm,
        build_linear(text.width, text.width, bias=False),
        over="image",
    )
    return join_vision_and_text(text, image, *layers, resampler)
