"""What a served model does: figures that agree with each other, bounds of physics, verdicts on load."""

import contextlib
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.estimates.service import ESTIMATES, NoSoundEstimate, answer_question
from tests.asking import ask, codes, gaps, question, shipped

FEW = settings(max_examples=30)
"""For properties of questions that take hundredths of a second each."""
SOLVED = 0.05
"""What the points of its curve leave unsure of an analytic solution."""
ASSUMED = {"source": "assumed", "utilization": 0.4}
MODELS = ["llama-3.1-8b", "llama-2-13b", "mixtral-8x7b"]
LENGTHS = st.one_of(
    st.integers(100, 8000),
    st.builds(
        lambda mean, sigma: {"distribution": "lognormal", "mean_tokens": mean, "sigma": sigma},
        st.floats(100, 4000),
        st.floats(0.1, 1.5),
    ),
    st.builds(
        lambda tokens: {"distribution": "histogram", "tokens": tokens, "weights": [1.0] * len(tokens)},
        st.lists(st.integers(100, 4000), min_size=1, max_size=5),
    ),
)
HARDLY_WAITING = (
    {"distribution": "lognormal", "mean_tokens": 294.0, "sigma": 1.0},
    {"distribution": "lognormal", "mean_tokens": 299.0, "sigma": 0.25},
)
"""Lengths of which the cache holds 134 requests, more than are served fastest: of 135, one waits."""


def served(model="llama-3.1-8b", accelerator="h100-sxm", count=1, **workload):
    asked = question(model, accelerator, count)
    return {**asked, "workload": {"kind": "inference", **workload}}


def value(answer, name):
    return answer[name]["value"]


def throughput(asked):
    return ask(shipped(), "throughput", asked)


@given(
    st.tuples(st.sampled_from(MODELS), st.sampled_from(["h100-sxm", "a100-sxm-80gb", "mi300x"])),
    st.sampled_from(["tensor", "pipeline", "data"]),
    st.sampled_from([1, 2, 8]),
    st.tuples(LENGTHS, LENGTHS),
    st.integers(1, 300),
)
@example(("llama-2-13b", "a100-sxm-80gb"), "tensor", 1, HARDLY_WAITING, 135)
def test_a_closed_loop_agrees_with_itself(pair, axis, count, lengths, concurrency):
    """Little's law: requests in the system = rate x time that each of them takes."""
    inputs, outputs = lengths
    workload = {"input_tokens": inputs, "output_tokens": outputs, "concurrency": concurrency}
    asked = {**served(*pair, count, **workload), "parallelism": {axis: count}}
    answer = throughput(asked)
    requests, lasting = value(answer, "requests_per_second"), value(answer, "request_seconds")
    assert requests * lasting == pytest.approx(concurrency, rel=1e-6)
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


class TestOneRequest:
    def test_decode_is_bound_by_memory_and_prefill_by_compute(self):
        answer = throughput(served(input_tokens=4000, output_tokens=400))
        bounds = {phase["phase"]: phase["bound"] for phase in answer["breakdown"]}
        assert bounds == {"prefill": "compute", "decode": "memory"}
        assert answer["bottleneck"]["bound"] == "memory"
        assert "MORE_CONCURRENCY" in codes(answer["bottleneck"]["advice"])

    def test_a_token_takes_at_least_as_long_as_streaming_the_weights(self):
        """Llama 3.1 8B in BF16 is 16.06 GB; an H100 moves at most 3.35 TB/s: 4.8 ms."""
        answer = throughput(served(input_tokens=1, output_tokens=100))
        assert value(answer, "time_per_output_token_seconds") > 15.0e9 / 3.35e12

    def test_one_token_has_no_time_to_the_next(self):
        answer = throughput(served(output_tokens=1))
        assert gaps(answer) == {"/time_per_output_token_seconds": "NOT_APPLICABLE"}
        assert value(answer, "request_seconds") == value(answer, "time_to_first_token_seconds")


