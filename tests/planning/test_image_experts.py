"""Experts that positions of images take in place of those of text: what is held, read and multiplied."""

from dataclasses import replace

import numpy as np
import pytest

from service.evidence.service import load_reference_curves
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.storage import NAMED_FORMATS, PLAIN_FORMATS
from service.planning.inference import IterationBatch, build_iteration_model
from service.planning.inference.encoded import build_decoder_profile
from service.planning.memory.serving import inference_weight_bytes
from service.planning.models.architecture import Architecture, LayerBlock, ModelInputShape
from service.planning.models.layers import Linear, MixtureOfExperts
from service.planning.models.positions import SampleShape, block_positions, forward_flops_of_sample
from service.planning.models.profile import KernelChoice, build_profile
from service.planning.models.profile.sampled import training_profile
from service.planning.operators.samples import build_sample_operators
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.software.engines import EngineName, resolve_rules
from service.planning.workload import InferenceWorkload

HIDDEN, COUNT, TAKEN, OF_TEXT, OF_IMAGES, SHARED = 32, 8, 2, 48, 16, 24
LAYER = MixtureOfExperts(
    hidden_size=HIDDEN,
    expert_count=COUNT,
    experts_per_token=TAKEN,
    expert_inner_size=OF_TEXT,
    image_expert_inner_size=OF_IMAGES,
    shared_inner_size=SHARED,
    router_bias=True,
)
PLAIN = replace(LAYER, image_expert_inner_size=None)
TEXT = ModelInputShape(name="text", kind="tokens")
PICTURE = ModelInputShape(name="image", kind="image", channels=3)
SEEING = Architecture(
    inputs=(TEXT, PICTURE),
    layers=(
        LayerBlock(layers=(Linear(input_size=3, output_size=HIDDEN),), over=("image",), unit=False),
        LayerBlock(layers=(LAYER,), count=3),
    ),
)
SAMPLE = SampleShape(tokens=20, height=2, width=3)
"""Six positions of an image among twenty."""

CATALOG = build_shipped_snapshot()
CALIBRATION = load_reference_curves().calibration
WORKLOAD = InferenceWorkload(
    weight_format=NumberFormat.BF16,
    cache_format=NumberFormat.BF16,
    input_tokens=1024,
    output_tokens=256,
    concurrency=1,
    batched_tokens=8192,
    block_tokens=16,
    memory_fraction=0.9,
    rules=resolve_rules(EngineName.VLLM, None),
)
ERNIE = build_decoder_profile(CATALOG.models["ernie-4.5-vl-28b-a3b"].profile.sampled)
EXPERTS_OF_IMAGES = 27 * 64 * 3 * 2560 * 512
ROUTERS_OF_IMAGES = 27 * (2560 * 64 + 64)


def flops(inner, count):
    each = TAKEN * 3 * HIDDEN * inner + 3 * HIDDEN * SHARED + HIDDEN * COUNT
    return 2 * each * count


def serve(profile, share=0.0):
    return build_iteration_model(
        profile,
        WORKLOAD._replace(image_share=share),
        Parallelism(),
        cluster=Cluster(CATALOG.accelerators["h200-sxm"].accelerator, 1, 1, None),
        calibration=CALIBRATION,
    )


def test_both_kinds_of_experts_are_held_and_one_is_active():
    profile = build_profile(Architecture(layers=(LayerBlock(layers=(LAYER,), count=3),)))
    router, shared = HIDDEN * COUNT + COUNT, 3 * HIDDEN * SHARED
    experts = {inner: COUNT * 3 * HIDDEN * inner for inner in (OF_TEXT, OF_IMAGES)}
    assert profile.parameter_count == 3 * (2 * router + sum(experts.values()) + shared)
    assert profile.active_parameter_count == 3 * (router + experts[OF_TEXT] * TAKEN / COUNT + shared)
    assert profile.matmul_flops_per_token == 3 * flops(OF_TEXT, 1)
    assert profile.expert_parameters == 3 * sum(experts.values())
    assert profile.image_expert_share == OF_IMAGES / (OF_TEXT + OF_IMAGES)


