"""Power of a device in a run, derived from its work where that is known."""

from typing import NamedTuple

from service.planning.cases import ForwardPassCase, InferenceCase, ServingCase
from service.planning.energy.power import (
    DeviceWork,
    build_iteration_work,
    build_pass_work,
    build_step_works,
    idle_watts,
    is_limited,
    mean_device_watts,
)
from service.planning.estimates.calibrations import note_power
from service.planning.estimates.devices import compute_peak
from service.planning.estimates.disaggregated import DisaggregatedServing
from service.planning.estimates.passes import PassServing
from service.planning.estimates.runs import ForwardPassRun, Run, TrainingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.hardware.curves import ReferenceCurves
from service.planning.operators import build_machine
from service.planning.quantity import EvidenceBasis, IntervalFactors, Quantity
from service.planning.training import ModelledTime

_CITATION = "power of a device from the shares of its time in which it computes, moves bytes and sends"
_LIMITED = "; at the full clock a part of the work would draw more than the power limit, so the clock falls"


class DevicePower(NamedTuple):
    """Mean watts of one device over a run."""

    watts: Quantity
    limited: bool
    """True if a part of the work would draw more than the limit at the full clock."""


def estimate_draw(run: Run) -> DevicePower | None:
    """Returns the draw that follows from the work of the run; None where its operators are not known.

    Operators are not known under an assumed efficiency and for a bare number of parameters.
    """
    curves, limit = run.case.curves, run.case.cluster.accelerator.power_limit_watts
    if limit is None:
        return None
    if isinstance(run, TrainingRun):
        works, error = list_training_works(run), curves.device_power
    elif isinstance(run, ForwardPassRun):
        if run.passing is None or run.passing.basis is EvidenceBasis.ASSUMED:
            return None
        works, error = _list_pass_works(run.case, run.passing), curves.served_power
    elif isinstance(run.serving, ServingEstimate):
        works, error = _list_serving_works(run.case, run.serving), run.serving.spreads.power
    else:
        return None
    return _average_draw(works, run, limit, error) if works else None


def list_training_works(run: TrainingRun) -> tuple[DeviceWork, ...] | None:
    """Returns the works of one step, and its wait for data."""
    time, case = run.computing, run.case
    machine = build_machine(case.cluster.accelerator, case.curves.calibration.operators)
    if not isinstance(time, ModelledTime) or run.time is None or machine is None:
        return None
    number_format, peak = compute_peak(case.cluster, case.workload)
    tokens = case.step_tokens
    flops = time.flops.hardware * tokens / case.cluster.accelerator_count
    works = build_step_works(
        time.step,
        matrix_seconds=flops / (peak * machine.rates.matrix_peak[number_format]),
        bandwidth_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
    )
    stalled = (run.time.seconds_per_token.value - time.seconds_per_token.value) * tokens
    return (*works, DeviceWork(stalled, 0.0))


def _compute_sustained_flops(case: InferenceCase) -> float | None:
    """Returns the FLOP/s that matrix products reach on the device; None where its bandwidth is not known."""
    machine = build_machine(case.cluster.accelerator, case.curves.calibration.operators)
    if machine is None:
        return None
    number_format, peak = compute_peak(case.cluster, case.workload)
    return peak * machine.rates.matrix_peak[number_format]


def _list_serving_works(case: ServingCase, serving: ServingEstimate) -> tuple[DeviceWork, ...] | None:
    """Returns the works of a second: iterations while replicas have requests, idle time for the rest."""
    sustained = _compute_sustained_flops(case)
    if sustained is None:
        return None
    # A disaggregated system counts as one server.
    busy = 1.0 if isinstance(serving, DisaggregatedServing) else serving.replicas / case.replicas
    works, idle = [], 1.0
    for share, time in serving.computing:
        work = build_iteration_work(
            time, sustained_flops_per_second=sustained, is_narrow=case.workload.is_low_precision
        )
        works.append(work.scale_to_seconds(busy * share))
        idle -= busy * share
    return (*works, DeviceWork(idle, 0.0))


def _list_pass_works(case: ForwardPassCase, passing: PassServing) -> tuple[DeviceWork, ...] | None:
    """Returns the works of a second: passes at the mean batch while replicas have requests, and idle time."""
    sustained = _compute_sustained_flops(case)
    if sustained is None:
        return None
    works = [
        build_pass_work(part, sustained_flops_per_second=sustained, is_narrow=case.workload.is_low_precision)
        for part in passing.parts
    ]
    share = passing.batched.utilization * passing.replicas / case.layout.data
    whole = sum(work.seconds for work in works)
    within = [work.scale_to_seconds(share * work.seconds / whole) for work in works]
    return (*within, DeviceWork(1.0 - share, 0.0))


def _average_draw(
    works: tuple[DeviceWork, ...], run: Run, limit: float, error: IntervalFactors
) -> DevicePower:
    """Returns the mean power over works that follow each other, with its interval."""
    curves, generation = run.case.curves, run.case.cluster.accelerator.generation
    rates = curves.calibration.power.get_rates(generation)
    is_measured = generation in curves.calibration.power.measured
    spread = find_draw_spread(curves, generation, error)
    basis = EvidenceBasis.REFERENCE if is_measured else EvidenceBasis.DATASHEET
    drawn = spread.around(
        mean_device_watts(works, limit, rates), curves.calibration.power.basis_of_draw or basis
    )
    # No device draws less than its idle power or more than its limit.
    least = min(idle_watts(limit, rates), drawn.value)
    value = min(limit, drawn.value)
    watts = drawn._replace(value=value, low=min(value, max(least, drawn.low)), high=min(limit, drawn.high))
    run.notes.record_calibrations(spread.calibration_ids)
    note_power(run.case.device, run.notes)
    limited = any(is_limited(work, limit, rates) for work in works if work.busy_seconds > 0.0)
    run.notes.cite_reference("/cluster/accelerator", _CITATION + _LIMITED * limited)
    return DevicePower(watts, limited)


def find_draw_spread(curves: ReferenceCurves, generation: str, error: IntervalFactors) -> IntervalFactors:
    """Returns the spread of an estimated draw on a generation; wider where none of it was measured."""
    elsewhere = curves.device_power_elsewhere
    if generation in curves.calibration.power.measured or error.basis is not None:
        return error
    return IntervalFactors(min(error.low, elsewhere.low), max(error.high, elsewhere.high), elsewhere.source)
