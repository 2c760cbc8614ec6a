"""Collectives of processes over shared memory: what every one holds in the end."""

import os
import random
import threading
import time

import numpy as np
import pytest

from service.worker import cpu
from service.worker.benchmark import Unsupported
from service.worker.cpu import collective
from service.worker.ring import BUFFERS, RingPlace, RingRank
from tests.worker.machines import benchmark

PAYLOAD = 60 * 4


def asked(**changes):
    work = {
        "kind": "collective",
        "operation": "all_reduce",
        "devices": 2,
        "payload_bytes": PAYLOAD,
        **changes,
    }
    return benchmark(work, "bytes_per_second")


@pytest.mark.parametrize("operation", collective.OPERATIONS)
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_every_result_is_right_whoever_is_slow(operation, ranks):
    """Threads stand for processes; what is read before it is written is no number."""
    chance, part = random.Random(ranks), 60 // ranks  # noqa: S311
    shared = np.full((ranks, BUFFERS, 60), np.nan, np.float32)
    shared[:, 0] = np.arange(ranks * 60).reshape(ranks, 60)
    pipes = [os.pipe() for _ in range(ranks)]

    class Slow(RingRank):
        def _begin_step(self):
            time.sleep(chance.choice((0, 0, 0.001)))
            super()._begin_step()

    def exchange(number):
        ends = (pipes[number - 1][0], pipes[number][1])
        rank = Slow(RingPlace(number, ranks, operation, 60, -1, *ends), shared)
        rank.wait_for_ranks()
        rank.run_collective()
        rank.run_collective()

    threads = [threading.Thread(target=exchange, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for descriptor in (end for pipe in pipes for end in pipe):
        os.close(descriptor)
    sent, every = shared[:, 0].reshape(ranks, ranks, part), range(ranks)
    total, gathered = sent.sum(axis=0), [sent[each, each] for each in every]
    for turn in (1, 2):
        found = shared[:, turn].reshape(ranks, ranks, part)
        match operation:
            case "all_reduce":
                assert np.array_equal(found, [total] * ranks)
            case "reduce_scatter":
                assert np.array_equal([found[each, each] for each in every], total)
            case "all_gather":
                assert np.array_equal(found, [gathered] * ranks)


@pytest.mark.parametrize("operation", collective.OPERATIONS)
def test_processes_exchange_compare_every_element_and_end(monkeypatch, operation):
    monkeypatch.setattr(collective, "usable_processors", lambda: (0, 1))
    with cpu.PREPARE["collective"](asked(operation=operation), 5, None) as timed:
        assert timed.execute(3) > 0
        assert timed.check().passed
        execute = timed.execute

        def wrong(times):
            execute(times)
            timed._shared[1, 1:, -1] += 1

        monkeypatch.setattr(timed, "execute", wrong)
        assert not timed.check().passed
        first, second = timed._processes
        first.kill()
        first.wait(10)
        second.stdin.write("1\n")
        second.stdin.flush()
        assert second.wait(10) == 1  # its neighbour is gone
        with pytest.raises((RuntimeError, BrokenPipeError)):
            execute(1)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"operation": "all_to_all"}, "not exchanged by processes"),
    ({"algorithm": "nvls"}, "not exchanged by processes"),
    ({"devices": 64}, "64 processes on"),
    ({"payload_bytes": 12}, "cannot be divided"),
    ({"payload_bytes": 2**40}, "memory are available"),
])  # fmt: skip
def test_what_processes_cannot_exchange_is_unsupported(monkeypatch, changes, reason):
    monkeypatch.setattr(collective, "usable_processors", lambda: (0, 1))
    with pytest.raises(Unsupported, match=reason):
        cpu.PREPARE["collective"](asked(**changes), 5, None).__enter__()
