"""Shared parts of vision-language models: the tower, and the decoder of the family in ``text_config``."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from service.formats.huggingface.parts import read_choice, read_nested
from service.formats.huggingface.reader import ConfigDefault, ConfigReader
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, ModelInputShape, ModelLayer


class VisionTower(NamedTuple):
    """A vision tower: its input, its layers and the width of its output."""

    image: ModelInputShape
    layers: tuple[ModelLayer, ...]
    width: int


class TextDecoder(NamedTuple):
    """The decoder of a vision-language model and its width."""

    architecture: Architecture
    width: int


_ALIASES: Mapping[str, str] = {
    "exaone4_5_text": "exaone4",
    "glm_ocr_text": "glm4",
    "granite4_vision_text": "granite",
    "hunyuan_vl_text": "hunyuan_v1_dense",
    "paddleocr_vl_text": "ernie4_5",
    "qwen2_5_omni_text": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "phi4_multimodal_text": "phi3",
    "glm4v_text": "glm4",
    "glm4v_moe_text": "glm4_moe",
    "kimi_k2": "deepseek_v3",
}
"""Text families that equal another one in everything that sets a shape."""


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


_GLM_V_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 151_552,
    "hidden_size": 4096,
    "intermediate_size": 13_696,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32_768,
    "attention_bias": True,
    "head_dim": None,
}


_GLM_V_MOE_TEXT: Mapping[str, ConfigDefault] = {
    **_GLM_V_TEXT,
    "vocab_size": 151_424,
    "intermediate_size": 10_944,
    "num_hidden_layers": 46,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "max_position_embeddings": 65_536,
}


_QWEN_OMNI_TEXT = {
    "vocab_size": 152_064,
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32_768,
    "sliding_window": 32_768,
    "max_window_layers": 28,
}


_QWEN_OMNI_MOE_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 3584,
    "hidden_size": 2048,
    "intermediate_size": 18_944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32_768,
    "use_sliding_window": False,
    "head_dim": None,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
}


_PHI_4_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 200_064,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
}


_GLM_OCR_TEXT: Mapping[str, ConfigDefault] = {
    "vocab_size": 59_392,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "attention_bias": False,
    "head_dim": None,
}


_OWN_DEFAULTS: Mapping[str, Mapping[str, ConfigDefault]] = {
    "glm4v_text": _GLM_V_TEXT,
    "glm_ocr_text": _GLM_OCR_TEXT,
    "glm4v_moe_text": _GLM_V_MOE_TEXT,
    "phi4_multimodal_text": _PHI_4_TEXT,
    "qwen2_5_omni_text": _QWEN_OMNI_TEXT,
    "qwen2_vl_text": _QWEN2_VL_TEXT,
    "qwen2_5_vl_text": _QWEN2_VL_TEXT,
    "qwen3_omni_moe_text": _QWEN_OMNI_MOE_TEXT,
    "qwen3_vl_text": _QWEN3_VL_TEXT,
}


@contextmanager
def _open_text_config(reader: ConfigReader, field: str, *, flat: bool) -> Iterator[ConfigReader]:
    """The text configuration; older files of some families hold its fields at the top."""
    if flat and not reader.has_value(field):
        yield ConfigReader(reader.config, {})
        return
    with read_nested(reader, field, {}) as text:
        yield text


def build_text_decoder(
    reader: ConfigReader,
    suffix: str,
    default: str,
    *,
    ties: bool = False,
    own_tie: bool = False,
    nested_tie: bool = False,
    flat: bool = False,
    field: str = "text_config",
) -> TextDecoder:
    """The decoder that ``text_config`` describes, its head tied as the outer configuration says.

    With ``own_tie`` the inner one says it in its place, with ``nested_tie`` either.
    """
    from service.formats.huggingface import FAMILIES  # noqa: PLC0415  # it lists this module

    with _open_text_config(reader, field, flat=flat) as text:
        stated = read_choice(text, "model_type", default)
        name = default if flat and not reader.has_value(field) else stated
        family = FAMILIES.get(_ALIASES.get(name, name))
        if family is None:
            raise PlanningError("MODEL_TYPE_UNKNOWN", "/model_type", f"the text decoder {name} is not known")
        config = dict(text.config)
        if not own_tie:
            tied = nested_tie and family.build_reader(config).read_flag("tie_word_embeddings")
            config["tie_word_embeddings"] = tied or reader.read_flag("tie_word_embeddings", default=ties)
        inner = family.build_reader(config)
        inner.defaults = {**inner.defaults, **_OWN_DEFAULTS.get(name, {})}
        made = family.build(inner, "ForCausalLM" if suffix == "ForConditionalGeneration" else "Model")
        reader.defaulted.extend(f"{field}/{name}" for name in inner.defaulted)
        return TextDecoder(made, inner.read_size("hidden_size"))


def join_vision_and_text(text: TextDecoder, image: ModelInputShape, *before: ModelLayer) -> Architecture:
    """Vision and projector in front of the decoder, whose sequence holds the projected positions."""
    return join_senses_and_text(text, (image,), before)


def join_senses_and_text(
    text: TextDecoder, senses: Iterable[ModelInputShape], before: Iterable[ModelLayer]
) -> Architecture:
    """Towers and projectors in front of the decoder, whose sequence holds what they give."""
    decoder = text.architecture
    return Architecture(
        inputs=(ModelInputShape(name="text", kind="tokens"), *senses),
        embeddings=decoder.embeddings,
        layers=(*before, *decoder.layers),
        heads=decoder.heads,
        tied=decoder.tied,
    )
