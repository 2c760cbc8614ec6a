"""Files of measurements: the figures of real files, and what tells one unit, device or run from another."""

import json
from pathlib import Path

import pytest

from service.formats.measurements import READERS
from service.planning.errors import PlanningError
from service.planning.units import GIBIBYTE_BYTES, MEBIBYTE_BYTES

DATA = Path(__file__).parents[1] / "data" / "measurements"
GIB, MIB = GIBIBYTE_BYTES, MEBIBYTE_BYTES


def text(name):
    return (DATA / name).read_text()


def read(kind, content):
    return READERS[kind](content)


def figure(run, metric, statistic="single", /, **of):
    """The only reading of a figure."""
    found = {
        one.value
        for one in run.readings
        if (one.metric, one.statistic) == (metric, statistic)
        if all(one.of.get(name) == value for name, value in of.items())
    }
    assert len(found) == 1, found
    return found.pop()


def only(kind, name):
    measurements = read(kind, text(name))
    (run,) = measurements.runs
    assert measurements.refused == []
    return run


@pytest.mark.parametrize(
    ("kind", "name", "metric", "statistic", "value"),
    [
        ("guidellm", "guidellm-report-v2.json", "time_to_first_token_seconds", "mean", 0.011481),
        ("guidellm", "guidellm-report-v2.json", "request_seconds", "mean", 0.019789),
        ("guidellm", "guidellm-report-v2.json", "time_per_output_token_seconds", "mean", 0.00115085),
        ("aiperf_json", "profile_export_aiperf.json", "time_to_first_token_seconds", "p50", 0.177785533),
        ("aiperf_json", "profile_export_aiperf.json", "output_tokens_per_second", "mean", 1172.146),
        ("aiperf_csv", "profile_export_aiperf.csv", "time_to_first_token_seconds", "p50", 0.17779),
        ("aiperf_csv", "profile_export_aiperf.csv", "output_tokens_per_second", "mean", 1172.15),
        (
            "inferencex",
            "inferencex-glm5-fp8-vllm-tp8-c64.json",
            "time_to_first_token_seconds",
            "p50",
            0.90153,
        ),
        (
            "inferencex",
            "inferencex-glm5-fp8-vllm-tp8-c64.json",
            "time_per_output_token_seconds",
            "p50",
            0.0878618,
        ),
        ("inferencex", "inferencex-glm5-fp8-vllm-tp8-c64.json", "output_tokens_per_second", "mean", 663.04),
        (
            "vllm_bench",
            "vllm-bench-serve-gpt-oss-120b-2p2d-c32.json",
            "time_to_first_token_seconds",
            "p50",
            0.08378,
        ),
        (
            "vllm_bench",
            "vllm-bench-serve-gpt-oss-120b-2p2d-c32.json",
            "time_per_output_token_seconds",
            "p99",
            0.0104566,
        ),
        ("vllm_bench", "vllm-bench-latency-llama405b-fp8-8xh100.json", "request_seconds", "p99", 474.90),
        (
            "vllm_bench",
            "vllm-bench-throughput-llama405b-fp8-8xh100.json",
            "total_tokens_per_second",
            "mean",
            1105.49,
        ),
        (
            "mlperf_inference",
            "1xmi300x_2xepyc-9374f-llama2-70b-99.9-server.txt",
            "output_tokens_per_second",
            "mean",
            2520.27,
        ),
        (
            "mlperf_inference",
            "1xmi300x_2xepyc-9374f-llama2-70b-99.9-server.txt",
            "time_to_first_token_seconds",
            "p99",
            0.785266,
        ),
        (
            "dcgm_diagnostics",
            "dcgmi-diag-r3-t4-dcgm3.json",
            "device_to_host_bytes_per_second",
            "single",
            13.15e9,
        ),
        (
            "dcgm_diagnostics",
            "dcgmi-diag-r3-t4-dcgm3.json",
            "allocatable_memory_bytes",
            "single",
            15206918958,
        ),
        ("dcgm_diagnostics", "dcgmi-diag-r3-t4-dcgm3.json", "flops_per_second", "single", 11.10302e12),
        ("dcgm_dmon", "dcgmi-dmon-prof.txt", "tensor_activity", "p50", 0.885),
        ("dcgm_exporter", "a100-40gb-busy-mig.prom", "power_watts", "single", 409.692),
        ("dcgm_exporter", "a100-40gb-busy-mig.prom", "used_memory_bytes", "single", 4845 * MIB),
        ("dcgm_exporter", "a100-40gb-busy-mig.prom", "tensor_activity", "single", 0.92926),
        ("dcgm_exporter", "readme-metrics.prom", "multiprocessor_clock_hz", "single", 139e6),
        ("nsight_compute", "ncu-cublaslt-sm100-details.csv", "kernel_seconds", "single", 406240e-9),
        ("nsight_compute", "ncu-cublaslt-sm100-details.csv", "elapsed_cycles", "single", 508757),
        ("nsight_compute", "ncu-cublaslt-sm100-details.csv", "multiprocessors", "single", 152),
    ],
)
def test_figures_of_real_files_in_si_units(kind, name, metric, statistic, value):
    assert figure(only(kind, name), metric, statistic) == pytest.approx(value, rel=1e-4)


