"""The suite for accelerators: data that the worker can carry out and whose windows mean known devices."""

import json
from pathlib import Path

import pytest

from service.protocol.suites import shipped_suites
from service.worker.cuda import PREPARE

ROOT = Path(__file__).resolve().parents[3]
CATALOG = {
    entry["id"]: entry
    for entry in json.loads((ROOT / "service/catalog/accelerators/shipped.json").read_text("utf-8"))
}
SUITE = shipped_suites()["gpu-first"]
PEAKS = {"fp8_e4m3": "fp8", "fp64": "fp64_tensor"}


def test_every_kind_of_work_on_an_accelerator_is_in_it():
    assert {benchmark.work.kind for benchmark in SUITE.benchmarks} <= PREPARE.keys()
    assert {b.work.dtype for b in SUITE.benchmarks if b.work.kind == "gemm"} == {
        "fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"
    }  # fmt: skip
    assert {b.work.load for b in SUITE.benchmarks if b.work.kind == "power"} == {
        "idle", "context", "gemm", "stream"
    }  # fmt: skip


def test_metric_and_direction_belong_together():
    higher = {"flops_per_second", "bytes_per_second"}
    for benchmark in SUITE.benchmarks:
        assert (benchmark.direction == "higher") == (benchmark.metric in higher), benchmark.name


@pytest.mark.parametrize("benchmark", SUITE.benchmarks, ids=lambda benchmark: benchmark.name)
def test_windows_are_below_the_datasheet_of_a_catalogued_device(benchmark):
    for window in benchmark.windows:
        device = CATALOG[window.accelerator_id]
        match benchmark.metric:
            case "flops_per_second":
                dtype = PEAKS.get(benchmark.work.dtype, benchmark.work.dtype)
                ceiling = device["peak_flops_per_second"][dtype]
            case "bytes_per_second" if benchmark.work.kind == "host_link":
                ceiling = {4: 32e9, 5: 64e9}[device["pcie_generation"]]
            case "bytes_per_second":
                ceiling = device["memory_bandwidth_bytes_per_second"]
            case "watts":
                ceiling = device["power_limit_watts"] * 1.05
        assert window.high <= ceiling
        assert not hasattr(window.low, "__float__") or window.low < window.high


def test_what_no_two_sources_stand_behind_is_provisional():
    """Of the formats and readings that the literature search found one source for, or none."""
    doubtful = ("gemm.int8", "gemm.tf32", "gemm.fp32", "gemm.fp64", "power.", "gemm_skinny.", "hbm.write")
    for benchmark in SUITE.benchmarks:
        if benchmark.name.startswith(doubtful):
            assert all(window.is_provisional for window in benchmark.windows), benchmark.name


def test_arrays_are_far_larger_than_any_cache():
    largest_cache_bytes = 126 * 2**20  # of a B200, the largest there is
    for benchmark in SUITE.benchmarks:
        if benchmark.work.kind in ("stream", "strided_read"):
            assert benchmark.work.array_bytes >= 8 * largest_cache_bytes, benchmark.name


def test_it_is_over_in_time_for_a_lease():
    """Half an hour where nothing runs into its limit: set-up, warm-up, samples and settling."""
    seconds = 0.0
    for benchmark in SUITE.benchmarks:
        if benchmark.work.kind == "power":
            least = benchmark.work.settle_seconds + benchmark.work.window_seconds
        else:
            least = benchmark.sampling.warmup_seconds + benchmark.sampling.most_seconds
        assert benchmark.timeout_seconds > 2 * least
        if benchmark.work.kind != "power":
            least = benchmark.sampling.warmup_seconds + benchmark.sampling.least_seconds
        seconds += benchmark.repeats * (least + 6)
    assert seconds < 1800
