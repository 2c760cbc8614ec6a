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
    Fact,
    Measurements,
    Reading,
    Run,
    check_lines,
    count,
    facts,
    in_seconds,
    length,
    mapping,
    member,
    number,
    percentile_name,
    positive,
    required,
    sequence,
)
from service.formats.offers.listed import RowError, document
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


def measurements_from_aiperf_json(content: str) -> Measurements:
    """The run of an export as JSON; raises PlanningError for other files."""
    root = mapping(document(content))
    records = mapping(root.get("records")) or root
    read = Measurements()
    readings: list[Reading] = []
    for name, metric in _METRICS.items():
        found = mapping(records.get(name))
        try:
            readings.extend(_readings(f"/{name}", metric, found, str(found.get("unit") or "")))
        except RowError as error:
            read.refuse(f"/{name}", error)
    readings.extend(_power(root))
    if root.get("was_cancelled") is True:
        read.note("/was_cancelled", "RUN_CANCELLED", "the run was cancelled before its end")
    if readings:
        said = _lengths(records) | _load(mapping(root.get("input_config"))) | _named(root)
        read.runs.append(Run("", tuple(readings), said))
    return required(read, "metrics of AIPerf")


def _readings(pointer: str, metric: str, found: Mapping[str, object], unit: str) -> Iterator[Reading]:
    if found.get("avg") is None:
        return
    yield Reading(pointer, metric, _value(found["avg"], metric, unit), "mean")
    for name in _SHOWN:
        if metric in _TIMES and found.get(name) not in (None, ""):
            yield Reading(pointer, metric, _value(found[name], metric, unit), percentile_name(name))


def _value(value: object, metric: str, unit: str) -> float:
    if metric in _TIMES:
        return in_seconds(positive(value), unit)
    if unit not in _RATES:
        raise RowError("UNIT_UNKNOWN", "a rate has a unit that is none of rates")
    return positive(value)


def _lengths(records: Mapping[str, object]) -> dict[str, Fact]:
    return facts(
        workload__input_tokens=_length(mapping(records.get("input_sequence_length"))),
        workload__output_tokens=_length(mapping(records.get("output_sequence_length"))),
        workload__horizon__total_requests=count(member(records, "request_count", "avg")),
    )


def _length(found: Mapping[str, object]) -> Fact | None:
    if found.get("avg") is None:
        return None
    return length(number(found["avg"]), number(found.get("std") or 0.0))


def _load(config: Mapping[str, object]) -> dict[str, Fact]:
    phases = [
        phase
        for phase in map(mapping, sequence(config.get("phases")))
        if phase.get("exclude_from_results") is not True
    ]
    load = phases[0] if phases else mapping(config.get("loadgen"))
    load = load or mapping(member(config, "perf_analyzer", "stimulus"))
    rate = load.get("request_rate", load.get("rate"))
    if rate is not None:
        return facts(workload__request_rate_per_second=positive(rate))
    return facts(workload__concurrency=count(load.get("concurrency")))


def _named(root: Mapping[str, object]) -> dict[str, Fact]:
    config = mapping(root.get("input_config"))
    items = sequence(member(config, "models", "items"))
    names = [str(mapping(item).get("name")) for item in items] or [
        str(name)
        for name in [
            *sequence(member(config, "endpoint", "model_names")),
            *sequence(config.get("model")),
            *sequence(config.get("model_names")),
        ]
    ]
    devices = {str(device.get("gpu_name")) for device in _devices(root) if device.get("gpu_name")}
    return facts(
        model_name=names[0] if len(names) == 1 else None,
        accelerator_name=next(iter(devices)) if len(devices) == 1 else None,
    )


def _devices(root: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for endpoint in mapping(member(root, "telemetry_data", "endpoints")).values():
        for device in mapping(member(endpoint, "gpus")).values():
            yield mapping(device)


def _power(root: Mapping[str, object]) -> Iterator[Reading]:
    """Mean power of one device."""
    watts = [
        positive(power["avg"])
        for device in _devices(root)
        for name in _POWER
        if (power := mapping(member(device, "metrics", name))).get("unit") == "W" and power.get("avg")
    ]
    if watts:
        yield Reading("/telemetry_data", serving.POWER, sum(watts) / len(watts), "mean")


def measurements_from_aiperf_csv(content: str) -> Measurements:
    """The run of an export as CSV; raises PlanningError for other files."""
    read = Measurements()
    found: dict[str, tuple[str, str, dict[str, object]]] = {}
    names: dict[str, set[str]] = {}
    for pointer, kind, row in _rows(content):
        if kind == "gpu":
            names.setdefault(str(row.get("GPU_Name")), set()).add(str(row.get("GPU_Index")))
            continue
        label, _, unit = str(row.pop("Metric")).rpartition(" (")
        key = label.lower().replace(" ", "_")
        found[key or str(unit).lower().replace(" ", "_")] = (pointer, unit.removesuffix(")"), row)
    readings: list[Reading] = []
    for key, (pointer, unit, row) in found.items():
        metric = _METRICS.get(key)
        if metric is None:
            continue
        try:
            readings.extend(_readings(pointer, metric, row, unit))
        except RowError as error:
            read.refuse(pointer, error)
    if readings:
        records = {key: row for key, (_, _, row) in found.items()}
        device = next(iter(names)) if len(names) == 1 else None
        read.runs.append(Run("", tuple(readings), _lengths(records) | facts(accelerator_name=device)))
    return required(read, "metrics of AIPerf")


def _rows(content: str) -> Iterator[tuple[str, str, dict[str, object]]]:
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
