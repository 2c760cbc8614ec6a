"""Resolution of purchased parts and the terms of ownership."""

from pydantic import MISSING

from service.planning.cost.ownership import OwnershipTerms as YearlyTerms
from service.planning.cost.terms import OwnershipTerms, PurchasedPart, PurchaseTerms
from service.planning.hardware.cluster import Cluster
from service.resolve.prices import multiply_price, resolve_price
from service.schemas.purchase import Ownership, Purchase


def resolve_purchase(given: Purchase, cluster: Cluster) -> PurchaseTerms:
    """Returns the devices of a cluster with hosts, network and storage. Refuses a price outside its range."""
    count = cluster.accelerator_count
    price = resolve_price(given.price_per_device, given.price_range, "/purchase/price_range")
    parts = [PurchasedPart("devices", multiply_price(price, given.price_factor), "device", float(count))]
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


def _resolve_ownership(given: Ownership) -> OwnershipTerms:
    yearly = YearlyTerms(given.years, given.residual_share, given.interest_rate, given.maintenance_share)
    return OwnershipTerms(
        yearly,
        given.utilization,
        staff_per_year=None if given.staff_per_year is MISSING else resolve_price(given.staff_per_year),
        space_per_year=None if given.space_per_year is MISSING else resolve_price(given.space_per_year),
    )
