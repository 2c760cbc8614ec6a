"""What depends on warps and on the memory of a multiprocessor: ways, banks, occupancy and the cache."""

import numpy as np
import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import occupancy
from tests.worker.cuda.host_kernels import counted, run
from tests.worker.cuda.test_cuda import MIB, prepared

COMPUTED = [
    ("divergence", {"paths": 1, "steps": 70, "threads": 320}),
    ("divergence", {"paths": 32, "steps": 33, "threads": 320}),
    ("divergence", {"paths": 8, "steps": 1, "threads": 32}),
    ("bank_conflict", {"stride_words": 1, "reads": 50, "threads": 320}),
    ("bank_conflict", {"stride_words": 32, "reads": 48, "threads": 64}),
    ("bank_conflict", {"stride_words": 33, "reads": 7, "threads": 32}),
    ("occupancy", {"resident_warps": 1, "array_bytes": MIB // 4}),
    ("occupancy", {"resident_warps": 64, "array_bytes": MIB // 4 + 16}),
    ("cache_stream", {"pattern": "read", "array_bytes": 3 * 2**14, "passes": 5}),
    ("cache_stream", {"pattern": "copy", "array_bytes": 11 * 2**14, "passes": 3}),
]


def identify(value):
    return "-".join(str(one) for one in value.values()) if isinstance(value, dict) else value


@pytest.mark.parametrize(("kind", "work"), COMPUTED, ids=identify)
def test_what_is_computed_is_right_and_work_that_is_left_out_is_noticed(driver, monkeypatch, kind, work):
    with prepared(kind, **work) as timed:
        driver.takes(timed.facts.library.removeprefix("own kernel "), 50)
        assert timed.execute(3) == 150_000
        assert timed.check().passed
        monkeypatch.setattr(timed, "_launch", lambda: None)
        assert not timed.check().passed


@pytest.mark.parametrize(
    ("kind", "work", "less"),
    [
        ("divergence", COMPUTED[1][1], {"steps": 32}),
        ("divergence", COMPUTED[1][1], {"paths": 16}),
        ("bank_conflict", COMPUTED[3][1], {"reads": 49}),
        ("bank_conflict", COMPUTED[4][1], {"stride_words": 1}),
        ("cache_stream", COMPUTED[8][1], {"passes": 4}),
    ],
)
def test_a_part_of_the_work_is_not_enough(driver, kind, work, less):
    with prepared(kind, **work | less) as timed:
        timed._work = timed._work.model_copy(update=work)
        assert not timed.check().passed


def test_reads_go_around_the_table_as_often_as_there_are_turns(driver):
    with prepared("bank_conflict", stride_words=3, reads=16 * 4096 * 2 + 16 * 100 + 5, threads=32) as timed:
        assert timed.check().passed


@pytest.mark.parametrize("pattern", ["read", "copy"])
def test_every_pass_goes_over_the_whole_array(pattern):
    tiles, passes = 7, 4
    source = np.random.default_rng(1).integers(0, 2**32, tiles * 4096, np.uint32)
    other = np.zeros_like(source) if pattern == "copy" else np.zeros(3 * 256, np.uint32)
    sizes = (tiles * 1024, passes, 2 * 1024)
    arguments = (other, source, *sizes) if pattern == "copy" else (source, *sizes, other)
    touched = counted("cache.cu", f"cache_{pattern}", 3, 256, *arguments)
    assert (passes * source.nbytes, 0) in touched
    if pattern == "copy":
        assert (0, passes * source.nbytes) in touched
        assert np.array_equal(other, source)


@pytest.mark.parametrize("blocks", [1, 3, 4, 6, 11])
def test_every_block_has_its_share_of_an_array_that_is_smaller_than_the_device(blocks):
    """Of 3 tiles, 12 passes: one pass would leave most of the blocks without any."""
    tiles, passes = 3, 12
    source, sums = np.ones(tiles * 4096, np.uint32), np.zeros(blocks * 256, np.uint32)
    run("cache.cu", "cache_read", blocks, 256, source, tiles * 1024, passes, 1024, sums)
    # A thread reads 16 words of a tile.
    shares = sums.reshape(blocks, 256)[:, 0] // 16
    assert shares.sum() == tiles * passes
    assert shares.max() - shares.min() <= 1


def test_arrays_of_the_cache_are_brought_in_and_not_flushed(driver):
    with prepared("cache_stream", pattern="copy", array_bytes=MIB // 4, passes=2) as timed:
        driver.forget()
        timed.execute(2)
        assert driver.journal == ["cache_copy", "record", "cache_copy", "cache_copy", "record"]
        assert timed.facts.flush_bytes == 0


@pytest.mark.parametrize(
    ("kind", "work", "reason"),
    [
        ("cache_stream", {"pattern": "copy", "array_bytes": MIB // 2, "passes": 1}, "in a cache of 1048576"),
        ("cache_stream", {"pattern": "read", "array_bytes": MIB // 4 + 16, "passes": 1}, "16384-byte tiles"),
        ("occupancy", {"resident_warps": 33, "array_bytes": MIB}, "not 2 blocks of the same size"),
        ("occupancy", {"resident_warps": 8, "array_bytes": MIB + 4}, "16-byte vectors"),
        ("occupancy", {"resident_warps": 8, "array_bytes": 2**30}, "are free"),
    ],
)
def test_what_the_device_has_no_room_for_is_unsupported(driver, kind, work, reason):
    with pytest.raises(Unsupported, match=reason), prepared(kind, **work):
        pass


@pytest.mark.parametrize("of_multiprocessor", [64 * 1024, 100 * 1024, 164 * 1024, 228 * 1024])
@pytest.mark.parametrize(("warps", "blocks", "threads"), [(1, 1, 32), (32, 1, 1024), (48, 2, 768)])
def test_no_other_block_has_room(of_multiprocessor, warps, blocks, threads):
    assert occupancy._compute_shape(warps) == (blocks, threads)
    of_block = occupancy._compute_shared_bytes(of_multiprocessor, blocks) + occupancy.RESERVED_BYTES
    assert of_multiprocessor // of_block == blocks


def test_more_warps_than_the_device_has_room_for_are_unsupported(driver, monkeypatch):
    monkeypatch.setattr(occupancy, "_compute_shared_bytes", lambda *_: 0)
    with (
        pytest.raises(Unsupported, match="8 warps: room for 8 of 1 blocks"),
        prepared("occupancy", resident_warps=8, array_bytes=MIB),
    ):
        pass


def test_so_few_warps_are_launched(driver):
    with prepared("occupancy", resident_warps=4, array_bytes=MIB) as timed:
        assert "shared:116736" in driver.journal
        assert timed.facts.algorithm.startswith("1 blocks of 128 threads")
