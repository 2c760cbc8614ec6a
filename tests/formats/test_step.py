"""Step-3.5, Step-3.7 and Step3-VL, against the values in their files."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile
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
