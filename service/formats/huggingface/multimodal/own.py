"""Families with a vision tower of their own: Mllama, Llama 4, Kimi and MiniMax-M3."""

from functools import partial

from service.formats.huggingface.multimodal.parts import (
    TextDecoder,
    VisionTower,
    build_text_decoder,
    join_vision_and_text,
)
from service.formats.huggingface.parts import (
    build_attention,
    build_language_head,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_unsupported_error,
    read_nested,
    read_side,
)
from service.formats.huggingface.reader import (
    ConfigReader,
    build_blocks,
    build_invalid_error,
    compute_head_size,
)
from service.formats.huggingface.vision.transformers import build_image_input, compute_grid_side
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelInputShape

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


def _build_mllama_tower(reader: ConfigReader) -> VisionTower:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("attention_heads")
    tiles, pixels = reader.read_size("max_num_tiles"), read_side(reader, "image_size") or 1
    ratios = reader.config.get("supported_aspect_ratios")
    shapes = len(ratios) if isinstance(ratios, list) else _SHAPES_OF_FOUR_TILES
    grid = compute_grid_side(reader) ** 2 + 1
    # One table of tiles in front and one behind, and one of all positions of all tiles, each with a gate.
    by_tile = build_learned_vectors("positions", tiles * hidden, shapes + 1)
    gate = build_learned_vectors("scale", 1)
    stem = build_part(
        build_patch_embedding(
            reader.read_size_or("num_channels", 3), hidden, read_side(reader, "patch_size") or 1, bias=False
        ),
        by_tile,
        gate,
        build_learned_vectors("class_tokens", hidden),
        build_learned_vectors("positions", hidden, grid),
        build_learned_vectors("positions", tiles * grid * hidden, shapes + 1),
        gate,
        build_norm(hidden),
        over="image",
    )
    layers = (
        build_norm(hidden),
        build_attention(hidden, heads, bias=False, output_bias=False, heads_field="attention_heads"),
        build_norm(hidden),
        build_mlp(hidden, reader.read_size("intermediate_size")),
    )
    local = LayerBlock(layers=layers, count=reader.read_depth("num_hidden_layers"), over=("image",))
    everywhere = LayerBlock(
        layers=(*layers, gate, gate), count=reader.read_depth("num_global_layers"), over=("image",)
    )
    behind = build_part(build_norm(hidden), by_tile, gate, over="image")
    image = ModelInputShape(name="image", kind="image", channels=3, height=tiles * pixels, width=pixels)
    return VisionTower(image, (stem, local, behind, everywhere), reader.read_size("vision_output_dim"))


def _build_mllama_text(reader: ConfigReader, *, generates: bool) -> TextDecoder:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    vocabulary, each = reader.read_size("vocab_size"), reader.read_size("num_key_value_heads")
    around = build_norm(hidden, "rms")
    feed_forward = build_mlp(hidden, reader.read_size("intermediate_size"), gated=True, bias=False)
    attention = partial(
        build_attention,
        hidden,
        heads,
        key_value_heads=each,
        head_size=compute_head_size(hidden, heads, "num_attention_heads"),
        bias=False,
        output_bias=False,
    )
    crossing = (
        reader.read_indexes("cross_attention_layers")
        if reader.has_value("cross_attention_layers")
        else frozenset(range(3, 40, 5))
    )
    gate = build_learned_vectors("scale", 1)
    own = (around, attention(causal=True), around, feed_forward)
    cross = (
        around,
        attention(cross=hidden, query_key_norm="head"),
        gate,
        around,
        feed_forward,
        gate,
    )
    depth = reader.read_depth("num_hidden_layers")
    blocks = build_blocks([cross if index in crossing else own for index in range(depth)])
    layers = tuple(
        LayerBlock(layers=block.layers, count=block.count, over=("text",), reads=("image",))
        if block.layers == cross
        else block
        for block in blocks
    )
    tied = generates and reader.read_flag("tie_word_embeddings")
    if tied:
        raise build_unsupported_error(
            "tie_word_embeddings", "a head tied to the wider table is not supported"
        )
    architecture = Architecture(
        inputs=(ModelInputShape(name="text", kind="tokens"), ModelInputShape(name="image", kind="image")),
        # Eight rows more than the vocabulary, for the image token.
        embeddings=ModelEmbeddings(size=hidden, vocabulary_size=vocabulary + 8),
        layers=(*layers, around),
        heads=(build_language_head(hidden, vocabulary),) if generates else (),
    )
    return TextDecoder(architecture, hidden)


def build_mllama(reader: ConfigReader, suffix: str) -> Architecture:
    """Llama 3.2 Vision: the decoder reads the image by cross-attention."""
    with read_nested(reader, "vision_config", _MLLAMA_VISION) as vision:
        seen = _build_mllama_tower(vision)
    with read_nested(reader, "text_config", _MLLAMA_TEXT) as config:
        text = _build_mllama_text(config, generates=suffix == "ForConditionalGeneration")
    return join_vision_and_text(
        text, seen.image, *seen.layers, build_part(build_linear(seen.width, text.width), over="image")
    )


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


