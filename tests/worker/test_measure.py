import sys
import types
from contextlib import contextmanager

import pytest
from pydantic import MISSING

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import BenchmarkResultReport, CorrectnessCheck
from service.worker import measure as module
from service.worker.benchmark import MeasurementFacts, Unsupported
from service.worker.measure import MeasuredDevice, load_device, measure_repeat
from tests.worker.machines import (
    FakeClock,
    FakeRead,
    FakeTimed,
    FakeWatch,
    benchmark,
    fake_device,
    task,
)

MILLISECOND = 1_000_000
WRONG = CorrectnessCheck(method="by eye", largest_error=0.5, tolerance=0.1, passed=False)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes only while the fake works."""
    clock = FakeClock()
    monkeypatch.setattr(module, "resolution_ns", lambda _: 1)
    for name in ("warm_up", "take_samples"):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, real=real, **kwargs: real(*args, **kwargs, clock=clock)
        )
    return clock


def prepared(value):
    @contextmanager
    def prepare(*_):
        yield value

    return prepare


def failing(error):
    @contextmanager
    def prepare(*_):
        raise error
        yield

    return prepare


def measured(value, which=None, **changes):
    return measure_repeat(task(which, **changes), find=fake_device(prepared(value)))


def test_a_record_says_what_was_asked_and_what_was_measured(clock):
    result = measured(FakeTimed(clock, MILLISECOND), device="cuda", accelerator_index=3)
    asked = task(device="cuda", accelerator_index=3)
    assert {name: getattr(result, name) for name in type(asked).model_fields} == dict(asked)
    assert result.status == "ok"
    assert result.failure is MISSING
    measurement = result.measurement
    assert measurement.samples_ns == [MILLISECOND] * 3
    assert measurement.inner_iterations == 1
    assert measurement.stop_reason == "spread"
    assert [(gone.reason, gone.count) for gone in measurement.discarded] == [("first", 1)]
    assert measurement.first_call_seconds == 0.001
    assert measurement.library == "fake 1.0"
    assert result.benchmark.compute_figure(measurement.values, inner_iterations=1) == pytest.approx(
        210 / 1e-3
    )
    assert result.started_at <= result.finished_at
    assert result.started_monotonic_seconds <= result.finished_monotonic_seconds


def test_a_record_reads_back_as_the_same_bytes(clock):
    content = measured(FakeTimed(clock, MILLISECOND)).to_json()
    assert BenchmarkResultReport.model_validate_json(content).to_json() == content


def test_each_record_has_an_id_of_its_own(clock):
    timed = FakeTimed(clock, MILLISECOND)
    assert measured(timed).result_id != measured(timed).result_id


def test_readings_are_kept_as_read():
    which = benchmark({"kind": "context_memory", "with_library": False}, "bytes", least_samples=2)
    result = measure_repeat(
        task(which), find=fake_device(prepared(FakeRead(512.0, 516.0, 514.0)), kind="context_memory")
    )
    assert result.measurement.readings == [512.0, 516.0, 514.0]
    assert result.measurement.stop_reason == "single"
    assert result.measurement.samples_ns == []


def test_only_the_timed_window_is_watched(clock):
    """Warm-up is over before telemetry begins, and the check comes after it has ended."""
    seen, watch = [], FakeWatch()

    class Spied(FakeTimed):
        def execute(self, iterations):
            seen.append(watch.open)
            return super().execute(iterations)

        def check(self):
            seen.append(watch.open)
            return super().check()

    measure_repeat(task(), find=fake_device(prepared(Spied(clock, MILLISECOND)), watch=lambda: watch))
    # First call and one warm-up call; the sample that does not count and three that do; the check.
    assert seen == [False] * 2 + [True] * 4 + [False]


def test_gaps_and_software_of_every_part_are_in_the_record(clock):
    watch = FakeWatch()
    watch.gaps = [NodeGap(pointer="/measurement/telemetry/power_watts", code="no-sensor")]
    timed = FakeTimed(clock, MILLISECOND)
    timed.facts = MeasurementFacts(
        library="fake 1.0",
        data="none",
        timer="host_clock",
        threads=2,
        software=(NodeSoftware(name="fake", version="1.0"),),
        gaps=(NodeGap(pointer="/measurement/rotated_buffers", code="cache-unknown"),),
    )
    result = measure_repeat(task(), find=fake_device(prepared(timed), watch=lambda: watch))
    assert [gap.code for gap in result.gaps] == ["cache-unknown", "no-sensor"]
    assert [part.name for part in result.software] == ["python", "fake"]
    assert result.measurement.threads == 2
    assert result.measurement.algorithm is MISSING


@pytest.mark.parametrize(
    ("prepare", "status", "reason", "detail"),
    [
        (failing(Unsupported("no fp8 before 8.9")), "unsupported", "UNSUPPORTED", "no fp8 before 8.9"),
        (failing(MemoryError("no room")), "failed", "OUT_OF_MEMORY", "no room"),
        (failing(KeyError("launch")), "failed", "BENCHMARK_ERROR", "KeyError: 'launch'"),
        (prepared(FakeTimed(FakeClock(), 0)), "failed", "TOO_SHORT", "10000000 executions take 0 ns"),
        (
            prepared(FakeTimed(FakeClock(), MILLISECOND, correctness=WRONG)),
            "failed",
            "WRONG_RESULT",
            "by eye: 0.5 off, 0.1 allowed",
        ),
    ],
)
def test_a_failure_has_a_reason_and_no_figure(prepare, status, reason, detail):
    result = measure_repeat(task(benchmark(most_seconds=0.0)), find=fake_device(prepare))
    assert (result.status, result.failure.reason, result.failure.detail) == (status, reason, detail)
    assert result.measurement is MISSING
    assert b"samples_ns" not in result.to_json()


def test_an_unforeseen_error_leaves_its_trace_and_no_credential():
    error = ValueError("refused\nironlawnode_abc123def_SECRETSECRETSECRET\x00")
    failure = measure_repeat(task(), find=fake_device(failing(error))).failure
    assert failure.error_output.rstrip().startswith("Traceback")
    assert "ValueError: refused" in failure.error_output
    assert "\n" not in failure.detail
    assert "SECRET" not in failure.detail + failure.error_output


def test_a_failed_measurement_keeps_what_is_known_of_the_stack(clock):
    timed = FakeTimed(clock, MILLISECOND, correctness=WRONG)
    timed.facts = MeasurementFacts(
        library="x", data="x", timer="host_clock", software=(NodeSoftware(name="blas", version="9"),)
    )
    assert [part.name for part in measured(timed).software] == ["python", "blas"]


def test_what_was_made_ready_is_put_away_after_a_failure(clock):
    ended = []

    @contextmanager
    def prepare(*_):
        try:
            yield FakeTimed(clock, MILLISECOND, correctness=WRONG)
        finally:
            ended.append(True)

    measure_repeat(task(), find=fake_device(prepare))
    assert ended == [True]


def test_a_kind_that_the_device_does_not_have_is_unsupported():
    which = benchmark({"kind": "launch_latency", "method": "graph", "launches": 10}, "seconds")
    result = measure_repeat(task(which), find=load_device)
    assert result.status == "unsupported"
    assert result.failure.detail == "launch_latency is not measured on cpu"


def test_a_device_whose_libraries_are_missing_is_unsupported(monkeypatch):
    monkeypatch.setitem(sys.modules, "service.worker.cuda", None)
    result = measure_repeat(task(device="cuda", accelerator_index=0))
    assert (result.status, result.failure.reason) == ("unsupported", "UNSUPPORTED")


def test_another_kind_of_device_is_one_more_package_of_the_worker(monkeypatch, clock):
    """It brings preparers, telemetry and the loss of its devices; nothing that measures knows its name."""
    timed, lost = FakeTimed(clock, MILLISECOND), []
    package = types.ModuleType("service.worker.rocm")
    watched = FakeWatch()
    package.load_device = lambda: MeasuredDevice(
        {"gemm": prepared(timed), "stream": failing(RuntimeError("hipErrorNoDevice"))},
        lambda _: watched,
        is_lost=lambda index: lost.append(index) or True,
    )
    monkeypatch.setitem(sys.modules, package.__name__, package)
    result = measure_repeat(task(), find=lambda _: load_device("rocm"))
    assert (result.status, result.measurement.library) == ("ok", "fake 1.0")
    assert result.measurement.telemetry == watched.telemetry
    which = benchmark({"kind": "stream", "pattern": "copy", "array_bytes": 1024}, "bytes_per_second")
    failed = measure_repeat(task(which, accelerator_index=3), find=lambda _: load_device("rocm"))
    assert (failed.status, failed.failure.reason, lost) == ("failed", "DEVICE_LOST", [3])
    with pytest.raises(Unsupported, match=r"the benchmarks of neuron cannot be loaded: No module named"):
        load_device("neuron")


def test_variables_that_matter_are_recorded_and_no_others(monkeypatch, clock):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("IRONLAW_TOKEN", "secret")
    result = measured(FakeTimed(clock, MILLISECOND))
    assert result.environment["openblas_num_threads"] == "1"
    assert b"secret" not in result.to_json()


def test_a_device_that_never_came_to_rest_is_a_gap(clock):
    """Each time it takes a thousandth longer, so five seconds later a hundredth and more."""
    slower = [int(MILLISECOND * 100 * 1.001**step) for step in range(400)]
    which = benchmark(most_warmup_seconds=20.0)
    record = measured(FakeTimed(clock, *slower), which)
    (gap,) = [gap for gap in record.gaps if gap.pointer == "/measurement/warmup_seconds"]
    assert (gap.code, gap.detail) == ("no-rest", "rate or temperature still changed after 20 s")
    assert record.measurement.warmup_seconds >= 20
    steady = measured(FakeTimed(clock, 100 * MILLISECOND), which)
    assert steady.measurement.warmup_seconds == pytest.approx(10, abs=0.5)
    assert steady.gaps == []


def test_the_temperature_that_is_asked_is_that_of_the_device_measured(clock):
    asked = []

    @contextmanager
    def thermometer(index):
        readings = iter([40, 50, 60, 60])
        yield lambda: asked.append(index) or next(readings)

    def find(_):
        return fake_device(prepared(FakeTimed(clock, 100 * MILLISECOND)))(_)._replace(thermometer=thermometer)

    which = benchmark(most_warmup_seconds=60.0)
    record = measure_repeat(task(which, device="cuda", accelerator_index=3), find=find)
    assert record.measurement.warmup_seconds == pytest.approx(20, abs=0.5)
    assert asked == [3] * 4
