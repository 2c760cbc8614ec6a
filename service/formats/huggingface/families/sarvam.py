"""Sarvam, whose shapes are those of GLM 4.5 (30B) and of DeepSeek-V3 (105B) under names of its own.

Defaults are those of the configuration classes of transformers 5.24.
"""

from collections.abc import Mapping

from service.formats.huggingface.reader import ConfigDefault

NAMES: Mapping[str, tuple[str, ...]] = {
    "n_shared_experts": ("n_shared_experts", "num_shared_experts"),
    "attention_bias": ("attention_bias", "use_qkv_bias"),
}
"""Other spellings, which the published files use."""

_SIZES: Mapping[str, ConfigDefault] = {
    "vocab_size": 262_144,
    "hidden_size": 4096,
    "num_attention_heads": 64,
    "n_shared_experts": 1,
    "n_routed_experts": 128,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "tie_word_embeddings": False,
}
EXPERTS: Mapping[str, ConfigDefault] = {
    **_SIZES,
    "intermediate_size": 8192,
    "moe_intermediate_size": 1024,
    "num_hidden_layers": 19,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 6,
    "max_position_embeddings": 131_072,
    "use_qk_norm": True,
}
"""Sarvam 30B."""

LATENT: Mapping[str, ConfigDefault] = {
    **_SIZES,
    "intermediate_size": 16_384,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 32,
    "num_experts_per_tok": 8,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "max_position_embeddings": 4096,
}
"""Sarvam 105B."""
