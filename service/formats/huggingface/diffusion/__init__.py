"""Diffusion models from the ``config.json`` of diffusers, which names its class in ``_class_name``."""

from collections.abc import Callable, Mapping

from service.formats.huggingface.diffusion.convolutional import build_autoencoder, build_unet
from service.formats.huggingface.diffusion.crossing import (
    build_dit,
    build_ltx,
    build_pixart,
    build_transformer_2d,
    build_wan,
)
from service.formats.huggingface.diffusion.joint import (
    build_cogvideox,
    build_flux,
    build_flux_2,
    build_hunyuan_video,
    build_mochi,
    build_qwen_image,
    build_sd3,
)
from service.formats.huggingface.reader import ConfigReader, ModelFamily
from service.planning.models.architecture import Architecture


def _build_family(
    name: str, build: Callable[[ConfigReader, str], Architecture], **defaults: int
) -> ModelFamily:
    return ModelFamily(name, build, ("",), "", None, defaults)


_DIT = {"num_attention_heads": 16, "attention_head_dim": 72, "num_layers": 28, "num_embeds_ada_norm": 1000}


FAMILIES: Mapping[str, ModelFamily] = {
    "DiTTransformer2DModel": _build_family("DiTTransformer2DModel", build_dit, **_DIT),
    "PixArtTransformer2DModel": _build_family(
        "PixArtTransformer2DModel",
        build_pixart,
        num_attention_heads=16,
        attention_head_dim=72,
        num_layers=28,
        cross_attention_dim=1152,
    ),
    "Transformer2DModel": _build_family("Transformer2DModel", build_transformer_2d),
    "SD3Transformer2DModel": _build_family(
        "SD3Transformer2DModel",
        build_sd3,
        num_layers=18,
        attention_head_dim=64,
        num_attention_heads=18,
        joint_attention_dim=4096,
        pooled_projection_dim=2048,
    ),
    "FluxTransformer2DModel": _build_family(
        "FluxTransformer2DModel",
        build_flux,
        num_layers=19,
        num_single_layers=38,
        attention_head_dim=128,
        num_attention_heads=24,
        joint_attention_dim=4096,
        pooled_projection_dim=768,
    ),
    "Flux2Transformer2DModel": _build_family(
        "Flux2Transformer2DModel",
        build_flux_2,
        num_layers=8,
        num_single_layers=48,
        attention_head_dim=128,
        num_attention_heads=48,
        joint_attention_dim=15_360,
    ),
    "QwenImageTransformer2DModel": _build_family(
        "QwenImageTransformer2DModel",
        build_qwen_image,
        num_layers=60,
        attention_head_dim=128,
        num_attention_heads=24,
        joint_attention_dim=3584,
    ),
    "HunyuanVideoTransformer3DModel": _build_family(
        "HunyuanVideoTransformer3DModel",
        build_hunyuan_video,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=20,
        num_single_layers=40,
        num_refiner_layers=2,
        text_embed_dim=4096,
        pooled_projection_dim=768,
    ),
    "CogVideoXTransformer3DModel": _build_family(
        "CogVideoXTransformer3DModel",
        build_cogvideox,
        num_attention_heads=30,
        attention_head_dim=64,
        time_embed_dim=512,
        text_embed_dim=4096,
        num_layers=30,
    ),
    "WanTransformer3DModel": _build_family(
        "WanTransformer3DModel",
        build_wan,
        num_attention_heads=40,
        attention_head_dim=128,
        ffn_dim=13_824,
        num_layers=40,
    ),
    "MochiTransformer3DModel": _build_family(
        "MochiTransformer3DModel",
        build_mochi,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=48,
        pooled_projection_dim=1536,
        text_embed_dim=4096,
        time_embed_dim=256,
    ),
    "LTXVideoTransformer3DModel": _build_family(
        "LTXVideoTransformer3DModel",
        build_ltx,
        num_attention_heads=32,
        attention_head_dim=64,
        cross_attention_dim=2048,
        num_layers=28,
        caption_channels=4096,
    ),
    "UNet2DConditionModel": _build_family("UNet2DConditionModel", build_unet),
    "AutoencoderKL": _build_family("AutoencoderKL", build_autoencoder),
}
