"""Training logs of torchtitan, Megatron-LM, Megatron-DeepSpeed and MLPerf Training.

Iterations of Megatron are milliseconds, its memory is MiB under the name MB; torchtitan prints GiB and tokens
per second of one device, with commas. The first step warms up and is left out where there are others. One
file may hold several runs: a step number that falls, or a device of another capacity, begins the next.
"""

import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from service.formats.measurements.readings import (
    NUMBER,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    build_facts,
    get_member,
    parse_printed_number,
    read_count,
    read_lines,
    read_mapping,
    read_positive,
    require_results,
    select_worst,
)
from service.formats.offers.listed import RowError
from service.planning.units import GIBIBYTE_BYTES, MEBIBYTE_BYTES

STEP: Final = "step_seconds"
RATE: Final = "tokens_per_second_per_device"
SAMPLES: Final = "samples_per_second"
FLOPS: Final = "flops_per_second_per_device"
UTILIZATION: Final = "model_flops_utilization"
ALLOCATED: Final = "allocated_memory_bytes"
RESERVED: Final = "reserved_memory_bytes"
DEVICE: Final = "device_memory_bytes"

_N: Final = rf"({NUMBER})"
# Where a line has the head of a pattern more than once, the first is taken for good: what a later one leads
# to, the first leads to as well, and a search that tried each would read the rest of the line every time.
_TITAN = re.compile(rf"(?>.*?\bstep:\s*+(\d++)\b).*?\bmemory:\s*+{_N}GiB\({_N}%\)\s++tps:\s*+{_N}")
_TITAN_FLOPS = re.compile(rf"\btflops:\s*{_N}")
_TITAN_SHARE = re.compile(rf"\bmfu:\s*{_N}%")
_ITERATION = re.compile(
    rf"(?>.*?\biteration\s++(\d++)/\s*+\d++\s*+\|).*?elapsed time per iteration \((ms|s)\):\s*+{_N}"
)
_GLOBAL = re.compile(r"global batch size:\s*(\d+)")
_SEQUENCE = re.compile(r"actual seqlen:\s*(\d+)")
_MEGATRON_FLOPS = re.compile(rf"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs):\s*{_N}")
_MEMORY = re.compile(
    rf"(?>.*?\[Rank (\d++)\]).*?memory \(MB\) \| allocated: [\d.]++ \| max allocated: {_N} "
    rf"\| reserved: [\d.]++ \| max reserved: {_N}"
)
_WORLD = re.compile(r"using world size: (\d+), data-parallel[- ]size: (\d+)(.*)")
_DEGREES: Final = {
    "parallelism.tensor": re.compile(r"tensor-model-parallel[- ]size: (\d+)"),
    "parallelism.pipeline": re.compile(r"pipeline-model-parallel[- ]size: (\d+)"),
    "parallelism.context": re.compile(r"context-parallel[- ]size: (\d+)"),
}
_ARGUMENT = re.compile(r"(?:^|:)\s++(\w++) \.{3,}+ (\S++)\s*+$")
_ARGUMENTS: Final = {
    "global_batch_size": "workload.global_batch_size",
    "micro_batch_size": "workload.micro_batch_size",
    "seq_length": "workload.sequence_length",
    "world_size": "cluster.accelerator_count",
    "tensor_model_parallel_size": "parallelism.tensor",
    "pipeline_model_parallel_size": "parallelism.pipeline",
    "context_parallel_size": "parallelism.context",
    "expert_model_parallel_size": "parallelism.expert",
    "data_parallel_size": "parallelism.data",
}
_PRECISIONS: Final = ("bf16", "fp16")
_SHARDINGS: Final = {"0": "none", "1": "zero_1", "2": "zero_2", "3": "zero_3"}
_MLLOG: Final = ":::MLLOG "
_OTHER_DEVICE: Final = 0.01


class _LoggedStep(NamedTuple):
    """Readings of one line of a step."""

    number: int
    readings: tuple[FigureReading, ...]
    facts: Mapping[str, RunFact]
    capacity: float | None = None


def measurements_from_training_log(content: str) -> FileMeasurements:
    """The runs of a training log: readings of each step, and their median beside ``of`` no step.

    Raises PlanningError where the log is none of those that are known.
    """
    read = FileMeasurements()
    _read_steps(content, _parse_titan_step, "torchtitan", read)
    _read_megatron(content, read)
    _read_mlperf(content, read)
    return require_results(read, "steps of a training log that this reader knows")


