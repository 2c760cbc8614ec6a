"""Copies from one accelerator to the next one of the inventory, by the copy engines or by a kernel.

The engines are asked by ``cuMemcpyPeerAsync``; the kernel of the source stores to its neighbour. Every byte
is checked.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import PeerLinkWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import check_status
from service.worker.cuda.device import CudaDevice, KernelLaunch
from service.worker.cuda.stream import VECTOR_BYTES

BLOCKS = 16
"""Blocks for each multiprocessor: a link needs more bytes in flight than memory does."""
SPOIL = 0xA5


class CopyDirection:
    """One direction: a buffer at the source, a buffer at the target, and copies by the source."""

    def __init__(self, source: CudaDevice, target: CudaDevice, work: PeerLinkWork, seed: int) -> None:
        self.source, self.target = source, target
        self._size = work.transfer_bytes
        self._content = np.frombuffer(np.random.default_rng(seed).bytes(self._size), np.uint8)
        source.make_current()
        self.stream = source.driver.CUstream(source.stream)
        self.ended = source.create_event()
        self._sent = source.allocate(self._size)
        source.to_device(self._sent, self._content)
        target.make_current()
        self._received = target.allocate(self._size)
        self._queue = self._build_launch() if work.method == "kernel" else self._enqueue_peer_copy

    def enqueue_copy(self) -> None:
        """Enqueues one copy on the stream of the source."""
        self.source.make_current()
        self._queue()

    def invalidate_target(self) -> None:
        """Overwrites the target."""
        self.target.make_current()
        self.target.to_device(self._received, np.full(self._size, SPOIL, np.uint8))

    def count_wrong_bytes(self) -> int:
        """Counts bytes that did not arrive."""
        self.target.make_current()
        arrived = np.empty(self._size, np.uint8)
        self.target.to_host(arrived, self._received)
        return int(np.count_nonzero(arrived != self._content))

    def _build_launch(self) -> KernelLaunch:
        self.source.make_current()
        kernel, vectors = self.source.load_kernel("stream.cu", "stream_copy"), self._size // VECTOR_BYTES
        blocks = self.source.multiprocessors * BLOCKS
        return self.source.build_launch(kernel, blocks, self._received, self._sent, vectors)

    def _enqueue_peer_copy(self) -> None:
        copy, contexts = self.source.driver.cuMemcpyPeerAsync, (self.target.context, self.source.context)
        check_status(copy(self._received, contexts[0], self._sent, contexts[1], self._size, self.stream))


class PeerCopies:
    """Copies whose first direction goes from the requested accelerator to its neighbour."""

    def __init__(self, one: CudaDevice, other: CudaDevice, work: PeerLinkWork, seed: int, path: str) -> None:
        self._driver = one.driver
        pairs = [(one, other), (other, one)][: 2 if work.direction == "both" else 1]
        self._ways = [
            CopyDirection(source, target, work, numbers.derive_seed(seed, number))
            for number, (source, target) in enumerate(pairs)
        ]
        one.make_current()
        self._first, self._events = one, (one.create_event(), one.create_event())
        engines = work.method == "copy_engine"
        self.facts = MeasurementFacts(
            library="cuMemcpyPeerAsync" if engines else "own kernel stream_copy, written by the source",
            algorithm=f"{'copy engines' if engines else 'stores to the peer'}, {path}",
            data="random bytes",
            timer="cuda_event",
            working_set_bytes=2 * work.transfer_bytes * len(self._ways),
            software=one.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds from before the first copy to after the last, in the slower direction."""
        driver, (first, *others), (start, stop) = self._driver, self._ways, self._events
        check_status(driver.cuEventRecord(start, first.stream))
        for way in others:
            check_status(driver.cuStreamWaitEvent(way.stream, start, 0))
        for _ in range(iterations):
            for way in self._ways:
                way.enqueue_copy()
        for way in others:
            check_status(driver.cuEventRecord(way.ended, way.stream))
            check_status(driver.cuStreamWaitEvent(first.stream, way.ended, 0))
        check_status(driver.cuEventRecord(stop, first.stream))
        check_status(driver.cuEventSynchronize(stop))
        return self._first.compute_elapsed_ns(start, stop)

    def check(self) -> CorrectnessCheck:
        """Spoils the targets, copies once, and compares every byte."""
        for way in self._ways:
            way.invalidate_target()
        self.execute(1)
        wrong = sum(way.count_wrong_bytes() for way in self._ways)
        return CorrectnessCheck(
            method="every byte that arrived", largest_error=float(wrong), tolerance=0.0, passed=not wrong
        )


def enable_peer_access(driver: Any, one: CudaDevice, other: CudaDevice) -> bool:  # noqa: ANN401
    """Opens the memory of each to the other; returns true if their hardware supports that."""
    ordinals = (one.ordinal, other.ordinal)
    ask = driver.cuDeviceCanAccessPeer
    if not all(check_status(ask(*pair)) for pair in (ordinals, ordinals[::-1])):
        return False
    for mine, yours in ((one, other), (other, one)):
        mine.make_current()
        check_status(driver.cuCtxEnablePeerAccess(yours.context, 0))
    return True


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares buffers on both; raises :class:`Unsupported` if one is missing or cannot be reached."""
    work = benchmark.work
    if not isinstance(work, PeerLinkWork):
        raise Unsupported(f"{work.kind} is not a copy between accelerators")
    chosen = devices.select_indices(index, 2)
    if work.method == "kernel" and work.transfer_bytes % VECTOR_BYTES:
        raise Unsupported(f"a kernel copies only whole {VECTOR_BYTES}-byte vectors")
    with ExitStack() as stack:
        one, other = (stack.enter_context(devices.open_device(each)) for each in chosen)
        is_direct = enable_peer_access(one.driver, one, other)
        if work.method == "kernel" and not is_direct:
            raise Unsupported(f"accelerator {chosen[0]} cannot reach the memory of accelerator {chosen[1]}")
        way = "directly" if is_direct else "by way of the host"
        yield PeerCopies(one, other, work, seed, f"accelerators {chosen[0]} and {chosen[1]}, {way}")
