"""Elements of a report: sections of figures, tables, charts and remarks."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.locales import format_count
from service.kit.reports.numbers import FormattedFigure

MOST_ROWS = 200
"""Most rows of a table."""

TableCell = str | Markup


class FigureList(NamedTuple):
    """Figures with their intervals and basis."""

    caption: str
    rows: Sequence[FormattedFigure]
    kind: str = "figures"


class ReportTable(NamedTuple):
    """Rows under a head. ``numbers`` are the numeric columns, ``total`` is the last row."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    numbers: frozenset[int] = frozenset()
    total: Sequence[TableCell] = ()
    is_folded: bool = False
    """True if the table is collapsed and not printed, because other elements summarise it."""
    kind: str = "table"


class ReportChart(NamedTuple):
    """A chart and a table of the same figures."""

    caption: str
    chart: Markup
    table: ReportTable
    note: str = ""
    kind: str = "picture"


class ReportRemarks(NamedTuple):
    """A list of sentences."""

    caption: str
    items: Sequence[str]
    kind: str = "remarks"


ReportBlock = FigureList | ReportTable | ReportChart | ReportRemarks


class ReportSection(NamedTuple):
    """A part of a report under its own heading."""

    key: str
    title: str
    lead: str
    blocks: Sequence[ReportBlock]


def select_blocks(*blocks: ReportBlock | None) -> list[ReportBlock]:
    """Returns the blocks that have content, shortened to the most rows of a page."""
    return [_shorten_block(block) for block in blocks if block is not None and _has_content(block)]


def _shorten_block(block: ReportBlock) -> ReportBlock:
    if isinstance(block, ReportChart):
        return block._replace(table=_truncate_table(block.table))
    if isinstance(block, ReportTable):
        return _truncate_table(block)
    if isinstance(block, ReportRemarks) and len(block.items) > MOST_ROWS:
        return block._replace(items=[*block.items[:MOST_ROWS], _format_remainder(len(block.items))])
    return block


def _truncate_table(table: ReportTable) -> ReportTable:
    if len(table.rows) <= MOST_ROWS:
        return table
    rest = (_format_remainder(len(table.rows)), *([""] * (len(table.head) - 1)))
    return table._replace(rows=[*table.rows[:MOST_ROWS], rest])


def _format_remainder(count: int) -> str:
    return f"and {format_count(count - MOST_ROWS)} more in the JSON"


def _has_content(block: ReportBlock) -> bool:
    if isinstance(block, ReportChart):
        return True
    return bool(block.items if isinstance(block, ReportRemarks) else block.rows)
