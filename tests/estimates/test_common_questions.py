"""The questions that people ask most, with all left open that may be, beside what is public of each."""

import json

import pytest

from service.plans.service import estimate_plan
from service.schemas.plans import PlanRequest
from tests.asking import ask, codes, question, shipped


def trained(model, accelerator, count, batch):
    return question(
        model, accelerator, count, sequence_length=4096, global_batch_size=batch, total_tokens=10**12
    )


def served(model, accelerator, count, **load):
    asked = question(model, accelerator, count)
    return {**asked, "workload": {"kind": "inference", "input_tokens": 1024, "output_tokens": 1024, **load}}


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        # OpenAI 2025, gpt-oss: 120B on one GPU of 80 GB; about 150 tokens/s of one stream are reported.
        (served("gpt-oss-120b", "h100-sxm", 1), 100, 250),
        # NVIDIA, January 2025: DeepSeek-R1 at up to 3,872 tokens/s on an HGX H200, with the first release;
        # engines of 2025 report twice that (LMSYS, large-scale expert parallelism, May 2025).
        (served("deepseek-r1", "h200-sxm", 8, concurrency=512), 3000, 10_000),
        # NVIDIA, March 2025: DeepSeek-R1 on a DGX B200, over 250 tokens/s a user with FP4 and its own
        # proposals, over 30,000 tokens/s in all; FP8 without proposals reaches a part of both.
        (served("deepseek-r1", "b200-sxm", 8), 70, 250),
        (served("deepseek-r1", "b200-sxm", 8, concurrency=1024), 5000, 30_000),
        # 2 x 864 GB/s over 65.5 GB of weights bound one stream at 26 tokens/s.
        (served("qwen3-32b", "l40s", 2), 12, 26),
    ],
)
def test_a_service_reaches_what_is_reported_of_it(asked, low, high):
    answer = ask(shipped(), "throughput", asked)
    assert low < answer["output_tokens_per_second"]["value"] < high
    assert {"/workload/engine", "/workload/weight_precision"} <= {
        one["pointer"] for one in answer["defaults"]
    }


@pytest.mark.parametrize(
    ("model", "accelerator", "count", "weights"),
    [
        # Sizes of the repositories of the models.
        ("gpt-oss-120b", "h100-sxm", 1, 65.2e9),
        ("deepseek-r1", "h200-sxm", 8, 673e9),
        ("deepseek-r1", "b200-sxm", 8, 673e9),
        ("kimi-k2", "h200-sxm", 8, 1029e9),
        ("kimi-k2", "b200-sxm", 8, 1029e9),
    ],
)
def test_published_weights_fit_where_they_are_served(model, accelerator, count, weights):
    answer = ask(shipped(), "memory", served(model, accelerator, count))
    assert answer["fits"]
    # The engine pads the experts of gpt-oss to multiples of 128 rows.
    assert weights * 0.999 < answer["stored_weight_bytes"] < weights * 1.07
    assert answer["fit_probability"] > 0.7


def test_a_trillion_parameters_leave_eight_h200_no_room_for_long_contexts():
    """Moonshot AI 2025, Kimi-K2 deployment: 128k tokens of context need 16 H200."""
    limits = ask(shipped(), "memory", served("kimi-k2", "h200-sxm", 8))["limits"]
    assert 4_000 < limits["max_sequence_length"] < 128_000
    more = ask(shipped(), "memory", served("kimi-k2", "h200-sxm", 16))["limits"]
    assert more["max_sequence_length"] > 128_000


@pytest.mark.parametrize(
    ("asked", "low", "high"),
    [
        # Grattafiori et al. 2024, The Llama 3 herd of models, table 4: 38 to 43% on H100.
        (trained("llama-3.1-405b", "h100-sxm", 2048, 1024), 0.36, 0.46),
        # AMD 2025, training with Primus and Megatron-LM on MI300X: 30 to 45% for Llama of 8B to 70B.
        (trained("llama-3.1-70b", "mi300x", 256, 1024), 0.26, 0.45),
        # Google, MaxText: 46 to 67% on TPU v5e; TPU recipes: 33 to 50% on TPU v6e.
        (trained("llama-3.1-8b", "tpu-v5e", 256, 1024), 0.40, 0.70),
        (trained("llama-3.1-8b", "tpu-v6e", 256, 1024), 0.30, 0.55),
    ],
)
def test_training_reaches_what_was_published(asked, low, high):
    answer = ask(shipped(), "throughput", asked)
    assert low < answer["model_flops_utilization"]["value"] < high
    assert "DOES_NOT_FIT" not in codes(answer["warnings"])
    assert "/parallelism" in {default["pointer"] for default in answer["defaults"]}


@pytest.mark.parametrize(
    ("accelerator", "published"),
    [
        # AWS Neuron 2.16 to 2.20: 17 to 37% on Trainium 1, the device before; none of Trainium 2 was found.
        ("trainium2", (0.17, 0.37)),
        # Databricks 2024: 60% on Gaudi 2, the device before; none of Gaudi 3 was found.
        ("gaudi3", (0.60, 0.61)),
    ],
)
def test_training_on_devices_without_published_runs_has_an_interval_that_meets_their_kin(
    accelerator, published
):
    found = ask(shipped(), "throughput", trained("llama-3.1-8b", accelerator, 64, 512))
    utilization = found["model_flops_utilization"]
    assert utilization["low"] < published[1]
    assert utilization["high"] > published[0]


def test_deepseek_v3_at_ten_thousand_tokens_is_planned_on_nodes_of_eight():
    """Ten thousand tokens a second, the first within 2 s: FP8 on some nodes, as its operators serve it."""
    asked = {
        "model": {"source": "catalog", "id": "deepseek-v3"},
        "workload": {
            "kind": "inference",
            "input_tokens": 1000,
            "output_tokens": 1000,
            "request_rate_per_second": 10.0,
            "service_levels": {"time_to_first_token_seconds": 2.0},
            "horizon": {"duration_seconds": 2_592_000},
        },
        "goal": "cheapest",
        "search": {"accelerators": ["b200-sxm", "h200-sxm", "a10g", "t4"], "serving": {"expert": [1, 8]}},
    }
    first = estimate_plan(PlanRequest.model_validate_json(json.dumps(asked)), shipped())["rows"][0]
    assert first["weight_format"] == "fp8"
    assert first["accelerator_id"] in ("b200-sxm", "h200-sxm")
    assert first["accelerator_count"] in (8, 16, 24, 32)
    assert first["time_to_first_token_seconds"]["value"] <= 2.0
    assert first["time_per_output_token_seconds"]["value"] <= 0.2
