"""Muse Glimmer: a tower whose blocks mostly attend within windows, and a decoder gated by element.

Norms of queries and keys, of embeddings and of projected positions have no scale, and are left out.
"""

from collections.abc import Mapping

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import (
    SPELLINGS,
    AttentionOptions,
    DecoderFamily,
    build_architecture,
)
from service.formats.huggingface.families.options import AROUND
from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.multimodal.qwen import QWEN_PICTURE
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
    read_activation_function,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import (
    ConfigDefault,
    ConfigReader,
    ModelFamily,
    build_blocks,
)
from service.planning.models.architecture import Architecture, ModelLayer
from service.planning.models.layers import SimpleLayer

_PERIOD = 4
"""Layers of which one attends to everything, in the tower and in the decoder."""

_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 202_048,
    "hidden_size": 6656,
    "intermediate_size": 19_968,
    "num_hidden_layers": 52,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 131_072,
    "sliding_window": 2048,
    "attention_bias": False,
    "tie_word_embeddings": False,
}
_VISION: Mapping[str, ConfigDefault] = {
    "patch_size": 14,
    "patch_temporal": 2,
    "pos_emb_height": 32,
    "pos_emb_width": 32,
    "num_attention_heads": 16,
    "num_hidden_layers": 50,
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "merge_size": 2,
}
_PROJECTOR: Mapping[str, ConfigDefault] = {"out_hidden_size": 6144, "projector_hidden_size": 4096}


def _list_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """As ``layer_types`` lists them, else a window but in every fourth layer, counted from the last."""
    return patterns.read_layer_kinds(reader, depth) or [
        "window" if (depth - 1 - index) % _PERIOD else "full" for index in range(depth)
    ]


_DECODER = DecoderFamily(heads=AttentionOptions(gate="element"), kinds=_list_kinds, block=AROUND, bias=False)


def _build_text(reader: ConfigReader, suffix: str) -> Architecture:
    return build_architecture(reader, suffix, _DECODER)


MUSE_TEXT = ModelFamily(
    prefix="MuseGlimmer",
    build=_build_text,
    classes=("TextModel",),
    unnamed_class="TextModel",
    context_field="max_position_embeddings",
    defaults=_TEXT,
    names=SPELLINGS,
)
"""The decoder inside of Muse Glimmer."""


def _list_windows(vision: ConfigReader, depth: int) -> list[int | None]:
    """The window of each block of the tower in patches, None where it attends to the whole picture."""
    side = vision.read_size("pos_emb_height")
    if vision.read_size("pos_emb_width") != side:
        raise build_unsupported_error("pos_emb_width", "only known where it equals pos_emb_height")
    words = vision.read_words("layer_types", depth)
    if words is None:
        words = ["full_attention" if not (i + 1) % _PERIOD else "window_attention" for i in range(depth)]
        words[-1] = "full_attention"
    if not {"full_attention", "window_attention"}.issuperset(words):
        raise build_unsupported_error("layer_types", "only full_attention and window_attention are known")
    return [None if word == "full_attention" else side**2 for word in words]


def _build_tower(vision: ConfigReader) -> tuple[ModelLayer, ...]:
    hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_attention_heads")
    norm, frames = build_norm(hidden), vision.read_size("patch_temporal")
    stem = build_part(
        build_patch_embedding(
            3, hidden, read_side(vision, "patch_size") or 1, bias=False, frames=frames, frame_stride=frames
        ),
        build_learned_vectors(
            "positions", hidden, vision.read_size("pos_emb_height") * vision.read_size("pos_emb_width")
        ),
        norm,
        over="image",
    )
    inner = build_mlp(
        hidden,
        vision.read_size("intermediate_size"),
        function=read_activation_function(vision, "hidden_act", "gelu"),
    )
    contents: list[tuple[SimpleLayer, ...]] = [
        (norm, build_attention(hidden, heads, window=window), norm, inner)
        for window in _list_windows(vision, vision.read_depth("num_hidden_layers"))
    ]
    blocks = build_blocks(contents, over=("image",))
    return stem, *blocks, build_part(norm, build_merge(vision.read_size("merge_size")), over="image")


def build_muse_glimmer(reader: ConfigReader, suffix: str) -> Architecture:
    """Muse Glimmer."""
    with read_nested(reader, "vision_config", _VISION) as vision:
        layers = _build_tower(vision)
        merged = vision.read_size("hidden_size") * vision.read_size("merge_size") ** 2
    decoder = build_text_decoder(reader, suffix, "muse_glimmer_text")
    wide, inner = reader.read_size("out_hidden_size"), reader.read_size("projector_hidden_size")
    if wide != merged:
        raise build_unsupported_error("out_hidden_size", "only known where it is that of merged patches")
    projector = build_part(
        build_linear(wide, inner, bias=False),
        build_linear(inner, inner, bias=False),
        build_linear(inner, decoder.width, bias=False),
        over="image",
    )
    return join_vision_and_text(decoder, QWEN_PICTURE, *layers, projector)


MUSE = ModelFamily(
    prefix="MuseGlimmer",
    build=build_muse_glimmer,
    classes=("ForConditionalGeneration", "Model"),
    unnamed_class="ForConditionalGeneration",
    context_field=None,
    defaults=_PROJECTOR,
)
