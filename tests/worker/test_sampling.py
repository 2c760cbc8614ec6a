import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.protocol.suites import BenchmarkSampling
from service.worker.sampling import (
    LEAST_SAMPLE_NS,
    WorkTooShort,
    least_sample_ns,
    resolution_ns,
    take_samples,
    warm_up,
)
from tests.worker.machines import FakeClock, FakeTimed

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


def sampling(**changes):
    return BenchmarkSampling(**{"warmup_seconds": 0.0, "least_seconds": 0.0, "least_samples": 3, **changes})


def warmed(*durations_ns, timer_ns=1, **changes):
    clock = FakeClock()
    timed = FakeTimed(clock, *durations_ns)
    return warm_up(timed, sampling(**changes), timer_ns=timer_ns, clock=clock), timed


def taken(*durations_ns, inner=1, flush_ns=0, **changes):
    clock = FakeClock()
    timed = FakeTimed(clock, *durations_ns, flush_ns=flush_ns)
    return take_samples(timed, sampling(**changes), inner, clock=clock), timed


def test_warm_up_goes_by_time_and_not_by_count():
    warm, timed = warmed(MILLISECOND, warmup_seconds=0.1)
    assert warm.seconds == pytest.approx(0.1)
    assert warm.iterations == sum(timed.calls) == 100
    slower, _ = warmed(10 * MILLISECOND, warmup_seconds=0.1)
    assert slower.iterations == 10


def test_the_first_call_is_told_apart():
    warm, _ = warmed(3 * SECOND, MILLISECOND, warmup_seconds=0.0)
    assert warm.first_call_seconds == 3.0


@pytest.mark.parametrize("execution_ns", [3, 250, 7_000, 99_999, 100_001, 124_000, 200_000, SECOND])
def test_a_sample_lasts_100_microseconds_but_not_needlessly_long(execution_ns):
    warm, _ = warmed(execution_ns)
    sample_ns = warm.inner_iterations * execution_ns
    assert sample_ns >= LEAST_SAMPLE_NS
    assert warm.inner_iterations == 1 or sample_ns <= 2 * LEAST_SAMPLE_NS + execution_ns


def test_a_coarse_timer_needs_longer_samples():
    warm, _ = warmed(1_000, timer_ns=50_000)
    assert warm.inner_iterations * 1_000 >= 200 * 50_000


def test_a_slow_first_call_does_not_stand_for_the_others():
    """Loading took 2 s and the warm-up is over with it; the work itself takes 5 us."""
    warm, _ = warmed(2 * SECOND, 5_000, warmup_seconds=0.5)
    assert warm.inner_iterations * 5_000 >= LEAST_SAMPLE_NS


def test_work_that_gets_faster_gets_more_executions():
    warm, timed = warmed(*[MILLISECOND] * 40, 50_000, warmup_seconds=0.1)
    assert timed.calls[1] == 1
    assert warm.inner_iterations * 50_000 >= LEAST_SAMPLE_NS


def test_the_most_samples_suffice_for_the_least_time():
    rule = sampling(least_seconds=0.5, most_samples=2000)
    assert least_sample_ns(rule, timer_ns=1) * rule.most_samples >= 0.5 * SECOND


def test_work_without_a_time_is_refused():
    with pytest.raises(WorkTooShort):
        warmed(0)


def rested(*durations_ns, degrees=(), **changes):
    """A warm-up of 2 s that waits for rest; the temperature is read at the end of each span."""
    clock, readings = FakeClock(), iter(degrees)
    rule = {"warmup_seconds": 2.0, "most_warmup_seconds": 60.0, **changes}
    return warm_up(
        FakeTimed(clock, *durations_ns),
        sampling(**rule),
        timer_ns=1,
        clock=clock,
        temperature=lambda: next(readings, None),
    )


