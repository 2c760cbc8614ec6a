"""Molmo and Molmo 2: patches of two layers of a tower, pooled by attention, in front of Qwen or OLMo."""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface.decoders import (
    SPELLINGS,
    AttentionOptions,
    DecoderFamily,
    build_architecture,
)
from service.formats.huggingface.multimodal.parts import (
    TextDecoder,
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
    read_activation_function,
    read_choice,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import SimpleLayer

_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 36_864,
    "additional_vocab_size": 128,
    "attention_bias": False,
    "tie_word_embeddings": False,
}
_VISION: Mapping[str, ConfigDefault] = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 25,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 72,
    "image_size": 378,
    "patch_size": 14,
}
_VISION_NAMES = {
    "image_size": ("image_default_input_size", "image_size"),
    "patch_size": ("image_patch_size", "patch_size"),
    "num_position_embeddings": ("image_num_pos", "num_position_embeddings"),
}
"""Names in the files that the maker publishes, before those of transformers."""

_ADAPTER: Mapping[str, ConfigDefault] = {
    "hidden_size": 1152,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 72,
    "intermediate_size": 18_944,
    "text_hidden_size": 3584,
}
_POOLED = 2
"""Patches along each side that a position of a picture is pooled from; its processor says so."""


def _add_vocabulary(architecture: Architecture, rows: int) -> Architecture:
    """Further rows of the token table, for which the head has no scores."""
    table = architecture.embeddings
    if table is None or not rows:
        return architecture
    if architecture.tied:
        raise build_unsupported_error(
            "tie_word_embeddings", "a head tied to the wider table is not supported"
        )
    return replace(architecture, embeddings=replace(table, vocabulary_size=table.vocabulary_size + rows))


