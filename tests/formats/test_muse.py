"""Muse Glimmer, against the total of its files and the class of transformers."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

GLIMMER = {"model_type": "muse_glimmer", "architectures": ["MuseGlimmerForConditionalGeneration"]}
"""Members that the configuration class has by default are those of Muse-Glimmer-30B."""
SMALL = {
    **GLIMMER,
    "text_config": {
        "vocab_size": 99,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 64,
    },
    "vision_config": {
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "pos_emb_height": 8,
        "pos_emb_width": 8,
    },
    "out_hidden_size": 128,
    "projector_hidden_size": 40,
}


def test_parameters_are_those_of_the_files():
    assert build_profile(import_config(GLIMMER).architecture).parameter_count == 29_776_626_688


def test_flops_are_those_that_pytorch_counts():
    """21 tokens, 16 of them those of 64 patches: the counter of PyTorch 2.13 in transformers 5.24."""
    architecture = import_config(SMALL).architecture
    assert build_profile(architecture).parameter_count == 146_512
    assert forward_flops_of_sample(architecture, SampleShape(tokens=21, height=112)) == 11_632_032


def test_three_layers_of_four_keep_a_window():
    profile = build_profile(import_config(GLIMMER).architecture)
    tokens, each = 10_000.0, 2 * 2 * 128 * 2
    assert key_value_bytes(profile, tokens, NumberFormat.BF16) == each * (13 * tokens + 39 * 2048)


def test_blocks_of_the_tower_attend_within_windows_but_in_every_fourth_and_the_last():
    architecture = import_config(GLIMMER).architecture
    windows = [
        layer.window_tokens
        for block in architecture.list_blocks()
        for layer in block.layers * block.count
        if block.over == ("image",) and layer.kind == "attention"
    ]
    assert windows == [None if index % 4 == 3 or index == 49 else 32 * 32 for index in range(50)]
    assert forward_pass(architecture, SampleShape(tokens=5, height=448), decodes=True).positions == 16**2


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"out_hidden_size": 4096}, "/out_hidden_size"),
        ({"vision_config": {"pos_emb_width": 16}}, "/vision_config/pos_emb_width"),
        ({"vision_config": {"layer_types": ["linear"] * 50}}, "/vision_config/layer_types"),
    ],
)
def test_what_is_not_known_is_refused_by_member(change, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**GLIMMER, **change})
    assert (caught.value.code, caught.value.pointer) == ("CONFIG_FIELD_UNSUPPORTED", pointer)
