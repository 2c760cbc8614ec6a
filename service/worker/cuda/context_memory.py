"""Device memory that a process takes before it allocates anything, by NVML before and after a context."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import GemmWork
from service.protocol.work.memory import ContextMemoryWork
from service.worker import nvml
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda.cublaslt import Matmul, MatmulAlgorithm, time_proposals
from service.worker.cuda.device import CudaDevice

SIDE = 256


class ContextBytes:
    """Reading of the context, taken once because a process creates its context once."""

    def __init__(self, taken: int, facts: MeasurementFacts) -> None:
        self._taken = taken
        self.facts = facts

    def read(self) -> list[float]:
        """Returns the bytes as one figure."""
        return [float(self._taken)]


def _read_process_bytes(bindings: Any, handle: Any) -> dict[int, int | None]:  # noqa: ANN401
    """Returns the bytes of each process on the device, None if the driver does not report them."""
    found = bindings.nvmlDeviceGetComputeRunningProcesses(handle)
    return {process.pid: process.usedGpuMemory for process in found}


def _use_library(device: CudaDevice, stack: ExitStack) -> None:
    """Runs one small product: the library stays open, its matrices and workspace are freed."""
    work = GemmWork(kind="gemm", dtype="fp16", m=SIDE, n=SIDE, k=SIDE)
    with device.scope_allocations():
        matmul = Matmul(device, work, stack)
        a, b, c = (device.allocate(2 * SIDE * SIDE) for _ in range(3))

        def run_product(algorithm: MatmulAlgorithm) -> int:
            matmul.enqueue_product(algorithm, a, b, c)
            device.synchronize()
            return 0

        time_proposals(device, matmul, run_product, 0.0)


def _read_used_bytes(bindings: Any, handle: Any) -> int:  # noqa: ANN401
    return int(bindings.nvmlDeviceGetMemoryInfo(handle).used)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:  # noqa: ARG001
    """Creates a context and reads its memory; raises :class:`Unsupported` if that is unknown."""
    work = benchmark.work
    if not isinstance(work, ContextMemoryWork):
        raise Unsupported(f"{work.kind} is not the memory of a context")
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    with ExitStack() as stack:
        bindings = stack.enter_context(nvml.open_nvml())
        handle = nvml.get_handle(bindings, index)
        before = _read_used_bytes(bindings, handle)
        device = stack.enter_context(devices.open_device(index))
        if work.with_library:
            _use_library(device, stack)
        taken = _read_process_bytes(bindings, handle).get(os.getpid())
        method = "NVML, memory of this process"
        if taken is None:
            # In a container the driver may not list this process, or list it under another number.
            taken = _read_used_bytes(bindings, handle) - before
            method = "NVML, memory in use on the device, after less before"
        if taken <= 0:
            raise Unsupported(f"{method}: {taken} bytes")
        facts = MeasurementFacts(library=method, data="none", timer="nvml", software=device.list_software())
        yield ContextBytes(taken, facts)
