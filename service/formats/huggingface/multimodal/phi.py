"""Phi-4-multimodal: SigLIP over crops of a picture, a conformer over a spectrogram, and Phi-4-mini.

Phi-3-vision has CLIP over crops alone, which its file names without sizes.
"""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import (
    build_text_decoder,
    join_senses_and_text,
    join_vision_and_text,
)
from service.formats.huggingface.parts import (
    build_activation,
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_merge,
    build_mlp,
    build_norm,
    build_part,
    build_unsupported_error,
    read_choice,
    read_nested,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.formats.huggingface.vision.pairs import build_siglip_tower
from service.formats.huggingface.vision.transformers import (
    CLIP_VISION,
    build_image_input,
    build_vision_transformer,
    compute_grid_side,
)
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import Convolution, SimpleLayer

ADAPTERS = ("vision_lora", "speech_lora")
"""Members of a published file that describe adapters of low rank, which engines load apart."""

_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 448,
    "patch_size": 14,
}
_AUDIO = {
    "hidden_size": 1024,
    "intermediate_size": 1536,
    "num_blocks": 24,
    "num_attention_heads": 16,
    "ext_pw_out_channel": 1024,
    "depthwise_separable_out_channel": 1024,
    "depthwise_multiplier": 1,
    "kernel_size": 3,
    "input_size": 80,
    "time_reduction": 8,
    "bias_max_distance": 1000,
    "nemo_conv_channels": 1024,
}
_CLIP_LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
"""The one tower of Phi-3-vision, openai/clip-vit-large-patch14-336."""

_LONGEST_CHUNK = 500
"""Positions of sound that attend to each other; longer ones are taken apart."""

_PUBLISHED_AUDIO = {
    "attention_dim": "hidden_size",
    "attention_heads": "num_attention_heads",
    "linear_units": "intermediate_size",
    "depthwise_seperable_out_channel": "depthwise_separable_out_channel",
}
"""Names in the file that the maker publishes, and those of transformers."""


def _build_vision(reader: ConfigReader, width: int) -> tuple[ModelLayer, ...]:
    if compute_grid_side(reader) % 2:
        raise build_unsupported_error("image_size", "only known where the patches of a side are even")
    hidden = reader.read_size("hidden_size")
    projector = build_part(
        build_merge(2),
        # A vector at the end of each row, and one between the crops and the whole picture.
        build_learned_vectors("tokens", hidden, 2),
        build_linear(hidden, width),
        build_activation(width),
        build_linear(width, width),
        over="image",
    )
    return (*build_siglip_tower(reader), projector)


