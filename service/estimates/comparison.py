"""What the same work costs in different ways."""

import math

from service.estimates.cost import AnsweredCost, answer_cost
from service.planning.errors import PlanningError
from service.planning.estimates import TrainingRun
from service.planning.estimates.equal_work import RunTotal, compare_costs_of_runs
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_quantity
from service.schemas.base import EstimateGap
from service.schemas.cost_answers import AlternativeCost, CostComparisonEstimate
from service.schemas.estimates import CostComparisonRequest, CostEstimateRequest


def compare_costs(question: CostComparisonRequest, catalog: CatalogView) -> CostComparisonEstimate:
    """The alternatives against the baseline; refuses one that does other work."""
    baseline = _answer_alternative(question.baseline, catalog, "/baseline")
    gaps: list[EstimateGap] = []
    answer: CostComparisonEstimate = {"baseline": baseline.answer, "alternatives": [], "gaps": gaps}
    for place, asked in enumerate(question.alternatives):
        found = _answer_alternative(asked, catalog, f"/alternatives/{place}")
        _check_work(question.baseline, baseline, asked, found, f"/alternatives/{place}")
        answer["alternatives"].append(_compare_cost(found, baseline, f"/alternatives/{place}", gaps))
    return answer


def _answer_alternative(question: CostEstimateRequest, catalog: CatalogView, at: str) -> AnsweredCost:
    try:
        return answer_cost(question, catalog)
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def _check_work(
    first: CostEstimateRequest, one: AnsweredCost, second: CostEstimateRequest, other: AnsweredCost, at: str
) -> None:
    if first.model != second.model:
        raise PlanningError("UNEQUAL_WORK", f"{at}/model", "the models differ")
    if first.workload.kind != second.workload.kind:
        raise PlanningError("UNEQUAL_WORK", f"{at}/workload/kind", "the kinds of work differ")
    for unit, amount, against in zip(
        ("tokens", "requests"), _count_work(other), _count_work(one), strict=True
    ):
        if amount is None or against is None or math.isclose(amount, against, rel_tol=1e-9):
            continue
        detail = f"{amount:.6g} {unit} are not the {against:.6g} of the baseline: only equal work compares"
        raise PlanningError("UNEQUAL_WORK", f"{at}/workload", detail)


def _count_work(found: AnsweredCost) -> tuple[float | None, float | None]:
    """Tokens that are trained on or pass through the model, and requests; None where not known."""
    run = found.run
    if isinstance(run, TrainingRun):
        return run.case.total_tokens, None
    case, requests = run.case, run.requests
    tokens = requests and requests.value * (case.prompt_tokens + case.workload.output_tokens)
    return tokens, requests and requests.value


def _compare_cost(
    found: AnsweredCost, baseline: AnsweredCost, at: str, gaps: list[EstimateGap]
) -> AlternativeCost:
    compared: AlternativeCost = {"cost": found.answer}
    charged, against = found.cost.total, baseline.cost.total
    duration, lasting = found.run.duration_seconds, baseline.run.duration_seconds
    if not (charged and against and duration and lasting):
        gaps.append({"pointer": f"{at}/cost_ratio", "code": "TOTAL_UNKNOWN", "detail": "needs both totals"})
        return compared
    if charged.currency_code != against.currency_code or not against.low:
        mismatch = charged.currency_code != against.currency_code
        code = "CURRENCY_MISMATCH" if mismatch else "TOTAL_ZERO"
        detail = "the amounts are in different currencies" if mismatch else "the baseline costs nothing"
        gaps.append({"pointer": f"{at}/cost_ratio", "code": code, "detail": detail})
        return compared
    ratios = compare_costs_of_runs(
        RunTotal(found.run, charged, duration), RunTotal(baseline.run, against, lasting)
    )
    compared["time_ratio"] = to_quantity(ratios.time)
    compared["device_hours_ratio"] = to_quantity(ratios.device_hours)
    compared["cost_ratio"] = to_quantity(ratios.cost)
    return compared
