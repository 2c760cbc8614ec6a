"""ERNIE-4.5-VL, against the totals of its files and the class of transformers."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

PUBLISHED = {
    "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
    "model_type": "ernie4_5_moe_vl",
    "vocab_size": 103_424,
    "hidden_size": 2560,
    "intermediate_size": 12_288,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "max_position_embeddings": 131_072,
    "moe_k": 6,
    "moe_num_experts": [64, 64],
    "moe_intermediate_size": [1536, 512],
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": [1, 1],
    "moe_layer_end_index": [29, 28],
    "use_bias": False,
    "tie_word_embeddings": True,
    "spatial_conv_size": 2,
    "temporal_conv_size": 2,
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "hidden_size": 1280,
        "mlp_ratio": 4,
        "num_heads": 16,
        "in_channels": 3,
        "patch_size": 14,
        "spatial_merge_size": 2,
    },
}
NESTED = {
    "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
    "model_type": "ernie4_5_vl_moe",
}
"""Members that the configuration class of transformers has by default are those of 28B-A3B."""
LARGE = {
    **NESTED,
    "tie_word_embeddings": False,
    "text_config": {
        "hidden_size": 8192,
        "intermediate_size": 28_672,
        "num_hidden_layers": 54,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "moe_k": 8,
        "moe_intermediate_size": [3584, 1536],
        "moe_num_shared_experts": 0,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 51,
    },
}
SMALL = {
    **NESTED,
    "text_config": {
        "vocab_size": 99,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "moe_k": 2,
        "moe_num_experts": 4,
        "moe_intermediate_size": [40, 16],
        "moe_num_shared_experts": 1,
    },
    "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 64},
}


@pytest.mark.parametrize(
    ("config", "stored"), [(PUBLISHED, 29_399_294_336), (NESTED, 29_399_294_336), (LARGE, 423_526_285_184)]
)
def test_parameters_are_those_of_the_files(config, stored):
    """The class of transformers has as many, correction biases of both routers included."""
    assert build_profile(import_config(config).architecture).parameter_count == stored


def test_a_published_file_is_the_nested_one():
    published, nested = import_config(PUBLISHED), import_config(NESTED)
    assert published.architecture == nested.architecture
    assert (published.context_tokens, published.defaulted) == (131_072, ())


def test_a_token_of_text_takes_no_experts_of_images():
    """One dense layer, 27 with 6 of 64 experts and two shared ones; the tower is counted whole."""
    profile = build_profile(import_config(PUBLISHED).architecture)
    attention = 2560 * 2560 * 2 + 2 * 2560 * 512
    sparse = (6 + 2) * 3 * 2560 * 1536 + 2560 * 64
    text = 28 * attention + 3 * 2560 * 12_288 + 27 * sparse + 103_424 * 2560
    wide = 4 * 1280
    tower = 3 * 14**2 * 1280 + 32 * (4 * 1280**2 + 2 * 1280 * wide)
    resampler = 2 * wide**2 + 3 * wide**2 + wide * 2560
    assert profile.matmul_flops_per_token == 2 * (text + tower + resampler)
    of_images = 27 * (64 * 3 * 2560 * 512 + 2560 * 64 + 64)
    unused = 27 * (64 - 6) * 3 * 2560 * 1536
    assert profile.parameter_count - profile.active_parameter_count == of_images + unused
    assert profile.image_expert_share == 512 / (1536 + 512)


def test_keys_and_values_are_those_of_the_heads():
    small, large = (build_profile(import_config(config).architecture) for config in (NESTED, LARGE))
    assert key_value_bytes(small, 10.0, NumberFormat.BF16) == 10 * 28 * 4 * 2 * 128 * 2
    assert key_value_bytes(large, 10.0, NumberFormat.BF16) == 10 * 54 * 8 * 2 * 128 * 2


def test_flops_of_text_and_of_an_image_are_those_that_pytorch_counts():
    """26 tokens, 16 of them the positions of 64 patches: the counter of PyTorch 2.13 in transformers 5.24."""
    architecture = import_config(SMALL).architecture
    assert build_profile(architecture).parameter_count == 239_312
    assert forward_flops_of_sample(architecture, SampleShape(tokens=26, height=112)) == 12_060_736


def test_positions_beyond_the_sequence_do_not_count():
    architecture = import_config(SMALL).architecture
    full = forward_flops_of_sample(architecture, SampleShape(tokens=16, height=112))
    assert forward_flops_of_sample(architecture, SampleShape(tokens=16, height=112, images=1)) == full
    two = forward_flops_of_sample(architecture, SampleShape(tokens=16, height=112, images=2))
    tower = 5_554_176 + 2_818_048
    assert two - full == tower


def test_an_image_leaves_a_position_for_four_patches():
    architecture = import_config(PUBLISHED).architecture
    assert forward_pass(architecture, SampleShape(tokens=9, height=448), decodes=True).positions == 16**2
    video = SampleShape(tokens=9, height=448, frames=8)
    assert forward_pass(architecture, video, decodes=True).positions == 4 * 16**2


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"moe_num_experts": [64, 32]}, "CONFIG_FIELD_UNSUPPORTED", "/moe_num_experts"),
        ({"moe_num_experts": [64, 64, 64]}, "CONFIG_FIELD_INVALID", "/moe_num_experts"),
        ({"moe_layer_start_index": [1, 3]}, "CONFIG_FIELD_UNSUPPORTED", "/moe_layer_start_index"),
        ({"moe_layer_end_index": [27, 20]}, "CONFIG_FIELD_UNSUPPORTED", "/moe_layer_end_index"),
        ({"moe_layer_end_index": None}, "CONFIG_FIELD_MISSING", "/moe_layer_end_index"),
        ({"moe_layer_interval": 2}, "CONFIG_FIELD_UNSUPPORTED", "/moe_layer_interval"),
        ({"moe_intermediate_size": None}, "CONFIG_FIELD_MISSING", "/moe_intermediate_size"),
        ({"moe_intermediate_size": [1536]}, "CONFIG_FIELD_INVALID", "/moe_intermediate_size"),
        ({"moe_num_shared_experts": None}, "CONFIG_FIELD_MISSING", "/moe_num_shared_experts"),
        ({"use_bias": True}, "CONFIG_FIELD_UNSUPPORTED", "/use_bias"),
        ({"use_temporal_conv": False}, "CONFIG_FIELD_UNSUPPORTED", "/use_temporal_conv"),
        ({"temporal_conv_size": None}, "CONFIG_FIELD_MISSING", "/temporal_conv_size"),
        ({"spatial_conv_size": 4}, "CONFIG_FIELD_UNSUPPORTED", "/vision_config"),
        (
            {"vision_config": {**PUBLISHED["vision_config"], "embed_dim": 640}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/vision_config/embed_dim",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**PUBLISHED, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
