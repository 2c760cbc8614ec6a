"""The power and energy of a throughput answer."""

from service.planning.energy.power import energy_per_token_joules
from service.planning.estimates import ForwardPassRun, Run, ServingRun
from service.planning.estimates.power import estimate_draw
from service.planning.estimates.serving import ServingEstimate
from service.planning.quantity import Quantity, combine, inverted
from service.schemas.answer import to_quantity
from service.schemas.answers import ThroughputEstimate


def add_power(answer: ThroughputEstimate, run: Run) -> None:
    """What a device draws, and the energy of a generated token where the answer has their rate."""
    draw, cluster = estimate_draw(run), run.case.cluster
    if draw is None:
        if cluster.accelerator.power_limit_watts is None:
            detail = "the power limit of the accelerator is not known"
            run.notes.add_gap("/power_per_device_watts", "POWER_UNKNOWN", detail)
        return
    answer["power_per_device_watts"] = to_quantity(draw.watts)
    devices = float(cluster.accelerator_count)
    if isinstance(run, ForwardPassRun):
        rate = answer["passes"]["samples_per_second"]
        each = combine(lambda w, r: w * devices / r, draw.watts, inverted(Quantity(**rate)))
        answer["passes"]["energy_per_sample_joules"] = to_quantity(each)
    elif isinstance(run, ServingRun) and isinstance(run.serving, ServingEstimate):
        if "output_tokens_per_second" not in answer:
            return
        tokens, spreads = answer["output_tokens_per_second"]["value"], run.serving.spreads
        joules = energy_per_token_joules(draw.watts.value, devices, tokens)
        if spreads.energy.calibration_ids:
            # Measured energies are set beside that of the formulas, not beside measured power and rates.
            joules *= spreads.rate.middle / spreads.power.middle
            run.notes.record_calibrations(spreads.energy.calibration_ids)
        answer["energy_per_output_token_joules"] = to_quantity(
            spreads.energy.around(joules, draw.watts.basis)
        )
