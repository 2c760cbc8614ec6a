"""Reports of DCGM: diagnostics as JSON (3.x and 4.x), ``dcgmi dmon`` as text, and dcgm-exporter scrapes.

Diagnostics print GB/s, us, gigaflops and bytes inside sentences. Activities are shares of the time. Rows of
MIG instances are parts of their GPU: they are left out beside it. Integers near 2^63 stand for no value.
"""

import re
import statistics
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements.readings import (
    NUMBER,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    parse_printed_number,
    read_lines,
    read_mapping,
    read_sequence,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.units import MEBIBYTE_BYTES

TO_DEVICE: Final = "host_to_device_bytes_per_second"
FROM_DEVICE: Final = "device_to_host_bytes_per_second"
BOTH_WAYS: Final = "host_device_bidirectional_bytes_per_second"
MEMORY: Final = "allocatable_memory_bytes"
POWER: Final = "power_watts"

_N: Final = rf"({NUMBER})"
_SENTENCES: Final = (
    (re.compile(rf"Host to GPU bandwidth:\s*{_N} GB/s"), TO_DEVICE, 1e9),
    (re.compile(rf"GPU to Host bandwidth:\s*{_N} GB/s"), FROM_DEVICE, 1e9),
    (re.compile(rf"bidirectional bandwidth:\s*{_N} GB/s"), BOTH_WAYS, 1e9),
    (re.compile(rf"Host to GPU latency:\s*{_N} us"), "host_to_device_latency_seconds", 1e-6),
    (re.compile(rf"GPU to Host latency:\s*{_N} us"), "device_to_host_latency_seconds", 1e-6),
    (re.compile(rf"Allocated {_N} bytes"), MEMORY, 1.0),
    (re.compile(rf"approximately {_N} gigaflops"), "flops_per_second", 1e9),
    (re.compile(rf"power average:\s*{_N} W"), POWER, 1.0),
)
_TITLES: Final = ("DCGM Diagnostic", "DCGM GPU Diagnostic")


def measurements_from_dcgm_diagnostics(content: str) -> FileMeasurements:
    """The figures of ``dcgmi diag -j``, ``of`` test and device; raises PlanningError for other files."""
    root = read_mapping(parse_document(content))
    report = next((read_mapping(root[title]) for title in _TITLES if title in root), {})
    read = FileMeasurements()
    readings: list[FigureReading] = []
    for pointer, name, result in _list_results(report):
        status = str(result.get("status", "")).lower()
        if status == "fail":
            read.record_refusal(pointer, RowError("TEST_FAILED", "a test of the file failed"))
        elif status == "pass":
            readings.extend(_parse_sentences(pointer, name, result))
    if readings:
        read.runs.append(MeasuredFileRun("", tuple(readings)))
    return require_results(read, "figures of DCGM's diagnostics")


def _list_results(report: Mapping[str, object]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    for at, category in enumerate(read_sequence(report.get("test_categories"))):
        for place, test in enumerate(read_sequence(read_mapping(category).get("tests"))):
            name = str(read_mapping(test).get("name"))
            for one, result in enumerate(read_sequence(read_mapping(test).get("results"))):
                pointer = f"/test_categories/{at}/tests/{place}/results/{one}"
                yield pointer, name, read_mapping(result)


def _parse_sentences(pointer: str, test: str, result: Mapping[str, object]) -> Iterator[FigureReading]:
    told = result.get("info")
    sentences = [str(one) for one in told] if isinstance(told, list) else [str(told or "")]
    device = str(result.get("gpu_ids", result.get("entity_id", "")))
    of: dict[str, str | int | float] = {"test": test, "device": device}
    for pattern, metric, scale in _SENTENCES:
        for match in pattern.finditer(", ".join(sentences)):
            yield FigureReading(pointer, metric, parse_printed_number(match[1]) * scale, of=of)


_ACTIVITIES: Final = {
    "GRACT": "graphics_activity",
    "SMACT": "multiprocessor_activity",
    "SMOCC": "occupancy",
    "TENSO": "tensor_activity",
    "DRAMA": "memory_activity",
}
_WATTS: Final = "POWER"
_STEADY: Final = 0.9
"""Share of the busiest sample from which a sample counts as of the steady state."""


def measurements_from_dcgm_dmon(content: str) -> FileMeasurements:
    """Medians of the steady samples of ``dcgmi dmon`` by device; raises PlanningError for other files.

    Samples below nine tenths of the busiest are warming up or ending.
    """
    columns: list[str] = []
    samples: dict[str, list[dict[str, float]]] = {}
    for _, line in read_lines(content):
        if line.lstrip().startswith("#"):
            columns = line.replace("#", " ").split()[1:]
        elif columns and (match := re.match(r"\s*+GPU\s++(\d++)\s++(.*)$", line)):
            cells = match[2].split()
            if len(cells) == len(columns):
                known = {
                    name: float(cell)
                    for name, cell in zip(columns, cells, strict=True)
                    if re.fullmatch(NUMBER, cell)
                }
                samples.setdefault(match[1], []).append(known)
    read = FileMeasurements()
    readings = [one for device, rows in samples.items() for one in _read_steady_samples(device, rows)]
    if readings:
        read.runs.append(MeasuredFileRun("", tuple(readings)))
    return require_results(read, "samples of dcgmi dmon")


def _read_steady_samples(device: str, rows: list[dict[str, float]]) -> Iterator[FigureReading]:
    leading = next((name for name in ("GRACT", "SMACT", *rows[0]) if name in rows[0]), None)
    if leading is None:
        return
    busiest = max(row.get(leading, 0.0) for row in rows)
    steady = [row for row in rows if row.get(leading, 0.0) >= _STEADY * busiest]
    for name in rows[0]:
        metric = POWER if name.startswith(_WATTS) else _ACTIVITIES.get(name)
        values = [row[name] for row in steady if name in row]
        if metric and values:
            yield FigureReading("", metric, statistics.median(values), "p50", {"device": device})


_EXPORTED: Final = {
    "DCGM_FI_DEV_POWER_USAGE": (POWER, 1.0),
    "DCGM_FI_DEV_FB_USED": ("used_memory_bytes", MEBIBYTE_BYTES),
    "DCGM_FI_DEV_FB_FREE": ("free_memory_bytes", MEBIBYTE_BYTES),
    "DCGM_FI_DEV_SM_CLOCK": ("multiprocessor_clock_hz", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_hz", 1e6),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("graphics_activity", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("multiprocessor_activity", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_activity", 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("memory_activity", 1.0),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_sent_bytes_per_second", 1.0),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_received_bytes_per_second", 1.0),
}
_SAMPLE = re.compile(rf"(\w+)\{{(.*)\}}\s+({NUMBER}|NaN)(?:\s+\d+)?\s*$")
_LABEL = re.compile(r'\b(\w++)="((?:[^"\\]|\\.)*+)"')
_BLANK: Final = 2.0**62


def measurements_from_dcgm_exporter(content: str) -> FileMeasurements:
    """One scrape of dcgm-exporter, ``of`` device; raises PlanningError for other files."""
    read = FileMeasurements()
    readings: list[FigureReading] = []
    names: set[str] = set()
    for pointer, line in read_lines(content):
        match = _SAMPLE.match(line)
        if match is None or match[1] not in _EXPORTED or match[3] == "NaN":
            continue
        labels = dict(_LABEL.findall(match[2]))
        value = parse_printed_number(match[3])
        if "GPU_I_ID" in labels:
            read.record_note(pointer, "MIG_INSTANCE", "an instance is a part of its GPU and is left out")
        elif abs(value) < _BLANK:
            metric, scale = _EXPORTED[match[1]]
            readings.append(
                FigureReading(pointer, metric, value * scale, of={"device": labels.get("gpu", "")})
            )
            names.add(labels.get("modelName", ""))
    if readings:
        named = next(iter(names)) if len(names) == 1 else ""
        read.runs.append(MeasuredFileRun("", tuple(readings), {"accelerator_name": named} if named else {}))
    return require_results(read, "samples of dcgm-exporter")
