"""What will it cost?"""

from typing import NamedTuple

from pydantic import MISSING

from service.estimates.break_even import break_even, incomparable, runs_of_purchase
from service.estimates.charges import Charges, added, device_hours
from service.estimates.holdings import holdings
from service.estimates.list_prices import list_prices
from service.estimates.ownership import Owned, owned, ownership_answer, purchase
from service.estimates.rates import plan_run
from service.estimates.rent import Rented, rent_answer, rented
from service.estimates.run import Run
from service.estimates.unit_costs import add_unit_costs
from service.resolve.calibrated import calibrated
from service.resolve.catalog import Catalog
from service.schemas.answer import evidence, parallelism, quantity
from service.schemas.cost_answers import CostAnswer
from service.schemas.estimates import CostQuestion


class Costed(NamedTuple):
    """A run, what it costs and the answer that says so."""

    run: Run
    answer: CostAnswer
    charged: Charges | None
    rental: Rented | None = None
    """Where it is rented; its lines come first."""


def estimate_cost(question: CostQuestion, catalog: Catalog) -> CostAnswer:
    """The rent of the run, or its share of own devices, or their purchase; storage and what leaves."""
    return costed(question, catalog).answer


def costed(question: CostQuestion, catalog: Catalog) -> Costed:
    """The same with what is behind it."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    return cost_of_run(question, plan_run(question, catalog), catalog)


def charged_of_run(
    question: CostQuestion, run: Run, catalog: Catalog
) -> tuple[Rented | None, Charges | None]:
    """The rental of a run whose rates are known, and what it costs in all."""
    hours = device_hours(run)
    rental, bought = rented(question, run, hours, catalog), purchase(question, run, catalog)
    own = owned(question, run, hours, bought, catalog)
    kept = holdings(question, run, catalog)
    return rental, _total(question, run, devices=_devices(question, run, rental, bought, own), kept=kept)


def cost_of_run(question: CostQuestion, run: Run, catalog: Catalog) -> Costed:
    """What a run costs whose rates are known."""
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
    rental = rented(question, run, hours, catalog)
    bought = purchase(question, run, catalog)
    own = owned(question, run, hours, bought, catalog)
    _add_parts(answer, rental, bought, own)
    if question.rental is not MISSING and question.purchase is not MISSING:
        _add_break_even(answer, question, run, rental and rental.charges, bought, owned=own)
    kept = holdings(question, run, catalog)
    charged = _total(question, run, devices=_devices(question, run, rental, bought, own), kept=kept)
    listed = list_prices(question, run, charged, catalog)
    if listed:
        answer["list_prices"] = listed
    if charged is None:
        return Costed(run, answer, None, rental)
    answer["lines"] = charged.lines
    answer["total"] = charged.total
    add_unit_costs(answer, run, charged)
    if run.tokens:
        answer["cost_per_million_tokens"] = charged.per_million(run.tokens)
    else:
        detail = "the run neither trains on tokens nor makes any"
        notes.gap("/cost_per_million_tokens", "NO_TOKENS", detail)
    return Costed(run, answer, charged, rental)


def _add_parts(answer: CostAnswer, rental: Rented | None, bought: Charges | None, own: Owned | None) -> None:
    if rental is not None:
        answer["rent"] = rent_answer(rental)
    if bought is not None:
        answer["purchase"] = {"lines": bought.lines, "total": bought.total}
    if own is not None:
        answer["ownership"] = ownership_answer(own)


def _devices(
    question: CostQuestion, run: Run, rental: Rented | None, bought: Charges | None, own: Owned | None
) -> Charges | None:
    """What the devices cost: their rent, else the run's share of own ones, else their purchase."""
    if question.rental is MISSING:
        owns = question.purchase is not MISSING and question.purchase.ownership is not MISSING
        return (own and own.run) if owns else bought
    if question.purchase is not MISSING:
        detail = "the total is the rent; break-even sets rent against purchase"
        run.notes.warn("PURCHASE_NOT_IN_TOTAL", "/purchase", detail)
    return rental and rental.charges


def _total(
    question: CostQuestion, run: Run, *, devices: Charges | None, kept: list[Charges] | None
) -> Charges | None:
    """What the run costs in all; None where that is not known, which is a gap."""
    notes, parts = run.notes, [devices, *(kept or ())]
    reason = None
    if devices is None:
        reason = _why_no_devices(question, run)
    elif len({part.currency_code for part in parts if part}) > 1:
        reason = ("CURRENCY_MISMATCH", "the amounts are in different currencies: give currency_code")
    if reason:
        notes.gap("/total", *reason)
    elif kept is None:
        reason = ("TOTAL_UNKNOWN", "the total is not known")
    if reason:
        notes.gap("/cost_per_million_tokens", *reason)
        return None
    return added(parts)


def _why_no_devices(question: CostQuestion, run: Run) -> tuple[str, str]:
    """Code and detail of what keeps the cost of the devices from being known."""
    if question.rental is MISSING and question.purchase is MISSING:
        return "PRICE_REQUIRED", "no rental or purchase price is given"
    for gap in run.notes.gaps:
        if gap["pointer"] in ("/rent/total", "/purchase/total", "/ownership/total"):
            return gap["code"], gap["detail"]
    return "RATE_UNKNOWN", "the duration is not known"


def _add_break_even(
    answer: CostAnswer,
    question: CostQuestion,
    run: Run,
    rent: Charges | None,
    bought: Charges | None,
    *,
    owned: Owned | None,
) -> None:
    """After how many runs the purchase has paid itself back."""
    refusal = incomparable(rent, bought)
    if refusal or not (rent and bought and run.duration_seconds):
        run.notes.gap("/break_even_runs", *(refusal or ("PRICE_REQUIRED", "needs the rent and the purchase")))
        return
    answer["break_even_runs"] = quantity(runs_of_purchase(rent, bought))
    answer["break_even"] = break_even(question, run.duration_seconds, rent, bought, run.notes, owned=owned)