class TestLoad:
    def test_requests_beyond_the_cache_wait(self):
        crowded = throughput(served(concurrency=10_000))
        assert "CONCURRENCY_CAPPED" in codes(crowded["warnings"])
        assert crowded["saturation"]["saturated"]
        assert crowded["saturation"]["limit"] == "cache"
        most = value(crowded["saturation"], "most_requests_per_second")
        assert value(crowded, "requests_per_second") == pytest.approx(most)
        assert value(crowded, "mean_queue") > 9000
        more = throughput(served(concurrency=20_000))
        assert value(more, "requests_per_second") == pytest.approx(most, rel=0.01)
        assert value(more, "request_seconds") > value(crowded, "request_seconds")

    def test_the_engine_may_take_fewer_than_the_cache_holds(self):
        answer = throughput(served(concurrency=64, engine={"name": "vllm", "max_num_seqs": 8}))
        assert answer["saturation"]["limit"] == "max_num_seqs"
        assert value(answer, "mean_batch") <= 8
        assert "MORE_SEQUENCES" in codes(answer["bottleneck"]["advice"])

    def test_an_open_loop_serves_what_arrives_until_it_cannot(self):
        calm = throughput(served(request_rate_per_second=1.0))
        assert calm["requests_per_second"]["value"] == pytest.approx(1.0)
        assert not calm["saturation"]["saturated"]
        assert calm["saturation"]["limit"] == "arrivals"
        most = value(calm["saturation"], "most_requests_per_second")
        flooded = throughput(served(request_rate_per_second=2 * most))
        assert flooded["saturation"]["saturated"]
        assert "SATURATED" in codes(flooded["warnings"])
        assert value(flooded, "requests_per_second") == pytest.approx(most, rel=0.01)
        assert value(flooded, "time_to_first_token_seconds") > 100

    def test_prompts_alone_have_a_knee(self):
        """Their requests may be as many at one batch as at the next."""
        rate = {"request_rate_per_second": 25.467370722771907, "arrivals": {"process": "uniform"}}
        asked = served("qwen3-30b-a3b", "gb200", 4, input_tokens=100, output_tokens=1, **rate)
        answer = throughput({**asked, "parallelism": {"tensor": 4}})
        assert answer["saturation"]["knee_concurrency"] > 0.0

    def test_even_arrivals_wait_no_longer_than_chance_ones(self):
        even, chance = (
            throughput(served(request_rate_per_second=20.0, arrivals={"process": process}))
            for process in ("uniform", "poisson")
        )
        assert value(even, "time_to_first_token_seconds") <= value(chance, "time_to_first_token_seconds")

    def test_a_trace_sets_the_rate(self):
        trace = {"process": "trace", "at_seconds": [0.5 * step for step in range(200)]}
        answer = throughput(served(arrivals=trace))
        assert value(answer, "requests_per_second") == pytest.approx(2.0)

    def test_replicas_without_a_request_are_told(self):
        asked = {**served(count=8, concurrency=3), "parallelism": {"data": 8}}
        assert "REPLICAS_IDLE" in codes(throughput(asked)["warnings"])

    def test_a_model_that_does_not_fit_is_answered_with_a_warning(self):
        assert "DOES_NOT_FIT" in codes(throughput(served("llama-2-70b"))["warnings"])


class TestServiceLevels:
    def asked(self, **levels):
        return served(input_tokens=2000, output_tokens=200, concurrency=32, service_levels=levels)

    def test_loose_levels_are_kept_and_tight_ones_are_not(self):
        loose = throughput(self.asked(request_seconds=1e4))
        assert loose["service_level_goodput"]["share"]["value"] == 1.0
        assert loose["service_level_goodput"]["attained"]
        good = loose["service_level_goodput"]["requests_per_second"]["value"]
        assert good == pytest.approx(value(loose, "requests_per_second"))
        tight = throughput(self.asked(request_seconds=1e-3))["service_level_goodput"]
        assert tight["share"]["value"] == 0.0
        assert not tight["attained"]

    def test_the_percentile_decides(self):
        p95 = throughput(self.asked(request_seconds=1e4))["request_seconds_percentiles"]["p95"]
        shares = {}
        for percentile in (50.0, 99.9):
            levels = {"request_seconds": p95, "percentile": percentile}
            shares[percentile] = throughput(self.asked(**levels))["service_level_goodput"]
        assert shares[50.0]["share"]["value"] == pytest.approx(0.95, abs=0.03)
        assert shares[50.0]["attained"]
        assert not shares[99.9]["attained"]


