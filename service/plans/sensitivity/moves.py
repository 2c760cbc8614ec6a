"""A question with one assumption changed."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from pydantic import MISSING

from service.plans.sensitivity.subjects import LIMITS, MovedAssumption, find_total
from service.plans.space import KeptConfiguration, SearchOutcome, SearchSpace
from service.schemas.plans import PlanConstraints, PlanRequest, SensitivityAssumption
from service.schemas.workloads import TrainingWorkloadInput, WorkloadInput

_DIGITS: Final = Decimal("0.000000001")


def move_assumption(
    space: SearchSpace, outcome: SearchOutcome, moved: MovedAssumption, factor: float
) -> tuple[SearchSpace, SearchOutcome]:
    """Returns the space and outcome of a question with one assumption changed."""
    question = space.question
    if moved.assumption in LIMITS:
        moves = (
            _move_budget(question.constraints, factor)
            if moved.assumption == "budget"
            else _scale_deadline(question, factor)
        )
        constraints = question.constraints.model_copy(update=moves)
        return space._replace(question=question.model_copy(update={"constraints": constraints})), outcome
    if moved.assumption == "work":
        return _scale_work(space, outcome, factor)
    members = {"kind": moved.assumption, "factor": factor} | ({"of": moved.of} if moved.of else {})
    assumptions = [*question.assumptions, SensitivityAssumption.model_validate(members)]
    return space._replace(question=question.model_copy(update={"assumptions": assumptions})), outcome


def _move_budget(constraints: PlanConstraints, factor: float) -> dict[str, Any]:
    budget = constraints.budget
    if budget is MISSING:
        return {}
    amount = (Decimal(budget.amount) * Decimal(factor)).quantize(_DIGITS)
    return {"budget": budget.model_copy(update={"amount": f"{amount:f}"})}


def _scale_deadline(question: PlanRequest, factor: float) -> dict[str, Any]:
    """Returns the longest duration and the latest end, with the time from the first start scaled."""
    moves: dict[str, Any] = {}
    constraints, start = question.constraints, question.starts_at
    if question.window is not MISSING:
        start = question.window.earliest_start_at
    if constraints.duration_seconds is not MISSING:
        moves["duration_seconds"] = constraints.duration_seconds * factor
    if constraints.finish_by is not MISSING and start is not MISSING:
        seconds = (constraints.finish_by - start).total_seconds()
        moves["finish_by"] = start + timedelta(seconds=seconds * factor)
    return moves


def _scale_work(
    space: SearchSpace, outcome: SearchOutcome, factor: float
) -> tuple[SearchSpace, SearchOutcome]:
    """Returns space and outcome with the work and its time scaled."""
    question = space.question
    workload, share = _scale_workload(question.workload, factor)
    given = [
        each.model_copy(update={"workload": _scale_workload(each.workload, factor)[0]})
        for each in question.given
    ]
    asked = question.model_copy(update={"workload": workload, "given": given})
    is_training = isinstance(workload, TrainingWorkloadInput)
    kept = tuple(_scale_duration(each, share, is_training=is_training) for each in outcome.kept)
    return space._replace(question=asked), outcome._replace(kept=kept)


def _scale_duration(kept: KeptConfiguration, share: float, *, is_training: bool) -> KeptConfiguration:
    lasting = None if kept.lasting_seconds is None else kept.lasting_seconds * share
    return kept._replace(
        seconds=kept.seconds * share if is_training else kept.seconds, lasting_seconds=lasting
    )


def _scale_workload(workload: WorkloadInput, factor: float) -> tuple[WorkloadInput, float]:
    """Returns the workload with its total scaled, and the factor after rounding to whole counts."""
    found = find_total(workload)
    if found is None:
        return workload, 1.0
    name, total = found
    amount = max(1, round(total * factor)) if isinstance(total, int) else total * factor
    if isinstance(workload, TrainingWorkloadInput):
        return workload.model_copy(update={name: amount}), amount / total
    if workload.horizon is MISSING:
        return workload, 1.0
    horizon = workload.horizon.model_copy(update={name: amount})
    return workload.model_copy(update={"horizon": horizon}), amount / total
