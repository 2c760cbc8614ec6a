"""One repeat of one benchmark: prepared, warmed up, sampled, checked, and recorded."""

import importlib
import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import MISSING

from service.protocol.nodes import DeviceKind, NodeGap, NodeSoftware
from service.protocol.results import (
    BenchmarkMeasurement,
    BenchmarkResultReport,
    DeviceTelemetry,
    DiscardedSamples,
    MeasurementFailure,
)
from service.protocol.suites import Benchmark, BenchmarkSampling
from service.worker.benchmark import (
    BenchmarkPreparer,
    MeasurementFacts,
    ReadBenchmark,
    ReportedBenchmark,
    TimedBenchmark,
    Unsupported,
)
from service.worker.ids import generate_uuid7
from service.worker.redaction import extract_last_lines, to_one_line
from service.worker.rendezvous import RendezvousClient, RendezvousFailed, wait_idle
from service.worker.sampling import (
    TemperatureReader,
    Warmup,
    WorkTooShort,
    resolution_ns,
    take_samples,
    warm_up,
)
from service.worker.sizing import prepare_largest
from service.worker.task import RepeatTask

ENVIRONMENT = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OPENBLAS_CORETYPE",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MODULE_LOADING",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
    "CUFILE_ALLOW_COMPAT_MODE",
    "CUFILE_FORCE_COMPAT_MODE",
    "CUFILE_USE_PCIP2PDMA",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
)
"""Variables that affect the measurement; a record contains no others."""
LONGEST_OUTPUT = 4000
DEVICE_LOST = "DEVICE_LOST"
"""Reason of a failure after which the driver no longer reaches the device."""

T = TypeVar("T")


class MeasurementWindow(Protocol):
    """Readings of a device over the timed window, available once it has ended."""

    telemetry: DeviceTelemetry
    gaps: list[NodeGap]


DeviceWatch = Callable[[int | None], AbstractContextManager[MeasurementWindow]]


@contextmanager
def no_thermometer(_index: int | None) -> Iterator[TemperatureReader]:
    """Yields a reader for a device whose temperature is not read."""
    yield lambda: None


def never_lost(_index: int | None) -> bool:
    """Returns false for a device that cannot be lost while its host runs."""
    return False


class MeasuredDevice(NamedTuple):
    """Benchmarks of a kind of device, its telemetry, and the temperature that ends its warm-up."""

    prepare: dict[str, BenchmarkPreparer]
    watch: DeviceWatch
    thermometer: Callable[[int | None], AbstractContextManager[TemperatureReader]] = no_thermometer
    is_lost: Callable[[int | None], bool] = never_lost
    """Tells after a failure whether the device itself is gone."""


class WrongResult(Exception):
    """The result differs from the one that the seed determines."""


_REASONS: dict[type[Exception], str] = {
    Unsupported: "UNSUPPORTED",
    WrongResult: "WRONG_RESULT",
    WorkTooShort: "TOO_SHORT",
    RendezvousFailed: "NOT_TOGETHER",
    MemoryError: "OUT_OF_MEMORY",
}


def load_device(kind: DeviceKind) -> MeasuredDevice:
    """Returns what the package of a kind of device brings.

    Raises :class:`Unsupported` if there is none or its libraries are not installed.
    """
    try:
        device: MeasuredDevice = importlib.import_module(f"service.worker.{kind}").load_device()
    except ImportError as error:
        raise Unsupported(f"the benchmarks of {kind} cannot be loaded: {error}") from error
    return device


def measure_repeat(
    task: RepeatTask,
    *,
    find: Callable[[DeviceKind], MeasuredDevice] = load_device,
    together: RendezvousClient | None = None,
) -> BenchmarkResultReport:
    """Measures a task and returns its record, whatever happens.

    The record contains raw samples in nanoseconds or readings in the unit of the metric. Without a correct
    measurement it contains a failure with a reason and no figure: UNSUPPORTED, WRONG_RESULT, TOO_SHORT,
    NOT_TOGETHER, OUT_OF_MEMORY, DEVICE_LOST or BENCHMARK_ERROR.

    Args:
        task: Repeat to measure.
        find: Returns the benchmarks of a kind of device.
        together: Rendezvous with the processes that measure the same at the same time.
    """
    started_at, started = datetime.now(UTC), time.monotonic()
    notes = _RecordNotes(task.benchmark)
    measurement: BenchmarkMeasurement | None = None
    failure: MeasurementFailure | None = None
    status: Literal["ok", "failed", "unsupported"] = "ok"
    device: MeasuredDevice | None = None
    try:
        device = find(task.device)
        measurement = _run_benchmark(task, device, notes, together)
    except Exception as error:  # noqa: BLE001  # whatever it was, the record says so
        is_lost = device is not None and device.is_lost(_get_index(task))
        status = "unsupported" if isinstance(error, Unsupported) and not is_lost else "failed"
        failure = _build_failure(error, is_lost=is_lost)
    return BenchmarkResultReport(
        **{**dict(task), "benchmark": notes.benchmark},
        result_id=generate_uuid7(),
        started_at=started_at,
        finished_at=datetime.now(UTC),
        started_monotonic_seconds=started,
        finished_monotonic_seconds=time.monotonic(),
        status=status,
        measurement=_or_missing(measurement),
        failure=_or_missing(failure),
        software=[NodeSoftware(name="python", version=platform.python_version()), *notes.software],
        environment=_read_environment(),
        gaps=notes.gaps,
    )


@dataclass(slots=True)
class _RecordNotes:
    """Members of a record besides the measurement, also recorded after a failure."""

    benchmark: Benchmark
    """Benchmark as it was measured: that of the task, or a smaller size of it."""
    software: list[NodeSoftware] = field(default_factory=list)
    gaps: list[NodeGap] = field(default_factory=list)


