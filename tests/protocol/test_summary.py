"""What is said of samples, against NumPy and against counting every case."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.protocol.summary import CONFIDENCE, summarize_samples

samples = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=200)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


@given(samples)
def test_order_statistics_are_those_of_numpy(values):
    found = summarize_samples(values)
    assert (found.minimum, found.maximum, found.size) == (min(values), max(values), len(values))
    assert [found.q1, found.median, found.q3] == close(np.percentile(values, [25, 50, 75]).tolist())
    assert found.p95 == np.percentile(values, 95, method="inverted_cdf")
    assert found.p99 == np.percentile(values, 99, method="inverted_cdf")
    middle = np.median(values)
    assert found.median_absolute_deviation == close(np.median(np.abs(np.array(values) - middle)))


@given(samples)
def test_moments_are_those_of_numpy(values):
    found = summarize_samples(values)
    assert found.mean == pytest.approx(np.mean(values), rel=1e-12)
    assert found.standard_deviation == pytest.approx(np.std(values), rel=1e-6, abs=1e-9 * max(values))


@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=100))
def test_drift_is_the_fitted_line_from_end_to_end(values):
    slope = np.polyfit(np.arange(len(values)), values, 1)[0]
    change = slope * (len(values) - 1) / np.median(values)
    assert summarize_samples(values).drift == pytest.approx(change, rel=1e-6, abs=1e-9)


def test_drift_has_the_sign_of_the_change():
    assert summarize_samples([1.0, 1.1, 1.2]).drift == close(0.2 / 1.1)
    assert summarize_samples([1.2, 1.1, 1.0]).drift == close(-0.2 / 1.1)
    assert summarize_samples([1.0, 1.0, 1.0]).drift == 0
    assert summarize_samples([3.0]).drift == 0


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=100).filter(lambda values: len(set(values)) > 1))
def test_autocorrelation_is_that_of_each_sample_with_the_next(values):
    centred = np.array(values) - np.mean(values)
    lagged = np.correlate(centred, centred, "full")
    middle = len(values) - 1
    assert summarize_samples(values).autocorrelation == pytest.approx(
        lagged[middle + 1] / lagged[middle], abs=1e-9
    )


def test_autocorrelation_tells_apart_turns_and_runs():
    assert summarize_samples([1, 2] * 50).autocorrelation < -0.9
    assert summarize_samples([1] * 50 + [2] * 50).autocorrelation > 0.9
    assert summarize_samples([1.0, 1.0, 1.0]).autocorrelation == 0


@given(samples, st.floats(0.1, 1000))
def test_a_summary_scales_with_its_samples(values, factor):
    one, other = summarize_samples(values), summarize_samples([value * factor for value in values])
    assert other.median == pytest.approx(one.median * factor)
    assert other.relative_spread == pytest.approx(one.relative_spread, rel=1e-6, abs=1e-9)
    # Where some samples are far above the median, what they are rounded by is large beside it.
    assert other.drift == pytest.approx(one.drift, rel=1e-6, abs=1e-6 + 1e-12 * one.maximum / one.median)


@given(samples)
def test_figures_stand_in_order(values):
    found = summarize_samples(values)
    assert found.minimum <= found.q1 <= found.median <= found.q3 <= found.maximum
    assert found.minimum <= found.median_low <= found.median <= found.median_high <= found.maximum
    assert found.median <= found.p95 <= found.p99 <= found.maximum


def place(size):
    """Place from below of the lower end of the interval."""
    return int(summarize_samples(range(size)).median_low)


def covered(size, low):
    """How often order statistics ``low`` from either end enclose the median, by all cases at once."""
    tail = cases = 1
    for below in range(low):
        cases = cases * (size - below) // (below + 1)
        tail += cases
    return 1 - Fraction(2 * tail, 2**size)


@pytest.mark.parametrize("size", range(1, 16))
def test_the_interval_of_the_median_by_trying_every_case(size):
    """Each sample lies below or above the true median, with even chances: all 2^n cases are counted.

    The interval has the median in it unless at most `low` samples lie on one side of it.
    """
    low = place(size)
    inside = sum(low < sum(case) < size - low for case in itertools.product((0, 1), repeat=size))
    narrower = sum(low + 1 < sum(case) < size - low - 1 for case in itertools.product((0, 1), repeat=size))
    if size < 6:
        # Not even the whole range is enough: it is given all the same.
        assert low == 0
        assert inside < CONFIDENCE * 2**size
    else:
        assert inside >= CONFIDENCE * 2**size
        assert narrower < CONFIDENCE * 2**size


@pytest.mark.parametrize("size", [*range(16, 200, 7), 500, 999, *range(1000, 1060, 3), 2000, 5001, 20_000])
def test_the_interval_of_the_median_is_sure_enough_and_hardly_wider(size):
    """The narrowest up to 1000 samples; beyond, by the normal distribution, at most one sample wider."""
    low = place(size)
    assert covered(size, low) >= Fraction(95, 100)
    assert covered(size, low + (1 if size <= 1000 else 2)) < Fraction(95, 100)


def test_the_interval_is_the_same_from_both_ends():
    found = summarize_samples(range(101))
    assert found.median_low + found.median_high == 100