def _read_steps(
    content: str, step_of: Callable[[str, str], _LoggedStep | None], framework: str, read: FileMeasurements
) -> None:
    run: list[_LoggedStep] = []
    for pointer, line in read_lines(content):
        step = step_of(pointer, line)
        if step is None:
            continue
        if run and _is_new_run(run[-1], step):
            _record_run(run, framework, {}, (), read)
            run = []
        run.append(step)
    _record_run(run, framework, {}, (), read)


def _is_new_run(last: _LoggedStep, step: _LoggedStep) -> bool:
    other = last.capacity and step.capacity and abs(step.capacity / last.capacity - 1.0) > _OTHER_DEVICE
    return step.number <= last.number or bool(other)


def _record_run(
    run: list[_LoggedStep],
    framework: str | None,
    said: Mapping[str, RunFact],
    beside: Iterable[FigureReading],
    read: FileMeasurements,
) -> None:
    """A run with the median of each figure over its steps but the first of all."""
    if not run:
        return
    place = run[0].readings[0].pointer
    steady = [step for step in run if step.number > 1]
    if not steady:
        read.record_refusal(place, RowError("WARM_UP_ONLY", "the first step alone only warms up"))
        return
    readings = [reading for step in run for reading in step.readings]
    medians = []
    for metric in dict.fromkeys(reading.metric for step in steady for reading in step.readings):
        values = [one.value for step in steady for one in step.readings if one.metric == metric]
        if metric in (ALLOCATED, RESERVED, DEVICE):
            medians.append(FigureReading(place, metric, max(values), "max"))
        else:
            medians.append(FigureReading(place, metric, statistics.median(values), "p50"))
    known = {**said, "steps": len(steady), **build_facts(workload__framework__name=framework)}
    for step in run:
        known |= step.facts
    read.runs.append(MeasuredFileRun(place, (*medians, *beside, *readings), known))


def _parse_titan_step(pointer: str, line: str) -> _LoggedStep | None:
    match = _TITAN.match(line) if "memory:" in line else None
    if match is None:
        return None
    of = {"step": int(match[1])}
    memory = parse_printed_number(match[2]) * GIBIBYTE_BYTES
    share = parse_printed_number(match[3]) / 100.0
    readings = [
        FigureReading(pointer, RESERVED, memory, of=of),
        FigureReading(pointer, RATE, read_positive(match[4]), of=of),
    ]
    for pattern, metric, scale in ((_TITAN_FLOPS, FLOPS, 1e12), (_TITAN_SHARE, UTILIZATION, 0.01)):
        found = pattern.search(line)
        if found:
            readings.append(FigureReading(pointer, metric, parse_printed_number(found[1]) * scale, of=of))
    capacity = memory / share if share > 0.0 else None
    if capacity is not None:
        readings.append(FigureReading(pointer, DEVICE, capacity, of=of))
    return _LoggedStep(int(match[1]), tuple(readings), {}, capacity)


def _read_megatron(content: str, read: FileMeasurements) -> None:
    run: list[_LoggedStep] = []
    said: dict[str, RunFact] = {}
    peaks: list[FigureReading] = []
    framework = None
    for pointer, line in read_lines(content):
        framework = next((name for name, mark in _MARKS if mark in line), framework)
        peaks.extend(_parse_peaks(pointer, line))
        said |= _parse_layout(line)
        step = _parse_megatron_step(pointer, line)
        if step is None:
            continue
        if run and _is_new_run(run[-1], step):
            _record_run(run, framework, said, _select_worst_peaks(peaks), read)
            run = []
        run.append(step)
    _record_run(run, framework, said, [*_select_worst_peaks(peaks), *peaks], read)


_MARKS: Final = (
    ("megatron_deepspeed", "zero_stage"),
    ("megatron_deepspeed", "[timer.py"),
    ("megatron_lm", "(TFLOP/s/GPU)"),
)
"""Texts that only one of the two frameworks prints."""


