"""Every decoder type of transformers, built small on the meta device, and what the importer makes of it.

Run by ``make oracles`` with the project on the path; writes ``decoder_walk.json``: for each type whether it
is imported, and random configurations with PyTorch's parameter counts. Fields are drawn by name from those
that the configuration class knows, so a type that is new to transformers is tried without new code.
"""

import json
import random
from pathlib import Path

import transformers
from config_registry import REGISTRY
from parameter_counts import count

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile

HERE = Path(__file__).parent
CASES_PER_TYPE = 6
SWITCHES = frozenset(
    """
    attention_bias attention_out_bias bias block_auto_adjust_ff_dim conv_bias do_layer_norm_before
    enable_bias enable_moe_block gating lm_head_bias mamba_conv_bias mamba_rms_norm mlp_bias
    multi_query new_decoder_architecture parallel_attn qk_layernorm qkv_bias tie_word_embeddings
    use_attention_gate
    use_bias use_conv_bias use_double_wide_mlp use_parallel_residual use_post_norm use_qk_norm use_qkv_bias
    use_sandwich_norm attention_k_eq_v use_sliding_window
    """.split()  # noqa: SIM905  # a list of words would be a page long
)
REFUSED_SWITCHES = {
    "ernie4_5_moe": {"use_bias"},
    "zamba": {"tie_word_embeddings"},
    "zamba2": {"tie_word_embeddings"},
}


