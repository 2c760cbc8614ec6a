"""What a served model does: figures that agree with each other, bounds of physics, verdicts on load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asking import ask, codes, gaps, question, shipped

ASSUMED = {"source": "assumed", "utilization": 0.4}
MODELS = ["llama-3.1-8b", "llama-2-13b", "mixtral-8x7b"]
LENGTHS = st.one_of(
    st.integers(1, 8000),
    st.builds(
        lambda mean, sigma: {"distribution": "lognormal", "mean_tokens": mean, "sigma": sigma},
        st.floats(1, 4000),
        st.floats(0.1, 1.5),
    ),
    st.builds(
        lambda tokens: {"distribution": "histogram", "tokens": tokens, "weights": [1.0] * len(tokens)},
        st.lists(st.integers(1, 4000), min_size=1, max_size=5),
    ),
)


def served(model="llama-3.1-8b", accelerator="h100-sxm", count=1, **workload):
    asked = question(model, accelerator, count)
    return {**asked, "workload": {"kind": "inference", **workload}}


def value(answer, name):
    return answer[name]["value"]


def throughput(asked):
    return ask(shipped(), "throughput", asked)


@given(
    st.sampled_from(MODELS),
    st.sampled_from(["h100-sxm", "a100-sxm-80gb", "mi300x"]),
    st.sampled_from(["tensor", "pipeline", "data"]),
    st.sampled_from([1, 2, 8]),
    LENGTHS,
    LENGTHS,
    st.integers(1, 300),
)
def test_a_closed_loop_agrees_with_itself(model, accelerator, axis, count, inputs, outputs, concurrency):
    """Little's law: requests in the system = rate x time that each of them takes."""
    workload = {"input_tokens": inputs, "output_tokens": outputs, "concurrency": concurrency}
    asked = {**served(model, accelerator, count, **workload), "parallelism": {axis: count}}
    answer = throughput(asked)
    requests, lasting = value(answer, "requests_per_second"), value(answer, "request_seconds")
    assert requests * lasting == pytest.approx(concurrency, rel=0.02)
    assert sum(phase["seconds"]["value"] for phase in answer["breakdown"]) == pytest.approx(lasting, rel=1e-9)
    for phase in answer["breakdown"]:
        parts = phase.get("parts", [])
        if parts:
            whole = sum(part["seconds"] for part in parts)
            assert whole == pytest.approx(phase["seconds"]["value"], rel=1e-9)
    tokens = value(answer, "output_tokens_per_second")
    assert value(answer, "output_tokens_per_second_per_device") * count == pytest.approx(tokens)
    assert value(answer, "total_tokens_per_second") > tokens
    assert 0 < value(answer, "utilization") <= 1
    assert requests <= value(answer["saturation"], "most_requests_per_second") * (1 + 1e-6)
