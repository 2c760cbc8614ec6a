"""What a server is asked: lengths and arrivals as they are written, and refusals that name the field."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.planning.inference.lengths import (
    LARGEST_P95_RATIO,
    build_counted_lengths,
    build_lognormal_lengths,
    lognormal_sigma,
)
from service.schemas.load import MOST_SIMULATED
from tests.asking import ask, question, refusal


def served(**workload):
    return {**question("llama-3.1-8b", "h100-sxm"), "workload": {"kind": "inference", **workload}}


def lognormal(**given_members):
    return {"distribution": "lognormal", "mean_tokens": 1000.0, **given_members}


def trace(*times):
    return {"process": "trace", "at_seconds": [float(time) for time in times]}


@pytest.mark.parametrize(
    ("workload", "code", "pointer"),
    [
        (
            {"concurrency": 4, "request_rate_per_second": 1.0},
            "LOAD_CONFLICT",
            "/workload/request_rate_per_second",
        ),
        ({"concurrency": 4, "arrivals": {"process": "poisson"}}, "LOAD_CONFLICT", "/workload/arrivals"),
        ({"arrivals": {"process": "uniform"}}, "RATE_REQUIRED", "/workload/request_rate_per_second"),
        (
            {"arrivals": trace(0, 1), "request_rate_per_second": 1.0},
            "LOAD_CONFLICT",
            "/workload/request_rate_per_second",
        ),
        ({"arrivals": trace(0, 2, 1)}, "NOT_ASCENDING", "/workload/arrivals/at_seconds/2"),
        ({"arrivals": trace(3, 3, 3)}, "NO_RATE", "/workload/arrivals/at_seconds"),
        ({"input_tokens": lognormal()}, "LENGTH_SPREAD", "/workload/input_tokens/sigma"),
        (
            {"output_tokens": lognormal(sigma=1.0, p95_tokens=2000.0)},
            "LENGTH_SPREAD",
            "/workload/output_tokens/sigma",
        ),
        (
            {"input_tokens": lognormal(p95_tokens=900.0)},
            "NO_SUCH_DISTRIBUTION",
            "/workload/input_tokens/p95_tokens",
        ),
        (
            {"input_tokens": lognormal(p95_tokens=4000.0)},
            "NO_SUCH_DISTRIBUTION",
            "/workload/input_tokens/p95_tokens",
        ),
        (
            {"input_tokens": {"distribution": "histogram", "tokens": [1, 2], "weights": [1.0]}},
            "LENGTHS_MISMATCH",
            "/workload/input_tokens/weights",
        ),
        (
            {"output_tokens": {"distribution": "histogram", "tokens": [1, 2], "weights": [0.0, 0.0]}},
            "NO_WEIGHT",
            "/workload/output_tokens/weights",
        ),
        ({"service_levels": {}}, "LEVELS_REQUIRED", "/workload/service_levels"),
        ({"service_levels": {"percentile": 99.0}}, "LEVELS_REQUIRED", "/workload/service_levels"),
        (
            {"speculative": {"method": "ngram"}},
            "ACCEPTANCE_REQUIRED",
            "/workload/speculative/acceptance_rate",
        ),
        ({"speculative": {"tokens": 3}}, "SPECULATION_SOURCE", "/workload/speculative/method"),
        (
            {"speculative": {"method": "mtp", "model": {"source": "catalog", "id": "llama-3.2-1b"}}},
            "SPECULATION_SOURCE",
            "/workload/speculative/method",
        ),
    ],
)
@pytest.mark.parametrize("operation", ["memory", "throughput"])
def test_a_contradiction_names_its_field(snapshot, operation, workload, code, pointer):
    assert refusal(snapshot, operation, served(**workload)) == (code, pointer)


@pytest.mark.parametrize(
    "workload",
    [
        {"input_tokens": {"distribution": "histogram", "tokens": [], "weights": []}},
        {"input_tokens": {"distribution": "histogram", "tokens": [5], "weights": [-1.0]}},
        {"input_tokens": {"distribution": "gamma", "tokens": 5}},
        {"input_tokens": lognormal(sigma=0.0)},
        {"arrivals": trace(1)},
        {"arrivals": trace(-1, 2)},
        {"request_rate_per_second": 0.0},
        {"concurrency": 0},
        {"service_levels": {"request_seconds": 0.0}},
        {"service_levels": {"request_seconds": 1.0, "percentile": 100.0}},
        {"prefix_cache_hit_rate": 1.0},
        {"speculative": {"method": "mtp", "acceptance_rate": 1.5}},
        {"scheduler": "priority"},
    ],
)
def test_what_no_server_is_asked_is_refused_by_the_shape(snapshot, workload):
    with pytest.raises(ValidationError):
        ask(snapshot, "throughput", served(**workload))


@pytest.mark.parametrize(
    ("solver", "code", "pointer"),
    [
        ({"duration_seconds": 10.0, "requests": 10}, "SOLVER_CONFLICT", "/solver/requests"),
        ({"duration_seconds": 1e6}, "SIMULATION_TOO_LONG", "/solver/duration_seconds"),
    ],
)
def test_a_simulation_has_one_length_and_a_bound(snapshot, solver, code, pointer):
    asked = {**served(request_rate_per_second=1.0), "solver": {"kind": "simulated", **solver}}
    assert refusal(snapshot, "throughput", asked) == (code, pointer)
    with pytest.raises(ValidationError):
        ask(
            snapshot, "throughput", {**asked, "solver": {"kind": "simulated", "requests": MOST_SIMULATED + 1}}
        )


@given(st.floats(1, 1e6), st.floats(0.01, 3), st.floats(0.01, 50))
def test_a_lognormal_length_keeps_its_mean_until_it_is_cut(mean, sigma, most_over_mean):
    whole = build_lognormal_lengths(mean, sigma)
    assert math.fsum(whole.weights) == pytest.approx(1.0)
    assert whole.mean >= mean * (1 - 1e-9)
    if whole.values[0] > 1.0:
        assert whole.mean == pytest.approx(mean)
    assert list(whole.values) == sorted(whole.values)
    cut = build_lognormal_lengths(mean, sigma, max(1.0, mean * most_over_mean))
    assert cut.mean <= whole.mean * (1 + 1e-9)
    assert cut.values[-1] <= max(1.0, mean * most_over_mean) * (1 + 1e-9)


@given(st.floats(1.001, LARGEST_P95_RATIO))
def test_a_lognormal_length_has_its_95th_percentile(ratio):
    """P95 of exp(mu + sigma z) over its mean is exp(1.645 sigma - sigma^2 / 2)."""
    sigma = lognormal_sigma(ratio)
    assert math.exp(1.6448536269514722 * sigma - sigma**2 / 2) == pytest.approx(ratio)


@given(st.lists(st.tuples(st.integers(1, 100_000), st.floats(0.001, 1000)), min_size=1, max_size=256))
def test_a_histogram_keeps_its_mean(counts):
    lengths = build_counted_lengths(counts)
    mean = math.fsum(t * w for t, w in counts) / math.fsum(w for _, w in counts)
    assert lengths.mean == pytest.approx(mean)
    assert math.fsum(lengths.weights) == pytest.approx(1.0)
    assert len(lengths.values) <= 24
    assert list(lengths.values) == sorted(set(lengths.values))
