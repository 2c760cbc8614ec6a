import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from service.formats.huggingface import FAMILIES, import_config
from service.formats.huggingface.families import NOT_IMPORTED
from service.planning.errors import PlanningError
from service.planning.models.layers import MixtureOfExperts
from service.planning.models.profile import build_profile
from tests.asking import shipped

ORACLES = Path(__file__).parents[1] / "oracles"
COUNTED = json.loads((ORACLES / "parameter_counts.json").read_text())["cases"]
WALK = json.loads((ORACLES / "decoder_walk.json").read_text())
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
}
BLOCKS = {"model_type": "minimax_m3_vl_text", "architectures": ["MiniMaxM3VLForCausalLM"], "head_dim": 16}
POOLS = {
    "model_type": "glm5_next_text",
    "architectures": ["Glm5NextTextModel"],
    "layer_types": ["linear_attention", "deepseek_sparse_attention"],
}
NGRAMS = {
    "model_type": "qwen4_exp_text",
    "architectures": ["Qwen4ExpForCausalLM"],
    "layer_types": ["linear_attention", "full_attention"],
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 32,
    "indexer_compress_ratio": 4,
}
ENTRIES = {"model_type": "deepseek_v4", "architectures": ["DeepseekV4ForCausalLM"], "o_groups": 2}


@pytest.mark.parametrize("case", [*COUNTED, *WALK["cases"]], ids=lambda case: case["name"])
def test_parameters_are_counted_as_pytorch_counts_them(case):
    imported = import_config(case["config"])
    assert imported.class_name == case["config"]["architectures"][0]
    assert build_profile(imported.architecture).parameter_count == case["parameter_count"]


def test_a_type_that_is_not_imported_says_what_is_missing():
    with pytest.raises(PlanningError, match="differential attention") as caught:
        import_config({"model_type": "diffllama"})
    assert (caught.value.code, caught.value.pointer) == ("MODEL_TYPE_UNKNOWN", "/model_type")


def test_the_methods_page_lists_every_type():
    page = (ORACLES.parents[1] / "docs" / "methods" / "architectures.md").read_text()
    assert [name for name in WALK["types"] if f"`{name}`" not in page] == []


def test_every_type_that_is_said_to_be_imported_is():
    """The walk over the registry of transformers says which types are imported; the rest is refused."""
    for model_type, found in WALK["types"].items():
        assert (model_type in FAMILIES) == found["imported"], model_type
        assert (model_type in NOT_IMPORTED) != found["imported"], model_type
    counted = [case["config"]["model_type"] for case in WALK["cases"]]
    assert {counted.count(name) for name, found in WALK["types"].items() if found["imported"]} <= {4, 5, 6}


def test_active_parameters_of_experts():
    """Published: Mixtral 8x7B 46.7e9 and 12.9e9 active, Qwen3-30B-A3B 30.5e9 and 3.3e9 active."""
    by_name = {case["name"]: build_profile(import_config(case["config"]).architecture) for case in COUNTED}
    mixtral, qwen = by_name["mixtral-8x7b"], by_name["qwen3-30b-a3b"]
    assert (mixtral.parameter_count, mixtral.active_parameter_count) == (46_702_792_704, 12_879_925_248)
    assert (qwen.parameter_count, qwen.active_parameter_count) == (30_532_122_624, 3_353_032_704)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("deepseek-v3", 37e9),
        ("kimi-k2", 32e9),
        ("qwen3-235b-a22b", 22e9),
        ("qwen3-coder-480b-a35b", 35e9),
        ("llama-4-scout", 17e9),
        ("jamba-v0.1", 12e9),
        ("dbrx", 36e9),
        ("olmoe-1b-7b", 1.3e9),
        ("nemotron-3-nano", 3.6e9),
        ("nemotron-3-super", 12.7e9),
        ("nemotron-3-ultra", 55e9),
        ("minimax-m2", 10e9),
        ("minimax-text-01", 45.9e9),
        ("ernie-4.5-300b-a47b", 47e9),
        ("granite-4.0-h-small", 9e9),
        ("phi-3.5-moe", 6.6e9),
    ],
)
def test_active_parameters_are_those_of_the_model_cards(name, published):
    """Some cards leave tables out, so that they are met within a tenth and a bit."""
    (config,) = [case["config"] for case in COUNTED if case["name"] == name]
    active = build_profile(import_config(config).architecture).active_parameter_count
    assert active == pytest.approx(published, rel=0.11)


