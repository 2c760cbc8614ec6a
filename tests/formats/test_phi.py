"""Phi-4-multimodal, against the values in its files and the counter of PyTorch."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile

PUBLISHED = {
    "model_type": "phi4mm",
    "architectures": ["Phi4MMForCausalLM"],
    "num_attention_heads": 24,
    "tie_word_embeddings": True,
    "sliding_window": 262_144,
    "audio_processor": {
        "config": {
            "attention_dim": 1024,
            "attention_heads": 16,
            "chunk_size": -1,
            "depthwise_seperable_out_channel": 1024,
            "linear_units": 1536,
            "nemo_conv_settings": {"conv_channels": 1024},
            "relative_attention_bias_args": {"t5_bias_max_distance": 500, "type": "t5"},
        }
    },
    "vision_lora": {"r": 256},
    "speech_lora": {"r": 320},
}
TINY = {
    "model_type": "phi4_multimodal",
    "architectures": ["Phi4MultimodalForCausalLM"],
    "hidden_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vision_config": {
        "hidden_size": 32,
        "intermediate_size": 50,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 112,
    },
    "audio_config": {
        "hidden_size": 32,
        "ext_pw_out_channel": 32,
        "depthwise_separable_out_channel": 32,
        "intermediate_size": 30,
        "num_blocks": 2,
        "num_attention_heads": 4,
        "input_size": 20,
        "nemo_conv_channels": 6,
    },
}


def test_parameters_are_those_of_the_files_without_adapters():
    """The files hold 5,574,460,384 values.

    An adapter of rank r adds r times the inputs and outputs of four matrices of each of 32 layers; the mean
    and the deviation of 80 frequencies are buffers.
    """
    read = import_config(PUBLISHED)
    sides = (3072 + 5120) + (3072 + 3072) + (3072 + 2 * 8192) + (8192 + 3072)
    adapters = 32 * (256 + 320) * sides
    assert build_profile(read.architecture).parameter_count == 5_574_460_384 - adapters - 2 * 80
    assert read.left_out == ("vision_lora", "speech_lora")
    assert read.context_tokens == 131_072


def select(architecture, name):
    heard = tuple(block for block in architecture.list_blocks() if block.over == (name,))
    return tuple(shape for shape in architecture.inputs if shape.name == name), heard


def test_flops_of_its_towers_are_those_that_pytorch_counts():
    """Small towers of its class, by the counter of PyTorch 2.13 in transformers 5.24, without projectors.

    The counter runs two convolutions of each block over their padding, two positions of 32 channels.
    """
    whole = import_config(TINY).architecture
    inputs, layers = select(whole, "audio")
    sound = Architecture(inputs=inputs, layers=layers[:-2])
    padding = 2 * 2 * 2 * (32 * 3 + 32 * 32)
    assert forward_flops_of_sample(sound, SampleShape(audio_frames=160)) == 1_391_440 - padding
    inputs, layers = select(whole, "image")
    picture = Architecture(inputs=inputs, layers=layers[:-1])
    assert forward_flops_of_sample(picture, SampleShape(height=112)) == 5_605_632


@pytest.mark.parametrize(
    ("part", "change", "code"),
    [
        ("vision_config", {"image_size": 126}, "CONFIG_FIELD_UNSUPPORTED"),
        ("audio_config", {"chunk_size": 18}, "CONFIG_FIELD_UNSUPPORTED"),
        ("audio_config", {"downsample_rate": 2}, "CONFIG_FIELD_UNSUPPORTED"),
        ("audio_config", {"time_reduction": 6}, "CONFIG_FIELD_INVALID"),
        ("audio_config", {"ext_pw_out_channel": 64}, "CONFIG_FIELD_INVALID"),
    ],
)
def test_what_is_not_known_of_it_is_refused_by_member(part, change, code):
    with pytest.raises(PlanningError) as caught:
        import_config({**TINY, part: {**TINY[part], **change}})
    (name,) = change
    assert (caught.value.code, caught.value.pointer) == (code, f"/{part}/{name}")
