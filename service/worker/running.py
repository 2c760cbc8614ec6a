"""Execution of a suite: a child process for each repeat, or one for each device at the same time.

The agent and ``ironlaw worker measure`` share it, so that both measure in the same way.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import MISSING, ValidationError

from service import __version__
from service.protocol.nodes import DeviceKind, NodeInventory
from service.protocol.results import MOST_RESULT_BYTES, BenchmarkResultReport, MeasurementFailure
from service.protocol.suites import Benchmark, BenchmarkSuite
from service.worker.errors import WorkerError
from service.worker.ids import generate_uuid7
from service.worker.interrupt import InterruptSignal
from service.worker.measure import DEVICE_LOST
from service.worker.process import ChildProcesses, EndedProcess
from service.worker.rendezvous import RendezvousHost, open_meeting
from service.worker.status import WorkerStatus
from service.worker.task import RepeatTask

INVENTORY_SECONDS = 60.0
_MOST_INVENTORY_BYTES = 2**20
_SAME = (
    "suite_id", "suite_version", "run_id", "fencing_token", "attempt", "nonce", "node_id",
    "boot_id_sha256", "inventory_sha256", "seed", "repeat", "device",
    "accelerator_index", "concurrent_accelerators",
)  # fmt: skip
"""Members in which a record must agree with its task."""
_GIVES_UP = frozenset({"timeout", "unsupported"})
"""Outcomes after which further repeats of the benchmark would end in the same way."""
STUCK = "a killed process still hangs in its driver; nothing can be measured beside it"
LOST_DEVICE = "the driver has lost the accelerator; nothing can be measured until it is reset"
_logger = logging.getLogger(__name__)

StoreResult = Callable[[BenchmarkResultReport], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """A suite to run, and everything that its records have to name."""

    run_id: str
    suite: BenchmarkSuite
    seed: int
    fencing_token: int
    attempt: int
    nonce: str
    node_id: str
    boot_id_sha256: str
    inventory_sha256: str
    accelerator_index: int | None = None
    accelerators: tuple[int, ...] = ()
    """All accelerators of the host, for benchmarks that they run at once."""
    clock_offset_seconds: float | None = None

    def list_indices(self, benchmark: Benchmark) -> tuple[int | None, ...]:
        """Returns the accelerators that measure a benchmark at once; None stands for the processor."""
        return self.accelerators if benchmark.concurrent and self.accelerators else (self.accelerator_index,)

    def build_task(self, benchmark: Benchmark, repeat: int, index: int | None) -> RepeatTask:
        """Builds the task of a child process."""
        optional: dict[str, Any] = {}
        if index is not None:
            together = len(self.list_indices(benchmark))
            optional |= {"accelerator_index": index, "concurrent_accelerators": together}
        if self.clock_offset_seconds is not None:
            optional["clock_offset_seconds"] = self.clock_offset_seconds
        return RepeatTask(
            benchmark=benchmark,
            suite_id=self.suite.id,
            suite_version=self.suite.version,
            run_id=self.run_id,
            fencing_token=self.fencing_token,
            attempt=self.attempt,
            nonce=self.nonce,
            node_id=self.node_id,
            boot_id_sha256=self.boot_id_sha256,
            inventory_sha256=self.inventory_sha256,
            seed=self.seed,
            repeat=repeat,
            device=self.suite.device,
            worker_version=__version__,
            **optional,
        )


def run_suite(
    run: SuiteRun,
    children: ChildProcesses,
    interrupt: InterruptSignal,
    board: WorkerStatus,
    keep: StoreResult,
) -> int:
    """Runs all benchmarks, and returns the number of records with a measurement.

    Args:
        run: Suite to run.
        children: Starts the processes.
        interrupt: Ends the run, at once or before its next repeat.
        board: Receives the progress of every step.
        keep: Receives each record once it is finished.

    Raises:
        Interrupted: There is a reason to end; the measuring process has been killed.
        WorkerError: A process could not even be killed, and may hold the device, or the device is lost.
    """
    board.start_suite(run.suite, run.attempt)
    measured = 0
    for benchmark in run.suite.benchmarks:
        for results, is_last in _run_repeats(run, benchmark, children, interrupt, board):
            for result in results:
                keep(result)
                measured += result.status == "ok"
            board.record_repeat(select_slowest(results), is_last=is_last)
            if any(_tells_of_lost_device(result) for result in results):
                raise WorkerError(LOST_DEVICE)
    return measured


def _tells_of_lost_device(result: BenchmarkResultReport) -> bool:
    return result.failure is not MISSING and result.failure.reason == DEVICE_LOST


def _run_repeats(
    run: SuiteRun,
    benchmark: Benchmark,
    children: ChildProcesses,
    interrupt: InterruptSignal,
    board: WorkerStatus,
) -> Iterator[tuple[list[BenchmarkResultReport], bool]]:
    size = benchmark
    for repeat in range(1, benchmark.repeats + 1):
        interrupt.check()
        if children.is_stuck:
            raise WorkerError(STUCK)
        board.start_repeat(benchmark.name)
        tasks = [run.build_task(size, repeat, index) for index in run.list_indices(benchmark)]
        results = run_tasks(tasks, children, interrupt)
        # What had no room for the first repeat is not tried again for the next.
        size = results[0].benchmark
        status = select_slowest(results).status
        is_last = repeat == benchmark.repeats or status in _GIVES_UP
        _logger.info("%s, repeat %d of %d: %s", benchmark.name, repeat, benchmark.repeats, status)
        yield results, is_last
        if is_last:
            return


def select_slowest(results: Sequence[BenchmarkResultReport]) -> BenchmarkResultReport:
    """Returns the worst of simultaneous results: one without a figure, else by the figure."""
    figures: list[float] = []
    for result in results:
        measured = result.measurement
        if measured is MISSING:
            return result
        figures.append(
            result.benchmark.compute_figure(measured.values, inner_iterations=measured.inner_iterations)
        )
    worst = min(figures) if results[0].benchmark.direction == "higher" else max(figures)
    return results[figures.index(worst)]


def run_tasks(
    tasks: Sequence[RepeatTask], children: ChildProcesses, interrupt: InterruptSignal
) -> list[BenchmarkResultReport]:
    """Returns the records of one repeat on some accelerators, whose processes sample together.

    Raises:
        Interrupted: There is a reason to end; every process has been killed.
    """
    if len(tasks) == 1:
        return [run_task(tasks[0], children, interrupt)]
    with open_meeting(len(tasks)) as place, ThreadPoolExecutor(len(tasks)) as pool:

        def run_one(number: int) -> BenchmarkResultReport:
            try:
                return run_task(tasks[number], children, interrupt, place, number)
            finally:
                place.mark_ended(number)

        return list(pool.map(run_one, range(len(tasks))))


def run_task(
    task: RepeatTask,
    children: ChildProcesses,
    interrupt: InterruptSignal,
    place: RendezvousHost | None = None,
    number: int = 0,
) -> BenchmarkResultReport:
    """Returns the record of one repeat, from a process of its own; a failure is a record too.

    Args:
        task: Repeat to measure.
        children: Starts the process.
        interrupt: Kills it.
        place: Rendezvous with the processes that measure beside it.
        number: Place of the process there, counted from 0.

    Raises:
        Interrupted: It was killed because of an interruption.
    """
    begun = _RepeatStart.read_clocks()
    try:
        ended = children.run(
            ["measure"] if place is None else ["measure", place.format_address(number)],
            task.model_dump_json().encode(),
            interrupt,
            seconds=task.benchmark.timeout_seconds,
            most_bytes=MOST_RESULT_BYTES,
            kept_open=() if place is None else (place.descriptor,),
        )
    except OSError as error:
        failure = MeasurementFailure(reason="PROCESS_NOT_STARTED", detail=error.strerror or "")
        return _build_failed_result(task, begun, "failed", failure)
    try:
        result = BenchmarkResultReport.model_validate_json(ended.output)
    except ValidationError:
        status, failure = _explain_failure(task, ended)
        return _build_failed_result(task, begun, status, failure)
    is_asked = result.benchmark in task.benchmark.list_sizes()
    if not is_asked or any(getattr(result, name) != getattr(task, name) for name in _SAME):
        return _build_failed_result(task, begun, "failed", MeasurementFailure(reason="WRONG_RECORD"))
    if result.failure is not MISSING and result.failure.error_output is MISSING and ended.error_output:
        said = result.failure.model_copy(update={"error_output": ended.error_output})
        result = result.model_copy(update={"failure": said})
    return result


def _explain_failure(
    task: RepeatTask, ended: EndedProcess
) -> tuple[Literal["failed", "timeout"], MeasurementFailure]:
    """Explains why a process left no record."""
    said: dict[str, Any] = {"error_output": ended.error_output} if ended.error_output else {}
    if ended.exit_code is not None:
        said["exit_code"] = ended.exit_code
    if ended.is_too_long:
        return "failed", MeasurementFailure(reason="RECORD_TOO_LARGE", **said)
    if ended.is_timeout:
        gone = "killed" if ended.exit_code is not None else "it cannot be killed: the driver holds it"
        detail = f"after {task.benchmark.timeout_seconds:g} s: {gone}"
        return "timeout", MeasurementFailure(reason="TIMEOUT", detail=detail, **said)
    return "failed", MeasurementFailure(reason="PROCESS_DIED", **said)


@dataclass(frozen=True, slots=True)
class _RepeatStart:
    """Start of a repeat, by both clocks."""

    at: datetime
    monotonic_seconds: float

    @classmethod
    def read_clocks(cls) -> "_RepeatStart":
        return cls(datetime.now(UTC), time.monotonic())


def _build_failed_result(
    task: RepeatTask, begun: _RepeatStart, status: Literal["failed", "timeout"], failure: MeasurementFailure
) -> BenchmarkResultReport:
    ended = _RepeatStart.read_clocks()
    told = task.model_dump(exclude={"benchmark"}) | {"benchmark": task.benchmark}
    return BenchmarkResultReport(
        result_id=generate_uuid7(),
        started_at=begun.at,
        finished_at=ended.at,
        started_monotonic_seconds=begun.monotonic_seconds,
        finished_monotonic_seconds=ended.monotonic_seconds,
        status=status,
        failure=failure,
        **told,
    )


def request_inventory(
    device: DeviceKind, children: ChildProcesses, interrupt: InterruptSignal
) -> NodeInventory:
    """Returns the inventory of this host, from a process of its own, because a driver may hang.

    Raises:
        WorkerError: It cannot be determined; the message contains the end of the process's output.
    """
    ended = children.run(
        ["inventory", device], b"", interrupt, seconds=INVENTORY_SECONDS, most_bytes=_MOST_INVENTORY_BYTES
    )
    try:
        return NodeInventory.model_validate_json(ended.output)
    except ValidationError:
        said = ended.error_output.strip().splitlines()
        why = (
            "it took too long" if ended.is_timeout else said[-1] if said else f"exit status {ended.exit_code}"
        )
        raise WorkerError(f"the devices of this host cannot be listed: {why}") from None


def resolve_accelerator_index(listed: NodeInventory, chosen: int) -> int | None:
    """Returns the index to measure; None on a host without accelerators.

    Raises:
        WorkerError: There are others, but not this one.
    """
    if not listed.accelerators:
        return None
    if all(accelerator.index != chosen for accelerator in listed.accelerators):
        raise WorkerError(f"there is no accelerator {chosen} on this host")
    return chosen


def read_suite(text: str) -> BenchmarkSuite:
    """Reads a suite from a user's file.

    Raises:
        WorkerError: The file contains no suite.
    """
    try:
        return BenchmarkSuite.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise WorkerError(f"the file contains no suite: {str(error).splitlines()[0]}") from None
