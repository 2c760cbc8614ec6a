"""Exports of AIPerf and GenAI-Perf, as JSON or CSV: each metric with its own unit.

The CSV holds three tables one below another: statistics of requests, single figures, and telemetry of GPUs.
The load of the JSON stands in ``input_config``, in its phases that are not excluded from the results, or in
``loadgen`` or ``perf_analyzer`` of earlier versions; the CSV does not say it.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements import serving
from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    build_token_length,
    check_lines,
    format_percentile,
    get_member,
    read_count,
    read_mapping,
    read_number,
    read_positive,
    read_seconds,
    read_sequence,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.errors import PlanningError

_METRICS: Final = {
    "time_to_first_token": serving.FIRST_TOKEN,
    "inter_token_latency": serving.OUTPUT_TOKEN,
    "request_latency": serving.REQUEST,
    "request_throughput": serving.REQUESTS,
    "output_token_throughput": serving.OUTPUT,
    "total_token_throughput": serving.TOTAL,
}
_TIMES: Final = frozenset({serving.FIRST_TOKEN, serving.OUTPUT_TOKEN, serving.REQUEST})
_RATES: Final = frozenset({"requests/sec", "tokens/sec", "requests/s", "tokens/s"})
_SHOWN: Final = ("p50", "p90", "p95", "p99")
_POWER: Final = ("gpu_power_usage", "power_usage")


def measurements_from_aiperf_json(content: str) -> FileMeasurements:
    """The run of an export as JSON; raises PlanningError for other files."""
    root = read_mapping(parse_document(content))
    records = read_mapping(root.get("records")) or root
    read = FileMeasurements()
    readings: list[FigureReading] = []
    for name, metric in _METRICS.items():
        found = read_mapping(records.get(name))
        try:
            readings.extend(_list_readings(f"/{name}", metric, found, str(found.get("unit") or "")))
        except RowError as error:
            read.record_refusal(f"/{name}", error)
    readings.extend(_read_power(root))
    if root.get("was_cancelled") is True:
        read.record_note("/was_cancelled", "RUN_CANCELLED", "the run was cancelled before its end")
    if readings:
        said = _read_lengths(records) | _read_load(read_mapping(root.get("input_config"))) | _read_names(root)
        read.runs.append(MeasuredFileRun("", tuple(readings), said))
    return require_results(read, "metrics of AIPerf")


def _list_readings(
    pointer: str, metric: str, found: Mapping[str, object], unit: str
) -> Iterator[FigureReading]:
    if found.get("avg") is None:
        return
    yield FigureReading(pointer, metric, _convert_value(found["avg"], metric, unit), "mean")
    for name in _SHOWN:
        if metric in _TIMES and found.get(name) not in (None, ""):
            yield FigureReading(
                pointer, metric, _convert_value(found[name], metric, unit), format_percentile(name)
            )


def _convert_value(value: object, metric: str, unit: str) -> float:
    if metric in _TIMES:
        return read_seconds(read_positive(value), unit)
    if unit not in _RATES:
        raise RowError("UNIT_UNKNOWN", "a rate has a unit that is not one of rates")
    return read_positive(value)


def _read_lengths(records: Mapping[str, object]) -> dict[str, RunFact]:
    return build_facts(
        workload__input_tokens=_read_length(read_mapping(records.get("input_sequence_length"))),
        workload__output_tokens=_read_length(read_mapping(records.get("output_sequence_length"))),
        workload__horizon__total_requests=read_count(get_member(records, "request_count", "avg")),
    )


def _read_length(found: Mapping[str, object]) -> RunFact | None:
    if found.get("avg") is None:
        return None
    return build_token_length(read_number(found["avg"]), read_number(found.get("std") or 0.0))


def _read_load(config: Mapping[str, object]) -> dict[str, RunFact]:
    phases = [
        phase
        for phase in map(read_mapping, read_sequence(config.get("phases")))
        if phase.get("exclude_from_results") is not True
    ]
    load = phases[0] if phases else read_mapping(config.get("loadgen"))
    load = load or read_mapping(get_member(config, "perf_analyzer", "stimulus"))
    rate = load.get("request_rate", load.get("rate"))
    if rate is not None:
        return build_facts(workload__request_rate_per_second=read_positive(rate))
    return build_facts(workload__concurrency=read_count(load.get("concurrency")))


def _read_names(root: Mapping[str, object]) -> dict[str, RunFact]:
    config = read_mapping(root.get("input_config"))
    items = read_sequence(get_member(config, "models", "items"))
    names = [str(read_mapping(item).get("name")) for item in items] or [
        str(name)
        for name in [
            *read_sequence(get_member(config, "endpoint", "model_names")),
            *read_sequence(config.get("model")),
            *read_sequence(config.get("model_names")),
        ]
    ]
    devices = {str(device.get("gpu_name")) for device in _list_devices(root) if device.get("gpu_name")}
    return build_facts(
        model_name=names[0] if len(names) == 1 else None,
        accelerator_name=next(iter(devices)) if len(devices) == 1 else None,
    )


def _list_devices(root: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for endpoint in read_mapping(get_member(root, "telemetry_data", "endpoints")).values():
        for device in read_mapping(get_member(endpoint, "gpus")).values():
            yield read_mapping(device)


def _read_power(root: Mapping[str, object]) -> Iterator[FigureReading]:
    """Mean power of one device."""
    watts = [
        read_positive(power["avg"])
        for device in _list_devices(root)
        for name in _POWER
        if (power := read_mapping(get_member(device, "metrics", name))).get("unit") == "W"
        and power.get("avg")
    ]
    if watts:
        yield FigureReading("/telemetry_data", serving.POWER, sum(watts) / len(watts), "mean")


def measurements_from_aiperf_csv(content: str) -> FileMeasurements:
    """The run of an export as CSV; raises PlanningError for other files."""
    read = FileMeasurements()
    found: dict[str, tuple[str, str, dict[str, object]]] = {}
    names: dict[str, set[str]] = {}
    for pointer, kind, row in _read_rows(content):
        if kind == "gpu":
            names.setdefault(str(row.get("GPU_Name")), set()).add(str(row.get("GPU_Index")))
            continue
        label, _, unit = str(row.pop("Metric")).rpartition(" (")
        key = label.lower().replace(" ", "_")
        found[key or str(unit).lower().replace(" ", "_")] = (pointer, unit.removesuffix(")"), row)
    readings: list[FigureReading] = []
    for key, (pointer, unit, row) in found.items():
        metric = _METRICS.get(key)
        if metric is None:
            continue
        try:
            readings.extend(_list_readings(pointer, metric, row, unit))
        except RowError as error:
            read.record_refusal(pointer, error)
    if readings:
        records = {key: row for key, (_, _, row) in found.items()}
        device = next(iter(names)) if len(names) == 1 else None
        read.runs.append(
            MeasuredFileRun(
                "", tuple(readings), _read_lengths(records) | build_facts(accelerator_name=device)
            )
        )
    return require_results(read, "metrics of AIPerf")


def _read_rows(content: str) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Rows of all tables with the line and the kind of the table; a value alone is its mean."""
    header: list[str] = []
    check_lines(content)
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""))
    try:
        for cells in reader:
            if not any(cells):
                header = []
            elif not header:
                header = cells
            elif len(cells) == len(header) and "Metric" in header:
                row: dict[str, object] = dict(zip(header, cells, strict=True))
                if "Value" in row:
                    row["avg"] = row.pop("Value")
                yield f"/{reader.line_num}", "gpu" if "GPU_Name" in header else "", row
    except csv.Error as error:
        raise PlanningError("FORMAT", "/content", f"line {reader.line_num} is no CSV") from error
