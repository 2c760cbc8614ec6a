"""Decoder families as data: their differences from Llama.

Names of classes, other spellings and defaults come from ``registry.json``, which an oracle script takes from
the configuration classes of transformers 5.23.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from service.formats.huggingface import builders, published
from service.formats.huggingface.decoders import SPELLINGS, DecoderFamily, build_architecture, build_projected
from service.formats.huggingface.families import (
    dense,
    hybrid,
    inkling,
    longcat,
    mistral,
    openelm,
    sarvam,
    sparse,
    step,
)
from service.formats.huggingface.reader import ConfigReader, ModelFamily
from service.planning.models.architecture import Architecture

_REGISTRY: Mapping[str, dict[str, Any]] = json.loads(
    (files("service.formats.huggingface") / "registry.json").read_text(encoding="utf-8")
)


DECODERS: Mapping[str, DecoderFamily] = {**dense.DENSE, **sparse.SPARSE, **hybrid.HYBRID}
"""Every family that one description suffices for, by its ``model_type``."""


ArchitectureBuilder = Callable[[ConfigReader, str], Architecture]


BUILDERS: Mapping[str, ArchitectureBuilder] = {
    **{name: partial(build_architecture, family=family) for name, family in DECODERS.items()},
    "opt": partial(build_projected, family=DECODERS["opt"]),
    "hunyuan_v1_moe": partial(builders.build_hunyuan_experts, family=DECODERS["hunyuan_v1_moe"]),
    "nemotron_h": builders.build_nemotron_h,
    "zamba": builders.build_zamba,
    "zamba2": builders.build_zamba_2,
    "kimi_linear": partial(builders.build_kimi_linear, family=DECODERS["kimi_linear"]),
    "deepseek_v4": partial(builders.build_hyper_connected, family=DECODERS["deepseek_v4"]),
    "hy_v4": partial(builders.build_hyper_connected, family=DECODERS["hy_v4"]),
    "qwen4_exp_text": partial(builders.build_ngram_decoder, family=DECODERS["qwen4_exp_text"]),
    "longcat_flash": longcat.build_longcat,
    "inkling_text": inkling.build_inkling,
    "gemma3n_text": builders.build_gemma_3n,
    "gemma4_text": builders.build_gemma_4,
    "gemma4_unified_text": builders.build_gemma_4,
}


def _build_spellings(spellings: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return {**SPELLINGS, **{name: (real, name) for name, real in spellings.items()}}


def _build_family(model_type: str, builder: ArchitectureBuilder) -> ModelFamily:
    """Builds a family from its registry entry."""
    entry = _REGISTRY[model_type]
    names, defaults = _build_spellings(entry["names"]), entry["defaults"]
    states_context = any(name in defaults for name in names["max_position_embeddings"])
    return ModelFamily(
        prefix=entry["prefix"],
        build=builder,
        classes=tuple(entry["classes"]),
        unnamed_class=entry["classes"][0],
        context_field="max_position_embeddings" if states_context else None,
        defaults=defaults,
        names=names,
    )


NOT_IMPORTED: Mapping[str, str] = {
    "axk2": "norms that pass a gate of low rank, and a gate fused with the compressed query",
    "beam": "a gate by element with a learned vector by head",
    "cohere_compass_text": "a configuration that its own defaults cannot build: nothing was compared",
    "cpmant": "a table of relative positions and segments beside that of tokens",
    "diffllama": "differential attention, which subtracts two maps of scores",
    "doge": "a mask made of values, and experts that are rows of a table",
    "dots3_note_text": "latent attention of two shapes and a norm on rotary keys",
    "hrm_text": "two stacks of layers that run in cycles",
    "inkling2_text": "convolved keys and values, and residuals that attend to earlier layers",
    "jetmoe": "experts inside attention",
    "rwkv": "time mixing without attention",
    "xlstm": "a matrix memory with input and forget gates",
    "zaya": "attention in a compressed space with convolutions, and routers of several layers",
}
"""Decoder types of transformers 5.23 that differ from all descriptions by more than shapes, with reasons."""


FAMILIES: Mapping[str, ModelFamily] = {
    **{model_type: _build_family(model_type, builder) for model_type, builder in BUILDERS.items()},
    **published.FAMILIES,
    "step3_text": published.build_published_family("Step3Text", step.STEP_3, names=step.STEP_3_NAMES),
    "step3p5": _build_family("step3p5", step.build_step)._replace(
        prefix="Step3p",
        classes=step.CLASSES,
        unnamed_class=step.CLASSES[0],
        names={**SPELLINGS, **step.NAMES},
    ),
    "longcat_flash_ngram": _build_family(
        "longcat_flash", partial(longcat.build_longcat, ngrams=True)
    )._replace(prefix="LongcatFlashNgram", defaults=longcat.LITE),
    "sarvam_moe": _build_family("glm4_moe", BUILDERS["glm4_moe"])._replace(
        prefix="SarvamMoE", defaults=sarvam.EXPERTS, names={**SPELLINGS, **sarvam.NAMES}
    ),
    "sarvam_mla": _build_family("deepseek_v3", BUILDERS["deepseek_v3"])._replace(
        prefix="SarvamMLA", defaults=sarvam.LATENT, names={**SPELLINGS, **sarvam.NAMES}
    ),
    "mistral_large4_text": mistral.MISTRAL_LARGE_TEXT,
    "openelm": openelm.OPENELM,
    "kimi_k2": _build_family("deepseek_v3", BUILDERS["deepseek_v3"]),
    # The decoder inside of Mistral Small 4 and Mistral Large 3, which stands in no file of its own.
    "mistral4": _build_family("deepseek_v3", BUILDERS["deepseek_v3"])._replace(prefix="Mistral4"),
}
