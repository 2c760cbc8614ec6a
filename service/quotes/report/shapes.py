"""What a report is made of: sections of figures, tables, charts and remarks."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.quotes.report.numbers import Figure

MOST_ROWS = 200
"""Most rows of a table."""

Cell = str | Markup


class Figures(NamedTuple):
    """Figures with their intervals and what they rest on."""

    caption: str
    rows: Sequence[Figure]
    kind: str = "figures"


class Table(NamedTuple):
    """Rows under a head; ``numbers`` says which columns are numbers, ``total`` is the last row."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: frozenset[int] = frozenset()
    total: Sequence[Cell] = ()
    is_folded: bool = False
    """Whether it is shown to those who ask for it only, and not printed: others say the same in short."""
    kind: str = "table"


class Picture(NamedTuple):
    """A chart and a table of the same figures."""

    caption: str
    chart: Markup
    table: Table
    note: str = ""
    kind: str = "picture"


class Remarks(NamedTuple):
    """Sentences, each by itself."""

    caption: str
    items: Sequence[str]
    kind: str = "remarks"


Block = Figures | Table | Picture | Remarks


class Section(NamedTuple):
    """A part of a report under a heading of its own."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block]


def shown_blocks(*blocks: Block | None) -> list[Block]:
    """Blocks that have something to show, none of more rows than a page has room for."""
    return [_shortened(block) for block in blocks if block is not None and _has_content(block)]


def _shortened(block: Block) -> Block:
    if isinstance(block, Picture):
        return block._replace(table=_cut(block.table))
    if isinstance(block, Table):
        return _cut(block)
    if isinstance(block, Remarks) and len(block.items) > MOST_ROWS:
        return block._replace(items=[*block.items[:MOST_ROWS], _more(len(block.items))])
    return block


def _cut(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    rest = (_more(len(table.rows)), *([""] * (len(table.head) - 1)))
    return table._replace(rows=[*table.rows[:MOST_ROWS], rest])


def _more(count: int) -> str:
    return f"and {count - MOST_ROWS:,} more in the JSON"


def _has_content(block: Block) -> bool:
    if isinstance(block, Picture):
        return True
    return bool(block.items if isinstance(block, Remarks) else block.rows)
