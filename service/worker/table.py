"""Table at the terminal: running benchmarks, progress, figures, and actions for the operator."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from service.worker.redaction import redact_credentials
from service.worker.status import StatusLine, StatusView, WorkerStatus

_STYLES = {"waiting": "dim", "running": "bold", "done": "green", "failed": "red", "skipped": "yellow"}
_REFRESHES_PER_SECOND = 2.0
"""Kept low, because drawing takes time from measurements on the processor."""


def render_view(view: StatusView) -> RenderableType:
    """Renders all values as one view."""
    parts: list[RenderableType] = []
    if view.node:
        parts.append(Text(f"node {view.node}, {view.activity}; {view.service}"))
    if view.spool:
        parts.append(Text(f"results: {view.spool}", style="dim"))
    if view.lines:
        parts += ["", _build_title(view), _build_table(view)]
    if view.notice:
        parts += ["", Text(view.notice, style="bold red")]
    return Group(*parts)


def _build_title(view: StatusView) -> Text:
    ended = sum(line.ended for line in view.lines)
    repeats = sum(line.repeats for line in view.lines)
    seconds = time.monotonic() - view.began_at
    return Text(f"{view.suite}, {ended} of {repeats} repeats, {seconds:.0f} s", style="italic")


def _build_table(view: StatusView) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("benchmark", no_wrap=True)
    table.add_column("repeats", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("figure")
    for line in view.lines:
        table.add_row(*_build_row(line), style=_STYLES[line.state])
    return table


def _build_row(line: StatusLine) -> tuple[str, str, str, str]:
    return line.name, f"{line.ended}/{line.repeats}", line.state, line.text


class TableLogHandler(logging.Handler):
    """Writes log records as a line each, above the table if there is one, without credentials."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        self._console.print(Text(redact_credentials(self.format(record))), soft_wrap=True)


class _LiveTable:
    """View that rich requests at every refresh."""

    def __init__(self, board: WorkerStatus) -> None:
        self._board = board

    def __rich__(self) -> RenderableType:
        return render_view(self._board.view)


@contextmanager
def show_progress(board: WorkerStatus, console: Console) -> Iterator[None]:
    """Shows the state during the block, if standard output is a terminal."""
    if not console.is_terminal:
        yield
        return
    with Live(_LiveTable(board), console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True):
        yield