class TestSettings:
    def test_cached_prefixes_shorten_the_first_token(self):
        plain, cached = (
            value(
                throughput(served(input_tokens=4000, prefix_cache_hit_rate=rate)),
                "time_to_first_token_seconds",
            )
            for rate in (0.0, 0.9)
        )
        # 3,600 tokens of 8.03 billion parameters are not computed.
        assert plain - cached > 2 * 8.03e9 * 3600 / 989e12

    def test_accepted_proposals_shorten_a_token(self):
        def each(**speculative):
            workload = {"speculative": speculative} if speculative else {}
            return value(
                throughput(served("deepseek-v3", "h200-sxm", 8, **workload)), "time_per_output_token_seconds"
            )

        good = each(method="ngram", tokens=3, acceptance_rate=0.9)
        poor = each(method="ngram", tokens=3, acceptance_rate=0.1)
        assert good < poor
        assert good < each()

    def test_of_several_proposals_of_a_head_fewer_are_accepted_than_of_one(self):
        """0.85 of the first, 0.75 of each of three: 2.73 tokens a pass, not 3.19."""

        def assumed(tokens):
            speculative = {"method": "mtp", "tokens": tokens}
            found = throughput(served("deepseek-v3", "h200-sxm", 8, speculative=speculative))
            return next(one["detail"] for one in found["warnings"] if one["code"] == "ACCEPTANCE_ASSUMED")

        assert "0.85" in assumed(1)
        assert "0.75" in assumed(3)

    def test_static_batches_wait_for_their_last_request(self):
        lengths = {"distribution": "lognormal", "mean_tokens": 256.0, "sigma": 1.0}
        static, continuous = (
            throughput(served(output_tokens=lengths, concurrency=32, scheduler=scheduler))
            for scheduler in ("static", "continuous")
        )
        assert value(static, "requests_per_second") < value(continuous, "requests_per_second")

    @pytest.mark.parametrize(
        ("horizon", "seconds"),
        [
            ({"duration_seconds": 3600.0}, lambda _rate, _outputs: 3600.0),
            ({"total_requests": 1000}, lambda rate, _outputs: 1000 / rate),
            ({"total_output_tokens": 10**6}, lambda rate, outputs: 10**6 / (rate * outputs)),
        ],
    )
    @pytest.mark.parametrize("load", [{"concurrency": 4}, {"request_rate_per_second": 3.0}])
    def test_each_horizon_gives_a_duration(self, horizon, seconds, load):
        answer = throughput(served(output_tokens=200, horizon=horizon, **load))
        expected = seconds(value(answer, "requests_per_second"), 200)
        assert value(answer, "duration_seconds") == pytest.approx(expected)


class TestAssumed:
    """What a caller assumes is the plain roofline."""

    def test_assumed_bandwidth_defaults_with_a_warning(self):
        answer = throughput({**served(), "efficiency": ASSUMED})
        assert "BANDWIDTH_UTILIZATION_DEFAULTED" in codes(answer["warnings"])
        given = {**served(), "efficiency": {**ASSUMED, "bandwidth_utilization": 0.8}}
        assert codes(throughput(given)["warnings"]) == set()

    def test_it_is_of_a_constant_number_of_requests(self):
        asked = {**served(request_rate_per_second=1.0), "efficiency": ASSUMED}
        assert gaps(throughput(asked))["/requests_per_second"] == "CONCURRENCY_REQUIRED"


class TestGaps:
    def test_a_parameter_count_is_not_served(self):
        asked = served({"source": "parameter_count", "parameter_count": 10**9})
        assert gaps(throughput(asked))["/requests_per_second"] == "ARCHITECTURE_REQUIRED"

    def test_an_unknown_bandwidth_is_a_gap(self):
        asked = served()
        specification = {"peak_flops_per_second": {"bf16": 1e15}}
        asked["cluster"] = {"accelerator": {"source": "specification", "specification": specification}}
        assert gaps(throughput(asked))["/requests_per_second"] == "BANDWIDTH_UNKNOWN"


class TestMemory:
    """Requests that arrive at a rate take the memory of as many as there are."""

    def test_more_arrivals_take_more_of_the_cache(self):
        def cache(rate):
            answer = ask(shipped(), "memory", served(request_rate_per_second=rate, input_tokens=2000))
            parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
            assert "CONCURRENCY_ESTIMATED" in codes(answer["warnings"])
            return parts["kv_cache"]

        assert cache(0.1) < cache(3.0) < cache(10.0)

    def test_without_a_cluster_one_request_is_counted(self):
        asked = served(request_rate_per_second=100.0)
        alone = served(concurrency=1)
        del asked["cluster"], alone["cluster"]
        answer = ask(shipped(), "memory", asked)
        assert "CONCURRENCY_UNKNOWN" in codes(answer["warnings"])
        assert answer["per_device"] == ask(shipped(), "memory", alone)["per_device"]


