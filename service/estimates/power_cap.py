"""Answer to a question of power caps: time against energy and money."""

from service.estimates.rates import plan_run
from service.estimates.utility_bill import bill_run, to_utility_bill
from service.planning.estimates.power_cap import (
    CappedTraining,
    build_cappable_training,
    find_least_energy_cap,
)
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_quantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.what_if import PowerCapEstimate, PowerCapEstimateRequest, PowerCapFigures


def estimate_power_cap(question: PowerCapEstimateRequest, catalog: CatalogView) -> PowerCapEstimate:
    """Answers with time, energy and money of a training run whose devices are held below their limit."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    cappable = build_cappable_training(plan_run(question, catalog))
    bills, caps = [], []
    for place, cap in enumerate(question.power_caps_watts):
        capped = cappable.run_capped(cap, f"/power_caps_watts/{place}")
        bill = bill_run(question, capped.run, capped.draw, catalog)
        bills.append((cap, bill))
        caps.append(_to_cap_figures(capped, to_utility_bill(question, bill, catalog)))
    uncapped = cappable.run_uncapped()
    whole = bill_run(question, uncapped.run, uncapped.draw, catalog)
    answer = to_utility_bill(question, whole, catalog)
    result: PowerCapEstimate = {
        "uncapped": _to_cap_figures(uncapped, answer),
        "caps": caps,
        "evidence": answer["evidence"],
        "warnings": answer["warnings"],
        "gaps": answer["gaps"],
    }
    least = find_least_energy_cap(whole, bills)
    if least is not None:
        result["least_energy_watts"] = least
    return result


def _to_cap_figures(capped: CappedTraining, answer: UtilityBill) -> PowerCapFigures:
    figures: PowerCapFigures = {
        "clock_share": capped.clock,
        "slowdown": to_quantity(capped.slowdown),
        "power_per_device_watts": to_quantity(capped.draw.watts),
        "duration_seconds": answer["duration_seconds"],
    }
    if capped.cap_watts is not None:
        figures["power_cap_watts"] = capped.cap_watts
    for name in ("it_kwh", "facility_kwh", "peak_kw"):
        if name in answer["energy"]:
            figures[name] = answer["energy"][name]
    if "total" in answer["electricity"]:
        figures["electricity"] = answer["electricity"]["total"]
    if "total" in answer["rent"]:
        figures["rent"] = answer["rent"]["total"]
    if "location_based_kg_co2e" in answer["carbon"]:
        figures["location_based_kg_co2e"] = answer["carbon"]["location_based_kg_co2e"]
    return figures
