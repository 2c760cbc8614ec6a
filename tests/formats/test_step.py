"""Step-3, Step-3.5, Step-3.7 and Step3-VL, against the values in their files."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

FLASH = {
    "model_type": "step3p5",
    "architectures": ["Step3p5ForCausalLM"],
    "vocab_size": 128_896,
    "max_position_embeddings": 262_144,
    "num_attention_groups": 8,
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "moe_layers_enum": ",".join(str(layer) for layer in range(3, 45)),
    "sliding_window": 512,
    "layer_types": ["full_attention", *["sliding_attention"] * 3] * 12,
    "num_nextn_predict_layers": 3,
    "use_head_wise_attn_gate": True,
    "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
}
TOWER = {"width": 1536, "layers": 47, "heads": 16, "image_size": 728, "patch_size": 14}
SEEING = {
    "model_type": "step3p7",
    "architectures": ["Step3p7ForConditionalGeneration"],
    "text_config": {name: value for name, value in FLASH.items() if name != "architectures"},
    "vision_config": TOWER,
}
QWEN = {
    "hidden_size": 4096,
    "intermediate_size": 12_288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
}
VL = {
    "model_type": "step_robotics",
    "architectures": ["StepVLForConditionalGeneration"],
    "text_config": QWEN,
    "vision_config": TOWER,
    "understand_projector_stride": 2,
}
CORRECTIONS = 42 * 288
"""Biases that correct the routers, which are buffers."""
DRAFT_LAYER = 281_428_224 + 128_896 * 4096 + 4096
"""A dense layer with a window, a matrix of 8,192 by 4,096, and norms; a head with a norm of its own."""


def count(config):
    return build_profile(import_config(config).architecture)


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        (FLASH, 199_384_301_376 - 3 * DRAFT_LAYER - CORRECTIONS),
        (SEEING, 201_365_316_160 - 3 * DRAFT_LAYER - CORRECTIONS),
        (VL, 10_171_750_144),
    ],
)
def test_parameters_are_those_of_the_files(config, stored):
    assert count(config).parameter_count == stored


def test_what_a_token_takes_and_keeps():
    """Published: 11e9 active parameters. Twelve layers keep every token, 33 those of a window."""
    profile, tokens = count(FLASH), 100_000.0
    assert profile.active_parameter_count - 128_896 * 4096 == pytest.approx(11e9, rel=0.05)
    assert key_value_bytes(profile, tokens, NumberFormat.BF16) == 2 * 8 * 256 * (12 * tokens + 33 * 512)


def test_layers_with_a_window_have_more_query_heads():
    heads = {
        (layer.window_tokens, layer.query_heads)
        for block in import_config(FLASH).architecture.list_blocks()
        for layer in block.layers
        if layer.kind == "attention"
    }
    assert heads == {(None, 64), (512, 96)}


def test_numbers_of_layers_may_be_a_list():
    listed = import_config({**FLASH, "moe_layers_enum": list(range(3, 45))})
    assert listed.architecture == import_config(FLASH).architecture


def test_flops_of_the_tower_are_those_that_pytorch_counts():
    """64 patches of a small tower of its class, by the counter of PyTorch 2.13 in transformers 5.24."""
    vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 112}
    text = {**FLASH, "hidden_size": 48}
    whole = import_config(
        {**SEEING, "text_config": text, "vision_config": {**vision, "mlp_ratio": 1.7}}
    ).architecture
    tower = Architecture(inputs=whole.inputs[1:], layers=whole.layers[:4])
    assert forward_flops_of_sample(tower, SampleShape(height=112)) == 6_619_136


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"layer_types": None}, "CONFIG_FIELD_MISSING", "/layer_types"),
        ({"layer_types": ["full_attention"] * 46}, "CONFIG_FIELD_INVALID", "/layer_types"),
        ({"moe_layers_enum": None}, "CONFIG_FIELD_MISSING", "/moe_layers_enum"),
        ({"moe_layers_enum": "3,x"}, "CONFIG_FIELD_INVALID", "/moe_layers_enum"),
        ({"moe_layers_enum": 3}, "CONFIG_FIELD_INVALID", "/moe_layers_enum"),
        (
            {"attention_other_setting": {"head_dim": 64}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/attention_other_setting/head_dim",
        ),
        (
            {"attention_other_setting": {"num_attention_groups": 4}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/attention_other_setting/num_attention_groups",
        ),
        ({"moe_top_k": 300}, "CONFIG_FIELD_INVALID", "/moe_top_k"),
    ],
)
def test_what_is_not_known_of_a_decoder_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**FLASH, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"understand_projector_stride": 1}, "/understand_projector_stride"),
        ({"vision_config": {**TOWER, "ues_cls_token": True}}, "/vision_config/ues_cls_token"),
    ],
)
def test_what_is_not_known_of_a_tower_is_refused_by_member(change, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**VL, **change})
    assert (caught.value.code, caught.value.pointer) == ("CONFIG_FIELD_UNSUPPORTED", pointer)


STEP_3_TEXT = {
    "model_type": "step3_text",
    "architectures": ["Step3TextForCausalLM"],
    "hidden_size": 7168,
    "intermediate_size": 18_432,
    "num_hidden_layers": 61,
    "max_position_embedding": 65_536,
    "vocab_size": 128_815,
    "moe_layers_enum": ",".join(str(layer) for layer in range(4, 60)),
    "num_attention_heads": 64,
    "num_attention_groups": 1,
    "head_dim": 256,
    "share_q_dim": 2048,
    "moe_num_experts": 48,
    "moe_top_k": 3,
    "moe_intermediate_size": 5120,
    "share_expert_dim": 5120,
}
STEP_3 = {
    "model_type": "step3_vl",
    "architectures": ["Step3VLForConditionalGeneration"],
    "understand_projector_stride": 2,
    "projector_bias": False,
    "text_config": STEP_3_TEXT,
    "vision_config": {
        "hidden_size": 1792,
        "output_hidden_size": 4096,
        "image_size": 728,
        "intermediate_size": 15_360,
        "num_attention_heads": 16,
        "num_hidden_layers": 63,
        "patch_size": 14,
    },
}
FACTORIZED = 7168 * 2048 + 2 * 7168 * 256 + 2048 * 64 * 256 + 64 * 256 * 7168
"""The matrices of one attention: compressed query, key, value, query heads, output."""
TOKEN_MATRICES = (
    61 * FACTORIZED + 5 * 3 * 7168 * 18_432 + 56 * ((3 + 1) * 3 * 7168 * 5120 + 7168 * 48) + 7168 * 128_815
)


def test_parameters_of_step_3_are_those_of_the_files():
    """The files of stepfun-ai/step3 have 320,969,912,832."""
    read = import_config(STEP_3)
    assert build_profile(read.architecture).parameter_count == 320_969_912_832
    assert (read.context_tokens, read.defaulted) == (65_536, ())


def test_a_token_of_step_3_takes_three_experts_and_one_compressed_query():
    """Published: 316e9 parameters of the decoder, of which a token takes 38e9."""
    profile = count(STEP_3_TEXT)
    assert profile.matmul_flops_per_token == 2 * TOKEN_MATRICES
    assert profile.active_parameter_count == TOKEN_MATRICES + 7168 * 128_815 + 61 * (2048 + 2 * 7168) + 7168
    assert profile.matmul_flops_per_token / 2 == pytest.approx(38e9, rel=0.02)
    assert profile.parameter_count == pytest.approx(316e9, rel=0.002)


def test_step_3_keeps_one_key_and_one_value_of_a_token():
    assert key_value_bytes(count(STEP_3_TEXT), 100.0, NumberFormat.BF16) == 100 * 61 * 2 * 256 * 2
    (scores,) = count(STEP_3_TEXT).attention
    assert scores.score_flops == 4 * 64 * 256


def test_an_image_of_step_3_becomes_169_positions():
    architecture = import_config(STEP_3).architecture
    sample = SampleShape(tokens=10, height=728)
    assert forward_pass(architecture, sample, decodes=True).positions == 169
    assert forward_pass(architecture, sample._replace(height=504), decodes=True).positions == 81


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"share_q_dim": None}, "CONFIG_FIELD_MISSING", "/share_q_dim"),
        ({"num_attention_groups": 8}, "CONFIG_FIELD_UNSUPPORTED", "/num_attention_groups"),
        ({"moe_layers_enum": None}, "CONFIG_FIELD_MISSING", "/moe_layers_enum"),
    ],
)
def test_what_is_not_known_of_step_3_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**STEP_3_TEXT, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"understand_projector_stride": 1}, "CONFIG_FIELD_UNSUPPORTED", "/understand_projector_stride"),
        ({"vision_config": {}}, "CONFIG_FIELD_MISSING", "/vision_config/intermediate_size"),
    ],
)
def test_what_is_not_known_of_the_tower_of_step_3_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**STEP_3, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