def test_the_cost_of_what_arrives_is_that_of_its_duration():
    asked = served(
        request_rate_per_second=3.0,
        input_tokens={"distribution": "lognormal", "mean_tokens": 1000.0, "p95_tokens": 3000.0},
        output_tokens={"distribution": "histogram", "tokens": [10, 500], "weights": [1.0, 1.0]},
        horizon={"duration_seconds": 3600.0},
    )
    asked["rental"] = {"price_per_device_hour": {"amount": "3", "currency_code": "USD"}}
    answer = ask(shipped(), "cost", asked)
    assert answer["total"]["amount"] == "3.00"
    # 3 requests a second of 255 tokens for an hour.
    assert float(answer["cost_per_million_tokens"]["amount"]) == pytest.approx(
        3e6 / (3 * 3600 * 255), rel=1e-4
    )
    bill = ask(shipped(), "utility-bill", asked)
    assert bill["energy"]["it_kwh"]["value"] > 0


FASTER = {"bandwidth": "memory_bandwidth_bytes_per_second", "compute": "peak_flops_per_second"}


@FEW
@given(
    st.sampled_from(MODELS),
    st.sampled_from(["bandwidth", "compute"]),
    st.floats(1.01, 4),
    st.tuples(st.integers(1, 4000), st.integers(16, 1000)),
    st.one_of(
        st.builds(lambda n: {"concurrency": n}, st.integers(1, 200)),
        st.builds(lambda rate: {"request_rate_per_second": rate}, st.floats(0.01, 2)),
    ),
)
def test_a_faster_device_never_serves_slower(model, what, factor, lengths, load):
    def device(faster):
        rates = {"memory_bandwidth_bytes_per_second": 2e12, "peak_flops_per_second": {"bf16": 5e14}}
        if faster and what == "bandwidth":
            rates["memory_bandwidth_bytes_per_second"] *= factor
        elif faster:
            rates["peak_flops_per_second"] = {"bf16": 5e14 * factor}
        return {"memory_bytes": 200 * 2**30, **rates}

    answers = []
    for faster in (False, True):
        asked = served(model, input_tokens=lengths[0], output_tokens=lengths[1], **load)
        asked["cluster"] = {"accelerator": {"source": "specification", "specification": device(faster)}}
        answers.append(throughput(asked))
    slow, fast = answers
    # A first token may wait longer in a closed loop: requests that decode faster come back sooner.
    assert value(fast, "request_seconds") <= value(slow, "request_seconds") * (1 + SOLVED)
    assert value(fast, "requests_per_second") >= value(slow, "requests_per_second") * (1 - SOLVED)


@FEW
@given(
    st.sampled_from(MODELS),
    st.sampled_from(["h100-sxm", "a100-sxm-80gb"]),
    st.integers(1, 4000),
    st.integers(16, 1000),
    st.lists(st.integers(1, 500), min_size=2, max_size=2),
)
def test_latency_does_not_fall_with_requests_at_a_time(model, accelerator, inputs, outputs, loads):
    few, many = (
        throughput(served(model, accelerator, 2, input_tokens=inputs, output_tokens=outputs, concurrency=n))
        for n in sorted(loads)
    )
    assert value(many, "request_seconds") >= value(few, "request_seconds") * (1 - SOLVED)
    # A full cache drops contexts and computes them again, which the rate pays for.
    if not value(many, "preemptions_per_request"):
        # Prompts in pieces cost more than whole ones: with many requests the rate may fall a little.
        assert value(many, "requests_per_second") >= value(few, "requests_per_second") * 0.9


@FEW
@given(st.integers(1, 4000), st.integers(2, 1000), st.lists(st.floats(0.001, 50), min_size=2, max_size=2))
def test_latency_does_not_fall_with_the_rate(inputs, outputs, rates):
    few, many = (
        throughput(served(input_tokens=inputs, output_tokens=outputs, request_rate_per_second=rate))
        for rate in sorted(rates)
    )
    assert value(many, "request_seconds") >= value(few, "request_seconds") * (1 - SOLVED)


