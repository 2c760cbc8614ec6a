"""What a configuration says of its quantisation, and what it leaves alone."""

import pytest

from service.formats.huggingface import import_config
from service.formats.quantization import read_checkpoint_format
from service.planning.errors import PlanningError
from service.planning.hardware.storage import MatrixPath, ModelFacts
from service.planning.hardware.storage.named import MXFP4, WIDE
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.profile import build_profile
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from tests.asking import shipped

GIB = 2**30
FACTS = ModelFacts(8.0, 0, 80, tied=False)

LINEAR_FP8 = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
        }
    },
    "ignore": ["lm_head"],
}

HQQ = {"weight_quant_params": {"nbits": 4, "group_size": 64}}


def read(fields):
    return read_checkpoint_format({"quantization_config": fields})


def bits(weight_format, module, layer=0, inputs=4096, outputs=4096):
    scheme = weight_format.scheme_of(MatrixPath(module, layer, FACTS.depth, inputs), FACTS)
    return scheme.compute_bytes(inputs, outputs) * 8 / (inputs * outputs)


def test_a_configuration_without_one_says_nothing():
    assert read_checkpoint_format({"model_type": "llama"}) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, 4.164),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, 8.758),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, 4.013),
        ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True}, 4.3125),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 128, "zero_point": False}, 4.125),
        ({"quant_method": "auto-round", "bits": 2, "group_size": 64}, 2.281),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8.00195),
        ({"quant_method": "fp8", "activation_scheme": "static"}, 8.0),
        ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, 8.0078),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.0078),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.1275),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, 8.0),
        ({"quant_method": "eetq"}, 8.0039),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
            4.5,
        ),
        (LINEAR_FP8, 8.0039),
    ],
)
def test_bits_of_a_projection(fields, expected):
    assert bits(read(fields), "attention.query") == pytest.approx(expected, rel=2e-4)
    assert bits(read(fields), "mixture_of_experts.router") == 16


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}, 4.125),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": False}, 4.625),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, 8.0039),
        ({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}, 8.00195),
        ({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, 4.5),
        ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}, 4.25),
    ],
)
def test_groups_of_compressed_tensors(weights, expected):
    fields = {**LINEAR_FP8, "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    assert bits(read(fields), "feed_forward.up") == pytest.approx(expected, rel=2e-4)


def test_a_named_group_comes_before_one_of_a_class():
    narrow = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}
    groups = {
        "group_0": LINEAR_FP8["config_groups"]["group_0"],
        "group_1": {"targets": ["re:.*mlp.*"], "weights": narrow},
    }
    weight_format = read({**LINEAR_FP8, "config_groups": groups})
    assert bits(weight_format, "attention.query") == pytest.approx(8.0039, rel=1e-4)
    assert bits(weight_format, "feed_forward.up") == 4.125


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (LINEAR_FP8, None),
        ({**LINEAR_FP8, "kv_cache_scheme": None}, None),
        # neuralmagic/Meta-Llama-3-8B-Instruct-FP8-KV, config.json.
        (
            {
                **LINEAR_FP8,
                "kv_cache_scheme": {
                    "dynamic": False,
                    "num_bits": 8,
                    "strategy": "tensor",
                    "symmetric": True,
                    "type": "float",
                },
            },
            NumberFormat.FP8,
        ),
        # nvidia/Llama-3.1-8B-Instruct-FP8, hf_quant_config.json.
        (
            {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}},
            NumberFormat.FP8,
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": None}, None),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4"},
            NumberFormat.FP4,
        ),
        # nvidia/DeepSeek-R1-0528-FP4-v2 and later exports put the scheme beside quant_algo.
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"},
            },
            NumberFormat.FP8,
        ),
    ],
)
def test_the_format_of_the_cache(fields, expected):
    assert read(fields).cache is expected


@pytest.mark.parametrize(
    ("ignored", "wide", "packed"),
    [
        (["lm_head"], [], [("attention.query", 0), ("feed_forward.down", 3)]),
        (["self_attn"], [("attention.query", 0), ("latent_attention.output", 5)], [("feed_forward.up", 0)]),
        (["model.layers.*.self_attn"], [("attention.key", 7)], [("feed_forward.up", 7)]),
        (["model.layers.0.mlp.down_proj"], [("feed_forward.down", 0)], [("feed_forward.down", 1)]),
        (["model.layers.3"], [("feed_forward.up", 3), ("attention.query", 3)], [("feed_forward.up", 30)]),
        (["re:.*self_attn.*"], [("attention.output", 2)], [("feed_forward.gate", 2)]),
        (["re:model\\.layers\\.[0-1]\\..*"], [("attention.output", 1)], [("attention.output", 2)]),
        (["visual.blocks.0.attn.qkv"], [], [("attention.query", 0)]),
        (["model.language_model.layers.2.mlp"], [("feed_forward.up", 2)], [("attention.query", 2)]),
        (
            [f"model.language_model.layers.4.linear_attn.in_proj_{name}" for name in "ab"],
            [("linear_attention.step_and_decay", 4)],
            [("linear_attention.step_and_decay", 5), ("linear_attention.query_key_value", 4)],
        ),
    ],
)
def test_what_is_listed_stays_wide(ignored, wide, packed):
    weight_format = read({**LINEAR_FP8, "ignore": ignored})
    assert {bits(weight_format, *place) for place in wide} <= {16.0}
    assert all(bits(weight_format, *place) < 9 for place in packed)


