"""Gemma 4: towers for images and sound, of which a model has both, one or none."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from service.formats.huggingface.multimodal.parts import TextDecoder, build_text_decoder
from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_patch_embedding,
    build_plain_norm,
    read_nested,
    read_numbers,
    read_side,
)
from service.formats.huggingface.reader import (
    ConfigReader,
    build_invalid_error,
    compute_head_size,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import Convolution

_IMAGE = ModelInputShape(name="image", kind="image", channels=3)
_SOUND = ModelInputShape(name="audio", kind="audio", channels=128)
_VISION = {
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
_AUDIO = {
    "hidden_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "conv_kernel_size": 5,
    "attention_chunk_size": 12,
    "output_proj_dims": 1536,
}
_STEM_CHANNELS = (128, 32)


def _build_vision_tower(reader: ConfigReader, text: TextDecoder) -> tuple[LayerBlock, ...]:
    reader.refuse_flags("attention_bias")
    hidden, around = reader.read_size("hidden_size"), build_norm(reader.read_size("hidden_size"), "rms")
    attention = build_attention(
        hidden,
        reader.read_size("num_attention_heads"),
        head_size=reader.read_size("head_dim"),
        key_value_heads=reader.read_size("num_key_value_heads"),
        bias=False,
        output_bias=False,
        query_key_norm="head",
    )
    feed_forward = build_mlp(hidden, reader.read_size("intermediate_size"), gated=True, bias=False)
    # A table for rows and one for columns.
    table = build_learned_vectors("positions", hidden, 2 * reader.read_size("position_embedding_size"))
    block = LayerBlock(
        layers=(around, attention, around, around, feed_forward, around),
        count=reader.read_depth("num_hidden_layers"),
        over=("image",),
    )
    step, pooled = read_side(reader, "patch_size") or 1, reader.read_size("pooling_kernel_size")
    stem = build_part(build_patch_embedding(3, hidden, step, bias=False), table, over="image")
    projector = build_part(build_merge(pooled), build_linear(hidden, text.width, bias=False), over="image")
    return stem, block, projector


def _build_audio_stem(reader: ConfigReader, hidden: int) -> LayerBlock:
    """Two convolutions over time and frequencies, and a matrix over what is left of the frequencies."""
    channels = read_numbers(reader, "subsampling_conv_channels", _STEM_CHANNELS)
    if len(channels) != len(_STEM_CHANNELS):
        raise build_invalid_error("subsampling_conv_channels", "subsampling_conv_channels must be two")
    first, second = channels
    return build_part(
        build_convolution(1, first, stride=2, bias=False),
        build_norm(first, "rms"),
        build_convolution(first, second, stride=2, bias=False),
        build_norm(second, "rms"),
        build_linear(first // 4 * second, hidden, bias=False),
        over="audio",
    )


def _build_audio_tower(reader: ConfigReader, text: TextDecoder) -> tuple[LayerBlock, ...]:
    """A conformer: half a feed-forward on both sides of attention and a short convolution."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    norm, half = build_norm(hidden, "rms"), build_mlp(hidden, 4 * hidden, bias=False)
    width, chunk = reader.read_size("conv_kernel_size"), reader.read_size("attention_chunk_size")
    attention = build_attention(hidden, heads, bias=False, output_bias=False, window=chunk, score_bias=True)
    # Keys of relative positions, which are few, and a scale for each channel of a head.
    positions = build_learned_vectors("relative_positions", hidden, hidden)
    scale = build_learned_vectors("scale", compute_head_size(hidden, heads, "num_attention_heads"))
    short = Convolution(
        input_channels=hidden,
        output_channels=hidden,
        kernel_height=1,
        kernel_width=width,
        groups=hidden,
        bias=False,
    )
    layers = (
        *(norm, half, norm),
        *(norm, attention, positions, scale, norm),
        *(norm, build_linear(hidden, 2 * hidden, bias=False), short, norm),
        build_linear(hidden, hidden, bias=False),
        *(norm, half, norm, norm),
    )
    out = reader.read_size("output_proj_dims")
    block = LayerBlock(layers=layers, count=reader.read_depth("num_hidden_layers"), over=("audio",))
    projector = build_part(build_linear(hidden, out), build_linear(out, text.width, bias=False), over="audio")
    return _build_audio_stem(reader, hidden), block, projector


class _Sense(NamedTuple):
    """A sense of a model, present if its configuration has the member."""

    member: str
    shape: ModelInputShape
    defaults: Mapping[str, int]
    build: Callable[[ConfigReader, TextDecoder], tuple[LayerBlock, ...]]


def _build_with_senses(reader: ConfigReader, text: TextDecoder, *senses: _Sense) -> Architecture:
    """Puts the layers of each sense that a model has before its decoder."""
    before: list[ModelLayer] = []
    inputs = [ModelInputShape(name="text", kind="tokens")]
    for sense in senses:
        if reader.has_value(sense.member):
            with read_nested(reader, sense.member, sense.defaults) as own:
                before += sense.build(own, text)
            inputs.append(sense.shape)
    decoder = text.architecture
    return Architecture(
        inputs=tuple(inputs),
        embeddings=decoder.embeddings,
        layers=(*before, *decoder.layers),
        heads=decoder.heads,
        tied=decoder.tied,
    )


def build_gemma_4_multimodal(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 4. Limits on what passes its matrices (``use_clipped_linears``) are no parameters."""
    text = build_text_decoder(reader, suffix, "gemma4_text", ties=True)
    return _build_with_senses(
        reader,
        text,
        _Sense("vision_config", _IMAGE, _VISION, _build_vision_tower),
        _Sense("audio_config", _SOUND, _AUDIO, _build_audio_tower),
    )


_UNIFIED_VISION = {
    "patch_size": 16,
    "pooling_kernel_size": 3,
    "mm_embed_dim": 3840,
    "mm_posemb_size": 1120,
}


def _build_unified_vision(reader: ConfigReader, text: TextDecoder) -> tuple[LayerBlock, ...]:
    """Patches of pixels pass one matrix between norms; there are no layers."""
    side = (read_side(reader, "patch_size") or 1) * reader.read_size("pooling_kernel_size")
    width = reader.read_size("mm_embed_dim")
    out = reader.read_size_or("output_proj_dims", width)
    norm = build_norm(width)
    part = build_part(
        build_learned_vectors("scale", 2 * 3 * side**2),
        build_patch_embedding(3, width, side),
        norm,
        build_learned_vectors("positions", width, 2 * reader.read_size("mm_posemb_size")),
        norm,
        build_linear(out, text.width, bias=False),
        over="image",
    )
    return (part,)


def _build_unified_audio(reader: ConfigReader, text: TextDecoder) -> tuple[LayerBlock, ...]:
    heard = reader.read_size_or("output_proj_dims", reader.read_size("audio_embed_dim"))
    norm = build_plain_norm(heard)
    return (build_part(norm, build_linear(heard, text.width, bias=False), over="audio"),)


def build_gemma_4_unified(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 4 without towers: images and sound enter the decoder through a matrix each."""
    text = build_text_decoder(reader, suffix, "gemma4_unified_text", ties=True)
    return _build_with_senses(
        reader,
        text,
        _Sense("vision_config", _IMAGE, _UNIFIED_VISION, _build_unified_vision),
        _Sense("audio_config", _SOUND, {"audio_embed_dim": 640}, _build_unified_audio),
    )
