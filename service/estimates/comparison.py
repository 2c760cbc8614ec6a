"""Answer to a question of alternatives: the cost of the same work done in different ways."""

from service.estimates.cost import AnsweredCost, answer_cost
from service.planning.errors import PlanningError
from service.planning.estimates.cost_comparison import CostedRun, check_equal_work
from service.planning.estimates.cost_comparison import compare_costs as compare_costed_runs
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_quantity
from service.schemas.cost_answers import AlternativeCost, CostComparisonEstimate
from service.schemas.estimates import CostComparisonRequest, CostEstimateRequest


def compare_costs(question: CostComparisonRequest, catalog: CatalogView) -> CostComparisonEstimate:
    """Answers with the alternatives beside the baseline; refuses one that does other work."""
    baseline, notes = _answer_alternative(question.baseline, catalog, "/baseline"), AnswerNotes()
    answer: CostComparisonEstimate = {"baseline": baseline.answer, "alternatives": [], "gaps": notes.gaps}
    for place, asked in enumerate(question.alternatives):
        at = f"/alternatives/{place}"
        found = _answer_alternative(asked, catalog, at)
        _check_same_subject(question.baseline, asked, at)
        check_equal_work(found.run, baseline.run, f"{at}/workload")
        answer["alternatives"].append(_compare_cost(found, baseline, at, notes))
    return answer


def _answer_alternative(question: CostEstimateRequest, catalog: CatalogView, at: str) -> AnsweredCost:
    try:
        return answer_cost(question, catalog)
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def _check_same_subject(baseline: CostEstimateRequest, asked: CostEstimateRequest, at: str) -> None:
    if baseline.model != asked.model:
        raise PlanningError("UNEQUAL_WORK", f"{at}/model", "the models differ")
    if baseline.workload.kind != asked.workload.kind:
        raise PlanningError("UNEQUAL_WORK", f"{at}/workload/kind", "the kinds of work differ")


def _to_costed_run(found: AnsweredCost) -> CostedRun:
    rent = found.cost.rent
    lasting = found.run.duration_seconds if rent is None or rent.spot is None else rent.spot.lasting
    return CostedRun(found.run, found.cost.total, lasting)


def _compare_cost(
    found: AnsweredCost, baseline: AnsweredCost, at: str, notes: AnswerNotes
) -> AlternativeCost:
    compared: AlternativeCost = {"cost": found.answer}
    costed, against = (_to_costed_run(each) for each in (found, baseline))
    ratios = compare_costed_runs(costed, against, f"{at}/cost_ratio", notes)
    if ratios is not None:
        compared["time_ratio"] = to_quantity(ratios.time)
        compared["device_hours_ratio"] = to_quantity(ratios.device_hours)
        compared["cost_ratio"] = to_quantity(ratios.cost)
    return compared
