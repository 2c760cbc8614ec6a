"""Tools of others, as programs that print what theirs print: asked with fixed words, parsed, never needed."""

import json
import os
from types import SimpleNamespace

import pytest

from service.protocol.results import DeviceTelemetry
from service.protocol.suites import shipped_suites
from service.worker.cuda import external_tool
from service.worker.measure import MeasuredDevice, measure_repeat
from tests.worker.cuda.fake_nvml import EachDevice
from tests.worker.machines import FakeWatch, benchmark, task

MIB = 2**20
NCCL = """#
# Using devices
#  Rank  0 Group  0 Pid   7 on       host device  0 [0000:17:00] NVIDIA H200
#  Rank  1 Group  0 Pid   7 on       host device  1 [0000:18:00] NVIDIA H200
#       size      count   type  redop  root   time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B) (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576     262144  float    sum    -1  52.43   20.00   20.00      0    51.00   20.56   20.56      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 20.28
"""
PCIE = (("GPU to Host", "52.00"), ("Host to GPU", "40.00"))
DCGM = json.dumps({
    "DCGM Diagnostic": {
        "test_categories": [{
            "category": "Integration",
            "tests": [{
                "name": "PCIe",
                "results": [{
                    "gpu_ids": "1",
                    "status": "Pass",
                    "info": [f"GPU 1 {way} bandwidth:\t\t{rate} GB/s" for way, rate in PCIE],
                }],
            }],
        }]
    }
})  # fmt: skip


def nvbandwidth(test, matrix):
    return json.dumps({
        "nvbandwidth": {
            "CUDA Runtime Version": 13000,
            "Driver Version": "580.95.05",
            "git_version": "v0.8",
            "testcases": [{
                "name": test,
                "status": "Passed",
                "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
                "bandwidth_matrix": matrix,
            }],
        }
    })  # fmt: skip


@pytest.fixture
def installed(driver, fake_nvml, monkeypatch, tmp_path):
    """Puts a program on the path that notes what it is told and prints a text."""
    fake_nvml.answers |= {
        "nvmlDeviceGetCount": 2,
        "nvmlDeviceGetPciInfo": EachDevice(
            [SimpleNamespace(busId=f"00000000:{17 + number}:00.0".encode()) for number in range(2)]
        ),
        "nvmlDeviceGetUUID": EachDevice(["GPU-a", "GPU-b"]),
    }
    driver.fact("devices", 2)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def install(name, printed, status=0):
        (tmp_path / "printed").write_text(printed)
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES" "$@" > {tmp_path}/told\n'
            f"cat {tmp_path}/printed\nexit {status}\n"
        )
        program.chmod(0o700)
        return tmp_path / "told"

    return install


def asked(tool, test, size=MIB, index=1):
    work = {"kind": "external_tool", "tool": tool, "test": test, "transfer_bytes": size}
    made = task(benchmark(work, "bytes_per_second"), device="cuda", accelerator_index=index)
    watch = type("Watch", (FakeWatch,), {"telemetry": DeviceTelemetry(window_seconds=1.0)})
    return measure_repeat(
        made, find=lambda _: MeasuredDevice({"external_tool": external_tool.prepare}, lambda _: watch())
    )


def figure(result):
    assert result.status == "ok", result.failure
    return result.benchmark.compute_figure(result.measurement.values, inner_iterations=1)


@pytest.mark.parametrize(("test", "matrix", "seen", "rate"), [
    ("host_to_device_memcpy_ce", [["55.43"]], "GPU-b", 55.43e9),
    ("device_to_device_memcpy_write_ce", [["N/A", "396.40"], ["395.00", "N/A"]], "GPU-b,GPU-a", 396.4e9),
])  # fmt: skip
def test_nvbandwidth_says_what_it_takes(installed, test, matrix, seen, rate):
    told = installed("nvbandwidth", nvbandwidth(test, matrix))
    result = asked("nvbandwidth", test, 512 * MIB)
    assert figure(result) == pytest.approx(rate, rel=1e-6)
    assert told.read_text().split() == [seen, "-j", "-t", test, "-b", "512"]
    assert result.measurement.timer == "cuda_event"
    assert result.measurement.library == "nvbandwidth, as installed here"


def test_nccl_tests_run_on_every_accelerator_and_say_how_long_one_took(installed):
    told = installed("all_reduce_perf", NCCL)
    result = asked("nccl_tests", "all_reduce")
    assert result.measurement.samples_ns == [52_430]
    words = told.read_text().split()
    assert words[0] == "GPU-b,GPU-a"
    assert words[1:] == ["-b", str(MIB), "-e", str(MIB), "-g", "2", "-w", "5", "-n", "20", "-c", "1"]


def test_dcgm_says_what_the_host_link_gives(installed):
    told = installed("dcgmi", DCGM)
    assert figure(asked("dcgm", "pcie_host_to_device", 40_000_000)) == pytest.approx(40e9)
    assert told.read_text().split() == ["GPU-b", "diag", "-r", "pcie", "-j", "-i", "1"]


@pytest.mark.parametrize(("printed", "status", "detail"), [
    ("nothing of this kind", 0, "printed unexpected output"),
    (nvbandwidth("another_test", [["55.43"]]), 0, "is in what the tool printed"),
    ("x" * 5 * MIB, 0, "bytes were printed"),
    ("", 3, "nvbandwidth ended with status 3"),
])  # fmt: skip
def test_what_is_not_understood_is_a_failure_and_no_figure(installed, printed, status, detail):
    installed("nvbandwidth", printed, status)
    result = asked("nvbandwidth", "host_to_device_memcpy_ce")
    assert (result.status, result.failure.reason) == ("failed", "BENCHMARK_ERROR")
    assert detail in result.failure.detail


@pytest.mark.parametrize(("tool", "test", "size", "detail"), [
    ("nvbandwidth", "host_to_device_memcpy_ce", MIB, "nvbandwidth is not installed"),
    ("nccl_tests", "all_reduce", MIB, "all_reduce_perf is not installed"),
    ("nvbandwidth", "host_to_device_bidirectional_memcpy_ce", MIB, "is not used for"),
    ("nccl_tests", "reduce", MIB, "is not used for"),
    ("nvbandwidth", "host_to_device_memcpy_ce", MIB + 4, "whole mebibytes"),
])  # fmt: skip
def test_a_tool_that_is_not_here_and_a_test_that_nobody_knows_are_unsupported(
    installed, monkeypatch, tmp_path, tool, test, size, detail
):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = asked(tool, test, size)
    assert result.status == "unsupported"
    assert detail in result.failure.detail


def test_every_tool_of_the_suites_can_be_asked(installed):
    works = [one.work for one in shipped_suites()["gpu-deep"].benchmarks if one.work.kind == "external_tool"]
    assert {work.tool for work in works} == {"nvbandwidth", "nccl_tests", "dcgm"}
    for work in works:
        assert external_tool.build_plan(work, 0).program