def _build_stem(reader: ConfigReader) -> LayerBlock:
    """Convolutions that halve time and frequencies, and a matrix over what is left of the latter."""
    channels, left = reader.read_size("nemo_conv_channels"), reader.read_size("input_size")
    halvings = reader.read_size("time_reduction").bit_length() - 1
    if not halvings or 2**halvings != reader.read_size("time_reduction"):
        raise build_invalid_error("time_reduction", "time_reduction must be a power of two")
    layers: list[SimpleLayer] = [build_convolution(1, channels, stride=2)]
    for _ in range(halvings - 1):
        layers.append(build_convolution(channels, channels, stride=2, groups=channels))
        layers.append(build_convolution(channels, channels, 1))
    for _ in range(halvings):
        left = -(-left // 2)
    joined = Convolution(
        input_channels=channels,
        output_channels=reader.read_size("hidden_size"),
        kernel_height=left,
        kernel_width=1,
        padded=False,
        bias=True,
    )
    return build_part(*layers, joined, over="audio")


def _build_conformer(reader: ConfigReader) -> tuple[LayerBlock, ...]:
    """Half a feed-forward on both sides of attention and a short convolution."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    if reader.config.get("chunk_size", -1) != -1:
        raise build_unsupported_error("chunk_size", "only known where it is -1")
    norm, half = build_norm(hidden), build_mlp(hidden, reader.read_size("intermediate_size"), gated=True)
    attention = build_attention(hidden, heads, window=_LONGEST_CHUNK, score_bias=True)
    wide, out = hidden * reader.read_size("depthwise_multiplier"), reader.read_size("ext_pw_out_channel")
    narrow = reader.read_size("depthwise_separable_out_channel")
    if not hidden == out == narrow:
        raise build_invalid_error("ext_pw_out_channel", "the convolutions of a block must keep its width")
    short = Convolution(
        input_channels=hidden,
        output_channels=wide,
        kernel_height=1,
        kernel_width=reader.read_size("kernel_size"),
        groups=hidden,
        bias=True,
    )
    layers = (
        *(norm, half, norm, attention),
        *(norm, build_linear(hidden, 2 * out), build_learned_vectors("bias", out, 2)),
        *(short, build_linear(wide, narrow), build_activation(narrow), build_linear(hidden, out)),
        *(norm, half, norm),
    )
    sides = 1 if reader.read_flag("bias_symmetric") else 2
    table = build_learned_vectors("relative_positions", heads, sides * reader.read_size("bias_max_distance"))
    block = LayerBlock(layers=layers, count=reader.read_depth("num_blocks"), over=("audio",))
    return build_part(table, over="audio"), block


def _build_hearing(reader: ConfigReader, width: int) -> tuple[ModelInputShape, tuple[ModelLayer, ...]]:
    if reader.read_size_or("downsample_rate", 1) != 1:
        raise build_unsupported_error("downsample_rate", "only known where it is 1")
    hidden = reader.read_size("hidden_size")
    projector = (build_linear(hidden, width), build_activation(width), build_linear(width, width))
    sound = ModelInputShape(name="audio", kind="audio", channels=1, height=reader.read_size("input_size"))
    layers = (
        _build_stem(reader),
        *_build_conformer(reader),
        build_part(*projector, over="audio"),
        # The same for sound beside pictures, of which a sample takes one: its work is next to nothing here.
        build_part(*projector, over="audio", once=True),
    )
    return sound, layers


def build_phi4_multimodal(reader: ConfigReader, suffix: str) -> Architecture:
    """Phi-4-multimodal, as transformers names its members."""
    kind = "ForConditionalGeneration" if suffix == "ForCausalLM" else "Model"
    text = build_text_decoder(reader, kind, "phi4_multimodal_text", flat=True)
    with read_nested(reader, "vision_config", _VISION) as vision:
        seen, image = _build_vision(vision, text.width), build_image_input(vision)
    with read_nested(reader, "audio_config", _AUDIO) as audio:
        sound, heard = _build_hearing(audio, text.width)
    return join_senses_and_text(text, (image, sound), (*seen, *heard))


def _read_member(config: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = config.get(name)
    return value if isinstance(value, Mapping) else {}


def build_published_phi4(reader: ConfigReader, suffix: str) -> Architecture:
    """Phi-4-multimodal, as its maker publishes it: the tower for pictures is that of its code."""
    stated = _read_member(_read_member(reader.config, "audio_processor"), "config")
    audio = {_PUBLISHED_AUDIO.get(name, name): value for name, value in stated.items()}
    bias = _read_member(stated, "relative_attention_bias_args")
    audio |= {
        "nemo_conv_channels": _read_member(stated, "nemo_conv_settings").get("conv_channels"),
        "bias_max_distance": bias.get("t5_bias_max_distance"),
        "bias_symmetric": bias.get("t5_bias_symmetric"),
    }
    config = {**reader.config, "vision_config": {}, "audio_config": audio}
    given = ConfigReader(config, reader.defaults, reader.names, reader.defaulted)
    return build_phi4_multimodal(given, suffix)


def build_phi3_vision(reader: ConfigReader, suffix: str) -> Architecture:
    """Phi-3-vision and Phi-3.5-vision."""
    del suffix
    with read_nested(reader, "img_processor", {}) as named:
        read_choice(named, "name", "clip_vision_model", "clip_vision_model")
    with read_nested(reader, "embd_layer", {}) as joined:
        if read_choice(joined, "projection_cls", "linear") != "mlp":
            raise build_unsupported_error("projection_cls", "only known where it is mlp")
        for name in ("use_hd_transform", "with_learnable_separator"):
            if not joined.read_flag(name):
                raise build_unsupported_error(name, "only known where it is true")
    vision = ConfigReader(_CLIP_LARGE, {})
    text = build_text_decoder(reader, "ForConditionalGeneration", "phi3", flat=True)
    wide = 4 * vision.read_size("hidden_size")
    projector = build_part(
        build_merge(2, drops=True),
        # A vector at the end of each row, and one between the crops and the whole picture.
        build_learned_vectors("tokens", wide, 2),
        build_linear(wide, text.width),
        build_activation(text.width),
        build_linear(text.width, text.width),
        over="image",
    )
    tower = build_vision_transformer(vision, CLIP_VISION)
    return join_vision_and_text(text, build_image_input(vision), *tower, projector)
