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
LINKS = {
    entry["id"]: entry
    for entry in json.loads((ROOT / "service/catalog/links/shipped.json").read_text("utf-8"))
}
SUITES = [suite for suite in shipped_suites().values() if suite.device == "cuda"]
BENCHMARKS = [
    pytest.param(benchmark, id=f"{suite.id}-{benchmark.name}")
    for suite in SUITES
    for benchmark in suite.benchmarks
]
SUITE = shipped_suites()["gpu-deep"]
PEAKS = {"fp8_e4m3": "fp8", "fp64": "fp64_tensor"}


def test_all_that_accelerators_can_do_is_asked_of_them():
    assert PREPARE.keys() <= {benchmark.work.kind for benchmark in SUITE.benchmarks}
    assert {b.work.dtype for b in SUITE.benchmarks if b.work.kind == "gemm"} == {
        "fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"
    }  # fmt: skip
    assert {b.work.load for b in SUITE.benchmarks if b.work.kind == "power"} == {
        "idle", "context", "gemm", "stream", "decode"
    }  # fmt: skip


def ceiling(benchmark, device):
    """What the datasheet of a device allows, in the unit of the figure."""
    work, link = benchmark.work, LINKS[device["intra_node_link_id"]]
    match work.kind, benchmark.metric:
        case _, "watts":
            return device["power_limit_watts"] * 1.05
        case (("gemm" | "attention"), "flops_per_second"):
            return device["peak_flops_per_second"][PEAKS.get(work.dtype, work.dtype)]
        case "host_link", _:
            return {4: 32e9, 5: 64e9}[device["pcie_generation"]]
        case "peer_link", _:
            return link["bandwidth_bytes_per_second"] * (2 if work.direction == "both" else 1)
        case "collective", _:
            # A switch that adds sends each byte once, where the factor of a ring counts it twice.
            is_added = work.operation == "all_reduce" and link.get("in_network_reduction")
            share = 2 * (work.devices - 1) / work.devices if is_added else 1
            return link["bandwidth_bytes_per_second"] * share
        case _:
            return device["memory_bandwidth_bytes_per_second"]


@pytest.mark.parametrize("benchmark", [one for one in BENCHMARKS if one.values[0].windows])
def test_windows_are_below_the_datasheet_of_a_catalogued_device(benchmark):
    for window in benchmark.windows:
        assert window.high <= ceiling(benchmark, CATALOG[window.accelerator_id])
        assert not hasattr(window.low, "__float__") or window.low < window.high


def test_what_no_two_sources_stand_behind_is_provisional():
    """Of the formats and readings that the literature search found one source for, or none."""
    doubtful = (
        "gemm.int8", "gemm.tf32", "gemm.fp32", "gemm.fp64", "power.", "gemm_skinny.", "hbm.write", "peer.",
        "attention.",
    )  # fmt: skip
    for benchmark in SUITE.benchmarks:
        if benchmark.name.startswith(doubtful):
            assert all(window.is_provisional for window in benchmark.windows), benchmark.name


def test_arrays_are_far_larger_than_any_cache():
    largest_cache_bytes = 126 * 2**20  # of a B200, the largest there is
    for benchmark in SUITE.benchmarks:
        if benchmark.work.kind in ("stream", "strided_read", "occupancy", "host_stream"):
            assert benchmark.work.array_bytes >= 8 * largest_cache_bytes, benchmark.name
