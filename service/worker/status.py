"""Current state of a worker, for the terminal, for renewals and for heartbeats."""

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import MISSING

from service.protocol.leases import BenchmarkProgress, LeaseProgress
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import BenchmarkSuite
from service.worker.figures import format_figures

Activity = Literal["idle", "measuring", "draining"]


@dataclass(frozen=True, slots=True)
class StatusLine:
    """State of one benchmark of the running suite."""

    name: str
    metric: str
    repeats: int
    state: Literal["waiting", "running", "done", "failed", "skipped"] = "waiting"
    ended: int = 0
    figures: tuple[float, ...] = ()
    """Figure of each measured repeat, in the unit of the metric."""
    detail: str = ""

    @property
    def text(self) -> str:
        """The figure, or the reason why there is none."""
        return format_figures(self.figures, self.metric) if self.figures else self.detail


@dataclass(frozen=True, slots=True)
class StatusView:
    """Values that are displayed."""

    node: str = ""
    service: str = "not asked yet"
    activity: Activity = "idle"
    spool: str = ""
    suite: str = ""
    attempt: int = 0
    began_at: float = 0.0
    """Start on the monotonic clock."""
    lines: tuple[StatusLine, ...] = field(default=())
    notice: str = ""
    """Action that the operator has to take."""


class WorkerStatus:
    """State of the worker, written by all of its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._view = StatusView()

    @property
    def view(self) -> StatusView:
        """Returns the current values."""
        return self._view

    def update_status(self, **members: str) -> None:
        """Updates the texts on node, service, spool or required action."""
        with self._lock:
            self._view = replace(self._view, **members)  # type: ignore[arg-type]  # names of texts

    def set_activity(self, activity: Activity) -> None:
        """Sets the activity of the worker."""
        with self._lock:
            self._view = replace(self._view, activity=activity)

    def start_suite(self, suite: BenchmarkSuite, attempt: int) -> None:
        """Starts the display of a suite."""
        lines = tuple(
            StatusLine(benchmark.name, benchmark.metric, benchmark.repeats) for benchmark in suite.benchmarks
        )
        with self._lock:
            self._view = replace(
                self._view,
                suite=f"{suite.id} {suite.version}: {suite.title}",
                attempt=attempt,
                began_at=time.monotonic(),
                lines=lines,
            )

    def start_repeat(self, name: str) -> None:
        """Marks a benchmark as running its next repeat."""
        self._update_line(name, state="running")

    def record_repeat(self, result: BenchmarkResultReport, *, is_last: bool) -> None:
        """Records the end of a repeat."""
        (line,) = (line for line in self._view.lines if line.name == result.benchmark.name)
        figures, detail = line.figures, line.detail
        measurement, failure = result.measurement, result.failure
        if measurement is not MISSING:
            figure = result.benchmark.compute_figure(
                measurement.values, inner_iterations=measurement.inner_iterations
            )
            figures = (*figures, figure)
        elif failure is not MISSING:
            why = failure.reason.lower().replace("_", " ")
            detail = f"{why}: {failure.detail}" if failure.detail else why
        state = "running"
        if is_last:
            state = "done" if figures else "skipped" if result.status == "unsupported" else "failed"
        self._update_line(line.name, state=state, ended=line.ended + 1, figures=figures, detail=detail)

    def _update_line(self, name: str, **members: object) -> None:
        with self._lock:
            lines = tuple(
                replace(line, **members) if line.name == name else line  # type: ignore[arg-type]
                for line in self._view.lines
            )
            self._view = replace(self._view, lines=lines)

    @property
    def progress(self) -> LeaseProgress:
        """Returns the progress of the suite for the service."""
        return LeaseProgress(steps=[_build_step(line) for line in self._view.lines])


def _build_step(line: StatusLine) -> BenchmarkProgress:
    step = BenchmarkProgress(benchmark=line.name, state=line.state, repeat=line.ended)
    return step.model_copy(update={"detail": line.text[:500]}) if line.text else step
