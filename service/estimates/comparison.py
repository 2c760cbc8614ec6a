"""What the same work costs in different ways."""

import math

from service.estimates.charges import Charges
from service.estimates.cost import Costed, costed
from service.planning.cost import EqualWork, equal_work
from service.planning.errors import PlanningError
from service.planning.quantity import Quantity, weakest
from service.planning.workload import InferenceWorkload
from service.resolve.catalog import Catalog
from service.schemas.answer import quantity
from service.schemas.base import Gap
from service.schemas.cost_answers import ComparedCost, CostComparisonAnswer
from service.schemas.estimates import CostComparison, CostQuestion


def compare_costs(question: CostComparison, catalog: Catalog) -> CostComparisonAnswer:
    """The alternatives against the baseline; refuses one that does other work."""
    baseline = _costed(question.baseline, catalog, "/baseline")
    gaps: list[Gap] = []
    answer: CostComparisonAnswer = {"baseline": baseline.answer, "alternatives": [], "gaps": gaps}
    for place, asked in enumerate(question.alternatives):
        found = _costed(asked, catalog, f"/alternatives/{place}")
        _check_work(question.baseline, baseline, asked, found, f"/alternatives/{place}")
        answer["alternatives"].append(_compared(found, baseline, f"/alternatives/{place}", gaps))
    return answer


def _costed(question: CostQuestion, catalog: Catalog, at: str) -> Costed:
    try:
        return costed(question, catalog)
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def _check_work(first: CostQuestion, one: Costed, second: CostQuestion, other: Costed, at: str) -> None:
    if first.model != second.model:
        raise PlanningError("UNEQUAL_WORK", f"{at}/model", "the models differ")
    if first.workload.kind != second.workload.kind:
        raise PlanningError("UNEQUAL_WORK", f"{at}/workload/kind", "the kinds of work differ")
    for unit, amount, against in zip(("tokens", "requests"), _work(other), _work(one), strict=True):
        if amount is None or against is None or math.isclose(amount, against, rel_tol=1e-9):
            continue
        detail = f"{amount:.6g} {unit} are not the {against:.6g} of the baseline: only equal work compares"
        raise PlanningError("UNEQUAL_WORK", f"{at}/workload", detail)


def _work(found: Costed) -> tuple[float | None, float | None]:
    """Tokens that are trained on or pass through the model, and requests; None where not known."""
    run = found.run
    workload, requests = run.resolved.workload, run.requests
    if isinstance(workload, InferenceWorkload):
        tokens = requests and requests.value * (workload.input_tokens + workload.output_tokens)
        return tokens, requests and requests.value
    return run.resolved.total_tokens, None


def _compared(found: Costed, baseline: Costed, at: str, gaps: list[Gap]) -> ComparedCost:
    compared: ComparedCost = {"cost": found.answer}
    charged, against = found.charged, baseline.charged
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
    devices = (found.run.cluster.accelerator_count, baseline.run.cluster.accelerator_count)
    value, low, high = (
        _ratios((charged, duration, one), (against, lasting, other), devices)
        for one, other in ((0, 0), (1, 2), (2, 1))
    )
    basis = weakest(charged.quantity, against.quantity, duration, lasting)
    compared["time_ratio"] = quantity(Quantity(value.time, low.time, high.time, basis))
    hours = Quantity(value.device_hours, low.device_hours, high.device_hours, basis)
    compared["device_hours_ratio"] = quantity(hours)
    compared["cost_ratio"] = quantity(Quantity(value.cost, low.cost, high.cost, basis))
    return compared


def _ratios(
    one: tuple[Charges, Quantity, int], other: tuple[Charges, Quantity, int], devices: tuple[int, int]
) -> EqualWork:
    """One way at one end of its cost and time, the other at another end."""
    (cost, seconds), (against, lasting) = (
        (charged.quantity[:3][end], duration[:3][end]) for charged, duration, end in (one, other)
    )
    first, second = devices
    return equal_work(cost, seconds * first, seconds, against=(against, lasting * second, lasting))
