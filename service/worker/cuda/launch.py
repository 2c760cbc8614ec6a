"""Time from one empty kernel to the next, launched one by one or as a graph."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.protocol.suites import Benchmark
from service.protocol.work import LaunchLatency
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda.device import Device


class Launches:
    """Empty kernels, one behind the other; nothing is computed, so nothing is checked."""

    def __init__(self, device: Device, work: LaunchLatency) -> None:
        self._device = device
        launch = device.launcher(device.kernel("empty.cu", "empty"), 1)

        def one_by_one() -> None:
            for _ in range(work.launches):
                launch()

        self._all = device.captured(one_by_one) if work.method == "graph" else one_by_one
        self.facts = Facts(
            library="own kernel empty, launched through cuda-bindings",
            data="none",
            timer="cuda_event",
            uses_graph=work.method == "graph",
            software=device.software(),
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds from before the first launch to after the last."""

        def work() -> None:
            for _ in range(iterations):
                self._all()

        self._device.synchronize()
        return self._device.timed(work)

    def check(self) -> None:
        """Nothing is computed."""


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:  # noqa: ARG001
    """Empty kernels; the seed plays no part."""
    if not isinstance(benchmark.work, LaunchLatency):
        raise Unsupported(f"{benchmark.work.kind} is not a launch")
    with devices.opened(index) as device:
        yield Launches(device, benchmark.work)