def _build_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The decoder of Molmo 2: Qwen3, or OLMo with norms behind."""
    if not reader.read_flag("use_qk_norm", default=True):
        raise build_unsupported_error("use_qk_norm", "only known where it is true")
    normed = read_choice(reader, "qk_norm_type", "qwen3", "qwen3", "olmo")
    family = DecoderFamily(
        heads=AttentionOptions(output_bias=False, norm="head" if normed == "qwen3" else "projection"),
        block="mixer norm ffn norm" if reader.read_flag("norm_after") else "norm mixer norm ffn",
        bias=False,
    )
    return _add_vocabulary(
        build_architecture(reader, suffix, family), reader.read_count("additional_vocab_size")
    )


MOLMO_TEXT = ModelFamily(
    prefix="Molmo2",
    build=_build_text,
    classes=("TextModel",),
    unnamed_class="TextModel",
    context_field="max_position_embeddings",
    defaults=_TEXT,
    names={**SPELLINGS, "attention_bias": ("qkv_bias", "attention_bias")},
)
"""The decoder inside of Molmo 2."""


def _build_pool(wide: int, hidden: int, gathered: int, shared: int, *, bias: bool) -> tuple[SimpleLayer, ...]:
    """Attention by the mean of neighbouring patches over themselves; scores of so few are left out."""
    return (
        build_linear(wide, shared, bias=bias),
        build_linear(wide, shared, bias=bias),
        build_merge(_POOLED),
        build_linear(wide, gathered, bias=bias),
        build_linear(gathered, hidden, bias=bias),
    )


def _read_feature_layers(reader: ConfigReader) -> list[int]:
    name = "vit_layers" if "vit_layers" in reader.config else "vision_feature_layer"
    value = reader.config.get(name, [24, 18])
    if not isinstance(value, list) or not value or not all(type(layer) is int for layer in value):
        raise build_invalid_error(name, f"{name} must be a list of layers")
    return value


def _build_tower(reader: ConfigReader, depth: int) -> tuple[LayerBlock, ...]:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    bias, step = reader.read_flag("attention_bias", default=True), read_side(reader, "patch_size") or 1
    side = (read_side(reader, reader.resolve_spelling("image_size")) or 1) // step
    positions = reader.read_size_or("num_position_embeddings", side**2)
    norm = build_norm(hidden)
    attention = build_attention(
        hidden,
        heads,
        head_size=reader.read_size("head_dim"),
        key_value_heads=reader.read_size("num_key_value_heads"),
        bias=bias,
        output_bias=bias,
    )
    function = read_activation_function(reader, "hidden_act", "gelu_pytorch_tanh")
    inner = build_mlp(hidden, reader.read_size("intermediate_size"), function=function)
    channels = reader.read_size_or("num_channels", 3)
    stem = build_part(
        build_patch_embedding(channels, hidden, step),
        build_learned_vectors("positions", hidden, positions),
        over="image",
    )
    return stem, LayerBlock(layers=(norm, attention, norm, inner), count=depth, over=("image",))


def _read_tower_depth(reader: ConfigReader, features: list[int], *, trims: bool) -> int:
    """Layers of the tower; a published file counts those behind the last one whose output is taken, too."""
    depth = reader.read_depth("num_hidden_layers")
    if not all(-depth <= layer < depth for layer in features):
        raise build_invalid_error("num_hidden_layers", "a layer of the adapter is not in the tower")
    return max(layer % depth for layer in features) + 1 if trims else depth


def build_molmo2(reader: ConfigReader, suffix: str) -> Architecture:
    """Molmo 2."""
    with read_nested(reader, "adapter_config", _ADAPTER) as adapter:
        features = _read_feature_layers(adapter)
        hidden, size = adapter.read_size("hidden_size"), adapter.read_size("head_dim")
        pool = _build_pool(
            hidden * len(features),
            hidden,
            adapter.read_size("num_attention_heads") * size,
            adapter.read_size("num_key_value_heads") * size,
            bias=adapter.read_flag("attention_bias", default=True),
        )
        inner, out = adapter.read_size("intermediate_size"), adapter.read_size("text_hidden_size")
        adapter.refuse_flags("mlp_bias")
    published = "vit_config" in reader.config and not reader.has_value("vision_config")
    with read_nested(reader, "vit_config" if published else "vision_config", _VISION) as vision:
        vision.names = _VISION_NAMES
        layers = _build_tower(vision, _read_tower_depth(vision, features, trims=published))
        pixels = read_side(vision, vision.resolve_spelling("image_size"))
    text = build_text_decoder(reader, suffix, "molmo2_text")
    if out != text.width:
        raise build_invalid_error("adapter_config/text_hidden_size", "must be the width of the decoder")
    gate_and_up = (build_linear(hidden, inner, bias=False),) * 2
    projector = build_part(*pool, *gate_and_up, build_linear(inner, out, bias=False), over="image")
    image = ModelInputShape(name="image", kind="image", channels=3, height=pixels)
    return join_vision_and_text(text, image, *layers, projector)


_FIRST_SIDE, _FIRST_PIXELS, _FIRST_WIDTH, _FIRST_DEPTH = 24, 336, 1024, 23
"""Patches and pixels of a side, width and layers of the tower that the code of the first Molmo builds."""

_FIRST = DecoderFamily(
    heads=AttentionOptions(bias="qkv_bias", output_bias=False),
    bias=False,
    inner=lambda reader: reader.read_size("intermediate_size") // 2,
)


def build_molmo(reader: ConfigReader, suffix: str) -> Architecture:
    """The first Molmo, whose file has no word on its tower, CLIP's without the last layer."""
    reader.refuse_flags("weight_tying", "attention_layer_norm", "norm_after")
    read_choice(reader, "layer_norm_type", "rms", "rms")
    if reader.read_count("moe_num_experts"):
        raise build_unsupported_error("moe_num_experts", "experts of Molmo are not known here")
    rows = reader.read_size_or("embedding_size", reader.read_size("vocab_size"))
    given = replace(reader, config={**reader.config, "vocab_size": rows})
    decoder = _add_vocabulary(build_architecture(given, suffix, _FIRST), 128)
    text = TextDecoder(decoder, reader.read_size("hidden_size"))
    hidden, wide = _FIRST_WIDTH, 2 * _FIRST_WIDTH
    norm = build_norm(hidden)
    stem = build_part(
        build_patch_embedding(3, hidden, _FIRST_PIXELS // _FIRST_SIDE, bias=False),
        build_learned_vectors("class_tokens", hidden),
        build_learned_vectors("positions", hidden, _FIRST_SIDE**2 + 1),
        norm,
        over="image",
    )
    block = LayerBlock(
        layers=(
            norm,
            build_attention(hidden, 16),
            norm,
            build_mlp(hidden, 4 * hidden, function="quick_gelu"),
        ),
        count=_FIRST_DEPTH,
        over=("image",),
    )
    inner = reader.read_size("intermediate_size") // 2
    projector = build_part(
        build_merge(1, drops=True),
        # Added where a crop is padding, in whole or in part.
        build_learned_vectors("bias", wide, 2),
        *_build_pool(wide, hidden, hidden, hidden, bias=True),
        *(build_linear(hidden, inner, bias=False), build_linear(hidden, inner, bias=False)),
        build_linear(inner, text.width, bias=False),
        over="image",
    )
    image = ModelInputShape(name="image", kind="image", channels=3, height=_FIRST_PIXELS)
    return join_vision_and_text(text, image, stem, block, projector)


MOLMO = ModelFamily(
    prefix="Molmo",
    build=build_molmo,
    classes=("ForCausalLM",),
    unnamed_class="ForCausalLM",
    context_field="max_position_embeddings",
    defaults={"tie_word_embeddings": False},
    names=SPELLINGS,
)
"""The first Molmo, whose code is published beside its weights."""