def test_what_a_file_says_of_its_load():
    assert only("aiperf_json", "profile_export_aiperf.json").facts["workload.concurrency"] == 16
    served = only("vllm_bench", "vllm-bench-serve-gpt-oss-120b-2p2d-c32.json").facts
    assert (served["workload.concurrency"], served["workload.input_tokens"]) == (32, 128)
    assert served["model_name"] == "openai/gpt-oss-120b"
    server = only("mlperf_inference", "1xmi300x_2xepyc-9374f-llama2-70b-99.9-server.txt").facts
    assert server["workload.request_rate_per_second"] == 8.62
    offline = "gh200-gracehopper-superchip_gh200-144gb_aarch64x1_trt-llama2-70b-99-offline.txt"
    assert only("mlperf_inference", offline).facts["workload.concurrency"] == 38280
    assert only("guidellm", "guidellm-report-v2.json").facts["workload.arrivals"] == {"process": "uniform"}
    assert only("aiperf_csv", "profile_export_aiperf.csv").facts.keys().isdisjoint({"workload.concurrency"})


def test_lengths_that_vary_keep_their_mean_and_spread():
    length = only("aiperf_json", "profile_export_aiperf.json").facts["workload.input_tokens"]
    assert length["mean_tokens"] == pytest.approx(3761.31, abs=0.01)
    assert length["sigma"] == pytest.approx(0.6463, abs=1e-4)
    """sqrt(ln(1 + (2708.35 / 3761.31)^2))."""


def test_seconds_and_milliseconds_are_told_apart_by_their_names():
    seconds = text("inferencex-glm5-fp8-vllm-tp8-c64.json")
    served = text("vllm-bench-serve-gpt-oss-120b-c128.json")
    for kind, content in (("vllm_bench", seconds), ("inferencex", served)):
        measurements = read(kind, content)
        assert (measurements.runs, measurements.refused[0].code) == ([], "ANOTHER_UNIT")


def test_published_rows_of_inferencex_give_rates_by_device():
    row = {
        "hw": "h200",
        "tp": 8,
        "conc": 64,
        "isl": 1024,
        "osl": 1024,
        "framework": "trt",
        "precision": "fp8",
    }
    row |= {"model": "deepseek-ai/DeepSeek-R1-0528", "tput_per_gpu": 300.0, "output_tput_per_gpu": 150.0}
    (run,) = read("inferencex", json.dumps([row | {"median_tpot": 0.025, "median_intvty": 40.0}])).runs
    assert figure(run, "output_tokens_per_second", "mean") == 1200.0
    assert figure(run, "time_per_output_token_seconds", "p50") == 0.025
    assert run.facts["workload.engine.name"] == "tensorrt-llm"


