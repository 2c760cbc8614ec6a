"""Accelerators that measure at the same time: their processes wait for each other, with their work."""

import threading
import time

import pytest

from service.protocol.suites import BenchmarkSuite
from service.worker import rendezvous
from service.worker.interrupt import InterruptSignal
from service.worker.measure import measure_repeat
from service.worker.process import ChildProcesses
from service.worker.rendezvous import SAMPLED, RendezvousClient, RendezvousFailed, open_meeting
from service.worker.running import SuiteRun, run_suite, select_slowest
from service.worker.status import WorkerStatus
from tests.worker.machines import FakeRead, fake_device, task
from tests.worker.records import measured, suite


def test_whoever_is_ready_works_until_the_others_are():
    with open_meeting(2) as place:
        first, second = (RendezvousClient(place.format_address(number)) for number in range(2))
        turns = []

        def work():
            turns.append(time.monotonic())
            if len(turns) == 3:
                second.wait_until_ready(rendezvous.wait_idle)

        first.wait_until_ready(work)
        assert len(turns) == 3


def test_whoever_has_sampled_works_until_the_others_have():
    with open_meeting(2) as place:
        first, second = (RendezvousClient(place.format_address(number)) for number in range(2))
        turns = []
        ended = threading.Thread(
            target=lambda: (time.sleep(0.05), second.wait_until_sampled(rendezvous.wait_idle, 0))
        )
        ended.start()
        first.wait_until_sampled(lambda: (turns.append(1), rendezvous.wait_idle()), 5.0)
        ended.join()
        assert turns
        first.wait_until_sampled(turns.clear, 0.0)
        assert turns


def test_with_one_that_has_ended_nothing_is_measured_together():
    with open_meeting(2) as place:
        place.mark_ended(1)
        with pytest.raises(RendezvousFailed, match="has ended"):
            RendezvousClient(place.format_address(0)).wait_until_ready(rendezvous.wait_idle)


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(rendezvous, "PREPARING_SECONDS", 0.02)
    with open_meeting(2) as place:
        one = RendezvousClient(place.format_address(0))
        with pytest.raises(RendezvousFailed, match="not ready"):
            one.wait_until_ready(rendezvous.wait_idle)
        one.wait_until_sampled(rendezvous.wait_idle, 0.02)
        assert place._shared[0] == SAMPLED


def test_a_record_says_that_the_others_were_not_there():
    with open_meeting(2) as place:
        place.mark_ended(1)
        found = measure_repeat(
            task(),
            find=fake_device(lambda *_: _entered(FakeRead(1.0))),
            together=RendezvousClient(place.format_address(0)),
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
    return SuiteRun(
        run_id="run-1",
        suite=BenchmarkSuite.model_validate(made),
        seed=7,
        fencing_token=1,
        attempt=1,
        nonce="a" * 32,
        node_id="node-1",
        boot_id_sha256="0" * 64,
        inventory_sha256="0" * 64,
        accelerator_index=0,
        accelerators=(0, 1, 2),
    )


def _measured(run):
    kept, board = [], WorkerStatus()
    run_suite(run, ChildProcesses(), InterruptSignal(), board, kept.append)
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
        result.benchmark.compute_figure(
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
    assert select_slowest(results) is results[1]
    lower = [
        result.model_copy(
            update={
                "benchmark": result.benchmark.model_copy(update={"direction": "lower", "metric": "seconds"})
            }
        )
        for result in results
    ]
    assert select_slowest(lower) is lower[1]
    results[2] = measure_repeat(
        task(accelerator_index=2, concurrent_accelerators=3), find=fake_device(None, kind="none")
    )
    assert select_slowest(results) is results[2]
