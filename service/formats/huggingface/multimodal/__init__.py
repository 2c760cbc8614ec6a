"""Vision-language models: a vision tower, a projector, and the decoder of the family in ``text_config``."""

from collections.abc import Callable, Mapping
from functools import partial

from service.formats.huggingface.multimodal.own import gemma4, kimi, llama4, mllama
from service.formats.huggingface.multimodal.projected import (
    gemma3,
    idefics3,
    internvl,
    llava,
    mistral3,
    paligemma,
)
from service.formats.huggingface.multimodal.qwen import qwen2_vl, qwen3_vl, qwen25_vl
from service.formats.huggingface.reader import ConfigReader, Family
from service.planning.models.architecture import Architecture

_CLASSES = ("ForConditionalGeneration", "Model")


def _family(prefix: str, build: Callable[[ConfigReader, str], Architecture]) -> Family:
    return Family(prefix, build, _CLASSES, "ForConditionalGeneration", None, {})


FAMILIES: Mapping[str, Family] = {
    "llava": _family("Llava", llava),
    "llava_next": _family("LlavaNext", partial(llava, next_one=True)),
    "llava_onevision": _family("LlavaOnevision", partial(llava, next_one=True, siglip=True)),
    "paligemma": _family("PaliGemma", paligemma),
    "gemma3": _family("Gemma3", gemma3),
    "gemma4": _family("Gemma4", gemma4),
    "mistral3": _family("Mistral3", mistral3),
    "idefics3": _family("Idefics3", idefics3),
    "smolvlm": _family("SmolVLM", idefics3),
    "internvl": _family("InternVL", internvl),
    "qwen2_vl": _family("Qwen2VL", qwen2_vl),
    "qwen2_5_vl": _family("Qwen2_5_VL", qwen25_vl),
    "qwen3_vl": _family("Qwen3VL", partial(qwen3_vl, text="qwen3_vl_text")),
    "qwen3_vl_moe": _family("Qwen3VLMoe", partial(qwen3_vl, text="qwen3_vl_moe_text")),
    "qwen3_5": _family("Qwen3_5", partial(qwen3_vl, text="qwen3_5_text", deep=())),
    "qwen3_5_moe": _family("Qwen3_5Moe", partial(qwen3_vl, text="qwen3_5_moe_text", deep=())),
    "kimi_k25": _family("Kimi_K25", kimi),
    "mllama": _family("Mllama", mllama),
    "llama4": _family("Llama4", llama4),
}
