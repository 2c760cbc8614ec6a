"""Kernels as Nsight Compute prints them with ``--csv``: the details page, a row for each metric of a kernel.

Lines before the header are those of the program and the profiler. Units stand in a column of their own and
change with the size of the figure; numbers may have commas. Rows of rules hold no figure.
"""

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    check_lines,
    read_number,
    read_seconds,
    require_results,
)
from service.formats.offers.listed import RowError
from service.planning.errors import PlanningError

_COLUMNS: Final = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
_HERTZ: Final = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}


def _convert_clock(value: object, unit: str) -> float:
    scale = next(
        (_HERTZ[name] for name in (unit.lower(), unit.lower().removeprefix("cycle/")) if name in _HERTZ), None
    )
    if scale is None and unit.lower().startswith("cycle/"):
        return read_number(value) / read_seconds(1.0, unit.partition("/")[2])
    if scale is None:
        raise RowError("UNIT_UNKNOWN", "a clock has a unit that is not one of frequency")
    return read_number(value) * scale


def _convert_share(value: object, unit: str) -> float:
    if unit != "%":
        raise RowError("UNIT_UNKNOWN", "a share has a unit that is not a percentage")
    return read_number(value) / 100.0


def _convert_plain(value: object, _unit: str) -> float:
    return read_number(value)


_METRICS: Final[Mapping[str, tuple[str, Callable[[object, str], float]]]] = {
    "Duration": ("kernel_seconds", read_seconds),
    "Elapsed Cycles": ("elapsed_cycles", _convert_plain),
    "SM Frequency": ("multiprocessor_clock_hz", _convert_clock),
    "DRAM Frequency": ("memory_clock_hz", _convert_clock),
    "Memory Throughput": ("memory_share", _convert_share),
    "DRAM Throughput": ("dram_share", _convert_share),
    "Compute (SM) Throughput": ("compute_share", _convert_share),
    "Achieved Occupancy": ("occupancy_share", _convert_share),
    "Theoretical Occupancy": ("theoretical_occupancy_share", _convert_share),
    "Registers Per Thread": ("registers_per_thread", _convert_plain),
    "# SMs": ("multiprocessors", _convert_plain),
}
"""Metrics that are read; a name that stands for two, such as a rate and a share, by its unit."""


def measurements_from_nsight_compute(content: str) -> FileMeasurements:
    """One run for each kernel that was profiled; raises PlanningError for other files."""
    header, rows = _read_table(content)
    read = FileMeasurements()
    kernels: dict[str, list[FigureReading]] = {}
    value = header.index("Metric Value")
    for line, cells in rows:
        if len(cells) <= value:
            continue
        # Rows of metrics end before the columns of rules.
        row = dict(zip(header, cells, strict=False))
        known = _METRICS.get(row["Metric Name"])
        if known is None or (row["Metric Unit"].endswith("/s") and known[1] is _convert_share):
            continue
        metric, convert = known
        of: dict[str, str | int | float] = {"kernel": row["Kernel Name"]}
        try:
            reading = FigureReading(
                f"/{line}", metric, convert(row["Metric Value"], row["Metric Unit"]), of=of
            )
            kernels.setdefault(row["ID"], []).append(reading)
        except RowError as error:
            read.record_refusal(f"/{line}", error)
    read.runs.extend(MeasuredFileRun(readings[0].pointer, tuple(readings)) for readings in kernels.values())
    return require_results(read, "metrics of Nsight Compute")


def _read_table(content: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, wherever it stands, and the rows behind it with their lines."""
    check_lines(content)
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""))
    header: list[str] = []
    rows: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if header:
                rows.append((reader.line_num, cells))
            elif all(name in cells for name in _COLUMNS):
                header = cells
    except csv.Error as error:
        raise PlanningError("FORMAT", "/content", f"line {reader.line_num} is no CSV") from error
    if not header:
        raise PlanningError("FORMAT", "/content", "the content has no columns of Nsight Compute's details")
    return header, rows