@FEW
@given(
    st.sampled_from(["llama-3.1-8b", "llama-2-13b"]),
    st.sampled_from([("h100-sxm", 989e12, 3.35e12), ("a100-sxm-80gb", 312e12, 2.04e12)]),
    st.integers(1, 4000),
    st.integers(2, 1000),
    st.integers(1, 2000),
)
def test_throughput_is_bounded_by_the_roofline(model, device, inputs, outputs, concurrency):
    """2 FLOPs a parameter and token, and the weights once for each token of a batch."""
    accelerator, peak, bandwidth = device
    answer = throughput(
        served(model, accelerator, input_tokens=inputs, output_tokens=outputs, concurrency=concurrency)
    )
    parameters = {"llama-3.1-8b": 7.5e9, "llama-2-13b": 12.8e9}[model]
    computed = value(answer, "output_tokens_per_second") + value(answer, "requests_per_second") * (inputs - 1)
    assert 2 * parameters * computed <= peak * 1.01
    assert value(answer, "time_per_output_token_seconds") >= 2 * parameters / bandwidth


class TestAdvice:
    """A change is asked again: whoever applies it gets what was said."""

    def test_the_gain_is_that_of_the_changed_question(self):
        asked = served(input_tokens=1000, output_tokens=200, concurrency=16)
        before = throughput(asked)
        gains = {advice["code"]: advice["gain_share"] for advice in before["bottleneck"]["advice"]}
        changes = {"MORE_CONCURRENCY": {"concurrency": 32}, "FP8_WEIGHTS": {"weight_precision": "fp8"}}
        assert gains.keys() >= changes.keys()
        for code, change in changes.items():
            after = throughput({**asked, "workload": {**asked["workload"], **change}})
            ratio = value(before, "requests_per_second") / value(after, "requests_per_second")
            assert gains[code] == pytest.approx(1 - ratio)

    def test_a_layout_is_named_with_what_it_moves(self):
        asked = {**served(count=8, concurrency=2, input_tokens=1000), "parallelism": {"tensor": 1}}
        before = throughput(asked)
        advice = {advice["code"]: advice for advice in before["bottleneck"]["advice"]}
        wider = advice["MORE_TENSOR_PARALLELISM"]
        assert "tensor parallelism of 2 and 4 replicas" in wider["detail"]
        after = throughput({**asked, "parallelism": {"tensor": 2}})
        ratio = value(before, "requests_per_second") / value(after, "requests_per_second")
        assert wider["gain_share"] == pytest.approx(1 - ratio)

    def test_launches_one_by_one_are_noticed(self):
        asked = served("qwen3-0.6b", engine={"name": "vllm", "cuda_graphs": False}, output_tokens=200)
        answer = throughput(asked)
        assert answer["bottleneck"]["bound"] == "host"
        assert "CUDA_GRAPHS" in codes(answer["bottleneck"]["advice"])


class TestSimulation:
    def asked(self, **solver):
        asked = served(input_tokens=500, output_tokens=100, request_rate_per_second=5.0)
        return {**asked, "solver": {"kind": "simulated", "requests": 300, **solver}}

    def test_it_agrees_with_the_formulas(self):
        simulated = throughput(self.asked(requests=2000))
        solved = throughput({**self.asked(), "solver": {"kind": "analytic"}})
        for name in ("time_to_first_token_seconds", "time_per_output_token_seconds", "request_seconds"):
            assert value(simulated, name) == pytest.approx(value(solved, name), rel=0.2)
        whole = sum(phase["seconds"]["value"] for phase in simulated["breakdown"])
        assert whole == pytest.approx(value(simulated, "request_seconds"), rel=1e-9)

    def test_a_seed_gives_the_same_answer_again(self, reader):
        path = "/v1/estimates/throughput"
        first, again = (reader.post(path, self.asked(seed=7)).json() for _ in range(2))
        assert first == again
        other = reader.post(path, self.asked(seed=8)).json()
        assert other["request_seconds"]["value"] != first["request_seconds"]["value"]

    def test_a_burst_longer_than_a_simulation_is_a_steady_load(self):
        asked = served(concurrency=8, output_tokens=50, horizon={"total_requests": 10**9})
        asked["solver"] = {"kind": "simulated", "requests": 100}
        assert value(throughput(asked), "requests_per_second") > 0

    def test_it_is_asked_for_by_itself(self, reader):
        plain = {**self.asked(), "solver": {"kind": "analytic"}}
        response = reader.post("/v1/estimates/throughput:batch", {"requests": [plain, self.asked()]})
        assert response.status_code == 422
        (field,) = response.json()["errors"]
        assert field["pointer"] == "/requests/1/solver/kind"
        assert field["code"] == "SIMULATION_IN_BATCH"


