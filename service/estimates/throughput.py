"""Answer to a question of throughput: rates, latencies and power."""

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.estimates.serving_parts import add_passes, add_serving
from service.estimates.training_parts import add_training
from service.planning.estimates import ForwardPassRun, TrainingRun
from service.planning.estimates.run_power import RunPower, estimate_power
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence, to_parallelism, to_quantity
from service.schemas.answers import ThroughputEstimate
from service.schemas.estimates import ThroughputEstimateRequest


def estimate_throughput(question: ThroughputEstimateRequest, catalog: CatalogView) -> ThroughputEstimate:
    """Answers with the rates of training or of serving, where the time goes and what limits it."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    notes, case = run.notes, run.case
    answer: ThroughputEstimate = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "breakdown": [],
        "parallelism": to_parallelism(case.layout, chosen=case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "defaults": notes.defaults,
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if isinstance(run, TrainingRun):
        add_training(answer, question, run, catalog)
    else:
        if question.scaling is not MISSING:
            notes.add_gap("/scaling", "NOT_APPLICABLE", "scaling is answered for training")
        if isinstance(run, ForwardPassRun):
            add_passes(answer, run)
        else:
            add_serving(answer, run, explain=question.explain)
    _add_power(answer, estimate_power(run))
    if run.duration_seconds:
        answer["duration_seconds"] = to_quantity(run.duration_seconds)
    elif isinstance(run, TrainingRun):
        notes.add_gap("/duration_seconds", "TOTAL_REQUIRED", "the workload gives no total to train on")
    return answer


def _add_power(answer: ThroughputEstimate, power: RunPower) -> None:
    if power.draw is not None:
        answer["power_per_device_watts"] = to_quantity(power.draw.watts)
    if power.energy_per_sample_joules is not None:
        answer["passes"]["energy_per_sample_joules"] = to_quantity(power.energy_per_sample_joules)
    if power.energy_per_output_token_joules is not None:
        answer["energy_per_output_token_joules"] = to_quantity(power.energy_per_output_token_joules)