def test_heads_are_packed_only_where_the_configuration_says_so():
    assert read({**LINEAR_FP8, "ignore": []}).head(FACTS, 4096).element_bits == 8
    assert read(LINEAR_FP8).head(FACTS, 4096).element_bits == 16
    assert read({**LINEAR_FP8, "ignore": []}).head(FACTS._replace(tied=True), 4096).element_bits == 16
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    assert read(gptq).head(FACTS, 4096).element_bits == 16
    assert read({**gptq, "lm_head": True}).head(FACTS, 4096).element_bits == 4


def test_mxfp4_packs_the_experts_of_gpt_oss():
    listed = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    weight_format = read({"quant_method": "mxfp4", "modules_to_not_convert": listed})
    assert weight_format.compute is NumberFormat.FP4
    assert bits(weight_format, "mixture_of_experts.expert_up") == 4.25
    assert bits(weight_format, "attention.query") == 16


def test_the_published_fp8_70b_on_two_devices():
    """A vLLM start-up log of Llama-3.3-70B-Instruct-FP8-dynamic reports 33.88 GiB a device."""
    stored = shipped().models["llama-3.1-70b"].profile.weights.get_stored_weights(read(LINEAR_FP8))
    assert stored.total / 2 / GIB == pytest.approx(33.88, rel=0.002)


def test_the_published_fp8_405b_of_july_2024_on_eight_devices():
    """A vLLM log: 57.7520 GiB each. It had 16 key-value heads then; attention and two layers stay wide."""
    attention = [f"model.layers.{layer}.self_attn.{name}_proj" for layer in range(126) for name in "qkvo"]
    ends = [f"model.layers.{layer}.mlp.{name}_proj" for layer in (0, 125) for name in ("gate", "up", "down")]
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 16_384,
        "intermediate_size": 53_248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "num_key_value_heads": 16,
        "vocab_size": 128_256,
        "quantization_config": {
            "quant_method": "fbgemm_fp8",
            "activation_scale_ub": 1200.0,
            "modules_to_not_convert": ["lm_head", *attention, *ends],
        },
    }
    profile = build_profile(import_config(config).architecture)
    held = inference_weight_bytes(profile, read_checkpoint_format(config), Parallelism(tensor=8)).total
    assert held / GIB == pytest.approx(57.7520, rel=0.001)


def test_kimi_k3_weighs_what_its_files_do():
    """1,453.66 GiB of tensors (gogongxt/python scripts/models/kimi_k3.md), 0.83 of them tower and projector.

    Its files hold the projections of tokens for the experts in 16 bits, which its configuration packs.
    """
    row = shipped().models["kimi-k3"]
    held = inference_weight_bytes(row.profile, row.stored, Parallelism()).total
    assert held / GIB == pytest.approx(1453.66 - 447_358_976 * 2 / GIB, rel=0.005)


def test_steps_and_decays_of_qwen_stay_wide_as_its_configuration_lists():
    """Qwen3.8-Flash-Next-FP8: in_proj_a and in_proj_b of its linear layers are in 16 bits."""
    row = shipped().models["qwen3.8-flash-next-fp8"]
    steps = [
        matrix
        for matrix in row.profile.weights.matrices
        if matrix.module == "linear_attention.step_and_decay"
    ]
    assert sum(matrix.inputs * matrix.outputs * matrix.total_copies for matrix in steps) == 36 * 2 * 48 * 2560
    assert {bits(row.stored, matrix.module) for matrix in steps} == {16.0}


@pytest.mark.parametrize(
    ("fields", "saved_by", "copied"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "4.41.1", True),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, None, True),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "4.51.0", False),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "4.51.0", True),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "4.41.1", False),
    ],
)
def test_tools_that_write_a_tied_head_twice(fields, saved_by, copied):
    named = {"transformers_version": saved_by} if saved_by else {}
    stored = read_checkpoint_format({"quantization_config": fields, **named})
    assert stored.copies_tied_head is copied
    held = shipped().models["qwen3-4b"].profile.weights.get_stored_weights(stored)
    assert held.copied == (held.tied if copied else 0.0)


