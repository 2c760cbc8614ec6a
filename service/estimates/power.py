"""What a device draws in a run: from what it does where that is known."""

from typing import NamedTuple

from service.estimates.run import Run, step_tokens
from service.planning.curves import ReferenceCurves
from service.planning.operators import machine_of
from service.planning.power import (
    DeviceWork,
    idle_watts,
    is_limited,
    mean_device_watts,
    step_works,
)
from service.planning.quantity import Basis, Quantity
from service.planning.training import ModelledTime
from service.planning.workload import TrainingWorkload
from service.questions.catalog import Catalog
from service.questions.hardware import compute_peak

_CITATION = "power of a device from the shares of its time in which it computes, moves bytes and sends"
_LIMITED = "; at the full clock a part of the work would draw more than the power limit, so the clock falls"


class Draw(NamedTuple):
    """Mean watts of one device over a run."""

    watts: Quantity
    limited: bool
    """Whether a part of the work would draw more than the limit at the full clock."""


def device_draw(run: Run, catalog: Catalog) -> Draw | None:
    """The draw that follows from the work of the run; None where its operators are not known.

    So it is under an assumed efficiency and for a bare number of parameters.
    """
    workload, limit = run.resolved.workload, run.cluster.accelerator.power_limit_watts
    if limit is None:
        return None
    if isinstance(workload, TrainingWorkload):
        works = _trained(run, workload, catalog)
        return None if works is None else _drawn(works, run, limit, catalog)
    return None


def _trained(run: Run, workload: TrainingWorkload, catalog: Catalog) -> tuple[DeviceWork, ...] | None:
    """One step, and what it waits for data."""
    time, cluster = run.working or run.training, run.cluster
    machine = machine_of(cluster.accelerator, catalog.curves.calibration.operators)
    if not isinstance(time, ModelledTime) or run.training is None or machine is None:
        return None
    number_format, peak = compute_peak(cluster, workload)
    tokens = step_tokens(run.resolved, workload)
    flops = time.flops.hardware * tokens / cluster.accelerator_count
    works = step_works(
        time.step,
        matrix_seconds=flops / (peak * machine.rates.matrix_peak[number_format]),
        bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
    )
    stalled = (run.training.seconds_per_token.value - time.seconds_per_token.value) * tokens
    return (*works, DeviceWork(stalled, 0.0))


def _drawn(works: tuple[DeviceWork, ...], run: Run, limit: float, catalog: Catalog) -> Draw:
    """The mean over works that follow each other, with its interval."""
    generation = run.cluster.accelerator.generation
    rates = catalog.curves.calibration.power.rates(generation)
    value = mean_device_watts(works, limit, rates)
    watts = _around(value, idle_watts(limit, rates), limit, generation, catalog.curves)
    limited = any(is_limited(work, limit, rates) for work in works if work.busy_seconds > 0.0)
    run.notes.sources.append(
        {
            "pointer": "/cluster/accelerator",
            "kind": "reference_curve",
            "id": "reference",
            "version": 1,
            "origin": "shipped",
            "citation": _CITATION + _LIMITED * limited,
        }
    )
    return Draw(watts, limited)


def _around(value: float, idle: float, limit: float, generation: str, curves: ReferenceCurves) -> Quantity:
    """The interval that rows outside of the fit leave, within what a device can draw."""
    measured = generation in curves.calibration.power.measured
    spread = curves.device_power if measured else curves.device_power_elsewhere
    drawn = spread.around(value, Basis.REFERENCE if measured else Basis.DATASHEET)
    return drawn._replace(low=max(idle, drawn.low), high=min(limit, drawn.high))
