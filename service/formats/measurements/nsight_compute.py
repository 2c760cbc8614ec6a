"""Kernels as Nsight Compute prints them with ``--csv``: the details page, a row for each metric of a kernel.

Lines before the header are those of the program and the profiler. Units stand in a column of their own and
change with the size of the figure; numbers may have commas. Rows of rules hold no figure.
"""

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final

from service.formats.measurements.readings import (
    Measurements,
    Reading,
    Run,
    check_lines,
    in_seconds,
    number,
    required,
)
from service.formats.offers.listed import RowError
from service.planning.errors import PlanningError

_COLUMNS: Final = ("ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value")
_HERTZ: Final = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}


def _clock(value: object, unit: str) -> float:
    scale = next(
        (_HERTZ[name] for name in (unit.lower(), unit.lower().removeprefix("cycle/")) if name in _HERTZ), None
    )
    if scale is None and unit.lower().startswith("cycle/"):
        return number(value) / in_seconds(1.0, unit.partition("/")[2])
    if scale is None:
        raise RowError("UNIT_UNKNOWN", "a clock has a unit that is none of frequency")
    return number(value) * scale


def _share(value: object, unit: str) -> float:
    if unit != "%":
        raise RowError("UNIT_UNKNOWN", "a share has a unit that is no percentage")
    return number(value) / 100.0


def _plain(value: object, _unit: str) -> float:
    return number(value)


_METRICS: Final[Mapping[str, tuple[str, Callable[[object, str], float]]]] = {
    "Duration": ("kernel_seconds", in_seconds),
    "Elapsed Cycles": ("elapsed_cycles", _plain),
    "SM Frequency": ("multiprocessor_clock_hz", _clock),
    "DRAM Frequency": ("memory_clock_hz", _clock),
    "Memory Throughput": ("memory_share", _share),
    "DRAM Throughput": ("dram_share", _share),
    "Compute (SM) Throughput": ("compute_share", _share),
    "Achieved Occupancy": ("occupancy_share", _share),
    "Theoretical Occupancy": ("theoretical_occupancy_share", _share),
    "Registers Per Thread": ("registers_per_thread", _plain),
    "# SMs": ("multiprocessors", _plain),
}
"""Metrics that are read; a name that stands for two, such as a rate and a share, by its unit."""


def measurements_from_nsight_compute(content: str) -> Measurements:
    """One run for each kernel that was profiled; raises PlanningError for other files."""
    header, rows = _table(content)
    read = Measurements()
    kernels: dict[str, list[Reading]] = {}
    value = header.index("Metric Value")
    for line, cells in rows:
        if len(cells) <= value:
            continue
        # Rows of metrics end before the columns of rules.
        row = dict(zip(header, cells, strict=False))
        known = _METRICS.get(row["Metric Name"])
        if known is None or (row["Metric Unit"].endswith("/s") and known[1] is _share):
            continue
        metric, convert = known
        of: dict[str, str | int | float] = {"kernel": row["Kernel Name"]}
        try:
            reading = Reading(f"/{line}", metric, convert(row["Metric Value"], row["Metric Unit"]), of=of)
            kernels.setdefault(row["ID"], []).append(reading)
        except RowError as error:
            read.refuse(f"/{line}", error)
    read.runs.extend(Run(readings[0].pointer, tuple(readings)) for readings in kernels.values())
    return required(read, "metrics of Nsight Compute")


def _table(content: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
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