ODD_LENGTHS = st.one_of(
    st.sampled_from([1, 2, 1024, 128_000, 2**31 - 1]),
    st.builds(
        lambda mean, sigma, most: {
            "distribution": "lognormal",
            "mean_tokens": mean,
            "sigma": sigma,
            "most_tokens": most,
        },
        st.sampled_from([1.0, 3.5, 1e3, 2e9]),
        st.sampled_from([1e-9, 1.0, 3.0]),
        st.sampled_from([1, 4096, 2**31 - 1]),
    ),
    st.builds(
        lambda pairs: {
            "distribution": "histogram",
            "tokens": [tokens for tokens, _ in pairs],
            "weights": [weight for _, weight in pairs],
        },
        st.lists(
            st.tuples(st.integers(1, 2**31 - 1), st.sampled_from([0.0, 5e-324, 1.0, 1e30])),
            min_size=1,
            max_size=40,
        ),
    ),
)
ODD_LOADS = st.one_of(
    st.just({}),
    st.builds(lambda n: {"concurrency": n}, st.sampled_from([1, 3, 5000, 10**6])),
    st.builds(lambda rate: {"request_rate_per_second": rate}, st.sampled_from([1e-12, 0.5, 1e6])),
    st.builds(
        lambda times: {"arrivals": {"process": "trace", "at_seconds": sorted(times)}},
        st.lists(st.floats(0, 1e30), min_size=2, max_size=20),
    ),
)
ODD_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "prefix_cache_hit_rate": st.sampled_from([0.5, 0.999]),
        "scheduler": st.sampled_from(["static", "continuous"]),
        "speculative": st.sampled_from(
            [{"method": "mtp"}, {"method": "ngram", "tokens": 64, "acceptance_rate": 1.0}]
        ),
        "engine": st.fixed_dictionaries(
            {
                "name": st.sampled_from(
                    ["vllm", "sglang", "tensorrt-llm", "llama.cpp", "transformers", "other"]
                )
            },
            optional={
                "max_num_seqs": st.sampled_from([1, 10**6]),
                "max_batched_tokens": st.sampled_from([1, 2**31 - 1]),
                "chunked_prefill": st.booleans(),
                "cuda_graphs": st.booleans(),
            },
        ),
        "service_levels": st.sampled_from(
            [{"request_seconds": 1e-30}, {"time_to_first_token_seconds": 1e30, "percentile": 1.0}]
        ),
        "horizon": st.sampled_from([{"duration_seconds": 1e30}, {"total_requests": 2**53 - 1}]),
    },
)


@FEW
@given(
    st.sampled_from([*MODELS, "deepseek-v3", "bert-large", "whisper-small", "gpt-oss-20b"]),
    st.sampled_from([({}, 1), ({"pipeline": 8}, 8), ({"expert": 4, "data": 8}, 8), ({}, 64)]),
    st.tuples(ODD_LENGTHS, ODD_LENGTHS, ODD_LOADS, ODD_SETTINGS),
    st.sampled_from(["analytic", "simulated"]),
)
def test_odd_questions_are_answered_or_refused(model, laid_out, parts, solver):
    """Nothing that the shapes allow is an error of the service."""
    layout, count = laid_out
    inputs, outputs, load, settings = parts
    asked = served(model, "h200-sxm", count, input_tokens=inputs, output_tokens=outputs, **load, **settings)
    if layout:
        asked["parallelism"] = layout
    bare = json.dumps(asked)
    asked["solver"] = {"kind": solver} if solver == "analytic" else {"kind": solver, "requests": 20}
    for operation, body in (("throughput", json.dumps(asked)), ("memory", bare), ("utility-bill", bare)):
        question_shape, estimator = ESTIMATES[operation]
        with contextlib.suppress(NoSoundEstimate):
            assert answer_question(estimator, question_shape.model_validate_json(body), shipped())["evidence"]
