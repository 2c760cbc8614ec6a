"""Transfers as nvbandwidth prints them, as text or with ``-j``: matrices of decimal GB/s by test.

A cell is one transfer between a row and a column; ``SUM`` is over the cells and no figure of a device.
Tests that print ns are latencies. A waived test has no matrix.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    read_lines,
    read_mapping,
    read_number,
    read_sequence,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document

TRANSFER: Final = "transfer_bytes_per_second"
LATENCY: Final = "transfer_latency_seconds"

_RUNNING = re.compile(r"\s*Running (\S+?)\.?\s*$")
_SUM = re.compile(r"\s*SUM (\S+) +(\S+)\s*$")
_TITLE = re.compile(r".*\((GB/s|ns|us)\)\s*$")
_HEADER = re.compile(r"\s*+\d++(?:\s++\d++)*+\s*+")
_CELLS = re.compile(r"\s*+(\d++)((?:\s++(?:N/A|[-+.\deE]++))++)\s*+$")
_DEVICE = re.compile(
    r"(?:Process (?>.*?: (?=[Dd]evice\s)))?[Dd]evice\s++(\d++): (.+) \([0-9a-fA-F:.]++\)\s*+$"
)
_DRIVER = re.compile(r"Driver Version: (\S+)")
_UNNUMBERED = re.compile(r"^\s*+\d++:\s*+|(?<!\s)\s*+\([0-9a-fA-F:.]++\)\s*+$")
_LONGEST_NAME: Final = 500
_FAILED = re.compile(r"\s*(Error|Not Found)\b", re.IGNORECASE)
_UNITS: Final = {"GB/s": (TRANSFER, 1e9), "ns": (LATENCY, 1e-9), "us": (LATENCY, 1e-6)}
_DIRECTIONS: Final = (
    (r"CPU\(row\) <-> GPU", "host_to_device_bidirectional"),
    (r"CPU\(row\) -> GPU", "host_to_device"),
    (r"CPU\(row\) <- GPU", "device_to_host"),
    (r"GPU\(row\) <-> GPU", "device_to_device_bidirectional"),
    (r"GPU\(row\) (?:->|<-) GPU", "device_to_device"),
)


class _Matrix(NamedTuple):
    """One printed matrix: its test, its title, and (pointer, row, texts of the cells) of each row."""

    pointer: str
    test: str
    title: str
    rows: list[tuple[str, int, Sequence[object]]]
    summed: bool = False
    """True if its sum has been read."""


def measurements_from_nvbandwidth(content: str) -> FileMeasurements:
    """The transfers of nvbandwidth, ``of`` test, row and column; raises PlanningError for other files."""
    read = FileMeasurements()
    if content.lstrip("\ufeff \t\r\n").startswith("{"):
        known = _parse_document(parse_document(content), read)
    else:
        known = _parse_text(content, read)
    return require_results(_collect_readings(read, known), "results of nvbandwidth")


def _collect_readings(
    read: FileMeasurements, known: tuple[list[_Matrix], dict[str, RunFact]]
) -> FileMeasurements:
    matrices, said = known
    readings: list[FigureReading] = []
    for matrix in matrices:
        try:
            readings.extend(_list_readings(matrix))
        except RowError as error:
            read.record_refusal(matrix.pointer, error)
    if readings:
        read.runs.append(MeasuredFileRun("", tuple(readings), said))
    return read


def _list_readings(matrix: _Matrix) -> list[FigureReading]:
    unit = _TITLE.match(matrix.title)
    if unit is None:
        raise RowError("UNIT_UNKNOWN", "the matrix does not state its unit")
    metric, scale = _UNITS[unit[1]]
    test = matrix.test or _find_test(matrix.title)
    return [
        FigureReading(pointer, metric, value * scale, of={"test": test, "row": row, "column": column})
        for pointer, row, cells in matrix.rows
        for column, cell in enumerate(cells)
        if cell != "N/A" and (value := read_number(cell)) > 0.0
    ]


def _find_test(title: str) -> str:
    """The test of a title that no ``Running`` line stands before."""
    found = next((name for pattern, name in _DIRECTIONS if re.search(pattern, title)), None)
    if found is None:
        raise RowError("TEST_UNKNOWN", "the matrix does not name its test")
    engine = "sm" if re.search(r"\bSM\b", title) else "ce"
    return f"{found}_memcpy_{engine}" if "latency" not in title else f"{found}_latency_{engine}"


def _parse_text(content: str, read: FileMeasurements) -> tuple[list[_Matrix], dict[str, RunFact]]:
    matrices: list[_Matrix] = []
    names: dict[int, str] = {}
    running, driver = "", None
    for pointer, line in read_lines(content):
        if match := _RUNNING.match(line):
            running = match[1]
        elif match := _SUM.match(line):
            _add_sum(matrices, match[1], match[2], pointer, read)
        elif _TITLE.match(line):
            matrices.append(_Matrix(pointer, running, line.strip(), []))
        elif matrices and not _HEADER.fullmatch(line) and (match := _CELLS.match(line)):
            matrices[-1].rows.append((pointer, int(match[1]), match[2].split()))
        elif match := _DEVICE.match(line):
            names[len(names)] = match[2]
        elif match := _DRIVER.match(line):
            driver = match[1]
        elif running and _FAILED.match(line):
            read.record_refusal(pointer, RowError("TEST_FAILED", "a test of the file failed"))
    return matrices, _build_facts(list(names.values()), driver)


def _add_sum(matrices: list[_Matrix], test: str, total: str, pointer: str, read: FileMeasurements) -> None:
    """Assigns the test in the line behind a matrix, and compares its sum with that of the printed cells."""
    if not matrices or matrices[-1].summed:
        return
    matrices[-1] = matrix = matrices[-1]._replace(test=test, summed=True)
    cells = [read_number(cell) for _, _, row in matrix.rows for cell in row if cell != "N/A"]
    if abs(sum(cells) - read_number(total)) > _HALF_UNIT * (len(cells) + 1) * 2.0:
        read.record_note(pointer, "SUM_DIFFERS", "the printed sum is not that of the cells")


_HALF_UNIT: Final = 0.005


def _build_facts(names: Iterable[str], driver: object) -> dict[str, RunFact]:
    known = list(names)
    one = known[0] if len(set(known)) == 1 else None
    return build_facts(
        accelerator_name=one,
        cluster__accelerator_count=len(known) or None,
        driver_version=driver if isinstance(driver, str) else None,
    )


def _parse_document(content: object, read: FileMeasurements) -> tuple[list[_Matrix], dict[str, RunFact]]:
    root = read_mapping(read_mapping(content).get("nvbandwidth"))
    matrices: list[_Matrix] = []
    for place, each in enumerate(read_sequence(root.get("testcases"))):
        test, pointer = read_mapping(each), f"/nvbandwidth/testcases/{place}"
        if test.get("status") == "Waived":
            continue
        if test.get("status") != "Passed":
            read.record_refusal(pointer, RowError("TEST_FAILED", "a test of the file failed"))
            continue
        rows: list[tuple[str, int, Sequence[object]]] = [
            (f"{pointer}/bandwidth_matrix/{row}", row, read_sequence(cells))
            for row, cells in enumerate(read_sequence(test.get("bandwidth_matrix")))
        ]
        matrices.append(
            _Matrix(pointer, str(test.get("name") or ""), str(test.get("bandwidth_description") or ""), rows)
        )
    listed = [
        _UNNUMBERED.sub("", str(name)[:_LONGEST_NAME]) for name in read_sequence(root.get("GPU Device list"))
    ]
    return matrices, _build_facts(listed, root.get("Driver Version"))
