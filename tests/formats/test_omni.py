"""Thinkers of Qwen-Omni, against the values in files and the counter of PyTorch."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile

VISION = {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16}
SMALL = {
    "hidden_size": 2048,
    "intermediate_size": 11_008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "vocab_size": 151_936,
}
SPARSE = {
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 152_064,
    "max_position_embeddings": 65_536,
}


def wrap(model_type, text, width, **vision):
    """A file as it is published: the thinker names a class of its maker's own."""
    return {
        "model_type": model_type,
        "thinker_config": {
            "architectures": ["Qwen2OmniNaViTThinkerForConditionalGeneration"],
            "text_config": text,
            "vision_config": {**vision, "out_hidden_size": width},
            "audio_config": {"output_dim": width},
        },
        "talker_config": {"enabled": True},
    }


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        # LCO-Embedding-Omni 7B and 3B are the thinkers of both alone.
        (wrap("qwen2_5_omni", {}, 3584, **VISION), 8_931_813_888),
        (wrap("qwen2_5_omni", SMALL, 2048, **VISION), 4_703_464_448),
        # Qwen3-Omni 30B A3B Thinking has no talker.
        (wrap("qwen3_omni_moe", SPARSE, 2048), 31_719_205_488),
    ],
)
def test_parameters_of_a_thinker_are_those_of_the_files(config, stored):
    assert build_profile(import_config(config).architecture).parameter_count == stored


def test_a_thinker_is_named_and_what_speaks_is_said_to_be_left_out():
    read = import_config(wrap("qwen3_omni_moe", SPARSE, 2048))
    assert read.class_name == "Qwen3OmniMoeThinkerForConditionalGeneration"
    assert read.left_out == ("talker_config",)
    assert read.context_tokens == 65_536
    assert "thinker_config/audio_config/d_model" in read.defaulted


def test_a_thinker_in_a_file_of_its_own_is_the_same():
    thinker = wrap("qwen2_5_omni", SMALL, 2048, **VISION)["thinker_config"]
    alone = {
        **thinker,
        "model_type": "qwen2_5_omni_thinker",
        "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"],
    }
    whole = import_config(wrap("qwen2_5_omni", SMALL, 2048, **VISION))
    assert import_config(alone).architecture == whole.architecture


TINY = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 50}
HEARD = {**TINY, "num_mel_bins": 20, "output_dim": 48}
CHUNKS = {"n_window": 52, "n_window_infer": 208, "downsample_hidden_size": 6}


@pytest.mark.parametrize(
    ("model_type", "audio", "frames", "counted"),
    [
        ("qwen2_5_omni", HEARD, 200, 7_014_400),
        ("qwen2_5_omni", HEARD, 400, 14_028_800),
        ("qwen3_omni_moe", {**HEARD, **CHUNKS}, 208, 1_426_256),
        ("qwen3_omni_moe", {**HEARD, **CHUNKS}, 416, 2_852_512),
    ],
)
def test_flops_of_an_audio_tower_are_those_that_pytorch_counts(model_type, audio, frames, counted):
    """Small towers of their classes, by the counter of PyTorch 2.13 in transformers 5.24."""
    thinker = {"audio_config": audio, "text_config": {"head_dim": 16}}
    whole = import_config({"model_type": model_type, "thinker_config": thinker}).architecture
    heard = tuple(block for block in whole.list_blocks() if block.over == ("audio",))
    tower = Architecture(inputs=whole.inputs[2:], layers=heard)
    assert forward_flops_of_sample(tower, SampleShape(audio_frames=frames)) == counted


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"architectures": ["Qwen3OmniMoeTalkerModel"]}, "MODEL_CLASS_UNKNOWN", "/architectures/0"),
        ({"thinker_config": None}, "CONFIG_FIELD_MISSING", "/thinker_config"),
        (
            {"thinker_config": {"text_config": {"hidden_size": 0}}},
            "CONFIG_FIELD_INVALID",
            "/thinker_config/text_config/hidden_size",
        ),
        (
            {"thinker_config": {"text_config": SPARSE, "audio_config": {"n_window_infer": 150}}},
            "CONFIG_FIELD_INVALID",
            "/thinker_config/audio_config/n_window_infer",
        ),
    ],
)
def test_a_bad_file_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**wrap("qwen3_omni_moe", SPARSE, 2048), **change})
    assert (caught.value.code, caught.value.pointer) == (code, pointer)
