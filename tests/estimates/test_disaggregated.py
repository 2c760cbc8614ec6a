"""Prefill and decode on replicas of their own."""

import json

import pytest

from tests.asking import ask, codes, gaps, refusal, shipped


def question(prefill=None, decode=None, *, accelerators=16, more=None, **workload):
    """Llama-3.1-70B in FP8 on H200s: two prefill replicas of 4 and one decode replica of 8."""
    return {
        "model": {"source": "catalog", "id": "llama-3.1-70b"},
        "cluster": {
            "accelerator": {"source": "catalog", "id": "h200-sxm"},
            "accelerator_count": accelerators,
        },
        "workload": {
            "kind": "inference",
            "weight_precision": "fp8",
            "input_tokens": 4000,
            "output_tokens": 500,
            "concurrency": 64,
            "engine": {"name": "vllm"},
            "disaggregated": {
                "prefill": {"parallelism": {"tensor": 4}, "replicas": 2} | (prefill or {}),
                "decode": {"parallelism": {"tensor": 8}} | (decode or {}),
            }
            | (more or {}),
        }
        | workload,
    }


def throughput(*args, **kwargs):
    return ask(shipped(), "throughput", question(*args, **kwargs))


def value(answer, *path):
    for name in path:
        answer = answer[name]
    return answer["value"] if isinstance(answer, dict) else answer


def test_both_sides_and_the_way_between_them_are_answered():
    answer = throughput()
    sides = answer["disaggregation"]
    assert sides["prefill"]["accelerator_count"] == sides["decode"]["accelerator_count"] == 8
    # 80 layers x 8 heads x 2 x 128 x 2 bytes a token.
    assert sides["transfer"]["bytes_per_request"] == 4000 * 80 * 8 * 2 * 128 * 2
    phases = {phase["phase"] for phase in answer["breakdown"]}
    assert {"prefill", "transfer", "decode"} <= phases
    total = sum(phase["seconds"]["value"] for phase in answer["breakdown"])
    assert total == pytest.approx(value(answer, "request_seconds"), rel=0.01)
    assert "mean_batch" in answer


def test_littles_law():
    for concurrency in (1, 16, 64, 512):
        answer = throughput(concurrency=concurrency)
        inside = value(answer, "requests_per_second") * value(answer, "request_seconds")
        assert inside == pytest.approx(concurrency, rel=0.05)


def test_the_rate_is_at_most_that_of_the_slower_side():
    answer = throughput(concurrency=4000)
    sides = answer["disaggregation"]
    most = min(value(sides[side], "most_requests_per_second") for side in ("prefill", "decode"))
    assert value(answer, "requests_per_second") <= most * (1 + 1e-6)
    assert value(answer, "saturation", "most_requests_per_second") <= most * (1 + 1e-6)
    assert answer["saturation"]["limit"] in ("prefill", "decode")


def test_latency_does_not_fall_with_load():
    answers = [throughput(concurrency=requests) for requests in (1, 4, 16, 64, 256, 1024)]
    for name in ("time_to_first_token_seconds", "time_per_output_token_seconds", "requests_per_second"):
        values = [value(answer, name) for answer in answers]
        assert values == sorted(values)


def test_no_prompt_delays_the_tokens_of_others():
    """On shared replicas each token also waits for the prompts of others."""
    apart = throughput(concurrency=256)
    asked = question(concurrency=256)
    del asked["workload"]["disaggregated"]
    shared = ask(shipped(), "throughput", asked | {"parallelism": {"tensor": 8}})
    assert "disaggregation" not in shared
    name = "time_per_output_token_seconds"
    decoding = next(phase for phase in apart["breakdown"] if phase["phase"] == "decode")
    assert value(apart, name) == pytest.approx(value(decoding, "seconds") / 499, rel=0.01)
    assert value(apart, name) < 2 * value(shared, name)


def test_more_prefill_replicas_bring_first_tokens_sooner():
    few = throughput(concurrency=256)
    many = throughput({"replicas": 6}, accelerators=32, concurrency=256)
    name = "time_to_first_token_seconds"
    assert value(many, name) < value(few, name)
    assert value(many, "disaggregation", "prefill", "most_requests_per_second") == pytest.approx(
        3 * value(few, "disaggregation", "prefill", "most_requests_per_second")
    )


def test_the_balanced_ratio_balances():
    sides = throughput()["disaggregation"]
    prefill, decode = (value(sides[side], "most_requests_per_second") for side in ("prefill", "decode"))
    assert sides["balanced_prefill_replicas_per_decode_replica"] == pytest.approx(decode / (prefill / 2))


