"""One repeat of one benchmark: made ready, warmed up, sampled, checked, and written down."""

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

from service.protocol.nodes import DeviceKind, Gap, Software
from service.protocol.results import Discarded, Failure, Measurement, Result, Telemetry
from service.protocol.suites import Sampling
from service.worker.benchmark import Facts, Prepare, Read, Reported, Timed, Unsupported
from service.worker.ids import uuid7
from service.worker.redaction import last_lines, one_line
from service.worker.rendezvous import NotTogether, Rendezvous, idle
from service.worker.sampling import Temperature, TooShort, Warmup, resolution_ns, take, warm_up
from service.worker.task import Task

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
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_SHM_DISABLE",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",
)
"""Variables that change what is measured; of all others a record says nothing."""
LONGEST_OUTPUT = 4000

T = TypeVar("T")


class Window(Protocol):
    """What was seen of a device over the timed window; there once it has ended."""

    telemetry: Telemetry
    gaps: list[Gap]


Watch = Callable[[int | None], AbstractContextManager[Window]]


@contextmanager
def no_thermometer(_index: int | None) -> Iterator[Temperature]:
    """Of a device whose temperature nobody reads."""
    yield lambda: None


class Device(NamedTuple):
    """What can be measured on a kind of device, what watches it meanwhile, and what it is warmed up by."""

    prepare: dict[str, Prepare]
    watch: Watch
    thermometer: Callable[[int | None], AbstractContextManager[Temperature]] = no_thermometer


class WrongResult(Exception):
    """What was computed is not what the seed demands."""


_REASONS: dict[type[Exception], str] = {
    Unsupported: "UNSUPPORTED",
    WrongResult: "WRONG_RESULT",
    TooShort: "TOO_SHORT",
    NotTogether: "NOT_TOGETHER",
    MemoryError: "OUT_OF_MEMORY",
}


def device(kind: DeviceKind) -> Device:
    """The benchmarks of a device; raises :class:`Unsupported` where its libraries are not installed."""
    try:
        benchmarks = importlib.import_module(f"service.worker.{kind}")
        watcher = importlib.import_module(f"service.worker.{'telemetry' if kind == 'cuda' else 'host'}")
    except ImportError as error:
        raise Unsupported(f"the benchmarks of {kind} cannot be loaded: {error}") from error
    return Device(
        benchmarks.PREPARE, watcher.watch, watcher.thermometer if kind == "cuda" else no_thermometer
    )


def measure(
    task: Task, *, find: Callable[[DeviceKind], Device] = device, together: Rendezvous | None = None
) -> Result:
    """Measures what the task says and returns its record, whatever happens.

    The record holds raw samples in nanoseconds or readings in the unit of the metric. Without a correct
    measurement it holds a failure with a reason and no figure: UNSUPPORTED, WRONG_RESULT, TOO_SHORT,
    NOT_TOGETHER, OUT_OF_MEMORY or BENCHMARK_ERROR.

    Args:
        task: what to measure.
        find: the benchmarks of a kind of device.
        together: the processes that measure the same at the same time.
    """
    started_at, started = datetime.now(UTC), time.monotonic()
    notes = _Notes()
    measurement: Measurement | None = None
    failure: Failure | None = None
    status: Literal["ok", "failed", "unsupported"] = "ok"
    try:
        measurement = _measured(task, find(task.device), notes, together)
    except Exception as error:  # noqa: BLE001  # whatever it was, the record says so
        status = "unsupported" if isinstance(error, Unsupported) else "failed"
        failure = _failure(error)
    return Result(
        **dict(task),
        result_id=uuid7(),
        started_at=started_at,
        finished_at=datetime.now(UTC),
        started_monotonic_seconds=started,
        finished_monotonic_seconds=time.monotonic(),
        status=status,
        measurement=_or_missing(measurement),
        failure=_or_missing(failure),
        software=[Software(name="python", version=platform.python_version()), *notes.software],
        environment=_environment(),
        gaps=notes.gaps,
    )