def test_positions_of_images_multiply_experts_of_their_own():
    assert block_positions(SEEING, SAMPLE)[1].images == 6
    projected = 2 * 3 * HIDDEN * 6
    expected = projected + 3 * (flops(OF_TEXT, 14) + flops(OF_IMAGES, 6))
    assert forward_flops_of_sample(SEEING, SAMPLE) == expected
    alone = replace(SEEING, layers=(SEEING.layers[0], LayerBlock(layers=(PLAIN,), count=3)))
    assert forward_flops_of_sample(alone, SAMPLE) == projected + 3 * flops(OF_TEXT, 20)


def test_training_runs_and_keeps_each_kind_over_its_positions():
    stages = build_sample_operators(SEEING, SAMPLE, KernelChoice()).blocks[1]
    assert [stage.positions.entering for stage in stages] == [14, 6]
    profile = training_profile(build_profile(SEEING), SEEING, SAMPLE)
    kept = {inner: TAKEN * inner + SHARED for inner in (OF_TEXT, OF_IMAGES)}
    gated = 3 * (14 * kept[OF_TEXT] + 6 * kept[OF_IMAGES])
    inputs = 14 * kept[OF_TEXT] + 6 * kept[OF_IMAGES]
    assert profile.blocks[0].activations.split_elements == gated + inputs


def test_a_step_of_decoding_reads_experts_of_text_alone():
    plain = serve(CATALOG.models["ernie-4.5-21b-a3b"].profile)
    batch = IterationBatch(8, 8 * 1000)
    for share in (0.0, 0.5):
        time, of_text = serve(ERNIE, share).compute_time(batch), plain.compute_time(batch)
        assert time.flops == pytest.approx(of_text.flops, rel=1e-9)
        beside = 2 * ROUTERS_OF_IMAGES
        assert time.moved_bytes - of_text.moved_bytes == pytest.approx(beside, rel=1e-3)
        assert time.experts == pytest.approx(of_text.experts, rel=1e-6)


def test_a_prompt_with_images_multiplies_their_experts_and_reads_both():
    text, mixed = (
        serve(ERNIE, share).compute_time(IterationBatch(0, 0, 4096, 2048, 1)) for share in (0.0, 0.25)
    )
    fewer = 1024 * 6 * 27 * 2 * 3 * 2560 * (1536 - 512)
    assert text.flops - mixed.flops == pytest.approx(fewer, rel=1e-6)
    # Experts of a thousand positions are all taken; rows of both kinds enter and leave as before.
    assert (
        mixed.moved_bytes > text.moved_bytes + 0.9 * 2 * EXPERTS_OF_IMAGES - 1024 * 6 * 27 * 4 * 2 * 3 * 2560
    )
    full = serve(ERNIE, 1.0).compute_time(IterationBatch(0, 0, 4096, 2048, 1))
    assert full.experts < mixed.experts


def test_many_batches_at_once_take_what_each_takes_alone():
    model = serve(ERNIE, 0.5)
    decoding, prefilled = np.array([0.0, 4.0, 16.0]), np.array([512.0, 0.0, 2048.0])
    together = model.compute_time(IterationBatch(decoding, 1000.0 * decoding, prefilled, 300.0, 1.0))
    for place, (running, computed) in enumerate(zip(decoding, prefilled, strict=True)):
        alone = model.compute_time(IterationBatch(running, 1000.0 * running, computed, 300.0, 1.0))
        assert together.seconds[place] == pytest.approx(alone.seconds)


def test_memory_holds_both_and_formats_pack_both():
    for stored_as, matrix_bytes in (
        (PLAIN_FORMATS[NumberFormat.BF16], 2.0),
        (NAMED_FORMATS["fp8_block_128"], 1.0),
    ):
        stored = inference_weight_bytes(ERNIE, stored_as, Parallelism())
        assert stored.experts == pytest.approx(4 * EXPERTS_OF_IMAGES * matrix_bytes, rel=1e-3)
    divided = inference_weight_bytes(ERNIE, PLAIN_FORMATS[NumberFormat.BF16], Parallelism(data=8, expert=8))
    assert divided.experts == pytest.approx(4 * EXPERTS_OF_IMAGES * 2 / 8)
