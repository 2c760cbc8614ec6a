"""Runs a suite: a child process for each repeat of each benchmark, or one for each device at the same time.

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
from service.protocol.nodes import DeviceKind, Inventory
from service.protocol.results import MOST_RESULT_BYTES, Failure, Result
from service.protocol.suites import Benchmark, Suite
from service.worker.board import Board
from service.worker.errors import WorkerError
from service.worker.ids import uuid7
from service.worker.interrupt import Interrupt
from service.worker.process import Children, Ended
from service.worker.rendezvous import Meeting, meeting
from service.worker.task import Task

INVENTORY_SECONDS = 60.0
_MOST_INVENTORY_BYTES = 2**20
_SAME = (
    "benchmark", "suite_id", "suite_version", "run_id", "fencing_token", "attempt", "nonce", "node_id",
    "boot_id_sha256", "inventory_sha256", "seed", "repeat", "device",
    "accelerator_index", "concurrent_accelerators",
)  # fmt: skip
"""What a record has to name as its task does."""
_GIVES_UP = frozenset({"timeout", "unsupported"})
"""After which further repeats of the benchmark would only end in the same way."""
STUCK = "a process that was killed still hangs in its driver: nothing is measured beside it"
_logger = logging.getLogger(__name__)

Keep = Callable[[Result], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be run, and everything that its records have to name."""

    run_id: str
    suite: Suite
    seed: int
    fencing_token: int
    attempt: int
    nonce: str
    node_id: str
    boot_id_sha256: str
    inventory_sha256: str
    accelerator_index: int | None = None
    accelerators: tuple[int, ...] = ()
    """All of the host, for what they measure at once."""
    clock_offset_seconds: float | None = None

    def indices(self, benchmark: Benchmark) -> tuple[int | None, ...]:
        """The accelerators that measure a benchmark at the same time; None stands for the processor."""
        return self.accelerators if benchmark.concurrent and self.accelerators else (self.accelerator_index,)

    def task(self, benchmark: Benchmark, repeat: int, index: int | None) -> Task:
        """What a child process is told."""
        optional: dict[str, Any] = {}
        if index is not None:
            together = len(self.indices(benchmark))
            optional |= {"accelerator_index": index, "concurrent_accelerators": together}
        if self.clock_offset_seconds is not None:
            optional["clock_offset_seconds"] = self.clock_offset_seconds
        return Task(
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


def run_suite(run: Run, children: Children, interrupt: Interrupt, board: Board, keep: Keep) -> int:
    """Measure everything; how many records hold a measurement.

    Args:
        run: what to run.
        children: who starts processes.
        interrupt: ends the run, at once or before its next repeat.
        board: told of every step.
        keep: takes each record once it is there.

    Raises:
        Interrupted: there is a reason to end; a process that measured has been killed.
        WorkerError: one could not even be killed, and may hold the device.
    """
    board.begin(run.suite, run.attempt)
    measured = 0
    for benchmark in run.suite.benchmarks:
        for results, is_last in _repeats(run, benchmark, children, interrupt, board):
            for result in results:
                keep(result)
                measured += result.status == "ok"
            board.ended(slowest(results), is_last=is_last)
    return measured


def _repeats(
    run: Run, benchmark: Benchmark, children: Children, interrupt: Interrupt, board: Board
) -> Iterator[tuple[list[Result], bool]]:
    for repeat in range(1, benchmark.repeats + 1):
        interrupt.check()
        if children.is_stuck:
            raise WorkerError(STUCK)
        board.running(benchmark.name)
        tasks = [run.task(benchmark, repeat, index) for index in run.indices(benchmark)]
        results = measured_together(tasks, children, interrupt)
        status = slowest(results).status
        is_last = repeat == benchmark.repeats or status in _GIVES_UP
        _logger.info("%s, repeat %d of %d: %s", benchmark.name, repeat, benchmark.repeats, status)
        yield results, is_last
        if is_last:
            return


def slowest(results: Sequence[Result]) -> Result:
    """Of what several accelerators measured at once the worst: one without a figure, else by the figure."""
    figures: list[float] = []
    for result in results:
        measured = result.measurement
        if measured is MISSING:
            return result
        figures.append(result.benchmark.figure(measured.values, inner_iterations=measured.inner_iterations))
    worst = min(figures) if results[0].benchmark.direction == "higher" else max(figures)
    return results[figures.index(worst)]


def measured_together(tasks: Sequence[Task], children: Children, interrupt: Interrupt) -> list[Result]:
    """The records of one repeat on some accelerators, whose processes wait for each other before they sample.

    Raises:
        Interrupted: there is a reason to end; every process has been killed.
    """
    if len(tasks) == 1:
        return [measured(tasks[0], children, interrupt)]
    with meeting(len(tasks)) as place, ThreadPoolExecutor(len(tasks)) as pool:

        def one(number: int) -> Result:
            try:
                return measured(tasks[number], children, interrupt, place, number)
            finally:
                place.left(number)

        return list(pool.map(one, range(len(tasks))))


def measured(
    task: Task, children: Children, interrupt: Interrupt, place: Meeting | None = None, number: int = 0
) -> Result:
    """The record of one repeat, from a process of its own; a failure is a record too.

    Args:
        task: what to measure.
        children: who starts the process.
        interrupt: kills it.
        place: where it meets those that measure beside it, as the one of this ``number``.
        number: counted from 0.

    Raises:
        Interrupted: it was killed because something says so.
    """
    begun = _Begun.now()
    try:
        ended = children.run(
            ["measure"] if place is None else ["measure", place.word(number)],
            task.model_dump_json().encode(),
            interrupt,
            seconds=task.benchmark.timeout_seconds,
            most_bytes=MOST_RESULT_BYTES,
            kept_open=() if place is None else (place.descriptor,),
        )
    except OSError as error:
        failure = Failure(reason="PROCESS_NOT_STARTED", detail=error.strerror or "")
        return _failed(task, begun, "failed", failure)
    try:
        result = Result.model_validate_json(ended.output)
    except ValidationError:
        status, failure = _why(task, ended)
        return _failed(task, begun, status, failure)
    if any(getattr(result, name) != getattr(task, name) for name in _SAME):
        return _failed(task, begun, "failed", Failure(reason="WRONG_RECORD"))
    if result.failure is not MISSING and result.failure.error_output is MISSING and ended.error_output:
        said = result.failure.model_copy(update={"error_output": ended.error_output})
        result = result.model_copy(update={"failure": said})
    return result


def _why(task: Task, ended: Ended) -> tuple[Literal["failed", "timeout"], Failure]:
    """Why a process left no record."""
    said: dict[str, Any] = {"error_output": ended.error_output} if ended.error_output else {}
    if ended.exit_code is not None:
        said["exit_code"] = ended.exit_code
    if ended.is_too_long:
        return "failed", Failure(reason="RECORD_TOO_LARGE", **said)
    if ended.is_timeout:
        gone = "killed" if ended.exit_code is not None else "it cannot be killed: the driver holds it"
        detail = f"after {task.benchmark.timeout_seconds:g} s: {gone}"
        return "timeout", Failure(reason="TIMEOUT", detail=detail, **said)
    return "failed", Failure(reason="PROCESS_DIED", **said)


@dataclass(frozen=True, slots=True)
class _Begun:
    """When a repeat began, by both clocks."""

    at: datetime
    monotonic_seconds: float

    @classmethod
    def now(cls) -> "_Begun":
        return cls(datetime.now(UTC), time.monotonic())


def _failed(task: Task, begun: _Begun, status: Literal["failed", "timeout"], failure: Failure) -> Result:
    ended = _Begun.now()
    told = task.model_dump(exclude={"benchmark"}) | {"benchmark": task.benchmark}
    return Result(
        result_id=uuid7(),
        started_at=begun.at,
        finished_at=ended.at,
        started_monotonic_seconds=begun.monotonic_seconds,
        finished_monotonic_seconds=ended.monotonic_seconds,
        status=status,
        failure=failure,
        **told,
    )


def inventory(device: DeviceKind, children: Children, interrupt: Interrupt) -> Inventory:
    """What this host is made of, from a process of its own: a driver may hang.

    Raises:
        WorkerError: it cannot be told; the message holds the end of what the process wrote.
    """
    ended = children.run(
        ["inventory", device], b"", interrupt, seconds=INVENTORY_SECONDS, most_bytes=_MOST_INVENTORY_BYTES
    )
    try:
        return Inventory.model_validate_json(ended.output)
    except ValidationError:
        said = ended.error_output.strip().splitlines()
        why = (
            "it took too long" if ended.is_timeout else said[-1] if said else f"exit status {ended.exit_code}"
        )
        raise WorkerError(f"the devices of this host cannot be listed: {why}") from None


def accelerator_index(listed: Inventory, chosen: int) -> int | None:
    """The index to measure; None on a host without accelerators.

    Raises:
        WorkerError: there are others, but not this one.
    """
    if not listed.accelerators:
        return None
    if all(accelerator.index != chosen for accelerator in listed.accelerators):
        raise WorkerError(f"there is no accelerator {chosen} on this host")
    return chosen


def read_suite(text: str) -> Suite:
    """A suite from a file of a user.

    Raises:
        WorkerError: it is none.
    """
    try:
        return Suite.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise WorkerError(f"the file holds no suite: {str(error).splitlines()[0]}") from None
