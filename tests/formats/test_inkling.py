"""Inkling, against the total of its files and the classes of transformers."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.positions import SampleShape
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

TEXT = {
    "model_type": "inkling_text",
    "hidden_size": 6144,
    "num_hidden_layers": 66,
    "vocab_size": 201_024,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 16,
    "swa_head_dim": 128,
    "d_rel": 16,
    "rel_extent": 1024,
    "sliding_window_size": 512,
    "local_layer_ids": [index for index in range(66) if (index + 1) % 6],
    "model_max_length": 1_048_576,
    "dense_mlp_idx": 2,
    "dense_intermediate_size": 24_576,
    "intermediate_size": 3072,
    "n_routed_experts": 256,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "sconv_kernel_size": 4,
    "use_sconv": True,
    "use_embed_norm": True,
    "use_global_scale": True,
    "q_bias": False,
    "o_bias": False,
}
INKLING = {
    "model_type": "inkling_mm_model",
    "architectures": ["InklingForConditionalGeneration"],
    "text_config": TEXT,
    "audio_config": {"n_mel_bins": 80, "mel_vocab_size": 16},
    "vision_config": {"patch_size": 40, "temporal_patch_size": 2, "n_channels": 3, "n_layers": 4},
}
"""Members of thinkingmachines/Inkling, as converters and engines write them down."""

OF_FILES = 947_117_177_922
"""mlx-community/Inkling-mlx-4bit in data/hf_models.json of llmfit 1.1.17 (MIT): all but layers for drafts."""


def test_parameters_are_those_of_the_files_without_the_biases_of_routers():
    profile = build_profile(import_config(INKLING).architecture)
    assert profile.parameter_count == OF_FILES - 64 * 256
    idle = 64 * 250 * 3 * 6144 * 3072
    assert profile.active_parameter_count == profile.parameter_count - idle


def test_layers_with_a_window_keep_twice_the_heads():
    profile = build_profile(import_config(INKLING).architecture)
    tokens, head = 100_000.0, 2 * 128 * 2
    expected = head * (11 * 8 * tokens + 55 * 16 * 512)
    assert key_value_bytes(profile, tokens, NumberFormat.BF16) == expected
    assert not profile.unserved_kinds


def test_kinds_are_those_that_are_listed():
    listed = {
        **TEXT,
        "layer_types": ["hybrid" if not (index + 1) % 6 else "hybrid_sliding" for index in range(66)],
        "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 64,
    }
    del listed["local_layer_ids"], listed["dense_mlp_idx"]
    assert import_config(listed).architecture == import_config(TEXT).architecture
    assert import_config(TEXT).context_tokens == 1_048_576


def test_a_patch_is_joined_in_steps_of_sides():
    architecture = import_config(INKLING).architecture
    (seen,) = [block for block in architecture.list_blocks() if block.over == ("image",)]
    matrices = [(layer.input_size, layer.output_size) for layer in seen.layers if layer.kind == "linear"]
    assert matrices == [(75, 128), (512, 320), (5120, 4800), (9600, 6144)]
    positions = forward_pass(architecture, SampleShape(tokens=5, height=800, audio_frames=50), decodes=True)
    assert positions.positions == 20**2 + 50


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"q_bias": True}, "UNSUPPORTED", "/q_bias"),
        ({"use_sconv": False}, "UNSUPPORTED", "/use_sconv"),
        ({"layer_types": ["full_attention"] * 66}, "UNSUPPORTED", "/layer_types"),
        ({"swa_num_key_value_heads": 7}, "INVALID", "/num_key_value_heads"),
    ],
)
def test_what_is_not_known_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**TEXT, **change})
    assert (caught.value.code, caught.value.pointer) == (f"CONFIG_FIELD_{code}", pointer)


def test_a_patch_of_one_pixel_is_refused():
    with pytest.raises(PlanningError) as caught:
        import_config({**INKLING, "vision_config": {"patch_size": 1, "temporal_patch_size": 1}})
    assert caught.value.pointer == "/vision_config/patch_size"
