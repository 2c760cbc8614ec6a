"""Vision-language models: a vision tower, a projector, and the decoder of the family in ``text_config``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from math import isqrt
from typing import NamedTuple

from service.planning.architecture import Architecture, Block, Embeddings, Input, Layer
from service.planning.errors import PlanningError
from service.planning.formats.huggingface.parts import (
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
    unsupported,
    word,
    words,
)
from service.planning.formats.huggingface.reader import ConfigReader, Family, as_blocks, head_size, invalid
from service.planning.formats.huggingface.vision import (
    CLIP_IMAGE,
    CLIP_VISION,
    SIGLIP_IMAGE,
    SIGLIP_VISION,
    grid_side,
    image_input,
    siglip_tower,
    vision_transformer,
)
from service.planning.layers import SimpleLayer


class Seen(NamedTuple):
    """A vision tower: what it sees, its layers and the width of what it gives."""

    image: Input
    layers: tuple[Layer, ...]
    width: int


class Text(NamedTuple):
    """The decoder of a vision-language model and its width."""

    architecture: Architecture
    width: int


_ALIASES: Mapping[str, str] = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
"""Text families that are another one in all that sets a shape."""

_QWEN2_VL_TEXT = {
    "vocab_size": 152_064,
    "hidden_size": 8192,
    "intermediate_size": 29_568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32_768,
    "sliding_window": 4096,
    "max_window_layers": 80,
}
_QWEN3_VL_TEXT = {
    "vocab_size": 151_936,
    "hidden_size": 4096,
    "intermediate_size": 22_016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 128_000,
}
_OWN_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    "qwen2_vl_text": _QWEN2_VL_TEXT,
    "qwen2_5_vl_text": _QWEN2_VL_TEXT,
    "qwen3_vl_text": _QWEN3_VL_TEXT,
}


@contextmanager
def _text_config(reader: ConfigReader, *, flat: bool) -> Iterator[ConfigReader]:
    """The text configuration; older files of some families hold its fields at the top."""
    if flat and not reader.states("text_config"):
        yield ConfigReader(reader.config, {})
        return
    with nested(reader, "text_config", {}) as text:
        yield text


def _text(
    reader: ConfigReader,
    suffix: str,
    default: str,
    *,
    ties: bool = False,
    own_tie: bool = False,
    flat: bool = False,
) -> Text:
    """The decoder that ``text_config`` describes, its head tied as the outer configuration says."""
    from service.planning.formats.huggingface import FAMILIES  # noqa: PLC0415  # it lists this module

    with _text_config(reader, flat=flat) as text:
        stated = word(text, "model_type", default)
        name = default if flat and not reader.states("text_config") else stated
        family = FAMILIES.get(_ALIASES.get(name, name))
        if family is None:
            raise PlanningError("MODEL_TYPE_UNKNOWN", "/model_type", f"the text decoder {name} is not known")
        config = dict(text.config)
        if not own_tie:
            config["tie_word_embeddings"] = reader.flag("tie_word_embeddings", default=ties)
        inner = family.reader(config)
        inner.defaults = {**inner.defaults, **_OWN_DEFAULTS.get(name, {})}
        made = family.build(inner, "ForCausalLM" if suffix == "ForConditionalGeneration" else "Model")
        reader.defaulted.extend(f"text_config/{field}" for field in inner.defaulted)
        return Text(made, inner.size("hidden_size"))


def _joined(text: Text, image: Input, *before: Layer) -> Architecture:
    """Vision and projector in front of the decoder, whose sequence holds the projected positions."""
    decoder = text.architecture
    return Architecture(
        inputs=(Input(name="text", kind="tokens"), image),
        embeddings=decoder.embeddings,
        layers=(*before, *decoder.layers),
        heads=decoder.heads,
        tied=decoder.tied,
    )


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


def _llava(
    reader: ConfigReader, suffix: str, *, next_one: bool = False, siglip: bool = False
) -> Architecture:
    kind, absent = (
        ("siglip_vision_model", _ONEVISION_VISION) if siglip else ("clip_vision_model", _LLAVA_VISION)
    )
    seen = _seen(reader, kind, absent)
    text = _text(reader, suffix, "qwen2" if siglip else "llama")
    bias = reader.flag("multimodal_projector_bias", default=True)
    strategy = word(reader, "vision_feature_select_strategy", "default", "default", "full")
    layers: list[SimpleLayer] = [
        merge(1, drops=strategy == "default"),
        linear(seen.width * _features(reader), text.width, bias=bias),
        linear(text.width, text.width, bias=bias),
    ]
    if next_one:
        layers.append(learned("tokens", text.width))
    return _joined(text, seen.image, *seen.layers, part(*layers, over="image"))


def _mistral3(reader: ConfigReader, suffix: str) -> Architecture:
    seen = _seen(reader, "pixtral", {**_PIXTRAL, "image_size": 1540, "patch_size": 14})
    text = _text(reader, suffix, "mistral", ties=True)
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
    return _joined(text, seen.image, *seen.layers, projector)


def _paligemma(reader: ConfigReader, suffix: str) -> Architecture:
    absent = {**SIGLIP_IMAGE, **_PALIGEMMA_VISION}
    seen = _seen(reader, "siglip_vision_model", absent)
    text = _text(reader, suffix, "gemma", ties=True)
    width = reader.size_or("projection_dim", 2048)
    return _joined(text, seen.image, *seen.layers, part(linear(seen.width, width), over="image"))


_PALIGEMMA_VISION = {
    "intermediate_size": 4304,
    "hidden_size": 1152,
    "patch_size": 14,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
}


def _gemma3(reader: ConfigReader, suffix: str) -> Architecture:
    seen = _seen(reader, "siglip_vision_model", SIGLIP_IMAGE)
    text = _text(reader, suffix, "gemma3_text", ties=True)
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
    return _joined(text, seen.image, *seen.layers, projector)


_IDEFICS_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "image_size": 224,
    "patch_size": 32,
}


def _idefics3(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _IDEFICS_VISION) as vision:
        layers, image = vision_transformer(vision, SIGLIP_VISION), image_input(vision)
        width = vision.size("hidden_size")
    text = _text(reader, suffix, "llama")
    factor = reader.size_or("scale_factor", 2)
    projector = part(merge(factor), linear(width * factor**2, text.width, bias=False), over="image")
    return _joined(text, image, *layers, projector)


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


def _internvl(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _INTERN_VISION) as vision:
        seen = _intern_tower(vision)
    text = _text(reader, suffix, "qwen2", ties=True)
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
    return _joined(text, seen.image, *seen.layers, projector)


_QWEN_VISION = {"num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2}
_QWEN2_VISION = {**_QWEN_VISION, "depth": 32, "embed_dim": 1280, "hidden_size": 3584}
_QWEN25_VISION = {
    **_QWEN_VISION,
    "depth": 32,
    "hidden_size": 3584,
    "intermediate_size": 3420,
    "out_hidden_size": 3584,
    "window_size": 112,
}
_QWEN3_VISION = {
    **_QWEN_VISION,
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "out_hidden_size": 3584,
    "num_position_embeddings": 2304,
    "patch_size": 16,
}
_QWEN_PICTURE = Input(name="image", kind="video", channels=3, frames=1)


def _qwen_stem(reader: ConfigReader, hidden: int, *, bias: bool) -> SimpleLayer:
    frames = reader.size("temporal_patch_size")
    channels = reader.size_or("in_channels", 3)
    step = side(reader, "patch_size") or 1
    return patches(channels, hidden, step, bias=bias, frames=frames, frame_stride=frames)


def _qwen_merger(reader: ConfigReader, hidden: int, out: int, before: SimpleLayer) -> Block:
    factor = reader.size("spatial_merge_size")
    wide = hidden * factor**2
    return part(before, merge(factor), linear(wide, wide), linear(wide, out), over="image")


def _qwen2_vl(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _QWEN2_VISION) as vision:
        hidden, heads = vision.size("embed_dim"), vision.size("num_heads")
        inner = hidden * vision.size_or("mlp_ratio", 4)
        block = Block(
            layers=(
                norm(hidden),
                attend(hidden, heads, heads_field="num_heads"),
                norm(hidden),
                mlp(hidden, inner),
            ),
            count=vision.depth("depth"),
            over=("image",),
        )
        layers = (
            part(_qwen_stem(vision, hidden, bias=False), over="image"),
            block,
            _qwen_merger(vision, hidden, vision.size("hidden_size"), norm(hidden)),
        )
    return _joined(_text(reader, suffix, "qwen2_vl_text", flat=True), _QWEN_PICTURE, *layers)


def _qwen25_vl(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _QWEN25_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_heads")
        window = (vision.size("window_size") // (side(vision, "patch_size") or 1)) ** 2
        everywhere = (
            vision.indexes("fullatt_block_indexes")
            if vision.states("fullatt_block_indexes")
            else frozenset({7, 15, 23, 31})
        )
        around = norm(hidden, "rms")
        feed_forward = mlp(hidden, vision.size("intermediate_size"), gated=True)
        contents: list[tuple[SimpleLayer, ...]] = [
            (
                around,
                attend(
                    hidden, heads, window=None if index in everywhere else window, heads_field="num_heads"
                ),
                around,
                feed_forward,
            )
            for index in range(vision.depth("depth"))
        ]
        layers = (
            part(_qwen_stem(vision, hidden, bias=False), over="image"),
            *_over_image(as_blocks(contents)),
            _qwen_merger(vision, hidden, vision.size("out_hidden_size"), around),
        )
    return _joined(_text(reader, suffix, "qwen2_5_vl_text", flat=True), _QWEN_PICTURE, *layers)


def _over_image(blocks: tuple[Layer, ...]) -> tuple[Layer, ...]:
    return tuple(
        Block(layers=block.layers, count=block.count, over=("image",))
        for block in blocks
        if isinstance(block, Block)
    )


def _qwen3_vl(reader: ConfigReader, suffix: str, *, text: str) -> Architecture:
    with nested(reader, "vision_config", _QWEN3_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_heads")
        out, factor = vision.size("out_hidden_size"), vision.size("spatial_merge_size")
        wide = hidden * factor**2
        block = Block(
            layers=(
                norm(hidden),
                attend(hidden, heads, heads_field="num_heads"),
                norm(hidden),
                mlp(hidden, vision.size("intermediate_size")),
            ),
            count=vision.depth("depth"),
            over=("image",),
        )
        taken = vision.config.get("deepstack_visual_indexes", [8, 16, 24])
        if not isinstance(taken, list):
            raise invalid("deepstack_visual_indexes", "deepstack_visual_indexes must be a list of integers")
        stem = (
            _qwen_stem(vision, hidden, bias=True),
            learned("positions", hidden, vision.size("num_position_embeddings")),
        )
        merger = _qwen_merger(vision, hidden, out, norm(hidden))
        # Outputs of some layers are merged on their own and added to the first layers of the decoder.
        deep = part(norm(wide), linear(wide, wide), linear(wide, out), over="image", count=max(1, len(taken)))
        layers = (part(*stem, over="image"), block, merger, *((deep,) if taken else ()))
    return _joined(_text(reader, suffix, text), _QWEN_PICTURE, *layers)


_MLLAMA_VISION = {
    "hidden_size": 1280,
    "num_hidden_layers": 32,
    "num_global_layers": 8,
    "attention_heads": 16,
    "intermediate_size": 5120,
    "vision_output_dim": 7680,
    "image_size": 448,
    "patch_size": 14,
    "max_num_tiles": 4,
}
_MLLAMA_TEXT = {
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "max_position_embeddings": 131_072,
}
_SHAPES_OF_FOUR_TILES = 8


def _mllama_tower(reader: ConfigReader) -> Seen:
    hidden, heads = reader.size("hidden_size"), reader.size("attention_heads")
    tiles, pixels = reader.size("max_num_tiles"), side(reader, "image_size") or 1
    ratios = reader.config.get("supported_aspect_ratios")
    shapes = len(ratios) if isinstance(ratios, list) else _SHAPES_OF_FOUR_TILES
    grid = grid_side(reader) ** 2 + 1
    # One table of tiles in front and one behind, and one of all positions of all tiles, each with a gate.
    by_tile = learned("positions", tiles * hidden, shapes + 1)
    gate = learned("scale", 1)
    stem = part(
        patches(reader.size_or("num_channels", 3), hidden, side(reader, "patch_size") or 1, bias=False),
        by_tile,
        gate,
        learned("class_tokens", hidden),
        learned("positions", hidden, grid),
        learned("positions", tiles * grid * hidden, shapes + 1),
        gate,
        norm(hidden),
        over="image",
    )
    layers = (
        norm(hidden),
        attend(hidden, heads, bias=False, output_bias=False, heads_field="attention_heads"),
        norm(hidden),
        mlp(hidden, reader.size("intermediate_size")),
    )
    local = Block(layers=layers, count=reader.depth("num_hidden_layers"), over=("image",))
    everywhere = Block(layers=(*layers, gate, gate), count=reader.depth("num_global_layers"), over=("image",))
    behind = part(norm(hidden), by_tile, gate, over="image")
    image = Input(name="image", kind="image", channels=3, height=tiles * pixels, width=pixels)
    return Seen(image, (stem, local, behind, everywhere), reader.size("vision_output_dim"))


def _mllama_text(reader: ConfigReader, *, generates: bool) -> Text:
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    vocabulary, each = reader.size("vocab_size"), reader.size("num_key_value_heads")
    around = norm(hidden, "rms")
    feed_forward = mlp(hidden, reader.size("intermediate_size"), gated=True, bias=False)
    attention = partial(
        attend,
        hidden,
        heads,
        key_value_heads=each,
        head_size=head_size(hidden, heads, "num_attention_heads"),
        bias=False,
        output_bias=False,
    )
    crossing = (
        reader.indexes("cross_attention_layers")
        if reader.states("cross_attention_layers")
        else frozenset(range(3, 40, 5))
    )
    gate = learned("scale", 1)
    own = (around, attention(causal=True), around, feed_forward)
    cross = (
        around,
        attention(cross=hidden, query_key_norm="head"),
        gate,
        around,
        feed_forward,
        gate,
    )
    depth = reader.depth("num_hidden_layers")
    blocks = as_blocks([cross if index in crossing else own for index in range(depth)])
    layers = tuple(
        Block(layers=block.layers, count=block.count, over=("text",), reads=("image",))
        if block.layers == cross
        else block
        for block in blocks
        if isinstance(block, Block)
    )
    tied = generates and reader.flag("tie_word_embeddings")
    if tied:
        raise unsupported("tie_word_embeddings", "a head tied to the wider table is not supported")
    architecture = Architecture(
        inputs=(Input(name="text", kind="tokens"), Input(name="image", kind="image")),
        # Eight rows more than the vocabulary, for the image token.
        embeddings=Embeddings(size=hidden, vocabulary_size=vocabulary + 8),
        layers=(*layers, around),
        heads=(words(hidden, vocabulary),) if generates else (),
    )
    return Text(architecture, hidden)


def _mllama(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _MLLAMA_VISION) as vision:
        seen = _mllama_tower(vision)
    with nested(reader, "text_config", _MLLAMA_TEXT) as config:
        text = _mllama_text(config, generates=suffix == "ForConditionalGeneration")
    return _joined(text, seen.image, *seen.layers, part(linear(seen.width, text.width), over="image"))


_LLAMA4_VISION = {
    "hidden_size": 768,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "intermediate_size": 5632,
    "vision_output_dim": 7680,
    "image_size": 448,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
}


def _llama4(reader: ConfigReader, suffix: str) -> Architecture:
    with nested(reader, "vision_config", _LLAMA4_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_attention_heads")
        inner = vision.size("intermediate_size")
        ratio = vision.config.get("pixel_shuffle_ratio", 0.5)
        if not isinstance(ratio, float) or not 0 < ratio <= 1 or (1 / ratio) % 1:
            raise invalid("pixel_shuffle_ratio", "pixel_shuffle_ratio must be one over a whole number")
        stem = part(
            patches(vision.size_or("num_channels", 3), hidden, side(vision, "patch_size") or 1, bias=False),
            learned("class_tokens", hidden),
            learned("positions", hidden, grid_side(vision) ** 2 + 1),
            norm(hidden),
            over="image",
        )
        block = Block(
            layers=(norm(hidden), attend(hidden, heads), norm(hidden), mlp(hidden, inner)),
            count=vision.depth("num_hidden_layers"),
            over=("image",),
        )
        wide, out = vision.size("projector_input_dim"), vision.size("projector_output_dim")
        adapter = part(
            norm(hidden),
            merge(int(1 / ratio), drops=True),
            linear(inner, wide, bias=False),
            linear(out, out, bias=False),
            over="image",
        )
        given, image = vision.size("vision_output_dim"), image_input(vision)
    text = _text(reader, suffix, "llama4_text", own_tie=True)
    projector = part(linear(given, text.width, bias=False), over="image")
    return _joined(text, image, stem, block, adapter, projector)


_GEMMA4_VISION = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 16,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "head_dim": 64,
    "pooling_kernel_size": 3,
    "patch_size": 16,
    "position_embedding_size": 10_240,
}


def _gemma4(reader: ConfigReader, suffix: str) -> Architecture:
    if reader.states("audio_config"):
        raise unsupported("audio_config", "the audio tower is not supported")
    with nested(reader, "vision_config", _GEMMA4_VISION) as vision:
        vision.refuse("use_clipped_linears", "attention_bias")
        hidden, around = vision.size("hidden_size"), norm(vision.size("hidden_size"), "rms")
        attention = attend(
            hidden,
            vision.size("num_attention_heads"),
            head_size=vision.size("head_dim"),
            key_value_heads=vision.size("num_key_value_heads"),
            bias=False,
            output_bias=False,
            query_key_norm="head",
        )
        feed_forward = mlp(hidden, vision.size("intermediate_size"), gated=True, bias=False)
        # A table for rows and one for columns.
        table = learned("positions", hidden, 2 * vision.size("position_embedding_size"))
        block = Block(
            layers=(around, attention, around, around, feed_forward, around),
            count=vision.depth("num_hidden_layers"),
            over=("image",),
        )
        step, pooled = side(vision, "patch_size") or 1, vision.size("pooling_kernel_size")
        stem = part(patches(3, hidden, step, bias=False), table, over="image")
    text = _text(reader, suffix, "gemma4_text", ties=True)
    image = Input(name="image", kind="image", channels=3)
    projector = part(merge(pooled), linear(hidden, text.width, bias=False), over="image")
    return _joined(text, image, stem, block, projector)


_CLASSES = ("ForConditionalGeneration", "Model")


def _family(prefix: str, build: Callable[[ConfigReader, str], Architecture]) -> Family:
    return Family(prefix, build, _CLASSES, "ForConditionalGeneration", None, {})


FAMILIES: Mapping[str, Family] = {
    "llava": _family("Llava", _llava),
    "llava_next": _family("LlavaNext", partial(_llava, next_one=True)),
    "llava_onevision": _family("LlavaOnevision", partial(_llava, next_one=True, siglip=True)),
    "paligemma": _family("PaliGemma", _paligemma),
    "gemma3": _family("Gemma3", _gemma3),
    "gemma4": _family("Gemma4", _gemma4),
    "mistral3": _family("Mistral3", _mistral3),
    "idefics3": _family("Idefics3", _idefics3),
    "smolvlm": _family("SmolVLM", _idefics3),
    "internvl": _family("InternVL", _internvl),
    "qwen2_vl": _family("Qwen2VL", _qwen2_vl),
    "qwen2_5_vl": _family("Qwen2_5_VL", _qwen25_vl),
    "qwen3_vl": _family("Qwen3VL", partial(_qwen3_vl, text="qwen3_vl_text")),
    "qwen3_vl_moe": _family("Qwen3VLMoe", partial(_qwen3_vl, text="qwen3_vl_moe_text")),
    "mllama": _family("Mllama", _mllama),
    "llama4": _family("Llama4", _llama4),
}