def build_llama4(reader: ConfigReader, suffix: str) -> Architecture:
    """Llama 4."""
    with read_nested(reader, "vision_config", _LLAMA4_VISION) as vision:
        hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_attention_heads")
        inner = vision.read_size("intermediate_size")
        ratio = vision.config.get("pixel_shuffle_ratio", 0.5)
        if not isinstance(ratio, float) or not 0 < ratio <= 1 or (1 / ratio) % 1:
            raise build_invalid_error(
                "pixel_shuffle_ratio", "pixel_shuffle_ratio must be one over a whole number"
            )
        stem = build_part(
            build_patch_embedding(
                vision.read_size_or("num_channels", 3),
                hidden,
                read_side(vision, "patch_size") or 1,
                bias=False,
            ),
            build_learned_vectors("class_tokens", hidden),
            build_learned_vectors("positions", hidden, compute_grid_side(vision) ** 2 + 1),
            build_norm(hidden),
            over="image",
        )
        block = LayerBlock(
            layers=(
                build_norm(hidden),
                build_attention(hidden, heads),
                build_norm(hidden),
                build_mlp(hidden, inner),
            ),
            count=vision.read_depth("num_hidden_layers"),
            over=("image",),
        )
        wide, out = vision.read_size("projector_input_dim"), vision.read_size("projector_output_dim")
        adapter = build_part(
            build_norm(hidden),
            build_merge(int(1 / ratio), drops=True),
            build_linear(inner, wide, bias=False),
            build_linear(out, out, bias=False),
            over="image",
        )
        given, image = vision.read_size("vision_output_dim"), build_image_input(vision)
    text = build_text_decoder(reader, suffix, "llama4_text", own_tie=True)
    projector = build_part(build_linear(given, text.width, bias=False), over="image")
    return join_vision_and_text(text, image, stem, block, adapter, projector)


_KIMI_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "patch_size": 14,
    "pos_emb_height": 64,
    "pos_emb_width": 64,
}


_KIMI_NAMES = {
    "hidden_size": ("vt_hidden_size", "hidden_size"),
    "intermediate_size": ("vt_intermediate_size", "intermediate_size"),
    "num_hidden_layers": ("vt_num_hidden_layers", "num_hidden_layers"),
    "num_attention_heads": ("vt_num_attention_heads", "num_attention_heads"),
    "pos_emb_height": ("init_pos_emb_height", "pos_emb_height"),
    "pos_emb_width": ("init_pos_emb_width", "pos_emb_width"),
}
"""Names in the files that the maker publishes, before those of transformers."""


def build_kimi_vl(reader: ConfigReader, suffix: str, *, first: bool = False) -> Architecture:
    """Kimi K2.5, under its class of transformers and the maker's, and the ``first`` Kimi-VL."""
    suffix = suffix.removeprefix("_").removeprefix("K25")
    with read_nested(reader, "vision_config", _KIMI_VISION) as vision:
        vision.names = _KIMI_NAMES
        hidden, heads = vision.read_size("hidden_size"), vision.read_size("num_attention_heads")
        factor = read_side(vision, "merge_kernel_size", 2) or 2
        stem = build_part(
            build_patch_embedding(
                vision.read_size_or("num_channels", 3), hidden, read_side(vision, "patch_size") or 1
            ),
            build_learned_vectors(
                "positions", hidden, vision.read_size("pos_emb_height") * vision.read_size("pos_emb_width")
            ),
            over="image",
        )
        block = LayerBlock(
            layers=(
                build_norm(hidden),
                build_attention(hidden, heads),
                build_norm(hidden),
                build_mlp(hidden, vision.read_size("intermediate_size")),
            ),
            count=vision.read_depth("num_hidden_layers"),
            over=("image",),
        )
    text = build_text_decoder(reader, suffix, "deepseek_v3", ties=True, own_tie=first, flat=True)
    wide = hidden * factor**2
    projector = build_part(
        build_norm(hidden),
        build_norm(hidden if first else reader.read_size_or("projection_hidden_size", 1152)),
        build_merge(factor),
        build_linear(wide, wide),
        build_linear(wide, text.width),
        over="image",
    )
    image = ModelInputShape(name="image", kind="image", channels=3)
    return join_vision_and_text(text, image, stem, block, projector)


_MINIMAX_VISION = {
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 16,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
}


def build_minimax_m3(reader: ConfigReader, suffix: str) -> Architecture:
    """MiniMax-M3: patches are projected one by one, and merged by a second projector."""
    text = build_text_decoder(reader, suffix.removeprefix("Sparse"), "minimax_m3_vl_text")
    projected = reader.read_size_or("projector_hidden_size", 6144)
    with read_nested(reader, "vision_config", _MINIMAX_VISION) as vision:
        hidden, frames = vision.read_size("hidden_size"), vision.read_size("temporal_patch_size")
        factor, step = vision.read_size("spatial_merge_size"), read_side(vision, "patch_size") or 1
        channels = vision.read_size_or("num_channels", 3)
        stem = build_part(
            build_patch_embedding(channels, hidden, step, bias=False, frames=frames, frame_stride=frames),
            build_norm(hidden),
            over="image",
        )
        block = LayerBlock(
            layers=(
                build_norm(hidden),
                build_attention(hidden, vision.read_size("num_attention_heads")),
                build_norm(hidden),
                build_mlp(hidden, vision.read_size("intermediate_size")),
            ),
            count=vision.read_depth("num_hidden_layers"),
            over=("image",),
        )
    projector = build_part(
        build_linear(hidden, projected),
        build_linear(projected, text.width),
        build_merge(factor),
        build_linear(text.width * factor**2, projected),
        build_linear(projected, text.width),
        over="image",
    )
    picture = ModelInputShape(name="image", kind="video", channels=3, frames=1)
    return join_vision_and_text(text, picture, stem, block, projector)
