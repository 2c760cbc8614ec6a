"""Measured rates of devices and links, one figure per row.

The file has the columns of the other measured rows as far as they apply. Shapes and sizes are in one free
column, which is parsed here.
"""

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from accuracy.lines import RowLine, read_lines, shown
from service.planning.precision import NumberFormat

HARDWARE_COLUMNS: Final = frozenset(
    {
        *("id", "source", "kind", "gpu", "n_gpus", "n_nodes", "op", "dtype", "shape_or_size", "metric"),
        *("value", "notes", "accelerator_id", "value_si", "unit_si"),
    }
)
HARDWARE_UNITS: Final[Mapping[str, str]] = {
    "achieved_tflops": "FLOP/s",
    "bandwidth": "bytes/s",
    "busbw": "bytes/s",
    "latency": "s",
}
"""Units of the known metrics. Rows of other metrics are kept with a warning."""

_FORMATS: Final[Mapping[str, NumberFormat]] = {
    **{number_format.value: number_format for number_format in NumberFormat},
    "fp16/bf16": NumberFormat.BF16,
}
_SHAPE = re.compile(r"^\s*(\d+)\s*x\s*(\d+)\s*x\s*(\d+)\b")
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B\b")
_SETTING = re.compile(r"\b(batch|seq|head_dim|heads)\s*[= ]\s*(\d+)")
_PREFIXES: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_NEAR = 0.08
"""Largest relative distance of a decimal size from the power of two that was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareRow:
    """One measured rate. ``text`` holds the original columns."""

    id: str
    source: str
    kind: str
    metric: str
    accelerator_id: str
    devices: int
    nodes: int
    operation: str
    number_format: NumberFormat | None
    value: float
    unit: str
    text: Mapping[str, str]

    @property
    def group(self) -> tuple[str, str]:
        """Group that is fitted or held out together: one source's rows of one device."""
        return self.source, self.accelerator_id

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """Rows, columns and depth of a multiplication."""
        match = _SHAPE.match(self.text["shape_or_size"])
        return (int(match[1]), int(match[2]), int(match[3])) if match else None

    @property
    def message_bytes(self) -> float | None:
        """The size of a message.

        Benchmarks double it from run to run; a decimal size near a power of two is read as that.
        """
        match = _SIZE.match(self.text["shape_or_size"])
        if match is None:
            return None
        number, power = float(match[1]), _PREFIXES[match[2]]
        if match[3]:
            return number * 1024.0**power
        for base in (1000.0, 1024.0):
            size = number * base**power
            nearest = 2.0 ** round(math.log2(size)) if size > 0.0 else 0.0
            if nearest and abs(size / nearest - 1.0) <= _NEAR:
                return nearest
        return number * 1000.0**power

    @property
    def settings(self) -> Mapping[str, int]:
        """Named settings of an attention: batch, seq, head_dim, heads."""
        return {name: int(number) for name, number in _SETTING.findall(self.text["shape_or_size"])}


@dataclass(frozen=True, slots=True)
class HardwareFile:
    """Rows of one file in order, with remarks that do not prevent its use."""

    path: Path
    sha256: str
    rows: tuple[HardwareRow, ...]
    warnings: tuple[str, ...]


def by_metric(rows: Iterable[HardwareRow]) -> Mapping[str, tuple[HardwareRow, ...]]:
    """Returns the rows of each metric."""
    found: dict[str, list[HardwareRow]] = {}
    for row in rows:
        found.setdefault(row.metric, []).append(row)
    return {metric: tuple(of) for metric, of in found.items()}


def is_hardware(path: Path) -> bool:
    """Returns true if a file has the columns of measured devices and links, false if it cannot be read."""
    try:
        with path.open(newline="") as file:
            return set(next(csv.reader(file), [])) >= HARDWARE_COLUMNS
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def read_hardware(path: Path) -> HardwareFile:
    """Reads the rows of one file. Raises :class:`RowsError` at the first invalid one."""
    rows, warnings = [], []
    read = read_lines(path, HARDWARE_COLUMNS)
    for line in read.lines:
        row = _row(line)
        if row is not None:
            rows.append(row)
        warnings.extend(line.warnings)
    return HardwareFile(path, read.sha256, tuple(rows), tuple(warnings))


def _count(text: str) -> int:
    """Returns a whole number from 1, or 0 for anything else."""
    return int(text) if text.strip().isdecimal() else 0


def _row(line: RowLine) -> HardwareRow | None:
    """Returns one row, or None with a warning if it does not state its devices."""
    metric, unit = line.required("metric"), line.required("unit_si")
    if metric not in HARDWARE_UNITS:
        line.warnings.append(str(line.error("metric", f"{shown(metric)} is not known")))
    elif unit != HARDWARE_UNITS[metric]:
        raise line.error("unit_si", f"{shown(unit)} is not the unit of {metric}, {HARDWARE_UNITS[metric]}")
    written = line.cells["dtype"].strip().lower()
    if written and written not in _FORMATS:
        line.warnings.append(str(line.error("dtype", f"{shown(written)} is not known")))
    devices, nodes = (_count(line.cells[column]) for column in ("n_gpus", "n_nodes"))
    if not devices or not nodes:
        line.warnings.append(str(line.error("n_gpus", "the row does not say on how many devices and nodes")))
        return None
    value = line.value("value_si")
    if value < 0.0:
        raise line.error("value_si", "is no number from 0")
    return HardwareRow(
        id=line.required("id"),
        source=line.required("source"),
        kind=line.required("kind"),
        metric=metric,
        accelerator_id=line.required("accelerator_id"),
        devices=devices,
        nodes=nodes,
        operation=line.cells["op"].strip(),
        number_format=_FORMATS.get(written),
        value=value,
        unit=unit,
        text=MappingProxyType(dict(line.cells)),
    )
