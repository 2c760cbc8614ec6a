"""Copies and latency within one device: what is timed, and what passes the check."""

import pytest
from pydantic import ValidationError

from service.protocol.work.memory import DeviceCopyWork, PointerChaseWork
from service.worker.benchmark import Unsupported
from service.worker.cuda import pointer_chase
from tests.worker.cuda.test_cuda import MIB, prepared


def test_a_copy_within_the_device_is_timed_and_compared(driver, monkeypatch):
    with prepared("device_copy", array_bytes=12 * MIB) as timed:
        driver.takes("device_copy", 80)
        driver.forget()
        assert timed.execute(3) == 240_000
        assert driver.journal == ["spoil", "flush", "record", *["device_copy"] * 3, "record"]
        assert timed.check().passed
        monkeypatch.setattr(timed, "_enqueue_copy", lambda: None)
        assert not timed.check().passed


def test_a_copy_that_the_cache_could_hold_is_flushed_before_each(driver):
    with prepared("device_copy", array_bytes=MIB) as timed:
        driver.forget()
        timed.execute(2)
        assert driver.journal == ["spoil", *["flush", "record", "device_copy", "record"] * 2]


def test_a_chase_goes_on_where_the_last_one_ended(driver, monkeypatch):
    with prepared("pointer_chase", metric="seconds", array_bytes=2**16, hops=100) as timed:
        driver.takes("chase", 50)
        driver.forget()
        assert timed.execute(2) == 100_000
        # One launch before the clock fills a cache.
        assert driver.journal == ["chase", "record", "chase", "chase", "record"]
        assert timed.check().passed
        assert timed._read_place() == pointer_chase.compute_place(timed._factor, timed._increment, 512, 100)
        timed.execute(1)
        assert timed._read_place() == pointer_chase.compute_place(timed._factor, timed._increment, 512, 300)
        monkeypatch.setattr(timed, "_launch", lambda: None)
        assert not timed.check().passed


def test_the_cycle_of_a_chase_visits_every_line(driver):
    with prepared("pointer_chase", metric="seconds", array_bytes=2**13, hops=1) as timed:
        places = [
            pointer_chase.compute_place(timed._factor, timed._increment, 64, hops) for hops in range(64)
        ]
    assert sorted(places) == list(range(64))


def test_the_work_of_a_chase_and_of_a_copy():
    chase = PointerChaseWork(kind="pointer_chase", array_bytes=2**20, hops=1000)
    assert chase.count_work().parts == 1000
    copy = DeviceCopyWork(kind="device_copy", array_bytes=2**20)
    assert copy.count_work().moved_bytes == 2**21
    assert (chase.suite_form, copy.suite_form) == (2, 2)
    with pytest.raises(ValidationError, match="power of two"):
        PointerChaseWork(kind="pointer_chase", array_bytes=3 * 2**20, hops=1)


@pytest.mark.parametrize("work", [
    {"kind": "device_copy", "array_bytes": 2**32},
    {"kind": "pointer_chase", "array_bytes": 2**32, "hops": 1},
])  # fmt: skip
def test_arrays_that_do_not_fit_are_unsupported(driver, work):
    driver.memory(64 * MIB)
    with pytest.raises(Unsupported, match=r"needs \d+ bytes, \d+ are free"):
        prepared(**work).__enter__()
