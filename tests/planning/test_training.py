import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.evidence.service import load_reference_curves
from service.planning.hardware.curves import build_assumed_efficiency
from service.planning.memory.training import StateBytes
from service.planning.operators import StepFlops, step_flops
from service.planning.parallelism import Parallelism, PipelineSchedule
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis
from service.planning.training import estimate_training_time, iron_law_seconds, weight_traffic_bytes

REFERENCE = StepFlops(2 * 70e9, 4 * 70e9, 0.0)


def test_the_utility_bill_of_a_70_billion_model():
    """8.4e23 FLOPs on 1,000 H100 at half of 989 TFLOP/s: 1.698686e9 s on one, 19.6607 days on all."""
    time = estimate_training_time(
        REFERENCE, peak_flops_per_second=989e12, devices=1000, efficiency=build_assumed_efficiency(0.5, None)
    )
    days = time.seconds_per_token.value * 2e12 / 86_400
    assert days == pytest.approx(19.660712279519156, rel=1e-12)
    assert time.seconds_per_token.basis is EvidenceBasis.ASSUMED
    assert time.model_flops_utilization.value == pytest.approx(0.5)


def test_gpt3_on_1024_a100():
    """3.14e23 FLOPs at 0.45 of 312 TFLOP/s: 25.278 days."""
    seconds = iron_law_seconds(3.14e23, peak_flops_per_second=312e12, utilization=0.45, devices=1024)
    assert seconds / 86_400 == pytest.approx(25.278356893663606)


def test_gpt3_with_recomputation_on_1024_a100_at_140_tflops():
    """Narayanan et al. 2021: 8 P T / (n X) is 33.9 days for 175e9 parameters and 300e9 tokens."""
    flops = step_flops(2 * 175e9, recomputed=2 * 175e9).hardware * 300e9
    seconds = iron_law_seconds(flops, peak_flops_per_second=140e12, utilization=1.0, devices=1024)
    assert seconds / 86_400 == pytest.approx(33.9, rel=0.002)


@pytest.mark.parametrize(
    ("parameters", "tokens", "flops"),
    [(70e9, 2e12, 8.40e23), (2.7e9, 1.4e12, 2.268e22), (1.3e9, 6e9, 4.68e19)],
)
def test_six_operations_for_each_parameter_and_token(parameters, tokens, flops):
    assert step_flops(2 * parameters).model * tokens == pytest.approx(flops)


def test_recomputation_lowers_the_model_share():
    time = estimate_training_time(
        step_flops(10.0, recomputed=10.0),
        peak_flops_per_second=1e3,
        devices=1,
        efficiency=build_assumed_efficiency(0.4, None),
    )
    assert time.hardware_flops_utilization.value == pytest.approx(0.4)
    assert time.model_flops_utilization.value == pytest.approx(0.3)


def test_measured_shares_bring_their_interval():
    efficiency = load_reference_curves().find_training_efficiency("hopper", NumberFormat.BF16, "none")
    time = estimate_training_time(REFERENCE, peak_flops_per_second=989e12, devices=8, efficiency=efficiency)
    share = time.model_flops_utilization
    assert (share.low, share.value, share.high) == pytest.approx((0.318, 0.404, 0.437))
    assert share.basis is EvidenceBasis.REFERENCE


def test_an_unmeasured_generation_takes_the_widest_span():
    efficiency = load_reference_curves().find_training_efficiency("volta", NumberFormat.FP16, "none")
    share = efficiency.utilization
    assert (share.low, share.high, share.basis) == (0.318, 0.56, EvidenceBasis.DATASHEET)


def test_recomputation_has_measurements_of_its_own():
    """A third more operations run at a higher share of the peak: model FLOPs utilization stays."""
    flops = step_flops(10.0, recomputed=10.0)
    for generation in ("ampere", "hopper"):
        shares = [
            estimate_training_time(
                work,
                peak_flops_per_second=1e15,
                devices=8,
                efficiency=load_reference_curves().find_training_efficiency(
                    generation, NumberFormat.BF16, strategy
                ),
            ).model_flops_utilization.value
            for work, strategy in ((step_flops(10.0), "none"), (flops, "full"))
        ]
        assert shares[1] == pytest.approx(shares[0], rel=0.03)


