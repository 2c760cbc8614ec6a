"""Kimi K3: a tower without biases whose heads are wider together than it is, in front of Kimi Linear.

Sizes and tensors are those of the published files; frames of a video are averaged without parameters.
"""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    read_choice,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, compute_head_size
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape

_VISION: Mapping[str, ConfigDefault] = {
    "vt_hidden_size": 1024,
    "vt_intermediate_size": 4096,
    "vt_num_attention_heads": 12,
    "vt_num_hidden_layers": 27,
    "qkv_hidden_size": 1536,
    "patch_size": 14,
    "init_pos_emb_height": 64,
    "init_pos_emb_width": 64,
}
_CHOICES = {
    "norm_type": "rmsnorm",
    "mlp_type": "mlp2",
    "mm_projector_type": "patchmergerv2",
    "pos_emb_type": "divided_fixed",
}
"""Settings by name that are known."""

_FACTOR = 2
"""Patches along a side that become one position."""


def _build_tower(vision: ConfigReader) -> tuple[LayerBlock, ...]:
    for name, known in _CHOICES.items():
        read_choice(vision, name, known, known)
    vision.refuse_flags("attn_bias", "linear_bias", "patch_embed_proj_bias")
    hidden, heads = vision.read_size("vt_hidden_size"), vision.read_size("vt_num_attention_heads")
    size = compute_head_size(vision.read_size("qkv_hidden_size"), heads, "vt_num_attention_heads")
    norm = build_norm(hidden, "rms")
    rows = vision.read_size("init_pos_emb_height") * vision.read_size("init_pos_emb_width")
    stem = build_part(
        build_patch_embedding(3, hidden, read_side(vision, "patch_size") or 1, bias=False),
        build_learned_vectors("positions", hidden, rows),
        over="image",
    )
    attention = build_attention(hidden, heads, head_size=size, bias=False, output_bias=False)
    inner = build_mlp(hidden, vision.read_size("vt_intermediate_size"), bias=False)
    block = LayerBlock(
        layers=(norm, attention, norm, inner),
        count=vision.read_depth("vt_num_hidden_layers"),
        over=("image",),
    )
    return stem, block, build_part(norm, over="image")


def _build_kimi_k3(reader: ConfigReader, suffix: str) -> Architecture:
    """Kimi K3."""
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers, factor = _build_tower(vision), read_side(vision, "merge_kernel_size", _FACTOR) or _FACTOR
        wide = vision.read_size("vt_hidden_size") * factor**2
    text = build_text_decoder(reader, suffix, "kimi_linear")
    projector = build_part(
        build_merge(factor),
        build_linear(wide, wide, bias=False),
        build_linear(wide, text.width, bias=False),
        build_norm(text.width, "rms"),
        over="image",
    )
    image = ModelInputShape(name="image", kind="image", channels=3)
    return join_vision_and_text(text, image, *layers, projector)


KIMI_K3 = ModelFamily(
    prefix="KimiK3",
    build=_build_kimi_k3,
    classes=("ForConditionalGeneration",),
    unnamed_class="ForConditionalGeneration",
    context_field=None,
    defaults={},
)
