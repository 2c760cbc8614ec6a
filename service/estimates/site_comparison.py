"""What if a run took place elsewhere: several buildings side by side."""

from datetime import UTC
from decimal import Decimal

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.estimates.utility_bill import bill_of_run
from service.planning.cost import rounded
from service.planning.errors import PlanningError
from service.planning.estimates.power import estimate_draw
from service.planning.notes import Notes
from service.resolve.calibrated import calibrated
from service.resolve.catalog import CatalogView
from service.schemas.answer import evidence, money
from service.schemas.base import MoneyQuantity, QuantityAnswer
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.what_if import SiteComparison, SiteComparisonAnswer, SiteFigures


def compare_sites(question: SiteComparison, catalog: CatalogView) -> SiteComparisonAnswer:
    """The run in several buildings, side by side."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    notes = Notes()
    run = plan_run(question, catalog)
    draw = estimate_draw(run)
    sites = []
    for place, choice in enumerate(question.sites):
        asked = question.model_copy(update={"site": choice.site})
        own = run._replace(notes=run.notes.copy())
        try:
            answer = bill_of_run(asked, own, draw, catalog)
        except PlanningError as error:
            pointer = error.pointer.replace("/site", f"/sites/{place}/site", 1)
            raise PlanningError(error.code, pointer, error.detail) from error
        notes.calibrated(own.notes.calibration_ids)
        for source in own.notes.sources:
            if source not in notes.sources:
                notes.sources.append(source)
        sites.append(_figures(choice.name, answer, question, catalog))
    compared: SiteComparisonAnswer = {
        "sites": sites,
        "evidence": evidence(question, notes, catalog.revision),
        "gaps": notes.gaps,
    }
    _rank(compared, notes)
    return compared


def _figures(
    name: str, answer: UtilityBillAnswer, question: SiteComparison, catalog: CatalogView
) -> SiteFigures:
    figures: SiteFigures = {"name": name, "warnings": answer["warnings"], "gaps": answer["gaps"]}
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
        converted = _converted(total, question, catalog)
        if converted is not None:
            figures["converted"] = converted
    return figures


def _converted(total: MoneyQuantity, question: SiteComparison, catalog: CatalogView) -> MoneyQuantity | None:
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
        ends.append(rounded(found.amount, wanted))
    return money(ends[0], ends[1], ends[2], wanted, total["basis"])


def _rank(compared: SiteComparisonAnswer, notes: Notes) -> None:
    """Names of the best sites, each where all have the figure."""
    sites = compared["sites"]
    amounts = [site.get("converted") or site.get("electricity") for site in sites]
    known = [amount for amount in amounts if amount is not None]
    currencies = {amount["currency_code"] for amount in known}
    if len(known) < len(sites):
        notes.gap("/cheapest", "PRICE_REQUIRED", "the electricity of a site is not known")
    elif len(currencies) > 1:
        detail = "the sites are billed in different currencies: give currency_code, and rates of them"
        notes.gap("/cheapest", "CURRENCY_MISMATCH", detail)
    else:
        place = min(range(len(sites)), key=lambda one: Decimal(known[one]["amount"]))
        compared["cheapest"] = sites[place]["name"]
    carbon = [site.get("location_based_kg_co2e") for site in sites]
    water = [site.get("water_liters") for site in sites]
    if None in carbon:
        notes.gap("/cleanest", "GRID_REQUIRED", "the emissions of a site are not known")
    else:
        compared["cleanest"] = _least(sites, carbon)
    if None in water:
        notes.gap("/least_water", "WATER_UNKNOWN", "the water of a site is not known")
    else:
        compared["least_water"] = _least(sites, water)


def _least(sites: list[SiteFigures], figures: list[QuantityAnswer | None]) -> str:
    place = min(range(len(sites)), key=lambda one: figures[one]["value"])  # type: ignore[index]
    return sites[place]["name"]
