"""Thinkers of Qwen-Omni: the part that sees, hears and writes, without the one that speaks."""

from collections.abc import Mapping

from service.formats.huggingface.multimodal.parts import build_text_decoder, join_senses_and_text
from service.formats.huggingface.multimodal.qwen import (
    QWEN3_VISION,
    QWEN25_VISION,
    QWEN_PICTURE,
    build_deep_tower,
    build_windowed_tower,
)
from service.formats.huggingface.parts import (
    build_activation,
    build_attention,
    build_convolution,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_query_value_bias,
    build_time_convolution,
    read_activation_function,
    read_nested,
)
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape, ModelLayer
from service.planning.models.layers import Convolution, Resampling, SimpleLayer

THINKERS: Mapping[str, str] = {
    "qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen3_omni_moe": "Qwen3OmniMoeThinkerForConditionalGeneration",
}
"""Types whose file describes a thinker beside a talker and a vocoder, with the class of the thinker."""

_HEARING = {
    "num_mel_bins": 128,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "d_model": 1280,
    "output_dim": 3584,
}
_OMNI_HEARING = {**_HEARING, "n_window": 100}
_MOE_HEARING = {**_HEARING, "n_window": 50, "n_window_infer": 800, "downsample_hidden_size": 480}
_HALVINGS = 3
"""Convolutions of Qwen3-Omni that halve time and frequencies."""


def select_thinker(config: Mapping[str, object]) -> Mapping[str, object]:
    """Returns the configuration of the thinker under the name of its class."""
    model_type = str(config["model_type"])
    known = THINKERS[model_type]
    whole = known.replace("Thinker", "")
    classes = (whole, whole.replace("ForConditionalGeneration", "Model"), known)
    names = config.get("architectures")
    if names is not None and (not isinstance(names, list) or not names or names[0] not in classes):
        raise PlanningError(
            "MODEL_CLASS_UNKNOWN",
            "/architectures/0",
            f"this class is not known; known are {', '.join(classes)}",
        )
    thinker = config.get("thinker_config")
    if not isinstance(thinker, Mapping):
        raise PlanningError("CONFIG_FIELD_MISSING", "/thinker_config", "thinker_config is missing")
    return {**thinker, "model_type": f"{model_type}_thinker", "architectures": [known]}


def _build_encoder(reader: ConfigReader, window: int, *, key_bias: bool) -> tuple[ModelLayer, ...]:
    """Blocks of Whisper's encoder, which attend within chunks."""
    hidden, norm = reader.read_size("d_model"), build_norm(reader.read_size("d_model"))
    attention = build_attention(
        hidden,
        reader.read_size("encoder_attention_heads"),
        bias=key_bias,
        window=window,
        heads_field="encoder_attention_heads",
    )
    own: tuple[SimpleLayer, ...] = () if key_bias else (build_query_value_bias(hidden),)
    inner = build_mlp(
        hidden,
        reader.read_size("encoder_ffn_dim"),
        function=read_activation_function(reader, "activation_function", "gelu"),
    )
    block = LayerBlock(
        layers=(norm, attention, *own, norm, inner),
        count=reader.read_depth("encoder_layers"),
        over=("audio",),
    )
    return (block,)


def _build_hearing(reader: ConfigReader) -> tuple[ModelInputShape, tuple[ModelLayer, ...]]:
    """Qwen2.5-Omni: convolutions over time, and pairs of what is heard are averaged behind the blocks."""
    hidden, out = reader.read_size("d_model"), reader.read_size("output_dim")
    channels = reader.read_size("num_mel_bins")
    stem = build_part(
        build_time_convolution(channels, hidden, 3),
        build_activation(hidden),
        build_time_convolution(hidden, hidden, 3, stride=2),
        build_activation(hidden),
        over="audio",
    )
    blocks = _build_encoder(reader, reader.read_size("n_window"), key_bias=False)
    behind = build_part(
        Resampling(factor=2.0),
        build_norm(hidden),
        build_linear(hidden, out),
        # Vectors of the beginning and the end of a sound.
        build_learned_vectors("tokens", out, 2),
        over="audio",
    )
    return ModelInputShape(name="audio", kind="audio", channels=channels), (stem, *blocks, behind)


def _build_spectral_hearing(reader: ConfigReader) -> tuple[ModelInputShape, tuple[ModelLayer, ...]]:
    """Qwen3-Omni: convolutions over time and frequencies, and a matrix over what is left of the latter."""
    hidden, out = reader.read_size("d_model"), reader.read_size("output_dim")
    rows, channels = reader.read_size("num_mel_bins"), reader.read_size("downsample_hidden_size")
    chunk = 2 * reader.read_size("n_window")
    ratio, rest = divmod(reader.read_size("n_window_infer"), chunk)
    if rest or not ratio:
        raise build_invalid_error("n_window_infer", "n_window_infer must be a multiple of two n_window")
    halvings: list[SimpleLayer] = []
    given, left, heard = 1, rows, chunk
    for _ in range(_HALVINGS):
        halvings += [build_convolution(given, channels, stride=2), build_activation(channels)]
        given, left, heard = channels, -(-left // 2), -(-heard // 2)
    joined = Convolution(
        input_channels=channels, output_channels=hidden, kernel_height=left, kernel_width=1, padded=False
    )
    behind = build_part(
        build_norm(hidden),
        build_linear(hidden, hidden),
        build_activation(hidden),
        build_linear(hidden, out),
        over="audio",
    )
    # A chunk leaves one position more than its length over eight where that is no whole number.
    blocks = _build_encoder(reader, heard * ratio, key_bias=True)
    sound = ModelInputShape(name="audio", kind="audio", channels=1, height=rows)
    return sound, (build_part(*halvings, joined, over="audio"), *blocks, behind)


def build_omni_thinker(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2.5-Omni."""
    with read_nested(reader, "vision_config", QWEN25_VISION) as vision:
        seen = build_windowed_tower(vision)
    with read_nested(reader, "audio_config", _OMNI_HEARING) as audio:
        sound, heard = _build_hearing(audio)
    text = build_text_decoder(reader, suffix, "qwen2_5_omni_text")
    return join_senses_and_text(text, (QWEN_PICTURE, sound), (*seen, *heard))


def build_omni_moe_thinker(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen3-Omni."""
    with read_nested(reader, "vision_config", QWEN3_VISION) as vision:
        seen = build_deep_tower(vision)
    with read_nested(reader, "audio_config", _MOE_HEARING) as audio:
        sound, heard = _build_spectral_hearing(audio)
    text = build_text_decoder(reader, suffix, "qwen3_omni_moe_text")
    return join_senses_and_text(text, (QWEN_PICTURE, sound), (*seen, *heard))
