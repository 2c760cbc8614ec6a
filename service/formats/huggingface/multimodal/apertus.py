"""Apertus 1.5: tokenizers of pictures and of sound in front of Apertus, whose head names words alone.

What they give are tokens, which the decoder looks up among the others.
"""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface.decoders import SPELLINGS, build_architecture
from service.formats.huggingface.diffusion.convolutional import build_residual
from service.formats.huggingface.families.dense import DENSE
from service.formats.huggingface.multimodal.parts import build_text_decoder, join_senses_and_text
from service.formats.huggingface.parts import (
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_norm,
    build_part,
    build_time_convolution,
    build_unsupported_error,
    read_choice,
    read_nested,
    read_numbers,
)
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import SimpleLayer

_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 266_752,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": None,
    "max_position_embeddings": 65_536,
    "attention_bias": False,
    "tie_word_embeddings": False,
}
_VISION: Mapping[str, ConfigDefault] = {
    "codebook_size": 131_072,
    "embed_dim": 256,
    "latent_channels": 256,
    "in_channels": 3,
    "base_channels": 256,
    "num_res_blocks": 4,
    "resolution": 256,
}
_USUAL_WIDTHS = (1, 1, 2, 2, 4)
_USUAL_SEEN = (16,)
"""Sides of the grid at which positions attend to each other."""

_AUDIO: Mapping[str, ConfigDefault] = {
    "audio_channels": 1,
    "num_filters": 32,
    "num_residual_layers": 1,
    "compress": 2,
    "use_conv_shortcut": True,
    "kernel_size": 7,
    "last_kernel_size": 7,
    "residual_kernel_size": 3,
    "num_lstm_layers": 2,
    "hidden_size": 512,
}
_USUAL_STRIDES = (6, 5, 5, 4)
_GATES = 4
"""Gates of a recurrent layer, each with a matrix for the input and one for the state."""


def _build_text(reader: ConfigReader, suffix: str) -> Architecture:
    """Apertus, with a head over the first tokens of the table where it is narrower."""
    read_choice(reader, "hidden_act", "xielu", "xielu")
    made = build_architecture(reader, suffix.removeprefix("Text"), DENSE["apertus"])
    answers = reader.read_optional_size("output_vocab_size")
    if answers is None or not made.heads:
        return made
    if made.tied and answers != reader.read_size("vocab_size"):
        raise build_unsupported_error(
            "output_vocab_size", "only known where it is vocab_size, or the head is not tied"
        )
    return replace(made, heads=tuple(replace(head, output_size=answers) for head in made.heads))


APERTUS_TEXT = ModelFamily(
    prefix="Apertus1p5",
    build=_build_text,
    classes=("TextForCausalLM", "TextModel"),
    unnamed_class="TextForCausalLM",
    context_field="max_position_embeddings",
    defaults=_TEXT,
    names=SPELLINGS,
)
"""The decoder inside of Apertus 1.5."""


def _build_seen(channels: int) -> tuple[SimpleLayer, ...]:
    return build_norm(channels, "group"), build_attention(channels, 1)


def _build_seeing(vision: ConfigReader) -> list[LayerBlock]:
    """Convolutions that halve the grid between stages, and scores of all codes."""
    base, latent = vision.read_size("base_channels"), vision.read_size("latent_channels")
    widths = [base * factor for factor in read_numbers(vision, "channel_multiplier", _USUAL_WIDTHS)]
    attending = read_numbers(vision, "attn_resolutions", _USUAL_SEEN)
    resolution, count = vision.read_size("resolution"), vision.read_depth("num_res_blocks")
    blocks = [build_part(build_convolution(vision.read_size("in_channels"), base), over="image")]
    before = base
    for index, width in enumerate(widths):
        seen = _build_seen(width) if resolution // 2**index in attending else ()
        for place in range(count):
            entering = width if place else before
            blocks.append(
                LayerBlock(
                    layers=(*build_residual(entering, width, 0, "image").layers, *seen), over=("image",)
                )
            )
        if index < len(widths) - 1:
            blocks.append(build_part(build_convolution(width, width, stride=2), over="image"))
        before = width
    residual = build_residual(before, before, 0, "image").layers
    codes = (
        build_norm(before, "group"),
        build_convolution(before, latent),
        build_convolution(latent, vision.read_size("embed_dim"), 1),
        build_linear(vision.read_size("embed_dim"), vision.read_size("codebook_size"), bias=False),
    )
    middle = LayerBlock(layers=(*residual, *_build_seen(before), *residual), over=("image",))
    return [*blocks, middle, build_part(*codes, over="image")]