def test_a_text_model_inside_a_multimodal_configuration():
    text = {**LLAMA, "model_type": "gemma3_text", "head_dim": 16, "num_key_value_heads": 2}
    del text["architectures"]
    wrapped = {"model_type": "gemma3", "architectures": ["Gemma3ForCausalLM"], "text_config": text}
    imported = import_config(wrapped)
    assert (imported.model_type, imported.class_name) == ("gemma3_text", "Gemma3ForCausalLM")


GROK = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
}


def count_grok(**members):
    profile = build_profile(import_config({**GROK, **members}).architecture)
    return profile.parameter_count, profile.active_parameter_count


def test_grok_by_hand():
    """A layer: query and output 2 x 64², key and value 2 x 64 x 16, a router, 3 x 64 x 96 for each expert.

    Four norms stand around attention and experts. The first has one table for tokens and head, the second
    two, narrower experts, and a feed-forward beside them.
    """
    attention, norms = 2 * 64**2 + 2 * 64 * 16, 4 * 64
    first = count_grok(model_type="grok-1", architectures=["Grok1ModelForCausalLM"], num_experts=5)
    layer = attention + norms + 64 * 5 + 5 * 3 * 64 * 96
    assert first == (100 * 64 + 3 * layer + 64, 100 * 64 + 3 * (layer - 3 * 3 * 64 * 96) + 64)
    members = {"num_local_experts": 5, "moe_intermediate_size": 48, "residual_moe": True}
    second = count_grok(model_type="git", architectures=["Grok1ForCausalLM"], **members)
    layer = attention + norms + 64 * 5 + 5 * 3 * 64 * 48 + 3 * 64 * 96
    assert second == (2 * 100 * 64 + 3 * layer + 64, 2 * 100 * 64 + 3 * (layer - 3 * 3 * 64 * 48) + 64)


def test_what_kimi_k3_adds_by_hand():
    """Two layers: a delta rule before a dense feed-forward, latent attention before experts.

    Each of the four parts and the head have a norm and scores for the residuals, 2 x 64. The output gate is
    full, 64 x 32, in place of a rank of 16; attention has one, 64 x 4 x 8. Experts of 24 work on 40 in place
    of 64, between 64 x 40 and 40 x 64, with a norm of 40.
    """
    config = {
        **GROK,
        "model_type": "kimi_linear",
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "kv_lora_rank": 20,
        "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
        "num_experts": 5,
        "moe_intermediate_size": 24,
        "num_shared_experts": 1,
    }
    delta = {"full_attn_layers": [2], "head_dim": 16, "num_heads": 2, "short_conv_kernel_size": 4}
    plain = import_config({**config, "linear_attn_config": delta})
    added = {
        "attn_res_block_size": 2,
        "mla_use_output_gate": True,
        "routed_expert_hidden_size": 40,
        "latent_moe_use_norm": True,
        "linear_attn_config": {**delta, "use_full_rank_gate": True},
    }
    before, after = (
        build_profile(model.architecture).parameter_count
        for model in (plain, import_config({**config, **added}))
    )
    residuals, gates = 5 * 2 * 64, 64 * 32 - (64 * 16 + 16 * 32) + 64 * 32
    experts = 2 * 64 * 40 + 40 - 5 * 3 * 24 * (64 - 40)
    assert after - before == residuals + gates + experts


