"""Reports of GuideLLM as JSON, one run for each benchmark; versions 0.2 to 0.8 (report versions 1 and 2).

Names ending in ``_ms`` are milliseconds, ``request_latency`` is seconds. ``time_per_output_token_ms`` divides
a whole request by its tokens, prompt included: the time per token behind the first is
``inter_token_latency_ms``. Only successful requests count.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements import serving
from service.formats.measurements.readings import (
    Fact,
    Measurements,
    Reading,
    Run,
    count,
    facts,
    length,
    mapping,
    member,
    number,
    parts,
    percentile_name,
    positive,
    required,
    sequence,
)
from service.formats.offers.listed import RowError, document

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


def measurements_from_guidellm(content: str) -> Measurements:
    """The benchmarks of a GuideLLM report; raises PlanningError for other files."""
    root = mapping(document(content))
    read = Measurements()
    for place, each in enumerate(parts(sequence(root.get("benchmarks")))):
        pointer = f"/benchmarks/{place}"
        try:
            read.runs.append(_run(pointer, mapping(each), root))
        except RowError as error:
            read.refuse(pointer, error)
    return required(read, "benchmarks of GuideLLM")


def _run(pointer: str, benchmark: Mapping[str, object], root: Mapping[str, object]) -> Run:
    metrics = mapping(benchmark.get("metrics"))
    readings = [*_times(f"{pointer}/metrics", metrics), *_rates(f"{pointer}/metrics", metrics)]
    if not readings:
        raise RowError("NOTHING_MEASURED", "no request of the benchmark was successful")
    return Run(pointer, tuple(readings), _facts(benchmark, metrics, root))


def _times(pointer: str, metrics: Mapping[str, object]) -> Iterator[Reading]:
    for name, metric, scale in _TIMES:
        found = mapping(member(metrics, name, "successful"))
        if not count(found.get("count")):
            continue
        yield Reading(pointer, metric, positive(found.get("mean")) * scale, "mean")
        for key, value in mapping(found.get("percentiles")).items():
            if key in _SHOWN:
                yield Reading(pointer, metric, positive(value) * scale, percentile_name(key))


def _rates(pointer: str, metrics: Mapping[str, object]) -> Iterator[Reading]:
    for name, metric in _RATES:
        found = mapping(member(metrics, name, "successful"))
        if count(found.get("count")):
            yield Reading(pointer, metric, positive(found.get("mean")), "mean")


def _facts(
    benchmark: Mapping[str, object], metrics: Mapping[str, object], root: Mapping[str, object]
) -> dict[str, Fact]:
    config = mapping(benchmark.get("config") or benchmark.get("args"))
    model = (
        member(config, "backend", "model")
        or member(benchmark, "worker", "backend_model")
        or member(root, "args", "model")
    )
    return facts(
        model_name=str(model) if model else None,
        workload__input_tokens=_length(metrics, "prompt_token_count"),
        workload__output_tokens=_length(metrics, "output_token_count"),
        workload__horizon__total_requests=count(member(metrics, "request_totals", "successful")),
    ) | _load(mapping(config.get("strategy")), benchmark, metrics)


def _length(metrics: Mapping[str, object], name: str) -> Fact | None:
    found = mapping(member(metrics, name, "successful"))
    if not count(found.get("count")):
        return None
    return length(number(found.get("mean")), number(found.get("std_dev") or 0.0))


def _load(
    strategy: Mapping[str, object], benchmark: Mapping[str, object], metrics: Mapping[str, object]
) -> dict[str, Fact]:
    kind = strategy.get("type_") or strategy.get("kind") or strategy.get("type")
    if kind == "synchronous":
        return facts(workload__concurrency=1)
    if kind == "concurrent":
        streams = count(strategy.get("streams")) or count(strategy.get("max_concurrency"))
        return facts(workload__concurrency=streams)
    if kind in ("constant", "poisson", "async"):
        process = "poisson" if kind == "poisson" else "uniform"
        rate = strategy.get("rate")
        return facts(
            workload__request_rate_per_second=positive(rate) if rate is not None else None,
            workload__arrivals={"process": process},
        )
    if kind == "throughput":
        made = count(member(benchmark, "scheduler_state", "created_requests"))
        limit = count(strategy.get("max_concurrency")) or made
        total = count(member(metrics, "request_totals", "total"))
        return facts(workload__concurrency=min(limit, total) if limit and total else limit or total)
    return {}
