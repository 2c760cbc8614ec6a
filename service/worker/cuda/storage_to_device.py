"""A file read into device memory past the page cache: by cuFile, or through pinned host memory.

Both read the file of :mod:`service.worker.cpu.storage` in the same folder, of the same bytes, in blocks of
one size one after the other, into a ring of blocks on the device, by the host's clock. By host memory a block
is copied to the device while the next one is read. A record says in ``algorithm`` in which mode cuFile read.
Every byte is checked.

No constant is drawn of it: planning has the rate of drives to the host, which ``storage.read`` gives.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import StorageToDeviceWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import build_generator
from service.worker.cpu.storage import (
    DIRECT_ALIGNMENT,
    PATTERN_BYTES,
    PatternFile,
    check_file_system,
    create_folder,
)
from service.worker.cuda import cufile
from service.worker.cuda import device as devices
from service.worker.cuda.bindings import check_status
from service.worker.cuda.cufile import CufileLibrary, StorageMode
from service.worker.cuda.device import CudaDevice
from service.worker.cuda.host_link import bind_local_processors

RING_BLOCKS = 16
"""Blocks that the buffer on the device holds: GPUDirect pins it whole, and some devices can pin little."""

BlockReader = Callable[[int, int], None]
"""Reads the block at an offset of the file to an offset of the ring; the copy may still be queued."""


class DeviceFile:
    """A file that is read block after block into a ring on the device."""

    def __init__(self, device: CudaDevice, file: PatternFile, ring: int, read: BlockReader) -> None:
        self._device, self._file, self._ring, self._read = device, file, ring, read

    def _finish(self) -> None:
        """Waits for the copies of all streams."""
        check_status(self._device.driver.cuCtxSynchronize())

    def read_whole(self) -> int:
        """Returns the nanoseconds from the first read to the arrival of the last block."""
        start = time.perf_counter_ns()
        for place, offset in enumerate(range(0, self._file.size, self._file.block)):
            self._read(offset, self._place(place))
        self._finish()
        return time.perf_counter_ns() - start

    def count_wrong_bytes(self) -> int:
        """Spoils each block of the ring, reads a block of the file into it, and compares every byte."""
        size = self._file.block
        spoiled, arrived = np.full(size, 0xA5, np.uint8), np.empty(size, np.uint8)
        wrong = 0
        for place, block in enumerate(self._file.iterate_blocks()):
            to = self._place(place)
            self._device.to_device(self._ring + to, spoiled)
            self._read(place * size, to)
            self._finish()
            self._device.to_host(arrived, self._ring + to)
            wrong += int(np.count_nonzero(arrived != np.frombuffer(block, np.uint8)))
        return wrong

    def _place(self, block: int) -> int:
        return block % RING_BLOCKS * self._file.block


class TimedDeviceFile:
    """Reads of a whole file into device memory."""

    def __init__(
        self, facts: MeasurementFacts, source: DeviceFile, find_mode: Callable[[], StorageMode] | None = None
    ) -> None:
        """``find_mode`` reads the file once and tells the mode; None of reads through host memory."""
        self.facts, self._source, self._find_mode = facts, source, find_mode
        self._mode = find_mode() if find_mode else None
        if self._mode is not None:
            self.facts = replace_mode(facts, self._mode)

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` reads of the file."""
        return sum(self._source.read_whole() for _ in range(iterations))

    def check(self) -> CorrectnessCheck:
        """Compares every byte that arrives.

        Raises:
            RuntimeError: cuFile reads in another mode than before the samples.
        """
        if self._find_mode and (mode := self._find_mode()) is not self._mode:
            raise RuntimeError(f"cuFile read in {self._mode} before the samples and in {mode} after them")
        wrong = self._source.count_wrong_bytes()
        return CorrectnessCheck(
            method="every byte that arrived", largest_error=float(wrong), tolerance=0.0, passed=not wrong
        )


def replace_mode(facts: MeasurementFacts, mode: StorageMode) -> MeasurementFacts:
    """Returns the facts with the mode in which cuFile reads, and a gap if nothing tells it."""
    algorithm = f"{mode}, {facts.algorithm}"
    if mode is not StorageMode.UNKNOWN:
        return replace(facts, algorithm=algorithm)
    detail = "nvidia-fs counts no reads (rw_stats_enabled), or others read at the same time"
    gap = NodeGap(pointer="/measurement/algorithm", code="mode-unknown", detail=detail)
    return replace(facts, algorithm=algorithm, gaps=(*facts.gaps, gap))


