"""Positions of blocks, against figures that papers and the frameworks' own shapes give."""

import json
from pathlib import Path

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import (
    Attention,
    Convolution,
    LearnedVectors,
    Linear,
    Resampling,
    StateSpace,
)
from service.planning.models.positions import SampleShape, block_positions, forward_flops_of_sample

PATCHES = Convolution(
    input_channels=3, output_channels=8, kernel_height=14, kernel_width=14, stride=14, padded=False
)
IMAGE = ModelInputShape(name="image", kind="image", channels=3, height=336)
ATTENTION = Attention(hidden_size=8, query_heads=2, key_value_heads=2, head_size=4, causal=False)
CROSS = Attention(hidden_size=8, query_heads=2, key_value_heads=2, head_size=4, cross_size=8)
LINEAR = Linear(input_size=8, output_size=8)
CLASS_TOKEN = LearnedVectors(purpose="class_tokens", size=8)


def vision(*behind: LayerBlock, inputs: tuple[ModelInputShape, ...] = (IMAGE,)) -> Architecture:
    stem = LayerBlock(layers=(PATCHES, CLASS_TOKEN), over=("image",), unit=False)
    return Architecture(
        inputs=inputs, layers=(stem, LayerBlock(layers=(ATTENTION,), over=("image",)), *behind)
    )


def test_patches_and_class_token():
    """CLIP ViT-L/14 at 336 pixels: 24 x 24 patches and one class token (Radford et al. 2021)."""
    stem, tower = block_positions(vision(), SampleShape())
    assert (stem.entering, stem.leaving) == (336 * 336, 577)
    assert tower.layers[0] == (577, 577, 577)


def test_each_image_is_a_sequence_of_its_own():
    stem, tower = block_positions(vision(), SampleShape(images=3, height=224, width=448))
    assert (tower.instances, tower.layers[0].context, tower.leaving) == (3, 513, 1539)
    assert stem.entering == 3 * 224 * 448


def test_dropped_tokens_and_merged_neighbours():
    projector = LayerBlock(layers=(Resampling(factor=2, drops_extra_tokens=True), LINEAR), over=("image",))
    assert block_positions(vision(projector), SampleShape())[2].leaving == 144


def test_a_decoder_reads_its_encoder():
    inputs = (
        ModelInputShape(name="text", kind="tokens"),
        ModelInputShape(name="source", kind="source_tokens"),
    )
    architecture = Architecture(
        inputs=inputs,
        layers=(
            LayerBlock(layers=(ATTENTION,), over=("source",), count=2),
            LayerBlock(layers=(ATTENTION, CROSS), over=("text",), reads=("source",), count=2),
        ),
    )
    encoder, decoder = block_positions(architecture, SampleShape(tokens=10, source_tokens=70))
    assert encoder.layers == ((70, 70, 70),)
    assert decoder.layers == ((10, 10, 10), (10, 10, 70))


def test_joined_streams_see_each_other():
    """Stable Diffusion 3 at 1024 pixels: 64 x 64 patches of 128 x 128 latents, and 154 + 256 text tokens."""
    inputs = (
        ModelInputShape(name="latent", kind="latent", channels=16, downsampling=8, height=1024),
        ModelInputShape(name="text", kind="source_tokens", length=410),
    )
    patch = Convolution(
        input_channels=16, output_channels=8, kernel_height=2, kernel_width=2, stride=2, padded=False
    )
    architecture = Architecture(
        inputs=inputs,
        layers=(
            LayerBlock(layers=(patch,), over=("latent",)),
            LayerBlock(layers=(ATTENTION,), over=("latent",), joins=("text",)),
            LayerBlock(layers=(ATTENTION,), over=("text", "latent")),
            LayerBlock(layers=(LINEAR,), over=("latent",), per="sample"),
        ),
    )
    _, double, single, time = block_positions(architecture, SampleShape())
    assert double.layers[0] == (4096, 4096, 4506)
    assert single.layers[0] == (4506, 4506, 4506)
    assert time.layers[0].entering == 1


def test_strides_of_a_residual_stage():
    """ResNet-50 at 224 pixels: 112 behind the stem, 56 behind its pooling, 28 in the second stage."""
    stem = Convolution(input_channels=3, output_channels=64, kernel_height=7, kernel_width=7, stride=2)
    down = Convolution(input_channels=64, output_channels=64, kernel_height=3, kernel_width=3, stride=2)
    beside = Convolution(
        input_channels=64, output_channels=64, kernel_height=1, kernel_width=1, stride=2, shortcut=True
    )
    architecture = Architecture(
        inputs=(ModelInputShape(name="image", kind="image", height=224),),
        layers=(LayerBlock(layers=(stem, Resampling(factor=2))), LayerBlock(layers=(down, beside))),
    )
    first, second = block_positions(architecture, SampleShape())
    assert [layer.leaving for layer in first.layers] == [112**2, 56**2]
    assert [layer.entering for layer in second.layers] == [56**2, 56**2]
    assert second.leaving == 28**2


def test_frames_of_a_causal_autoencoder():
    """CogVideoX: 49 frames of 480 x 720 are 13 x 60 x 90 latents (Yang et al. 2024)."""
    latent = ModelInputShape(
        name="latent", kind="latent", downsampling=8, frame_downsampling=4, height=480, width=720, frames=49
    )
    architecture = Architecture(inputs=(latent,), layers=(LINEAR,))
    assert block_positions(architecture, SampleShape())[0].entering == 13 * 60 * 90


