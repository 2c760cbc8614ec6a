"""Operators of whole models by shape: their FLOPs add up, and their times behave as devices do."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy.devices import scale_by_mixed_clock
from service.evidence.service import (
    load_reference_curves,
    load_shipped_document,
    parse_operator_calibration,
)
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.errors import PlanningError
from service.planning.hardware.calibration import MachineFacts, OperatorQuantity
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import FusedAttention, KernelChoice, OperatorFusion
from service.planning.operators import (
    DeviceMachine,
    OperatorKind,
    OperatorWork,
    TimeBound,
    block_operators,
    block_sample_times,
    block_times,
    build_machine,
    build_operators,
    build_sample_operators,
    build_shard,
    build_widths,
    embedding_operators,
    forward_flops_per_token,
    head_operators,
    matrix_seconds,
    operator_seconds,
    optimizer_operators,
    resolve_choice,
    roofline_point,
    sample_head_operators,
    sum_work,
    wave_rounds,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import (
    TRAINING_RECIPES,
    NumberFormat,
    Optimizer,
    TrainingPrecision,
)
from service.planning.quantity import EvidenceBasis
from service.planning.software.frameworks import Framework
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    LossImplementation,
    Recomputation,
    TrainingWorkload,
)
from service.schemas.architectures import Architecture, to_planning
from tests.asking import shipped

STREAMING = (OperatorKind.MEMORY, OperatorKind.GATHER)
BF16 = NumberFormat.BF16
SEQUENCE = 4096


def workload(**changes) -> TrainingWorkload:
    fields = {
        "sequence_length": SEQUENCE,
        "micro_batch_size": 1,
        "micro_batches": 8,
        "recipe": TRAINING_RECIPES[TrainingPrecision.BF16],
        "optimizer": Optimizer.ADAMW,
        "kernel": AttentionKernel.FLASH,
        "recomputation": Recomputation.NONE,
    }
    return TrainingWorkload(**{**fields, **changes})


def profile(name):
    return shipped().models[name].profile


@cache
def machine(name="h100-sxm") -> DeviceMachine:
    return build_machine(
        shipped().accelerators[name].accelerator, load_reference_curves().calibration.operators
    )


def ideal(peak=989e12, bandwidth=3.35e12, **rates) -> DeviceMachine:
    """A device whose kernels reach both limits, but for what ``rates`` say."""
    known = machine().rates
    free = {
        "matrix_peak": dict.fromkeys(NumberFormat, 1.0),
        "matrix_fill": 0.0,
        "wave_tail": 0.0,
        "kernel_seconds": 0.0,
        "bandwidth": 1.0,
        "attention_peak": 1.0,
        "attention_native_peak": 1.0,
        "attention_first_peak": 1.0,
        "attention_backward": 1.0,
        "attention_context": 0.0,
        "attention_head": 0.0,
        "gather_row": 0.0,
        "scan_peak": 1.0,
        "expert_variation": 0.0,
    }
    facts = MachineFacts(132, 128, 128, "")
    return DeviceMachine(
        dict.fromkeys(NumberFormat, peak), bandwidth, facts, known._replace(**{**free, **rates})
    )


def of_blocks(model, of, layout, *, backward=False, fusion=None):
    """Operators of all blocks with how often each block occurs."""
    shard = build_shard(of.micro_batch_size, of.sequence_length, layout)
    widths = build_widths(of.recipe, of.recipe.compute)
    choice = resolve_choice(model, of, fusion)
    found = [
        (operator, block.repeats)
        for templates, block in zip(model.operators.get_block_templates(choice), model.blocks, strict=True)
        for operator in build_operators(templates, shard, widths, backward=backward)
    ]
    head = head_operators(model, shard, widths, choice, loss=of.loss, backward=backward)
    return [*found, *((operator, 1) for operator in head)]


def multiplied(found):
    return sum(operator.flops * count for operator, count in found if operator.kind not in STREAMING)


def decoders():
    known = {}
    for name, model in shipped().models.items():
        if model.profile.shapes_known and not model.profile.unmodelled_kinds:
            known.setdefault(id(model.profile), name)
    return sorted(known.values())


@pytest.mark.parametrize("name", decoders())
def test_operators_add_up_to_the_flops_of_the_profile(name):
    model = profile(name)
    whole = multiplied(of_blocks(model, workload(), Parallelism()))
    counted = forward_flops_per_token(model, SEQUENCE, skips_masked=True) * SEQUENCE
    assert whole == pytest.approx(counted, rel=1e-9)
    layout = Parallelism(tensor=2, context=2, data=2, sequence_parallel=True)
    assert 4 * multiplied(of_blocks(model, workload(), layout)) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize(("name", "experts"), [("deepseek-v3", 64), ("llama-3.1-405b", 1)])
def test_shards_of_the_largest_models_add_up(name, experts):
    """Each device meets the tokens of its whole expert group, and holds its share of the experts."""
    layout = Parallelism(tensor=4, context=4, data=64, expert=experts, sequence_parallel=True)
    model = profile(name)
    alone = multiplied(of_blocks(model, workload(), Parallelism()))
    assert 16 * multiplied(of_blocks(model, workload(), layout)) == pytest.approx(alone, rel=1e-9)
    counted = forward_flops_per_token(model, SEQUENCE, skips_masked=True) * SEQUENCE
    assert alone == pytest.approx(counted, rel=1e-9)


def test_stored_scores_multiply_what_a_mask_hides():
    model = profile("llama-3-8b")
    stored = multiplied(of_blocks(model, workload(kernel=AttentionKernel.STANDARD), Parallelism()))
    assert stored == pytest.approx(forward_flops_per_token(model, SEQUENCE) * SEQUENCE, rel=1e-9)


def test_the_backward_pass_multiplies_twice_and_a_fused_attention_five_times_for_two():
    model = profile("llama-3-8b")
    forward = of_blocks(model, workload(), Parallelism())
    backward = of_blocks(model, workload(), Parallelism(), backward=True)

    def part(found, kind):
        return sum(operator.flops * count for operator, count in found if operator.kind is kind)

    gemm, attention = OperatorKind.GEMM, OperatorKind.ATTENTION
    assert part(backward, gemm) == pytest.approx(2.0 * part(forward, gemm), rel=1e-12)
    assert part(backward, attention) == pytest.approx(2.5 * part(forward, attention), rel=1e-12)
    standard = workload(kernel=AttentionKernel.STANDARD)
    ratio = multiplied(of_blocks(model, standard, Parallelism(), backward=True)) / multiplied(
        of_blocks(model, standard, Parallelism())
    )
    assert ratio == pytest.approx(2.0, rel=1e-12)


def samples():
    names = {
        "resnet-50": SampleShape(height=224, width=224),
        "vit-large-patch16-224": SampleShape(height=224, width=224),
        "bert-large": SampleShape(tokens=512),
        "t5-large": SampleShape(tokens=114, source_tokens=512),
        "whisper-large-v3": SampleShape(tokens=448, audio_frames=3000),
        "stable-diffusion-2.1-unet": SampleShape(height=512, width=512, source_tokens=77),
        "wan-2.1-14b": SampleShape(height=480, width=832, frames=81, source_tokens=512),
        "dlrm-criteo-1tb": SampleShape(),
    }
    return sorted(names.items())


def of_sample(work, count, widths, *, backward=False):
    """Operators of all blocks and heads with how often each block occurs."""
    layout = Parallelism()
    found = [
        (operator, repeats)
        for stations, repeats in zip(work.blocks, work.repeats, strict=True)
        for operator in block_operators(stations, count, layout, widths, backward=backward)
    ]
    heads = sample_head_operators(work, count, layout, widths, backward=backward)
    return [*found, *((operator, 1) for operator in heads)]


@pytest.mark.parametrize(("name", "sample"), samples())
def test_operators_of_a_sample_add_up(name, sample):
    architecture = to_planning(Architecture.model_validate(shipped().models[name].architecture))
    widths = build_widths(TRAINING_RECIPES[TrainingPrecision.BF16], BF16)
    work = build_sample_operators(architecture, sample, KernelChoice(flash=False))
    forward = of_sample(work, 4.0, widths)
    counted = 4.0 * forward_flops_of_sample(architecture, sample)
    assert multiplied(forward) == pytest.approx(counted, rel=1e-9)
    backward = of_sample(work, 4.0, widths, backward=True)
    assert multiplied(backward) == pytest.approx(2.0 * counted, rel=1e-9)
    assert all(operator.moved_bytes > 0.0 for operator, _ in forward)


@pytest.mark.parametrize(
    ("device", "measured"), [("a100-sxm-80gb", 2470), ("v100-sxm2-16gb", 1200), ("v100-sxm2-32gb", 1156)]
)
def test_resnet_50_of_which_nothing_was_fitted(device, measured):
    """NVIDIA DeepLearningExamples, ResNet-50 v1.5 for PyTorch in mixed precision on one device, images/s."""
    architecture = to_planning(Architecture.model_validate(shipped().models["resnet-50"].architecture))
    widths = build_widths(TRAINING_RECIPES[TrainingPrecision.FP16], NumberFormat.FP16)
    work = build_sample_operators(
        architecture, SampleShape(height=224, width=224), KernelChoice(fusion=OperatorFusion.FUSED)
    )
    seconds = sum(
        count * operator_seconds(operator, machine(device)).seconds
        for backward in (False, True)
        for operator, count in of_sample(work, 256.0, widths, backward=backward)
    )
    assert 256.0 / seconds == pytest.approx(measured, rel=0.15)


def test_a_block_of_a_sample_may_be_run_again():
    architecture = to_planning(
        Architecture.model_validate(shipped().models["vit-large-patch16-224"].architecture)
    )
    widths = build_widths(TRAINING_RECIPES[TrainingPrecision.BF16], BF16)
    work = build_sample_operators(architecture, SampleShape(height=224, width=224), KernelChoice())
    deepest = work.blocks[work.repeats.index(max(work.repeats))]
    kept, again = (
        block_sample_times(
            deepest, 32.0, Parallelism(), widths, machine=machine(), recomputation=recomputation
        )
        for recomputation in (Recomputation.NONE, Recomputation.FULL)
    )
    assert kept.recomputed.seconds == 0.0
    assert again.recomputed == again.forward == kept.forward


def test_frozen_weights_have_no_gradient():
    """The backward pass of LoRA multiplies each frozen matrix once, and its own small ones twice."""
    model = profile("llama-3-8b")
    low_rank = Adaptation(AdaptationKind.LORA, rank=16, targets=frozenset({"query", "value"}))
    found = of_blocks(model, workload(adaptation=low_rank), Parallelism(), backward=True)
    gradients = {operator.name for operator, _ in found if operator.name.endswith("_weight_gradient")}
    assert gradients == {"low_rank_in_weight_gradient", "low_rank_out_weight_gradient"}
    full = of_blocks(model, workload(), Parallelism(), backward=True)
    gemm = sum(o.flops * n for o, n in found if o.kind is OperatorKind.GEMM)
    assert gemm == pytest.approx(
        0.5 * sum(o.flops * n for o, n in full if o.kind is OperatorKind.GEMM), rel=0.01
    )


def test_packed_weights_are_unpacked_in_both_passes():
    model = profile("llama-3-8b")
    of = workload(adaptation=Adaptation(AdaptationKind.QLORA, rank=16, targets=frozenset({"query"})))
    choice, shard = resolve_choice(model, of), build_shard(1, SEQUENCE, Parallelism())
    widths = build_widths(of.recipe, BF16, packed=0.5)
    for backward in (False, True):
        found = build_operators(
            model.operators.get_block_templates(choice)[0], shard, widths, backward=backward
        )
        (unpacked,) = [operator for operator in found if operator.name == "unpacked_weights"]
        weights = model.quantisable_parameters / model.block_count
        assert unpacked.moved_bytes == pytest.approx(2.5 * weights)


def test_fp8_narrows_operands_and_pays_for_casts():
    model = profile("llama-3-8b")
    narrow = workload(recipe=TRAINING_RECIPES[TrainingPrecision.FP8_DELAYED])
    found = of_blocks(model, narrow, Parallelism(tensor=2))
    formats = {operator.name: operator.number_format for operator, _ in found}
    assert formats["query_key_value"] is NumberFormat.FP8
    assert formats["attention"] is formats["head"] is BF16
    assert "casts" in formats
    assert "casts" not in {operator.name for operator, _ in of_blocks(model, workload(), Parallelism())}


def test_eager_kernels_move_more_than_fused_ones_and_those_more_than_compiled_ones():
    model = profile("llama-3-8b")

    def streamed(fusion):
        found = of_blocks(model, workload(), Parallelism(), fusion=fusion)
        moved = [(o.moved_bytes * n, o.kernels * n) for o, n in found if o.kind is OperatorKind.MEMORY]
        return [sum(column) for column in zip(*moved, strict=True)]

    eager, fused, compiled = (
        streamed(fusion) for fusion in (OperatorFusion.EAGER, OperatorFusion.FUSED, OperatorFusion.COMPILED)
    )
    assert eager[0] > 1.5 * fused[0] > 1.5 * compiled[0]
    assert eager[1] > fused[1] > compiled[1]


def test_a_token_of_a_fused_norm_is_read_and_written_once():
    model = profile("llama-3-8b")
    (norm,) = {
        o for o, _ in of_blocks(model, workload(), Parallelism()) if o.name == "norm" and o.kernels == 2
    }
    assert norm.moved_bytes == 2 * SEQUENCE * 4096 * 2 * 2


@pytest.mark.parametrize(
    ("name", "rotary"),
    [("llama-3-8b", True), ("gpt2", False), ("bloom-176b", False), ("mpt-7b", False), ("falcon-40b", True)],
)
def test_queries_and_keys_are_rotated_where_no_position_is_added(name, rotary):
    of = workload(framework=Framework.FSDP)
    assert resolve_choice(profile(name), of).rotary is rotary
    found = {operator.name for operator, _ in of_blocks(profile(name), of, Parallelism())}
    assert ("rotary" in found) is rotary


@pytest.mark.parametrize(("release", "share"), [("first", 0.5), ("second", 0.85), ("native", 0.9)])
def test_each_release_of_fused_attention_is_faster(release, share):
    long = OperatorWork(
        "attention",
        OperatorKind.ATTENTION,
        BF16,
        1e12,
        1e6,
        columns=1e9,
        context=1e9,
        fused=FusedAttention(release),
    )
    achieved = 1e12 / operator_seconds(long, machine("a100-sxm-80gb")).compute_seconds / 312e12
    assert achieved == pytest.approx(share, abs=0.03)


# Waves and tiles.


@pytest.mark.parametrize(
    ("batch", "utilization", "relative"), [(32, 1.0, 1.0), (33, 0.52, 2.0), (64, 1.0, 2.0), (65, 0.68, 3.0)]
)
def test_quantization_of_a_batch_to_tiles_of_32(batch, utilization, relative):
    """The worked table of wave quantization: 33 samples take as long as 64, at 52%."""
    tiled = ideal(wave_tail=1.0)._replace(facts=MachineFacts(1, 32, 32, ""))
    seconds, full = (
        matrix_seconds(rows, 32.0, 1024.0, 1.0, machine=tiled, number_format=BF16) for rows in (batch, 32.0)
    )
    assert batch / 32.0 * full / seconds == pytest.approx(utilization, abs=0.005)
    assert seconds / full == relative


def test_a_hundredth_of_a_wave_costs_a_whole_one():
    """An H100 has 132 multiprocessors; 1.01 waves take 2."""
    assert wave_rounds(1.01 * 132, 132) == 2.0
    assert wave_rounds(132, 132) == 1.0
    assert wave_rounds(1.5 * 132, 132, tail=0.5) == 1.75


def test_few_deep_tiles_are_divided_along_the_depth():
    """A gradient of 768 x 768 weights over 50,000 tokens has 36 tiles for 132 places: each in three parts."""
    whole = ideal(wave_tail=1.0)
    shape = (768.0, 768.0, 49_152.0, 1.0)
    seconds = matrix_seconds(*shape, machine=whole, number_format=BF16)
    assert seconds == pytest.approx(2.0 * 128 * 128 * 132 * 49_152.0 / 3.0 / 989e12)
    shallow = matrix_seconds(768.0, 768.0, 1536.0, 1.0, machine=whole, number_format=BF16)
    assert shallow == pytest.approx(2.0 * 128 * 128 * 132 * 1536.0 / 989e12)


@pytest.mark.parametrize(
    ("name", "side", "number_format", "measured"),
    [
        ("a100-sxm-80gb", 1024, NumberFormat.FP16, 119.4),
        ("a100-sxm-80gb", 2048, NumberFormat.FP16, 221.8),
        ("a100-sxm-80gb", 8192, NumberFormat.FP16, 253.7),
        ("h100-sxm", 1024, NumberFormat.FP8, 274.1),
        ("h100-sxm", 16384, NumberFormat.FP8, 1377.3),
        ("h200-sxm", 2048, NumberFormat.FP8, 1013.4),
    ],
)
def test_published_multiplications(name, side, number_format, measured):
    """Azure AI benchmarking guide: cuBLASLt on random data, back to back and so without ``mixed_clock``."""
    width = {NumberFormat.FP16: 2.0, NumberFormat.FP8: 1.0}[number_format]
    flops = 2.0 * side**3
    square = OperatorWork(
        "gemm",
        OperatorKind.GEMM,
        number_format,
        flops,
        2 * side**2 * width + 2.0 * side**2,
        1.0,
        float(side),
        float(side),
        float(side),
    )
    alone = scale_by_mixed_clock(load_shipped_document()["calibration"]["operators"], -1)
    accelerator = shipped().accelerators[name].accelerator
    device = build_machine(accelerator, parse_operator_calibration(alone))
    assert flops / operator_seconds(square, device).seconds / 1e12 == pytest.approx(measured, rel=0.08)


def test_a_single_token_leaves_a_device_idle_and_a_batch_does_not():
    """Chapter on training, L585: one example 5 to 10% of a device, batches of 32 to 256 80 to 95%."""
    model = profile("gpt-2-xl") if "gpt-2-xl" in shipped().models else profile("llama-2-7b")

    def utilization(sequences):
        of = workload(micro_batch_size=sequences, sequence_length=64)
        found = of_blocks(model, of, Parallelism())
        gemms = [o for o, _ in found if o.kind is OperatorKind.GEMM]
        work = sum_work(gemms, machine("a100-sxm-80gb"))
        return work.flops / work.seconds / 312e12

    assert utilization(1) < 0.35
    assert utilization(256) > 0.75
    assert utilization(1) < utilization(32) < utilization(256)


# Recomputation (notes on gradients, 1D).


def times_of(name, of, layout=None, device="a100-sxm-80gb"):
    model = profile(name)
    shard = build_shard(of.micro_batch_size, of.sequence_length, layout or Parallelism())
    templates = model.operators.get_block_templates(resolve_choice(model, of))[0]
    return block_times(templates, shard, build_widths(of.recipe, of.recipe.compute), of, machine(device))


def test_full_recomputation_is_one_more_forward_pass():
    """A third more of a step, measured 20 to 40%."""
    whole = times_of("llama-2-7b", workload(recomputation=Recomputation.FULL))
    assert whole.recomputed == whole.forward
    kept = whole.forward.seconds + whole.backward.seconds
    assert 1.2 < (kept + whole.recomputed.seconds) / kept < 1.4


def test_selective_recomputation_of_stored_scores_costs_little():
    """Korthikanti et al. 2022, section 6: below a tenth where full recomputation takes a third."""
    of = workload(
        kernel=AttentionKernel.STANDARD,
        recomputation=Recomputation.SELECTIVE,
        framework=Framework.MEGATRON_LM,
        sequence_length=2048,
    )
    times = times_of("gpt-175b", of, Parallelism(tensor=8, sequence_parallel=True))
    share = times.recomputed.seconds / (times.forward.seconds + times.backward.seconds)
    assert 0.02 < share < 0.2


def test_nothing_is_run_again_without_recomputation():
    assert times_of("llama-2-7b", workload()).recomputed.seconds == 0.0


# Experts, tables and the optimizer.


def test_the_busiest_of_many_devices_waits_for_more_tokens():
    model, of = profile("deepseek-v3"), workload()
    found = {}
    for experts in (1, 8, 64):
        layout = Parallelism(data=64, expert=experts)
        chosen = [o for o, _ in of_blocks(model, of, layout) if o.name == "expert_down"]
        found[experts] = chosen[0]
        assert chosen[0].rows == SEQUENCE * experts * 8 / 256
        assert chosen[0].batch == 256 / experts
    assert found[1].deviations == 0.0
    assert found[64].deviations > found[8].deviations > 0.0
    even, uneven = ideal(), ideal(expert_variation=0.3)
    for operator in found.values():
        slower = operator_seconds(operator, uneven).seconds / operator_seconds(operator, even).seconds
        assert slower == pytest.approx(1.0 + 0.3 * operator.deviations)


def test_rows_in_random_order_are_slower_than_a_stream():
    """Notes on kernels, T126: scattered access reaches below 0.6 of a contiguous one."""

    def seconds(row_bytes, kind=OperatorKind.GATHER):
        one = OperatorWork("lookup", kind, BF16, 0.0, 1e9, 1.0, row_bytes=row_bytes)
        return operator_seconds(one, machine()).seconds

    stream = seconds(0.0, OperatorKind.MEMORY)
    assert stream / seconds(64.0) < 0.6
    assert stream / seconds(16384.0) > 0.95


def test_the_optimizer_is_bound_by_what_it_moves():
    moved = {"gradient_bytes": 4e9, "master_bytes": 4e9, "weight_bytes": 2e9, "state_bytes": 8e9}
    fused, listed = (
        sum_work(optimizer_operators(framework=framework, **moved), machine())
        for framework in (Framework.MEGATRON_LM, Framework.FSDP)
    )
    assert fused.moved_bytes == 3 * 4e9 + (4e9 + 2 * 8e9 + 2 * 4e9 + 2e9)
    assert fused.seconds > fused.moved_bytes / 3.35e12
    assert listed.seconds > 1.5 * fused.seconds
    assert fused.compute_bound_seconds == 0.0


def test_table_and_loss():
    model, shard = profile("llama-3-8b"), build_shard(1, SEQUENCE, Parallelism())
    widths = build_widths(TRAINING_RECIPES[TrainingPrecision.BF16], BF16)
    (rows,) = embedding_operators(model, shard, widths)
    assert rows.moved_bytes == 2 * SEQUENCE * 4096 * 2
    choice = resolve_choice(model, workload())
    plain, fused = (
        next(o for o in head_operators(model, shard, widths, choice, loss=loss) if o.name == "loss")
        for loss in (LossImplementation.FP32, LossImplementation.FUSED)
    )
    assert plain.moved_bytes > 2.0 * fused.moved_bytes
    parts = head_operators(model, shard, widths, choice, loss=LossImplementation.CHUNKED)
    chunked = next(o for o in parts if o.name == "head")
    assert (chunked.kernels, chunked.rows) == (8.0, SEQUENCE / 8.0)


# Properties.

KINDS = st.sampled_from(list(OperatorKind))
SIZES = st.floats(1.0, 1e5)


@st.composite
def any_operators(draw):
    rows, columns, depth = draw(SIZES), draw(SIZES), draw(SIZES)
    kind, batch = draw(KINDS), float(draw(st.integers(1, 64)))
    kernels = float(draw(st.integers(1, 4)))
    return OperatorWork(
        "any",
        kind,
        draw(st.sampled_from([BF16, NumberFormat.FP8, NumberFormat.FP16])),
        2.0 * rows * columns * depth * batch * kernels,
        draw(st.floats(1.0, 1e12)),
        kernels,
        rows,
        columns,
        depth,
        batch,
        context=draw(SIZES),
        row_bytes=draw(SIZES),
        deviations=draw(st.floats(0.0, 3.0)),
        backward=draw(st.booleans()),
        fused=draw(st.sampled_from(FusedAttention)),
    )


@given(operator=any_operators(), faster=st.floats(1.0, 100.0))
def test_a_better_device_is_never_slower(operator, faster):
    device = machine()
    seconds = operator_seconds(operator, device).seconds
    peaks = {each: rate * faster for each, rate in device.peak_flops_per_second.items()}
    wider = device._replace(bandwidth_bytes_per_second=faster * device.bandwidth_bytes_per_second)
    assert operator_seconds(operator, wider).seconds <= seconds * (1 + 1e-12)
    assert operator_seconds(operator, device._replace(peak_flops_per_second=peaks)).seconds <= seconds * (
        1 + 1e-12
    )
    fewer = operator._replace(moved_bytes=operator.moved_bytes / faster)
    assert operator_seconds(fewer, device).seconds <= seconds * (1 + 1e-12)


@given(operator=any_operators())
def test_no_operator_beats_the_data_sheet(operator):
    device = machine()
    time = operator_seconds(operator, device)
    assert time.memory_seconds >= operator.moved_bytes / device.bandwidth_bytes_per_second
    if operator.kind not in STREAMING:
        peak = device.peak_flops_per_second[operator.number_format]
        assert time.compute_seconds >= operator.flops / peak * (1 - 1e-12)
        point = roofline_point(operator, device)
        assert point.achieved_flops_per_second <= point.attainable_flops_per_second * (1 + 1e-9)


@given(operator=any_operators())
def test_without_losses_the_roofline_is_left(operator):
    time = operator_seconds(operator._replace(rows=1280.0, columns=1280.0, deviations=0.0), ideal())
    limit = operator.moved_bytes / 3.35e12
    assert time.memory_seconds == pytest.approx(limit)
    assert time.launch_seconds == 0.0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_many_layouts_are_estimated_as_each_alone(data):
    name = data.draw(st.sampled_from(["llama-3-8b", "mixtral-8x7b", "deepseek-v2-lite"]))
    count = 5
    degrees = {
        field: np.array([float(data.draw(st.sampled_from([1, 2, 4, 8]))) for _ in range(count)])
        for field in ("tensor", "context", "data", "expert")
    }
    layouts = Parallelism(**degrees, sequence_parallel=True)
    kernel = data.draw(st.sampled_from(list(AttentionKernel)))
    recomputation = data.draw(st.sampled_from(list(Recomputation)))
    micro_batches = np.array([1.0, 2.0, 3.0, 4.0, 8.0])
    of = workload(kernel=kernel, recomputation=recomputation, micro_batch_size=micro_batches)
    many = times_of(name, of, layouts)
    for place in range(count):
        one = Parallelism(**{field: of[place] for field, of in degrees.items()}, sequence_parallel=True)
        alone = times_of(name, of._replace(micro_batch_size=micro_batches[place]), one)
        for work, single in zip(many, alone, strict=True):
            for column, value in zip(work, single, strict=True):
                assert np.broadcast_to(column, count)[place] == pytest.approx(value, rel=1e-12)


# Which constants answer.


def test_a_generation_without_its_own_rows_takes_the_pooled_ones():
    known = load_reference_curves().calibration.operators
    assert known.get_rates("hopper").basis is EvidenceBasis.REFERENCE
    assert known.get_rates("tpu-v6e").basis is EvidenceBasis.DATASHEET
    pooled = known.find_share(OperatorQuantity.MATRIX_PEAK, "tpu-v6e", BF16)
    assert pooled.runs == 0
    assert known.find_machine("h100-pcie", "hopper").multiprocessors == 114
    assert known.find_machine("h100-sxm", "hopper").multiprocessors == 132


def test_a_part_sustains_its_own_share_of_its_peak_until_it_is_measured():
    """1,822 of 2,500 TFLOP/s of a GB200 are 0.94 of the 1,745 of 2,250 of a B200 (MAMF of ml-engineering)."""
    known, shipped = load_reference_curves().calibration.operators, build_shipped_snapshot().accelerators
    parts = [shipped[name].accelerator for name in ("b200-sxm", "gb200")]
    whole, part = (build_machine(each, known).rates.matrix_peak for each in parts)
    assert part[BF16] / whole[BF16] == pytest.approx((1822 / 2500) / (1745 / 2250), rel=0.01)
    assert part[NumberFormat.FP16] == part[BF16]
    assert part[NumberFormat.FP64] == whole[NumberFormat.FP64]
    bases = {(OperatorQuantity.MATRIX_PEAK, "blackwell", BF16): EvidenceBasis.CALIBRATED_SKU}
    measured = replace(known, bases=bases, _known={})
    own = build_machine(parts[1], measured).rates.matrix_peak
    assert own[BF16] == whole[BF16]
    assert own[NumberFormat.FP8] == part[NumberFormat.FP8]


def test_formats_of_the_same_unit_share_their_constant():
    known = load_reference_curves().calibration.operators
    half, brain = (
        known.find_share(OperatorQuantity.MATRIX_PEAK, "ampere", each) for each in (NumberFormat.FP16, BF16)
    )
    assert half is brain


def test_every_constant_lies_in_its_interval_and_says_where_it_is_from():
    for (quantity, _, _), share in load_reference_curves().calibration.operators.constants.items():
        assert share.low <= share.value <= share.high, quantity
        assert share.source


def test_an_incomplete_calibration_says_so():
    known = load_reference_curves().calibration.operators
    empty = type(known)(constants={}, machines={})
    with pytest.raises(PlanningError, match="is not known"):
        empty.find_share(OperatorQuantity.BANDWIDTH, "hopper")
    with pytest.raises(PlanningError, match="no machine"):
        empty.find_machine("h100-sxm", "hopper")


def test_a_device_without_a_bandwidth_has_no_times():
    accelerator = shipped().accelerators["h100-sxm"].accelerator
    nothing = type(accelerator)(
        id="x",
        generation="hopper",
        capacity_bytes=None,
        bandwidth_bytes_per_second=None,
        peak_flops_per_second=accelerator.peak_flops_per_second,
        power_limit_watts=None,
    )
    assert build_machine(nothing, load_reference_curves().calibration.operators) is None


def test_roofline_points_say_what_binds():
    model = profile("llama-3-8b")
    points = {o.name: roofline_point(o, machine()) for o, _ in of_blocks(model, workload(), Parallelism())}
    assert points["gate_up"].bound is TimeBound.COMPUTE
    assert points["norm"].bound is TimeBound.MEMORY
    assert points["gate_up"].intensity > 295 > points["norm"].intensity
    assert points["gate_up"].attainable_flops_per_second == 989e12
