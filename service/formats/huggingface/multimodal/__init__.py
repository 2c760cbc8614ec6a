"""Models that see or hear: a tower, a projector, and the decoder of the family in ``text_config``."""

from collections.abc import Callable, Mapping
from functools import partial

from service.formats.huggingface.multimodal.apertus import APERTUS, APERTUS_TEXT
from service.formats.huggingface.multimodal.audio import build_qwen2_audio, build_voxtral
from service.formats.huggingface.multimodal.documents import build_hunyuan_vl, build_paddle_ocr
from service.formats.huggingface.multimodal.dots import DOTS_OCR
from service.formats.huggingface.multimodal.ernie import ERNIE, ERNIE_TEXT, PUBLISHED_ERNIE
from service.formats.huggingface.multimodal.gemma import build_gemma_4_multimodal, build_gemma_4_unified
from service.formats.huggingface.multimodal.glm import build_glm5_next, build_glm_ocr, build_glm_v
from service.formats.huggingface.multimodal.granite import build_granite_vision
from service.formats.huggingface.multimodal.inkling import INKLING
from service.formats.huggingface.multimodal.kimi import KIMI_K3
from service.formats.huggingface.multimodal.liquid import LFM2_VL, LFM3_VL
from service.formats.huggingface.multimodal.minicpm import build_minicpm_family
from service.formats.huggingface.multimodal.molmo import MOLMO, MOLMO_TEXT, build_molmo2
from service.formats.huggingface.multimodal.muse import MUSE, MUSE_TEXT
from service.formats.huggingface.multimodal.omni import build_omni_moe_thinker, build_omni_thinker
from service.formats.huggingface.multimodal.ovis import OVIS_2
from service.formats.huggingface.multimodal.own import (
    build_kimi_vl,
    build_llama4,
    build_minimax_m3,
    build_mllama,
)
from service.formats.huggingface.multimodal.phi import (
    ADAPTERS,
    build_phi3_vision,
    build_phi4_multimodal,
    build_published_phi4,
)
from service.formats.huggingface.multimodal.projected import (
    MISTRAL_LARGE_VISION,
    build_cohere_vision,
    build_deepseek_vl,
    build_gemma3,
    build_idefics3,
    build_internvl,
    build_internvl_chat,
    build_lighton_ocr,
    build_llava,
    build_llava_next_video,
    build_minicpm_v,
    build_mistral3,
    build_paligemma,
    build_qianfan_ocr,
    build_vip_llava,
)
from service.formats.huggingface.multimodal.qwen import (
    build_exaone_vl,
    build_hyperclovax_vision,
    build_qwen2_vl,
    build_qwen3_vl,
    build_qwen25_vl,
)
from service.formats.huggingface.multimodal.resampled import build_aria
from service.formats.huggingface.multimodal.segmented import DEEPSEEK_OCR, build_got_ocr
from service.formats.huggingface.multimodal.step import STEP_3_CLASSES, build_step_3, build_step_vision
from service.formats.huggingface.reader import ConfigReader, ModelFamily
from service.planning.models.architecture import Architecture

_CLASSES = ("ForConditionalGeneration", "Model")


def _build_family(prefix: str, build: Callable[[ConfigReader, str], Architecture]) -> ModelFamily:
    return ModelFamily(prefix, build, _CLASSES, "ForConditionalGeneration", None, {})


_PHI_4 = ModelFamily(
    "Phi4Multimodal",
    build_phi4_multimodal,
    ("ForCausalLM", "Model"),
    "ForCausalLM",
    "max_position_embeddings",
    {"max_position_embeddings": 131_072},
)

