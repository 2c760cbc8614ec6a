"""Models that hear: the encoder of Whisper and a projector in front of a decoder."""

from service.formats.huggingface.encoder_decoders import WHISPER, build_whisper_encoder
from service.formats.huggingface.multimodal.parts import build_text_decoder, join_vision_and_text
from service.formats.huggingface.parts import build_linear, build_part, read_nested
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import Architecture
from service.planning.models.layers import Resampling

_LARGE = {
    **WHISPER,
    "d_model": 1280,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "num_mel_bins": 128,
}
_VOXTRAL_NAMES = {
    "d_model": ("hidden_size", "d_model"),
    "encoder_layers": ("num_hidden_layers", "encoder_layers"),
    "encoder_attention_heads": ("num_attention_heads", "encoder_attention_heads"),
    "encoder_ffn_dim": ("intermediate_size", "encoder_ffn_dim"),
}


def build_qwen2_audio(reader: ConfigReader, suffix: str) -> Architecture:
    """Qwen2-Audio: pairs of what is heard are averaged and pass one matrix."""
    with read_nested(reader, "audio_config", _LARGE) as audio:
        sound, encoder = build_whisper_encoder(audio)
        heard = audio.read_size("d_model")
    text = build_text_decoder(reader, suffix, "qwen2")
    projector = build_part(Resampling(factor=2.0), build_linear(heard, text.width), over="source")
    return join_vision_and_text(text, sound, *encoder, projector)


def build_voxtral(reader: ConfigReader, suffix: str) -> Architecture:
    """Voxtral: neighbours are joined to the width of the encoder's feed-forward and pass two matrices."""
    with read_nested(reader, "audio_config", _LARGE) as audio:
        audio.names = _VOXTRAL_NAMES
        audio.defaults = {**_LARGE, **{names[0]: _LARGE[name] for name, names in _VOXTRAL_NAMES.items()}}
        sound, encoder = build_whisper_encoder(audio)
        heard, joined = audio.read_size("d_model"), audio.read_size("encoder_ffn_dim")
        if joined % heard:
            raise build_invalid_error("intermediate_size", "intermediate_size is no multiple of hidden_size")
    text = build_text_decoder(reader, suffix, "llama")
    projector = build_part(
        Resampling(factor=joined / heard),
        build_linear(joined, text.width, bias=False),
        build_linear(text.width, text.width, bias=False),
        over="source",
    )
    return join_vision_and_text(text, sound, *encoder, projector)
