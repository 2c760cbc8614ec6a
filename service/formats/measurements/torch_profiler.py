"""Traces of torch.profiler (Chrome trace JSON): times and durations are microseconds.

Steps are the spans ``ProfilerStep#n`` of the host; the same name on a device is its shadow. The first step of
a trace warms up and is left out where there are others. Kernels of collectives have nccl or rccl in their
name; those that compute while they run are not taken off.
"""

import statistics
from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.measurements.readings import (
    Measurements,
    Reading,
    Run,
    facts,
    mapping,
    number,
    required,
    sequence,
)
from service.formats.measurements.training_logs import STEP
from service.formats.offers.listed import RowError, document

_STEP: Final = "ProfilerStep#"
_HOST: Final = frozenset({"user_annotation", "Operator", "cpu_op"})
_KERNELS: Final = frozenset({"kernel", "Kernel"})
_MICRO: Final = 1e-6


def measurements_from_torch_profiler(content: str) -> Measurements:
    """Seconds of a step, of its kernels and its collectives; raises PlanningError for other files."""
    whole = document(content)
    root = mapping(whole)
    events = sequence(whole) or sequence(root.get("traceEvents"))
    read = Measurements()
    steps: dict[str, Reading] = {}
    busy = {"kernel_busy_seconds": 0.0, "collective_busy_seconds": 0.0}
    for place, event in enumerate(map(mapping, events)):
        name, category = str(event.get("name") or ""), event.get("cat")
        if event.get("ph") != "X":
            continue
        if name.startswith(_STEP) and category in _HOST:
            seconds = number(event.get("dur")) * _MICRO
            at = {"step": int(name.removeprefix(_STEP)) if name.removeprefix(_STEP).isdigit() else 0}
            steps.setdefault(name, Reading(f"/traceEvents/{place}", STEP, seconds, of=at))
        elif category in _KERNELS:
            busy["kernel_busy_seconds"] += number(event.get("dur")) * _MICRO
            if "nccl" in name.lower() or "rccl" in name.lower():
                busy["collective_busy_seconds"] += number(event.get("dur")) * _MICRO
    if not steps and not busy["kernel_busy_seconds"]:
        return required(read, "steps or kernels of torch.profiler")
    read.runs.append(Run("", tuple(_readings(steps, busy)), facts(accelerator_name=_device(root))))
    if len(steps) < _ENOUGH:
        read.refuse("", RowError("WARM_UP_ONLY", "the first step alone says nothing of the others"))
    return read


_ENOUGH: Final = 2


def _readings(steps: Mapping[str, Reading], busy: Mapping[str, float]) -> Iterator[Reading]:
    each = list(steps.values())
    if len(each) >= _ENOUGH:
        yield Reading(each[1].pointer, STEP, statistics.median(one.value for one in each[1:]), "p50")
    for metric, seconds in busy.items():
        if seconds > 0.0:
            yield Reading("/traceEvents", metric, seconds / max(len(each), 1), "mean", {"of": "step"})
    yield from each


def _device(root: Mapping[str, object]) -> str | None:
    names = {str(mapping(device).get("name")) for device in sequence(root.get("deviceProperties"))}
    return names.pop() if len(names) == 1 else None
