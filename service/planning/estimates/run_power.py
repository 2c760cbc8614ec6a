"""Power of a device in a run, and the energy of a token or of a sample."""

from typing import NamedTuple

from service.planning.energy.power import energy_per_token_joules
from service.planning.estimates.power import DevicePower, estimate_draw
from service.planning.estimates.runs import ForwardPassRun, Run, ServingRun
from service.planning.estimates.serving import ServingEstimate
from service.planning.quantity import Quantity, combine, inverted, scaled


class RunPower(NamedTuple):
    """Power of one device of a run, and joules of all devices for a unit of its work; None if not known."""

    draw: DevicePower | None = None
    energy_per_sample_joules: Quantity | None = None
    energy_per_output_token_joules: Quantity | None = None


def estimate_power(run: Run) -> RunPower:
    """Returns the power and the unit energies of a run; a gap in its notes without a power limit."""
    draw = estimate_draw(run)
    if draw is None:
        if run.case.cluster.accelerator.power_limit_watts is None:
            detail = "the power limit of the accelerator is not known"
            run.notes.add_gap("/power_per_device_watts", "POWER_UNKNOWN", detail)
        return RunPower()
    if isinstance(run, ForwardPassRun):
        return RunPower(draw, energy_per_sample_joules=_estimate_sample_energy(run, draw))
    if isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
        return RunPower(draw, energy_per_output_token_joules=_estimate_token_energy(run, run.serving, draw))
    return RunPower(draw)


def _estimate_sample_energy(run: ForwardPassRun, draw: DevicePower) -> Quantity | None:
    passing, devices = run.passing, float(run.case.cluster.accelerator_count)
    if passing is None:
        return None
    rate = scaled(passing.requests_per_second, passing.requested.samples)
    return combine(lambda w, r: w * devices / r, draw.watts, inverted(rate))


def _estimate_token_energy(run: ServingRun, serving: ServingEstimate, draw: DevicePower) -> Quantity | None:
    outputs, devices = run.case.workload.output_tokens, float(run.case.cluster.accelerator_count)
    if not outputs:
        return None
    tokens, spreads = scaled(serving.requests_per_second, outputs).value, serving.spreads
    joules = energy_per_token_joules(draw.watts.value, devices, tokens)
    if spreads.energy.calibration_ids:
        # Measured energies are set beside that of the formulas, not beside measured power and rates.
        joules *= spreads.rate.middle / spreads.power.middle
        run.notes.record_calibrations(spreads.energy.calibration_ids)
    return spreads.energy.around(joules, draw.watts.basis)
