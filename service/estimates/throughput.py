"""How fast will it go?"""

from service.estimates.power import add_power
from service.estimates.rates import plan_run
from service.estimates.scaling import note_scaling
from service.estimates.serving_parts import add_passes, add_serving
from service.estimates.training_parts import add_training
from service.planning.estimates import ForwardPassRun, TrainingRun
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence, to_parallelism, to_quantity
from service.schemas.answers import ThroughputEstimate
from service.schemas.estimates import ThroughputEstimateRequest


def estimate_throughput(question: ThroughputEstimateRequest, catalog: CatalogView) -> ThroughputEstimate:
    """Rates of training or of serving, where the time goes and what limits it."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    notes, case = run.notes, run.case
    answer: ThroughputEstimate = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "breakdown": [],
        "parallelism": to_parallelism(case.layout, chosen=case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if isinstance(run, TrainingRun):
        add_training(answer, question, run, catalog)
    else:
        note_scaling(question, notes)
        if isinstance(run, ForwardPassRun):
            add_passes(answer, run)
        else:
            add_serving(answer, run, explain=question.explain)
    add_power(answer, run)
    if run.duration_seconds:
        answer["duration_seconds"] = to_quantity(run.duration_seconds)
    elif isinstance(run, TrainingRun):
        notes.add_gap("/duration_seconds", "TOTAL_REQUIRED", "the workload gives no total to train on")
    return answer