def test_stages_that_wait_lengthen_the_step():
    """Four stages with eight micro-batches wait 3 of 11 slots."""
    layout = Parallelism(pipeline=4)
    assert layout.bubble_share(8) == pytest.approx(3 / 11)
    assert (
        layout._replace(pipeline_schedule=PipelineSchedule.INTERLEAVED, virtual_stages=2).bubble_share(8)
        == 3 / 19
    )
    assert layout._replace(pipeline_schedule=PipelineSchedule.ZERO_BUBBLE).bubble_share(8) == pytest.approx(
        1 / 9
    )
    assert Parallelism().bubble_share(1) == 0.0
    time = estimate_training_time(
        REFERENCE,
        peak_flops_per_second=1e15,
        devices=4,
        efficiency=build_assumed_efficiency(0.5, None),
        bubble_share=layout.bubble_share(8),
    )
    assert time.hardware_flops_utilization.value == pytest.approx(0.5 * 8 / 11)
    phases = {phase.name: phase.seconds.value for phase in time.list_phases(1000)}
    assert phases["bubble"] == pytest.approx(sum(phases.values()) * 3 / 11)


def interleaved_slots(stages, chunks, micro_batches):
    """Slots until the last chunk of the last micro-batch is through, each stage taking groups in turn."""
    groups = [range(micro_batches)[start : start + stages] for start in range(0, micro_batches, stages)]
    order = [(chunk, each) for group in groups for chunk in range(chunks) for each in group]
    ends, free, taken = {}, [0] * stages, [0] * stages
    while min(taken) < len(order):
        for stage in range(stages):
            while taken[stage] < len(order):
                chunk, each = order[taken[stage]]
                before = (stage - 1, chunk, each) if stage else (stages - 1, chunk - 1, each)
                if before[1] >= 0 and before not in ends:
                    break
                free[stage] = ends[stage, chunk, each] = max(free[stage], ends.get(before, 0)) + 1
                taken[stage] += 1
    return max(free)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("chunks", [1, 2, 3, 8])
def test_an_interleaved_pipeline_waits_as_long_as_one_that_is_played_through(stages, chunks):
    layout = Parallelism(
        pipeline=stages, virtual_stages=chunks, pipeline_schedule=PipelineSchedule.INTERLEAVED
    )
    for micro_batches in range(1, 20):
        slots = interleaved_slots(stages, chunks, micro_batches)
        working = micro_batches * chunks
        assert layout.bubble_share(micro_batches) == pytest.approx((slots - working) / slots)


def test_traffic_of_a_step():
    state = StateBytes(weights=2.0, gradients=2.0, master_weights=4.0, optimizer_states=8.0)
    # Two micro-batches: weights read twice and gradients read and written. Then the update reads the
    # gradients, reads and writes master weights and states, and writes the weights.
    assert weight_traffic_bytes(state, state, 2) == 2 * (4 + 4) + 2 + 8 + 16 + 2
    # Without a master copy the weights are read as well.
    plain = state._replace(master_weights=0.0)
    assert weight_traffic_bytes(plain, plain, 1) == 8 + 2 + 4 + 16
    # Sharded over four, the micro-batches still see the whole.
    quarter = StateBytes(*[part / 4 for part in state])
    assert weight_traffic_bytes(quarter, state, 1) == 8 + (2 + 8 + 16 + 2) / 4


forward = st.floats(1e6, 1e15)


@given(forward, st.floats(0, 1), st.floats(0.01, 1), st.integers(1, 10_000), st.floats(1, 1e6))
def test_phases_sum_to_the_step(flops, recomputed, utilization, devices, tokens):
    time = estimate_training_time(
        step_flops(flops, recomputed=flops * recomputed),
        peak_flops_per_second=1e15,
        devices=devices,
        efficiency=build_assumed_efficiency(utilization, None),
    )
    total = sum(phase.seconds.value for phase in time.list_phases(tokens))
    assert total == pytest.approx(time.seconds_per_token.value * tokens, rel=1e-9)


@given(forward, st.floats(0.01, 1), st.integers(1, 10_000), st.floats(1, 10))
def test_more_rate_never_slows_a_step(flops, utilization, devices, factor):
    def seconds(peak, count):
        return estimate_training_time(
            step_flops(flops),
            peak_flops_per_second=peak,
            devices=count,
            efficiency=build_assumed_efficiency(utilization, None),
        ).seconds_per_token.value

    assert seconds(1e15 * factor, devices) <= seconds(1e15, devices)
    assert seconds(1e15, devices + 1) <= seconds(1e15, devices)
