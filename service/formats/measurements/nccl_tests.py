"""Collectives as nccl-tests print them, as text or with ``-J``: microseconds and decimal GB/s by size.

``algbw`` is size over time, ``busbw`` that times what a ring sends of the message. The text leaves the
column of the operation empty where there is none, so the measured columns are read from the end, as many as
the header has from its first ``time`` on. JSON lists one device of each process alone.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    get_member,
    read_count,
    read_lines,
    read_mapping,
    read_number,
    read_positive,
    read_sequence,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.hardware.collectives import Collective

SECONDS: Final = "collective_seconds"
BUS: Final = "bus_bytes_per_second"
AVERAGE: Final = "average_bus_bytes_per_second"

PROGRAMS: Final[Mapping[str, Collective]] = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "broadcast": Collective.BROADCAST,
    "sendrecv": Collective.POINT_TO_POINT,
}
_STARTING = re.compile(r"# Collective test starting: (\S+?)_perf")
_COMMAND = re.compile(r"(?:^|[\s/])(\w+?)_perf\b")
_RANK = re.compile(r"#\s++Rank\s++(\d++)\b(?>.*?\bon\s++(\S++)\s++device\s++\d++\s++\[)[^\]]*+\]\s++(.*\S)")
_COLUMNS = re.compile(r"#?\s*size\s+count\s+type\b")
_BOUNDS = re.compile(r"# Out of bounds values\s*:\s*(\d+)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*:\s*(\S+)")
_MEASURED: Final = ("time", "cputime")
_LEADING: Final = 3
_MOST_LEADING: Final = 5
_LONG_BYTES: Final = 2**20
_RATIO_TOLERANCE: Final = 0.02


def measurements_from_nccl_tests(content: str) -> FileMeasurements:
    """The collectives of nccl-tests, ``of`` bytes and placement; raises PlanningError for other files.

    Facts name the collective where the file says it or its two bandwidths do, and the ranks.
    """
    if content.lstrip("\ufeff \t\r\n").startswith("{"):
        read = _parse_document(read_mapping(parse_document(content)))
    else:
        read = _parse_text(content)
    return require_results(read, "results of nccl-tests")


def _parse_text(content: str) -> FileMeasurements:
    read = FileMeasurements()
    readings: list[FigureReading] = []
    trailing: list[str] = []
    ranks: dict[int, tuple[str, str]] = {}
    program = None
    for pointer, line in read_lines(content):
        if match := _STARTING.match(line) or (None if trailing else _COMMAND.search(line)):
            program = program or match[1]
        elif match := _RANK.match(line):
            ranks[int(match[1])] = (match[2], match[3])
        elif _COLUMNS.match(line):
            trailing = _select_measured_columns(line.lstrip("# ").split())
        elif match := _BOUNDS.match(line):
            _check_bounds(int(match[1]), pointer, readings, read)
        elif match := _AVERAGE.match(line):
            readings.append(FigureReading(pointer, AVERAGE, read_number(match[1]) * 1e9, "mean"))
        elif trailing and re.match(r"\s*+\d++\s++\d++\s++[a-z]", line):
            _add_row(pointer, line.split(), trailing, readings, read)
    hosts = {host for host, _ in ranks.values()}
    names = {name for _, name in ranks.values()}
    return _record_run(read, readings, _RankGroup(len(ranks), hosts, names), program)


def _select_measured_columns(names: list[str]) -> list[str]:
    """The measured columns; a timestamp is printed as two words."""
    first = next((place for place, name in enumerate(names) if name in _MEASURED), len(names))
    measured = names[first:]
    return [*measured, "timestamp"] if measured and measured[-1] == "timestamp" else measured


def _add_row(
    pointer: str, cells: list[str], trailing: list[str], readings: list[FigureReading], read: FileMeasurements
) -> None:
    leading = len(cells) - len(trailing)
    if not _LEADING <= leading <= _MOST_LEADING:
        read.record_refusal(pointer, RowError("WIDTH", "the row has more or fewer columns than the header"))
        return
    size = int(cells[0])
    measured = list(zip(trailing, cells[leading:], strict=True))
    starts = [place for place, (name, _) in enumerate(measured) if name in _MEASURED]
    for placement, start in zip(("out_of_place", "in_place"), starts, strict=False):
        part = dict(measured[start : start + 4])
        timed = part.get("time") or part.get("cputime")
        try:
            _add_readings(pointer, size, placement, (timed, part.get("busbw"), part.get("#wrong")), readings)
        except RowError as error:
            read.record_refusal(pointer, error)


def _add_readings(
    pointer: str,
    size: int,
    placement: str,
    measured: tuple[object, object, object],
    readings: list[FigureReading],
) -> None:
    """Adds readings of one measurement: time in us, bandwidth in GB/s, and the number of wrong values."""
    timed, bus, wrong = measured
    if timed in (None, "N/A"):
        return
    if wrong not in (None, "N/A") and read_number(wrong) > 0.0:
        raise RowError("WRONG_RESULTS", "the collective gave wrong results")
    of: dict[str, str | int | float] = {"bytes": size, "placement": placement}
    readings.append(FigureReading(pointer, SECONDS, read_positive(timed) * 1e-6, "mean", of))
    if bus not in (None, "N/A"):
        readings.append(FigureReading(pointer, BUS, read_number(bus) * 1e9, "mean", of))


def _check_bounds(wrong: int, pointer: str, readings: list[FigureReading], read: FileMeasurements) -> None:
    if wrong:
        readings.clear()
        read.record_refusal(pointer, RowError("WRONG_RESULTS", "the collective gave wrong results"))


class _RankGroup(NamedTuple):
    """Participants of a run: ranks, names of hosts and of devices."""

    ranks: int
    hosts: set[str]
    names: set[str]


def _record_run(
    read: FileMeasurements, readings: list[FigureReading], group: _RankGroup, program: str | None
) -> FileMeasurements:
    said: dict[str, RunFact] = build_facts(
        nodes=len(group.hosts) or None,
        accelerator_name=next(iter(group.names)) if len(group.names) == 1 else None,
        cluster__accelerator_count=group.ranks or None,
    )
    collective = PROGRAMS.get(program or "") or _identify_collective(readings, group.ranks)
    if program and collective is None:
        read.record_refusal("", RowError("COLLECTIVE_UNKNOWN", "the program is not one that is read"))
        return read
    if collective:
        said["collective"] = collective.value
    if readings:
        read.runs.append(MeasuredFileRun("", tuple(readings), said))
    return read


def _identify_collective(readings: list[FigureReading], ranks: int) -> Collective | None:
    """All-reduce, which alone has a bus bandwidth of 2 (n - 1) / n of size over time, from three ranks on."""
    times = {tuple(one.of.items()): one.value for one in readings if one.metric == SECONDS}
    ratios = [
        one.value * times[key] / float(one.of["bytes"])
        for one in readings
        if one.metric == BUS and float(one.of["bytes"]) >= _LONG_BYTES
        if (key := tuple(one.of.items())) in times
    ]
    if ranks <= 2 or not ratios:  # noqa: PLR2004  # of two ranks all collectives send the message once
        return None
    expected = 2.0 * (ranks - 1) / ranks
    if all(abs(ratio / expected - 1.0) < _RATIO_TOLERANCE for ratio in ratios):
        return Collective.ALL_REDUCE
    return None


def _parse_document(root: Mapping[str, object]) -> FileMeasurements:
    read = FileMeasurements()
    readings: list[FigureReading] = []
    for place, each in enumerate(read_sequence(root.get("results"))):
        row, pointer = read_mapping(each), f"/results/{place}"
        size = read_count(row.get("size"))
        for placement in ("out_of_place", "in_place"):
            part = read_mapping(row.get(placement))
            timed = part.get("time", part.get("cpu_time"))
            try:
                _add_readings(
                    pointer, size or 0, placement, (timed, part.get("bus_bw"), part.get("nwrong")), readings
                )
            except RowError as error:
                read.record_refusal(pointer, error)
    average = get_member(root, "average_bus_bandwidth", "bandwidth")
    if average is not None:
        readings.append(
            FigureReading("/average_bus_bandwidth/bandwidth", AVERAGE, read_number(average) * 1e9, "mean")
        )
    wrong = read_count(get_member(root, "out_of_bounds", "count"))
    _check_bounds(wrong or 0, "/out_of_bounds", readings, read)
    devices = [read_mapping(each) for each in read_sequence(get_member(root, "config", "devices"))]
    per_process = (read_count(get_member(root, "config", "ngpus")) or 1) * (
        read_count(get_member(root, "config", "nthreads")) or 1
    )
    names = {str(device.get("device_info")) for device in devices}
    hosts = {str(device.get("hostname")) for device in devices}
    return _record_run(
        read, readings, _RankGroup(len(devices) * per_process, hosts, names), _find_program(root)
    )


def _find_program(root: Mapping[str, object]) -> str | None:
    arguments = read_sequence(root.get("args"))
    if not arguments:
        return None
    return PurePosixPath(str(arguments[0])).name.removesuffix("_perf")
