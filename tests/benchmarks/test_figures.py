"""The service's figures: from samples alone, the same as the node's, and compared by their intervals."""

from statistics import median
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.benchmarks.figures import (
    ResultFigure,
    RunSamples,
    compare_standings,
    compute_measured,
    compute_run_figure,
    is_metric_matching,
)
from service.benchmarks.repeats import compute_figures
from service.protocol.summary import summarize_samples
from tests.benchmarks.records import COPY, GEMM, POWER, SUITE, record, samples_ns

SAMPLES = st.lists(st.integers(1, 10**10), min_size=1, max_size=50)
FACTORS = st.floats(0.2, 5.0)


def standing(*repeats, clock_hz=None):
    """Of repeats given as samples in nanoseconds."""
    return RunSamples.from_repeats(
        [ResultFigure(1.0, summarize_samples(samples), clock_hz) for samples in repeats]
    )


class TestOfAResult:
    def test_a_gemm_by_hand(self):
        """2 * 512**3 floating point operations in 4 executions of 3 ms: 357.9 GFLOP/s."""
        found = compute_measured(record(1, samples=[12_000_000] * 3, inner_iterations=4))
        assert found.figure == pytest.approx(2 * 512**3 * 4 / 0.012)
        assert found.figure == pytest.approx(89.478e9, rel=1e-4)
        assert found.summary.median == pytest.approx(0.003)

    def test_readings_are_their_figure(self):
        found = compute_measured(record(1, benchmark=POWER, readings=[71.0, 73.0, 72.0]))
        assert (found.figure, found.summary.minimum) == (72.0, 71.0)

    def test_nothing_without_a_measurement(self):
        failed = record(1, status="timeout", failure={"reason": "TIMEOUT"})
        assert compute_measured(failed) is None

    @given(samples=SAMPLES, name=st.sampled_from([GEMM, COPY]), inner=st.integers(1, 10**6))
    def test_it_is_the_figure_of_the_benchmark(self, samples, name, inner):
        found = compute_measured(record(1, benchmark=name, samples=samples, inner_iterations=inner))
        seconds = [sample / 1e9 for sample in samples]
        assert found.figure == SUITE.find_benchmark(name).compute_figure(seconds, inner_iterations=inner)

    @given(samples=SAMPLES, chance=st.randoms(use_true_random=False))
    def test_the_order_of_samples_does_not_matter_to_it(self, samples, chance):
        shuffled = list(samples)
        chance.shuffle(shuffled)
        one, other = (compute_measured(record(1, samples=each)) for each in (samples, shuffled))
        assert one.figure == other.figure
        assert one.summary.median == other.summary.median

    @pytest.mark.parametrize(
        ("name", "given", "fits"),
        [
            (GEMM, {}, True),
            (GEMM, {"readings": [1.0]}, False),
            (POWER, {"readings": [1.0]}, True),
            (POWER, {}, False),
        ],
    )
    def test_times_give_rates_and_readings_themselves(self, name, given, fits):
        assert is_metric_matching(record(1, benchmark=name, **given)) is fits


class TestOfARun:
    def test_three_repeats(self):
        found = compute_run_figure([100.0, 96.0, 101.0])
        assert (found.value, found.lowest, found.highest, found.repeats) == (100.0, 96.0, 101.0, 3)
        assert found.relative_spread == pytest.approx(0.05)

    def test_the_spread_of_one_repeat_is_unknown(self):
        assert compute_run_figure([100.0]).relative_spread is None

    @given(st.lists(st.floats(1e-9, 1e18), min_size=2, max_size=10), st.randoms(use_true_random=False))
    def test_whatever_the_order(self, figures, chance):
        shuffled = list(figures)
        chance.shuffle(shuffled)
        assert compute_run_figure(figures) == compute_run_figure(shuffled)
        found = compute_run_figure(figures)
        assert found.lowest <= found.value == median(figures) <= found.highest
        assert found.relative_spread >= 0