def test_a_table_of_llama_bench_with_fewer_values_than_names_is_read_from_both_ends():
    measurements = read("llama_bench", text("llama-bench-rtx4080-qwen2.5-7b.csv"))
    assert {note.code for note in measurements.notes} == {"COLUMNS_DIFFER"}
    prompt, generation = measurements.runs
    assert figure(prompt, "input_tokens_per_second", "mean") == 7285.676949
    assert figure(generation, "time_per_output_token_seconds", "mean") == pytest.approx(1 / 119.915244)
    assert prompt.facts["accelerator_name"] == "NVIDIA GeForce RTX 4080"
    whole, _ = read("llama_bench", text("llama-bench-rtx4080-qwen2.5-7b.json")).runs
    assert figure(whole, "time_to_first_token_seconds", "mean") == pytest.approx(512 / 7100.002165)


def test_an_invalid_run_of_mlperf_is_refused():
    content = text("1xmi300x_2xepyc-9374f-llama2-70b-99.9-server.txt")
    measurements = read("mlperf_inference", content.replace("Result is : VALID", "Result is : INVALID"))
    assert (measurements.runs, measurements.refused[0].code) == ([], "RESULT_INVALID")


@pytest.mark.parametrize(
    ("name", "metric", "size", "of"),
    [
        ("vllm-v1-startup.log", "kv_cache_tokens", 75840, {"rank": ""}),
        ("vllm-v1-startup.log", "cuda_graph_bytes", 0.36 * GIB, {"rank": "TP1"}),
        ("vllm-v1-startup.log", "weights_bytes", 12.66 * GIB, {"rank": "TP0"}),
        ("vllm-v0-startup.log", "kv_cache_tokens", 7191 * 16, {}),
        ("vllm-v0-startup.log", "activation_peak_bytes", 2.38 * GIB, {}),
        ("vllm-v0-tp2-startup.log", "kv_cache_bytes", 36.07 * GIB, {"rank": ""}),
        ("vllm-2024-loading.log", "kv_cache_tokens", 22096, {}),
        ("sglang-startup.log", "kv_cache_bytes", 119.82 * GIB, {}),
        ("sglang-startup.log", "cuda_graph_bytes", 1.44 * GIB, {"rank": ""}),
        ("tensorrt-llm-startup.log", "activation_peak_bytes", 2265.58 * MIB, {}),
        ("llama-cpp-load-2gpu.log", "weights_bytes", 13989.53 * MIB, {"rank": "CUDA1"}),
        ("llama-cpp-load-2gpu.log", "kv_cache_bytes", 1536 * MIB, {"rank": "CUDA0"}),
    ],
)
def test_memory_of_start_up_logs_is_in_binary_units(name, metric, size, of):
    run = only("engine_log", name)
    known = [one.value for one in run.readings if one.metric == metric and of.items() <= one.of.items()]
    assert known[0] == pytest.approx(size)


def test_devices_of_every_back_end_are_told_apart():
    log = "load_tensors:        ROCm0 model buffer size =  4155.99 MiB\n"
    log += "load_tensors:   CPU_Mapped model buffer size =   281.81 MiB\n"
    (run,) = read("engine_log", log).runs
    assert figure(run, "weights_bytes", rank="ROCm0") == pytest.approx(4155.99 * MIB)
    assert len(run.readings) == 1


def test_requests_at_a_time_of_guidellm():
    report = json.loads(text("guidellm-report-v2.json"))
    report["benchmarks"][0]["config"]["strategy"] = {"type_": "concurrent", "streams": 32}
    (run,) = read("guidellm", json.dumps(report)).runs
    assert run.facts["workload.concurrency"] == 32
    earlier = report["benchmarks"][0]
    earlier["args"] = earlier.pop("config")
    assert read("guidellm", json.dumps(report)).runs[0].facts["workload.concurrency"] == 32


def test_two_engines_in_a_log_are_two_runs():
    vllm, sglang = read("engine_log", text("sglang-vs-vllm-qwen3-235b-4xh100.log")).runs
    assert figure(vllm, "kv_cache_bytes") / figure(vllm, "kv_cache_tokens") == pytest.approx(48680, rel=1e-3)
    assert figure(sglang, "kv_cache_bytes") / figure(sglang, "kv_cache_tokens") == pytest.approx(
        48104, rel=1e-3
    )


