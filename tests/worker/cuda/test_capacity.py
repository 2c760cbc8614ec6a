"""The largest block, and what a node with accelerators measures of its host."""

import pytest

from service.worker.benchmark import Unsupported
from service.worker.cpu import host_timed, storage
from service.worker.cuda import capacity
from tests.worker.cuda.test_cuda import MIB, prepared


def test_the_largest_block_is_found_and_written_to_its_end(driver):
    driver.memory(15 * MIB)
    with prepared("capacity", metric="bytes") as reading:
        # The sums are taken: of the pages that are left, all are one block.
        assert reading.read() == [14.0 * MIB]
        assert driver.journal[-3:] == ["stream_write", "sum_words", "download"]


def test_a_block_that_does_not_hold_what_is_written_is_a_failure(driver, monkeypatch):
    driver.memory(8 * MIB)
    with prepared("capacity", metric="bytes") as reading:
        queue = reading._enqueue_both
        monkeypatch.setattr(reading, "_enqueue_both", lambda address, size: queue(address, size - 16))
        with pytest.raises(RuntimeError, match="does not contain the data written"):
            reading.read()


def test_no_memory_at_all_is_unsupported(driver):
    with prepared("capacity", metric="bytes") as reading:
        driver.memory(2 * MIB)
        with pytest.raises(Unsupported, match="no block of 2097152 bytes"):
            reading.read()


def test_another_error_than_a_lack_of_memory_is_none(driver):
    with prepared("capacity", metric="bytes") as reading:
        driver.fact("alloc", 700)
        with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
            reading.read()
        driver.fact("alloc", 0)
    assert capacity.GRANULE == 2 * MIB


@pytest.fixture
def small_host(monkeypatch, tmp_path):
    monkeypatch.setattr(host_timed, "last_level_cache_bytes", lambda: 100_000)
    monkeypatch.setattr(host_timed, "available_memory_bytes", lambda: 2**30)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(storage, "file_system", lambda _: "ext4")


@pytest.mark.parametrize("pattern", ["read", "write", "copy", "triad"])
def test_the_memory_of_the_host_is_measured_as_on_a_node_without_accelerators(small_host, pattern):
    with prepared("host_stream", pattern=pattern, array_bytes=8 * 50_001) as timed:
        assert timed.execute(2) > 0
        assert timed.check().passed
        assert timed.facts.timer == "host_clock"


def test_so_is_its_storage(small_host):
    with prepared("storage", direction="write", file_bytes=100_000, block_bytes=8192) as timed:
        assert timed.execute(1) > 0
        assert timed.check().passed
