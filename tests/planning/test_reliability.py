"""Checkpoint intervals, and the time that checkpoints and failures cost."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import Attention, FeedForward
from service.planning.models.profile import build_profile, build_profile_from_count
from service.planning.precision import TRAINING_RECIPES, Optimizer, TrainingPrecision
from service.planning.reliability.interruptions import (
    RecoveryCosts,
    checkpoint_bytes,
    compute_goodput,
    daly_interval_seconds,
    estimate_elapsed_time,
    failure_probability,
    system_mtbf,
    young_interval_seconds,
)
from service.planning.workload import (
    Adaptation,
    AdaptationKind,
    AttentionKernel,
    Recomputation,
    TrainingWorkload,
)

HOUR, DAY = 3600.0, 86_400.0


def workload(precision=TrainingPrecision.BF16, **changes):
    plain = TrainingWorkload(
        sequence_length=2048,
        micro_batch_size=1,
        micro_batches=1,
        recipe=TRAINING_RECIPES[precision],
        optimizer=Optimizer.ADAMW,
        kernel=AttentionKernel.FLASH,
        recomputation=Recomputation.NONE,
    )
    return plain._replace(**changes)


class TestInterval:
    @pytest.mark.parametrize(
        ("mtbf_hours", "minutes", "printed"), [(24, 117, 0.5), (6, 57, 0.5), (0.25, 9.1, 0.05)]
    )
    def test_daly_prints_these(self, mtbf_hours, minutes, printed):
        """Daly 2006, figures 3 to 5: a checkpoint of 5 minutes."""
        assert daly_interval_seconds(300.0, mtbf_hours * HOUR) / 60 == pytest.approx(minutes, abs=printed)

    def test_youngs_is_the_first_order(self):
        assert young_interval_seconds(60.0, 5 * HOUR) == pytest.approx(1469.6938456699068)
        assert daly_interval_seconds(60.0, 5 * HOUR) == pytest.approx(1469.7 * 1.0138 - 60, rel=1e-3)

    @given(st.floats(0.1, 3600.0), st.floats(600.0, 1e7), st.floats(0.0, 3600.0))
    def test_dalys_loses_next_to_nothing_against_the_best(self, stall, mtbf, restart):
        assume(stall < mtbf / 2)
        chosen = compute_goodput(RecoveryCosts(daly_interval_seconds(stall, mtbf), stall, mtbf, restart))
        others = np.geomspace(mtbf * 1e-4, mtbf * 4, 2000)
        best = compute_goodput(RecoveryCosts(others, stall, mtbf, restart)).max()
        assert chosen >= best * (1 - 1e-3)

    @given(st.floats(0.1, 60.0), st.floats(1e5, 1e7))
    def test_youngs_does_where_failures_are_rare(self, stall, mtbf):
        chosen = compute_goodput(RecoveryCosts(young_interval_seconds(stall, mtbf), stall, mtbf))
        others = young_interval_seconds(stall, mtbf) * np.geomspace(0.1, 10, 2001)
        assert chosen >= compute_goodput(RecoveryCosts(others, stall, mtbf)).max() * (1 - 1e-4)

    def test_a_checkpoint_that_takes_longer_than_failures_are_apart(self):
        assert daly_interval_seconds(7200.0, HOUR) == HOUR

    def test_many_take_the_same_arithmetic(self):
        stalls, times = np.array([10.0, 600.0, 9000.0]), np.array([HOUR, DAY, HOUR])
        together = daly_interval_seconds(stalls, times)
        each = [daly_interval_seconds(float(s), float(t)) for s, t in zip(stalls, times, strict=True)]
        assert together == pytest.approx(each)


@given(
    st.floats(1.0, 1e8),
    st.floats(1.0, 1e5),
    st.floats(0.0, 1e4),
    st.floats(1e4, 1e9),
    st.floats(0.0, 1e4),
    st.floats(0.0, 1e4),
)
def test_the_parts_add_up_and_goodput_is_a_share(productive, interval, stall, mtbf, restart, unsaved):  # noqa: PLR0917
    recovery = RecoveryCosts(interval, stall, mtbf, restart, unsaved)
    elapsed = estimate_elapsed_time(productive, recovery)
    assert min(elapsed) >= -1e-9 * elapsed.total
    assert 0.0 < compute_goodput(recovery) <= 1.0
    assert elapsed.productive / elapsed.total == pytest.approx(compute_goodput(recovery))
    assert elapsed.failures == pytest.approx(elapsed.total / mtbf)
    worse = (recovery._replace(mtbf=mtbf / 2), recovery._replace(restart=restart + 60.0))
    assert all(compute_goodput(other) <= compute_goodput(recovery) * (1 + 1e-12) for other in worse)


def test_without_failures_only_checkpoints_cost_time():
    assert compute_goodput(RecoveryCosts(900.0, 100.0)) == pytest.approx(0.9)
    assert compute_goodput(RecoveryCosts(900.0, 100.0, 1e15, 600.0)) == pytest.approx(0.9)


def test_a_simulated_run_takes_the_expected_time():
    """Failures drawn at random, 300 runs of a day of progress: the mean within three standard errors."""
    recovery = RecoveryCosts(interval=1800.0, stall=60.0, mtbf=2 * HOUR, restart=600.0)
    dice = np.random.default_rng(20261122)

    def simulated():
        elapsed, progress, failure = 0.0, 0.0, dice.exponential(recovery.mtbf)

        def passes(seconds):
            nonlocal elapsed, failure
            if failure >= elapsed + seconds:
                elapsed += seconds
                return True
            elapsed = failure
            failure = elapsed + dice.exponential(recovery.mtbf)
            return False

        while progress < DAY:
            if passes(recovery.interval + recovery.stall):
                progress += recovery.interval
            else:
                while not passes(recovery.restart):
                    pass
        return elapsed

    runs = [simulated() for _ in range(300)]
    error = np.std(runs) / np.sqrt(len(runs))
    assert estimate_elapsed_time(DAY, recovery).total == pytest.approx(np.mean(runs), abs=3 * error)


def test_llama_3_kept_more_than_nine_tenths_of_its_time():
    """419 unexpected interruptions in 54 days on 16,384 devices, 2 TB/s of storage (arXiv:2407.21783)."""
    mtbf = 54 * DAY / 419
    assert mtbf * 16_384 / HOUR == pytest.approx(50_677, rel=1e-4)
    stall = 405e9 * 14 / 2e12
    share = compute_goodput(RecoveryCosts(daly_interval_seconds(stall, mtbf), stall, mtbf, 600.0))
    assert 0.9 < share < 0.95


class TestSystem:
    def test_rates_add_up(self):
        assert system_mtbf((10_000, 50_000.0)) == 5.0
        assert system_mtbf((8, 50_000.0), (8, 150_000.0), (2, 100_000.0)) == pytest.approx(4285.714285714)

    def test_a_long_run_on_many_devices_fails(self):
        assert failure_probability(471.86, 50.0) == pytest.approx(0.99992, abs=1e-5)
        assert failure_probability(1.0, 1e9) == pytest.approx(1e-9)


class TestBytes:
    def test_bloom_prints_2_3_tb(self):
        """176,247 million parameters: 329 GB of bf16 weights, 2.3 TB with optimizer states (binary)."""
        profile = build_profile_from_count(176_247_000_000)
        saved = checkpoint_bytes(profile, workload())
        assert saved == 14 * 176_247_000_000
        assert saved / 2**30 / 1000 == pytest.approx(2.3, abs=0.05)
        assert pytest.approx(329, abs=1) == 2 * 176_247_000_000 / 2**30

    def test_fp32_has_no_master_copy(self):
        assert checkpoint_bytes(build_profile_from_count(10**9), workload(TrainingPrecision.FP32)) == 12e9

    def test_a_moving_average_is_saved(self):
        assert checkpoint_bytes(build_profile_from_count(10**9), workload(weight_average=True)) == 18e9

    def test_frozen_weights_are_not(self):
        attention = Attention(hidden_size=64, query_heads=4, key_value_heads=4, head_size=16)
        blocks = LayerBlock(layers=(attention, FeedForward(hidden_size=64, inner_size=256)), count=3)
        profile = build_profile(Architecture(layers=(blocks,)))
        adapted = workload(
            adaptation=Adaptation(AdaptationKind.LORA, rank=4, targets=frozenset({"query", "value"}))
        )
        # Two matrices of rank 4 beside each of two of 64 x 64, in three blocks.
        assert checkpoint_bytes(profile, adapted) == 14 * 3 * 2 * (2 * 64 * 4)
        assert checkpoint_bytes(profile, workload()) == 14 * profile.parameter_count