def test_a_warm_up_goes_on_until_two_spans_have_the_same_rate():
    """Slower from second to second as the device heats up, then steady: spans of 5 s."""
    heating = [int(SECOND / 10 * (1 + 0.002 * step)) for step in range(130)]
    warm = rested(*heating, heating[-1])
    assert warm.rests
    assert sum(heating) / SECOND < warm.seconds < sum(heating) / SECOND + 12
    assert rested(SECOND // 10).seconds == pytest.approx(10, abs=0.3)
    # Nobody asks for rest: the time alone counts.
    assert rested(*heating, most_warmup_seconds=0.0).seconds == pytest.approx(2, abs=0.2)


def test_a_device_that_still_gets_warmer_does_not_rest():
    warm = rested(SECOND // 10, degrees=[40, 50, 58, 62, 63, 63])
    assert warm.rests
    assert warm.seconds == pytest.approx(25, abs=0.5)
    assert rested(SECOND // 10, degrees=[70, 60]).seconds == pytest.approx(10, abs=0.3)


def test_a_warm_up_ends_without_rest_and_says_so():
    swinging = [int(SECOND / 10 * (1.1 if second // 50 % 2 else 1.0)) for second in range(2000)]
    warm = rested(*swinging)
    assert not warm.rests
    assert warm.seconds == pytest.approx(60, abs=0.3)


def test_the_first_sample_never_counts():
    samples, timed = taken(9 * MILLISECOND, MILLISECOND)
    assert samples.samples_ns == [MILLISECOND] * 3
    assert samples.discarded == {"first": 1}
    assert len(timed.calls) == 4


def test_it_stops_at_the_least_samples_once_they_agree():
    samples, _ = taken(MILLISECOND, least_samples=30)
    assert (len(samples.samples_ns), samples.stop_reason) == (30, "spread")


def test_it_goes_on_for_the_least_time():
    samples, _ = taken(MILLISECOND, least_samples=3, least_seconds=0.05)
    assert (len(samples.samples_ns), samples.stop_reason) == (50, "spread")


def test_it_goes_on_while_the_samples_disagree():
    """Ten samples of 1 and 2 ms in turn, then all of 1 ms: the quartiles meet after ten more of these."""
    samples, _ = taken(MILLISECOND, *[MILLISECOND, 2 * MILLISECOND] * 5, MILLISECOND, relative_spread=0.01)
    assert samples.stop_reason == "spread"
    q1, middle, q3 = np.percentile(samples.samples_ns, [25, 50, 75])
    assert (q3 - q1) / middle <= 0.01
    q1, middle, q3 = np.percentile(samples.samples_ns[:-1], [25, 50, 75])
    assert (q3 - q1) / middle > 0.01


def test_the_most_samples_end_it():
    samples, _ = taken(*[MILLISECOND, 2 * MILLISECOND] * 100, most_samples=40)
    assert (len(samples.samples_ns), samples.stop_reason) == (40, "sample_limit")


def test_the_time_limit_counts_the_flushes_too():
    samples, _ = taken(MILLISECOND, flush_ns=9 * MILLISECOND, least_samples=1000, most_seconds=0.2)
    assert (len(samples.samples_ns), samples.stop_reason) == (19, "time_limit")


def test_one_sample_is_taken_however_long_it_is():
    samples, _ = taken(60 * SECOND, most_seconds=15.0)
    assert samples.samples_ns == [60 * SECOND]
    assert samples.stop_reason == "time_limit"


def test_a_sample_of_no_time_is_counted_and_not_kept():
    samples, _ = taken(MILLISECOND, MILLISECOND, 0, MILLISECOND)
    assert samples.samples_ns == [MILLISECOND] * 3
    assert samples.discarded == {"first": 1, "no-time": 1}


def test_only_samples_of_no_time_are_no_measurement():
    clock = FakeClock()
    with pytest.raises(WorkTooShort):
        take_samples(FakeTimed(clock, 0, flush_ns=MILLISECOND), sampling(most_seconds=0.1), 1, clock=clock)


@given(st.lists(st.integers(1, SECOND), min_size=2, max_size=60), st.integers(1, 40), st.floats(0.001, 1))
def test_samples_are_kept_as_taken_and_the_reason_holds(durations, least, spread):
    """Whatever the times, outliers among them, nothing is dropped or put in order, and the reason is true."""
    rule = {"least_samples": least, "relative_spread": spread, "most_samples": 50, "most_seconds": 5.0}
    samples, timed = taken(*durations, **rule)
    kept = samples.samples_ns
    assert kept == [*durations, *[durations[-1]] * 50][1 : len(kept) + 1]
    assert len(timed.calls) == len(kept) + 1
    match samples.stop_reason:
        case "spread":
            q1, middle, q3 = np.percentile(kept, [25, 50, 75])
            assert len(kept) >= least
            assert (q3 - q1) / middle <= spread * (1 + 1e-12)
        case "sample_limit":
            assert len(kept) == 50
        case "time_limit":
            assert timed.clock.now >= 5 * SECOND


def test_the_step_of_the_clock_is_found():
    class Coarse:
        reads = 0

        def __call__(self):
            self.reads += 1
            return self.reads // 7 * 15_000

    assert resolution_ns("host_clock", Coarse()) == 15_000
    assert resolution_ns("cuda_event") == 500