def test_a_cache_that_leaves_layer_by_layer_is_waited_for_less():
    by_layer, whole = (throughput(more={"transfer": way}) for way in ("by_layer", "whole"))
    exposed = [answer["disaggregation"]["transfer"]["exposed_seconds"] for answer in (by_layer, whole)]
    assert exposed[0] < exposed[1]
    name = "time_to_first_token_seconds"
    assert value(by_layer, name) < value(whole, name)


def test_a_slow_link_limits_the_rate():
    link = {"kind": "ethernet", "bandwidth_bytes_per_second": 1e8, "latency_seconds": 1e-4}
    slow = throughput(
        more={"transfer_link": {"source": "specification", "specification": link}}, concurrency=512
    )
    sent = slow["disaggregation"]["transfer"]
    # A lane of a prefill device carries the heads of two decode devices: a quarter of 1.31 GB.
    assert sent["seconds"] > 4000 * 80 * 8 * 2 * 128 * 2 / 4 / 1e8
    assert slow["saturation"]["limit"] == "transfer"
    assert value(slow, "requests_per_second") <= sent["most_requests_per_second"]


def test_open_arrivals_and_their_saturation():
    calm = question(request_rate_per_second=2.0)
    del calm["workload"]["concurrency"]
    answer = ask(shipped(), "throughput", calm)
    assert value(answer, "requests_per_second") == pytest.approx(2.0)
    assert not answer["saturation"]["saturated"]
    flooded = question(request_rate_per_second=1000.0)
    del flooded["workload"]["concurrency"]
    answer = ask(shipped(), "throughput", flooded)
    assert answer["saturation"]["saturated"]
    assert "SATURATED" in codes(answer["warnings"])
    assert value(answer, "requests_per_second") < 1000.0


def test_a_loop_that_begins_cold_waits_longer_for_its_first_tokens():
    steady = throughput(concurrency=48)
    cold = throughput(concurrency=48, horizon={"total_requests": 480})
    name = "time_to_first_token_seconds"
    assert value(cold, name) > value(steady, name)


def test_sides_may_have_accelerators_of_their_own():
    other = {"accelerator": {"source": "catalog", "id": "h100-sxm"}}
    answer = throughput(decode=other)
    assert "ACCELERATORS_DIFFER" in codes(answer["warnings"])
    name = "time_per_output_token_seconds"
    # Decode streams weights and cache: 3.35 TB/s in place of 4.8.
    assert 1.1 < value(answer, name) / value(throughput(), name) < 1.6


def test_proposed_tokens_are_taken_in_decode():
    proposed = throughput(speculative={"method": "ngram", "tokens": 3, "acceptance_rate": 0.8}, concurrency=4)
    name = "time_per_output_token_seconds"
    assert value(proposed, name) < 0.6 * value(throughput(concurrency=4), name)


@pytest.mark.parametrize(
    ("changes", "code", "pointer"),
    [
        ({"accelerators": 12}, "PARALLELISM_MISMATCH", "/workload/disaggregated"),
        (
            {"decode": {"parallelism": {"tensor": 7}}, "accelerators": 15},
            "PARALLELISM_MISMATCH",
            "/workload/disaggregated/decode/parallelism/tensor",
        ),
        (
            {"decode": {"parallelism": {"tensor": 4, "data": 2}}},
            "PARALLELISM_MISMATCH",
            "/workload/disaggregated/decode/parallelism/data",
        ),
    ],
)
def test_layouts_that_contradict_are_refused(changes, code, pointer):
    assert refusal(shipped(), "throughput", question(**changes)) == (code, pointer)


def test_a_layout_beside_those_of_the_sides_is_refused():
    asked = question() | {"parallelism": {"tensor": 8}}
    assert refusal(shipped(), "throughput", asked) == ("PARALLELISM_MISMATCH", "/parallelism")


def test_attention_ranks_share_their_experts():
    """DeepSeek-V3 on eight prefill ranks and a decode replica of eight ranks."""
    pool = {"parallelism": {"tensor": 1, "expert": 8}}
    asked = question(pool | {"replicas": 1}, pool, accelerators=16)
    asked["model"]["id"] = "deepseek-v3"
    answer = ask(shipped(), "throughput", asked)
    assert answer["disaggregation"]["prefill"]["accelerator_count"] == 8
    assert value(answer, "requests_per_second") > 0.0


def test_memory_is_that_of_the_decode_replicas():
    answer = ask(shipped(), "memory", question())
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    assert parts["weights"] == pytest.approx(70.6e9 / 8, rel=0.05)


def test_cost_counts_all_devices():
    asked = question(horizon={"total_requests": 10_000})
    asked["rental"] = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}
    answer = ask(shipped(), "cost", asked)
    hours = answer["device_hours"]["value"]
    assert hours == pytest.approx(16 * answer["duration_seconds"]["value"] / 3600)
    assert not gaps(answer)
    assert json.dumps(answer)
