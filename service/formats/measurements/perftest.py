"""Bandwidths and latencies as the programs of perftest print them: the table, or the file of ``--out_json``.

A bandwidth is in 10^9 bits a second with ``--report_gbits`` and in 2^20 bytes a second without, which older
releases head ``MB/sec``; the file states no unit. Millions of messages a second stand beside each bandwidth,
so that a unit is taken only where messages times their size say the same. Latencies are in microseconds, of
half the way there and back for writes and sends (linux-rdma/perftest, ``print_report_bw`` and
``print_report_lat`` of ``src/perftest_parameters.c``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    read_count,
    read_lines,
    read_mapping,
    read_number,
    read_positive,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document

BANDWIDTH: Final = "transfer_bytes_per_second"
LATENCY: Final = "transfer_latency_seconds"

_GIGABIT: Final = 125_000_000.0
_MEBIBYTE: Final = float(2**20)
_UNITS: Final = {"Gb/sec": _GIGABIT, "MiB/sec": _MEBIBYTE, "MB/sec": _MEBIBYTE}
_BANDWIDTHS: Final = {"BW peak": "max", "BW average": "mean"}
_LATENCIES: Final = {
    "t_min": "min",
    "t_max": "max",
    "t_typical": "p50",
    "t_avg": "mean",
    "99% percentile": "p99",
    "99.9% percentile": "p99.9",
}
"""Statistic of each column; the typical time is the median of all."""
_COLUMN: Final = re.compile(r"(#?[\w.%]+(?: (?:peak|average|percentile))?)(?:\[([^\]]+)\])?")
_MICROSECOND: Final = 1e-6
_MILLION: Final = 1e6
_LAST_DIGIT: Final = {"rate": 1e-6, "bandwidth": 0.01}
"""Smallest step of a printed figure, a unit of its last digit."""
_ALIKE: Final = 0.01


def measurements_from_perftest(content: str) -> FileMeasurements:
    """The figures of one program of perftest, ``of`` size and exchanges; PlanningError for other files.

    Bandwidths are in bytes per second, latencies in seconds. A peak of 0 was not computed, and is left out.
    """
    read = FileMeasurements()
    if content.lstrip("\ufeff \t\r\n").startswith("{"):
        readings = _parse_document(parse_document(content), read)
    else:
        readings = _parse_table(content, read)
    if readings:
        read.runs.append(MeasuredFileRun("", tuple(readings)))
    return require_results(read, "results of perftest")


def _parse_table(content: str, read: FileMeasurements) -> list[FigureReading]:
    columns: list[tuple[str, str]] = []
    readings: list[FigureReading] = []
    for pointer, line in read_lines(content):
        if line.lstrip().startswith("#bytes"):
            columns = [(match[1], match[2] or "") for match in _COLUMN.finditer(line)]
        elif columns and (cells := line.split()) and cells[0].isdigit():
            try:
                readings.extend(_read_row(pointer, columns, cells))
            except RowError as error:
                read.record_refusal(pointer, error)
    return readings


def _read_row(
    pointer: str, columns: Sequence[tuple[str, str]], cells: Sequence[str]
) -> Iterator[FigureReading]:
    if len(cells) != len(columns):
        raise RowError("COLUMNS_DIFFER", "a row has more or fewer figures than its header has names")
    row = {name: (unit, cell) for (name, unit), cell in zip(columns, cells, strict=True)}
    named = {name: cell for name, (_, cell) in row.items()}
    of = _read_subject(named.get("#bytes"), named.get("#iterations"))
    for name, statistic in _LATENCIES.items():
        if name in row:
            unit, cell = row[name]
            if unit != "usec":
                raise RowError("UNIT_UNKNOWN", "a latency is not in microseconds")
            yield FigureReading(pointer, LATENCY, read_positive(cell) * _MICROSECOND, statistic, of)
    for name, statistic in _BANDWIDTHS.items():
        if name in row and (value := read_number(row[name][1])) > 0.0:
            scale = _UNITS.get(row[name][0])
            average, rate = read_positive(named.get("BW average")), read_positive(named.get("MsgRate"))
            if scale is None or not _is_alike(scale, average, rate, of["bytes"]):
                raise RowError("UNIT_UNKNOWN", "a bandwidth is not that of the messages beside it")
            yield FigureReading(pointer, BANDWIDTH, value * scale, statistic, of)


def _parse_document(content: object, read: FileMeasurements) -> list[FigureReading]:
    try:
        return list(_read_results(read_mapping(read_mapping(content).get("results"))))
    except RowError as error:
        read.record_refusal("/results", error)
        return []


def _read_results(results: Mapping[str, object]) -> Iterator[FigureReading]:
    if not results:
        return
    of = _read_subject(results.get("MsgSize"), results.get("n_iterations"))
    for name, statistic in _LATENCIES.items():
        if name in results:
            value = read_positive(results[name]) * _MICROSECOND
            yield FigureReading(f"/results/{name}", LATENCY, value, statistic, of)
    if "BW_average" not in results:
        return
    average, rate = read_positive(results["BW_average"]), read_positive(results.get("MsgRate"))
    units = [unit for unit in (_GIGABIT, _MEBIBYTE) if _is_alike(unit, average, rate, of["bytes"])]
    if len(units) != 1:
        raise RowError("UNIT_UNKNOWN", "a bandwidth is that of the messages beside it in no unit")
    for name, statistic in (("BW_peak", "max"), ("BW_average", "mean")):
        if (value := read_number(results.get(name, 0))) > 0.0:
            yield FigureReading(f"/results/{name}", BANDWIDTH, value * units[0], statistic, of)


def _read_subject(size: object, exchanges: object) -> dict[str, int]:
    messages = {"bytes": read_count(size), "iterations": read_count(exchanges)}
    if messages["bytes"] is None:
        raise RowError("SIZE_UNKNOWN", "the size of the messages is no number of bytes")
    return {name: count for name, count in messages.items() if count is not None}


def _is_alike(unit: float, bandwidth: float, rate: float, size: int) -> bool:
    """Returns true if a bandwidth is that of its messages, up to the digits that are printed of both."""
    digits = _LAST_DIGIT["rate"] / rate + _LAST_DIGIT["bandwidth"] / bandwidth
    return abs(bandwidth * unit / (rate * _MILLION * size) - 1.0) <= _ALIKE + digits
