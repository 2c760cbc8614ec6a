"""Families with a vision tower of their own: Mllama, Llama 4, Gemma 4 and Kimi."""

from functools import partial

from service.formats.huggingface.multimodal.parts import Seen, Text, in_front_of, text_decoder
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
    unsupported,
    words,
)
from service.formats.huggingface.reader import ConfigReader, as_blocks, head_size, invalid
from service.formats.huggingface.vision.transformers import grid_side, image_input
from service.planning.models.architecture import Architecture, Block, Embeddings, Input

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


def mllama(reader: ConfigReader, suffix: str) -> Architecture:
    """Llama 3.2 Vision: the decoder reads the image by cross-attention."""
    with nested(reader, "vision_config", _MLLAMA_VISION) as vision:
        seen = _mllama_tower(vision)
    with nested(reader, "text_config", _MLLAMA_TEXT) as config:
        text = _mllama_text(config, generates=suffix == "ForConditionalGeneration")
    return in_front_of(text, seen.image, *seen.layers, part(linear(seen.width, text.width), over="image"))


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


def llama4(reader: ConfigReader, suffix: str) -> Architecture:
    """Llama 4."""
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
    text = text_decoder(reader, suffix, "llama4_text", own_tie=True)
    projector = part(linear(given, text.width, bias=False), over="image")
    return in_front_of(text, image, stem, block, adapter, projector)


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


def gemma4(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 4."""
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
    text = text_decoder(reader, suffix, "gemma4_text", ties=True)
    image = Input(name="image", kind="image", channels=3)
    projector = part(merge(pooled), linear(hidden, text.width, bias=False), over="image")
    return in_front_of(text, image, stem, block, projector)


_KIMI_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "patch_size": 14,
    "pos_emb_height": 64,
    "pos_emb_width": 64,
}


def kimi(reader: ConfigReader, suffix: str) -> Architecture:
    """Kimi K2.5."""
    with nested(reader, "vision_config", _KIMI_VISION) as vision:
        hidden, heads = vision.size("hidden_size"), vision.size("num_attention_heads")
        factor = side(vision, "merge_kernel_size", 2) or 2
        stem = part(
            patches(vision.size_or("num_channels", 3), hidden, side(vision, "patch_size") or 1),
            learned("positions", hidden, vision.size("pos_emb_height") * vision.size("pos_emb_width")),
            over="image",
        )
        block = Block(
            layers=(
                norm(hidden),
                attend(hidden, heads),
                norm(hidden),
                mlp(hidden, vision.size("intermediate_size")),
            ),
            count=vision.depth("num_hidden_layers"),
            over=("image",),
        )
    text = text_decoder(reader, suffix, "deepseek_v3", ties=True)
    wide = hidden * factor**2
    projector = part(
        norm(hidden),
        norm(reader.size_or("projection_hidden_size", 1152)),
        merge(factor),
        linear(wide, wide),
        linear(wide, text.width),
        over="image",
    )
    image = Input(name="image", kind="image", channels=3)
    return in_front_of(text, image, stem, block, projector)
