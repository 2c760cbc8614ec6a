"""Files read into device memory, on a driver and a cuFile whose device is this processor."""

import os
from pathlib import Path

import pytest

from service.protocol.results import DeviceTelemetry
from service.worker.cpu import storage
from service.worker.cuda import cufile, storage_to_device
from service.worker.host import file_system
from service.worker.measure import MeasuredDevice, measure_repeat
from tests.worker.cuda import host_kernels
from tests.worker.machines import FakeWatch, benchmark, task

MIB = 2**20
CUDA_13 = 5022
"""Status of a release without counters of its own."""


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder that the kernel reads past its cache, or that is said to be."""
    monkeypatch.setattr(storage, "file_system", lambda _: "ext4")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(storage.PatternFile, "is_cached", lambda _: False)
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(4096))
    try:
        os.close(os.open(probe, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        monkeypatch.setattr(os, "O_DIRECT", 0)
    return tmp_path


@pytest.fixture
def library(driver, folder, monkeypatch):
    """A cuFile under the name by which the loader looks for it."""
    path, fake = host_kernels.cufile()
    monkeypatch.setattr(cufile, "LIBRARY", str(path))
    monkeypatch.setattr(cufile, "STATISTICS", folder / "stats")
    monkeypatch.setenv("CUFILE_LOGFILE_PATH", str(folder / "log"))
    fake.fake_cufile_reset()
    yield fake
    assert fake.fake_cufile_alive() == 0


def tell(library, **facts):
    for name, value in facts.items():
        library.fake_cufile_fact(name.encode(), value)


def measured(method="cufile", file_bytes=4 * MIB, block_bytes=MIB // 8, **changes):
    work = {
        "kind": "storage_to_device",
        "method": method,
        "file_bytes": file_bytes,
        "block_bytes": block_bytes,
    }
    made = task(benchmark(work, "bytes_per_second"), device="cuda", accelerator_index=0, **changes)
    watch = type("Watch", (FakeWatch,), {"telemetry": DeviceTelemetry(window_seconds=1.0)})
    kinds = {"storage_to_device": storage_to_device.prepare}
    return measure_repeat(made, find=lambda _: MeasuredDevice(kinds, lambda _: watch()))


def mode(result):
    assert result.status == "ok", result.failure
    return result.measurement.algorithm.partition(", blocks")[0]


@pytest.mark.usefixtures("folder")
def test_a_file_reaches_the_device_through_pinned_host_memory(driver):
    result = measured("host_memory")
    assert result.status == "ok", result.failure
    measurement = result.measurement
    assert measurement.correctness.method == "every byte that arrived"
    assert measurement.algorithm == "blocks of 131072 bytes in sequence, O_DIRECT on ext4"
    assert (measurement.timer, measurement.threads) == ("host_clock", 1)
    assert driver.journal.count("upload") >= 32 * len(measurement.samples_ns)


@pytest.mark.parametrize(("facts", "said"), [
    ({"by_driver": 1}, "GPUDirect mode by nvidia-fs"),
    ({"by_peer": 1}, "GPUDirect mode by PCI peer to peer"),
    ({}, "compatibility mode, through host memory"),
    ({"by_driver": 1, "by_turns": 1}, "GPUDirect and compatibility mode in turns"),
])  # fmt: skip
def test_the_library_counts_in_which_mode_it_read(library, facts, said):
    tell(library, major_version=2, **facts)
    result = measured()
    assert mode(result) == said
    assert {"name": "cufile", "version": "1.15"} in [one.model_dump() for one in result.software]
    assert result.measurement.library == "cuFileRead, as installed here"
    assert not [gap for gap in result.gaps if gap.code == "mode-unknown"]


@pytest.mark.parametrize(("facts", "said"), [
    ({"by_driver": 1}, "GPUDirect mode by nvidia-fs"),
    ({}, "compatibility mode, through host memory"),
    ({"others_read": MIB}, "unknown mode"),
    ({"status_flags": 1 << 11}, "unknown mode"),
    ({"status_flags": 1 << 11, "by_driver": 1}, "GPUDirect mode by nvidia-fs"),
    ({"by_driver": 1, "others_read": MIB}, "unknown mode"),
])  # fmt: skip
def test_without_counters_of_its_own_those_of_the_node_tell(library, folder, facts, said):
    """Others that read at the same time make them tell nothing."""
    tell(
        library, cuFileSetStatsLevel=CUDA_13, major_version=2, rw_stats_enabled=1, node_mebibytes=77, **facts
    )
    library.fake_cufile_statistics(str(folder / "stats").encode())
    assert mode(measured()) == said


@pytest.mark.parametrize(("facts", "said"), [
    ({"control_flags": 0, "major_version": 2}, "GPUDirect mode"),
    ({"control_flags": 0, "status_flags": 1 << 11}, "GPUDirect mode"),
    ({"control_flags": 0, "major_version": 0}, "compatibility mode, through host memory"),
    ({"major_version": 0}, "compatibility mode, through host memory"),
    ({"major_version": 2, "by_driver": 1}, "unknown mode"),
    ({"status_flags": 1 << 11}, "unknown mode"),
])  # fmt: skip
def test_without_any_counters_the_properties_of_the_driver_tell_or_nothing_does(library, folder, facts, said):
    """nvidia-fs counts no reads by default: that they went through it is then not said of them."""
    tell(library, cuFileSetStatsLevel=CUDA_13, **facts)
    if facts.get("major_version"):
        library.fake_cufile_statistics(str(folder / "stats").encode())
    result = measured()
    assert mode(result) == said
    assert [gap.code for gap in result.gaps if gap.code == "mode-unknown"] == (
        ["mode-unknown"] if said == "unknown mode" else []
    )


@pytest.mark.parametrize(("facts", "detail"), [
    ({"cuFileDriverOpen": 5001}, "cuFileDriverOpen: nvidia-fs is not loaded (5001)"),
    ({"cuFileHandleRegister": 5008}, "cuFileHandleRegister: the file is not supported (5008)"),
    ({"cuFileBufRegister": 5036}, "cuFileBufRegister: the memory cannot be pinned (5036)"),
])  # fmt: skip
def test_what_cufile_does_not_take_is_unsupported(library, facts, detail):
    tell(library, **facts)
    result = measured()
    assert (result.status, result.failure.detail) == ("unsupported", detail)


@pytest.mark.parametrize(("facts", "reason", "detail"), [
    ({"cuFileRead": -5010}, "BENCHMARK_ERROR", "cuFileRead: nvidia-fs refused the call (5010)"),
    ({"cuFileRead": -1}, "BENCHMARK_ERROR", "cuFileRead: Input/output error"),
    ({"cuFileRead": 512}, "BENCHMARK_ERROR", "512 of 131072 bytes were read"),
    ({"spoils": 1}, "WRONG_RESULT", "every byte that arrived: 32 off, 0 allowed"),
])  # fmt: skip
def test_reads_that_fail_or_arrive_otherwise_are_no_figure(library, facts, reason, detail):
    tell(library, **facts)
    result = measured()
    assert (result.status, result.failure.reason) == ("failed", reason)
    assert detail in result.failure.detail


def test_cufile_writes_no_log_unless_somebody_names_a_file(library, folder, monkeypatch):
    cufile.CufileLibrary()
    assert os.environ["CUFILE_LOGFILE_PATH"] == str(folder / "log")
    monkeypatch.delenv("CUFILE_LOGFILE_PATH")
    cufile.CufileLibrary()
    assert os.environ["CUFILE_LOGFILE_PATH"] == os.devnull


def test_another_mode_after_the_samples_is_no_figure(library):
    tell(library, by_driver=1)
    with storage_to_device.prepare(benchmark({
        "kind": "storage_to_device", "method": "cufile", "file_bytes": MIB, "block_bytes": 4096,
    }, "bytes_per_second"), 7, 0) as timed:  # fmt: skip
        tell(library, by_driver=0)
        with pytest.raises(RuntimeError, match="by nvidia-fs before the samples and in compatibility mode"):
            timed.check()


@pytest.mark.usefixtures("driver")
def test_without_cufile_it_is_unsupported_before_a_file_is_written(folder, monkeypatch):
    monkeypatch.setattr(cufile, "LIBRARY", "libnothing.so.0")
    result = measured()
    assert (result.status, result.failure.detail) == (
        "unsupported",
        "cuFile (libnothing.so.0) is not installed",
    )
    assert [path.name for path in folder.iterdir()] == ["probe"]


@pytest.mark.usefixtures("library")
def test_the_wheel_is_found_where_the_loader_finds_nothing(folder, monkeypatch):
    path, _ = host_kernels.cufile()
    place = folder / "nvidia" / "cu13" / "lib"
    place.mkdir(parents=True)
    (place / "libcufile.so.9").symlink_to(path)
    monkeypatch.setattr(cufile, "LIBRARY", "libcufile.so.9")
    monkeypatch.setattr(cufile, "WHEELS", (("nothing.of.it", "lib"), ("somewhere", "lib")))
    spec = type("Spec", (), {"submodule_search_locations": [str(folder / "nvidia" / "cu13")]})
    monkeypatch.setattr(cufile, "find_spec", lambda name: spec if name == "somewhere" else None)
    assert mode(measured()) == "compatibility mode, through host memory"


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("method", ["cufile", "host_memory"])
def test_reads_through_the_page_cache_are_unsupported(library, monkeypatch, method):
    monkeypatch.setattr(storage.PatternFile, "is_cached", lambda _: True)
    result = measured(method)
    assert (result.status, result.failure.detail) == (
        "unsupported",
        "reads of ext4 go through the page cache",
    )


@pytest.mark.usefixtures("library")
def test_a_folder_in_memory_without_room_or_of_other_blocks_is_unsupported(monkeypatch):
    for parts in (
        {"file_bytes": MIB + 4096},
        {"block_bytes": 2048},
        {"block_bytes": 2**27, "file_bytes": 2**27},
    ):
        assert "no whole aligned blocks" in measured(**parts).failure.detail
    assert "twice that space" in measured(file_bytes=2**40).failure.detail
    monkeypatch.setattr(storage, "file_system", lambda _: "tmpfs")
    assert "in memory (tmpfs)" in measured().failure.detail


@pytest.mark.skipif(file_system(Path("/var/tmp")) in storage.IN_MEMORY, reason="in memory")  # noqa: S108
@pytest.mark.usefixtures("driver")
def test_a_real_folder_is_read_directly_or_refused_with_one_sentence(monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    result = measured("host_memory")
    assert result.status in ("ok", "unsupported"), result.failure
