"""Parameter counts as PyTorch counts them, for published and for random configurations.

Run by ``make oracles`` in an environment of its own with torch and transformers; writes
``parameter_counts.json``, which the tests hold the importer against. Models are built on the meta
device, so no weights are made.
"""

import json
import random
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "service/catalog/models/shipped.json"
IGNORED = {"model_type", "architectures", "transformers_version", "torch_dtype"}
DECODER_HEADS = (
    "ForCausalLM",
    "Model",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
)
GPT2_HEADS = ("LMHeadModel", *DECODER_HEADS[1:])
BERT_HEADS = (
    "Model",
    "ForPreTraining",
    "ForMaskedLM",
    "LMHeadModel",
    "ForNextSentencePrediction",
    "ForSequenceClassification",
    "ForMultipleChoice",
    "ForTokenClassification",
    "ForQuestionAnswering",
)
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
WINDOW = {"use_sliding_window": True, "sliding_window": 32, "max_window_layers": 1}
SPARSE = [{"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 30}]
SPARSE_LAYERS = [{}, {"decoder_sparse_step": 2}, {"mlp_only_layers": [0]}]
SOME_HEADS = [{"num_key_value_heads": 2}, {"num_key_value_heads": 1}]
ANY_HEADS = [{"num_key_value_heads": None}, *SOME_HEADS]
DECODER = [[{}, {"head_dim": 20}], [{}, TIED]]
BIAS = [{}, {"attention_bias": True}]


class FamilyChoices(NamedTuple):
    """Class prefix, heads, and for each switch of a family the settings to draw from."""

    prefix: str
    heads: tuple[str, ...]
    switches: list[list[dict]]


FAMILIES = {
    "llama": FamilyChoices(
        "Llama", DECODER_HEADS, [*DECODER, [{}, *ANY_HEADS], BIAS, [{}, {"mlp_bias": True}]]
    ),
    "mistral": FamilyChoices("Mistral", DECODER_HEADS, [*DECODER, SOME_HEADS]),
    "mixtral": FamilyChoices(
        "Mixtral", DECODER_HEADS, [*DECODER, SOME_HEADS, [{"num_local_experts": n} for n in (2, 5)]]
    ),
    "qwen2": FamilyChoices("Qwen2", DECODER_HEADS, [*DECODER, ANY_HEADS, [{}, WINDOW]]),
    "qwen3": FamilyChoices("Qwen3", DECODER_HEADS, [*DECODER, ANY_HEADS, BIAS, [{}, WINDOW]]),
    "qwen2_moe": FamilyChoices(
        "Qwen2Moe",
        DECODER_HEADS,
        [
            *DECODER,
            SOME_HEADS,
            SPARSE,
            SPARSE_LAYERS,
            [{"shared_expert_intermediate_size": 50}],
            [{}, {"qkv_bias": False}],
        ],
    ),
    "qwen3_moe": FamilyChoices(
        "Qwen3Moe", DECODER_HEADS, [*DECODER, SOME_HEADS, SPARSE, SPARSE_LAYERS, BIAS]
    ),
    "gpt2": FamilyChoices("GPT2", GPT2_HEADS, [[{}, {"n_inner": None}, {"n_inner": 77}, UNTIED]]),
    "bert": FamilyChoices("Bert", BERT_HEADS, [[{"type_vocab_size": n} for n in (1, 2, 3)], [{}, UNTIED]]),
}


OWN_MEMBERS = {
    "git": "num_local_experts",
    "kimi_linear": "attn_res_block_size",
    "nomic_bert": "n_embd",
    "step3p5": "moe_num_experts",
    "xlm-roberta": "lora_adaptations",
}
"""Members of files that state a type of transformers, whose class does not build what they describe."""


CLASSES_OF_OTHERS = {"sarvam_moe": "Glm4MoeForCausalLM", "sarvam_mla": "DeepseekV3ForCausalLM"}
"""Classes that transformers builds for types which have none of their own."""


def known_to_transformers(config: dict) -> dict | None:
    """The configuration of the class of transformers that equals a type, if there is one.

    Others are types of code that is published beside the weights, and those that tower_counts.py counts.
    """
    match config.get("model_type"):
        case "kimi_k2":
            return {**config, "model_type": "deepseek_v3"}
        case "qwen4_exp":
            # Members without a shape that its class asks for.
            turned = {"rope_type": "default", "rope_theta": 1e7, "partial_rotary_factor": 0.25}
            text = {**config["text_config"], "rope_parameters": turned, "eos_token_id": 248_044}
            return {**config, "text_config": text}
        case "qwen2_5_omni" | "qwen3_omni_moe":
            prefix = config["architectures"][0].removesuffix("Model").removesuffix("ForConditionalGeneration")
            name = f"{prefix}ThinkerForConditionalGeneration"
            thinker = {**config["thinker_config"], "architectures": [name]}
            return {**thinker, "model_type": f"{config['model_type']}_thinker"}
        case "internlm":
            return {
                **config,
                "model_type": "llama",
                "attention_bias": config["bias"],
                "architectures": ["LlamaForCausalLM"],
            }
        case model_type if model_type not in CONFIG_MAPPING or OWN_MEMBERS.get(model_type) in config:
            return None
        case _:
            return config


def count(config: dict, class_name: str) -> int:
    """Parameters of ``class_name`` built from ``config``, tied ones once."""
    built = CONFIG_MAPPING[config["model_type"]](
        **{name: value for name, value in config.items() if name not in IGNORED}
    )
    with torch.device("meta"):
        model = getattr(transformers, class_name)(built)
    model.tie_weights()
    counted = sum(parameter.numel() for parameter in model.parameters())
    if config["model_type"] == "longcat_flash":
        # The class makes gates for experts that compute nothing, which no checkpoint has and it never reads.
        gates = 2 * built.hidden_size * built.expert_ffn_hidden_size
        counted -= built.num_layers * built.zero_expert_num * gates
    return counted


def random_config(model_type: str, choose: random.Random) -> dict:
    """A configuration nobody published, with every switch of the family drawn."""
    family = FAMILIES[model_type]
    heads, depth = choose.choice([4, 6, 8, 12]), choose.randint(1, 5)
    hidden, vocabulary = heads * choose.choice([8, 16, 24]), choose.randint(50, 900)
    if model_type == "gpt2":
        config = {"n_embd": hidden, "n_head": heads, "n_layer": depth, "n_positions": 96}
    else:
        config = {"hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": depth}
        config |= {"intermediate_size": choose.randint(20, 200), "max_position_embeddings": 96}
    for settings in family.switches:
        config |= choose.choice(settings)
    if labels := choose.choice([None, 3, 7]):
        config["id2label"] = {str(number): f"L{number}" for number in range(labels)}
    class_name = family.prefix + choose.choice(family.heads)
    return {"model_type": model_type, "architectures": [class_name], "vocab_size": vocabulary, **config}


def main() -> None:
    """Count what the catalog ships and random configurations, and write."""
    transformers.logging.set_verbosity_error()
    choose = random.Random(20261120)  # noqa: S311  # the same cases every time
    cases = []
    for row in json.loads(SHIPPED.read_text()):
        config = row.get("config", {"model_type": "nemotron-nas"})
        equal = known_to_transformers(config)
        if equal is None:
            continue
        counted = count(equal, CLASSES_OF_OTHERS.get(equal["model_type"], equal["architectures"][0]))
        stored = equal if "thinker_config" in config else config
        cases.append({"name": row["id"], "config": stored, "parameter_count": counted})
    for model_type in FAMILIES:
        for number in range(24):
            config = random_config(model_type, choose)
            case = {"name": f"random-{model_type}-{number}", "config": config}
            cases.append({**case, "parameter_count": count(config, config["architectures"][0])})
    document = {"torch": torch.__version__, "transformers": transformers.__version__, "cases": cases}
    (HERE / "parameter_counts.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
