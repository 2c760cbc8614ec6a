"""Serving rows as questions: layouts, loads, lengths and settings of the command that started the server."""

import json

import pytest

from accuracy import mlperf, recipes, serving_facts
from accuracy.asking.layouts import arrangements
from accuracy.asking.serving import serving_workloads
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.metrics import METRIC_UNITS
from accuracy.rows import read_rows
from tests.accuracy.measured import SERVED, write

LATENCY = SERVED | {
    "metric": "tpot",
    "value": "10",
    "value_si": "0.01",
    "unit": "ms",
    "unit_si": "s",
    "per": "user",
    "notes": "",
    "model_id": "deepseek-r1",
    "accelerator_id": "b200-sxm",
    "batch_json": '{"concurrency":64}',
    "length_json": '{"input_tokens":1000,"output_tokens":500}',
}
RECIPE = "silicon_sample.csv#2026_03_25_deepseek_r1_b200_sxm_trtllm_fp4_agg_1024x1024_c64_tp8_ep8_1"


@pytest.fixture
def served(tmp_path):
    """A row of a latency, with layout, batch or lengths of its own as mappings."""

    def make(**cells):
        for name in ("layout", "precision", "batch", "length"):
            if name in cells:
                cells[f"{name}_json"] = json.dumps(cells.pop(name))
        return read_rows(write(tmp_path / "rows.csv", LATENCY | cells), METRIC_UNITS).rows[0]

    return make


def workload(row, generation="blackwell"):
    return next(iter(serving_workloads(row, {}, generation)))


@pytest.mark.parametrize(
    ("stated", "devices", "asked"),
    [
        ({"tensor": 8}, 8, {"tensor": 8, "data": 1}),
        ({"tensor": 8, "attention_data": 1, "moe_tensor": 8, "moe_expert": 1}, 8, {"tensor": 8, "data": 1}),
        (
            {"tensor": 8, "attention_data": 1, "moe_tensor": 1, "moe_expert": 8},
            8,
            {"tensor": 8, "data": 1, "expert_tensor": 1},
        ),
        (
            {"tensor": 1, "attention_data": 8, "moe_tensor": 8, "moe_expert": 1},
            8,
            {"data": 8, "expert": 8, "expert_tensor": 8},
        ),
        (
            {"tensor": 1, "attention_data": 8, "moe_tensor": 1, "moe_expert": 8},
            8,
            {"data": 8, "expert": 8},
        ),
        ({"moe_tensor": 1, "moe_expert": 4, "data": 1}, 4, {"tensor": 4, "data": 1, "expert_tensor": 1}),
        ({"tensor": 1, "moe_tensor": 2, "moe_expert": 1}, 1, {"data": 2, "expert": 2, "expert_tensor": 2}),
        ({"tensor": 1, "pipeline": 8}, 8, {"pipeline": 8, "data": 1}),
    ],
)
def test_degrees_of_attention_and_experts_become_one_layout(served, stated, devices, asked):
    first, *others = arrangements(served(layout=stated, n_gpus=str(devices)))
    assert dict(first.parallelism) == asked
    assert not others


def test_degrees_that_were_multiplied_up_are_divided_first(served):
    """The README of the rows: TP=64;moeTP=8;moeEP=8 runs as fast as 8 devices."""
    stated = {"tensor": 64, "attention_data": 1, "moe_tensor": 8, "moe_expert": 8}
    doubtful = served(layout=stated, n_gpus="64", eligible_hint="layout")
    assert [one.devices for one in arrangements(doubtful)] == [8, 64]
    attention = served(
        layout={"tensor": 4, "attention_data": 4, "moe_tensor": 1, "moe_expert": 16},
        n_gpus="16",
        eligible_hint="layout",
    )
    assert dict(arrangements(attention)[0].parallelism) == {"data": 4, "expert": 4}


