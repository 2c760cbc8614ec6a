"""How fast will it go?"""

from service.estimates.diagnosis import roofline_points, step_advice, technique_terms
from service.estimates.power import add_power
from service.estimates.rates import plan_run
from service.estimates.run import Run, step_tokens, tokens_of_sample
from service.estimates.serving_parts import add_passes, add_serving, bottleneck, phase_answer
from service.estimates.training_parts import add_data, add_training_parts
from service.planning.precision import NumberFormat
from service.planning.quantity import combine, inverted, scaled
from service.planning.training import (
    ModelledTime,
    Technique,
    TrainingTime,
    unmasked_flops_per_token,
)
from service.planning.workload import WHOLE_BLOCKS, TrainingWorkload
from service.resolve.calibrated import calibrated
from service.resolve.catalog import Catalog
from service.schemas.answer import evidence, parallelism, quantity
from service.schemas.answers import ThroughputAnswer
from service.schemas.base import Advice
from service.schemas.estimates import ThroughputQuestion


def estimate_throughput(question: ThroughputQuestion, catalog: Catalog) -> ThroughputAnswer:
    """Rates of training or of serving, where the time goes and what limits it."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    answer: ThroughputAnswer = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "breakdown": [],
        "parallelism": parallelism(run.resolved.layout, chosen=run.resolved.layout_chosen),
        "evidence": evidence(question, run.notes, catalog.revision),
        "warnings": run.notes.warnings,
        "gaps": run.notes.gaps,
    }
    if run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    add_training_parts(answer, question, run, catalog)
    workload = run.resolved.workload
    if run.training and isinstance(workload, TrainingWorkload):
        _add_training(answer, run, run.training, workload, catalog, explain=question.explain)
    elif run.passing:
        add_passes(answer, run, run.passing)
    elif run.serving:
        add_serving(answer, question, run, catalog)
    add_power(answer, run, catalog)
    if run.duration_seconds:
        answer["duration_seconds"] = quantity(run.duration_seconds)
    elif isinstance(workload, TrainingWorkload):
        run.notes.gap("/duration_seconds", "TOTAL_REQUIRED", "the workload gives no total to train on")
    return answer


def _add_training(
    answer: ThroughputAnswer,
    run: Run,
    time: TrainingTime | ModelledTime,
    workload: TrainingWorkload,
    catalog: Catalog,
    *,
    explain: bool,
) -> None:
    devices = float(run.cluster.accelerator_count)
    rate = combine(lambda s: 1.0 / s, inverted(time.seconds_per_token))
    tokens_each = tokens_of_sample(run.resolved)
    if tokens_each is not None:
        answer["tokens_per_second"] = quantity(scaled(rate, tokens_each))
        answer["tokens_per_second_per_device"] = quantity(scaled(rate, tokens_each / devices))
    answer["samples_per_second"] = quantity(scaled(rate, 1.0 / workload.sample_tokens))
    answer["model_flops_utilization"] = quantity(time.model_flops_utilization)
    answer["hardware_flops_utilization"] = quantity(time.hardware_flops_utilization)
    profile = run.resolved.model.profile
    for name, flops in (
        ("hardware_flops_per_second_per_device", time.flops.hardware),
        ("model_flops_per_second_per_device", time.flops.model),
        ("unmasked_flops_per_second_per_device", unmasked_flops_per_token(profile, workload)),
    ):
        answer[name] = quantity(scaled(rate, flops / devices))  # type: ignore[literal-required]
    advice: list[Advice] = []
    if not explain:
        pass
    elif isinstance(time, TrainingTime):
        advice = _training_advice(time, workload)
    else:
        advice = step_advice(run, time, workload, catalog)
        answer["operators"] = roofline_points(run, workload, catalog)
    answer["bottleneck"] = bottleneck(time.bound, advice)
    if not run.resolved.batch_known:
        run.notes.gap(
            "/step_seconds", "BATCH_REQUIRED", "the sequences of a step do not follow from the question"
        )
        return
    tokens = step_tokens(run.resolved, workload)
    step = scaled(time.seconds_per_token, tokens)
    answer["step_seconds"] = quantity(step)
    answer["breakdown"] = [phase_answer(phase) for phase in (run.working or time).phases(tokens)]
    add_data(answer, run.data)


_LARGE_BUBBLE = 0.1


def _training_advice(time: TrainingTime, workload: TrainingWorkload) -> list[Advice]:
    """Techniques that the workload does not use yet, or uses at a cost; what each gains is not known."""
    advice: list[Advice] = []
    if workload.recipe.compute in (NumberFormat.FP32, NumberFormat.TF32):
        advice.append({"code": "MIXED_PRECISION", "detail": technique_terms(Technique.MIXED_PRECISION)})
    if workload.recomputation in WHOLE_BLOCKS:
        detail = f"without it: {technique_terms(Technique.RECOMPUTATION).replace(' up', ' down')}"
        advice.append({"code": "LESS_RECOMPUTATION", "detail": detail})
    if workload.kernel.value == "standard":
        advice.append({"code": "FLASH_ATTENTION", "detail": technique_terms(Technique.FLASH_ATTENTION)})
    if time.bubble_share > _LARGE_BUBBLE:
        detail = f"pipeline stages wait {time.bubble_share:.0%} of the step; more micro-batches fill it"
        advice.append({"code": "MORE_MICRO_BATCHES", "detail": detail})
    return advice
