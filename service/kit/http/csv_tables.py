"""Tables as CSV (RFC 4180) in which no spreadsheet evaluates a formula. Every export is written here."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

CsvCell = str | int | float | Decimal | datetime | None
"""Value of a cell. None is an empty cell."""

_SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula, with their full-width forms."""
_CONTROLS = ("\t", "\r", "\n")
"""Leading characters that some spreadsheets strip before they look for a formula."""


def neutralize_text(text: str) -> str:
    """Puts an apostrophe before a text that a spreadsheet would take for a formula.

    Source: OWASP, CSV injection. Spaces before a sign do not hide it.
    """
    is_computed = text.startswith(_CONTROLS) or text.lstrip().startswith(_SIGNS)
    return f"'{text}" if is_computed else text


def render_csv_parts(columns: Sequence[str], pages: Iterable[Iterable[Sequence[CsvCell]]]) -> Iterator[bytes]:
    """Yields the bytes of a table page by page, under one line of column names."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for page in pages:
        writer.writerows(map(_format_row, page))
        yield _take_text(text)
    yield _take_text(text)


def render_csv(columns: Sequence[str], rows: Iterable[Sequence[CsvCell]]) -> str:
    """Returns a whole table under one line of column names."""
    return b"".join(render_csv_parts(columns, [rows])).decode()


def _format_row(row: Sequence[CsvCell]) -> list[object]:
    return [_format_cell(value) for value in row]


def _format_cell(value: CsvCell) -> object:
    """Formats a cell. Numbers stay numbers, whatever their sign; only text is neutralized."""
    match value:
        case str():
            return neutralize_text(str(value))
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Decimal():
            return f"{value:f}"
        case float():
            return repr(value)
        case _:
            return value


def _take_text(text: io.StringIO) -> bytes:
    taken = text.getvalue()
    text.seek(0)
    text.truncate()
    return taken.encode()