def common(choose: random.Random) -> dict[str, object]:
    """Values that fit together, under every name that a family uses for them."""
    heads, depth = choose.choice([4, 6, 8, 12]), choose.randint(2, 7)
    size = choose.choice([8, 16, 24])
    hidden, experts = heads * size, choose.randint(3, 8)
    shared = choose.choice([1, 2, heads // 2, heads])
    inner = 2 * choose.randint(12, 90)
    width = 2 * hidden // heads
    values: dict[str, object] = {
        "vocab_size": choose.randint(300, 900),
        "pad_token_id": 0,
        "max_position_embeddings": 96,
        "head_dim": choose.choice([12, 20, 32]),
        "sliding_window": 32,
        "attention_window_size": 32,
        "max_window_layers": 1,
        "decoder_sparse_step": choose.choice([1, 2]),
        "mlp_only_layers": choose.choice([[], [0]]),
        "moe_intermediate_size": choose.randint(8, 60),
        "shared_expert_intermediate_size": choose.randint(8, 60),
        "shared_intermediate_size": choose.randint(8, 60),
        "moe_shared_expert_intermediate_size": choose.randint(8, 60),
        "intermediate_size_mlp": choose.randint(20, 150),
        "prefix_dense_intermediate_size": choose.randint(20, 150),
        "dense_intermediate_size": choose.randint(20, 150),
        "first_k_dense_replace": choose.choice([0, 1, 2]),
        "num_dense_layers": choose.choice([0, 1, 2]),
        "moe_latent_size": choose.choice([None, 24]),
        "interleave_moe_layer_step": choose.choice([1, 2]),
        "q_lora_rank": 28,
        "kv_lora_rank": 36,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 20,
        "v_head_dim": 14,
        "index_n_heads": 3,
        "index_head_dim": 16,
        "index_topk": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 10,
        "linear_value_head_dim": 14,
        "linear_conv_kernel_dim": 3,
        "moe_layer_start_index": choose.choice([0, 1]),
        "moe_layer_end_index": choose.choice([-1, depth - 1]),
        "moe_layer_interval": choose.choice([1, 2]),
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 3,
        "attn_layer_offset": 1,
        "attn_layer_indices": [1],
        "full_attn_idxs": [1],
        "mamba_d_state": 6,
        "mamba_d_conv": 3,
        "mamba_expand": 2,
        "mamba_n_heads": heads,
        "mamba_d_head": width,
        "mamba_n_groups": 2,
        "mamba_d_ssm": choose.choice([None, heads * 4]),
        "mamba_dt_rank": choose.choice(["auto", 5]),
        "time_step_rank": choose.choice(["auto", 5]),
        "state_size": 6,
        "ssm_state_size": 6,
        "conv_kernel": 3,
        "expand": 2,
        "n_groups": 2,
        "mamba_num_heads": 4,
        "mamba_head_dim": 8,
        "lru_width": choose.choice([None, hidden]),
        "conv1d_width": 3,
        "conv_L_cache": 3,
        "block_multiple_of": 16,
        "hidden_size_per_layer_input": choose.choice([0, 12]),
        "vocab_size_per_layer_input": 120,
        "num_kv_shared_layers": 0,
    }
    for name in ("hidden_size", "n_embd", "d_model"):
        values[name] = hidden
    for name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers"):
        values[name] = depth
    for name in ("num_attention_heads", "n_head", "n_heads", "attention_heads"):
        values[name] = heads
    for name in ("num_key_value_heads", "num_kv_heads"):
        values[name] = shared
    for name in ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "dff"):
        values[name] = inner
    for name in ("n_positions", "max_seq_len", "n_ctx"):
        values[name] = 96
    for name in ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"):
        values[name] = experts
    for name in ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"):
        values[name] = 2
    for name in ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts"):
        values[name] = choose.choice([1, 2])
    return values


def special(model_type: str, config: dict, choose: random.Random) -> None:  # noqa: C901, PLR0912, PLR0915
    """Fields that must fit others in a way of their own."""
    hidden = config.get("hidden_size", 0)
    depth = config.get("num_hidden_layers", 2)
    match model_type:
        case "mamba2":
            config |= {"num_heads": 4, "head_dim": hidden // 2}
        case "nemotron_h":
            config["hybrid_override_pattern"] = "".join(choose.choices("ME*-", k=5)) + "*"
            config.pop("num_hidden_layers", None)
        case "gpt_neo":
            config |= {"num_layers": 4, "attention_types": [[["global", "local"], 2]]}
            config["num_heads"] = config.pop("num_attention_heads", 4)
            config["hidden_size"] = 8 * config["num_heads"]
        case "recurrent_gemma":
            config["num_key_value_heads"] = 1
            config.pop("head_dim", None)
        case "lfm2_moe":
            config["layer_types"] = choose.choices(["conv", "full_attention"], k=depth)
        case "gemma4_text" | "gemma4_unified_text":
            config |= {"num_hidden_layers": 13, "global_head_dim": 40}
            config["num_kv_shared_layers"] = choose.choice([0, 1, 4])
            if choose.random() < 0.5:
                config["num_global_key_value_heads"] = 1
        case "cohere2" | "gemma3_text" | "exaone4" | "exaone_moe" | "cohere2_moe":
            config["sliding_window_pattern"] = choose.choice([2, 3])
        case "qwen3_next" | "qwen3_5_text" | "qwen3_5_moe_text":
            config["full_attention_interval"] = choose.choice([2, 3])
        case "opt":
            config["word_embed_proj_dim"] = choose.choice([24, hidden, hidden])
        case "zamba" | "zamba2":
            config["layers_block_type"] = ["mamba", "hybrid", "mamba", "hybrid", "hybrid", "mamba"]
            config |= {"num_hidden_layers": 6, "mamba_ngroups": 2, "n_mamba_heads": 2, "adapter_rank": 9}
            config["num_mem_blocks"] = choose.choice([1, 2])
            config["use_shared_attention_adapter"] = choose.random() < 0.5
            if model_type == "zamba":
                for name in (
                    "num_mem_blocks",
                    "use_shared_attention_adapter",
                    "adapter_rank",
                    "mamba_ngroups",
                ):
                    del config[name]
                config["num_key_value_heads"] = config["num_attention_heads"]
        case "mimo_v2_flash":
            config["num_key_value_heads"] = 2
        case "helium":
            config["head_dim"] = hidden // config["num_attention_heads"]
        case (
            "glm4_moe_lite"
            | "deepseek_v32"
            | "glm_moe_dsa"
            | "axk1"
            | "hy_v3"
            | "hy_v4"
            | "mellum"
            | "laguna"
        ):
            config["mlp_layer_types"] = ["dense", *choose.choices(["dense", "sparse"], k=depth - 1)]
        case "deepseek_v4":
            kinds = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]
            config |= {"layer_types": choose.choices(kinds, k=depth), "num_key_value_heads": 1}
            config["mlp_layer_types"] = choose.choices(["hash_moe", "moe"], k=depth)
            config["compress_rates"] = {kinds[1]: 4, kinds[2]: choose.choice([8, 16])}
            config |= {"head_dim": 32, "partial_rotary_factor": 0.25, "o_lora_rank": 12}
            config |= {"o_groups": 2, "hc_mult": choose.choice([2, 4])}
        case "glm5_next_text":
            kinds = ["linear_attention", "indexed_attention"]
            words = choose.choices(choose.choice([kinds, kinds[1:]]), k=depth)
            config |= {"layer_types": words, "mlp_layer_types": choose.choices(["dense", "sparse"], k=depth)}
            # A layer takes the tokens of the layer before it, which has to have a scorer of its own.
            config["indexer_types"] = ["full"] * depth
            for place in range(1, depth):
                behind = (words[place - 1], config["indexer_types"][place - 1])
                if behind == ("indexed_attention", "full"):
                    config["indexer_types"][place] = choose.choice(["full", "shared"])
            config |= {"qk_rope_head_dim": 0, "num_key_value_heads": config["num_attention_heads"]}
            config |= {"index_topk": 32, "index_kpool": choose.choice([1, 4, 16]), "hc_mult": 3}
            config |= {"linear_num_heads": 4, "linear_head_dim": 10}
            if choose.random() < 0.5:
                config["linear_attn_config"] = {"head_dim": 12, "num_heads": 2, "short_conv_kernel_size": 2}
        case "qwen4_exp_text":
            words = choose.choices(["linear_attention", "full_attention"], k=depth)
            linear = [place + 1 for place, word in enumerate(words) if word == "linear_attention"]
            config |= {"layer_types": words, "ple_layer_ids": linear[: choose.randint(0, 3)]}
            config |= {"head_dim": 16, "indexer_head_dim": 16, "indexer_kv_heads": 1, "indexer_n_heads": 3}
            config |= {"indexer_budget": 32, "indexer_compress_ratio": choose.choice([1, 4])}
            config |= {"hc_count": choose.choice([2, 4]), "hc_lowrank": 12, "eos_token_id": 1}
            config |= {"heads_per_ngram": 2, "ngram_size": choose.choice([2, 3]), "ngram_vocab_size_base": 50}
            config["ple_embed_dim"] = choose.choice([None, 24])
        case "longcat_flash":
            config["zero_expert_num"] = choose.choice([0, config["n_routed_experts"]])
        case "step3p5":
            config["layer_types"] = choose.choices(["full_attention", "sliding_attention"], k=depth)
            config["mlp_layer_types"] = choose.choices(["dense", "sparse"], k=depth)
            config["num_sliding_attention_heads"] = choose.choice([None, 2 * config["num_attention_heads"]])
        case "inkling_text":
            config["layer_types"] = choose.choices(["hybrid", "hybrid_sliding"], k=depth)
            config["mlp_layer_types"] = choose.choices(["dense", "sparse"], k=depth)
            config |= {"swa_num_attention_heads": 6, "swa_num_key_value_heads": 3, "swa_head_dim": 10}
            config |= {"sliding_window_size": 16, "d_rel": 4, "rel_extent": 24, "conv_kernel_size": 3}
        case "minimax_m3_vl_text":
            config["layer_types"] = choose.choices(["full_attention", "minimax_m3_sparse"], k=depth)
            config["mlp_layer_types"] = choose.choices(["dense", "sparse"], k=depth)
            config |= {"index_n_heads": config["num_key_value_heads"], "index_block_size": 4}
            config |= {"index_topk_blocks": 8, "index_head_dim": 16, "rotary_dim": 8}
        case "laguna":
            config["num_attention_heads_per_layer"] = None
        case "kimi_linear":
            config["linear_num_heads"] = 4
            config["linear_head_dim"] = 10
            config["q_lora_rank"] = None
        case "dbrx":
            config["tie_word_embeddings"] = False
            config["attn_config"] = {"kv_n_heads": choose.choice([1, 2]), "rope_theta": 10000.0}
            config["ffn_config"] = {"ffn_hidden_size": 40, "moe_num_experts": 4, "moe_top_k": 2}
        case "falcon_h1":
            config["mamba_d_ssm"] = config["mamba_d_ssm"] or 2 * hidden
            config["mamba_d_head"] = config["mamba_d_ssm"] // config["mamba_n_heads"]
        case "internlm3":
            config.pop("attention_bias", None)
    if model_type == "hy_v4" and choose.random() < 0.5:
        config["indexer_types"] = ["full", *choose.choices(["full", "shared"], k=depth - 1)]
    if model_type in ("deepseek_v2", "deepseek_v3") and choose.random() < 0.3:
        config["q_lora_rank"] = None


def random_config(model_type: str, entry: dict, choose: random.Random) -> dict:
    """A configuration nobody published, with every field and switch that is known by name drawn."""
    known = {"pad_token_id", *entry["defaults"], *entry["names"].values()}
    config = {name: value for name, value in common(choose).items() if name in known}
    if "head_dim" in config and entry["defaults"].get("head_dim") is None and choose.random() < 0.5:
        del config["head_dim"]
        if model_type in ("ministral", "mixtral", "nemotron", "hunyuan_v1_dense", "hunyuan_v1_moe"):
            config["head_dim"] = config["hidden_size"] // config["num_attention_heads"]
    for switch in sorted(SWITCHES & entry["defaults"].keys() - REFUSED_SWITCHES.get(model_type, set())):
        if choose.random() < 0.5:
            config[switch] = choose.random() < 0.5
    special(model_type, config, choose)
    suffix = choose.choice([entry["classes"][0], *entry["classes"]])
    if suffix in ("ForSequenceClassification", "ForTokenClassification") and choose.random() < 0.5:
        config["id2label"] = {str(number): f"L{number}" for number in range(3)}
    return {"model_type": model_type, "architectures": [entry["prefix"] + suffix], **config}


def imported(config: dict) -> tuple[int | None, str]:
    """What the importer counts, or why it refuses."""
    try:
        return build_profile(import_config(config).architecture).parameter_count, ""
    except PlanningError as error:
        return None, f"{error.code} {error.pointer}"


def main() -> None:
    """Walk, count, compare and write."""
    transformers.logging.set_verbosity_error()
    entries = json.loads(REGISTRY.read_text())
    types, cases = {}, []
    for model_type, entry in entries.items():
        choose = random.Random(f"decoder {model_type}")  # noqa: S311  # the same cases every time
        found, failed = [], ""
        for number in range(CASES_PER_TYPE):
            config = random_config(model_type, entry, choose)
            try:
                found.append(
                    {
                        "name": f"walk-{model_type}-{number}",
                        "config": config,
                        "parameter_count": count(config, config["architectures"][0]),
                    }
                )
            except Exception as error:  # noqa: BLE001  # whatever transformers makes of a drawn configuration
                failed = f"{type(error).__name__}: {error}"[:160]
        answers = [imported(case["config"]) for case in found]
        known = all(counted is not None for counted, _ in answers) and bool(found)
        types[model_type] = {"imported": known, "counted": len(found)}
        if failed:
            print(f"{model_type}: transformers refuses some: {failed}")
        for case, (counted, why) in zip(found, answers, strict=True):
            if counted != case["parameter_count"] and (known or "MODEL_TYPE_UNKNOWN" not in why):
                print(case["name"], counted, case["parameter_count"], why, json.dumps(case["config"]))
        if known:
            cases += found
    (HERE / "decoder_walk.json").write_text(json.dumps({"types": types, "cases": cases}, indent=1) + "\n")
    print(sum(t["imported"] for t in types.values()), "of", len(types), "types,", len(cases), "cases")


if __name__ == "__main__":
    main()
