"""What a device draws in a run: from what it does where that is known."""

from typing import NamedTuple

from service.planning.cases import ForwardPassCase, InferenceCase, ServingCase
from service.planning.energy.power import (
    DeviceWork,
    idle_watts,
    is_limited,
    iteration_work,
    mean_device_watts,
    pass_work,
    step_works,
)
from service.planning.estimates.calibrations import note_power
from service.planning.estimates.devices import compute_peak
from service.planning.estimates.disaggregated import DisaggregatedServing
from service.planning.estimates.passes import Passing
from service.planning.estimates.runs import ForwardPassRun, Run, TrainingRun
from service.planning.estimates.serving import Serving
from service.planning.hardware.curves import ReferenceCurves
from service.planning.operators import machine_of
from service.planning.quantity import Basis, Quantity, Spread
from service.planning.training import ModelledTime

_CITATION = "power of a device from the shares of its time in which it computes, moves bytes and sends"
_LIMITED = "; at the full clock a part of the work would draw more than the power limit, so the clock falls"


class Draw(NamedTuple):
    """Mean watts of one device over a run."""

    watts: Quantity
    limited: bool
    """Whether a part of the work would draw more than the limit at the full clock."""


def estimate_draw(run: Run) -> Draw | None:
    """The draw that follows from the work of the run; None where its operators are not known.

    So it is under an assumed efficiency and for a bare number of parameters.
    """
    curves, limit = run.case.curves, run.case.cluster.accelerator.power_limit_watts
    if limit is None:
        return None
    if isinstance(run, TrainingRun):
        works, error = list_training_works(run), curves.device_power
    elif isinstance(run, ForwardPassRun):
        if run.passing is None or run.passing.basis is Basis.ASSUMED:
            return None
        works, error = _list_pass_works(run.case, run.passing), curves.served_power
    elif isinstance(run.serving, Serving):
        works, error = _list_serving_works(run.case, run.serving), run.serving.spreads.power
    else:
        return None
    return _average_draw(works, run, limit, error) if works else None


def list_training_works(run: TrainingRun) -> tuple[DeviceWork, ...] | None:
    """One step, and what it waits for data."""
    time, case = run.computing, run.case
    machine = machine_of(case.cluster.accelerator, case.curves.calibration.operators)
    if not isinstance(time, ModelledTime) or run.time is None or machine is None:
        return None
    number_format, peak = compute_peak(case.cluster, case.workload)
    tokens = case.step_tokens
    flops = time.flops.hardware * tokens / case.cluster.accelerator_count
    works = step_works(
        time.step,
        matrix_seconds=flops / (peak * machine.rates.matrix_peak[number_format]),
        bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
    )
    stalled = (run.time.seconds_per_token.value - time.seconds_per_token.value) * tokens
    return (*works, DeviceWork(stalled, 0.0))


def _sustained_flops(case: InferenceCase) -> float | None:
    """FLOP/s that matrices reach on the device; None where its bandwidth is not known."""
    machine = machine_of(case.cluster.accelerator, case.curves.calibration.operators)
    if machine is None:
        return None
    number_format, peak = compute_peak(case.cluster, case.workload)
    return peak * machine.rates.matrix_peak[number_format]


def _list_serving_works(case: ServingCase, serving: Serving) -> tuple[DeviceWork, ...] | None:
    """A second: iterations as far as replicas have requests, and none."""
    sustained = _sustained_flops(case)
    if sustained is None:
        return None
    # A disaggregated system is one server, whatever its sides consist of.
    busy = 1.0 if isinstance(serving, DisaggregatedServing) else serving.replicas / case.replicas
    works, idle = [], 1.0
    for share, time in serving.computing:
        work = iteration_work(time, sustained_flops_per_second=sustained, is_narrow=case.workload.is_narrow)
        works.append(work.within(busy * share))
        idle -= busy * share
    return (*works, DeviceWork(idle, 0.0))


def _list_pass_works(case: ForwardPassCase, passing: Passing) -> tuple[DeviceWork, ...] | None:
    """A second: passes at the mean batch as far as replicas have requests, and none."""
    sustained = _sustained_flops(case)
    if sustained is None:
        return None
    works = [
        pass_work(part, sustained_flops_per_second=sustained, is_narrow=case.workload.is_narrow)
        for part in passing.parts
    ]
    share = passing.batched.utilization * passing.replicas / case.layout.data
    whole = sum(work.seconds for work in works)
    within = [work.within(share * work.seconds / whole) for work in works]
    return (*within, DeviceWork(1.0 - share, 0.0))


def _average_draw(works: tuple[DeviceWork, ...], run: Run, limit: float, error: Spread) -> Draw:
    """The mean over works that follow each other, with its interval."""
    curves, generation = run.case.curves, run.case.cluster.accelerator.generation
    rates = curves.calibration.power.rates(generation)
    is_measured = generation in curves.calibration.power.measured
    spread = draw_spread(curves, generation, error)
    basis = Basis.REFERENCE if is_measured else Basis.DATASHEET
    drawn = spread.around(
        mean_device_watts(works, limit, rates), curves.calibration.power.basis_of_draw or basis
    )
    # No device draws less than its idle power or more than its limit.
    least = min(idle_watts(limit, rates), drawn.value)
    value = min(limit, drawn.value)
    watts = drawn._replace(value=value, low=min(value, max(least, drawn.low)), high=min(limit, drawn.high))
    run.notes.calibrated(spread.calibration_ids)
    note_power(run.case.device, run.notes)
    limited = any(is_limited(work, limit, rates) for work in works if work.busy_seconds > 0.0)
    run.notes.cite_reference("/cluster/accelerator", _CITATION + _LIMITED * limited)
    return Draw(watts, limited)


def draw_spread(curves: ReferenceCurves, generation: str, error: Spread) -> Spread:
    """What an estimated draw is off by on a generation; more where none of it was measured."""
    elsewhere = curves.device_power_elsewhere
    if generation in curves.calibration.power.measured or error.basis is not None:
        return error
    return Spread(min(error.low, elsewhere.low), max(error.high, elsewhere.high), elsewhere.source)
