"""Servers that take what waits in one pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.inference.batching import estimate_closed_batching, estimate_open_batching


def passes(fixed, each):
    return lambda batch: fixed + each * np.asarray(batch, dtype=float)


def simulated(pass_seconds, rate, most, delay=0.0, requests=50_000):
    """Mean, median, 95th and 99th percentile of the latency, and the mean batch."""
    arrivals = np.cumsum(np.random.default_rng(1).exponential(1.0 / rate, requests))
    now, first, latencies, batches = 0.0, 0, [], []
    while first < requests:
        if arrivals[first] > now:
            now = arrivals[first] + delay
        last = min(int(np.searchsorted(arrivals, now, side="right")), first + int(most))
        last = max(last, first + 1)
        now += float(pass_seconds(last - first))
        latencies.append(now - arrivals[first:last])
        batches.append(last - first)
        first = last
    seconds = np.concatenate(latencies)
    return seconds.mean(), *np.percentile(seconds, [50, 95, 99]), np.mean(batches)


@pytest.mark.parametrize(
    ("rate", "most", "delay"),
    [
        (20, 32, 0.0),
        (100, 32, 0.0),
        (400, 32, 0.0),
        (700, 32, 0.0),
        (820, 32, 0.0),
        (60, 1, 0.0),
        (150, 1, 0.0),
        (150, 4, 0.0),
        (100, 32, 0.01),
        (900, 512, 0.0),
    ],
)
def test_formulas_meet_a_simulation(rate, most, delay):
    pass_seconds = passes(0.005, 0.001)
    found = estimate_open_batching(pass_seconds, rate, most, delay)
    mean, p50, p95, p99, batch = simulated(pass_seconds, rate, most, delay)
    assert found.mean_seconds == pytest.approx(mean, rel=0.06)
    assert found.latencies is not None
    measured = np.percentile(found.latencies, [50, 95, 99])
    assert measured[0] == pytest.approx(p50, rel=0.12)
    assert measured[1:] == pytest.approx([p95, p99], rel=0.19)
    assert found.batch == pytest.approx(batch, rel=0.05)


def test_one_at_a_time_is_the_formula_of_pollaczek_and_khinchine():
    """M/D/1: S (1 + rho / (2 (1 - rho)))."""
    found = estimate_open_batching(passes(0.01, 0.0), 50.0, 1.0)
    assert found.mean_seconds == pytest.approx(0.01 * 1.5, rel=0.06)
    assert found.utilization == pytest.approx(0.5, rel=0.02)


@given(
    rate=st.floats(0.1, 900.0),
    most=st.integers(1, 64),
    fixed=st.floats(1e-4, 0.05),
    each=st.floats(1e-5, 0.01),
)
def test_conservation(rate, most, fixed, each):
    found = estimate_open_batching(passes(fixed, each), rate, float(most))
    assert 1.0 - 1e-9 <= found.batch <= most + 1e-9
    assert found.most_requests_per_second <= most / (fixed + each * most) * 1.001
    if found.saturated:
        assert found.latencies is None
        assert found.requests_per_second <= rate * 1.0001
        return
    assert found.requests_per_second == rate
    assert 0.0 < found.utilization <= 1.0 + 1e-9
    assert found.mean_seconds >= fixed + each - 1e-12
    assert found.latencies is not None
    assert np.all(np.diff(found.latencies) >= 0.0)
    assert found.latencies.mean() == pytest.approx(found.mean_seconds, rel=0.05)
    # What passes end is what arrives.
    assert found.utilization / found.pass_seconds * found.batch <= rate * 1.02 + 1e-9


@pytest.mark.parametrize("most", [1, 8, 64])
def test_latency_does_not_fall_with_load(most):
    pass_seconds = passes(0.002, 0.0005)
    peak = most / float(pass_seconds(most))
    means = [
        estimate_open_batching(pass_seconds, share * peak, most).mean_seconds
        for share in (0.1, 0.3, 0.6, 0.9)
    ]
    assert means == sorted(means)


def test_more_than_a_server_can_is_said_so():
    found = estimate_open_batching(passes(0.01, 0.01), 100.0, 4.0)
    assert found.saturated
    assert found.latencies is None
    assert found.most_requests_per_second == pytest.approx(80.0)


def test_a_constant_number_keeps_littles_law():
    for requests in (1.0, 3.0, 8.0, 9.5, 20.0):
        found = estimate_closed_batching(passes(0.01, 0.001), requests, 8.0)
        assert found.requests_per_second * found.mean_seconds == pytest.approx(requests)
        assert found.batch == min(requests, 8.0)


def test_waiting_for_company_fills_batches_at_the_cost_of_latency():
    pass_seconds = passes(0.02, 0.0001)
    at_once, later = (estimate_open_batching(pass_seconds, 30.0, 32.0, delay) for delay in (0.0, 0.05))
    assert later.batch > at_once.batch
    assert later.utilization < at_once.utilization
    assert later.mean_seconds > at_once.mean_seconds
