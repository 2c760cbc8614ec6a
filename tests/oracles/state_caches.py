"""Measures the states that caches of transformers hold of a request, for tests to compare with.

Run by ``make oracles``. Each model is small, in bf16, and reads one sequence. Counted are recurrent states,
the last inputs of convolutions, and the keys and values that its cache keeps.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

HERE = Path(__file__).parent
TOKENS = 32

COMMON = {"vocab_size": 320, "hidden_size": 128, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 352}
MAMBA_2 = {"state_size": 32, "conv_kernel": 4, "expand": 2, "num_heads": 8, "head_dim": 32, "n_groups": 2}
DELTA = {
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
}
HYBRID = {
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_n_heads": 8,
    "mamba_d_head": 32,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 16,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mamba": ("mamba", {**COMMON, "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 8}),
    "falcon-mamba": (
        "falcon_mamba",
        {**COMMON, "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 8},
    ),
    "mamba2": ("mamba2", {**COMMON, **MAMBA_2, "chunk_size": 16}),
    "jamba": (
        "jamba",
        {
            **COMMON,
            **HEADS,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "num_experts": 2,
            "num_experts_per_tok": 1,
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_expand": 2,
            "mamba_dt_rank": 8,
            "use_mamba_kernels": False,
        },
    ),
    "bamba": ("bamba", {**COMMON, **HEADS, **HYBRID, "attn_layer_indices": [1]}),
    "granite-moe-hybrid": (
        "granitemoehybrid",
        {
            **COMMON,
            **HEADS,
            **HYBRID,
            "layer_types": ["mamba", "attention"],
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "shared_intermediate_size": 64,
        },
    ),
    "falcon-h1": ("falcon_h1", {**COMMON, **HEADS, **HYBRID, "mamba_d_ssm": 256}),
    "nemotron-h": (
        "nemotron_h",
        {
            **COMMON,
            **HEADS,
            "layers_block_type": ["mamba", "attention"],
            "head_dim": 16,
            "ssm_state_size": 16,
            "conv_kernel": 4,
            "mamba_num_heads": 8,
            "mamba_head_dim": 32,
            "n_groups": 2,
            "chunk_size": 16,
        },
    ),
    "qwen3-next": (
        "qwen3_next",
        {
            **COMMON,
            **HEADS,
            **DELTA,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 96,
        },
    ),
}


def tensors(held: object) -> Iterator[torch.Tensor]:
    """The tensors of a part of a cache."""
    if isinstance(held, torch.Tensor):
        yield held
    elif isinstance(held, dict):
        for value in held.values():
            yield from tensors(value)


def kept(model_type: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What the cache of one sequence holds, by part."""
    config = transformers.AutoConfig.for_model(model_type, **fields)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
    with torch.no_grad():
        read = model(torch.randint(0, fields["vocab_size"], (1, TOKENS)), use_cache=True)
    cache = getattr(read, "past_key_values", None) or read.cache_params
    found: dict[str, Any] = {}
    for layer in cache.layers:
        for part in ("recurrent_states", "conv_states", "keys", "values"):
            for tensor in tensors(getattr(layer, part, None)):
                entry = found.setdefault(part, {"elements": 0, "bytes": 0, "dtype": str(tensor.dtype)})
                entry["elements"] += tensor.numel()
                entry["bytes"] += tensor.numel() * tensor.element_size()
    return {"config": config.to_diff_dict() | {"architectures": [type(model).__name__]}, "held": found}


def main() -> None:
    """Write what the caches of all models hold."""
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokens": TOKENS,
        "models": {name: kept(model_type, fields) for name, (model_type, fields) in MODELS.items()},
    }
    (HERE / "state_caches.json").write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(f"{len(MODELS)} caches measured\n")


if __name__ == "__main__":
    main()