def test_workers_of_disaggregated_rows_are_pools(served):
    stated = {
        "prefill": {"workers": 2, "tensor": 1, "attention_data": 4, "expert": 4},
        "decode": {"workers": 5, "tensor": 4, "attention_data": 1, "expert": 4, "batch_size": 8},
    }
    (found,) = arrangements(served(layout=stated, n_gpus="", batch={}))
    assert found.devices == 28
    assert found.disaggregated == {
        "prefill": {"parallelism": {"data": 4, "expert": 4}, "replicas": 2},
        "decode": {"parallelism": {"tensor": 4, "data": 1, "expert_tensor": 1}, "replicas": 5},
    }
    assert workload(served(layout=stated, batch={}))["concurrency"] == 40


@pytest.mark.parametrize(
    ("requests", "tokens", "workers"), [(64, 1000, (1, 5)), (1000, 1000, (1, 4)), (1000, 8000, (5, 2))]
)
def test_uncounted_workers_are_asked_in_likely_ways(served, requests, tokens, workers):
    """InferenceX, nvidia-master.yaml: long prompts have more prefill workers, short ones more for decode."""
    stated = {"prefill": {"tensor": 4, "expert": 4}, "decode": {"tensor": 32, "expert": 4}}
    length = {"input_tokens": tokens, "output_tokens": 1000}
    row = served(layout=stated, n_gpus="", batch={"concurrency": requests}, length=length)
    found = arrangements(row)
    counts = [tuple(pool["replicas"] for pool in one.disaggregated.values()) for one in found]
    assert counts == [workers, (1, 1)]
    assert found[0].disaggregated["decode"]["parallelism"] == {"data": 32, "expert": 32}


def test_without_layout_the_service_chooses_for_the_devices_that_are_counted(served):
    assert arrangements(served(layout={}, n_gpus="8"))[0] == (8, {}, {})
    with pytest.raises(SkippedRowError) as skipped:
        arrangements(served(layout={}, n_gpus=""))
    assert skipped.value.reason is SkipReason.LAYOUT_UNKNOWN


SERVE = "serve: vllm serve deepseek-ai/DeepSeek-V3.2 -tp 8 --max-num-seqs=512 --kv-cache-dtype fp8_e4m3"


def test_flags_of_the_command_are_settings(served):
    flags = '--speculative-config {"method":"mtp","num_speculative_tokens":2} --max-num-batched-tokens 4096'
    notes = f"{SERVE} {flags}; variant: --max-num-batched-tokens 8192"
    asked = workload(served(notes=notes))
    assert asked["engine"]["max_num_seqs"] == 512
    assert asked["engine"]["max_batched_tokens"] == 8192
    assert asked["kv_cache_precision"] == "fp8"
    assert asked["speculative"] == {"method": "mtp", "tokens": 2}
    assert "speculative" not in workload(served(notes=f"{SERVE}; variant: random 4K input"))
    stages = served(notes="serve: python3 -m sglang.launch_server --pp-size 4", layout={"tensor": 1})
    assert arrangements(stages)[0].devices == 4


def test_a_burst_has_all_its_requests_at_a_time(served):
    asked = workload(served(batch={"concurrency": 1000, "requests": 1000}))
    assert (asked["concurrency"], asked["horizon"]) == (1000, {"total_requests": 1000})
    limited = workload(served(batch={"concurrency": 512, "requests": 1000}, notes=SERVE))
    assert limited["concurrency"] == 1000
    assert workload(served(batch={"concurrency": 31, "requests": 1000}))["concurrency"] == 31
    few = served(batch={"concurrency": 9, "requests": 100}, notes=f"{SERVE}; variant: ShareGPT batch size 4")
    assert (workload(few)["concurrency"], workload(few)["horizon"]) == (4, {"total_requests": 100})


def test_recipes_send_ten_rounds_of_uneven_lengths_with_and_without_own_heads(served):
    """InferenceX: ten times the concurrency, lengths evenly from 0.8 to 1.0 of the stated ones."""
    asked = list(serving_workloads(served(source_ref=RECIPE), {}, "blackwell"))
    assert [one.get("speculative") for one in asked] == [None, {"method": "mtp", "tokens": 3}]
    assert asked[0]["horizon"] == {"total_requests": 640}
    assert asked[0]["input_tokens"]["tokens"] == [820, 860, 900, 940, 980]
    assert asked[0]["output_tokens"]["tokens"] == [410, 430, 450, 470, 490]
    assert not asked[0]["engine"]["warmed_up"]
    assert "horizon" not in workload(served())
    sweep = served(source="aiconfigurator silicon sample")
    assert workload(sweep)["horizon"] == {"total_requests": 640}


