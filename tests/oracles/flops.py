"""Counts the FLOPs of small models of transformers with PyTorch's own counter, for tests to compare with.

Run by ``make oracles``. A forward pass over one sequence, all parts in plain PyTorch: the counter sees matrix
multiplications and convolutions, not products of elements.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

HERE = Path(__file__).parent
TOKENS = 64

COMMON = {"vocab_size": 320, "hidden_size": 128, "num_hidden_layers": 3}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 352}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {**COMMON, **HEADS}),
    "llama-wide-heads": ("llama", {**COMMON, **HEADS, "head_dim": 48}),
    "mixtral": (
        "mixtral",
        {**COMMON, **HEADS, "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None},
    ),
    "qwen2-moe": (
        "qwen2_moe",
        {
            **COMMON,
            **HEADS,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 96,
            "shared_expert_intermediate_size": 160,
        },
    ),
    "deepseek-v3": (
        "deepseek_v3",
        {
            **COMMON,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "intermediate_size": 352,
            "moe_intermediate_size": 96,
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "n_group": 1,
            "topk_group": 1,
            "q_lora_rank": 48,
            "kv_lora_rank": 32,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 24,
        },
    ),
    "mamba": ("mamba", {**COMMON, "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 8}),
    "mamba2": (
        "mamba2",
        {
            **COMMON,
            "state_size": 32,
            "conv_kernel": 4,
            "expand": 2,
            "num_heads": 8,
            "head_dim": 32,
            "n_groups": 2,
            "chunk_size": 16,
        },
    ),
    "qwen3-next": (
        "qwen3_next",
        {
            **COMMON,
            **HEADS,
            "num_hidden_layers": 2,
            "head_dim": 16,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 24,
            "linear_conv_kernel_dim": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 96,
        },
    ),
}


def counted(model_type: str, fields: dict[str, Any]) -> dict[str, Any]:
    """FLOPs by operator and by layer of the model, over one sequence."""
    config = transformers.AutoConfig.for_model(model_type, **fields)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    tokens = torch.randint(0, fields["vocab_size"], (1, TOKENS))
    with torch.no_grad(), FlopCounterMode(display=False, depth=6) as counter:
        model(tokens, use_cache=False)
    by_operator = {str(operator): flops for operator, flops in counter.get_flop_counts()["Global"].items()}
    layers = {
        name: sum(flops.values())
        for name, flops in counter.get_flop_counts().items()
        if name.count(".") >= 3 and name.rsplit(".", 1)[0].rsplit(".", 1)[-1].isdigit()
    }
    return {"total": counter.get_total_flops(), "operators": by_operator, "layers": layers}


def main() -> None:
    """Write the counts of all models."""
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sequence_length": TOKENS,
        "models": {
            name: {"model_type": model_type, "fields": fields, **counted(model_type, fields)}
            for name, (model_type, fields) in MODELS.items()
        },
    }
    (HERE / "flops.json").write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(f"{len(MODELS)} models counted\n")


if __name__ == "__main__":
    main()
