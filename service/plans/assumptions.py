"""Assumptions of a question, applied as factors to supplies, sites and times."""

from collections.abc import Iterator
from math import prod
from typing import Final, Literal

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.plans.space import DeviceSupply, SearchSpace
from service.resolve.catalog import CatalogView
from service.schemas.plans import PlanRequest
from service.schemas.references import EfficiencyInput, ModelledEfficiency
from service.schemas.rental import Rental
from service.schemas.site import ElectricityPriceInput, RunSiteInput
from service.schemas.workloads import TrainingWorkloadInput

Assumption = Literal["price", "time", "electricity_price", "carbon_intensity", "interruption_rate"]

_MOST: Final = 1e6


def compute_factor(question: PlanRequest, kind: Assumption, *names: str | None) -> float:
    """Returns the factor for figures of one kind that belong to one of ``names``."""
    return prod(
        each.factor
        for each in question.assumptions
        if each.kind == kind and (each.of is MISSING or each.of in names)
    )


def compute_time_factor(question: PlanRequest, accelerator_id: str) -> float:
    """Returns the factor for the time of the work on an accelerator."""
    return compute_factor(question, "time", accelerator_id)


def list_site_names(supply: DeviceSupply) -> tuple[str | None, ...]:
    """Returns the names that an assumption may use for a supply's site: supply, region, catalog id."""
    site_id = MISSING if supply.site is None else supply.site.site_id
    return supply.name, supply.region, None if site_id is MISSING else site_id


def build_efficiency(question: PlanRequest, accelerator_id: str) -> EfficiencyInput:
    """Returns the efficiency setting of the work on an accelerator."""
    factor = compute_time_factor(question, accelerator_id)
    return ModelledEfficiency(source="modelled", **({} if factor == 1.0 else {"time_factor": factor}))


def apply_assumptions(supply: DeviceSupply, question: PlanRequest, catalog: CatalogView) -> DeviceSupply:
    """Returns the supply with the question's factors applied to prices, interruptions and site."""
    price = compute_factor(question, "price", supply.name)
    if supply.rental is not None:
        rate = compute_factor(question, "interruption_rate", supply.name)
        supply = supply._replace(rental=_scale_rental(supply.rental, price, rate))
    if supply.purchase is not None and price != 1.0:
        own = supply.purchase.price_factor
        factor = price if own is MISSING else own * price
        supply = supply._replace(purchase=supply.purchase.model_copy(update={"price_factor": factor}))
    if supply.site is None:
        return supply
    names = list_site_names(supply)
    electricity = 1.0
    if _has_price(supply.site, catalog):
        electricity = compute_factor(question, "electricity_price", *names)
    carbon = compute_factor(question, "carbon_intensity", *names)
    return supply._replace(site=_scale_site(supply.site, electricity, carbon))


def _scale_rental(rental: Rental, price: float, interruptions: float) -> Rental:
    changes: dict[str, object] = {}
    if price != 1.0:
        own = rental.price_factor
        changes["price_factor"] = price if own is MISSING else own * price
    if interruptions != 1.0 and rental.spot is not MISSING:
        rate = rental.spot.interruptions_per_hour * interruptions
        changes["spot"] = rental.spot.model_copy(update={"interruptions_per_hour": rate})
    return rental.model_copy(update=changes) if changes else rental


def _has_price(site: RunSiteInput, catalog: CatalogView) -> bool:
    if site.electricity is not MISSING:
        return True
    known = None if site.site_id is MISSING else catalog.sites.get(site.site_id)
    return known is not None and known.tariff_id is not None


def _scale_site(site: RunSiteInput, electricity: float, carbon: float) -> RunSiteInput:
    changes: dict[str, object] = {}
    if electricity != 1.0:
        given = ElectricityPriceInput() if site.electricity is MISSING else site.electricity
        own = given.price_factor
        factor = electricity if own is MISSING else own * electricity
        changes["electricity"] = given.model_copy(update={"price_factor": factor})
    if carbon != 1.0:
        own = site.carbon_intensity_factor
        changes["carbon_intensity_factor"] = carbon if own is MISSING else own * carbon
    return site.model_copy(update=changes) if changes else site


def check_assumptions(space: SearchSpace) -> None:
    """Refuses an assumption that changes nothing: an unknown name, or the time of a service."""
    largest: dict[str, float] = {}
    for place, each in enumerate(space.question.assumptions):
        pointer = f"/assumptions/{place}"
        largest[each.kind] = largest.get(each.kind, 1.0) * max(1.0, each.factor)
        if largest[each.kind] > _MOST:
            detail = f"the factors of one kind multiply to at most {_MOST:g}"
            raise PlanningError("FACTOR_TOO_LARGE", f"{pointer}/factor", detail)
        if each.kind == "time" and not isinstance(space.question.workload, TrainingWorkloadInput):
            detail = (
                "only the time of training may be changed, since the replicas of a service would change too"
            )
            raise PlanningError("NOT_MODELLED", f"{pointer}/kind", detail)
        if each.of is not MISSING and each.of not in set(_list_names(space, each.kind)):
            detail = "no supply, accelerator or site of the plan has this name"
            raise PlanningError("UNKNOWN_REFERENCE", f"{pointer}/of", detail)


def _list_names(space: SearchSpace, kind: Assumption) -> Iterator[str | None]:
    for supply in space.supplies:
        if kind == "time":
            yield supply.accelerator_id
        elif kind in ("price", "interruption_rate"):
            yield supply.name
        else:
            yield from list_site_names(supply)