def test_blocks_of_another_size_need_the_log_to_say_so():
    line = "INFO # GPU blocks: 1381\nINFO Maximum concurrency for 2048 tokens per request: 21.58x\n"
    assert read("engine_log", line).refused[0].code == "BLOCK_SIZE_UNKNOWN"
    (run,) = read("engine_log", "INFO config: block_size=32\n" + line).runs
    assert figure(run, "kv_cache_tokens") == 1381 * 32


def test_a_training_log_leaves_its_first_step_out():
    run = only("training_log", "bigscience-gpt2-meg-ds-3d-n16.log")
    assert figure(run, "step_seconds", "p50") == pytest.approx(124.0186)
    assert figure(run, "step_seconds", step=1) == pytest.approx(144.9156)
    assert figure(run, "reserved_memory_bytes", "max") == 20344 * MIB
    layout = [run.facts[f"parallelism.{name}"] for name in ("tensor", "pipeline", "data")]
    assert layout == [4, 16, 1]
    first = "iteration 1/ 5 | elapsed time per iteration (ms): 76015.3 | global batch size: 8 |"
    assert read("training_log", first).refused[0].code == "WARM_UP_ONLY"


def test_training_logs_say_batch_layout_and_memory():
    run = only("training_log", "megatron-deepspeed-gpt6.7b-16gpu.log")
    said = run.facts
    assert (said["workload.global_batch_size"], said["workload.micro_batch_size"]) == (2048, 2)
    assert (said["cluster.accelerator_count"], said["parallelism.sharding"]) == (16, "zero_1")
    assert figure(run, "allocated_memory_bytes", "max") == pytest.approx(68581.8095703125 * MIB)
    assert figure(run, "flops_per_second_per_device", step=1) == pytest.approx(147.61e12)
    mixtral = only("training_log", "megatron-mixtral-8x7b-16xh100.log")
    assert figure(mixtral, "step_seconds", step=2) == pytest.approx(5.6301)


def test_torchtitan_prints_commas_and_rates_of_one_device():
    first, second, third = read("training_log", text("torchtitan-b200-and-h100-steps.log")).runs
    assert [run.facts["steps"] for run in (first, second, third)] == [2, 3, 1]
    assert figure(second, "tokens_per_second_per_device", step=200) == 5856
    assert figure(second, "device_memory_bytes", step=200) == pytest.approx(94.99 * GIB, rel=1e-3)
    assert figure(second, "model_flops_utilization", step=200) == pytest.approx(0.3429)


def test_mlperf_training_gives_seconds_and_samples():
    run = only("training_log", "mlperf-training-4.1-llama2-70b-lora-8xh100.log")
    assert figure(run, "run_seconds") == pytest.approx(1609.849)
    assert figure(run, "samples_per_second", step=3072) == pytest.approx(2.1708, rel=1e-4)
    assert run.facts["workload.global_batch_size"] == 8


def test_cells_of_nvbandwidth_are_transfers_and_its_sums_are_not():
    run = only("nvbandwidth", "nvbandwidth-v0.8-6xa6000.txt")
    cells = [one.value for one in run.readings]
    assert len(cells) == 30
    assert sum(cells) / 30 == pytest.approx(23.85e9, rel=1e-3)
    h100 = only("nvbandwidth", "nvbandwidth-h100-8gpu-memcpy-sm.txt")
    metric = "transfer_bytes_per_second"
    assert figure(h100, metric, test="host_to_device_memcpy_sm", column=0) == pytest.approx(35.19e9)
    assert figure(h100, metric, test="device_to_host_memcpy_sm", column=7) == pytest.approx(52.77e9)
    gh200 = only("nvbandwidth", "nvbandwidth-v0.6-gh200-fixture.txt")
    latency = figure(gh200, "transfer_latency_seconds", test="host_device_latency_sm")
    assert latency == pytest.approx(772.58e-9)
    assert gh200.facts["accelerator_name"] == "NVIDIA GH200 480GB"


