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
    Fact,
    Measurements,
    Reading,
    Run,
    count,
    facts,
    length,
    lines_with_parts,
    mapping,
    number,
    parts,
    percentile_name,
    positive,
    required,
)
from service.formats.offers.listed import RowError, document
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


def measurements_from_vllm_bench(content: str) -> Measurements:
    """The runs of one of the three programs; raises PlanningError for other files."""
    return required(_read(content, _vllm), "results of vllm bench")


def measurements_from_inferencex(content: str) -> Measurements:
    """The runs of results or published rows of InferenceX; raises PlanningError for other files."""
    return required(_read(content, _inferencex), "results of InferenceX")


def _read(content: str, read_one: Callable[[Mapping[str, object]], Run]) -> Measurements:
    read = Measurements()
    for pointer, result in _documents(content):
        try:
            read.runs.append(read_one(result)._replace(pointer=pointer))
        except RowError as error:
            read.refuse(pointer, error)
    return read


def _documents(content: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """One object, a list of them, or one on each line."""
    try:
        whole = document(content)
    except PlanningError:
        yield from ((pointer, mapping(document(line))) for pointer, line in lines_with_parts(content))
        return
    if isinstance(whole, list):
        yield from ((f"/{place}", mapping(each)) for place, each in enumerate(parts(whole)))
    else:
        yield "", mapping(whole)


def _served(result: Mapping[str, object], *, milliseconds: bool) -> list[Reading]:
    """Times of requests by name, and rates."""
    readings = []
    for name, value in result.items():
        match = _SERVED.fullmatch(name)
        if match is None or value is None:
            continue
        if (match[3] is not None) is not milliseconds:
            unit = "milliseconds" if match[3] else "seconds"
            raise RowError("ANOTHER_UNIT", f"the names of this file are those of {unit}: another format")
        if number(value) <= 0.0:
            continue
        statistic = {"mean": "mean", "median": "p50"}.get(match[1]) or percentile_name(match[1])
        seconds = number(value) * (1e-3 if milliseconds else 1.0)
        readings.append(Reading(f"/{name}", _TIMES[match[2]], seconds, statistic))
    readings.extend(
        Reading(f"/{name}", metric, positive(result[name]), "mean")
        for name, metric in _RATES.items()
        if result.get(name) is not None
    )
    return readings


def _vllm(result: Mapping[str, object]) -> Run:
    if "avg_latency" in result:
        return _latency(result)
    if "elapsed_time" in result and "tokens_per_second" in result:
        return _throughput(result)
    return _of_serving(result, _served(result, milliseconds=True))


def _of_serving(result: Mapping[str, object], readings: list[Reading]) -> Run:
    if not readings:
        raise RowError(NOT_A_RESULT, "the result holds no figure of requests")
    completed = count(result.get("completed"))
    if completed is None:
        raise RowError("NOTHING_MEASURED", "no request was completed")
    lengths = {
        f"workload.{side}_tokens": fact
        for side in ("input", "output")
        if result.get(f"total_{side}_tokens") is not None
        if (fact := length(number(result[f"total_{side}_tokens"]) / completed)) is not None
    }
    model = result.get("model_id")
    said = facts(model_name=str(model) if model else None, **_engine(result))
    said |= lengths | _load(result, completed)
    return Run("", tuple(readings), said | facts(workload__horizon__total_requests=completed))


def _engine(result: Mapping[str, object]) -> dict[str, Fact | None]:
    named = str(result.get("backend") or result.get("endpoint_type") or "")
    return {"workload__engine__name": named if named in _ENGINES else None}


def _load(result: Mapping[str, object], completed: int) -> dict[str, Fact]:
    """Arrivals at a finite rate, else requests at a time: all of them where no limit is set."""
    limit = count(result.get("max_concurrency"))
    rate = result.get("request_rate")
    if rate is None or str(rate).lower() in _ALL_AT_ONCE:
        return facts(workload__concurrency=limit or count(result.get("num_prompts")) or completed)
    process: Fact = {"process": "poisson"}
    burstiness = result.get("burstiness")
    if burstiness is not None and number(burstiness) > _EVEN_BURSTINESS:
        process = {"process": "uniform"}
    return facts(workload__request_rate_per_second=positive(rate), workload__arrivals=process)


_ALL_AT_ONCE: Final = frozenset({"inf", "infinity"})
_EVEN_BURSTINESS: Final = 100.0
"""Shape of the gamma distribution of gaps from which arrivals are even; 1 is a Poisson process."""


def _latency(result: Mapping[str, object]) -> Run:
    """Whole batches, one after the other."""
    readings = [Reading("/avg_latency", serving.REQUEST, positive(result["avg_latency"]), "mean")]
    readings.extend(
        Reading("/percentiles", serving.REQUEST, positive(value), percentile_name(name))
        for name, value in mapping(result.get("percentiles")).items()
    )
    return Run("", tuple(readings), {"scenario": "batch"})


def _throughput(result: Mapping[str, object]) -> Run:
    """All requests from the start; tokens of prompts and answers."""
    readings = (
        Reading("/tokens_per_second", serving.TOTAL, positive(result["tokens_per_second"]), "mean"),
        Reading(
            "/requests_per_second", serving.REQUESTS, positive(result.get("requests_per_second")), "mean"
        ),
        Reading("/elapsed_time", "run_seconds", positive(result["elapsed_time"])),
    )
    requests = count(result.get("num_requests"))
    said = facts(workload__concurrency=requests, workload__horizon__total_requests=requests)
    return Run("", readings, said)


def _inferencex(result: Mapping[str, object]) -> Run:
    if "tput_per_gpu" not in result:
        return _of_serving(result, _served(result, milliseconds=False))
    return _published(result)


def _published(row: Mapping[str, object]) -> Run:
    """A row as it is published: rates are those of one device."""
    devices = count(row.get("num_gpus")) or count(row.get("tp"))
    if devices is None:
        raise RowError("DEVICES_UNKNOWN", "rates are by device, and the row does not say how many there are")
    rates = (("tput_per_gpu", serving.TOTAL), ("output_tput_per_gpu", serving.OUTPUT))
    readings = _served(row, milliseconds=False)
    readings.extend(
        Reading(f"/{name}", metric, positive(row[name]) * devices, "mean")
        for name, metric in rates
        if row.get(name) is not None
    )
    model, part, engine = row.get("model"), row.get("hw"), str(row.get("framework") or "")
    engine = {"trt": "tensorrt-llm", "trtllm": "tensorrt-llm"}.get(engine, engine)
    said = facts(
        model_name=str(model) if model else None,
        accelerator_name=str(part) if part else None,
        cluster__accelerator_count=devices,
        parallelism__tensor=count(row.get("tp")),
        workload__concurrency=count(row.get("conc")),
        workload__input_tokens=count(row.get("isl")),
        workload__output_tokens=count(row.get("osl")),
        workload__weight_precision=str(row["precision"]) if row.get("precision") else None,
        workload__engine__name=engine if engine in _ENGINES else None,
    )
    return Run("", tuple(readings), said)
