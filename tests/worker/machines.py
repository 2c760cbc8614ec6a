"""A clock that stands still until work is done, work that takes as long as it is told, and a task for it."""

from itertools import chain, repeat

from service.protocol.results import CorrectnessCheck, DeviceTelemetry
from service.protocol.suites import Benchmark
from service.worker.benchmark import MeasurementFacts
from service.worker.measure import MeasuredDevice
from service.worker.task import RepeatTask

FACTS = MeasurementFacts(library="fake 1.0", data="none", timer="host_clock")
PASSED = CorrectnessCheck(method="by eye", largest_error=0.0, tolerance=0.0, passed=True)


class FakeClock:
    """Nanoseconds that pass only while something works."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


class FakeTimed:
    """Each execution takes the next of the durations, the last one for ever after."""

    facts = FACTS

    def __init__(self, clock, *durations_ns, flush_ns=0, correctness=PASSED):
        self.clock, self.flush_ns, self.correctness = clock, flush_ns, correctness
        self.durations = chain(durations_ns, repeat(durations_ns[-1]))
        self.calls = []

    def execute(self, iterations):
        self.calls.append(iterations)
        took = iterations * next(self.durations)
        self.clock.now += self.flush_ns + took
        return took

    def check(self):
        return self.correctness


class FakeRead:
    """Readings as they are told."""

    facts = MeasurementFacts(library="fake 1.0", data="none", timer="nvml")

    def __init__(self, *readings):
        self.readings = list(readings)

    def read(self):
        return self.readings


class FakeWatch:
    """A window in which nothing but its length was seen."""

    telemetry = DeviceTelemetry(window_seconds=1.0)

    def __init__(self):
        self.gaps = []
        self.open = False

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *_):
        self.open = False


def fake_device(prepare, kind="gemm", watch=FakeWatch):
    return lambda _: MeasuredDevice({kind: prepare}, lambda _: watch())


def benchmark(work=None, metric="flops_per_second", **sampling):
    return Benchmark.model_validate(
        {
            "name": "gemm.fp64",
            "work": work or {"kind": "gemm", "dtype": "fp64", "m": 3, "n": 5, "k": 7},
            "metric": metric,
            "direction": "higher",
            "formula": "2 m n k",
            "sampling": {
                "warmup_seconds": 0.0,
                "least_samples": 3,
                "least_seconds": 0.0,
                "relative_spread": 1.0,
                "most_samples": 20,
                "most_seconds": 1.0,
                **sampling,
            },
        }
    )


def task(which=None, **changes):
    return RepeatTask.model_validate(
        {
            "benchmark": which or benchmark(),
            "suite_id": "cpu-quick",
            "suite_version": 1,
            "run_id": "run-1",
            "fencing_token": 7,
            "attempt": 1,
            "nonce": "ab" * 16,
            "node_id": "node-1",
            "boot_id_sha256": "1" * 64,
            "inventory_sha256": "2" * 64,
            "seed": 11,
            "repeat": 2,
            "device": "cpu",
            "worker_version": "0.1.0",
            **changes,
        }
    )
