"""Molmo and Molmo 2, against the values in their files and the counter of PyTorch."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile


def build_first(sizes, **members):
    hidden, inner, depth, heads, shared = (int(size) for size in sizes.split())
    return {
        "model_type": "molmo",
        "architectures": ["MolmoForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "vocab_size": 152_064,
        "embedding_size": 152_064,
        "qkv_bias": True,
        "layer_norm_type": "rms",
        "max_position_embeddings": 4096,
        **members,
    }


def build_second(sizes, vocabulary=151_936, **text):
    """A file as it is published: its tower counts two layers that are not in the files."""
    hidden, inner, depth, heads, shared = (int(size) for size in sizes.split())
    return {
        "model_type": "molmo2",
        "architectures": ["Molmo2ForConditionalGeneration"],
        "text_config": {
            "model_type": "molmo2_text",
            "hidden_size": hidden,
            "intermediate_size": inner,
            "num_hidden_layers": depth,
            "num_attention_heads": heads,
            "num_key_value_heads": shared,
            "vocab_size": vocabulary,
            "additional_vocab_size": 128,
            "qkv_bias": False,
            **text,
        },
        "vit_config": {
            "num_hidden_layers": 27,
            "image_default_input_size": [378, 378],
            "image_patch_size": 14,
            "image_num_pos": 729,
        },
        "adapter_config": {
            "vit_layers": [-3, -9],
            "intermediate_size": inner,
            "text_hidden_size": hidden,
        },
    }


D_7B, SECOND_4B = build_first("3584 37888 28 28 4"), build_second("2560 9728 36 32 8")


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        (D_7B, 8_021_025_280),
        (build_first("8192 59136 80 64 8"), 73_308_285_952),
        (SECOND_4B, 4_850_869_200),
        (build_second("4096 12288 36 32 8"), 8_661_703_120),
        (
            build_second("4096 11008 32 32 32", 100_278, qk_norm_type="olmo", norm_after=True),
            7_760_786_896,
        ),
    ],
)
def test_parameters_are_those_of_the_files(config, stored):
    assert build_profile(import_config(config).architecture).parameter_count == stored


def test_flops_of_the_tower_and_its_pool_are_those_that_pytorch_counts():
    """64 patches of a small tower of its class, by the counter of PyTorch 2.13 in transformers 5.24.

    The scores of 16 positions over four patches each, of four heads 8 wide, are left out.
    """
    vision = {
        "hidden_size": 32,
        "intermediate_size": 50,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "image_size": [112, 112],
    }
    adapter = {
        "vision_feature_layer": [2, 0],
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "intermediate_size": 30,
        "text_hidden_size": 48,
    }
    text = {"hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12}
    whole = import_config(
        {"model_type": "molmo2", "text_config": text, "vision_config": vision, "adapter_config": adapter}
    ).architecture
    tower = Architecture(inputs=whole.inputs[1:], layers=whole.layers[:3])
    scores = 4 * 16 * 4 * 4 * 8
    assert forward_flops_of_sample(tower, SampleShape(height=112)) == 7_521_280 - scores


def test_a_picture_of_the_first_is_a_hundred_and_forty_four_positions():
    architecture = import_config(D_7B).architecture
    tower = Architecture(inputs=architecture.inputs[1:], layers=architecture.layers[:3])
    narrow = import_config({**D_7B, "intermediate_size": 2}).architecture
    thin = Architecture(inputs=narrow.inputs[1:], layers=narrow.layers[:3])
    whole, less = (forward_flops_of_sample(each, SampleShape()) for each in (tower, thin))
    # Three matrices between 1,024 and 3,584, of 18,944 columns and of one.
    assert whole - less == 2 * 144 * (18_944 - 1) * (2 * 1024 + 3584)


@pytest.mark.parametrize(
    ("config", "change", "code", "pointer"),
    [
        (D_7B, {"norm_after": True}, "CONFIG_FIELD_UNSUPPORTED", "/norm_after"),
        (D_7B, {"layer_norm_type": "default"}, "CONFIG_FIELD_UNSUPPORTED", "/layer_norm_type"),
        (D_7B, {"moe_num_experts": 64}, "CONFIG_FIELD_UNSUPPORTED", "/moe_num_experts"),
        (D_7B, {"tie_word_embeddings": True}, "CONFIG_FIELD_UNSUPPORTED", "/tie_word_embeddings"),
        (
            SECOND_4B,
            {"text_config": {**SECOND_4B["text_config"], "qk_norm_type": "both"}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/text_config/qk_norm_type",
        ),
        (
            SECOND_4B,
            {"text_config": {**SECOND_4B["text_config"], "use_qk_norm": False}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/text_config/use_qk_norm",
        ),
        (
            SECOND_4B,
            {"adapter_config": {**SECOND_4B["adapter_config"], "vit_layers": "last"}},
            "CONFIG_FIELD_INVALID",
            "/adapter_config/vit_layers",
        ),
        (
            SECOND_4B,
            {"adapter_config": {**SECOND_4B["adapter_config"], "vit_layers": [30]}},
            "CONFIG_FIELD_INVALID",
            "/vit_config/num_hidden_layers",
        ),
        (
            SECOND_4B,
            {"adapter_config": {**SECOND_4B["adapter_config"], "text_hidden_size": 64}},
            "CONFIG_FIELD_INVALID",
            "/adapter_config/text_hidden_size",
        ),
    ],
)
def test_what_is_not_known_of_it_is_refused_by_member(config, change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**config, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
