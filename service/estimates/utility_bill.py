"""Utility bill of a run: energy, electricity, carbon and water, rented or bought."""

from service.estimates.allowance import spend_effort
from service.estimates.carbon import to_carbon, to_equivalent
from service.estimates.charges import to_money_total
from service.estimates.cost import to_break_even
from service.estimates.electricity import bill_electricity, to_electricity_bill
from service.estimates.energy import to_energy
from service.estimates.rates import plan_run
from service.planning.cost.charges import CurrencyCharges
from service.planning.estimates import Run, TrainingRun
from service.planning.estimates.bill import Payback, RunBill, estimate_payback, note_unknown_duration
from service.planning.estimates.carbon import estimate_carbon, estimate_water
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.energy import estimate_energy
from service.planning.estimates.ownership import charge_purchase
from service.planning.estimates.power import DevicePower, estimate_draw
from service.planning.estimates.rent import estimate_rent
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.cost import resolve_cost_terms
from service.resolve.embodied import resolve_embodied_terms
from service.resolve.site import resolve_site
from service.schemas.answer import to_evidence, to_parallelism, to_quantities, to_quantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostBreakdown
from service.schemas.estimates import UtilityBillRequest


def estimate_utility_bill(question: UtilityBillRequest, catalog: CatalogView) -> UtilityBill:
    """Answers a question of the utility bill."""
    return to_utility_bill(question, estimate_bill(question, catalog), catalog)


def estimate_bill(question: UtilityBillRequest, catalog: CatalogView) -> RunBill:
    """Returns the utility bill of a question."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    return bill_run(question, run, estimate_draw(run), catalog)


def bill_run(
    question: UtilityBillRequest, run: Run, draw: DevicePower | None, catalog: CatalogView
) -> RunBill:
    """Returns the utility bill of a run whose time and power are known."""
    notes, hours = run.notes, estimate_device_hours(run)
    site = resolve_site(question, catalog, notes)
    terms = resolve_cost_terms(question, run.case, catalog, notes)
    rent = terms.rental and estimate_rent(run, terms.rental, terms.currencies)
    rented = rent and rent.charges
    bought = terms.purchase and charge_purchase(terms.purchase, terms.currencies, notes)
    energy = estimate_energy(run, site, draw)
    electricity = bill_electricity(question, energy, catalog, notes)
    if hours is None:
        note_unknown_duration(run)
    return RunBill(
        run,
        hours,
        energy,
        electricity,
        rented,
        bought,
        estimate_carbon(run, energy, site, resolve_embodied_terms(question.embodied), spend_effort),
        estimate_water(energy, site, notes),
        estimate_payback(
            run,
            terms,
            rent=rented,
            purchase=bought,
            electricity=electricity.charged,
            facility_kw=energy.peak_kw,
        ),
    )


def to_utility_bill(question: UtilityBillRequest, bill: RunBill, catalog: CatalogView) -> UtilityBill:
    """Maps the utility bill of a run."""
    run, notes = bill.run, bill.run.notes
    answer: UtilityBill = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "energy": to_energy(bill.energy),
        "electricity": to_electricity_bill(bill.electricity),
        "carbon": to_carbon(bill.carbon),
        "rent": _to_money_total(bill.rent),
        "purchase": _to_money_total(bill.purchase),
        "parallelism": to_parallelism(run.case.layout, chosen=run.case.layout_chosen),
        "evidence": to_evidence(question, notes, catalog.revision),
        "defaults": notes.defaults,
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if isinstance(run, TrainingRun) and run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    if run.duration_seconds and bill.device_hours:
        answer["duration_seconds"] = to_quantity(run.duration_seconds)
        answer["device_hours"] = to_quantity(bill.device_hours)
    if bill.carbon.household_months is not None:
        answer["equivalents"] = [to_equivalent(bill.carbon.household_months)]
    answer["water"] = to_quantities(bill.water)
    if bill.water.liters is not None:
        answer["water_liters"] = to_quantity(bill.water.liters)
    _add_payback(answer, bill.payback)
    return answer


def _to_money_total(charged: CurrencyCharges | None) -> CostBreakdown:
    return {"lines": []} if charged is None else to_money_total(charged)


def _add_payback(answer: UtilityBill, payback: Payback) -> None:
    if payback.runs is not None:
        answer["break_even_runs"] = to_quantity(payback.runs)
    if payback.runs_with_electricity is not None:
        answer["break_even_runs_with_electricity"] = to_quantity(payback.runs_with_electricity)
    if payback.break_even:
        answer["break_even"] = [to_break_even(each) for each in payback.break_even]
