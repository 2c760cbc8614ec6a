"""Towers are counted as PyTorch counts them, for published and for random configurations."""

import json
from pathlib import Path

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.profile import build_profile

COUNTED = json.loads((Path(__file__).parents[1] / "oracles" / "tower_counts.json").read_text())["cases"]


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case["name"])
def test_parameters_are_counted_as_pytorch_counts_them(case):
    imported = import_config(case["config"])
    assert build_profile(imported.architecture).parameter_count == case["parameter_count"]


def by_name(name):
    return next(case["config"] for case in COUNTED if case["name"] == name)


T5, LLAVA, UNET = by_name("t5-small"), by_name("llava-1.5-7b"), by_name("stable-diffusion-1.5-unet")
DLRM, SWIN, ROBERTA = by_name("dlrm-criteo-1tb"), by_name("swin-base"), by_name("roberta-base")


@pytest.mark.parametrize(
    ("config", "change", "code", "pointer"),
    [
        (T5, {"d_model": 0}, "CONFIG_FIELD_INVALID", "/d_model"),
        (T5, {"architectures": ["T5ForPoetry"]}, "MODEL_CLASS_UNKNOWN", "/architectures/0"),
        (ROBERTA, {"is_decoder": True}, "CONFIG_FIELD_UNSUPPORTED", "/is_decoder"),
        (SWIN, {"num_heads": [4, 8]}, "CONFIG_FIELD_INVALID", "/num_heads"),
        (SWIN, {"depths": "many"}, "CONFIG_FIELD_INVALID", "/depths"),
        (LLAVA, {"text_config": {"model_type": "martian"}}, "MODEL_TYPE_UNKNOWN", "/text_config/model_type"),
        (LLAVA, {"text_config": 7}, "CONFIG_FIELD_INVALID", "/text_config"),
        (
            LLAVA,
            {"text_config": {"model_type": "llama", "hidden_size": -1}},
            "CONFIG_FIELD_INVALID",
            "/text_config/hidden_size",
        ),
        (
            LLAVA,
            {"vision_config": {"model_type": "martian"}},
            "CONFIG_FIELD_UNSUPPORTED",
            "/vision_config/model_type",
        ),
        (
            LLAVA,
            {"vision_config": {"model_type": "clip_vision_model", "image_size": 3}},
            "CONFIG_FIELD_INVALID",
            "/vision_config/image_size",
        ),
        (UNET, {"_class_name": "MartianModel"}, "MODEL_TYPE_UNKNOWN", "/_class_name"),
        (UNET, {"dual_cross_attention": True}, "CONFIG_FIELD_UNSUPPORTED", "/dual_cross_attention"),
        (UNET, {"class_embed_type": "timestep"}, "CONFIG_FIELD_UNSUPPORTED", "/class_embed_type"),
        (UNET, {"down_block_types": ["DownBlock2D"]}, "CONFIG_FIELD_INVALID", "/down_block_types"),
        (
            UNET,
            {"down_block_types": ["DownBlock2D"] * 3 + ["AttnDownBlock2D"]},
            "CONFIG_FIELD_UNSUPPORTED",
            "/down_block_types",
        ),
        (ROBERTA, {"type_vocab_size": -1}, "CONFIG_FIELD_INVALID", "/type_vocab_size"),
        (UNET, {"sample_size": 2**31 - 1}, "CONFIG_FIELD_INVALID", ""),
        (DLRM, {"arch_mlp_bot": "13-512-64"}, "CONFIG_FIELD_INVALID", "/arch_mlp_bot"),
        (DLRM, {"arch_embedding_size": "3-x"}, "CONFIG_FIELD_INVALID", "/arch_embedding_size"),
        (DLRM, {"arch_interaction_op": "sum"}, "CONFIG_FIELD_UNSUPPORTED", "/arch_interaction_op"),
    ],
)
def test_a_bad_configuration_is_refused_by_field(config, change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**config, **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


def test_what_is_left_out_is_reported():
    config = {name: value for name, value in T5.items() if name != "d_kv"}
    assert set(import_config(config).defaulted) == {"d_kv", "relative_attention_num_buckets"}


def test_shared_layers_are_stored_once_and_multiplied_each_time():
    """ALBERT xxlarge: 12 layers of one set of tensors (Lan et al. 2019, table 1)."""
    profile = build_profile(import_config(by_name("albert-xxlarge")).architecture)
    assert profile.block_count == 12
    assert profile.matmul_flops_per_token > 12 * 2 * 4 * 4096**2


def test_a_configuration_of_diffusers_names_its_class():
    imported = import_config(UNET)
    assert (imported.model_type, imported.class_name) == ("UNet2DConditionModel", "UNet2DConditionModel")
    assert imported.context_tokens is None
    assert not {"architectures", "model_type"} & set(imported.defaulted)


def test_the_context_of_a_vision_language_model_is_that_of_its_decoder():
    assert import_config(by_name("qwen3-vl-8b")).context_tokens == 262_144


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("albert-base", "inner_group_num"),
        ("albert-base", "num_hidden_groups"),
        ("stable-diffusion-1.5-unet", "layers_per_block"),
        ("stable-diffusion-vae", "layers_per_block"),
    ],
)
def test_what_would_be_written_out_without_end_is_refused(name, field):
    with pytest.raises(PlanningError) as caught:
        import_config({**by_name(name), field: 2**31 - 1})
    assert caught.value.pointer == f"/{field}"