@pytest.mark.parametrize(
    ("version", "month", "tokens"),
    [
        ("1.2.0rc6.post3", "2026-02", [3]),
        ("1.2.0rc6.post2", "2026-02", [None]),
        ("1.1.0rc2.post2", "2026-01", [3]),
        ("1.1.0rc2.post2", "2025-12", [None]),
        ("1.2.0rc2", "2026-01", [None, 3]),
    ],
)
def test_release_and_month_tell_whether_a_recipe_uses_own_heads(served, version, month, tokens):
    """InferenceX, perf-changelog.yaml: recipes with and without them have containers of their own."""
    row = served(
        source_ref=RECIPE, engine="trtllm", engine_version=version, notes=f"agg serving; measured {month}-14"
    )
    asked = [one.get("speculative") for one in serving_workloads(row, {}, "blackwell")]
    assert [one and one["tokens"] for one in asked] == tokens


def test_recipes_of_tensorrt_llm_limit_an_iteration_to_one_prompt(served):
    """max_num_tokens of dsr1_fp4_b200_trt.sh: (concurrency + input + 64), rounded up to 64."""
    engine = workload(served(source_ref=RECIPE, engine="trtllm"))["engine"]
    assert (engine["max_num_seqs"], engine["max_batched_tokens"]) == (64, 1152)


def test_sweeps_leave_room_for_a_prompt_and_1500_tokens(served):
    """max_num_tokens and max_prefill_tokens of aiconfigurator's rule_plugin/benchmark."""
    sweep = {"source": "aiconfigurator silicon sample"}
    tokens = [
        workload(served(**sweep, engine=name))["engine"]["max_batched_tokens"]
        for name in ("trtllm", "vllm", "sglang")
    ]
    assert tokens == [64 + 1000 + 1500, 64 + 1000 + 1500, 1000 + 1500]


def test_full_queues_ask_for_more_requests_than_a_device_takes(served):
    full = served(batch={"scenario": "max_load"}, layout={"tensor": 4})
    assert workload(full)["concurrency"] == 8192


def test_prompts_of_a_named_task_are_asked_in_likely_lengths(served):
    asked = list(serving_workloads(served(notes="task gpqa", length={"output_tokens": 99.6}), {}))
    assert [one["input_tokens"] for one in asked] == list(
        serving_facts.likely_prompts(served(notes="task gpqa"))
    )
    assert {one["output_tokens"] for one in asked} == {100}
    with pytest.raises(SkippedRowError) as skipped:
        workload(served(length={}))
    assert skipped.value.reason is SkipReason.LENGTHS_UNKNOWN


def test_the_median_interval_is_that_of_an_iteration_without_prompts(served):
    def hit_rate(concurrency):
        row = served(metric="median_itl", batch={"concurrency": concurrency})
        return workload(row).get("prefix_cache_hit_rate", 0.0)

    assert hit_rate(64) == pytest.approx(1.0, abs=0.01)
    assert hit_rate(400) == 0.0


def test_releases_that_tables_leave_out_are_those_of_their_month(served):
    assert serving_facts.release(served(engine_version="v0.11.0 (V1)")) == "0.11.0"
    assert serving_facts.release(served(engine="trtllm", engine_version="0.8.1.post2")) == "1.2.0rc6"
    assert serving_facts.release(served(engine_version="nightly-5b8c30d")) is None
    power = served(source="ML.ENERGY leaderboard", engine_version="ML.ENERGY v3")
    assert serving_facts.release(power) == "0.11.1"


def test_narrow_weights_bring_a_narrow_cache_where_recipes_ask_for_it(served):
    narrow = {"weights": "nvfp4"}
    assert workload(served(precision=narrow, engine="trtllm"))["kv_cache_precision"] == "fp8"
    assert "kv_cache_precision" not in workload(served(precision=narrow))
    assert workload(served(precision=narrow, source_ref=RECIPE))["kv_cache_precision"] == "fp8"


