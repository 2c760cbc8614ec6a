"""Copies from one accelerator to the next one of the inventory, by the copy engines or by a kernel."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import PeerLink
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import done
from service.worker.cuda.device import Device, Launch
from service.worker.cuda.stream import VECTOR_BYTES

BLOCKS = 16
"""For each multiprocessor: a link needs more bytes on their way than memory does."""
SPOIL = 0xA5


class Way:
    """One direction: a buffer here, a buffer there, and whoever copies works here."""

    def __init__(self, source: Device, target: Device, work: PeerLink, seed: int) -> None:
        self.source, self.target = source, target
        self._size = work.transfer_bytes
        self._content = np.frombuffer(np.random.default_rng(seed).bytes(self._size), np.uint8)
        source.use()
        self.stream = source.driver.CUstream(source.stream)
        self.ended = source.event()
        self._sent = source.allocate(self._size)
        source.to_device(self._sent, self._content)
        target.use()
        self._received = target.allocate(self._size)
        self._queue = self._launch() if work.method == "kernel" else self._copy

    def queue(self) -> None:
        """Put one copy on the stream of the source."""
        self.source.use()
        self._queue()

    def spoil(self) -> None:
        """Overwrite what is to be written."""
        self.target.use()
        self.target.to_device(self._received, np.full(self._size, SPOIL, np.uint8))

    def wrong_bytes(self) -> int:
        """Bytes that did not arrive."""
        self.target.use()
        arrived = np.empty(self._size, np.uint8)
        self.target.to_host(arrived, self._received)
        return int(np.count_nonzero(arrived != self._content))

    def _launch(self) -> Launch:
        self.source.use()
        kernel, vectors = self.source.kernel("stream.cu", "stream_copy"), self._size // VECTOR_BYTES
        blocks = self.source.multiprocessors * BLOCKS
        return self.source.launcher(kernel, blocks, self._received, self._sent, vectors)

    def _copy(self) -> None:
        copy, contexts = self.source.driver.cuMemcpyPeerAsync, (self.target.context, self.source.context)
        done(copy(self._received, contexts[0], self._sent, contexts[1], self._size, self.stream))


class PeerCopies:
    """The first way goes from the accelerator that was asked for to its neighbour."""

    def __init__(self, one: Device, other: Device, work: PeerLink, seed: int, path: str) -> None:
        self._driver = one.driver
        pairs = [(one, other), (other, one)][: 2 if work.direction == "both" else 1]
        self._ways = [
            Way(source, target, work, numbers.seed_of(seed, number))
            for number, (source, target) in enumerate(pairs)
        ]
        one.use()
        self._first, self._events = one, (one.event(), one.event())
        engines = work.method == "copy_engine"
        self.facts = Facts(
            library="cuMemcpyPeerAsync" if engines else "own kernel stream_copy, written by the source",
            algorithm=f"{'copy engines' if engines else 'stores to the peer'}, {path}",
            data="random bytes",
            timer="cuda_event",
            working_set_bytes=2 * work.transfer_bytes * len(self._ways),
            software=one.software(),
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds from before the first copy to after the last, of whichever direction ends last."""
        driver, (first, *others), (start, stop) = self._driver, self._ways, self._events
        done(driver.cuEventRecord(start, first.stream))
        for way in others:
            done(driver.cuStreamWaitEvent(way.stream, start, 0))
        for _ in range(iterations):
            for way in self._ways:
                way.queue()
        for way in others:
            done(driver.cuEventRecord(way.ended, way.stream))
            done(driver.cuStreamWaitEvent(first.stream, way.ended, 0))
        done(driver.cuEventRecord(stop, first.stream))
        done(driver.cuEventSynchronize(stop))
        return self._first.between(start, stop)

    def check(self) -> Correctness:
        """Spoils what is to be written, copies once, compares every byte."""
        for way in self._ways:
            way.spoil()
        self.execute(1)
        wrong = sum(way.wrong_bytes() for way in self._ways)
        return Correctness(
            method="every byte that arrived", largest_error=float(wrong), tolerance=0.0, passed=not wrong
        )


def let_each_reach(driver: Any, one: Device, other: Device) -> bool:  # noqa: ANN401
    """Open the memory of each to the other; whether their hardware can do that."""
    ordinals = (one.ordinal, other.ordinal)
    ask = driver.cuDeviceCanAccessPeer
    if not all(done(ask(*pair)) for pair in (ordinals, ordinals[::-1])):
        return False
    for mine, yours in ((one, other), (other, one)):
        mine.use()
        done(driver.cuCtxEnablePeerAccess(yours.context, 0))
    return True


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:
    """Buffers on both; raises :class:`Unsupported` with one accelerator, or where one cannot be reached."""
    work = benchmark.work
    if not isinstance(work, PeerLink):
        raise Unsupported(f"{work.kind} is not a copy between accelerators")
    chosen = devices.beginning_with(index, 2)
    if work.method == "kernel" and work.transfer_bytes % VECTOR_BYTES:
        raise Unsupported(f"a kernel copies whole {VECTOR_BYTES}-byte vectors only")
    with ExitStack() as stack:
        one, other = (stack.enter_context(devices.opened(each)) for each in chosen)
        is_direct = let_each_reach(one.driver, one, other)
        if work.method == "kernel" and not is_direct:
            raise Unsupported(f"accelerator {chosen[0]} cannot reach the memory of accelerator {chosen[1]}")
        way = "directly" if is_direct else "by way of the host"
        yield PeerCopies(one, other, work, seed, f"accelerators {chosen[0]} and {chosen[1]}, {way}")
