"""Clusters of instances that offers and rents describe."""

from pydantic import MISSING

from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView, KnownOffer
from service.resolve.hardware import find_links, get_accelerators_per_node, resolve_cluster
from service.schemas.plans import RentedDevices
from service.schemas.references import CatalogAccelerator, ClusterInput, LinkSpecification, SpecifiedLink


def build_offer_cluster(offer: KnownOffer, catalog: CatalogView) -> ClusterInput:
    """Returns the cluster of one instance of an offer."""
    accelerator = CatalogAccelerator(source="catalog", id=offer.accelerator_id)
    return _build_instance_cluster(ClusterInput(accelerator=accelerator), offer.accelerator_count, catalog)


def has_known_network(offer: KnownOffer, cluster: ClusterInput, catalog: CatalogView) -> bool:
    """Returns true if the catalog knows the network between instances of an offer.

    The network of a vendor's system joins whole nodes: it is not sold with parts of one.
    """
    accelerator = CatalogAccelerator(source="catalog", id=offer.accelerator_id)
    if offer.accelerator_count < get_accelerators_per_node(ClusterInput(accelerator=accelerator), catalog):
        return False
    asked = cluster.model_copy(update={"accelerator_count": 2 * offer.accelerator_count})
    return resolve_cluster(asked, catalog, AnswerNotes()).inter_node_link.basis is not EvidenceBasis.ASSUMED


def build_rented_cluster(each: RentedDevices, catalog: CatalogView) -> ClusterInput:
    """Returns the nodes of the question, else the instances that it rents."""
    size, offer_id = each.rental.devices_per_instance, each.rental.offer_id
    if size is MISSING and offer_id is not MISSING and offer_id in catalog.offers:
        size = catalog.offers[offer_id].accelerator_count
    if size is MISSING or each.cluster.accelerators_per_node is not MISSING:
        return each.cluster
    return _build_instance_cluster(each.cluster, size, catalog)


def _build_instance_cluster(cluster: ClusterInput, size: int, catalog: CatalogView) -> ClusterInput:
    """Returns a cluster of instances. Two instances are joined by the network, not by the vendor's node."""
    reference, changes = cluster.accelerator, dict[str, object]()
    known = catalog.accelerators.get(reference.id) if isinstance(reference, CatalogAccelerator) else None
    known_node = known and (known.systems or known.accelerator.server)
    node = min(size, get_accelerators_per_node(cluster, catalog)) if known_node else size
    if node != get_accelerators_per_node(cluster, catalog):
        changes["accelerators_per_node"] = node
    own = catalog.links.get(find_links(cluster, catalog).intra_node_link_id or "")
    if own and own.link.joined > node and cluster.intra_node_link is MISSING:
        latency = own.link.latency_seconds
        link = LinkSpecification(
            kind=own.link.kind,
            bandwidth_bytes_per_second=own.link.bytes_per_second,
            latency_seconds=MISSING if latency is None else latency,
            joined_count=node,
            in_network_reduction=own.link.in_network,
        )
        changes["intra_node_link"] = SpecifiedLink(source="specification", specification=link)
    return cluster.model_copy(update=changes)
