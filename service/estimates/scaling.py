"""Scaling of a training run as it is answered."""

from functools import partial

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.planning.errors import PlanningError
from service.planning.estimates import TrainingRun
from service.planning.estimates.scaling import (
    RunVariant,
    estimate_scaling,
)
from service.planning.estimates.scaling import ScalingCurve as PlannedCurve
from service.planning.estimates.scaling import ScalingDecision as PlannedDecision
from service.resolve.catalog import CatalogView
from service.resolve.hardware import get_accelerators_per_node
from service.resolve.scaling import vary_question
from service.schemas.answer import to_integer, to_quantities
from service.schemas.answers import ThroughputEstimate
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.run_answers import ScalingCurve, ScalingDecision


def add_scaling(
    answer: ThroughputEstimate, question: ThroughputEstimateRequest, run: TrainingRun, catalog: CatalogView
) -> None:
    """Adds both curves and the decision, if the question asks for them."""
    asked = question.scaling
    if asked is MISSING:
        return
    counts = asked.accelerator_counts
    found = estimate_scaling(
        run,
        partial(_run_variant, question, catalog),
        counts=None if counts is MISSING else counts,
        per_node=get_accelerators_per_node(question.cluster, catalog),
        time_limit_seconds=asked.time_limit_seconds,
    )
    if found is not None:
        answer["scaling"] = {"strong": _to_curve(found.strong), "weak": _to_curve(found.weak)}
        answer["scaling_decision"] = _to_decision(found.decision)


def _run_variant(
    question: ThroughputEstimateRequest, catalog: CatalogView, variant: RunVariant
) -> TrainingRun | None:
    try:
        run = plan_run(vary_question(question, variant), catalog)
    except PlanningError:
        return None
    return run if isinstance(run, TrainingRun) else None


def _to_curve(curve: PlannedCurve) -> ScalingCurve:
    answer: ScalingCurve = {"points": [to_quantities(point) for point in curve.points]}
    if curve.serial_share is not None:
        answer["serial_share"] = curve.serial_share
    if curve.crossover is not None:
        answer["crossover_accelerator_count"] = curve.crossover
    if curve.empirical is not None:
        answer["empirical"] = {
            "a": curve.empirical.constant,
            "b": curve.empirical.linear,
            "c": curve.empirical.logarithmic,
            "largest_relative_error": curve.empirical.largest_error,
        }
    return answer


def _to_decision(found: PlannedDecision) -> ScalingDecision:
    decision: ScalingDecision = {
        "options": [to_quantities(option) for option in found.options],
        "time_limit_seconds": found.time_limit_seconds,
    }
    if found.least_accelerator_count is not None:
        decision["least_accelerator_count"] = to_integer(found.least_accelerator_count)
    if found.scale is not None:
        decision["scale"] = found.scale
    if found.hint is not None:
        decision["rule_of_thumb"] = found.hint.scale
        decision["streaming"] = found.hint.streaming
    return decision