FAMILIES: Mapping[str, ModelFamily] = {
    "llava": _build_family("Llava", build_llava),
    "llava_next": _build_family("LlavaNext", partial(build_llava, next_one=True)),
    "llava_onevision": _build_family("LlavaOnevision", partial(build_llava, next_one=True, siglip=True)),
    "llava_next_video": _build_family("LlavaNextVideo", build_llava_next_video),
    "vipllava": _build_family("VipLlava", build_vip_llava),
    "apertus1p5": APERTUS,
    "apertus1p5_text": APERTUS_TEXT,
    "aria": _build_family("Aria", build_aria),
    "deepseek_vl_v2": DEEPSEEK_OCR,
    "dots_ocr": DOTS_OCR,
    "got_ocr2": _build_family("GotOcr2", build_got_ocr),
    "granite4_vision": _build_family("Granite4Vision", build_granite_vision),
    "deepseek_vl": _build_family("DeepseekVL", build_deepseek_vl),
    "inkling_mm_model": INKLING,
    "lfm2_vl": LFM2_VL,
    "lfm3_vl": LFM3_VL,
    "ovis2": OVIS_2,
    "paligemma": _build_family("PaliGemma", build_paligemma),
    "gemma3": _build_family("Gemma3", build_gemma3),
    "gemma4": _build_family("Gemma4", build_gemma_4_multimodal),
    "gemma4_unified": _build_family("Gemma4Unified", build_gemma_4_unified),
    "mistral3": _build_family("Mistral3", build_mistral3),
    "lighton_ocr": _build_family("LightOnOcr", build_lighton_ocr),
    "mistral_large4": _build_family(
        "MistralLarge4",
        partial(build_mistral3, text_type="mistral_large4_text", absent=MISTRAL_LARGE_VISION, ties=False),
    ),
    "idefics3": _build_family("Idefics3", build_idefics3),
    "smolvlm": _build_family("SmolVLM", build_idefics3),
    "internvl": _build_family("InternVL", build_internvl),
    "internvl_chat": _build_family("InternVLChat", build_internvl_chat)._replace(classes=("Model",)),
    "qianfan_ocr": _build_family("QianfanOCR", build_qianfan_ocr),
    "minicpm_ocr": build_minicpm_family("MiniCPMOcr", mode="4x", ties=True),
    "minicpmv4_6": build_minicpm_family("MiniCPMV4_6"),
    "minicpmv4_7": build_minicpm_family("MiniCPMV4_7"),
    "minicpmv": _build_family("MiniCPMV", build_minicpm_v)._replace(classes=("",)),
    "aya_vision": _build_family("AyaVision", partial(build_cohere_vision, norm=True)),
    "cohere2_vision": _build_family("Cohere2Vision", partial(build_cohere_vision, norm=False)),
    "ernie4_5_moe_vl": PUBLISHED_ERNIE,
    "ernie4_5_vl_moe": ERNIE,
    "ernie4_5_vl_moe_text": ERNIE_TEXT,
    "exaone4_5": _build_family("Exaone4_5_", build_exaone_vl),
    "glm4v": _build_family("Glm4v", partial(build_glm_v, text="glm4v_text")),
    "glm46v": _build_family("Glm46V", partial(build_glm_v, text="glm4v_text")),
    "glm_ocr": _build_family("GlmOcr", build_glm_ocr),
    "glmga": _build_family("Glm46V", partial(build_glm_v, text="glm4v_text")),
    "hunyuan_vl": _build_family("HunYuanVL", build_hunyuan_vl),
    "hyperclovax_vision_v2": _build_family("HyperCLOVAXVisionV2", build_hyperclovax_vision),
    "paddleocr_vl": _build_family("PaddleOCRVL", build_paddle_ocr),
    "glm4v_moe": _build_family("Glm4vMoe", partial(build_glm_v, text="glm4v_moe_text")),
    "glm5_next": _build_family("Glm5Next", build_glm5_next),
    "qwen2_audio": _build_family("Qwen2Audio", build_qwen2_audio),
    "voxtral": _build_family("Voxtral", build_voxtral),
    "qwen2_5_omni_thinker": _build_family("Qwen2_5OmniThinker", build_omni_thinker),
    "qwen3_omni_moe_thinker": _build_family("Qwen3OmniMoeThinker", build_omni_moe_thinker),
    "qwen2_vl": _build_family("Qwen2VL", build_qwen2_vl),
    "qwen2_5_vl": _build_family("Qwen2_5_VL", build_qwen25_vl),
    "qwen3_vl": _build_family("Qwen3VL", partial(build_qwen3_vl, text="qwen3_vl_text")),
    "qwen3_vl_moe": _build_family("Qwen3VLMoe", partial(build_qwen3_vl, text="qwen3_vl_moe_text")),
    "qwen3_5": _build_family("Qwen3_5", partial(build_qwen3_vl, text="qwen3_5_text", deep=())),
    "qwen3_5_moe": _build_family("Qwen3_5Moe", partial(build_qwen3_vl, text="qwen3_5_moe_text", deep=())),
    "qwen4_exp": _build_family("Qwen4Exp", partial(build_qwen3_vl, text="qwen4_exp_text", deep=())),
    "kimi_k25": ModelFamily(
        "Kimi",
        build_kimi_vl,
        (*(f"_K25{name}" for name in _CLASSES), *(f"K25{name}" for name in _CLASSES)),
        "_K25ForConditionalGeneration",
        None,
        {},
    ),
    "kimi_k3": KIMI_K3,
    "kimi_vl": _build_family("KimiVL", partial(build_kimi_vl, first=True)),
    "minimax_m3_vl": ModelFamily(
        "MiniMaxM3",
        build_minimax_m3,
        ("SparseForConditionalGeneration", "VLModel"),
        "SparseForConditionalGeneration",
        None,
        {},
    ),
    "molmo": MOLMO,
    "molmo2": _build_family("Molmo2", build_molmo2),
    "molmo2_text": MOLMO_TEXT,
    "muse_glimmer": MUSE,
    "muse_glimmer_text": MUSE_TEXT,
    "phi3_v": ModelFamily(
        "Phi3V", build_phi3_vision, ("ForCausalLM",), "ForCausalLM", "max_position_embeddings", {}
    ),
    "phi4_multimodal": _PHI_4,
    "phi4mm": _PHI_4._replace(prefix="Phi4MM", build=build_published_phi4, left_out=ADAPTERS),
    "step3_vl": ModelFamily("Step3", build_step_3, STEP_3_CLASSES, STEP_3_CLASSES[0], None, {}),
    "step3p7": _build_family("Step3p7", partial(build_step_vision, text="step3p5")),
    "step_robotics": _build_family("StepVL", partial(build_step_vision, text="qwen3")),
    "mllama": _build_family("Mllama", build_mllama),
    "llama4": _build_family("Llama4", build_llama4),
}

NOT_IMPORTED: Mapping[str, str] = {
    "deepseek_vl_hybrid": "two towers that see an image at two resolutions, over the same positions",
    "dots3_note": "latent attention of two shapes and a norm on rotary keys",
    "idefics2": "learned queries that read the patches again in every layer of a resampler",
    "inkling2": "convolved keys and values, and residuals that attend to earlier layers",
    "unlimited-ocr": "attention that keeps the prompt and a window of what follows",
    "unlimited_ocr": "attention that keeps the prompt and a window of what follows",
    "video_llava": "one tower for images and another one for videos",
    "gemma3n": "a vision tower of another library (MobileNet); its text_config is read on its own",
}
"""Types of models that see or hear and are asked for, with what keeps them from being read."""
