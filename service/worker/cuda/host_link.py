"""Copies between host and device, of pinned or pageable memory, by ``cuMemcpyAsync``.

Both directions at once take two streams. Every byte is checked.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from service.protocol.nodes import NodeGap
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import HostLinkWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import check_status
from service.worker.cuda.device import CudaDevice

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
PCI_DEVICES = Path("/sys/bus/pci/devices")


class HostCopies:
    """Each direction has its own buffer on both sides, and its own stream if both run at once."""

    def __init__(self, device: CudaDevice, work: HostLinkWork, seed: int, gaps: tuple[NodeGap, ...]) -> None:
        if work.direction == "both" and work.memory == "pageable":
            raise Unsupported("a copy of pageable memory blocks its caller: two cannot run at once")
        self._device, self._work = device, work
        self._down = work.direction in ("host_to_device", "both")
        self._up = work.direction in ("device_to_host", "both")
        size = work.transfer_bytes
        generator = np.random.default_rng(numbers.derive_seed(seed, 0))
        self._content = np.frombuffer(generator.bytes(size), np.uint8)
        self._host = [self._allocate_buffer(size) for _ in range(2)]
        self._remote = [device.allocate(size) for _ in range(2)]
        # Written once, so that every page exists before the clock starts.
        self._host[0][:], self._host[1][:] = self._content, 0
        device.to_device(self._remote[1], self._content)
        self._streams = (device.create_stream(), device.create_stream())
        self._events = [device.create_event() for _ in range(3)]
        self.facts = MeasurementFacts(
            library="cuMemcpyAsync",
            algorithm="copy engines",
            data="random bytes",
            timer="cuda_event",
            working_set_bytes=size * (2 if work.direction == "both" else 1),
            software=device.list_software(),
            gaps=gaps,
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds from before the first copy to after the last, in the slower direction."""
        driver, (first, second), (start, other, stop) = self._device.driver, self._streams, self._events
        check_status(driver.cuEventRecord(start, first))
        check_status(driver.cuStreamWaitEvent(second, start, 0))
        for _ in range(iterations):
            if self._down:
                self._copy_down(first)
            if self._up:
                self._copy_up(second)
        check_status(driver.cuEventRecord(other, second))
        check_status(driver.cuStreamWaitEvent(first, other, 0))
        check_status(driver.cuEventRecord(stop, first))
        check_status(driver.cuEventSynchronize(stop))
        return self._device.compute_elapsed_ns(start, stop)

    def check(self) -> CorrectnessCheck:
        """Spoils the targets, copies once, and compares every byte."""
        size = self._work.transfer_bytes
        spoiled = np.full(size, 0xA5, np.uint8)
        if self._down:
            self._device.to_device(self._remote[0], spoiled)
        self._host[1][:] = spoiled
        self.execute(1)
        wrong = 0
        if self._down:
            arrived = np.empty(size, np.uint8)
            self._device.to_host(arrived, self._remote[0])
            wrong += int(np.count_nonzero(arrived != self._content))
        if self._up:
            wrong += int(np.count_nonzero(self._host[1] != self._content))
        return CorrectnessCheck(
            method="every byte that arrived", largest_error=float(wrong), tolerance=0.0, passed=not wrong
        )

    def _allocate_buffer(self, size: int) -> Bytes:
        return (
            self._device.allocate_pinned(size) if self._work.memory == "pinned" else np.empty(size, np.uint8)
        )

    def _copy_down(self, stream: Any) -> None:  # noqa: ANN401
        copy: Callable[..., tuple[Any]] = self._device.driver.cuMemcpyHtoDAsync
        check_status(copy(self._remote[0], self._host[0].ctypes.data, self._work.transfer_bytes, stream))

    def _copy_up(self, stream: Any) -> None:  # noqa: ANN401
        copy: Callable[..., tuple[Any]] = self._device.driver.cuMemcpyDtoHAsync
        check_status(copy(self._host[1].ctypes.data, self._remote[1], self._work.transfer_bytes, stream))


@contextmanager
def bind_local_processors(bus_id: str) -> Iterator[tuple[NodeGap, ...]]:
    """Binds this process to the processors beside a PCI device, so that its buffers are in their memory.

    Yields a gap if the kernel does not name them; then nothing is changed.
    """
    try:
        text = (PCI_DEVICES / bus_id / "local_cpulist").read_text()
        local = _parse_processors(text) & os.sched_getaffinity(0)
    except (OSError, ValueError) as error:
        local, detail = set(), type(error).__name__
    else:
        detail = "none of them may be used"
    if not local:
        yield (NodeGap(pointer="/measurement/affinity", code="no-local-processors", detail=detail),)
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, local)
    try:
        yield ()
    finally:
        os.sched_setaffinity(0, before)


def _parse_processors(text: str) -> set[int]:
    """Parses a list of numbers such as 0-3,8-11."""
    parts = [part.partition("-") for part in text.strip().split(",") if part]
    return {number for low, _, high in parts for number in range(int(low), int(high or low) + 1)}


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares buffers on both sides; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, HostLinkWork):
        raise Unsupported(f"{benchmark.work.kind} is not a copy between host and device")
    with devices.open_device(index) as device, bind_local_processors(device.pci_bus_id) as gaps:
        yield HostCopies(device, benchmark.work, seed, gaps)
