"""The suites against a simulated device: what a process of it takes, and what is said of it."""

import shutil

import pytest

from bench import gpu_stand_in
from service.protocol.suites import shipped_suites
from service.worker.child import measure_task
from service.worker.process import ChildProcesses
from tests.worker.cuda import host_kernels
from tests.worker.records import task

BENCHMARKS = gpu_stand_in.list_benchmarks()


def taken(seconds, outcome="ok", **other):
    """The same seconds and outcome of every benchmark, but for those that are named."""
    found = {one.name: gpu_stand_in.HostTime(2 * seconds, seconds, outcome) for one in BENCHMARKS}
    return found | other


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ to build the driver with")
@pytest.mark.parametrize(
    ("name", "checked"),
    [
        ("hbm.read", "65536 elements against NumPy, checksum over all: "),
        ("gemm_grouped.bf16_8x16", "12 tiles of 16 x 16 of 8 experts against float64: "),
    ],
)
def test_a_process_goes_through_its_check_at_the_size_of_the_suite(monkeypatch, name, checked):
    host_kernels.driver()
    monkeypatch.setenv("FAKE_FAULT", "simulated")
    (benchmark,) = [one for one in BENCHMARKS if one.name == name]
    found = gpu_stand_in.measure(benchmark, ChildProcesses(module="tests.worker.cuda.failing"))
    assert found.outcome == "WRONG_RESULT"
    assert found.detail.startswith(checked)
    assert 0.1 < found.seconds < 60.0


def test_the_size_is_that_of_the_suite():
    (benchmark,) = [one for one in BENCHMARKS if one.name == "hbm.read"]
    assert benchmark.work.array_bytes == 2**32


def test_the_seconds_of_a_suite_are_those_of_its_processes_and_of_its_rule():
    parts = gpu_stand_in.totals(taken(1.0))
    assert set(parts) == {"gpu-quick", "gpu-standard", "gpu-deep"}
    deep = parts["gpu-deep"]
    assert deep.processes == deep.measured == sum(one.repeats for one in BENCHMARKS)
    whole = sum(one.planned_seconds("cuda") for one in BENCHMARKS)
    assert deep.sampled + deep.planned == pytest.approx(whole)
    assert whole < shipped_suites()["gpu-deep"].planned_seconds
    assert gpu_stand_in.find_faults(taken(1.0)) == []


def test_what_is_late_or_without_an_end_fails():
    late = gpu_stand_in.find_faults(taken(9.0))
    assert late == [
        f"{suite} takes longer than planned" for suite in ("gpu-deep", "gpu-quick", "gpu-standard")
    ]
    hung = gpu_stand_in.HostTime(120.0, 1.0, "TIMEOUT", "after 120 s: killed")
    said = "RuntimeError: a block of 9 bytes does not contain the data written to it"
    full = gpu_stand_in.HostTime(1.0, 1.0, "BENCHMARK_ERROR", said)
    assert gpu_stand_in.find_faults(taken(1.0, **{"hbm.copy": hung, "memory.capacity": full})) == [
        "hbm.copy: TIMEOUT: after 120 s: killed"
    ]
    text = "\n".join(gpu_stand_in.page(BENCHMARKS, taken(1.0, "UNSUPPORTED"), 0.5))
    assert f"{len(BENCHMARKS)} are unsupported\nhere" in text
    assert "nothing here is a figure of a GPU" in text.replace("\n", " ")


def test_a_check_multiplies_by_one_thread(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "8")
    given = task(device="cuda", accelerator_index=0).model_dump_json().encode()
    assert b'"openblas_num_threads":"8"' in measure_task(given, [])
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert b'"openblas_num_threads":"1"' in measure_task(given, [])
