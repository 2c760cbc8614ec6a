"""How fast will it go?"""

from service.estimates.power import add_power
from service.estimates.rates import plan_run
from service.estimates.scaling import note_scaling
from service.estimates.serving_parts import add_passes, add_serving
from service.estimates.training_parts import add_training
from service.planning.estimates import ForwardPassRun, TrainingRun
from service.resolve.calibrated import calibrated
from service.resolve.catalog import CatalogView
from service.schemas.answer import evidence, parallelism, quantity
from service.schemas.answers import ThroughputAnswer
from service.schemas.estimates import ThroughputQuestion


def estimate_throughput(question: ThroughputQuestion, catalog: CatalogView) -> ThroughputAnswer:
    """Rates of training or of serving, where the time goes and what limits it."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    notes, case = run.notes, run.case
    answer: ThroughputAnswer = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "breakdown": [],
        "parallelism": parallelism(case.layout, chosen=case.layout_chosen),
        "evidence": evidence(question, notes, catalog.revision),
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
        answer["duration_seconds"] = quantity(run.duration_seconds)
    elif isinstance(run, TrainingRun):
        notes.gap("/duration_seconds", "TOTAL_REQUIRED", "the workload gives no total to train on")
    return answer
