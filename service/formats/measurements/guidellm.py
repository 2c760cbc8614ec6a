"""Reports of GuideLLM as JSON, one run for each benchmark; versions 0.2 to 0.8 (report versions 1 and 2).

Names ending in ``_ms`` are milliseconds, ``request_latency`` is seconds. ``time_per_output_token_ms`` divides
a whole request by its tokens, prompt included: the time per token behind the first is
``inter_token_latency_ms``. Only successful requests count.
"""

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
    check_part_count,
    format_percentile,
    get_member,
    read_count,
    read_mapping,
    read_number,
    read_positive,
    read_sequence,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document

_TIMES: Final = (
    ("time_to_first_token_ms", serving.FIRST_TOKEN, 1e-3),
    ("inter_token_latency_ms", serving.OUTPUT_TOKEN, 1e-3),
    ("request_latency", serving.REQUEST, 1.0),
)
_RATES: Final = (
    ("requests_per_second", serving.REQUESTS),
    ("output_tokens_per_second", serving.OUTPUT),
    ("tokens_per_second", serving.TOTAL),
)
_SHOWN: Final = ("p50", "p90", "p95", "p99")


def measurements_from_guidellm(content: str) -> FileMeasurements:
    """The benchmarks of a GuideLLM report; raises PlanningError for other files."""
    root = read_mapping(parse_document(content))
    read = FileMeasurements()
    for place, each in enumerate(check_part_count(read_sequence(root.get("benchmarks")))):
        pointer = f"/benchmarks/{place}"
        try:
            read.runs.append(_read_run(pointer, read_mapping(each), root))
        except RowError as error:
            read.record_refusal(pointer, error)
    return require_results(read, "benchmarks of GuideLLM")


def _read_run(pointer: str, benchmark: Mapping[str, object], root: Mapping[str, object]) -> MeasuredFileRun:
    metrics = read_mapping(benchmark.get("metrics"))
    readings = [*_read_times(f"{pointer}/metrics", metrics), *_read_rates(f"{pointer}/metrics", metrics)]
    if not readings:
        raise RowError("NOTHING_MEASURED", "no request of the benchmark was successful")
    return MeasuredFileRun(pointer, tuple(readings), _read_facts(benchmark, metrics, root))


def _read_times(pointer: str, metrics: Mapping[str, object]) -> Iterator[FigureReading]:
    for name, metric, scale in _TIMES:
        found = read_mapping(get_member(metrics, name, "successful"))
        if not read_count(found.get("count")):
            continue
        yield FigureReading(pointer, metric, read_positive(found.get("mean")) * scale, "mean")
        for key, value in read_mapping(found.get("percentiles")).items():
            if key in _SHOWN:
                yield FigureReading(pointer, metric, read_positive(value) * scale, format_percentile(key))


def _read_rates(pointer: str, metrics: Mapping[str, object]) -> Iterator[FigureReading]:
    for name, metric in _RATES:
        found = read_mapping(get_member(metrics, name, "successful"))
        if read_count(found.get("count")):
            yield FigureReading(pointer, metric, read_positive(found.get("mean")), "mean")


def _read_facts(
    benchmark: Mapping[str, object], metrics: Mapping[str, object], root: Mapping[str, object]
) -> dict[str, RunFact]:
    config = read_mapping(benchmark.get("config") or benchmark.get("args"))
    model = (
        get_member(config, "backend", "model")
        or get_member(benchmark, "worker", "backend_model")
        or get_member(root, "args", "model")
    )
    return build_facts(
        model_name=str(model) if model else None,
        workload__input_tokens=_read_length(metrics, "prompt_token_count"),
        workload__output_tokens=_read_length(metrics, "output_token_count"),
        workload__horizon__total_requests=read_count(get_member(metrics, "request_totals", "successful")),
    ) | _read_load(read_mapping(config.get("strategy")), benchmark, metrics)


def _read_length(metrics: Mapping[str, object], name: str) -> RunFact | None:
    found = read_mapping(get_member(metrics, name, "successful"))
    if not read_count(found.get("count")):
        return None
    return build_token_length(read_number(found.get("mean")), read_number(found.get("std_dev") or 0.0))


def _read_load(
    strategy: Mapping[str, object], benchmark: Mapping[str, object], metrics: Mapping[str, object]
) -> dict[str, RunFact]:
    kind = strategy.get("type_") or strategy.get("kind") or strategy.get("type")
    if kind == "synchronous":
        return build_facts(workload__concurrency=1)
    if kind == "concurrent":
        streams = read_count(strategy.get("streams")) or read_count(strategy.get("max_concurrency"))
        return build_facts(workload__concurrency=streams)
    if kind in ("constant", "poisson", "async"):
        process = "poisson" if kind == "poisson" else "uniform"
        rate = strategy.get("rate")
        return build_facts(
            workload__request_rate_per_second=read_positive(rate) if rate is not None else None,
            workload__arrivals={"process": process},
        )
    if kind == "throughput":
        made = read_count(get_member(benchmark, "scheduler_state", "created_requests"))
        limit = read_count(strategy.get("max_concurrency")) or made
        total = read_count(get_member(metrics, "request_totals", "total"))
        return build_facts(workload__concurrency=min(limit, total) if limit and total else limit or total)
    return {}
