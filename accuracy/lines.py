"""Lines of a CSV file of measured rows, checked for their shape, with errors at their place."""

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class RowsError(Exception):
    """An invalid file of rows, with line, column and detail."""

    def __init__(self, path: Path, line: int, column: str, detail: str) -> None:
        self.path, self.line, self.column, self.detail = path, line, column, detail
        super().__init__(f"{path}: line {line}, column {column}: {detail}")


@dataclass(slots=True)
class RowLine:
    """Cells of one row with their place. ``warnings`` are remarks that do not prevent its use."""

    path: Path
    number: int
    cells: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def error(self, column: str, detail: str) -> RowsError:
        """Returns an error about a cell, to be raised or recorded."""
        return RowsError(self.path, self.number, column, detail)

    def required(self, column: str) -> str:
        """Returns the text of a cell that must not be empty."""
        text = self.cells[column].strip()
        if not text:
            raise self.error(column, "is empty")
        return text

    def one_of(self, column: str, known: frozenset[str]) -> str:
        """Returns the text of a cell that must be one of some words."""
        text = self.cells[column].strip()
        if text not in known:
            raise self.error(column, f"{shown(text)} is none of: {', '.join(sorted(known - {''}))}")
        return text

    def value(self, column: str) -> float:
        """Returns the finite number of a cell."""
        text = self.required(column)
        try:
            number = float(text)
        except ValueError:
            raise self.error(column, f"{shown(text)} is not a number") from None
        if not math.isfinite(number):
            raise self.error(column, f"{shown(text)} is not finite")
        return number

    def count(self, column: str) -> int | None:
        """Returns the whole number from 0 of a cell, or None if it is empty."""
        text = self.cells[column].strip()
        if not text:
            return None
        number = self.value(column)
        if number < 0 or number != int(number):
            raise self.error(column, f"{shown(text)} is not a whole number")
        return int(number)


def shown(text: object) -> str:
    """Returns a text of the file, short and on one line."""
    return repr(str(text)[:40])


class FileLines(NamedTuple):
    """Lines of one file, read lazily, and the digest of its bytes."""

    sha256: str
    lines: Iterator[RowLine]


def read_lines(path: Path, columns: frozenset[str]) -> FileLines:
    """Returns the lines of a file that has ``columns``, each with a unique id.

    Raises :class:`RowsError` if the file or a line cannot be read.
    """
    try:
        data = path.read_bytes()
        text = data.decode()
    except OSError as error:
        raise RowsError(path, 0, "all", error.strerror or "cannot be read") from None
    except UnicodeDecodeError:
        raise RowsError(path, 0, "all", "is not UTF-8") from None
    return FileLines(hashlib.sha256(data).hexdigest(), _lines(path, text, columns))


def _lines(path: Path, text: str, columns: frozenset[str]) -> Iterator[RowLine]:
    seen: set[str] = set()
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        missing = sorted(columns - set(header))
        if missing:
            raise RowsError(path, 1, missing[0], f"the header lacks: {', '.join(missing)}")
        doubled = sorted({name for name in header if header.count(name) > 1})
        if doubled:
            raise RowsError(path, 1, doubled[0], "the header names it twice")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                short = header[len(cells)] if len(cells) < len(header) else header[-1]
                detail = f"the line has {len(cells)} cells, the header {len(header)}"
                raise RowsError(path, reader.line_num, short, detail)
            line = RowLine(path, reader.line_num, dict(zip(header, cells, strict=True)))
            name = line.required("id")
            if name in seen:
                raise line.error("id", f"{shown(name)} stands twice")
            seen.add(name)
            yield line
    except csv.Error as error:
        raise RowsError(path, reader.line_num, "all", f"is not CSV: {error}") from None
