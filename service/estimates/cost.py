"""What will it cost?"""

from pydantic import MISSING

from service.estimates.charges import device_hours, purchase, rent
from service.estimates.rates import plan_run
from service.questions.answer import evidence, parallelism, quantity
from service.questions.catalog import Catalog
from service.questions.cost_answers import CostAnswer
from service.questions.estimates import CostQuestion


def estimate_cost(question: CostQuestion, catalog: Catalog) -> CostAnswer:
    """The rent of the run, or the purchase where nothing is rented."""
    run = plan_run(question, catalog)
    notes, hours = run.notes, device_hours(run)
    answer: CostAnswer = {
        "lines": [],
        "parallelism": parallelism(run.resolved.layout, chosen=run.resolved.layout_chosen),
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if run.duration_seconds and hours:
        answer["duration_seconds"] = quantity(run.duration_seconds)
        answer["device_hours"] = quantity(hours)
    else:
        for name in ("duration_seconds", "device_hours"):
            notes.gap(f"/{name}", "RATE_UNKNOWN", "the rate of the run is not known")
    charged = rent(question, run, hours, catalog)
    if question.rental is MISSING:
        charged = purchase(question, run)
    elif question.purchase is not MISSING:
        notes.warn(
            "PURCHASE_NOT_IN_TOTAL",
            "/purchase",
            "the total is the rent; the utility bill sets rent against purchase",
        )
    if charged is None:
        priced = question.rental is not MISSING
        code = "RATE_UNKNOWN" if priced else "PRICE_REQUIRED"
        detail = "the duration is not known" if priced else "no rental or purchase price is given"
        notes.gap("/total", code, detail)
        notes.gap("/cost_per_million_tokens", code, detail)
        return answer
    answer["lines"] = charged.lines
    answer["total"] = charged.total
    if run.tokens:
        answer["cost_per_million_tokens"] = charged.per_million(run.tokens)
    else:
        detail = "the run neither trains on tokens nor makes any"
        notes.gap("/cost_per_million_tokens", "NO_TOKENS", detail)
    return answer