@pytest.mark.parametrize(("name", "pixels"), [("wan-2.1-14b", 8), ("wan-2.2-ti2v-5b", 16)])
def test_cells_of_the_autoencoders_of_wan(name, pixels):
    """Stride of the autoencoder: (4, 8, 8) of Wan 2.1, (4, 16, 16) of Wan 2.2 5B; patches of (1, 2, 2)."""
    config = json.loads((ORACLES / "tower_configs" / f"{name}.json").read_text())
    sample = SampleShape(height=704, width=1280, frames=121, source_tokens=512)
    stem = block_positions(import_config(config).architecture, sample)[0]
    assert stem.leaving == 31 * (704 // pixels // 2) * (1280 // pixels // 2)


@pytest.mark.parametrize(
    ("inputs", "sample", "pointer"),
    [
        ((ModelInputShape(name="image", kind="image"),), SampleShape(), "/height"),
        ((ModelInputShape(name="text", kind="tokens"),), SampleShape(), "/tokens"),
        ((ModelInputShape(name="source", kind="source_tokens"),), SampleShape(tokens=3), "/source_tokens"),
        ((ModelInputShape(name="sound", kind="audio"),), SampleShape(), "/audio_frames"),
    ],
)
def test_what_a_sample_leaves_out_is_named(inputs, sample, pointer):
    with pytest.raises(PlanningError) as caught:
        block_positions(Architecture(inputs=inputs, layers=(LINEAR,)), sample)
    assert (caught.value.code, caught.value.pointer) == ("SAMPLE_FIELD_MISSING", pointer)


def test_an_image_smaller_than_a_patch_is_refused():
    with pytest.raises(PlanningError, match="leaves no position of the sample"):
        block_positions(vision(), SampleShape(height=13))


def test_a_repeated_block_keeps_its_grid():
    block = LayerBlock(layers=(Resampling(factor=2),), count=2)
    with pytest.raises(PlanningError, match="cannot repeat"):
        block_positions(Architecture(inputs=(IMAGE,), layers=(block,)), SampleShape())


ORACLES = Path(__file__).parents[1] / "oracles"
COUNTED = json.loads((ORACLES / "tower_flops.json").read_text())["cases"]
NOT_COUNTED = {
    # The embedding of time and class in the first block runs once more for the last norm.
    "dit-xl-2": 2 * (256 * 1152 + 1152 * 1152),
    # One embedder takes height and width, so its matrices run twice.
    "pixart-alpha-xl-2": 2 * (256 * 384 + 384 * 384),
    # The text's queries of the last block are scored, and what they gather is dropped.
    "stable-diffusion-3-medium": 4 * 1536 * 333 * (4096 + 333),
    # The one product of an image's vector with a text's.
    "siglip-so400m-patch14-384": 2 * 1152,
}


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case["name"])
def test_flops_of_a_sample_are_those_that_pytorch_counts(case):
    config = json.loads((ORACLES / "tower_configs" / f"{case['name']}.json").read_text())
    flops = forward_flops_of_sample(import_config(config).architecture, SampleShape(**case["sample"]))
    assert flops == case["flops"] - NOT_COUNTED.get(case["name"], 0)


def test_flops_of_the_tower_of_glm_flash_are_those_that_pytorch_counts():
    """96 patches of a small tower of its class, by the counter of PyTorch 2.13 in transformers 5.24."""
    config = {
        "model_type": "glm5_next",
        "text_config": {"model_type": "glm5_next_text"},
        "vision_config": {
            "depth": 2,
            "hidden_size": 64,
            "num_heads": 4,
            "intermediate_size": 50,
            "out_hidden_size": 48,
            "projection_intermediate_size": 36,
        },
    }
    whole = import_config(config).architecture
    tower = Architecture(inputs=whole.inputs[1:], layers=whole.layers[:3])
    assert forward_flops_of_sample(tower, SampleShape(height=112, width=168)) == 30_096_384


def test_kinds_scored_elsewhere_are_refused():
    layer = StateSpace(hidden_size=8, inner_size=16, state_size=4, convolution_width=4, time_step_rank=1)
    with pytest.raises(PlanningError, match="state_space"):
        forward_flops_of_sample(
            Architecture(inputs=(ModelInputShape(name="text", kind="tokens"),), layers=(layer,)),
            SampleShape(tokens=3),
        )


def test_a_sample_that_grows_beyond_all_measure_is_refused():
    growing = Resampling(factor=1.0, frame_factor=0.25, count=1_000_000)
    with pytest.raises(PlanningError) as caught:
        block_positions(Architecture(inputs=(IMAGE,), layers=(LayerBlock(layers=(growing,)),)), SampleShape())
    assert caught.value.code == "SAMPLE_TOO_LARGE"


def test_layers_that_change_the_grid_do_not_repeat_without_end():
    narrowing = Convolution(
        input_channels=1, output_channels=1, kernel_height=1, kernel_width=2, padded=False, count=2**31 - 1
    )
    inputs = (ModelInputShape(name="text", kind="tokens"),)
    with pytest.raises(PlanningError) as caught:
        block_positions(
            Architecture(inputs=inputs, layers=(LayerBlock(layers=(narrowing,)),)), SampleShape(tokens=2**31)
        )
    assert caught.value.code == "REPEATED_RESAMPLING"
