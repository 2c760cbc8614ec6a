"""A copy by few warps on each multiprocessor, by an own kernel: throughput against occupancy."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import OccupancyWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.copies import CopyArrays
from service.worker.cuda.device import CudaDevice

WARP = 32
MOST_WARPS = 32
"""Most warps of a block."""
RESERVED_BYTES = 1024
"""Shared memory that the system reserves in each block (CUDA C++ Programming Guide, capability 8 on)."""


class FewWarps:
    """Requests so much shared memory that no multiprocessor has room for another block."""

    def __init__(self, device: CudaDevice, work: OccupancyWork, seed: int) -> None:
        self._device = device
        kernel = device.load_kernel("occupancy.cu", "occupancy_copy")
        blocks, threads = _compute_shape(work.resident_warps)
        shared_bytes = _compute_shared_bytes(device.shared_bytes, blocks)
        resident = device.count_resident_blocks(kernel, threads, shared_bytes)
        if resident != blocks:
            raise Unsupported(f"{work.resident_warps} warps: room for {resident} of {blocks} blocks")
        self._arrays = CopyArrays(device, work.array_bytes, seed)
        self._launch = device.build_launch(
            kernel,
            blocks * device.multiprocessors,
            self._arrays.target,
            self._arrays.source,
            self._arrays.vectors,
            threads=threads,
            shared_bytes=shared_bytes,
        )
        self.facts = MeasurementFacts(
            library="own kernel occupancy_copy",
            algorithm=(
                f"{blocks} blocks of {threads} threads on a multiprocessor, an access of 16 bytes each"
            ),
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=2 * work.array_bytes,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` copies after a flush; small arrays are flushed each time."""
        return self._device.time_launches(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Spoils the target, copies once, and compares sums over all and a sample of elements."""
        return self._arrays.check_copy(self._launch)


def _compute_shape(warps: int) -> tuple[int, int]:
    """Returns the blocks of a multiprocessor and their threads: one block if it can hold as many."""
    blocks = -(-warps // MOST_WARPS)
    if warps % blocks:
        raise Unsupported(f"{warps} warps are not {blocks} blocks of the same size")
    return blocks, warps // blocks * WARP


def _compute_shared_bytes(of_multiprocessor: int, blocks: int) -> int:
    """Returns the shared memory of a block, in KiB, with which ``blocks`` fit and one more does not."""
    share = of_multiprocessor // (blocks + 1) + 1 - RESERVED_BYTES
    return max(-(-share // 1024), 0) * 1024


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares arrays from the seed; raises :class:`Unsupported` if they or the warps do not fit."""
    if not isinstance(benchmark.work, OccupancyWork):
        raise Unsupported(f"{benchmark.work.kind} is not an occupancy benchmark")
    with devices.open_device(index) as device:
        yield FewWarps(device, benchmark.work, seed)
