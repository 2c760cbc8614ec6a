"""Results on disk: what a crash, a full disk and a damaged file do to them."""

import os
import time

import pytest

from service.protocol.results import content_sha256
from service.worker.ids import generate_uuid7
from service.worker.spool import KEPT_SECONDS, ResultSpool


def opened(tmp_path, **limits):
    return ResultSpool(tmp_path / "spool", **{"most_bytes": 10_000, "least_free_bytes": 0, **limits})


@pytest.fixture
def spool(tmp_path):
    return opened(tmp_path)


def add(spool, content=b"{}"):
    return spool.add(generate_uuid7(), content)


def test_results_wait_oldest_first_across_a_restart(spool, tmp_path):
    added = []
    for number in range(4):
        added.append(add(spool, b"%d" % number).content_sha256)
        time.sleep(0.002)
    again = opened(tmp_path)
    assert [entry.content_sha256 for entry in again.list_waiting()] == added
    assert [again.read(entry) for entry in again.list_waiting()] == [b"0", b"1", b"2", b"3"]


def test_what_a_crash_left_half_written_is_set_aside_and_not_uploaded(tmp_path):
    opened(tmp_path)
    (tmp_path / "spool" / "waiting" / f".{generate_uuid7()}.{'0' * 64}.json.part").write_bytes(b'{"half')
    again = opened(tmp_path)
    assert again.recover() == 1
    assert again.list_waiting() == []
    (kept,) = (tmp_path / "spool" / "incomplete").iterdir()
    assert kept.read_bytes() == b'{"half'
    assert again.recover() == 0


def test_what_the_disk_has_changed_is_set_aside_and_not_uploaded(spool, tmp_path):
    entry = add(spool, b'{"figure": 1}')
    entry.path.write_bytes(b'{"figure": 2}')
    assert spool.read(entry) is None
    assert spool.list_waiting() == []
    assert [path.read_bytes() for path in (tmp_path / "spool" / "incomplete").iterdir()] == [b'{"figure": 2}']


def test_acknowledged_results_are_kept_seven_days_and_offered_newest_first(spool):
    first, second = add(spool, b"1"), add(spool, b"2")
    time.sleep(0.002)
    third = add(spool, b"3")
    for entry in (first, second, third):
        spool.acknowledge(entry)
    assert spool.list_waiting() == []
    assert spool.list_acknowledged()[0] == third.content_sha256
    old = time.time() - KEPT_SECONDS
    for path in (first.path, second.path):
        moved = path.parent.parent / "acknowledged" / path.name
        age = -60 if path is first.path else 60
        os.utime(moved, (old + age, old + age))
    spool.prune()
    assert spool.list_acknowledged() == [third.content_sha256, second.content_sha256]


def test_results_that_the_service_misses_wait_again(spool):
    entries = [add(spool, b"%d" % number) for number in range(3)]
    for entry in entries:
        spool.acknowledge(entry)
    assert spool.requeue_results([entries[1].content_sha256, "f" * 64]) == 1
    (waiting,) = spool.list_waiting()
    assert spool.read(waiting) == b"1"


def test_a_rejected_result_is_kept_with_what_the_service_said(spool, tmp_path):
    entry = add(spool)
    spool.reject(entry, "422 NOT_AS_ASKED: the record is not the one that was asked for")
    names = sorted(path.name for path in (tmp_path / "spool" / "rejected").iterdir())
    assert names == [entry.path.name, f"{entry.path.name}.reason.txt"]
    assert (tmp_path / "spool" / "rejected" / names[1]).read_text().startswith("422 NOT_AS_ASKED")
    assert spool.compute_state().rejected_count == 1
    assert spool.find_state(entry.result_id) == "rejected"


class TestRoom:
    def test_results_that_are_not_acknowledged_fill_it(self, spool):
        add(spool, b"x" * 6000)
        assert not spool.compute_state().is_full
        entry = add(spool, b"y" * 6000)
        state = spool.compute_state()
        assert (state.waiting_count, state.waiting_bytes, state.is_full) == (2, 12_000, True)
        spool.acknowledge(entry)
        assert not spool.compute_state().is_full

    def test_rejected_ones_too(self, spool):
        spool.reject(add(spool, b"x" * 10_000), "422")
        assert spool.compute_state().is_full

    def test_acknowledged_ones_make_way(self, spool):
        entries = []
        for number in range(3):
            entries.append(add(spool, b"%d" % number * 4000))
            spool.acknowledge(entries[-1])
            time.sleep(0.002)
        spool.prune()
        assert spool.list_acknowledged() == [entries[2].content_sha256, entries[1].content_sha256]

    def test_little_left_on_the_disk_is_full(self, tmp_path):
        spool = opened(tmp_path, least_free_bytes=2**62)
        assert spool.compute_state().is_full
        assert spool.compute_state().free_bytes > 0

    def test_a_refused_write_is_full_until_one_succeeds(self, spool, monkeypatch, tmp_path):
        def full(_):
            raise OSError(122, "Disk quota exceeded")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="quota"):
                add(spool)
        assert spool.compute_state().is_full
        assert list((tmp_path / "spool" / "waiting").iterdir()) == []
        assert content_sha256(b"{}") == add(spool).content_sha256
        assert not spool.compute_state().is_full