def _build_weighed(before: int, behind: int, kernel: int, stride: int = 1) -> tuple[SimpleLayer, ...]:
    """A convolution over time with a learned length of each of its kernels."""
    return build_time_convolution(before, behind, kernel, stride), build_learned_vectors("scale", behind)


def _build_heard(audio: ConfigReader, width: int) -> LayerBlock:
    """A narrower pair of convolutions, and one beside them."""
    narrow = width // audio.read_size("compress")
    if not narrow:
        raise build_invalid_error("compress", "compress exceeds the width of a stage")
    layers = [
        *_build_weighed(width, narrow, audio.read_size("residual_kernel_size")),
        *_build_weighed(narrow, width, 1),
    ]
    if audio.read_flag("use_conv_shortcut"):
        beside = replace(build_time_convolution(width, width, 1), shortcut=True)
        layers += [beside, build_learned_vectors("scale", width)]
    return LayerBlock(layers=tuple(layers), count=audio.read_depth("num_residual_layers"), over=("audio",))


def _build_hearing(audio: ConfigReader) -> list[LayerBlock]:
    """Convolutions that shorten the wave, and a recurrent network."""
    read_choice(audio, "norm_type", "weight_norm", "weight_norm")
    width = audio.read_size("num_filters")
    first = _build_weighed(audio.read_size("audio_channels"), width, audio.read_size("kernel_size"))
    blocks = [build_part(*first, over="audio")]
    for stride in reversed(read_numbers(audio, "upsampling_ratios", _USUAL_STRIDES)):
        blocks.append(_build_heard(audio, width))
        blocks.append(build_part(*_build_weighed(width, 2 * width, 2 * stride, stride), over="audio"))
        width *= 2
    gates = replace(build_linear(width, _GATES * width), count=2 * audio.read_depth("num_lstm_layers"))
    last = _build_weighed(width, audio.read_size("hidden_size"), audio.read_size("last_kernel_size"))
    return [*blocks, build_part(gates, *last, over="audio")]


def _find_member(reader: ConfigReader, sense: str) -> str:
    """The member of a tokenizer, which published files and transformers call otherwise."""
    published = f"{sense}_tokenizer_config"
    return published if reader.has_value(published) else f"{sense}_config"


def _build_apertus(reader: ConfigReader, suffix: str) -> Architecture:
    """Apertus 1.5."""
    text = build_text_decoder(reader, suffix, "apertus1p5_text")
    with read_nested(reader, _find_member(reader, "vision"), _VISION) as vision:
        seen = _build_seeing(vision)
        picture = ModelInputShape(
            name="image",
            kind="image",
            channels=vision.read_size("in_channels"),
            height=vision.read_size("resolution"),
        )
    with read_nested(reader, _find_member(reader, "audio"), _AUDIO) as audio:
        heard = _build_hearing(audio)
        sound = ModelInputShape(name="audio", kind="audio", channels=audio.read_size("audio_channels"))
    return join_senses_and_text(text, (picture, sound), (*seen, *heard))


_CLASSES = ("ForConditionalGeneration", "Model")
APERTUS = ModelFamily("Apertus1p5", _build_apertus, _CLASSES, _CLASSES[0], None, {})
