"""Accelerators that measure at the same time: their processes wait for each other, with their work."""

import threading
import time

import pytest

from service.protocol.suites import Suite
from service.worker import rendezvous
from service.worker.board import Board
from service.worker.interrupt import Interrupt
from service.worker.measure import measure
from service.worker.process import Children
from service.worker.rendezvous import SAMPLED, NotTogether, Rendezvous, meeting
from service.worker.running import Run, run_suite, slowest
from tests.worker.machines import FakeRead, fake_device, task
from tests.worker.records import measured, suite


def test_whoever_is_ready_works_until_the_others_are():
    with meeting(2) as place:
        first, second = (Rendezvous(place.word(number)) for number in range(2))
        turns = []

        def work():
            turns.append(time.monotonic())
            if len(turns) == 3:
                second.begin(rendezvous.idle)

        first.begin(work)
        assert len(turns) == 3


def test_whoever_has_sampled_works_until_the_others_have():
    with meeting(2) as place:
        first, second = (Rendezvous(place.word(number)) for number in range(2))
        turns = []
        ended = threading.Thread(target=lambda: (time.sleep(0.05), second.end(rendezvous.idle, 0)))
        ended.start()
        first.end(lambda: (turns.append(1), rendezvous.idle()), 5.0)
        ended.join()
        assert turns
        first.end(turns.clear, 0.0)
        assert turns


def test_with_one_that_has_ended_nothing_is_measured_together():
    with meeting(2) as place:
        place.left(1)
        with pytest.raises(NotTogether, match="has ended"):
            Rendezvous(place.word(0)).begin(rendezvous.idle)


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(rendezvous, "PREPARING_SECONDS", 0.02)
    with meeting(2) as place:
        one = Rendezvous(place.word(0))
        with pytest.raises(NotTogether, match="not ready"):
            one.begin(rendezvous.idle)
        one.end(rendezvous.idle, 0.02)
        assert place._shared[0] == SAMPLED


def test_a_record_says_that_the_others_were_not_there():
    with meeting(2) as place:
        place.left(1)
        found = measure(
            task(), find=fake_device(lambda *_: _entered(FakeRead(1.0))), together=Rendezvous(place.word(0))
        )
    assert (found.status, found.failure.reason) == ("failed", "NOT_TOGETHER")


class _entered:  # noqa: N801
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *_):
        return False


def _run(**changes):
    made = suite(repeats=1, benchmarks=1).model_dump(mode="json")
    made["benchmarks"][0] |= changes
    return Run(
        run_id="run-1", suite=Suite.model_validate(made), seed=7, fencing_token=1, attempt=1, nonce="a" * 32,
        node_id="node-1", boot_id_sha256="0" * 64, inventory_sha256="0" * 64, accelerator_index=0,
        accelerators=(0, 1, 2),
    )  # fmt: skip


def _measured(run):
    kept, board = [], Board()
    run_suite(run, Children(), Interrupt(), board, kept.append)
    return kept, board


def test_every_accelerator_leaves_a_record_of_the_same_time():
    """Processes of this host stand for accelerators: they are told which one each is."""
    kept, board = _measured(_run(concurrent=True))
    assert sorted(result.accelerator_index for result in kept) == [0, 1, 2]
    assert {result.concurrent_accelerators for result in kept} == {3}
    assert {result.status for result in kept} == {"ok"}
    begun = max(result.started_monotonic_seconds for result in kept)
    assert all(begun < result.finished_monotonic_seconds for result in kept)
    (line,) = board.view.lines
    lowest = min(
        result.benchmark.figure(
            result.measurement.values, inner_iterations=result.measurement.inner_iterations
        )
        for result in kept
    )
    assert line.figures == (lowest,)


def test_what_is_not_asked_of_all_is_measured_on_one():
    kept, _ = _measured(_run())
    assert [(result.accelerator_index, result.concurrent_accelerators) for result in kept] == [(0, 1)]


def test_the_slowest_is_the_node_and_one_without_a_figure_is_slower_than_all():
    results = [measured(task(accelerator_index=number, concurrent_accelerators=3)) for number in range(3)]
    slow = results[1].measurement.model_copy(update={"samples_ns": [10**9] * 5})
    results[1] = results[1].model_copy(update={"measurement": slow})
    assert slowest(results) is results[1]
    lower = [
        result.model_copy(
            update={
                "benchmark": result.benchmark.model_copy(update={"direction": "lower", "metric": "seconds"})
            }
        )
        for result in results
    ]
    assert slowest(lower) is lower[1]
    results[2] = measure(
        task(accelerator_index=2, concurrent_accelerators=3), find=fake_device(None, kind="none")
    )
    assert slowest(results) is results[2]
