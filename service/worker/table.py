"""The table at the terminal: what runs, how far it is, what was measured, and what somebody has to do."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from service.worker.board import Board, Line, View
from service.worker.redaction import redact

_STYLES = {"waiting": "dim", "running": "bold", "done": "green", "failed": "red", "skipped": "yellow"}
_REFRESHES_PER_SECOND = 2.0
"""Drawing takes time from what is measured on the processor."""


def render(view: View) -> RenderableType:
    """Everything that is known, as one picture."""
    parts: list[RenderableType] = []
    if view.node:
        parts.append(Text(f"node {view.node}, {view.activity}; {view.service}"))
    if view.spool:
        parts.append(Text(f"results: {view.spool}", style="dim"))
    if view.lines:
        parts += ["", _title(view), _table(view)]
    if view.notice:
        parts += ["", Text(view.notice, style="bold red")]
    return Group(*parts)


def _title(view: View) -> Text:
    ended = sum(line.ended for line in view.lines)
    repeats = sum(line.repeats for line in view.lines)
    seconds = time.monotonic() - view.began_at
    return Text(f"{view.suite}, {ended} of {repeats} repeats, {seconds:.0f} s", style="italic")


def _table(view: View) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("benchmark", no_wrap=True)
    table.add_column("repeats", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("figure")
    for line in view.lines:
        table.add_row(*_row(line), style=_STYLES[line.state])
    return table


def _row(line: Line) -> tuple[str, str, str, str]:
    return line.name, f"{line.ended}/{line.repeats}", line.state, line.text


class Log(logging.Handler):
    """Writes what happens, a line each, above the table where there is one; never a credential."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        self._console.print(Text(redact(self.format(record))), soft_wrap=True)


class _Picture:
    """What rich asks for at every refresh."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich__(self) -> RenderableType:
        return render(self._board.view)


@contextmanager
def shown(board: Board, console: Console) -> Iterator[None]:
    """Show a board for as long as something runs, if somebody looks."""
    if not console.is_terminal:
        yield
        return
    with Live(_Picture(board), console=console, refresh_per_second=_REFRESHES_PER_SECOND, transient=True):
        yield
