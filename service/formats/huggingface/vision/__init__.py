"""Vision encoders: transformers over patches, Swin, convolutional networks, and image-text pairs."""

from collections.abc import Mapping
from functools import partial

from service.formats.huggingface.reader import ModelFamily
from service.formats.huggingface.vision.convolutional import build_convnext, build_resnet
from service.formats.huggingface.vision.pairs import (
    CLIP_IMAGE,
    CLIP_TEXT,
    SIGLIP_IMAGE,
    SIGLIP_TEXT,
    build_clip,
    build_clip_text,
    build_clip_vision,
    build_siglip,
    build_siglip_text,
    build_siglip_vision,
)
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    DEIT,
    DINOV2,
    DINOV3,
    REGISTERS,
    VIT,
    PatchTransformer,
    build_beit,
    build_swin,
    build_vit,
)

_VIT_SIZES = {**SIGLIP_IMAGE}


_DINO_SIZES = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 14,
}


_CLASSES = ("Model", CLASSIFICATION)


def _build_image_family(
    prefix: str, kind: PatchTransformer, defaults: Mapping[str, int], *more: str
) -> ModelFamily:
    return ModelFamily(prefix, partial(build_vit, kind), (*_CLASSES, *more), "Model", None, defaults)


FAMILIES: Mapping[str, ModelFamily] = {
    "vit": _build_image_family("ViT", VIT, _VIT_SIZES),
    "deit": _build_image_family("DeiT", DEIT, _VIT_SIZES, "ForImageClassificationWithTeacher"),
    "dinov2": _build_image_family("Dinov2", DINOV2, _DINO_SIZES),
    "dinov2_with_registers": _build_image_family(
        "Dinov2WithRegisters", REGISTERS, {**_DINO_SIZES, "patch_size": 16}
    ),
    "dinov3_vit": ModelFamily(
        "DINOv3ViT",
        partial(build_vit, DINOV3),
        ("Model",),
        "Model",
        None,
        {
            "patch_size": 16,
            "hidden_size": 384,
            "intermediate_size": 1536,
            "num_hidden_layers": 12,
            "num_attention_heads": 6,
            "image_size": 224,
        },
    ),
    "beit": ModelFamily(
        "Beit",
        build_beit,
        (*_CLASSES, "ForMaskedImageModeling"),
        "Model",
        None,
        {**_VIT_SIZES, "vocab_size": 8192},
    ),
    "swin": ModelFamily(
        "Swin",
        build_swin,
        _CLASSES,
        "Model",
        None,
        {"embed_dim": 96, "window_size": 7, "image_size": 224, "patch_size": 4},
    ),
    "convnext": ModelFamily("ConvNext", build_convnext, _CLASSES, "Model", None, {"image_size": 224}),
    "resnet": ModelFamily("ResNet", build_resnet, _CLASSES, "Model", None, {}),
    "clip": ModelFamily("CLIP", build_clip, ("Model",), "Model", None, {"projection_dim": 512}),
    "clip_text_model": ModelFamily(
        "CLIPTextModel", build_clip_text, ("", "WithProjection"), "", "max_position_embeddings", CLIP_TEXT
    ),
    "clip_vision_model": ModelFamily(
        "CLIPVisionModel", build_clip_vision, ("", "WithProjection"), "", None, CLIP_IMAGE
    ),
    "siglip": ModelFamily("Siglip", build_siglip, ("Model",), "Model", None, {}),
    "siglip_text_model": ModelFamily(
        "SiglipText", build_siglip_text, ("Model",), "Model", "max_position_embeddings", SIGLIP_TEXT
    ),
    "siglip_vision_model": ModelFamily(
        "SiglipVision", build_siglip_vision, ("Model",), "Model", None, SIGLIP_IMAGE
    ),
}
