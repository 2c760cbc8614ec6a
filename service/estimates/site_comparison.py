"""What if a run took place elsewhere: several buildings side by side."""

from datetime import UTC
from decimal import Decimal

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.estimates.utility_bill import bill_run
from service.planning.cost import round_amount
from service.planning.errors import PlanningError
from service.planning.estimates.power import estimate_draw
from service.planning.notes import AnswerNotes
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence, to_money_quantity
from service.schemas.base import MoneyQuantity, QuantityEstimate
from service.schemas.bill_answers import UtilityBill
from service.schemas.what_if import SiteComparisonEstimate, SiteComparisonFigures, SiteComparisonRequest


def compare_sites(question: SiteComparisonRequest, catalog: CatalogView) -> SiteComparisonEstimate:
    """The run in several buildings, side by side."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    notes = AnswerNotes()
    run = plan_run(question, catalog)
    draw = estimate_draw(run)
    sites = []
    for place, choice in enumerate(question.sites):
        asked = question.model_copy(update={"site": choice.site})
        own = run._replace(notes=run.notes.copy())
        try:
            answer = bill_run(asked, own, draw, catalog)
        except PlanningError as error:
            pointer = error.pointer.replace("/site", f"/sites/{place}/site", 1)
            raise PlanningError(error.code, pointer, error.detail) from error
        notes.record_calibrations(own.notes.calibration_ids)
        for source in own.notes.sources:
            if source not in notes.sources:
                notes.sources.append(source)
        sites.append(_to_site_figures(choice.name, answer, question, catalog))
    compared: SiteComparisonEstimate = {
        "sites": sites,
        "evidence": to_evidence(question, notes, catalog.revision),
        "gaps": notes.gaps,
    }
    _rank_sites(compared, notes)
    return compared


def _to_site_figures(
    name: str, answer: UtilityBill, question: SiteComparisonRequest, catalog: CatalogView
) -> SiteComparisonFigures:
    figures: SiteComparisonFigures = {"name": name, "warnings": answer["warnings"], "gaps": answer["gaps"]}
    energy, carbon = answer["energy"], answer["carbon"]
    if "facility_kwh" in energy:
        figures["facility_kwh"] = energy["facility_kwh"]
    if "peak_kw" in energy:
        figures["peak_kw"] = energy["peak_kw"]
    if "location_based_kg_co2e" in carbon:
        figures["location_based_kg_co2e"] = carbon["location_based_kg_co2e"]
    if "water_liters" in answer:
        figures["water_liters"] = answer["water_liters"]
    if "total" in answer["electricity"]:
        total = answer["electricity"]["total"]
        figures["electricity"] = total
        converted = _convert_total(total, question, catalog)
        if converted is not None:
            figures["converted"] = converted
    return figures


def _convert_total(
    total: MoneyQuantity, question: SiteComparisonRequest, catalog: CatalogView
) -> MoneyQuantity | None:
    """An amount in the currency of the question, by the rates of the day on which the run begins."""
    if question.currency_code is MISSING:
        return None
    wanted = question.currency_code
    newest = catalog.exchange_rates.newest_on
    day = newest if question.starts_at is MISSING else question.starts_at.astimezone(UTC).date()
    if day is None:
        return None
    ends = []
    for end in ("amount", "low", "high"):
        amount = Decimal(total[end])
        found = catalog.exchange_rates.convert(amount, total["currency_code"], wanted, day)
        if found is None:
            return None
        ends.append(round_amount(found.amount, wanted))
    return to_money_quantity(ends[0], ends[1], ends[2], wanted, total["basis"])


def _rank_sites(compared: SiteComparisonEstimate, notes: AnswerNotes) -> None:
    """Names of the best sites, each where all have the figure."""
    sites = compared["sites"]
    amounts = [site.get("converted") or site.get("electricity") for site in sites]
    known = [amount for amount in amounts if amount is not None]
    currencies = {amount["currency_code"] for amount in known}
    if len(known) < len(sites):
        notes.add_gap("/cheapest", "PRICE_REQUIRED", "the electricity of a site is not known")
    elif len(currencies) > 1:
        detail = "the sites are billed in different currencies: give currency_code, and rates of them"
        notes.add_gap("/cheapest", "CURRENCY_MISMATCH", detail)
    else:
        place = min(range(len(sites)), key=lambda one: Decimal(known[one]["amount"]))
        compared["cheapest"] = sites[place]["name"]
    carbon = [site.get("location_based_kg_co2e") for site in sites]
    water = [site.get("water_liters") for site in sites]
    if None in carbon:
        notes.add_gap("/cleanest", "GRID_REQUIRED", "the emissions of a site are not known")
    else:
        compared["cleanest"] = _find_least_site(sites, carbon)
    if None in water:
        notes.add_gap("/least_water", "WATER_UNKNOWN", "the water of a site is not known")
    else:
        compared["least_water"] = _find_least_site(sites, water)


def _find_least_site(sites: list[SiteComparisonFigures], figures: list[QuantityEstimate | None]) -> str:
    place = min(range(len(sites)), key=lambda one: figures[one]["value"])  # type: ignore[index]
    return sites[place]["name"]
