"""Devices that the question owns or rents."""

from collections.abc import Iterator

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.plans.space import DeviceSupply
from service.plans.supplies.clusters import build_rented_cluster
from service.plans.supplies.machines import SupplyMachine, find_site
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.schemas.plans import PlanConstraints, PlanRequest, RentedDevices
from service.schemas.references import ClusterInput
from service.schemas.rental import Rental


def list_owned(question: PlanRequest, catalog: CatalogView) -> Iterator[SupplyMachine]:
    """Yields the devices that the question owns."""
    for place, each in enumerate(question.owned):
        pointer = f"/owned/{place}"
        bought = each.purchase
        if bought is not MISSING and bought.ownership is MISSING:
            detail = "the cost of a run on owned devices needs their terms of ownership"
            raise PlanningError("OWNERSHIP_REQUIRED", f"{pointer}/purchase/ownership", detail)
        supply = DeviceSupply(
            name=each.name,
            kind="owned",
            clusters=(),
            accelerator_id=_resolve_accelerator_id(each.cluster, catalog, f"{pointer}/cluster"),
            most_devices=each.cluster.accelerator_count,
            pointer=pointer,
            site_pointer=f"{pointer}/site",
            purchase=None if bought is MISSING else bought,
            site=None if each.site is MISSING else each.site,
        )
        yield SupplyMachine(supply, each.cluster)


def list_rented(question: PlanRequest, catalog: CatalogView) -> Iterator[SupplyMachine]:
    """Yields the devices that the question rents and its constraints allow."""
    for place, each in enumerate(question.rented):
        if not _is_allowed(each, question.constraints):
            continue
        pointer = f"/rented/{place}"
        region = None if each.region is MISSING else each.region
        site, at = find_site(question, region)
        supply = DeviceSupply(
            name=each.name,
            kind="rented",
            clusters=(),
            accelerator_id=_resolve_accelerator_id(each.cluster, catalog, f"{pointer}/cluster"),
            most_devices=each.cluster.accelerator_count,
            pointer=pointer,
            site_pointer=at,
            rental=each.rental,
            site=site,
            provider=None if each.provider is MISSING else each.provider,
            region=region,
            purchase_option=_get_purchase_option(each.rental, catalog),
        )
        yield SupplyMachine(supply, build_rented_cluster(each, catalog))


def _is_allowed(each: RentedDevices, constraints: PlanConstraints) -> bool:
    """Returns true if provider and region are allowed by the constraints or not stated."""
    pairs = ((each.provider, constraints.providers), (each.region, constraints.regions))
    return all(own is MISSING or allowed is MISSING or own in allowed for own, allowed in pairs)


def _get_purchase_option(rental: Rental, catalog: CatalogView) -> str | None:
    if rental.offer_id is not MISSING and rental.offer_id in catalog.offers:
        return catalog.offers[rental.offer_id].purchase_option
    return None if rental.purchase_option is MISSING else rental.purchase_option


def _resolve_accelerator_id(cluster: ClusterInput, catalog: CatalogView, pointer: str) -> str:
    try:
        return resolve_cluster(cluster, catalog, AnswerNotes()).accelerator.id
    except PlanningError as error:
        at = error.pointer.replace("/cluster", pointer, 1)
        raise PlanningError(error.code, at, error.detail) from error
