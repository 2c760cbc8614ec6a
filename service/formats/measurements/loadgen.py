"""Summaries of MLPerf Inference as its load generator writes them (``mlperf_log_summary.txt``).

Latencies are nanoseconds. Only a valid performance run counts. The offline scenario has all samples there
from the start; under the server scenario they arrive as a Poisson process at the scheduled rate. The
summary names neither model nor system.
"""

import re
from typing import Final

from service.formats.measurements import serving
from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    build_facts,
    format_percentile,
    read_count,
    read_lines,
    read_number,
    require_results,
)
from service.formats.offers.listed import RowError

_TIMES: Final = (
    (re.compile(r"(?:(Mean)|([\d.]+) percentile) latency \(ns\)", re.IGNORECASE), serving.REQUEST),
    (
        re.compile(r"(?:(Mean)|([\d.]+) percentile) first token latency \(ns\)", re.IGNORECASE),
        serving.FIRST_TOKEN,
    ),
    (
        re.compile(r"(?:(Mean)|([\d.]+) percentile) time to output token \(ns\)", re.IGNORECASE),
        serving.OUTPUT_TOKEN,
    ),
)
_RATES: Final = {
    "samples per second": serving.REQUESTS,
    "completed samples per second": serving.REQUESTS,
    "tokens per second": serving.OUTPUT,
    "completed tokens per second": serving.OUTPUT,
}
_SHOWN: Final = frozenset({"p50", "p90", "p95", "p99"})


def measurements_from_mlperf_inference(content: str) -> FileMeasurements:
    """The run of a summary; raises PlanningError for other files."""
    said: dict[str, str] = {}
    readings: dict[tuple[str, str], FigureReading] = {}
    for pointer, line in read_lines(content):
        name, colon, text = line.partition(":")
        name, text = name.strip().lower(), text.strip()
        if not colon or not text:
            continue
        said.setdefault(name, text)
        for reading in _read_readings(pointer, name, text):
            readings.setdefault((reading.metric, reading.statistic), reading)
    read = FileMeasurements()
    try:
        read.runs.extend(_build_run(said, tuple(readings.values())))
    except RowError as error:
        read.record_refusal("", error)
    return require_results(read, "summary of MLPerf's load generator")


def _read_readings(pointer: str, name: str, text: str) -> list[FigureReading]:
    metric = _RATES.get(name)
    if metric:
        return [FigureReading(pointer, metric, read_number(text), "mean")]
    for pattern, timed in _TIMES:
        match = pattern.fullmatch(name)
        if match is not None:
            statistic = "mean" if match[1] else format_percentile(match[2])
            known = statistic == "mean" or statistic in _SHOWN
            return [FigureReading(pointer, timed, read_number(text) * 1e-9, statistic)] if known else []
    return []


def _build_run(said: dict[str, str], readings: tuple[FigureReading, ...]) -> list[MeasuredFileRun]:
    if "scenario" not in said or "result is" not in said:
        return []
    if said["result is"] != "VALID":
        raise RowError("RESULT_INVALID", "the load generator reports the result as invalid")
    if not said.get("mode", "").startswith("Performance"):
        raise RowError("NOT_PERFORMANCE", "the run is not a performance run")
    scenario = said["scenario"].lower().replace(" ", "")
    known = build_facts(scenario=scenario)
    if scenario == "server":
        rate = said.get("scheduled samples per second") or said.get("target_qps")
        known |= build_facts(
            workload__request_rate_per_second=read_number(rate) if rate else None,
            workload__arrivals={"process": "poisson"},
        )
    elif scenario == "offline":
        samples = read_count(said.get("samples_per_query"))
        known |= build_facts(workload__concurrency=samples, workload__horizon__total_requests=samples)
        # All wait from the start: what a request waits is the rank of its place, no time of the engine.
        readings = tuple(reading for reading in readings if reading.metric != serving.REQUEST)
    elif scenario == "singlestream":
        known |= build_facts(workload__concurrency=1)
    return [MeasuredFileRun("", readings, known)]