def _run_benchmark(
    task: RepeatTask, device: MeasuredDevice, notes: _RecordNotes, together: RendezvousClient | None
) -> BenchmarkMeasurement:
    kind = task.benchmark.work.kind
    if kind not in device.prepare:
        raise Unsupported(f"{kind} is not measured on {task.device}")
    index = _get_index(task)
    # Devices that measure together measure the same.
    sizes = [task.benchmark] if together is not None else task.benchmark.list_sizes()
    with prepare_largest(device.prepare[kind], sizes, task.seed, index) as (size, prepared, gaps):
        notes.benchmark = size
        notes.gaps += gaps
        notes.software += prepared.facts.software
        notes.gaps += prepared.facts.gaps
        if isinstance(prepared, TimedBenchmark):
            with device.thermometer(index) as temperature:
                warm = _run_warmup(prepared, task.benchmark.sampling, notes, temperature)
            rule, watch = task.benchmark.sampling, device.watch(index)
            return _measure_timed(prepared, rule, watch, notes, together=together, warm=warm)
        if together is not None:
            together.wait_until_ready(wait_idle)
        if isinstance(prepared, ReportedBenchmark):
            return _measure_reported(prepared, device.watch(index), notes)
        return _measure_read(prepared, device.watch(index), notes)


def _run_warmup(
    timed: TimedBenchmark, sampling: BenchmarkSampling, notes: _RecordNotes, temperature: TemperatureReader
) -> Warmup:
    timer_ns = resolution_ns(timed.facts.timer)
    warm = warm_up(timed, sampling, timer_ns=timer_ns, temperature=temperature)
    if not warm.rests:
        detail = f"rate or temperature still changed after {warm.seconds:.0f} s"
        notes.gaps.append(NodeGap(pointer="/measurement/warmup_seconds", code="no-rest", detail=detail))
    return warm


def _measure_timed(
    timed: TimedBenchmark,
    sampling: BenchmarkSampling,
    watch: AbstractContextManager[MeasurementWindow],
    notes: _RecordNotes,
    *,
    together: RendezvousClient | None,
    warm: Warmup,
) -> BenchmarkMeasurement:
    def execute_sample() -> int:
        return timed.execute(warm.inner_iterations)

    if together is not None:
        together.wait_until_ready(execute_sample)
    with watch as window:
        samples = take_samples(timed, sampling, warm.inner_iterations)
    if together is not None:
        together.wait_until_sampled(execute_sample, 2 * sampling.most_seconds)
    notes.gaps += window.gaps
    correctness = timed.check()
    if correctness and not correctness.passed:
        raise WrongResult(
            f"{correctness.method}: {correctness.largest_error:.3g} off, {correctness.tolerance:.3g} allowed"
        )
    return BenchmarkMeasurement(
        **_select_facts(timed.facts),
        warmup_seconds=warm.seconds,
        warmup_iterations=warm.iterations,
        first_call_seconds=warm.first_call_seconds,
        inner_iterations=warm.inner_iterations,
        samples_ns=samples.samples_ns,
        discarded=[
            DiscardedSamples(reason=reason, count=count) for reason, count in samples.discarded.items()
        ],
        stop_reason=samples.stop_reason,
        correctness=_or_missing(correctness),
        telemetry=window.telemetry,
    )


def _measure_reported(
    reported: ReportedBenchmark, watch: AbstractContextManager[MeasurementWindow], notes: _RecordNotes
) -> BenchmarkMeasurement:
    with watch as window:
        times = reported.times_ns()
    notes.gaps += window.gaps
    notes.software += [one for one in reported.facts.software if one not in notes.software]
    return BenchmarkMeasurement(
        **_select_facts(reported.facts),
        warmup_seconds=0.0,
        warmup_iterations=0,
        samples_ns=times,
        stop_reason="single",
        telemetry=window.telemetry,
    )


def _measure_read(
    read: ReadBenchmark, watch: AbstractContextManager[MeasurementWindow], notes: _RecordNotes
) -> BenchmarkMeasurement:
    with watch as window:
        readings = read.read()
    notes.gaps += window.gaps
    return BenchmarkMeasurement(
        **_select_facts(read.facts),
        warmup_seconds=0.0,
        warmup_iterations=0,
        readings=readings,
        stop_reason="single",
        telemetry=window.telemetry,
    )


def _select_facts(facts: MeasurementFacts) -> dict[str, Any]:
    """Returns the facts that a measurement has under the same name; None is left out."""
    names = MeasurementFacts.__dataclass_fields__.keys() & BenchmarkMeasurement.model_fields.keys()
    return {name: getattr(facts, name) for name in names if getattr(facts, name) is not None}


def _get_index(task: RepeatTask) -> int | None:
    return None if task.accelerator_index is MISSING else task.accelerator_index


def _build_failure(error: Exception, *, is_lost: bool) -> MeasurementFailure:
    if is_lost:
        return MeasurementFailure(reason=DEVICE_LOST, detail=to_one_line(str(error)))
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return MeasurementFailure(reason=reason, detail=to_one_line(str(error)))
    return MeasurementFailure(
        reason="BENCHMARK_ERROR",
        detail=to_one_line(f"{type(error).__name__}: {error}"),
        error_output=extract_last_lines("".join(traceback.format_exception(error)).encode(), LONGEST_OUTPUT),
    )


def _read_environment() -> dict[str, str]:
    return {name.lower(): to_one_line(os.environ[name]) for name in ENVIRONMENT if name in os.environ}


def _or_missing(value: T | None) -> T | MISSING:
    return MISSING if value is None else value