def test_layers_left_out_of_a_nemotron_are_left_out():
    """A searched Llama: the second layer has no attention, the third nothing at all."""
    attention = {"n_heads_in_group": 2, "no_op": False, "replace_with_linear": False}
    ffn = {"ffn_mult": 2.0, "no_op": False, "replace_with_linear": False}
    nothing = {"no_op": True}
    config = {
        **LLAMA,
        "model_type": "nemotron-nas",
        "architectures": ["DeciLMForCausalLM"],
        "num_hidden_layers": 3,
        "max_position_embeddings": 96,
        "block_configs": [
            {"attention": attention, "ffn": ffn},
            {"attention": nothing, "ffn": ffn},
            {"attention": nothing, "ffn": nothing},
        ],
    }
    blocks = list(import_config(config).architecture.list_blocks())
    kinds = [[layer.kind for layer in block.layers] for block in blocks]
    whole = ["normalization", "attention", "normalization", "feed_forward"]
    assert kinds == [whole, whole[2:], whole[:1]]
    assert blocks[0].layers[1].key_value_heads == 2
    assert blocks[0].layers[3].inner_size == 256


def test_a_shared_layer_works_again_but_is_stored_once():
    """Zamba: 2 FLOPs for each weight that is multiplied, more than twice the weights that are stored."""
    (case,) = [case for case in WALK["cases"] if case["name"] == "walk-zamba-0"]
    architecture = import_config(case["config"]).architecture
    assert [block.reused for block in architecture.list_blocks()].count(True) == 2
    again = replace(
        architecture,
        layers=tuple(replace(b, reused=False) if b.kind == "block" else b for b in architecture.layers),
    )
    shared, apart = build_profile(architecture), build_profile(again)
    assert shared.matmul_flops_per_token == apart.matmul_flops_per_token
    assert shared.parameter_count < apart.parameter_count


def test_a_scorer_that_layers_share_is_stored_once():
    own, shared = (shipped().models[name].profile for name in ("glm-5.1", "glm-5.2"))
    # The hub counts 753,864,139,008 parameters of GLM 5 and 753,329,940,480 of GLM 5.2.
    assert own.parameter_count - shared.parameter_count == 753_864_139_008 - 753_329_940_480
    assert {work.attended_tokens for work in shared.attention} == {2048}


def test_equal_layers_are_one_block():
    architecture = import_config(LLAMA).architecture
    assert [block.count for block in architecture.list_blocks()] == [2, 1]


def test_layers_that_differ_stay_in_order():
    config = {
        **LLAMA,
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "num_key_value_heads": 2,
        "num_hidden_layers": 5,
        "use_sliding_window": True,
        "sliding_window": 32,
        "max_window_layers": 3,
    }
    blocks = list(import_config(config).architecture.list_blocks())
    windows = [(block.count, block.layers[1].window_tokens) for block in blocks[:2]]
    assert windows == [(3, None), (2, 32)]


def test_defaults_are_reported():
    imported = import_config({"model_type": "llama"})
    assert build_profile(imported.architecture).parameter_count == 6_738_415_616
    assert set(imported.defaulted) == {
        "architectures",
        "hidden_size",
        "intermediate_size",
        "max_position_embeddings",
        "num_attention_heads",
        "num_hidden_layers",
        "vocab_size",
    }


