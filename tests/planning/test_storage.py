"""Weights at their stored bits, against published sizes."""

import pytest

from service.planning.hardware.storage import (
    GGUF_FORMATS,
    NAMED_FORMATS,
    PLAIN_FORMATS,
    MatrixPath,
    ModelFacts,
)
from service.planning.hardware.storage.gguf import BLOCKS
from service.planning.hardware.storage.named import MXFP4_ENGINE_FORMAT
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import LatentAttention
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from tests.asking import shipped

GIB = 2**30
FORMATS = {**NAMED_FORMATS, **GGUF_FORMATS}


def published(name):
    return shipped().models[name].profile


def stored(name, weight_format):
    return published(name).weights.get_stored_weights(weight_format).total


@pytest.mark.parametrize(
    ("name", "size"), [("llama-3.1-8b", 16_060_522_496), ("llama-3.1-70b", 141_107_412_992)]
)
def test_16_bit_weights_are_the_total_size_of_the_published_index(name, size):
    assert stored(name, PLAIN_FORMATS[NumberFormat.BF16]) == size


@pytest.mark.parametrize(
    ("name", "file_type", "size"),
    [
        # As llama.cpp's benchmark prints them, in logs of public repositories.
        ("llama-3.1-8b", "q4_k_m", 4.58 * GIB),
        ("llama-3.1-8b", "q5_k_m", 5.33 * GIB),
        ("llama-3.1-8b", "q6_k", 6.14 * GIB),
        ("llama-3.1-8b", "q8_0", 7.95 * GIB),
        ("llama-3.1-70b", "q2_k", 24.56 * GIB),
        ("llama-3.1-70b", "q4_k_m", 39.59 * GIB),
        ("llama-3.1-8b", "f16", 14.96 * GIB),
        ("llama-3.1-70b", "f16", 131.42 * GIB),
        ("llama-2-7b", "q4_0", 3.56 * GIB),
        ("llama-2-7b", "q4_k_m", 3.80 * GIB),
    ],
)
def test_mixtures_of_llama_cpp_are_the_published_files(name, file_type, size):
    assert stored(name, GGUF_FORMATS[f"gguf_{file_type}"]) == pytest.approx(size, rel=0.0025)


def test_rows_that_256_does_not_divide_take_blocks_of_32():
    """The 2,880 inputs of a gpt-oss layer: Q4_K becomes Q5_0, Q6_K becomes Q8_0."""
    facts = ModelFacts(8.0, 32, 24, tied=False)
    place = MatrixPath("attention.query", 3, 24, 2880)
    scheme = GGUF_FORMATS["gguf_q4_k_m"].scheme_of(place, facts)
    assert scheme.element_bits == 8 * BLOCKS["q5_0"][0] / 32
    wide = GGUF_FORMATS["gguf_q4_k_m"].scheme_of(place._replace(module="mixture_of_experts.router"), facts)
    assert wide.element_bits == 32


@pytest.mark.parametrize(
    ("name", "weight_format", "gib"),
    [
        # Peak memory of one request without a prompt, from published tables: at least the weights.
        ("llama-2-7b", "bnb_nf4", 4.57e9 / GIB),
        ("llama-2-7b", "bnb_nf4_double_quant", 4.26e9 / GIB),
    ],
)
def test_what_a_device_held_is_little_more_than_the_weights(name, weight_format, gib):
    size = stored(name, FORMATS[weight_format]) / GIB
    assert size < gib < 1.15 * size + 0.6


@pytest.mark.parametrize(
    ("weight_format", "bits"),
    [
        ("gptq_int4_g128", 4 + 20 / 128),
        ("awq_int4_g128", 4 + 20 / 128),
        ("bnb_nf4", 4.5),
        ("bnb_nf4_double_quant", 4 + (8 + 32 / 256) / 64),
        ("nvfp4", 4.5),
        ("fp8_block_128", 8 + 32 / 128**2),
    ],
)
def test_bits_of_a_large_matrix(weight_format, bits):
    facts = ModelFacts(8.0, 0, 80, tied=False)
    scheme = FORMATS[weight_format].scheme_of(MatrixPath("feed_forward.up", 0, 80, 8192), facts)
    assert scheme.compute_bytes(8192, 28672) * 8 / (8192 * 28672) == pytest.approx(bits, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "file", "gib"), [("gpt-oss-20b", 13.76e9, 13.47), ("gpt-oss-120b", 65.25e9, 64.38)]
)
def test_mxfp4_packs_the_experts_alone(name, file, gib):
    """Size of the published checkpoint, and what vLLM reports after it has padded the experts' inputs."""
    inventory = published(name).weights
    assert inventory.get_stored_weights(NAMED_FORMATS["mxfp4"]).total == pytest.approx(file, rel=0.003)
    assert inventory.get_stored_weights(MXFP4_ENGINE_FORMAT).total / GIB == pytest.approx(gib, rel=0.005)