def test_nvbandwidth_as_json_says_the_same_as_its_text():
    case = {
        "name": "device_to_device_memcpy_read_ce",
        "status": "Passed",
        "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [["N/A", "26.34"], ["26.35", "N/A"]],
        "sum": 52.69,
    }
    waived = {"name": "multinode_device_to_device_memcpy_read_ce", "status": "Waived"}
    failed = {"name": "host_to_device_memcpy_ce", "status": "Error"}
    report = {"nvbandwidth": {"Driver Version": "580.95.05", "testcases": [case, waived, failed]}}
    measurements = read("nvbandwidth", json.dumps(report))
    (run,) = measurements.runs
    metric, test = "transfer_bytes_per_second", "device_to_device_memcpy_read_ce"
    assert figure(run, metric, test=test, row=1, column=0) == pytest.approx(26.35e9)
    assert [refused.code for refused in measurements.refused] == ["TEST_FAILED"]
    broken = text("nvbandwidth-v0.8-6xa6000.txt").replace("715.53", "615.53")
    assert [note.code for note in read("nvbandwidth", broken).notes] == ["SUM_DIFFERS"]


def test_an_all_reduce_is_known_by_its_two_bandwidths():
    run = only("nccl_tests", "all_reduce-a100-40g-8gpu.txt")
    assert run.facts["collective"] == "all_reduce"
    assert run.facts["cluster.accelerator_count"] == 8
    assert figure(run, "average_bus_bytes_per_second", "mean") == pytest.approx(68.4048e9)
    largest = {"bytes": 8589934592}
    assert figure(run, "bus_bytes_per_second", "mean", **largest, placement="out_of_place") == pytest.approx(
        235.26e9
    )
    assert figure(run, "bus_bytes_per_second", "mean", **largest, placement="in_place") == pytest.approx(
        235.03e9
    )


def test_a_column_that_is_empty_shifts_no_other():
    run = only("nccl_tests", "alltoall-a100-40g-8gpu.txt")
    assert "collective" not in run.facts
    seconds = figure(run, "collective_seconds", "mean", bytes=8589934592, placement="in_place")
    assert seconds == pytest.approx(33234e-6)


NEW_TABLE = """# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_gather_perf
# Using devices
#  Rank  0 Group  0 Pid  1 on  node-1 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  1 on  node-2 device  0 [0000:0f:00] NVIDIA H100 80GB HBM3
#
#  size  count  type  redop  root   time  algbw  busbw  #wrong   time  algbw  busbw  #wrong  timestamp
#   (B) (elements)                  (us) (GB/s) (GB/s)           (us) (GB/s) (GB/s)  %Y-%m-%d %H:%M:%S
1048576 131072 float   none    -1  41.05  25.54  12.77       0  40.02  26.20  13.10   0 2026-01-02 03:04:05
2097152 262144 float   none    -1  61.05  34.35  17.18       3  60.02  34.94  17.47 N/A 2026-01-02 03:04:05
# Out of bounds values : 0 OK
"""


def test_later_tables_have_a_root_and_a_time_of_day():
    measurements = read("nccl_tests", NEW_TABLE)
    (run,) = measurements.runs
    assert (run.facts["collective"], run.facts["nodes"]) == ("all_gather", 2)
    assert figure(
        run, "collective_seconds", "mean", bytes=1048576, placement="out_of_place"
    ) == pytest.approx(41.05e-6)
    assert [refused.code for refused in measurements.refused] == ["WRONG_RESULTS"]


def test_json_of_nccl_tests_lists_one_device_of_each_process():
    part = {"time": 41.05, "alg_bw": 25.54, "bus_bw": 44.7, "nwrong": 0.0}
    device = {"rank": 0, "hostname": "node-1", "device_info": "NVIDIA H100 80GB HBM3"}
    report = {
        "version": 2,
        "args": ["./build/all_reduce_perf", "-g", "8"],
        "env": ["SECRET=1"],
        "config": {"nthreads": 1, "ngpus": 8, "devices": [device]},
        "results": [{"size": 1048576, "out_of_place": part, "in_place": None}],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 44.7, "okay": "unchecked"},
    }
    (run,) = read("nccl_tests", json.dumps(report)).runs
    assert (run.facts["collective"], run.facts["cluster.accelerator_count"]) == ("all_reduce", 8)
    assert figure(run, "collective_seconds", "mean") == pytest.approx(41.05e-6)