@pytest.mark.parametrize(
    ("fields", "code", "pointer"),
    [
        ({}, "QUANTIZATION_UNKNOWN", "/quantization_config/quant_method"),
        ({"quant_method": "spqr"}, "QUANTIZATION_UNKNOWN", "/quantization_config/quant_method"),
        ({"quant_method": "gptq"}, "CONFIG_FIELD_MISSING", "/quantization_config/bits"),
        ({"quant_method": "gptq", "bits": "4"}, "CONFIG_FIELD_INVALID", "/quantization_config/bits"),
        ({"quant_method": "gptq", "bits": 16}, "CONFIG_FIELD_INVALID", "/quantization_config/bits"),
        (
            {"quant_method": "fp8", "weight_block_size": [0, 128]},
            "CONFIG_FIELD_INVALID",
            "/quantization_config/weight_block_size",
        ),
        ({"quant_method": "bitsandbytes"}, "QUANTIZATION_UNKNOWN", "/quantization_config/load_in_4bit"),
        (
            {"quant_method": "modelopt", "quant_algo": "W9"},
            "QUANTIZATION_UNKNOWN",
            "/quantization_config/quant_algo",
        ),
        (
            {"quant_method": "compressed-tensors"},
            "CONFIG_FIELD_MISSING",
            "/quantization_config/config_groups",
        ),
        ({**LINEAR_FP8, "ignore": "lm_head"}, "CONFIG_FIELD_INVALID", "/quantization_config/ignore"),
        ({**LINEAR_FP8, "ignore": ["re:(a+)+b"]}, "CONFIG_FIELD_INVALID", "/quantization_config/ignore"),
        ({**LINEAR_FP8, "ignore": ["re:("]}, "CONFIG_FIELD_INVALID", "/quantization_config/ignore"),
        ("int4", "CONFIG_FIELD_INVALID", "/quantization_config"),
        (
            {**LINEAR_FP8, "kv_cache_scheme": {"num_bits": 3, "type": "float"}},
            "QUANTIZATION_UNKNOWN",
            "/quantization_config/kv_cache_scheme",
        ),
        (
            {**LINEAR_FP8, "kv_cache_scheme": {"num_bits": [8], "type": {}}},
            "QUANTIZATION_UNKNOWN",
            "/quantization_config/kv_cache_scheme",
        ),
        (
            {**LINEAR_FP8, "kv_cache_scheme": "fp8"},
            "CONFIG_FIELD_INVALID",
            "/quantization_config/kv_cache_scheme",
        ),
        (
            {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP3"}},
            "QUANTIZATION_UNKNOWN",
            "/quantization_config/quantization/kv_cache_quant_algo",
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": ["FP8"]},
            "QUANTIZATION_UNKNOWN",
            "/quantization_config/kv_cache_quant_algo",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(fields, code, pointer):
    with pytest.raises(PlanningError) as refused:
        read(fields)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


class TestExpertsInFourBits:
    """DeepSeek-V4 states the format of its experts beside ``quantization_config``, later releases inside."""

    FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}

    @pytest.mark.parametrize(
        "config",
        [
            {"quantization_config": FP8, "expert_dtype": "fp4"},
            {"quantization_config": {**FP8, "expert_dtype": "fp4"}},
        ],
    )
    def test_experts_are_blocks_of_32_and_the_rest_is_fp8(self, config):
        found = read_checkpoint_format(config, 4)
        expert, dense, router = (
            found.scheme_of(MatrixPath(name, 1, 4, 4096), FACTS)
            for name in (
                "mixture_of_experts.expert_up",
                "mixture_of_experts.shared_up",
                "mixture_of_experts.router",
            )
        )
        assert (expert, dense.element_bits, router) == (MXFP4, 8, WIDE)
        assert found.compute is NumberFormat.FP8

    def test_another_format_is_refused(self):
        with pytest.raises(PlanningError) as caught:
            read_checkpoint_format({"quantization_config": self.FP8, "expert_dtype": "fp3"}, 4)
        assert caught.value.pointer == "/quantization_config/expert_dtype"


class TestTablesInEightBits:
    """Qwen3.8-Flash-Next-FP8 converts its table of n-grams, which is no matrix of a layer."""

    FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}

    def test_a_table_of_ngrams_has_one_scale_and_the_table_of_tokens_stays_wide(self):
        listed = {**self.FP8, "modules_to_convert": ["ple.ple_embedding.ngram_embedding"]}
        found = read(listed)
        assert found.lookups.compute_bytes(160, 1000) == 160_004
        assert found.table(FACTS, 160) == WIDE
        assert read(self.FP8).lookups is None

    @pytest.mark.parametrize("names", [["embed_tokens"], ["*ngram_embedding"], "ngram_embedding"])
    def test_other_tables_are_refused(self, names):
        with pytest.raises(PlanningError) as caught:
            read({**self.FP8, "modules_to_convert": names})
        assert caught.value.pointer == "/quantization_config/modules_to_convert"
