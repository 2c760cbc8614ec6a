"""What will the run draw, emit and cost, rented or bought?"""

from service.estimates.break_even import break_even, incomparable, runs_of_purchase
from service.estimates.carbon import add_carbon, add_water
from service.estimates.charges import Charges, device_hours
from service.estimates.electricity import electricity
from service.estimates.energy import resolve_site, run_energy
from service.estimates.ownership import owned, purchase
from service.estimates.power import Draw, device_draw
from service.estimates.rates import plan_run
from service.estimates.rent import rent
from service.estimates.run import Run
from service.planning.cost import break_even_runs
from service.planning.quantity import Quantity, combine, inverted
from service.resolve.calibrated import calibrated
from service.resolve.catalog import Catalog
from service.schemas.answer import evidence, parallelism, quantity
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.cost_answers import MoneyTotal
from service.schemas.estimates import UtilityBillQuestion
from service.schemas.notes import Notes


def estimate_utility_bill(question: UtilityBillQuestion, catalog: Catalog) -> UtilityBillAnswer:
    """Energy, electricity, carbon and water of the run; rent against purchase."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    return bill_of_run(question, run, device_draw(run, catalog), catalog)


def bill_of_run(
    question: UtilityBillQuestion, run: Run, draw: Draw | None, catalog: Catalog
) -> UtilityBillAnswer:
    """The bill of a run whose time and power are known."""
    notes, hours = run.notes, device_hours(run)
    site = resolve_site(question, catalog, notes)
    rented, bought = rent(question, run, hours, catalog), purchase(question, run, catalog)
    energy = run_energy(run, site, catalog.curves, draw)
    billed = electricity(question, energy, site, catalog, notes)
    answer: UtilityBillAnswer = {
        "peak_flops_per_second_per_device": run.peak_flops_per_second,
        "energy": energy.answer,
        "electricity": billed.answer,
        "carbon": {},
        "rent": _money(rented),
        "purchase": _money(bought),
        "parallelism": parallelism(run.resolved.layout, chosen=run.resolved.layout_chosen),
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if run.total_flops is not None:
        answer["total_flops"] = run.total_flops
    if run.duration_seconds and hours:
        answer["duration_seconds"] = quantity(run.duration_seconds)
        answer["device_hours"] = quantity(hours)
    else:
        for name in ("duration_seconds", "device_hours"):
            notes.gap(f"/{name}", "RATE_UNKNOWN", "the rate of the run is not known")
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
    if rented and bought and run.duration_seconds and not incomparable(rented, bought):
        paid = billed.charged
        answer["break_even"] = break_even(
            question,
            run.duration_seconds,
            rented,
            bought,
            notes,
            owned=owned(question, run, hours, bought, catalog),
            electricity=None if incomparable(rented, paid) else paid,
        )
    return answer


def _money(charged: Charges | None) -> MoneyTotal:
    if charged is None:
        return {"lines": []}
    return {"lines": charged.lines, "total": charged.total}


def _add_break_even(
    answer: UtilityBillAnswer,
    notes: Notes,
    *,
    hours: Quantity | None,
    rented: Charges | None,
    bought: Charges | None,
    electricity: Charges | None,
    facility_kw: Quantity | None,
) -> None:
    """Runs that pay the purchase back, against rent alone and against rent less electricity."""
    for name, charged in (("rent", rented), ("purchase", bought)):
        if charged is None and f"/{name}/total" not in {gap["pointer"] for gap in notes.gaps}:
            notes.gap(f"/{name}/total", "PRICE_REQUIRED", f"the {name} is not known")
    alone, with_power = "/break_even_runs", "/break_even_runs_with_electricity"
    refusal = incomparable(rented, bought)
    if refusal or not (hours and rented and bought):
        for pointer in (alone, with_power):
            notes.gap(pointer, *(refusal or ("PRICE_REQUIRED", "needs the rent and the purchase")))
        return
    answer["break_even_runs"] = quantity(runs_of_purchase(rented, bought))
    refusal = incomparable(rented, electricity)
    if refusal or not (electricity and facility_kw):
        notes.gap(with_power, *(refusal or ("ELECTRICITY_UNKNOWN", "the electricity is not known")))
        return
    # Both grow with the same hours, so what is unsure of them is the power alone.
    rent_per_hour = rented.quantity.value / hours.value
    paid_per_hour = combine(
        lambda kw: electricity.quantity.value * kw / facility_kw.value / hours.value, facility_kw
    )
    saved_per_hour = combine(lambda paid: rent_per_hour - paid, inverted(paid_per_hour))
    if saved_per_hour.low <= 0.0:
        never = saved_per_hour.value <= 0.0
        detail = "electricity costs as much as the rent that it saves"
        notes.gap(
            with_power, "NEVER" if never else "UNBOUNDED", detail if never else f"it may be that {detail}"
        )
        return
    saved = combine(lambda h, s: h * s, hours, saved_per_hour)
    runs = combine(lambda s, b: break_even_runs(b, s), inverted(saved), bought.quantity)
    answer["break_even_runs_with_electricity"] = quantity(runs)