def test_results_of_superbench_are_by_rank():
    run = only("superbench", "results-summary.jsonl")
    assert run.facts["node_name"] == "sb-validation-01"
    assert figure(run, "kernel_launch_seconds", metric="event_time", rank=0) == pytest.approx(5.42e-6)
    assert figure(run, "bytes_per_second", metric="h2d_bw", rank=2) == pytest.approx(26.2e9)
    (baseline,) = read("superbench", '{"gemm-flops/bf16_tc_flops": 265900.55}').runs
    assert figure(baseline, "flops_per_second") == pytest.approx(265.90055e12)


def test_an_instance_is_not_added_to_its_gpu():
    notes = read("dcgm_exporter", text("a100-40gb-busy-mig.prom")).notes
    assert {note.code for note in notes} == {"MIG_INSTANCE"}


def test_diagnostics_of_later_versions():
    result = {"entity_id": 0, "status": "Pass", "info": ["GPU 0 GPU to Host bandwidth:\t\t55.15 GB/s"]}
    tests = [{"name": "pcie", "results": [result, {"entity_id": 1, "status": "Fail"}]}]
    measurements = read(
        "dcgm_diagnostics", json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}})
    )
    assert figure(measurements.runs[0], "device_to_host_bytes_per_second") == pytest.approx(55.15e9)
    assert [refused.code for refused in measurements.refused] == ["TEST_FAILED"]


def trace(*spans):
    events = [
        {"ph": "X", "cat": category, "name": name, "ts": 0, "dur": duration}
        for category, name, duration in spans
    ]
    return json.dumps({"deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}], "traceEvents": events})


def test_steps_of_a_trace_are_microseconds_and_counted_once():
    (run,) = read(
        "torch_profiler",
        trace(
            ("user_annotation", "ProfilerStep#1", 900_000.0),
            ("gpu_user_annotation", "ProfilerStep#2", 1.0),
            ("user_annotation", "ProfilerStep#2", 400_000.0),
            ("user_annotation", "ProfilerStep#3", 420_000.0),
            ("kernel", "ncclDevKernel_AllReduce", 60_000.0),
            ("kernel", "sm90_gemm", 600_000.0),
        ),
    ).runs
    assert figure(run, "step_seconds", "p50") == pytest.approx(0.41)
    assert figure(run, "kernel_busy_seconds", "mean") == pytest.approx(0.22)
    assert figure(run, "collective_busy_seconds", "mean") == pytest.approx(0.02)


def test_the_own_table_names_members_of_a_question():
    table = (
        "metric,value,statistic,workload.concurrency,workload.input_tokens,model_name\n"
        "time_per_output_token_seconds,0.012,p50,16,1024,llama-3.1-8b\n"
        "output_tokens_per_second,0,,16,1024,llama-3.1-8b\n"
        "tpot_ms,12,,16,1024,llama-3.1-8b\n"
    )
    measurements = read("own_csv", table)
    (run,) = measurements.runs
    assert figure(run, "time_per_output_token_seconds", "p50") == 0.012
    assert run.facts == {
        "workload.concurrency": 16,
        "workload.input_tokens": 1024,
        "model_name": "llama-3.1-8b",
    }
    assert [refused.code for refused in measurements.refused] == ["NOT_POSITIVE", "METRIC_UNKNOWN"]


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "content", ["", "nothing of this kind", "{}", "[]", '{"a": [1, {"b": null}]}', "a,b\n1,2\n"]
)
def test_a_file_of_another_kind_is_refused(kind, content):
    with pytest.raises(PlanningError) as refused:
        read(kind, content)
    assert refused.value.code == "FORMAT"
