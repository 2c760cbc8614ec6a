"""What a device draws in a run: from what it does where that is known."""

from typing import NamedTuple

from service.estimates.calibrated import note_power
from service.estimates.disaggregated import Apart
from service.estimates.passes import Passing
from service.estimates.run import Run, step_tokens
from service.estimates.serving import Serving
from service.planning.energy.power import (
    DeviceWork,
    energy_per_token_joules,
    idle_watts,
    is_limited,
    iteration_work,
    mean_device_watts,
    pass_work,
    step_works,
)
from service.planning.hardware.curves import ReferenceCurves
from service.planning.operators import machine_of
from service.planning.quantity import Basis, Quantity, Spread, combine, inverted
from service.planning.training import ModelledTime
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak
from service.schemas.answer import quantity
from service.schemas.answers import ThroughputAnswer

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
        works, error = trained_works(run, workload, catalog), catalog.curves.device_power
    elif isinstance(run.serving, Serving):
        works, error = _served(run, run.serving, workload, catalog), run.serving.spreads.power
    elif run.passing and run.passing.basis is not Basis.ASSUMED:
        works, error = _passed(run, run.passing, workload, catalog), catalog.curves.served_power
    else:
        return None
    return _drawn(works, run, limit, catalog, error) if works else None


def trained_works(run: Run, workload: TrainingWorkload, catalog: Catalog) -> tuple[DeviceWork, ...] | None:
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


def _served(
    run: Run, serving: Serving, workload: InferenceWorkload, catalog: Catalog
) -> tuple[DeviceWork, ...] | None:
    """A second: iterations as far as replicas have requests, and none."""
    layout, accelerator = run.resolved.layout, run.cluster.accelerator
    machine = machine_of(accelerator, catalog.curves.calibration.operators)
    if machine is None:
        return None
    number_format, peak = compute_peak(run.cluster, workload)
    sustained = peak * machine.rates.matrix_peak[number_format]
    # A disaggregated system is one server, whatever its sides consist of.
    busy = 1.0 if isinstance(serving, Apart) else serving.replicas / (layout.data // layout.expert)
    works, idle = [], 1.0
    for share, time in serving.computing:
        work = iteration_work(time, sustained_flops_per_second=sustained, is_narrow=workload.is_narrow)
        works.append(work.within(busy * share))
        idle -= busy * share
    return (*works, DeviceWork(idle, 0.0))


def _passed(
    run: Run, passing: Passing, workload: InferenceWorkload, catalog: Catalog
) -> tuple[DeviceWork, ...] | None:
    """A second: passes at the mean batch as far as replicas have requests, and none."""
    machine = machine_of(run.cluster.accelerator, catalog.curves.calibration.operators)
    if machine is None:
        return None
    number_format, peak = compute_peak(run.cluster, workload)
    sustained = peak * machine.rates.matrix_peak[number_format]
    works = [
        pass_work(part, sustained_flops_per_second=sustained, is_narrow=workload.is_narrow)
        for part in passing.parts
    ]
    share = passing.batched.utilization * passing.replicas / run.resolved.layout.data
    whole = sum(work.seconds for work in works)
    within = [work.within(share * work.seconds / whole) for work in works]
    return (*within, DeviceWork(1.0 - share, 0.0))


def _drawn(works: tuple[DeviceWork, ...], run: Run, limit: float, catalog: Catalog, error: Spread) -> Draw:
    """The mean over works that follow each other, with its interval."""
    curves, generation = catalog.curves, run.cluster.accelerator.generation
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
    note_power(catalog, run.notes)
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


def draw_spread(curves: ReferenceCurves, generation: str, error: Spread) -> Spread:
    """What an estimated draw is off by on a generation; more where none of it was measured."""
    elsewhere = curves.device_power_elsewhere
    if generation in curves.calibration.power.measured or error.basis is not None:
        return error
    return Spread(min(error.low, elsewhere.low), max(error.high, elsewhere.high), elsewhere.source)


def add_power(answer: ThroughputAnswer, run: Run, catalog: Catalog) -> None:
    """What a device draws, and the energy of a generated token where the answer has their rate."""
    draw = device_draw(run, catalog)
    if draw is None:
        if run.cluster.accelerator.power_limit_watts is None:
            detail = "the power limit of the accelerator is not known"
            run.notes.gap("/power_per_device_watts", "POWER_UNKNOWN", detail)
        return
    answer["power_per_device_watts"] = quantity(draw.watts)
    if run.passing is not None:
        devices, rate = float(run.cluster.accelerator_count), answer["passes"]["samples_per_second"]
        each = combine(lambda w, r: w * devices / r, draw.watts, inverted(Quantity(**rate)))
        answer["passes"]["energy_per_sample_joules"] = quantity(each)
        return
    if "output_tokens_per_second" not in answer or not isinstance(run.serving, Serving):
        return
    tokens, devices = answer["output_tokens_per_second"]["value"], float(run.cluster.accelerator_count)
    joules, spreads = energy_per_token_joules(draw.watts.value, devices, tokens), run.serving.spreads
    if spreads.energy.calibration_ids:
        # Measured energies are set beside that of the formulas, not beside measured power and rates.
        joules *= spreads.rate.middle / spreads.power.middle
        run.notes.calibrated(spreads.energy.calibration_ids)
    answer["energy_per_output_token_joules"] = quantity(spreads.energy.around(joules, draw.watts.basis))
