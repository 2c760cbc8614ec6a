"""Copies within device memory by ``cuMemcpyDtoDAsync``, checked by a sample and a sum over all."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import DeviceCopyWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import check_status
from service.worker.cuda.copies import CopyArrays
from service.worker.cuda.device import CudaDevice


class DeviceCopies:
    """Copies from one array to another, on the stream of the device."""

    def __init__(self, device: CudaDevice, work: DeviceCopyWork, seed: int) -> None:
        self._device, self._work = device, work
        self._arrays = CopyArrays(device, work.array_bytes, seed)
        self._stream = device.driver.CUstream(device.stream)
        self.facts = MeasurementFacts(
            library="cuMemcpyDtoDAsync",
            algorithm="a copy engine or a kernel, as the driver chooses",
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=2 * work.array_bytes,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` copies after a flush."""
        return self._device.time_launches(self._enqueue_copy, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Spoils the target, copies once, and compares."""
        return self._arrays.check_copy(self._enqueue_copy)

    def _enqueue_copy(self) -> None:
        arrays, copy = self._arrays, self._device.driver.cuMemcpyDtoDAsync
        check_status(copy(arrays.target, arrays.source, self._work.array_bytes, self._stream))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares arrays from the seed; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, DeviceCopyWork):
        raise Unsupported(f"{benchmark.work.kind} is not a copy within a device")
    with devices.open_device(index) as device:
        yield DeviceCopies(device, benchmark.work, seed)
