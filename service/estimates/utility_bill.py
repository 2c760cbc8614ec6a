"""What will the run draw, emit and cost, rented or bought?"""

from service.estimates.carbon import add_carbon, add_water
from service.estimates.charges import to_money_total
from service.estimates.cost import to_break_even
from service.estimates.electricity import bill_electricity
from service.estimates.energy import to_energy
from service.estimates.rates import plan_run
from service.planning.cost.charges import CurrencyCharges
from service.planning.estimates import Run, TrainingRun
from service.planning.estimates.break_even import (
    estimate_break_even,
    estimate_break_even_runs,
    estimate_runs_of_saving,
    estimate_saving,
    find_incomparable,
)
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.energy import estimate_energy
from service.planning.estimates.ownership import charge_purchase, estimate_ownership
from service.planning.estimates.power import DevicePower, estimate_draw
from service.planning.estimates.rent import estimate_rent
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.cost import resolve_cost_terms
from service.resolve.site import resolve_site
from service.schemas.answer import to_evidence, to_parallelism, to_quantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostBreakdown
from service.schemas.estimates import UtilityBillRequest


def estimate_utility_bill(question: UtilityBillRequest, catalog: CatalogView) -> UtilityBill:
    """Energy, electricity, carbon and water of the run; rent against purchase."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    return bill_run(question, run, estimate_draw(run), catalog)


def bill_run(
    question: UtilityBillRequest, run: Run, draw: DevicePower | None, catalog: CatalogView
) -> UtilityBill:
    """The bill of a run whose time and power are known."""
    notes, hours = run.notes, estimate_device_hours(run)
    site = resolve_site(question, catalog, notes)
    terms = resolve_cost_terms(question, run.case.cluster, catalog, notes)
    rent = terms.rental and estimate_rent(run, terms.rental, terms.currencies)
    rented = rent and rent.charges
    bought = terms.purchase and charge_purchase(terms.purchase, terms.currencies, notes)
    energy = estimate_energy(run, site, draw)
    billed = bill_electricity(question, energy, catalog, notes)
    answer: UtilityBill = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "energy": to_energy(energy),
        "electricity": billed.answer,
        "carbon": {},
        "rent": _to_money_total(rented),
        "purchase": _to_money_total(bought),
        "parallelism": to_parallelism(run.case.layout, chosen=run.case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if isinstance(run, TrainingRun) and run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    if run.duration_seconds and hours:
        answer["duration_seconds"] = to_quantity(run.duration_seconds)
        answer["device_hours"] = to_quantity(hours)
    else:
        for name in ("duration_seconds", "device_hours"):
            notes.add_gap(f"/{name}", "RATE_UNKNOWN", "the rate of the run is not known")
    add_carbon(answer, question, run, energy, site=site, curves=catalog.curves)
    add_water(answer, energy, site, notes)
    _add_break_even(
        answer,
        notes,
        hours=hours,
        rented=rented,
        bought=bought,
        electricity=billed.charged,
        facility_kw=energy.peak_kw,
    )
    if rented and bought and run.duration_seconds and not find_incomparable(rented, bought):
        paid, ownership = billed.charged, terms.purchase and terms.purchase.ownership
        found = estimate_break_even(
            run.duration_seconds,
            rented,
            bought,
            notes,
            terms=ownership,
            owned=ownership and estimate_ownership(run, ownership, bought, terms.currencies),
            electricity=None if find_incomparable(rented, paid) else paid,
        )
        answer["break_even"] = [to_break_even(each) for each in found]
    return answer


def _to_money_total(charged: CurrencyCharges | None) -> CostBreakdown:
    return {"lines": []} if charged is None else to_money_total(charged)


def _add_break_even(
    answer: UtilityBill,
    notes: AnswerNotes,
    *,
    hours: Quantity | None,
    rented: CurrencyCharges | None,
    bought: CurrencyCharges | None,
    electricity: CurrencyCharges | None,
    facility_kw: Quantity | None,
) -> None:
    """Runs that pay the purchase back, against rent alone and against rent less electricity."""
    for name, charged in (("rent", rented), ("purchase", bought)):
        if charged is None and f"/{name}/total" not in {gap["pointer"] for gap in notes.gaps}:
            notes.add_gap(f"/{name}/total", "PRICE_REQUIRED", f"the {name} is not known")
    alone, with_power = "/break_even_runs", "/break_even_runs_with_electricity"
    refusal = find_incomparable(rented, bought)
    if refusal or not (hours and rented and bought):
        for pointer in (alone, with_power):
            notes.add_gap(pointer, *(refusal or ("PRICE_REQUIRED", "needs the rent and the purchase")))
        return
    answer["break_even_runs"] = to_quantity(estimate_break_even_runs(rented, bought))
    refusal = find_incomparable(rented, electricity)
    if refusal or not (electricity and facility_kw):
        notes.add_gap(with_power, *(refusal or ("ELECTRICITY_UNKNOWN", "the electricity is not known")))
        return
    saved = estimate_saving(hours, rented, electricity, facility_kw)
    if saved.low <= 0.0:
        never = saved.value <= 0.0
        detail = "electricity costs as much as the rent that it saves"
        notes.add_gap(
            with_power, "NEVER" if never else "UNBOUNDED", detail if never else f"it may be that {detail}"
        )
        return
    runs = estimate_runs_of_saving(hours, saved, bought)
    answer["break_even_runs_with_electricity"] = to_quantity(runs)
