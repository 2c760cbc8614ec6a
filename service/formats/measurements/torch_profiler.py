"""Traces of torch.profiler (Chrome trace JSON): times and durations are microseconds.

Steps are the spans ``ProfilerStep#n`` of the host; the same name on a device is its shadow. The first step of
a trace warms up and is left out where there are others. Kernels of collectives have nccl or rccl in their
name; those that compute while they run are not taken off.
"""

import statistics
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements.readings import (
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    build_facts,
    read_mapping,
    read_number,
    read_sequence,
    require_results,
)
from service.formats.measurements.training_logs import STEP
from service.formats.offers.listed import RowError, parse_document

_STEP: Final = "ProfilerStep#"
_HOST: Final = frozenset({"user_annotation", "Operator", "cpu_op"})
_KERNELS: Final = frozenset({"kernel", "Kernel"})
_MICRO: Final = 1e-6


def measurements_from_torch_profiler(content: str) -> FileMeasurements:
    """Seconds of a step, of its kernels and its collectives; raises PlanningError for other files."""
    whole = parse_document(content)
    root = read_mapping(whole)
    events = read_sequence(whole) or read_sequence(root.get("traceEvents"))
    read = FileMeasurements()
    steps: dict[str, FigureReading] = {}
    busy = {"kernel_busy_seconds": 0.0, "collective_busy_seconds": 0.0}
    for place, event in enumerate(map(read_mapping, events)):
        name, category = str(event.get("name") or ""), event.get("cat")
        if event.get("ph") != "X":
            continue
        if name.startswith(_STEP) and category in _HOST:
            seconds = read_number(event.get("dur")) * _MICRO
            at = {"step": int(name.removeprefix(_STEP)) if name.removeprefix(_STEP).isdigit() else 0}
            steps.setdefault(name, FigureReading(f"/traceEvents/{place}", STEP, seconds, of=at))
        elif category in _KERNELS:
            busy["kernel_busy_seconds"] += read_number(event.get("dur")) * _MICRO
            if "nccl" in name.lower() or "rccl" in name.lower():
                busy["collective_busy_seconds"] += read_number(event.get("dur")) * _MICRO
    if not steps and not busy["kernel_busy_seconds"]:
        return require_results(read, "steps or kernels of torch.profiler")
    read.runs.append(
        MeasuredFileRun(
            "", tuple(_list_readings(steps, busy)), build_facts(accelerator_name=_find_device(root))
        )
    )
    if len(steps) < _ENOUGH:
        read.record_refusal("", RowError("WARM_UP_ONLY", "the first step alone only warms up"))
    return read


_ENOUGH: Final = 2


def _list_readings(steps: Mapping[str, FigureReading], busy: Mapping[str, float]) -> Iterator[FigureReading]:
    each = list(steps.values())
    if len(each) >= _ENOUGH:
        yield FigureReading(each[1].pointer, STEP, statistics.median(one.value for one in each[1:]), "p50")
    for metric, seconds in busy.items():
        if seconds > 0.0:
            yield FigureReading("/traceEvents", metric, seconds / max(len(each), 1), "mean", {"of": "step"})
    yield from each


def _find_device(root: Mapping[str, object]) -> str | None:
    names = {str(read_mapping(device).get("name")) for device in read_sequence(root.get("deviceProperties"))}
    return names.pop() if len(names) == 1 else None
