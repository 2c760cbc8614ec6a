"""The suite's answer to what fails on real machines, in processes of their own as a worker starts them."""

import shutil

import pytest

from service.protocol.suites import BenchmarkSuite
from service.worker.errors import WorkerError
from service.worker.interrupt import InterruptSignal
from service.worker.process import ChildProcesses
from service.worker.running import LOST_DEVICE, SuiteRun, run_suite
from service.worker.status import WorkerStatus
from tests.worker.cuda import host_kernels
from tests.worker.records import SAMPLING

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no g++ to run the kernels with")
OK = ("ok", None)
BOTH = ("gemm.bf16", "hbm.copy")


def suite(names, timeout_seconds):
    """A product twice, and a copy."""
    work = {
        "gemm.bf16": {"kind": "gemm", "dtype": "bf16", "m": 32, "n": 32, "k": 64},
        "hbm.copy": {"kind": "stream", "pattern": "copy", "array_bytes": 2**18},
    }
    return BenchmarkSuite.model_validate({
        "id": "faults",
        "version": 1,
        "title": "Two benchmarks",
        "device": "cuda",
        "benchmarks": [
            {
                "name": name,
                "work": each,
                "metric": "flops_per_second" if name.startswith("gemm") else "bytes_per_second",
                "direction": "higher",
                "formula": "as the kind says",
                "repeats": 2 if name == "gemm.bf16" else 1,
                "timeout_seconds": timeout_seconds,
                "sampling": SAMPLING,
            }
            for name, each in work.items()
            if name in names
        ],
    })  # fmt: skip


@pytest.fixture
def measured(monkeypatch):
    """The records of benchmarks under a fault, by name, and what ended the suite early."""
    host_kernels.driver()  # built once, before a time is limited

    def run(fault, *names, timeout_seconds=60.0):
        monkeypatch.setenv("FAKE_FAULT", fault)
        made = SuiteRun(
            run_id="run-1", suite=suite(names or BOTH, timeout_seconds), seed=7, fencing_token=1, attempt=1,
            nonce="ab" * 16, node_id="node-1", boot_id_sha256="0" * 64, inventory_sha256="0" * 64,
            accelerator_index=0, accelerators=(0,),
        )  # fmt: skip
        children, records, ended = ChildProcesses(module="tests.worker.cuda.failing"), {}, None
        try:
            run_suite(
                made, children, InterruptSignal(), WorkerStatus(),
                lambda result: records.setdefault(result.benchmark.name, []).append(result),
            )  # fmt: skip
        except WorkerError as error:
            ended = str(error)
        return records, ended

    return run


def outcomes(records):
    """Status and reason of each benchmark's repeats."""
    return {
        name: [(one.status, one.failure.reason if one.status != "ok" else None) for one in results]
        for name, results in records.items()
    }


def test_a_refused_proposal_is_skipped(measured):
    records, ended = measured("refused_proposal")
    assert outcomes(records) == {"gemm.bf16": [OK, OK], "hbm.copy": [OK]}
    assert records["gemm.bf16"][0].measurement.algorithm.endswith(
        "fastest of 2 proposed, 1 refused (CUBLAS_STATUS_NOT_SUPPORTED (15))"
    )
    assert ended is None


@pytest.mark.parametrize(
    ("fault", "products", "copies", "said"),
    [
        (
            "refused_proposals",
            "unsupported",
            "ok",
            "cuBLASLt refuses all 3 of its proposals: ",
        ),
        ("unsupported_type", "unsupported", "ok", "cuBLASLt: CUBLAS_STATUS_NOT_SUPPORTED (15)"),
        ("little_memory", "unsupported", "unsupported", "CUDA_ERROR_OUT_OF_MEMORY: "),
        (
            "refused_context",
            "unsupported",
            "unsupported",
            "CUDA_ERROR_NOT_PERMITTED: compute mode",
        ),
    ],
)
def test_what_a_machine_cannot_do_is_said_once_and_the_suite_goes_on(measured, fault, products, copies, said):
    records, ended = measured(fault)
    assert [one.status for one in records["gemm.bf16"]] == [products]
    assert {one.status for one in records["hbm.copy"]} == {copies}
    assert records["gemm.bf16"][0].failure.detail.startswith(said)
    assert ended is None


def test_a_reading_that_is_refused_is_a_gap_of_a_measurement(measured):
    records, _ = measured("refused_reading", "hbm.copy")
    assert outcomes(records) == {"hbm.copy": [OK]}
    gaps = {gap.pointer.rpartition("/")[2]: gap.code for gap in records["hbm.copy"][0].gaps}
    assert gaps["ecc_corrected"] == gaps["ecc_uncorrected"] == "no-permission"


@pytest.mark.parametrize("fault", ["nothing", "renumbered_field"])
def test_throttling_is_read_by_the_numbers_of_the_driver(measured, fault):
    records, _ = measured(fault, "hbm.copy")
    telemetry = records["hbm.copy"][0].measurement.telemetry
    assert telemetry.throttle_seconds.model_dump(mode="json") == {
        "sw_thermal": 0.0, "hw_thermal": 0.0, "hw_power_brake": 0.0,
    }  # fmt: skip


def test_a_lost_device_ends_the_suite_at_once(measured):
    records, ended = measured("lost_device")
    assert outcomes(records) == {"gemm.bf16": [("failed", "DEVICE_LOST")]}
    assert "CUDA_ERROR_UNKNOWN" in records["gemm.bf16"][0].failure.detail
    assert ended == LOST_DEVICE


def test_a_hang_costs_its_time_once_and_the_suite_goes_on(measured):
    records, ended = measured("hang", timeout_seconds=5.0)
    assert outcomes(records) == {"gemm.bf16": [("timeout", "TIMEOUT")], "hbm.copy": [("timeout", "TIMEOUT")]}
    assert records["gemm.bf16"][0].failure.detail == "after 5 s: killed"
    assert ended is None
