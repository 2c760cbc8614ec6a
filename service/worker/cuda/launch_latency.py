"""Time from one empty kernel to the next, launched one by one or as a graph. Nothing is checked."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.protocol.suites import Benchmark
from service.protocol.work.device import LaunchLatencyWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda.device import CudaDevice


class Launches:
    """Empty kernels in sequence. Nothing is computed, so nothing is checked."""

    def __init__(self, device: CudaDevice, work: LaunchLatencyWork) -> None:
        self._device = device
        launch = device.build_launch(device.load_kernel("empty.cu", "empty"), 1)

        def enqueue_kernels() -> None:
            for _ in range(work.launches):
                launch()

        self._all = device.capture_graph(enqueue_kernels) if work.method == "graph" else enqueue_kernels
        self.facts = MeasurementFacts(
            library="own kernel empty, launched through cuda-bindings",
            data="none",
            timer="cuda_event",
            uses_graph=work.method == "graph",
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds from before the first launch to after the last."""

        def enqueue_launches() -> None:
            for _ in range(iterations):
                self._all()

        self._device.synchronize()
        return self._device.time_work(enqueue_launches)

    def check(self) -> None:
        """Returns None: nothing is computed."""


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:  # noqa: ARG001
    """Prepares empty kernels. The seed is not used."""
    if not isinstance(benchmark.work, LaunchLatencyWork):
        raise Unsupported(f"{benchmark.work.kind} is not a launch")
    with devices.open_device(index) as device:
        yield Launches(device, benchmark.work)
