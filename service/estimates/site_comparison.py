"""Answer to a question of sites: a run in several buildings side by side."""

from datetime import UTC

from pydantic import MISSING

from service.estimates.charges import to_money
from service.estimates.rates import plan_run
from service.estimates.utility_bill import bill_run, to_utility_bill
from service.planning.cost.charges import CurrencyCharges
from service.planning.errors import PlanningError
from service.planning.estimates import Run
from service.planning.estimates.bill import RunBill
from service.planning.estimates.power import DevicePower, estimate_draw
from service.planning.estimates.site_ranking import RankedSite, convert_charges, rank_sites
from service.planning.notes import AnswerNotes
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.schemas.answer import to_evidence
from service.schemas.what_if import SiteComparisonEstimate, SiteComparisonFigures, SiteComparisonRequest


def compare_sites(question: SiteComparisonRequest, catalog: CatalogView) -> SiteComparisonEstimate:
    """Answers with the run in several buildings, side by side."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    notes, run = AnswerNotes(), plan_run(question, catalog)
    draw, ranked, sites = estimate_draw(run), list[RankedSite](), list[SiteComparisonFigures]()
    for place in range(len(question.sites)):
        bill = _bill_site(question, place, run, draw, catalog)
        notes.record_calibrations(bill.run.notes.calibration_ids)
        notes.sources += [source for source in bill.run.notes.sources if source not in notes.sources]
        converted = _convert_total(bill.electricity.charged, question, catalog)
        ranked.append(RankedSite(question.sites[place].name, bill, converted))
        sites.append(_to_site_figures(ranked[-1], question, catalog))
    compared: SiteComparisonEstimate = {
        "sites": sites,
        "evidence": to_evidence(question, notes, catalog.revision),
        "gaps": notes.gaps,
    }
    for name, best in rank_sites(ranked, notes)._asdict().items():
        if best is not None:
            compared[name] = best  # type: ignore[literal-required]
    return compared


def _bill_site(
    question: SiteComparisonRequest, place: int, run: Run, draw: DevicePower | None, catalog: CatalogView
) -> RunBill:
    """Returns the bill of a run in one of the buildings; refusals name its place in the question."""
    asked = question.model_copy(update={"site": question.sites[place].site})
    try:
        return bill_run(asked, run._replace(notes=run.notes.copy()), draw, catalog)
    except PlanningError as error:
        pointer = error.pointer.replace("/site", f"/sites/{place}/site", 1)
        raise PlanningError(error.code, pointer, error.detail) from error


def _convert_total(
    charged: CurrencyCharges | None, question: SiteComparisonRequest, catalog: CatalogView
) -> CurrencyCharges | None:
    """Returns a sum in the currency of the question, by the rates of the day on which the run begins."""
    on = catalog.exchange_rates.newest_on
    if question.starts_at is not MISSING:
        on = question.starts_at.astimezone(UTC).date()
    if charged is None or question.currency_code is MISSING or on is None:
        return None
    return convert_charges(charged, question.currency_code, catalog.exchange_rates, on)


def _to_site_figures(
    site: RankedSite, question: SiteComparisonRequest, catalog: CatalogView
) -> SiteComparisonFigures:
    answer = to_utility_bill(question, site.bill, catalog)
    energy, carbon = answer["energy"], answer["carbon"]
    figures: SiteComparisonFigures = {
        "name": site.name,
        "warnings": answer["warnings"],
        "gaps": answer["gaps"],
    }
    for name in ("facility_kwh", "peak_kw"):
        if name in energy:
            figures[name] = energy[name]
    if "location_based_kg_co2e" in carbon:
        figures["location_based_kg_co2e"] = carbon["location_based_kg_co2e"]
    if "water_liters" in answer:
        figures["water_liters"] = answer["water_liters"]
    if "total" in answer["electricity"]:
        figures["electricity"] = answer["electricity"]["total"]
    if site.converted is not None:
        figures["converted"] = to_money(site.converted.total)
    return figures
