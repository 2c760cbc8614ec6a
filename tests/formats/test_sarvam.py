"""Sarvam 30B and 105B, against the totals of their files."""

import pytest

from service.formats.huggingface import import_config
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat

EXPERTS = {
    "model_type": "sarvam_moe",
    "architectures": ["SarvamMoEForCausalLM"],
    "vocab_size": 262_144,
    "hidden_size": 4096,
    "intermediate_size": 8192,
    "moe_intermediate_size": 1024,
    "num_hidden_layers": 19,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "num_experts": 128,
    "num_experts_per_tok": 6,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "use_qkv_bias": False,
    "use_qk_norm": True,
    "max_position_embeddings": 131_072,
}
LATENT = {
    "model_type": "sarvam_mla",
    "architectures": ["SarvamMLAForCausalLM"],
    "vocab_size": 262_144,
    "hidden_size": 4096,
    "intermediate_size": 16_384,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 32,
    "num_attention_heads": 64,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "max_position_embeddings": 163_840,
}


@pytest.mark.parametrize(
    ("config", "stored", "layers"), [(EXPERTS, 32_152_650_368, 18), (LATENT, 106_031_767_424, 31)]
)
def test_parameters_are_those_of_the_files_without_correction_biases(config, stored, layers):
    """PyTorch counts as many: biases that correct the routers are buffers of its classes."""
    read = import_config(config)
    assert build_profile(read.architecture).parameter_count == stored - layers * 128
    assert read.context_tokens == config["max_position_embeddings"]
    assert read.defaulted == ()


def test_other_names_of_members_count():
    biased = import_config({**EXPERTS, "use_qkv_bias": True, "num_shared_experts": 2})
    plain = import_config(EXPERTS)
    added = (build_profile(read.architecture).parameter_count for read in (biased, plain))
    assert next(added) - next(added) == 19 * (64 + 2 * 4) * 64 + 18 * 3 * 4096 * 1024


def test_caches_are_those_of_heads_and_of_a_latent():
    heads, latent = (build_profile(import_config(config).architecture) for config in (EXPERTS, LATENT))
    assert key_value_bytes(heads, 10.0, NumberFormat.BF16) == 10 * 19 * 4 * 2 * 64 * 2
    assert key_value_bytes(latent, 10.0, NumberFormat.BF16) == 10 * 32 * (512 + 64) * 2
