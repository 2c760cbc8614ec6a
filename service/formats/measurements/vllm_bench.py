"""Results of ``vllm bench serve``, ``throughput`` and ``latency`` and of InferenceX, as JSON.

Names of ``serve`` end in ``_ms`` and are milliseconds, those of InferenceX end in none and are seconds; a
file with the names of one is refused as the other. ``tokens_per_second`` of ``throughput`` counts prompts
and answers. ``latency`` and ``throughput`` name neither model, lengths nor batch. The rows that InferenceX
publishes give rates by device and say layout, engine and lengths.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from service.formats.measurements import serving
from service.formats.measurements.readings import (
    NOT_A_RESULT,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    build_token_length,
    check_part_count,
    format_percentile,
    read_count,
    read_mapping,
    read_number,
    read_part_lines,
    read_positive,
    require_results,
)
from service.formats.offers.listed import RowError, parse_document
from service.planning.errors import PlanningError

_TIMES: Final = {
    "ttft": serving.FIRST_TOKEN,
    "tpot": serving.OUTPUT_TOKEN,
    "itl": serving.GAP,
    "e2el": serving.REQUEST,
    "e2e_latency": serving.REQUEST,
}
_RATES: Final = {
    "request_throughput": serving.REQUESTS,
    "output_throughput": serving.OUTPUT,
    "total_token_throughput": serving.TOTAL,
    "input_throughput": serving.INPUT,
}
_SERVED = re.compile(rf"(mean|median|p\d+(?:\.\d+)?)_({'|'.join(_TIMES)})(_ms)?")
_ENGINES: Final = frozenset({"vllm", "sglang", "tensorrt-llm"})


def measurements_from_vllm_bench(content: str) -> FileMeasurements:
    """The runs of one of the three programs; raises PlanningError for other files."""
    return require_results(_read_results(content, _read_vllm_run), "results of vllm bench")


def measurements_from_inferencex(content: str) -> FileMeasurements:
    """The runs of results or published rows of InferenceX; raises PlanningError for other files."""
    return require_results(_read_results(content, _read_inferencex_run), "results of InferenceX")


def _read_results(
    content: str, read_one: Callable[[Mapping[str, object]], MeasuredFileRun]
) -> FileMeasurements:
    read = FileMeasurements()
    for pointer, result in _read_documents(content):
        try:
            read.runs.append(read_one(result)._replace(pointer=pointer))
        except RowError as error:
            read.record_refusal(pointer, error)
    return read


def _read_documents(content: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """One object, a list of them, or one on each line."""
    try:
        whole = parse_document(content)
    except PlanningError:
        yield from (
            (pointer, read_mapping(parse_document(line))) for pointer, line in read_part_lines(content)
        )
        return
    if isinstance(whole, list):
        yield from ((f"/{place}", read_mapping(each)) for place, each in enumerate(check_part_count(whole)))
    else:
        yield "", read_mapping(whole)


def _read_serving_metrics(result: Mapping[str, object], *, milliseconds: bool) -> list[FigureReading]:
    """Times of requests by name, and rates."""
    readings = []
    for name, value in result.items():
        match = _SERVED.fullmatch(name)
        if match is None or value is None:
            continue
        if (match[3] is not None) is not milliseconds:
            unit = "milliseconds" if match[3] else "seconds"
            raise RowError("ANOTHER_UNIT", f"the names of this file are those of {unit}: another format")
        if read_number(value) <= 0.0:
            continue
        statistic = {"mean": "mean", "median": "p50"}.get(match[1]) or format_percentile(match[1])
        seconds = read_number(value) * (1e-3 if milliseconds else 1.0)
        readings.append(FigureReading(f"/{name}", _TIMES[match[2]], seconds, statistic))
    readings.extend(
        FigureReading(f"/{name}", metric, read_positive(result[name]), "mean")
        for name, metric in _RATES.items()
        if result.get(name) is not None
    )
    return readings


def _read_vllm_run(result: Mapping[str, object]) -> MeasuredFileRun:
    if "avg_latency" in result:
        return _read_latency_run(result)
    if "elapsed_time" in result and "tokens_per_second" in result:
        return _read_throughput_run(result)
    return _build_serving_run(result, _read_serving_metrics(result, milliseconds=True))


def _build_serving_run(result: Mapping[str, object], readings: list[FigureReading]) -> MeasuredFileRun:
    if not readings:
        raise RowError(NOT_A_RESULT, "the result contains no figure of requests")
    completed = read_count(result.get("completed"))
    if completed is None:
        raise RowError("NOTHING_MEASURED", "no request was completed")
    lengths = {
        f"workload.{side}_tokens": fact
        for side in ("input", "output")
        if result.get(f"total_{side}_tokens") is not None
        if (fact := build_token_length(read_number(result[f"total_{side}_tokens"]) / completed)) is not None
    }
    model = result.get("model_id")
    said = build_facts(model_name=str(model) if model else None, **_read_engine(result))
    said |= lengths | _read_load(result, completed)
    return MeasuredFileRun(
        "", tuple(readings), said | build_facts(workload__horizon__total_requests=completed)
    )


def _read_engine(result: Mapping[str, object]) -> dict[str, RunFact | None]:
    named = str(result.get("backend") or result.get("endpoint_type") or "")
    return {"workload__engine__name": named if named in _ENGINES else None}


def _read_load(result: Mapping[str, object], completed: int) -> dict[str, RunFact]:
    """Arrivals at a finite rate, else requests at a time: all of them where no limit is set."""
    limit = read_count(result.get("max_concurrency"))
    rate = result.get("request_rate")
    if rate is None or str(rate).lower() in _ALL_AT_ONCE:
        return build_facts(workload__concurrency=limit or read_count(result.get("num_prompts")) or completed)
    process: RunFact = {"process": "poisson"}
    burstiness = result.get("burstiness")
    if burstiness is not None and read_number(burstiness) > _EVEN_BURSTINESS:
        process = {"process": "uniform"}
    return build_facts(workload__request_rate_per_second=read_positive(rate), workload__arrivals=process)


_ALL_AT_ONCE: Final = frozenset({"inf", "infinity"})
_EVEN_BURSTINESS: Final = 100.0
"""Shape of the gamma distribution of gaps from which arrivals are even; 1 is a Poisson process."""


def _read_latency_run(result: Mapping[str, object]) -> MeasuredFileRun:
    """Whole batches, one after the other."""
    readings = [FigureReading("/avg_latency", serving.REQUEST, read_positive(result["avg_latency"]), "mean")]
    readings.extend(
        FigureReading("/percentiles", serving.REQUEST, read_positive(value), format_percentile(name))
        for name, value in read_mapping(result.get("percentiles")).items()
    )
    return MeasuredFileRun("", tuple(readings), {"scenario": "batch"})


def _read_throughput_run(result: Mapping[str, object]) -> MeasuredFileRun:
    """All requests from the start; tokens of prompts and answers."""
    readings = (
        FigureReading(
            "/tokens_per_second", serving.TOTAL, read_positive(result["tokens_per_second"]), "mean"
        ),
        FigureReading(
            "/requests_per_second", serving.REQUESTS, read_positive(result.get("requests_per_second")), "mean"
        ),
        FigureReading("/elapsed_time", "run_seconds", read_positive(result["elapsed_time"])),
    )
    requests = read_count(result.get("num_requests"))
    said = build_facts(workload__concurrency=requests, workload__horizon__total_requests=requests)
    return MeasuredFileRun("", readings, said)


def _read_inferencex_run(result: Mapping[str, object]) -> MeasuredFileRun:
    if "tput_per_gpu" not in result:
        return _build_serving_run(result, _read_serving_metrics(result, milliseconds=False))
    return _read_published_row(result)


def _read_published_row(row: Mapping[str, object]) -> MeasuredFileRun:
    """A row as it is published: rates are those of one device."""
    devices = read_count(row.get("num_gpus")) or read_count(row.get("tp"))
    if devices is None:
        raise RowError("DEVICES_UNKNOWN", "rates are by device, but the row does not state their number")
    rates = (("tput_per_gpu", serving.TOTAL), ("output_tput_per_gpu", serving.OUTPUT))
    readings = _read_serving_metrics(row, milliseconds=False)
    readings.extend(
        FigureReading(f"/{name}", metric, read_positive(row[name]) * devices, "mean")
        for name, metric in rates
        if row.get(name) is not None
    )
    model, part, engine = row.get("model"), row.get("hw"), str(row.get("framework") or "")
    engine = {"trt": "tensorrt-llm", "trtllm": "tensorrt-llm"}.get(engine, engine)
    said = build_facts(
        model_name=str(model) if model else None,
        accelerator_name=str(part) if part else None,
        cluster__accelerator_count=devices,
        parallelism__tensor=read_count(row.get("tp")),
        workload__concurrency=read_count(row.get("conc")),
        workload__input_tokens=read_count(row.get("isl")),
        workload__output_tokens=read_count(row.get("osl")),
        workload__weight_precision=str(row["precision"]) if row.get("precision") else None,
        workload__engine__name=engine if engine in _ENGINES else None,
    )
    return MeasuredFileRun("", tuple(readings), said)
