"""Resolution of purchased parts and the terms of ownership."""

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import UnitPrice
from service.planning.cost.ownership import OwnershipTerms as YearlyTerms
from service.planning.cost.terms import OwnershipTerms, PurchasedPart, PurchaseTerms
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView, KnownHardwarePrice, resolve_row
from service.resolve.offer_warnings import warn_of_age
from service.resolve.prices import add_range, multiply_price, resolve_price
from service.schemas.purchase import Ownership, Purchase

_HARDWARE = "/purchase/hardware_price_id"


def resolve_purchase(
    given: Purchase, cluster: Cluster, catalog: CatalogView, notes: AnswerNotes
) -> PurchaseTerms:
    """Returns the devices of a cluster with hosts, network and storage. Refuses a price outside its range."""
    count = cluster.accelerator_count
    price, bought = _resolve_devices(given, cluster, catalog, notes)
    parts = [PurchasedPart("devices", multiply_price(price, given.price_factor), "device", float(bought))]
    if given.hosts is not MISSING:
        each = given.hosts.devices_per_host
        per_host = cluster.accelerators_per_node if each is MISSING else each
        hosts = float(-(-count // per_host))
        parts.append(PurchasedPart("hosts", resolve_price(given.hosts.price_per_host), "host", hosts))
    if given.network_per_device is not MISSING:
        network = resolve_price(given.network_per_device)
        parts.append(PurchasedPart("network", network, "device", float(count)))
    if given.storage is not MISSING:
        parts.append(PurchasedPart("storage", resolve_price(given.storage), "system", 1.0))
    ownership = None if given.ownership is MISSING else _resolve_ownership(given.ownership)
    return PurchaseTerms(tuple(parts), ownership)


def _resolve_devices(
    given: Purchase, cluster: Cluster, catalog: CatalogView, notes: AnswerNotes
) -> tuple[UnitPrice, int]:
    """Returns the price of one device, and the number of devices that are bought."""
    stated, hardware_id = given.price_per_device, given.hardware_price_id
    if (stated is MISSING) == (hardware_id is MISSING):
        detail = "give either price_per_device or hardware_price_id"
        raise PlanningError("PURCHASE_PRICE", "/purchase", detail)
    if stated is not MISSING:
        price = resolve_price(stated, given.price_range, "/purchase/price_range")
        return price, cluster.accelerator_count
    known = _find_hardware(given, str(hardware_id), cluster, catalog)
    notes.cite(known.source, _HARDWARE)
    warn_of_age(notes, known.as_of, _HARDWARE, on=now().date())
    if known.doubt is not None:
        notes.warn("PRICE_DOUBTFUL", _HARDWARE, known.doubt)
    source = f"hardware price {hardware_id} of {known.as_of}"
    price = UnitPrice(known.price_per_device, known.currency_code, source, EvidenceBasis.REFERENCE)
    if given.price_range is not MISSING:
        price = add_range(price, given.price_range, "/purchase/price_range")
    elif known.low is not None:
        price = price._replace(low=known.low, high=known.high)
    size = known.accelerator_count
    return price, -(-cluster.accelerator_count // size) * size


def _find_hardware(
    given: Purchase, hardware_id: str, cluster: Cluster, catalog: CatalogView
) -> KnownHardwarePrice:
    known = resolve_row(catalog.hardware_prices, hardware_id, _HARDWARE)
    if known.accelerator_id != cluster.accelerator.id:
        detail = f"the hardware price is for {known.accelerator_id}"
        raise PlanningError("HARDWARE_PRICE_MISMATCH", _HARDWARE, detail)
    if known.has_host and given.hosts is not MISSING:
        raise PlanningError("HOSTS_INCLUDED", "/purchase/hosts", "the hardware price includes the hosts")
    return known


def _resolve_ownership(given: Ownership) -> OwnershipTerms:
    yearly = YearlyTerms(given.years, given.residual_share, given.interest_rate, given.maintenance_share)
    return OwnershipTerms(
        yearly,
        given.utilization,
        staff_per_year=None if given.staff_per_year is MISSING else resolve_price(given.staff_per_year),
        space_per_year=None if given.space_per_year is MISSING else resolve_price(given.space_per_year),
    )
