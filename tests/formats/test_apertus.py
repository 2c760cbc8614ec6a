"""Apertus 1.5, against the total of its files and the classes of transformers."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.positions import SampleShape
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

TEXT = {
    "model_type": "apertus1p5_text",
    "hidden_act": "xielu",
    "hidden_size": 4096,
    "intermediate_size": 21_504,
    "max_position_embeddings": 262_144,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "output_vocab_size": 131_072,
    "vocab_size": 266_752,
    "tie_word_embeddings": False,
}
APERTUS = {
    "model_type": "apertus1p5",
    "architectures": ["Apertus1p5ForConditionalGeneration"],
    "audio_tokenizer_config": {"model_type": "wavtokenizer"},
    "vision_tokenizer_config": {"model_type": "apertus1p5_vision_tokenizer"},
    "text_config": TEXT,
    "tie_word_embeddings": False,
}
"""Members of swiss-ai/Apertus-v1.5-8B, as engines write them down."""

OF_FILES = 8_903_547_555
"""swiss-ai/Apertus-v1.5-8B in data/hf_models.json of llmfit 1.1.17 (MIT)."""

SPEAKING = 72_111_714 - 8_303_104
"""Parameters of WavTokenizer of transformers 5.24 without its encoder."""

CODES = 2 * 4096 * 512 + 4096 + 1
"""Code vectors of sound and their means, which its class keeps beside its parameters."""


def test_parameters_are_those_of_the_files_without_what_speaks():
    profile = build_profile(import_config(APERTUS).architecture)
    assert profile.parameter_count == OF_FILES - SPEAKING - CODES


def test_the_head_has_a_row_for_each_word_alone():
    text = import_config(TEXT)
    assert [head.output_size for head in text.architecture.heads] == [131_072]
    assert (text.class_name, text.context_tokens) == ("Apertus1p5TextForCausalLM", 262_144)
    profile = build_profile(text.architecture)
    assert key_value_bytes(profile, 1000.0, NumberFormat.BF16) == 32 * 2 * 1024 * 2 * 1000


def test_an_image_gives_a_token_for_16_pixels_by_16_and_a_second_of_sound_40():
    architecture = import_config(APERTUS).architecture
    found = forward_pass(architecture, SampleShape(tokens=5, height=512, audio_frames=24_000), decodes=True)
    assert found.positions == 32**2 + 40


@pytest.mark.parametrize(
    ("config", "change", "code", "pointer"),
    [
        (TEXT, {"hidden_act": "silu"}, "UNSUPPORTED", "/hidden_act"),
        (TEXT, {"tie_word_embeddings": True}, "UNSUPPORTED", "/output_vocab_size"),
        (
            APERTUS,
            {"audio_tokenizer_config": {"norm_type": "time_group_norm"}},
            "UNSUPPORTED",
            "/audio_tokenizer_config/norm_type",
        ),
        (
            APERTUS,
            {"audio_tokenizer_config": None, "audio_config": {"compress": 64}},
            "INVALID",
            "/audio_config/compress",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_member(config, change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**config, **change})
    assert (caught.value.code, caught.value.pointer) == (f"CONFIG_FIELD_{code}", pointer)
