"""Diffusion models from the ``config.json`` of diffusers, which names its class in ``_class_name``."""

from collections.abc import Callable, Mapping

from service.formats.huggingface.diffusion.convolutional import autoencoder, unet
from service.formats.huggingface.diffusion.crossing import dit, ltx, pixart, transformer_2d, wan
from service.formats.huggingface.diffusion.joint import cogvideox, flux, hunyuan_video, mochi, sd3
from service.formats.huggingface.reader import ConfigReader, Family
from service.planning.models.architecture import Architecture


def _class(name: str, build: Callable[[ConfigReader, str], Architecture], **defaults: int) -> Family:
    return Family(name, build, ("",), "", None, defaults)


_DIT = {"num_attention_heads": 16, "attention_head_dim": 72, "num_layers": 28, "num_embeds_ada_norm": 1000}


FAMILIES: Mapping[str, Family] = {
    "DiTTransformer2DModel": _class("DiTTransformer2DModel", dit, **_DIT),
    "PixArtTransformer2DModel": _class(
        "PixArtTransformer2DModel",
        pixart,
        num_attention_heads=16,
        attention_head_dim=72,
        num_layers=28,
        cross_attention_dim=1152,
    ),
    "Transformer2DModel": _class("Transformer2DModel", transformer_2d),
    "SD3Transformer2DModel": _class(
        "SD3Transformer2DModel",
        sd3,
        num_layers=18,
        attention_head_dim=64,
        num_attention_heads=18,
        joint_attention_dim=4096,
        pooled_projection_dim=2048,
    ),
    "FluxTransformer2DModel": _class(
        "FluxTransformer2DModel",
        flux,
        num_layers=19,
        num_single_layers=38,
        attention_head_dim=128,
        num_attention_heads=24,
        joint_attention_dim=4096,
        pooled_projection_dim=768,
    ),
    "HunyuanVideoTransformer3DModel": _class(
        "HunyuanVideoTransformer3DModel",
        hunyuan_video,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=20,
        num_single_layers=40,
        num_refiner_layers=2,
        text_embed_dim=4096,
        pooled_projection_dim=768,
    ),
    "CogVideoXTransformer3DModel": _class(
        "CogVideoXTransformer3DModel",
        cogvideox,
        num_attention_heads=30,
        attention_head_dim=64,
        time_embed_dim=512,
        text_embed_dim=4096,
        num_layers=30,
    ),
    "WanTransformer3DModel": _class(
        "WanTransformer3DModel",
        wan,
        num_attention_heads=40,
        attention_head_dim=128,
        ffn_dim=13_824,
        num_layers=40,
    ),
    "MochiTransformer3DModel": _class(
        "MochiTransformer3DModel",
        mochi,
        num_attention_heads=24,
        attention_head_dim=128,
        num_layers=48,
        pooled_projection_dim=1536,
        text_embed_dim=4096,
        time_embed_dim=256,
    ),
    "LTXVideoTransformer3DModel": _class(
        "LTXVideoTransformer3DModel",
        ltx,
        num_attention_heads=32,
        attention_head_dim=64,
        cross_attention_dim=2048,
        num_layers=28,
        caption_channels=4096,
    ),
    "UNet2DConditionModel": _class("UNet2DConditionModel", unet),
    "AutoencoderKL": _class("AutoencoderKL", autoencoder),
}