LAB = {"source": "GPUStack performance lab", "engine_version": ""}


def mean(length):
    return sum(tokens * weight for tokens, weight in zip(length["tokens"], length["weights"], strict=True))


@pytest.mark.parametrize(("tokens", "longest"), [(200, 4.0), (280, 3.0)])
def test_outputs_of_share_gpt_are_as_unlike_as_its_turns(served, tokens, longest):
    asked = workload(served(**LAB, length={"input_tokens": 217.4, "output_tokens": tokens}))
    assert asked["input_tokens"] == 217
    assert mean(asked["output_tokens"]) == pytest.approx(tokens, rel=0.06)
    assert max(asked["output_tokens"]["tokens"]) / tokens == pytest.approx(longest, rel=0.15)
    random = workload(served(**LAB, length={"input_tokens": 2000, "output_tokens": 100}))
    assert random["output_tokens"] == 100


def test_requests_sent_at_a_constant_rate_are_asked_as_arrivals(served):
    """Where fewer met than were sent: one a second, or the profile's rate that the run completed."""
    met = {"concurrency": 14, "requests": 100}
    long = served(**LAB, batch=met, length={"input_tokens": 32009.9, "output_tokens": 100})
    assert workload(long)["request_rate_per_second"] == 1.0
    assert workload(long)["arrivals"] == {"process": "uniform"}
    page = "docs/performance-lab/qwen3.5-9b/h100-latency.md line 1"
    share_gpt = LAB | {"length": {"input_tokens": 342.1, "output_tokens": 281.4}, "batch": met}
    row = served(**share_gpt, source_ref=page)
    rate = served(
        **share_gpt, metric="output_tokens_per_s", unit="tok/s", unit_si="tokens/s", value_si="2197"
    )
    asked = next(iter(serving_workloads(row, {"output_tokens_per_s": rate}, "hopper")))
    assert asked["request_rate_per_second"] == 8.0
    assert "request_rate_per_second" not in workload(served(**share_gpt))


def test_tables_of_nvidia_spread_attention_of_models_with_experts(served):
    table = {"source": "TensorRT-LLM perf overview", "layout": {"tensor": 8, "pipeline": 1}, "n_gpus": "8"}
    experts = served(**table, model_id="qwen3-235b-a22b", precision={"weights": "fp8"})
    assert arrangements(experts)[0].parallelism == {"data": 8, "expert": 8}
    assert workload(experts)["weight_precision"] == "fp8"
    dense = served(**table, model_id="llama-3.1-70b")
    assert arrangements(dense)[0].parallelism == {"tensor": 8, "data": 1}


def test_submissions_to_mlperf_run_a_replica_on_as_few_devices_as_hold_it(served):
    row = {"source": "MLPerf Inference v4.1", "layout": {}, "n_gpus": "8", "batch": {"scenario": "offline"}}

    def replica(model, device):
        asked = served(**row, precision={}, model_id=model, accelerator_id=device)
        return arrangements(asked)[0].parallelism

    assert replica("gpt-j-6b", "h100-sxm") == {"tensor": 1, "data": 8}
    assert replica("llama-2-70b", "h200-sxm") == {"tensor": 1, "data": 8}
    assert replica("llama-2-70b", "h100-sxm") == {"tensor": 2, "data": 4}
    assert replica("llama-2-70b", "b200-sxm") == {"tensor": 1, "data": 8}
    assert replica("deepseek-r1", "b200-sxm") == {"data": 8, "expert": 8}
    large = {"precision": {}, "model_id": "llama-3.1-405b", "accelerator_id": "h100-sxm"}
    nodes = served(**row | {"n_gpus": "32"}, **large)
    assert arrangements(nodes)[0].parallelism == {"tensor": 8, "pipeline": 2, "data": 2}
    summaries = {"precision": {}, "length": {}, "notes": "closed division; dataset CNN/DailyMail"}
    gpt_j = served(
        **row, **summaries, model_id="gpt-j-6b", accelerator_id="h100-sxm", engine="TensorRT 10.2.0"
    )
    apart, together = serving_workloads(gpt_j, {}, "hopper")
    assert apart["kv_cache_precision"] == "fp8"
    assert (apart["output_tokens"], together["output_tokens"]) == (4 * 69, 69)
    assert together["speculative"] == {"method": "ngram", "tokens": 3, "acceptance_rate": 0.0}