@pytest.mark.parametrize(
    ("name", "weight_format", "size"),
    [
        # As their repositories list them; the second file of Qwen3-4B-FP8 is the head alone.
        ("qwen2.5-1.5b", "awq_int4_g128", 1.61e9),
        ("qwen3-4b", "fp8_block_128", 4.41e9 + 778e6),
        ("qwen2.5-0.5b", "gptq_int8_g128", 610.06 * 2**20),
    ],
)
def test_files_of_tied_models_repeat_the_head_but_those_of_gptq(name, weight_format, size):
    inventory = published(name).weights
    held = inventory.get_stored_weights(NAMED_FORMATS[weight_format])
    assert held.total == pytest.approx(size, rel=0.004)
    assert held.copied == (0.0 if "gptq" in weight_format else held.tied)
    on_device = inference_weight_bytes(published(name), NAMED_FORMATS[weight_format], Parallelism()).total
    assert on_device == held.total - held.copied


def test_the_gate_of_a_shared_expert_is_packed_and_the_scalar_beside_the_router_is_not():
    """Qwen2-57B-A14B: 28 gates of 3,584 x 20,480, and 28 of 3,584 x 1."""
    scheme = NAMED_FORMATS["gptq_int4_g128"].scheme_of
    facts = ModelFacts(7.0, 64, 28, tied=False)
    bits = {
        (matrix.outputs): scheme(MatrixPath(matrix.module, 0, 28, matrix.inputs), facts).element_bits
        for matrix in published("qwen2-57b-a14b").weights.matrices
        if matrix.module.startswith("mixture_of_experts.shared_") and matrix.inputs == 3584
    }
    assert bits == {20_480: 4.0, 1: 16.0}


@pytest.mark.parametrize("name", sorted(shipped().models.keys()))
def test_the_inventory_of_every_model_of_the_catalog_is_its_parameters(name):
    profile = published(name)
    assert (
        profile.weights.get_stored_weights(PLAIN_FORMATS[NumberFormat.FP32]).total
        == 4 * profile.parameter_count
    )


def test_a_parameter_count_alone_has_its_width():
    alone = build_profile_from_count(7 * 10**9)
    assert alone.weights.get_stored_weights(PLAIN_FORMATS[NumberFormat.BF16]).total == 14e9


def test_keys_and_values_are_repeated_beyond_their_heads():
    """Eight heads on 16 devices: each holds one, twice over the group."""
    profile = published("llama-3.1-70b")
    bf16 = PLAIN_FORMATS[NumberFormat.BF16]
    eight, sixteen = (inference_weight_bytes(profile, bf16, Parallelism(tensor=t)).total * t for t in (8, 16))
    once = 2 * 80 * 2 * 8192 * 1024
    assert sixteen - eight == pytest.approx(once, rel=0.01)


def test_the_compressed_side_of_latent_attention_is_not_divided():
    latent = LatentAttention(
        hidden_size=7168,
        query_heads=128,
        query_rank=1536,
        key_value_rank=512,
        rotary_head_size=64,
        plain_head_size=128,
        value_head_size=128,
    )
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(latent,), count=61),)))
    bf16 = PLAIN_FORMATS[NumberFormat.BF16]
    whole = 61 * (7168 * 1536 + 7168 * 576 + 1536 + 512) * 2
    one, eight = (inference_weight_bytes(profile, bf16, Parallelism(tensor=t)).total for t in (1, 8))
    assert eight == pytest.approx((one - whole) / 8 + whole)