class TestVerdict:
    """[minimum, q3] of all repeats against that of the baseline; samples below are [100, q3 103]."""

    BASE = standing([100, 101, 102, 103, 150])

    @pytest.mark.parametrize(
        ("samples", "expected"),
        [
            ([104, 105, 106, 107, 160], "slower"),
            ([90, 91, 92, 99, 160], "faster"),
            ([100, 101, 102, 103, 150], "same"),
            ([101, 102, 103, 104, 105], "same"),
            ([103, 104, 105, 106, 107], "ambiguous"),
            ([80, 81, 82, 101, 102], "ambiguous"),
        ],
    )
    def test_by_time(self, samples, expected):
        assert compare_standings(self.BASE, standing(samples), is_time=True) == expected

    def test_a_tail_alone_makes_nothing_slower(self):
        assert compare_standings(self.BASE, standing([100, 101, 102, 103, 9000]), is_time=True) == "same"

    def test_a_lower_clock_is_no_slower_kernel(self):
        base = standing([100, 101, 102, 103], clock_hz=1.98e9)
        slow = [[2 * sample for sample in (100, 101, 102, 103)]]
        assert compare_standings(base, standing(*slow, clock_hz=0.99e9), is_time=True) == "ambiguous"
        assert compare_standings(base, standing(*slow, clock_hz=1.98e9), is_time=True) == "slower"
        assert compare_standings(base, standing(*slow), is_time=True) == "slower"

    def test_one_repeat_that_was_slow_widens_the_interval(self):
        base = standing([100, 101, 102], [104, 105, 106])
        assert compare_standings(base, standing([105, 106, 107]), is_time=True) == "ambiguous"
        assert compare_standings(base, standing([108, 109, 110]), is_time=True) == "slower"

    def test_of_readings(self):
        base = standing([70, 71, 72])
        assert compare_standings(base, standing([80, 81, 82]), is_time=False) == "higher"
        assert compare_standings(base, standing([60, 61, 62]), is_time=False) == "lower"
        assert compare_standings(base, standing([70, 71, 72]), is_time=False) == "same"

    def test_clocks_of_some_repeats_are_no_clocks(self):
        repeats = [ResultFigure(1.0, summarize_samples([1.0, 2.0]), clock) for clock in (1e9, None)]
        assert RunSamples.from_repeats(repeats).cycles is None

    @given(SAMPLES, FACTORS, SAMPLES, FACTORS)
    def test_turned_round_it_is_the_opposite(self, one, one_clock, other, other_clock):
        first, second = standing(one, clock_hz=one_clock), standing(other, clock_hz=other_clock)
        there, back = (
            compare_standings(first, second, is_time=True),
            compare_standings(second, first, is_time=True),
        )
        opposite = {"slower": "faster", "faster": "slower"}
        assert back == opposite.get(there, there)

    @given(SAMPLES)
    def test_a_run_is_like_itself(self, samples):
        assert compare_standings(standing(samples), standing(samples), is_time=True) == "same"

    @given(st.integers(1, 100))
    def test_three_percent_are_seen_through_noise_of_one(self, seed):
        base, slow = (samples_ns(middle, seed=seed) for middle in (3_000_000, 3_090_000))
        assert compare_standings(standing(base), standing(slow), is_time=True) == "slower"


def test_of_repeats_of_several_sizes_the_last_size_counts():
    rows = [
        SimpleNamespace(
            benchmark="hbm.copy", work_sha256=size, repeat=repeat, figure=figure, fencing_token=1,
            metric="bytes_per_second", direction="higher", conditions={},
        )
        for repeat, (size, figure) in enumerate([("full", 4.0), ("half", 3.0), ("half", 2.0)], start=1)
    ]  # fmt: skip
    (found,) = compute_figures(rows)
    assert (found["repeats"], found["value"]) == (2, 2.5)