def test_the_original_bert_format_names_no_type():
    config = {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    }
    imported = import_config(config)
    assert imported.class_name == "BertModel"
    assert build_profile(imported.architecture).parameter_count == 335_141_888
    assert imported.defaulted == ("architectures", "model_type")


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"model_type": "martian"}, "MODEL_TYPE_UNKNOWN", "/model_type"),
        ({"model_type": None}, "CONFIG_FIELD_MISSING", "/model_type"),
        ({"model_type": 3}, "CONFIG_FIELD_MISSING", "/model_type"),
        ({"architectures": ["LlamaForPoetry"]}, "MODEL_CLASS_UNKNOWN", "/architectures/0"),
        ({"architectures": ["GPT2LMHeadModel"]}, "MODEL_CLASS_UNKNOWN", "/architectures/0"),
        ({"architectures": []}, "CONFIG_FIELD_INVALID", "/architectures"),
        ({"architectures": "LlamaForCausalLM"}, "CONFIG_FIELD_INVALID", "/architectures"),
        ({"hidden_size": -1}, "CONFIG_FIELD_INVALID", "/hidden_size"),
        ({"hidden_size": 64.0}, "CONFIG_FIELD_INVALID", "/hidden_size"),
        ({"hidden_size": True}, "CONFIG_FIELD_INVALID", "/hidden_size"),
        ({"hidden_size": 10**12}, "CONFIG_FIELD_INVALID", "/hidden_size"),
        ({"hidden_size": 66}, "CONFIG_FIELD_INVALID", "/num_attention_heads"),
        ({"num_key_value_heads": 3}, "CONFIG_FIELD_INVALID", "/num_key_value_heads"),
        ({"num_hidden_layers": 100_000}, "CONFIG_FIELD_INVALID", "/num_hidden_layers"),
        ({"attention_bias": "yes"}, "CONFIG_FIELD_INVALID", "/attention_bias"),
        ({"attention_dropout": 7}, "CONFIG_FIELD_INVALID", "/attention_dropout"),
        (
            {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 0},
            "CONFIG_FIELD_INVALID",
            "/n_embd",
        ),
        ({**ENTRIES, "o_groups": 3}, "CONFIG_FIELD_INVALID", "/o_groups"),
        ({**ENTRIES, "compress_ratios": [0]}, "CONFIG_FIELD_INVALID", "/compress_ratios"),
        ({**ENTRIES, "compress_ratios": [7] * 100}, "CONFIG_FIELD_INVALID", "/compress_ratios"),
        ({**ENTRIES, "compress_ratios": [[]] * 100}, "CONFIG_FIELD_INVALID", "/compress_ratios"),
        (
            {**ENTRIES, "compress_rates": {"heavily_compressed_attention": 0}},
            "CONFIG_FIELD_INVALID",
            "/compress_rates",
        ),
        (
            {**ENTRIES, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2},
            "CONFIG_FIELD_INVALID",
            "/layer_types",
        ),
        ({**BLOCKS, "layer_types": ["spiral"] * 2}, "CONFIG_FIELD_INVALID", "/layer_types"),
        ({**BLOCKS, "moe_layer_freq": [1]}, "CONFIG_FIELD_INVALID", "/moe_layer_freq"),
        ({**BLOCKS, "moe_layer_freq": [1, 2]}, "CONFIG_FIELD_INVALID", "/moe_layer_freq"),
        (
            {**BLOCKS, "sparse_attention_config": {"sparse_attention_freq": 1}},
            "CONFIG_FIELD_INVALID",
            "/sparse_attention_config",
        ),
        (
            {**BLOCKS, "sparse_attention_config": {"sparse_attention_freq": [1, 1], "sparse_index_dim": 0}},
            "CONFIG_FIELD_INVALID",
            "/index_head_dim",
        ),
        ({**POOLS, "layer_types": ["sliding_attention"] * 2}, "CONFIG_FIELD_INVALID", "/layer_types"),
        ({**POOLS, "index_kpool": 3}, "CONFIG_FIELD_INVALID", "/index_kpool"),
        ({**POOLS, "qk_rope_head_dim": 64}, "CONFIG_FIELD_UNSUPPORTED", "/qk_rope_head_dim"),
        ({**POOLS, "index_topk_freq": 4}, "CONFIG_FIELD_UNSUPPORTED", "/index_topk_freq"),
        ({**POOLS, "q_lora_rank": None}, "CONFIG_FIELD_INVALID", "/q_lora_rank"),
        ({**NGRAMS, "indexer_n_heads": None}, "CONFIG_FIELD_MISSING", "/indexer_n_heads"),
        ({**NGRAMS, "indexer_kv_heads": 2}, "CONFIG_FIELD_UNSUPPORTED", "/indexer_kv_heads"),
        ({**NGRAMS, "indexer_compress_ratio": 5}, "CONFIG_FIELD_INVALID", "/indexer_compress_ratio"),
        ({**NGRAMS, "ple_layer_ids": [2]}, "CONFIG_FIELD_INVALID", "/ple_layer_ids"),
        ({**NGRAMS, "ple_layer_ids": [0]}, "CONFIG_FIELD_INVALID", "/ple_layer_ids"),
        ({**NGRAMS, "ple_layer_ids": [1], "ngram_size": 1}, "CONFIG_FIELD_INVALID", "/heads_per_ngram"),
        (
            {**NGRAMS, "ple_layer_ids": [1], "heads_per_ngram": 600},
            "CONFIG_FIELD_INVALID",
            "/heads_per_ngram",
        ),
        ({**NGRAMS, "ple_layer_ids": [1], "heads_per_ngram": 3}, "CONFIG_FIELD_INVALID", "/heads_per_ngram"),
        (
            {
                "model_type": "zamba",
                "architectures": ["ZambaForCausalLM"],
                "num_attention_heads": 7,
                "attention_hidden_size": 64,
                "attention_head_dim": None,
            },
            "CONFIG_FIELD_INVALID",
            "/num_attention_heads",
        ),
        ({"model_type": "rwkv"}, "MODEL_TYPE_UNKNOWN", "/model_type"),
    ],
)
def test_a_bad_configuration_is_refused_by_field(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**LLAMA, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        (
            {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "add_cross_attention": True},
            "/add_cross_attention",
        ),
        ({"model_type": "bert", "architectures": ["BertModel"], "is_decoder": True}, "/is_decoder"),
        ({"model_type": "deepseek_v3", "num_experts_per_tok": 2, "moe_layer_freq": 2}, "/moe_layer_freq"),
        ({"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["spiral"]}, "/layer_types"),
        ({"model_type": "glm_moe_dsa", "index_topk_freq": 4}, "/index_topk_freq"),
        ({"model_type": "ernie4_5_moe", "use_bias": True}, "/use_bias"),
    ],
)
def test_what_changes_the_architecture_unseen_is_refused(change, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config(change)
    assert (caught.value.code, caught.value.pointer) == ("CONFIG_FIELD_UNSUPPORTED", pointer)


JUNK = (None, True, 0, -1, 3, 10**12, 1.5, "auto", [], [1], ["x"], {}, [None], "ME", [[["global"], -5]])


def test_junk_in_any_field_is_refused_by_field_or_read():
    """Whatever stands in a field, the answer is an architecture or an error that points into the document."""
    choose = random.Random(20261121)  # noqa: S311  # the same cases every time
    refused = []
    for _ in range(3000):
        config = dict(choose.choice(WALK["cases"])["config"])
        name = choose.choice(sorted(config))
        config[name] = choose.choice(JUNK)
        try:
            build_profile(import_config(config).architecture)
        except PlanningError as error:
            refused.append(error)
    assert len(refused) > 1000
    assert all(e.pointer.startswith("/") or e.code.startswith("TOO_MANY") for e in refused)


def test_layer_types_must_name_every_layer():
    config = {
        **LLAMA,
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "num_key_value_heads": 4,
        "use_sliding_window": True,
        "sliding_window": 8,
        "layer_types": ["full_attention"],
    }
    with pytest.raises(PlanningError, match="every layer"):
        import_config(config)


@pytest.mark.parametrize(
    ("config", "groups"),
    [
        ({"model_type": "deepseek_v3"}, (8, 4)),
        ({"model_type": "deepseek_v3", "n_group": 4, "topk_group": 2}, (4, 2)),
        ({"model_type": "deepseek_v3", "n_group": 1, "topk_group": 1}, (None, None)),
        ({"model_type": "deepseek_v2", "num_experts_per_tok": 6}, (None, None)),
        (
            {"model_type": "deepseek_v2", "num_experts_per_tok": 6, "n_group": 8, "topk_group": 3,
             "topk_method": "group_limited_greedy"},
            (8, 3),
        ),
        (
            {"model_type": "deepseek_v2", "num_experts_per_tok": 6, "n_group": 8, "topk_group": 3,
             "topk_method": "greedy"},
            (None, None),
        ),
        ({"model_type": "glm4_moe", "head_dim": 128}, (None, None)),
    ],
)  # fmt: skip
def test_the_groups_that_the_experts_of_a_token_lie_in(config, groups):
    layers = [
        layer for block in import_config(config).architecture.layers for layer in getattr(block, "layers", ())
    ]
    experts = [layer for layer in layers if isinstance(layer, MixtureOfExperts)]
    assert {(layer.expert_groups, layer.groups_per_token) for layer in experts} == {groups}