def open_directly(path: Path) -> int:
    """Opens a file past the page cache; raises :class:`Unsupported` where the file system has no O_DIRECT."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        raise Unsupported(f"the temporary folder has no direct reads: {error.strerror}") from error


@contextmanager
def open_cufile_reads(
    library: CufileLibrary, device: CudaDevice, file: PatternFile, ring: int, facts: MeasurementFacts
) -> Iterator[TimedDeviceFile]:
    """Registers the file and the ring with cuFile; :class:`Unsupported` where cuFile does not take them."""
    with ExitStack() as stack:
        descriptor = open_directly(file.path)
        stack.callback(os.close, descriptor)
        handle = stack.enter_context(cufile.register_file(library, descriptor))
        stack.enter_context(cufile.register_buffer(library, ring, RING_BLOCKS * file.block))
        source = DeviceFile(
            device, file, ring, lambda offset, to: library.read(handle, ring, file.block, offset, to)
        )
        software = (NodeSoftware(name="cufile", version=library.version),) if library.version else ()
        named = replace(facts, library="cuFileRead, as installed here", software=(*facts.software, *software))
        yield TimedDeviceFile(named, source, lambda: find_mode(library, source, file.size))


def find_mode(library: CufileLibrary, source: DeviceFile, file_bytes: int) -> StorageMode:
    """Reads the file once while reads are counted, and returns the mode in which that was."""
    with library.count_reads():
        before = library.read_counts()
        source.read_whole()
        after = library.read_counts()
    return library.find_mode(before, after, file_bytes)


@contextmanager
def open_host_reads(
    device: CudaDevice, file: PatternFile, ring: int, facts: MeasurementFacts
) -> Iterator[TimedDeviceFile]:
    """Prepares two pinned blocks on the host: one is read while the other is copied to the device."""
    driver, stream = device.driver, device.create_stream()
    blocks = [device.allocate_pinned(file.block) for _ in range(2)]
    copied = [device.create_event() for _ in blocks]
    descriptor = open_directly(file.path)

    def read_block(offset: int, to: int) -> None:
        turn = offset // file.block % len(blocks)
        # An event that was never recorded has occurred.
        check_status(driver.cuEventSynchronize(copied[turn]))
        if os.preadv(descriptor, [blocks[turn].data], offset) != file.block:
            raise OSError(errno.EIO, "the file ended early")
        check_status(driver.cuMemcpyHtoDAsync(ring + to, blocks[turn].ctypes.data, file.block, stream))
        check_status(driver.cuEventRecord(copied[turn], stream))

    try:
        named = replace(facts, library="own loop over direct reads and cuMemcpyHtoDAsync")
        yield TimedDeviceFile(named, DeviceFile(device, file, ring, read_block))
    finally:
        os.close(descriptor)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Writes a file of random bytes to a temporary folder: ``TMPDIR`` where it is set, else ``/var/tmp``.

    Raises :class:`Unsupported` where cuFile is not installed, or the folder has no room or no direct reads.
    """
    work = benchmark.work
    if not isinstance(work, StorageToDeviceWork):
        raise Unsupported(f"{work.kind} is not a read of a file into device memory")
    block = work.block_bytes
    if work.file_bytes % block or block % DIRECT_ALIGNMENT or block > PATTERN_BYTES:
        raise Unsupported(f"a file of {work.file_bytes} bytes has no whole aligned blocks of {block} bytes")
    with ExitStack() as stack:
        device = stack.enter_context(devices.open_device(index))
        gaps = stack.enter_context(bind_local_processors(device.pci_bus_id))
        ring = device.allocate(RING_BLOCKS * block)
        opened = open_host_reads
        if work.method == "cufile":
            opened = partial(open_cufile_reads, stack.enter_context(cufile.open_driver()))
        folder = Path(stack.enter_context(create_folder()))
        kind = check_file_system(folder, work.file_bytes)
        pattern_bytes = min(work.file_bytes, PATTERN_BYTES - PATTERN_BYTES % block)
        pattern = build_generator(benchmark, seed).bytes(pattern_bytes)
        file = PatternFile(folder / "data", work.file_bytes, block, pattern)
        file.write()
        file.drop_cache()
        facts = MeasurementFacts(
            library="",
            algorithm=f"blocks of {block} bytes in sequence, O_DIRECT on {kind}",
            data="random bytes",
            timer="host_clock",
            working_set_bytes=work.file_bytes,
            threads=1,
            software=device.list_software(),
            gaps=gaps,
        )
        timed = stack.enter_context(opened(device, file, ring, facts))
        timed.execute(1)
        if file.is_cached():
            raise Unsupported(f"reads of {kind} go through the page cache")
        yield timed
