"""Configurations of code that is published beside its weights, against the parameters of the files.

The counts are the totals of the safetensors files that the hub states, without what no class counts as a
parameter: correction biases of routers, and layers of multi-token prediction.
"""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile


def build_config(name: str, class_name: str, sizes: str, **members: object) -> dict[str, object]:
    """A configuration; ``sizes`` are width, inner width, layers, heads, key-value heads and vocabulary."""
    hidden, inner, depth, heads, shared, vocabulary = (int(size) for size in sizes.split())
    return {
        "model_type": name,
        "architectures": [class_name],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "vocab_size": vocabulary,
        "max_position_embeddings": 32_768,
        **members,
    }


UNTIED = {"tie_word_embeddings": False}
LING = {
    "moe_intermediate_size": 512,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "use_qk_norm": True,
}
DEEPSEEK = {
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
}
HUNYUAN = {
    "num_experts": 64,
    "moe_topk": [8] * 32,
    "num_shared_expert": [1] * 32,
    "moe_intermediate_size": [3072] * 32,
    "tie_word_embeddings": True,
}
EXPERTS = {"num_local_experts": 32, "num_experts_per_tok": 2, "head_dim": 128}
GLM_4 = {
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "kv_channels": 128,
    "num_layers": 40,
    "ffn_hidden_size": 13_696,
    "padded_vocab_size": 151_552,
    "seq_length": 131_072,
    "add_qkv_bias": True,
}
SIGLIP = {
    "hidden_size": 1152,
    "image_size": 980,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
}
INTERN_VIT_6B = {
    "hidden_size": 3200,
    "intermediate_size": 12_800,
    "num_attention_heads": 25,
    "num_hidden_layers": 45,
    "qkv_bias": False,
    "qk_normalization": True,
    "norm_type": "rms_norm",
    "image_size": 448,
    "patch_size": 14,
}
QWEN_2_32B = build_config("qwen2", "Qwen2ForCausalLM", "5120 27648 64 40 8 151674", **UNTIED)
INTERN = {"llm_config": QWEN_2_32B, "vision_config": INTERN_VIT_6B, "downsample_ratio": 0.5}
LAGUNA = {
    "head_dim": 128,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "gating": True,
    "sliding_window": 512,
    "layer_types": ["full_attention", *["sliding_attention"] * 3] * 10,
    "mlp_layer_types": ["dense", *["sparse"] * 39],
    "num_attention_heads_per_layer": [48, 64, 64, 64] * 10,
}
KIMI = {
    "vision_config": {
        "vt_num_hidden_layers": 27,
        "vt_num_attention_heads": 16,
        "vt_hidden_size": 1152,
        "vt_intermediate_size": 4304,
        "patch_size": 14,
        "init_pos_emb_height": 64,
        "init_pos_emb_width": 64,
        "merge_kernel_size": [2, 2],
    },
    "moe_intermediate_size": 2048,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
CASES = {
    "internlm2_5-20b": (
        build_config("internlm2", "InternLM2ForCausalLM", "6144 16384 48 48 8 92544", bias=False),
        19_861_149_696,
    ),
    "exaone-3.5-2.4b": (
        build_config("exaone", "ExaoneForCausalLM", "2560 7168 30 32 8 102400"),
        2_405_327_360,
    ),
    "minicpm4-8b": (
        build_config("minicpm", "MiniCPMForCausalLM", "4096 16384 32 32 2 73448", **UNTIED),
        8_185_253_888,
    ),
    "deepseek-moe-16b": (
        build_config("deepseek", "DeepseekForCausalLM", "2048 10944 28 16 16 102400", **DEEPSEEK),
        16_375_728_128,
    ),
    "qwen-7b": (build_config("qwen", "QWenLMHeadModel", "4096 22016 32 32 32 151936"), 7_721_324_544),
    "ling-mini-2.0": (
        build_config("bailing_moe", "BailingMoeV2ForCausalLM", "2048 5120 20 16 4 157184", **LING),
        16_255_643_392 - 19 * 256,
    ),
    "arctic": (
        build_config(
            "arctic",
            "ArcticForCausalLM",
            "7168 4864 35 56 8 32000",
            num_local_experts=128,
            num_experts_per_tok=2,
            moe_layer_frequency=1,
            use_residual=True,
        ),
        478_584_608_768,
    ),
    "minimax-m1": (
        build_config(
            "minimax_m1",
            "MiniMaxM1ForCausalLM",
            "6144 9216 80 64 8 200064",
            attn_type_list=([0] * 7 + [1]) * 10,
            **EXPERTS,
        ),
        456_089_655_296,
    ),
    "codegeex4-9b": (
        {**build_config("chatglm", "ChatGLMModel", "4096 1 1 32 1 1"), **GLM_4, "num_hidden_layers": 40},
        # The file has the 32 frequencies of the rotary positions, too.
        9_399_951_392 - 32,
    ),
    "hunyuan-a13b": (
        build_config("hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM", "4096 3072 32 32 8 128167", **HUNYUAN),
        80_393_183_232,
    ),
    "internvl3-38b": ({"model_type": "internvl_chat", **INTERN}, 38_388_164_992),
    "kimi-k2.5": (
        build_config(
            "kimi_k25", "KimiK25ForConditionalGeneration", "7168 18432 61 64 64 163840", **KIMI, **UNTIED
        ),
        1_026_879_376_368 - 60 * 384,
    ),
    "laguna-xs.2": (
        build_config("laguna", "LagunaForCausalLM", "2048 8192 40 48 8 100352", **LAGUNA, **UNTIED),
        33_442_617_088,
    ),
    "minicpm-v-2.6": (
        build_config(
            "minicpmv",
            "MiniCPMV",
            "3584 18944 28 28 4 151666",
            version=2.6,
            query_num=64,
            vision_config=SIGLIP,
            **UNTIED,
        ),
        8_099_175_152,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parameters_are_those_of_the_files(name):
    config, published = CASES[name]
    assert build_profile(import_config(config).architecture).parameter_count == published


JINA = build_config(
    "xlm-roberta",
    "XLMRobertaModel",
    "1024 4096 24 16 16 250002",
    type_vocab_size=1,
    position_embedding_type="rotary",
    lora_adaptations=[
        "retrieval.query",
        "retrieval.passage",
        "separation",
        "classification",
        "text-matching",
    ],
    lora_rank=4,
)
NOMIC = {
    "model_type": "nomic_bert",
    "architectures": ["NomicBertModel"],
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_inner": 3072,
    "n_positions": 2048,
    "vocab_size": 250_048,
    "type_vocab_size": 1,
    "activation_function": "gelu",
    "qkv_proj_bias": True,
    "mlp_fc1_bias": True,
    "mlp_fc2_bias": True,
    "num_experts": 8,
    "moe_top_k": 2,
    "moe_every_n_layers": 2,
}


def test_a_known_type_with_members_of_other_code_is_read_by_that_code():
    """Jina 3 states the type of XLM-RoBERTa, Nomic 2 that of Nomic 1: neither is counted as those."""
    jina, nomic = (build_profile(import_config(config).architecture) for config in (JINA, NOMIC))
    assert jina.parameter_count == 572_310_396
    # Published: 475 million parameters, of which 305 million are active.
    assert (nomic.parameter_count, nomic.active_parameter_count) == (475_292_928, 305_423_616)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({**CASES["hunyuan-a13b"][0], "moe_topk": [8] * 31 + [4]}, "/moe_topk"),
        ({**NOMIC, "prenorm": True}, "/prenorm"),
        ({**JINA, "lora_adaptations": "all"}, "/lora_adaptations"),
        ({**CASES["minicpm-v-2.6"][0], "version": 9}, "/version"),
        ({**CASES["minicpm4-8b"][0], "num_experts": 8}, "/num_experts"),
        ({**CASES["minimax-m1"][0], "shared_intermediate_size": 64}, "/shared_intermediate_size"),
    ],
)
def test_what_is_not_known_of_it_is_refused_by_member(change, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config(change)
    assert (caught.value.code, caught.value.pointer) == ("CONFIG_FIELD_UNSUPPORTED", pointer)
