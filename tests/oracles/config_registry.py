"""The decoder types of transformers: classes, other spellings and defaults of each configuration class.

Run by ``make oracles``; writes ``registry.json`` beside the importer. Facts only: names of classes and
fields, and the values that a field takes where a published ``config.json`` leaves it out.
"""

import dataclasses
import json
import re
from pathlib import Path

import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

REGISTRY = Path(__file__).parents[2] / "service/formats/huggingface/registry.json"
SUFFIXES = (
    "ForCausalLM",
    "LMHeadModel",
    "Model",
    "TextModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
)
NO_SHAPE = re.compile(
    r"_token_id$|_token_index$|^use_cache$|^return_dict$|^output_|^is_encoder|^transformers_v|^architect|^dtype$"
    r"|^id2label$|^label2id$|^problem_type$|^chunk_size|^pretraining_tp$|^rope|^norm_topk|^summary_|^scale_attn"
    r"|_act$|softcapping|^initializer|routed_scaling|jitter|^use_mamba|_dtype$|^hidden_dropout"
    r"|^attention_softmax|^router_|clip_qkv|^residual_in|^rescale|^use_assoc|^num_logits|^mamba_chunk|_fp32$|^seed$"
)
NOT_DECODERS = frozenset(
    """
    bart bert bert-generation big_bird bigbird_pegasus blenderbot blenderbot-small camembert
    data2vec-text electra emu3 ernie fuyu git got_ocr2 marian mbart megatron-bert mllama
    modernbert-decoder moshi moss_transcribe_diarize musicgen musicgen_melody mvp pegasus
    phi4_multimodal plbart prophetnet reformer rembert roberta roberta-prelayernorm roc_bert roformer
    trocr whisper xlm xlm-roberta xlm-roberta-xl xlnet xmod gemma3 gemma3n gemma4 gemma4_unified
    gemma4_assistant gemma4_unified_assistant llama4 qwen3_5 qwen3_5_moe qwen4_exp dots3_note blt
    """.split()  # noqa: SIM905  # a list of words would be a page long
)
"""Registered for causal language modelling, but encoders, encoder-decoders, multimodal or draft models."""


INSIDE = {"glm5_next_text": "Glm5NextTextModel", "step3p5": "Step3p7TextModel"}
"""Decoders that stand inside a model that sees and are registered for no task of their own."""


def defaults(config_class: type) -> dict[str, object]:
    """The scalar defaults of a configuration class, before it derives some from others."""
    found = {}
    for field in dataclasses.fields(config_class):
        value = field.default
        dropout = isinstance(value, float) and "drop" in field.name
        scalar = isinstance(value, bool | int) or value is None or value == "auto"
        if (dropout or scalar) and not NO_SHAPE.search(field.name):
            found[field.name] = value
    return found


def entry(model_type: str, class_name: str) -> dict[str, object]:
    """One type: the prefix and suffixes of its classes, its spellings and its defaults."""
    prefix = re.sub("ForCausalLM$|LMHeadModel$|TextModel$", "", class_name)
    config_class = CONFIG_MAPPING[model_type]
    classes = [getattr(transformers, prefix + suffix, None) for suffix in SUFFIXES]
    built_from = [getattr(found, "config_class", None) for found in classes]
    return {
        "prefix": prefix,
        "classes": [
            suffix
            for suffix, found in zip(SUFFIXES, built_from, strict=True)
            if found is not None and (issubclass(config_class, found) or suffix in SUFFIXES[:2])
        ],
        "names": dict(config_class.attribute_map),
        "defaults": defaults(config_class),
    }


def main() -> None:
    """Walk the registry and write."""
    types = {
        model_type: entry(model_type, class_name)
        for model_type, class_name in sorted({**MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, **INSIDE}.items())
        if model_type not in NOT_DECODERS
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in types.items())
    REGISTRY.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
