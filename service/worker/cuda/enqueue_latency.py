"""Time of the host for each launch of an empty kernel, from C or through cuda-bindings. Nothing is checked.

It ends when the driver has taken the launch and not when the device has run it, by the clock of the host. The
loop in C is compiled by the host's own compiler at its first use.
"""

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.protocol.nodes import NodeGap
from service.protocol.suites import Benchmark
from service.protocol.work.device import EnqueueLatencyWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import host_compiler
from service.worker.cuda.bindings import CudaError, check_status
from service.worker.cuda.device import CudaDevice
from service.worker.cuda.host_link import bind_local_processors

FILE = "enqueue.c"


class Enqueues:
    """Launches on an idle stream, fewer than it queues, so that the host never waits for the device."""

    def __init__(self, device: CudaDevice, work: EnqueueLatencyWork, gaps: tuple[NodeGap, ...]) -> None:
        self._device, self._launches = device, work.launches
        self._kernel = device.load_kernel("empty.cu", "empty")
        compiler = None
        if work.caller == "c":
            functions, compiler = host_compiler.build_library(FILE)
            self._enqueue = self._build_loop_in_c(functions)
        else:
            self._enqueue = self._enqueue_from_python
        self._launch = device.build_launch(self._kernel, 1, threads=1)
        self.facts = MeasurementFacts(
            library="cuLaunchKernel " + ("through cuda-bindings" if compiler is None else "from C"),
            algorithm=compiler and f"loop compiled by {compiler}",
            data="none",
            timer="host_clock",
            software=device.list_software(),
            gaps=gaps,
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds in which the host enqueues; it waits for the device before."""
        total = 0
        for _ in range(iterations):
            self._device.synchronize()
            total += self._enqueue()
        return total

    def check(self) -> None:
        """Returns None: nothing is computed."""

    def _enqueue_from_python(self) -> int:
        started = time.perf_counter_ns()
        for _ in range(self._launches):
            self._launch()
        return time.perf_counter_ns() - started

    def _build_loop_in_c(self, functions: ctypes.CDLL) -> Callable[[], int]:
        loop, driver = functions.time_enqueues, self._device.driver
        loop.restype, loop.argtypes = ctypes.c_longlong, [ctypes.c_void_p] * 3 + [ctypes.c_uint]
        version = check_status(driver.cuDriverGetVersion())
        launch, _ = check_status(driver.cuGetProcAddress(b"cuLaunchKernel", version, 0))

        def enqueue_from_c() -> int:
            took = int(loop(int(launch), self._kernel, self._device.stream, self._launches))
            if took < 0:
                raise CudaError(driver.CUresult(-took).name)
            return took

        return enqueue_from_c


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:  # noqa: ARG001
    """Prepares launches; raises :class:`Unsupported` without a compiler for C. The seed is not used."""
    work = benchmark.work
    if not isinstance(work, EnqueueLatencyWork):
        raise Unsupported(f"{work.kind} is not an enqueue latency")
    with devices.open_device(index) as device, bind_local_processors(device.pci_bus_id) as gaps:
        yield Enqueues(device, work, gaps)