def test_submissions_to_mlperf_fill_every_replica(served):
    """2,048 requests a replica of the public configurations, with an FP8 cache beside 4-bit weights."""
    row = {
        "source": "MLPerf Inference v5.1",
        "engine": "TensorRT 10.11, CUDA 12.9",
        "model_id": "llama-2-70b",
        "accelerator_id": "b200-sxm",
        "layout": {},
        "n_gpus": "8",
        "length": {"input_tokens": 294, "output_tokens": 273.3},
    }
    offline = served(**row, precision={"weights": "fp4"}, batch={"scenario": "offline"})
    asked = workload(offline)
    assert asked["concurrency"] == 8 * 2048
    assert (asked["weight_precision"], asked["kv_cache_precision"]) == ("fp4", "fp8")
    interactive = served(**row, precision={"weights": "fp4"}, batch={"scenario": "interactive"})
    loads = [one["concurrency"] for one in serving_workloads(interactive, {}, "blackwell")]
    assert loads == [8 * each for each in (2048, 1024, 512, 256, 128, 64, 32)]
    assert mlperf.get_token_seconds(interactive) == 0.04
    opened = served(**row, precision={}, notes="open division; llama2-70b", batch={"scenario": "offline"})
    assert workload(opened)["weight_precision"] == "fp8"


RECIPES = [
    {
        "speculative": "mtp",
        "speculative_tokens": 3,
        "prefill": {"workers": 2, "ranks": 4, "expert_parallel": 4, "attention_data_parallel": True},
        "decode": {"workers": 1, "ranks": 32, "expert_parallel": 32, "attention_data_parallel": True},
    },
    {
        "speculative": None,
        "speculative_tokens": None,
        "prefill": {"workers": 1, "ranks": 4, "expert_parallel": 4, "attention_data_parallel": False},
        "decode": {"workers": 3, "ranks": 8, "expert_parallel": 1, "attention_data_parallel": False},
    },
]


def test_recipes_give_the_workers_of_both_sides_and_the_speculation(served):
    sides = {"prefill": {"tensor": 4}, "decode": {"tensor": 8}}
    row = served(engine="trtllm", layout=sides, recipe_json=json.dumps(RECIPES))
    plain, ahead = recipes.list_readings(row)
    assert workload(ahead)["speculative"] == {"method": "mtp", "tokens": 3}
    assert "speculative" not in workload(plain)
    (wide,), (narrow,) = arrangements(ahead), arrangements(plain)
    assert wide.devices == 2 * 4 + 32
    assert wide.disaggregated["decode"] == {"parallelism": {"data": 32, "expert": 32}, "replicas": 1}
    assert narrow.devices == 4 + 3 * 8
    assert narrow.disaggregated["decode"] == {"parallelism": {"tensor": 8, "data": 1}, "replicas": 3}


@pytest.mark.parametrize("decode", [{"workers": 3}, {"workers": 3, "ranks": None}])
def test_a_recipe_without_the_ranks_of_a_side_says_nothing_of_the_layout(served, decode):
    row = served(engine="trtllm", recipe_json=json.dumps([{**RECIPES[1], "decode": decode}]))
    assert recipes.list_readings(row) == [row]


def test_recomputation_is_that_on_which_all_recipes_agree(served):
    def recomputed(*stated):
        return recipes.get_recomputation(served(recipe_json=json.dumps(stated)))

    modules = {"recomputation": "selective", "recompute_modules": "mla_up_proj"}
    core = {"recomputation": "selective", "recompute_modules": "layernorm;core_attn"}
    assert recomputed({"recomputation": "none"}, modules) == "none"
    assert recomputed(core) == "selective"
    assert recomputed({"recomputation": "none"}, core) is None
    assert recomputed() is None
