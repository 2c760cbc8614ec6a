"""The benchmarks of an accelerator, on a driver whose device is this processor and whose clock is known.

The kernels are the real ones, compiled for this processor; the bindings are the real ones too.
"""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from cuda.bindings import driver as real

from service.protocol.suites import Benchmark
from service.worker import benchmark as interface
from service.worker import nvml
from service.worker.benchmark import NoRoom, Unsupported
from service.worker.cuda import PREPARE, bindings, device, host_link, numbers, stream
from service.worker.cuda.bindings import CudaError, check_status
from tests.worker.cuda.fake_nvml import process

MIB = 2**20
SEED = 20_261_121


def asked(kind, metric="bytes_per_second", **parameters):
    """One entry of a suite."""
    return Benchmark.model_validate({
        "name": "one",
        "work": {"kind": kind, **parameters},
        "metric": metric,
        "direction": "higher",
        "formula": "as the kind says",
    })  # fmt: skip


def prepared(kind, *, index=0, seed=SEED, **parameters):
    return PREPARE[kind](asked(kind, **parameters), seed, index)


def test_the_registry_imports_nothing_of_cuda():
    script = (
        "import sys, service.worker.cuda, service.worker.telemetry, service.worker.inventory\n"
        "print({name.partition('.')[0] for name in sys.modules} & {'cuda', 'nvmath', 'pynvml', 'torch'})"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


@pytest.mark.parametrize("pattern", ["read", "write", "copy", "triad"])
def test_a_stream_is_checked_by_what_it_leaves(driver, pattern):
    with prepared("stream", pattern=pattern, array_bytes=3 * MIB + 16) as timed:
        driver.takes(f"stream_{pattern}", 125)
        assert timed.execute(4) == 500_000
        correctness = timed.check()
    assert correctness.passed
    assert correctness.largest_error == 0
    assert timed.facts.library == f"own kernel stream_{pattern}"


@pytest.mark.parametrize("array_bytes", [MIB, 3 * MIB + 16])
@pytest.mark.parametrize("pattern", ["write", "copy", "triad"])
def test_a_thread_of_one_vector_leaves_the_same(driver, pattern, array_bytes):
    driver.takes(f"stream_{pattern}", 125)
    with prepared("stream", pattern=pattern, array_bytes=array_bytes) as timed:
        assert timed.facts.library == f"own kernel stream_{pattern}_once"
        driver.forget()
        assert timed.check().passed
        assert f"stream_{pattern}_once" in driver.journal


@pytest.mark.parametrize("pattern", ["read", "write", "copy", "triad"])
def test_a_stream_that_leaves_something_else_does_not_pass(driver, monkeypatch, pattern):
    with prepared("stream", pattern=pattern, array_bytes=MIB) as timed:
        launch, arrays = timed._launch, timed._arrays

        def wrong():
            launch()
            # Far from every place that is looked at by itself: the sums alone can tell.
            target = arrays.result or timed._sums
            held = np.empty(MIB // 4 if arrays.result else timed._blocks * device.THREADS, np.uint32)
            timed._device.to_host(held, target)
            held[1] ^= 1 << 21
            timed._device.to_device(target, held)

        monkeypatch.setattr(timed, "_launch", wrong)
        assert not timed.check().passed
        monkeypatch.setattr(timed, "_launch", lambda: None)
        assert not timed.check().passed


def test_a_stream_of_another_seed_has_other_data(driver):
    with prepared("stream", pattern="copy", array_bytes=MIB) as timed:
        timed._arrays = stream._Arrays(
            timed._arrays.result,
            timed._arrays.sources,
            timed._arrays.count,
            (1, numbers.derive_seed(SEED + 1, 0)),
        )
        assert not timed.check().passed


def test_arrays_that_the_cache_could_hold_are_flushed_before_each_pass(driver):
    with prepared("stream", pattern="copy", array_bytes=9 * MIB) as timed:
        driver.forget()
        timed.execute(3)
        assert driver.journal == ["flush", "record", "stream_copy", "record"] * 3
    with prepared("stream", pattern="copy", array_bytes=10 * MIB) as timed:
        driver.forget()
        timed.execute(3)
        assert driver.journal == ["flush", "record", *["stream_copy"] * 3, "record"]
        assert timed.facts.flush_bytes == MIB
        assert timed.facts.working_set_bytes == 20 * MIB


@pytest.mark.parametrize(("l2_bytes", "flushed"), [(2**20, 2**28), (126 * 2**20, 504 * 2**20)])
def test_a_flush_leaves_little_even_of_a_cache_that_replaces_at_random(l2_bytes, flushed):
    found = object.__new__(device.CudaDevice)
    found.l2_bytes = l2_bytes
    assert found.flush_bytes == flushed
    assert math.exp(-found.flush_bytes / l2_bytes) < 0.02


def test_the_time_of_a_flush_is_not_counted(driver):
    with prepared("strided_read", stride_bytes=128, array_bytes=MIB) as timed:
        driver.takes("flush", 5000)
        driver.takes("strided_read", 7)
        assert timed.execute(3) == 21_000


@pytest.mark.parametrize(
    ("of_one_vector", "kernel", "way"),
    [
        (12, "stream_copy", "32 blocks of 256 threads, 4 x 16 bytes in flight each"),
        (10, "stream_copy_once", "256 blocks of 256 threads, 1 x 16 bytes in flight each"),
    ],
)
@pytest.mark.usefixtures("driver")
def test_the_fastest_launch_is_taken_by_trial(monkeypatch, of_one_vector, kernel, way):
    times = iter([30, 31, 29, 11, 40, 12, 25, 26, 27, 99, of_one_vector, 98])
    monkeypatch.setattr(stream.StreamBandwidth, "_time_launch", lambda *_: next(times))
    with prepared("stream", pattern="copy", array_bytes=MIB) as timed:
        assert timed.facts.library == f"own kernel {kernel}"
        assert timed.facts.algorithm == way


@pytest.mark.parametrize("stride", [4, 32, 4096])
def test_a_strided_read_is_checked(driver, monkeypatch, stride):
    with prepared("strided_read", stride_bytes=stride, array_bytes=2 * MIB) as timed:
        assert timed.check().passed
        monkeypatch.setattr(timed, "_launch", lambda: None)
        assert not timed.check().passed


def test_launches_are_counted_one_by_one_or_as_a_graph(driver):
    driver.takes("empty", 2)
    with prepared("launch_latency", metric="seconds", method="stream", launches=5) as timed:
        driver.forget()
        assert timed.execute(3) == 30_000
        assert driver.journal == ["record", *["empty"] * 15, "record"]
    with prepared("launch_latency", metric="seconds", method="graph", launches=5) as timed:
        driver.forget()
        assert timed.execute(2) == 20_000
        assert driver.journal == ["record", "graph", *["empty"] * 5, "graph", *["empty"] * 5, "record"]
        assert timed.facts.uses_graph
        assert timed.check() is None


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize("direction", ["host_to_device", "device_to_host"])
def test_a_copy_is_timed_and_compared(driver, monkeypatch, direction, memory):
    name = {"host_to_device": "upload", "device_to_host": "download"}[direction]
    with prepared("host_link", direction=direction, memory=memory, transfer_bytes=3 * MIB) as timed:
        driver.takes(name, 100)
        driver.forget()
        assert timed.execute(4) == 400_000
        assert driver.journal == ["record", "wait", *[name] * 4, "record", "wait", "record"]
        assert timed.check().passed
        monkeypatch.setattr(timed, "execute", lambda _: 1)
        assert not timed.check().passed


def test_both_directions_go_at_once_on_two_streams(driver):
    with prepared("host_link", direction="both", memory="pinned", transfer_bytes=MIB) as timed:
        driver.forget()
        timed.execute(2)
        assert driver.journal.count("upload") == driver.journal.count("download") == 2
        assert timed.check().passed
        assert timed.facts.working_set_bytes == 2 * MIB
    with (
        pytest.raises(Unsupported, match="pageable"),
        prepared("host_link", direction="both", memory="pageable", transfer_bytes=MIB),
    ):
        pass


def test_a_copy_runs_on_the_processors_beside_the_device(monkeypatch, tmp_path):
    own = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(host_link, "PCI_DEVICES", tmp_path)
    (tmp_path / "0000:17:00.0").mkdir()
    listed = tmp_path / "0000:17:00.0" / "local_cpulist"
    listed.write_text(f"{own[0]},4000-4003\n")
    with host_link.bind_local_processors("0000:17:00.0") as gaps:
        assert os.sched_getaffinity(0) == {own[0]}
        assert gaps == ()
    assert sorted(os.sched_getaffinity(0)) == own
    for text in ("4000-4003\n", "", "nonsense"):
        listed.write_text(text)
        with host_link.bind_local_processors("0000:17:00.0") as (gap,):
            assert gap.code == "no-local-processors"
            assert sorted(os.sched_getaffinity(0)) == own
    with host_link.bind_local_processors("0000:18:00.0") as (gap,):
        assert gap.detail == "FileNotFoundError"


def test_what_does_not_fit_is_unsupported(driver):
    driver.memory(64 * MIB)
    for kind, parameters in {
        "stream": {"pattern": "triad", "array_bytes": 32 * MIB},
        "strided_read": {"stride_bytes": 128, "array_bytes": 128 * MIB},
        "host_link": {"direction": "both", "memory": "pinned", "transfer_bytes": 48 * MIB},
    }.items():
        with pytest.raises(Unsupported, match=r"\d+ (are )?free"), prepared(kind, **parameters):
            pass


def test_odd_sizes_are_unsupported(driver):
    for parameters, reason in [
        ({"array_bytes": MIB + 4}, "16-byte vectors"),
        ({"array_bytes": 64}, "at least"),
    ]:
        with (
            pytest.raises(Unsupported, match=reason),
            prepared("stream", pattern="copy", **parameters) as timed,
        ):
            timed.check()
    with (
        pytest.raises(Unsupported, match="longer than"),
        prepared("strided_read", stride_bytes=MIB, array_bytes=MIB // 2),
    ):
        pass


@pytest.mark.parametrize("kind", PREPARE)
def test_work_of_another_kind_is_unsupported(kind):
    other = "stream" if kind == "launch_latency" else "launch_latency"
    with pytest.raises(Unsupported, match=other), PREPARE[kind](asked(other, **WORK[other]), SEED, 0):
        pass


WORK = {
    "gemm": {"dtype": "bf16", "m": 32, "n": 32, "k": 32},
    "block_scaled_gemm": {"number_format": "mxfp8", "m": 16, "n": 128, "k": 128},
    "grouped_gemm": {"dtype": "bf16", "groups": 2, "m": 16, "n": 16, "k": 16},
    "weight_only_gemm": {"dtype": "bf16", "has_zero_points": True, "m": 1, "n": 128, "k": 128},
    "attention": {
        "phase": "decode",
        "back_end": "own",
        "dtype": "bf16",
        "batch": 1,
        "query_heads": 2,
        "kv_heads": 1,
        "head_size": 64,
        "context_tokens": 16,
    },
    "decode_loop": {
        "layers": 1,
        "hidden": 64,
        "query_heads": 1,
        "kv_heads": 1,
        "head_size": 64,
        "feed_forward": 64,
        "vocabulary": 64,
        "dtype": "bf16",
        "batch": 1,
        "context_tokens": 16,
        "steps": 1,
    },
    "training_step": {
        "layers": 1,
        "hidden": 64,
        "query_heads": 1,
        "kv_heads": 1,
        "head_size": 64,
        "feed_forward": 64,
        "vocabulary": 64,
        "dtype": "bf16",
        "sequence_length": 16,
        "micro_batch_size": 1,
    },
    "fft": {"dtype": "fp32", "points": 64, "batch": 2},
    "stream": {"pattern": "copy", "array_bytes": MIB},
    "strided_read": {"stride_bytes": 128, "array_bytes": MIB},
    "cache_stream": {"pattern": "copy", "array_bytes": MIB // 4, "passes": 3},
    "device_copy": {"array_bytes": MIB},
    "pointer_chase": {"array_bytes": MIB, "hops": 8},
    "bank_conflict": {"stride_words": 32, "reads": 64, "threads": 64},
    "divergence": {"paths": 4, "steps": 64, "threads": 64},
    "occupancy": {"resident_warps": 4, "array_bytes": MIB},
    "host_link": {"direction": "both", "memory": "pinned", "transfer_bytes": MIB},
    "optimizer_step": {"optimizer": "adamw", "parameters": 4096},
    "gradient_accumulation": {"gradient_dtype": "bf16", "parameters": 4096},
    "gradient_compression": {"method": "int8", "parameters": 4096},
    "peer_link": {"direction": "both", "method": "copy_engine", "transfer_bytes": MIB},
    "peer_matrix": {"pattern": "all_to_one", "devices": 2, "transfer_bytes": MIB},
    "collective": {"operation": "all_reduce", "devices": 2, "payload_bytes": MIB},
    "external_tool": {"tool": "nvbandwidth", "test": "host_to_device_memcpy_ce", "transfer_bytes": MIB},
    "rdma_link": {"operation": "read", "path": "loopback", "memory": "device", "message_bytes": MIB},
    "storage_to_device": {"method": "host_memory", "file_bytes": MIB, "block_bytes": 4096},
    "launch_latency": {"method": "graph", "launches": 5},
    "enqueue_latency": {"caller": "c", "launches": 5},
    "power": {"load": "context", "window_seconds": 1.0, "settle_seconds": 0.0},
    "capacity": {},
    "context_memory": {"with_library": False},
}


ON_THE_DEVICE = [kind for kind in PREPARE if kind not in ("host_stream", "storage")]


@pytest.mark.parametrize("kind", ON_THE_DEVICE)
def test_without_an_accelerator_every_benchmark_is_unsupported(kind):
    with pytest.raises(Unsupported, match="needs an accelerator"), prepared(kind, index=None, **WORK[kind]):
        pass


@pytest.mark.parametrize("kind", ON_THE_DEVICE)
def test_an_accelerator_that_is_not_there_is_unsupported(driver, kind):
    with pytest.raises(Unsupported, match="accelerator 3"), prepared(kind, index=3, **WORK[kind]):
        pass


def test_an_accelerator_that_is_hidden_from_cuda_is_unsupported(driver, fake_nvml):
    fake_nvml.answers["nvmlDeviceGetPciInfo"].busId = b"00000000:18:00.0"
    with pytest.raises(Unsupported, match="hidden from CUDA"), prepared("stream", **WORK["stream"]):
        pass


def test_a_divided_accelerator_is_unsupported(driver, fake_nvml):
    fake_nvml.answers["nvmlDeviceGetMigMode"] = [1, 1]
    with pytest.raises(Unsupported, match="MIG"), prepared("stream", **WORK["stream"]):
        pass
    fake_nvml.answers["nvmlDeviceGetMigMode"] = [0, 1]
    with prepared("stream", **WORK["stream"]) as timed:
        assert timed.check().passed


def test_a_driver_that_does_not_start_is_unsupported(driver):
    driver.fact("cuInit", 100)
    with pytest.raises(Unsupported, match="CUDA_ERROR_NO_DEVICE"), prepared("stream", **WORK["stream"]):
        pass


@pytest.mark.parametrize(
    ("module", "package"), [("cuda.bindings.driver", "cuda-bindings"), ("pynvml", "nvidia-ml-py")]
)
def test_a_package_that_is_missing_is_named(driver, monkeypatch, module, package):
    def missing(name):
        if name == module:
            raise ImportError(name)
        return found(name)

    holder = nvml.importlib if module == "pynvml" else bindings
    found = holder.import_module
    monkeypatch.setattr(holder, "import_module", missing)
    with (
        pytest.raises(Unsupported, match=f"^{package} is not installed$"),
        prepared("stream", **WORK["stream"]),
    ):
        pass


def test_an_error_of_the_driver_is_a_failure_and_everything_is_freed(driver):
    with (
        pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"),
        prepared("stream", **WORK["stream"]) as timed,
    ):
        driver.fact("sync", 700)
        timed.check()
    driver.fact("sync", 0)


def test_the_device_says_what_it_is(driver):
    with device.open_device(0) as found:
        assert found.capability == (9, 0)
        assert (found.multiprocessors, found.l2_bytes) == (2, MIB)
        assert found.pci_bus_id == "0000:17:00.0"
        names = [part.name for part in found.list_software()]
        assert names == ["cuda_driver_api", "nvrtc", "cuda-bindings"]
        assert found.list_software()[0].version == "13.0"
    # The driver answers -1 for the NUMA node, which is no node.
    assert device.attributes(0) == {"multiprocessor_count": 2, "l2_bytes": MIB}


def test_what_a_scope_allocates_is_freed_with_it(driver):
    with device.open_device(0) as found:
        before = found.read_free_bytes()
        with found.scope_allocations():
            found.allocate(MIB)
            assert found.read_free_bytes() == before - MIB
        assert found.read_free_bytes() == before


def test_only_a_lack_of_memory_is_unsupported(driver):
    with device.open_device(0) as found:
        driver.fact("alloc", 700)
        with pytest.raises(CudaError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            found.allocate(MIB)
        driver.fact("alloc", 0)
        driver.memory(MIB)
        with pytest.raises(NoRoom, match="CUDA_ERROR_OUT_OF_MEMORY: 2097152 bytes requested, 1048576 free"):
            found.allocate(2 * MIB)


def test_events_count_in_nanoseconds(driver):
    with device.open_device(0) as found:
        launch = found.build_launch(found.load_kernel("empty.cu", "empty"), 1)
        driver.takes("empty", 0.5)
        assert found.time_work(launch) == 500
        # An event that says nothing has passed is still a sample, which has to be more than nothing.
        driver.takes("empty", 0)
        assert found.time_work(launch) == 1


def test_statuses_are_checked():
    assert check_status((real.CUresult.CUDA_SUCCESS,)) == ()
    assert check_status((real.CUresult.CUDA_SUCCESS, 4)) == 4
    assert check_status((real.CUresult.CUDA_SUCCESS, 4, 5)) == (4, 5)
    with pytest.raises(CudaError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        check_status((real.CUresult.CUDA_ERROR_OUT_OF_MEMORY, None))


def test_the_memory_of_a_context_is_what_the_driver_says_of_this_process(driver, fake_nvml):
    fake_nvml.answers["nvmlDeviceGetMemoryInfo"] = lambda: type("Info", (), {"used": 700 * MIB})
    fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(1, 9), process(used=512 * MIB)]
    with prepared("context_memory", metric="bytes", with_library=False) as reading:
        assert reading.read() == [512.0 * MIB]
        assert reading.facts.library == "NVML, memory of this process"


def test_where_the_process_is_not_listed_the_device_is_read_before_and_after(driver, fake_nvml):
    used = iter([700 * MIB, 1200 * MIB])
    fake_nvml.answers["nvmlDeviceGetMemoryInfo"] = lambda: type("Info", (), {"used": next(used)})
    with prepared("context_memory", metric="bytes", with_library=False) as reading:
        assert reading.read() == [500.0 * MIB]
        assert "after less before" in reading.facts.library
    used = iter([700 * MIB, 700 * MIB])
    with (
        pytest.raises(Unsupported, match="0 bytes"),
        prepared("context_memory", metric="bytes", with_library=False),
    ):
        pass


def test_every_kind_has_what_the_loop_needs(driver):
    """Facts that fit the record, whatever the kind."""
    for kind in ("stream", "strided_read", "host_link", "launch_latency"):
        with prepared(kind, **WORK[kind]) as found:
            assert isinstance(found.facts, interface.MeasurementFacts)
            assert found.execute(1) > 0