@dataclass(slots=True)
class _Notes:
    """What a record says beside the measurement, also of one that failed."""

    software: list[Software] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def _measured(task: Task, device: Device, notes: _Notes, together: Rendezvous | None) -> Measurement:
    kind = task.benchmark.work.kind
    if kind not in device.prepare:
        raise Unsupported(f"{kind} is not measured on {task.device}")
    index = None if task.accelerator_index is MISSING else task.accelerator_index
    with device.prepare[kind](task.benchmark, task.seed, index) as prepared:
        notes.software += prepared.facts.software
        notes.gaps += prepared.facts.gaps
        if isinstance(prepared, Timed):
            with device.thermometer(index) as temperature:
                warm = _warmed(prepared, task.benchmark.sampling, notes, temperature)
            rule, watch = task.benchmark.sampling, device.watch(index)
            return _sampled(prepared, rule, watch, notes, together=together, warm=warm)
        if together is not None:
            together.begin(idle)
        if isinstance(prepared, Reported):
            return _reported(prepared, device.watch(index), notes)
        return _read(prepared, device.watch(index), notes)


def _warmed(timed: Timed, sampling: Sampling, notes: _Notes, temperature: Temperature) -> Warmup:
    timer_ns = resolution_ns(timed.facts.timer)
    warm = warm_up(timed, sampling, timer_ns=timer_ns, temperature=temperature)
    if not warm.rests:
        detail = f"rate or temperature still changed after {warm.seconds:.0f} s"
        notes.gaps.append(Gap(pointer="/measurement/warmup_seconds", code="no-rest", detail=detail))
    return warm


def _sampled(
    timed: Timed,
    sampling: Sampling,
    watch: AbstractContextManager[Window],
    notes: _Notes,
    *,
    together: Rendezvous | None,
    warm: Warmup,
) -> Measurement:
    def load() -> int:
        return timed.execute(warm.inner_iterations)

    if together is not None:
        together.begin(load)
    with watch as window:
        samples = take(timed, sampling, warm.inner_iterations)
    if together is not None:
        together.end(load, 2 * sampling.most_seconds)
    notes.gaps += window.gaps
    correctness = timed.check()
    if correctness and not correctness.passed:
        raise WrongResult(
            f"{correctness.method}: {correctness.largest_error:.3g} off, {correctness.tolerance:.3g} allowed"
        )
    return Measurement(
        **_carried_out(timed.facts),
        warmup_seconds=warm.seconds,
        warmup_iterations=warm.iterations,
        first_call_seconds=warm.first_call_seconds,
        inner_iterations=warm.inner_iterations,
        samples_ns=samples.samples_ns,
        discarded=[Discarded(reason=reason, count=count) for reason, count in samples.discarded.items()],
        stop_reason=samples.stop_reason,
        correctness=_or_missing(correctness),
        telemetry=window.telemetry,
    )


def _reported(reported: Reported, watch: AbstractContextManager[Window], notes: _Notes) -> Measurement:
    with watch as window:
        times = reported.times_ns()
    notes.gaps += window.gaps
    notes.software += [one for one in reported.facts.software if one not in notes.software]
    return Measurement(
        **_carried_out(reported.facts),
        warmup_seconds=0.0,
        warmup_iterations=0,
        samples_ns=times,
        stop_reason="single",
        telemetry=window.telemetry,
    )


def _read(read: Read, watch: AbstractContextManager[Window], notes: _Notes) -> Measurement:
    with watch as window:
        readings = read.read()
    notes.gaps += window.gaps
    return Measurement(
        **_carried_out(read.facts),
        warmup_seconds=0.0,
        warmup_iterations=0,
        readings=readings,
        stop_reason="single",
        telemetry=window.telemetry,
    )


def _carried_out(facts: Facts) -> dict[str, Any]:
    """The facts that stand in a measurement under the same name; what is None is absent."""
    names = Facts.__dataclass_fields__.keys() & Measurement.model_fields.keys()
    return {name: getattr(facts, name) for name in names if getattr(facts, name) is not None}


def _failure(error: Exception) -> Failure:
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return Failure(reason=reason, detail=one_line(str(error)))
    return Failure(
        reason="BENCHMARK_ERROR",
        detail=one_line(f"{type(error).__name__}: {error}"),
        error_output=last_lines("".join(traceback.format_exception(error)).encode(), LONGEST_OUTPUT),
    )


def _environment() -> dict[str, str]:
    return {name.lower(): one_line(os.environ[name]) for name in ENVIRONMENT if name in os.environ}


def _or_missing(value: T | None) -> T | MISSING:
    return MISSING if value is None else value
