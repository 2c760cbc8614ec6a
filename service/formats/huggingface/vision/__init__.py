"""Vision encoders: transformers over patches, Swin, convolutional networks, and image-text pairs."""

from collections.abc import Mapping
from functools import partial

from service.formats.huggingface.reader import Family
from service.formats.huggingface.vision.convolutional import convnext, resnet
from service.formats.huggingface.vision.pairs import (
    CLIP_IMAGE,
    CLIP_TEXT,
    SIGLIP_IMAGE,
    SIGLIP_TEXT,
    clip,
    clip_text,
    clip_vision,
    siglip,
    siglip_text,
    siglip_vision,
)
from service.formats.huggingface.vision.transformers import (
    CLASSIFICATION,
    DEIT,
    DINOV2,
    DINOV3,
    REGISTERS,
    VIT,
    Patches,
    beit,
    swin,
    vit,
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


def _image_family(prefix: str, kind: Patches, defaults: Mapping[str, int], *more: str) -> Family:
    return Family(prefix, partial(vit, kind), (*_CLASSES, *more), "Model", None, defaults)


FAMILIES: Mapping[str, Family] = {
    "vit": _image_family("ViT", VIT, _VIT_SIZES),
    "deit": _image_family("DeiT", DEIT, _VIT_SIZES, "ForImageClassificationWithTeacher"),
    "dinov2": _image_family("Dinov2", DINOV2, _DINO_SIZES),
    "dinov2_with_registers": _image_family(
        "Dinov2WithRegisters", REGISTERS, {**_DINO_SIZES, "patch_size": 16}
    ),
    "dinov3_vit": Family(
        "DINOv3ViT",
        partial(vit, DINOV3),
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
    "beit": Family(
        "Beit",
        beit,
        (*_CLASSES, "ForMaskedImageModeling"),
        "Model",
        None,
        {**_VIT_SIZES, "vocab_size": 8192},
    ),
    "swin": Family(
        "Swin",
        swin,
        _CLASSES,
        "Model",
        None,
        {"embed_dim": 96, "window_size": 7, "image_size": 224, "patch_size": 4},
    ),
    "convnext": Family("ConvNext", convnext, _CLASSES, "Model", None, {"image_size": 224}),
    "resnet": Family("ResNet", resnet, _CLASSES, "Model", None, {}),
    "clip": Family("CLIP", clip, ("Model",), "Model", None, {"projection_dim": 512}),
    "clip_text_model": Family(
        "CLIPTextModel", clip_text, ("", "WithProjection"), "", "max_position_embeddings", CLIP_TEXT
    ),
    "clip_vision_model": Family("CLIPVisionModel", clip_vision, ("", "WithProjection"), "", None, CLIP_IMAGE),
    "siglip": Family("Siglip", siglip, ("Model",), "Model", None, {}),
    "siglip_text_model": Family(
        "SiglipText", siglip_text, ("Model",), "Model", "max_position_embeddings", SIGLIP_TEXT
    ),
    "siglip_vision_model": Family("SiglipVision", siglip_vision, ("Model",), "Model", None, SIGLIP_IMAGE),
}