def _parse_megatron_step(pointer: str, line: str) -> _LoggedStep | None:
    match = _ITERATION.match(line) if "elapsed time per iteration" in line else None
    if match is None:
        return None
    number, unit = int(match[1]), match[2]
    of = {"step": number}
    readings = [
        FigureReading(pointer, STEP, read_positive(match[3]) * (1e-3 if unit == "ms" else 1.0), of=of)
    ]
    found = _MEGATRON_FLOPS.search(line)
    if found:
        readings.append(FigureReading(pointer, FLOPS, parse_printed_number(found[1]) * 1e12, of=of))
    batch, length = _GLOBAL.search(line), _SEQUENCE.search(line)
    said = build_facts(
        workload__global_batch_size=int(batch[1]) if batch else None,
        workload__sequence_length=int(length[1]) if length else None,
    )
    return _LoggedStep(number, tuple(readings), said)


def _parse_peaks(pointer: str, line: str) -> Iterator[FigureReading]:
    match = _MEMORY.match(line) if "| max reserved: " in line else None
    if match:
        of = {"rank": int(match[1])}
        yield FigureReading(pointer, ALLOCATED, parse_printed_number(match[2]) * MEBIBYTE_BYTES, of=of)
        yield FigureReading(pointer, RESERVED, parse_printed_number(match[3]) * MEBIBYTE_BYTES, of=of)


def _select_worst_peaks(peaks: list[FigureReading]) -> list[FigureReading]:
    """The device that holds the most, of those that print."""
    most = [
        select_worst((one for one in peaks if one.metric == name), largest=True)
        for name in (ALLOCATED, RESERVED)
    ]
    return [one._replace(statistic="max", of={}) for one in most if one is not None]


def _parse_layout(line: str) -> dict[str, RunFact]:
    match = _WORLD.search(line) if "using world size: " in line else None
    if match:
        said: dict[str, RunFact] = {
            "cluster.accelerator_count": int(match[1]),
            "parallelism.data": int(match[2]),
        }
        for name, pattern in _DEGREES.items():
            degree = pattern.search(match[3])
            if degree:
                said[name] = int(degree[1])
        return said
    match = _ARGUMENT.search(line) if " ..." in line else None
    if match is None:
        return {}
    name, value = match[1], match[2]
    if name in _PRECISIONS and value == "True":
        return {"workload.precision": name}
    if name == "zero_stage" and value in _SHARDINGS:
        return {"parallelism.sharding": _SHARDINGS[value]}
    whole = read_count(value) if name in _ARGUMENTS else None
    return {_ARGUMENTS[name]: whole} if whole else {}


def _read_mlperf(content: str, read: FileMeasurements) -> None:
    """Events as JSON behind ``:::MLLOG``; times of day are milliseconds, throughput is samples per second."""
    rates: list[FigureReading] = []
    said: dict[str, RunFact] = {}
    started, place = None, ""
    for pointer, line in read_lines(content):
        event = _parse_event(line)
        key, value, at = event.get("key"), event.get("value"), event.get("time_ms")
        if key == "run_start":
            started, place = at, pointer
        elif key == "run_stop" and isinstance(at, int) and isinstance(started, int):
            if get_member(event, "metadata", "status") == "success":
                rates.append(FigureReading(pointer, "run_seconds", (at - started) / 1000.0))
            else:
                read.record_refusal(pointer, RowError("RESULT_INVALID", "the run did not reach its quality"))
        elif key == "tracked_stats" and read_mapping(value).get("throughput") is not None:
            step = read_count(get_member(event, "metadata", "step")) or 0
            rates.append(
                FigureReading(
                    pointer, SAMPLES, read_positive(read_mapping(value)["throughput"]), of={"step": step}
                )
            )
        elif key in _EVENTS and read_count(value):
            said[_EVENTS[str(key)]] = read_count(value) or 1
        elif key == "submission_benchmark":
            said["benchmark"] = str(value)
    speeds = [reading.value for reading in rates if reading.metric == SAMPLES]
    if speeds:
        rates.insert(0, FigureReading(place, SAMPLES, statistics.median(speeds), "p50"))
    if rates:
        read.runs.append(MeasuredFileRun(place, tuple(rates), said))


_EVENTS: Final = {
    "global_batch_size": "workload.global_batch_size",
    "gradient_accumulation_steps": "workload.gradient_accumulation_steps",
    "max_sequence_length": "workload.sequence_length",
}


def _parse_event(line: str) -> Mapping[str, object]:
    _, marker, text = line.partition(_MLLOG)
    if not marker:
        return {}
    try:
        return read_mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}
