"""Resolution of clusters, accelerators and links into planning values."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import ASSUMED_INTER_LINK, ASSUMED_INTRA_LINK, Accelerator, Cluster
from service.planning.hardware.links import Link, LinkKind
from service.planning.hardware.resolution import DeviceConstants
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, assumed
from service.resolve.catalog import (
    CatalogView,
    KnownAccelerator,
    KnownLink,
    KnownLinks,
    KnownSystem,
    resolve_row,
)
from service.resolve.host import resolve_host
from service.schemas.base import EstimateSource
from service.schemas.references import (
    AcceleratorReference,
    CatalogAccelerator,
    CatalogLink,
    ClusterInput,
    LinkReference,
)

ACCELERATORS_PER_NODE = 8
"""Default if neither the question nor a reference server states the number."""


def _resolve_accelerator(
    reference: AcceleratorReference, catalog: CatalogView, notes: AnswerNotes
) -> Accelerator:
    if isinstance(reference, CatalogAccelerator):
        known = resolve_row(catalog.accelerators, reference.id, "/cluster/accelerator/id", notes)
        notes.cite(known.source, "/cluster/accelerator")
        return known.accelerator
    given = reference.specification
    memory, bandwidth = given.memory_bytes, given.memory_bandwidth_bytes_per_second
    power, rates = given.power_limit_watts, given.peak_flops_per_second
    return Accelerator(
        id=given.name,
        generation="" if given.generation is MISSING else given.generation,
        capacity_bytes=None if memory is MISSING else assumed(float(memory)),
        bandwidth_bytes_per_second=None if bandwidth is MISSING else bandwidth,
        peak_flops_per_second={} if rates is MISSING else rates,
        power_limit_watts=None if power is MISSING else power,
    )


class _ClusterLinks(NamedTuple):
    """The two links of a cluster, with the catalog rows that they come from."""

    intra: Link
    inter: Link
    sources: Mapping[str, EstimateSource]


def resolve_link(
    reference: LinkReference, catalog: CatalogView, pointer: str
) -> tuple[Link, EstimateSource | None]:
    """Returns a link that a question names, and its catalog row if it has one."""
    if isinstance(reference, CatalogLink):
        known = resolve_row(catalog.links, reference.id, f"{pointer}/id")
        return known.link, known.source
    given = reference.specification
    latency, joined = given.latency_seconds, given.joined_count
    link = Link(
        given.kind,
        given.bandwidth_bytes_per_second,
        None if latency is MISSING else latency,
        joined=1 if joined is MISSING else joined,
        in_network=given.in_network_reduction,
    )
    return link, None


def _find_accelerator(given: ClusterInput, catalog: CatalogView) -> KnownAccelerator | None:
    """Returns the accelerator of the catalog that the question names; None for one given by its figures."""
    reference = given.accelerator
    if isinstance(reference, CatalogAccelerator):
        return resolve_row(catalog.accelerators, reference.id, "/cluster/accelerator/id")
    return None


def find_system(given: ClusterInput, catalog: CatalogView) -> KnownSystem | None:
    """Returns the system that the question names, else the first of the accelerator; None without any.

    Raises :class:`PlanningError` for a name that is none of the accelerator's systems.
    """
    known = _find_accelerator(given, catalog)
    systems = known.systems if known else ()
    if given.system is MISSING:
        return next(iter(systems), None)
    for system in systems:
        if system.name.casefold() == given.system.casefold():
            return system
    names = ", ".join(system.name for system in systems) or "none"
    raise PlanningError("UNKNOWN_REFERENCE", "/cluster/system", f"systems of this accelerator: {names}")


def find_links(given: ClusterInput, catalog: CatalogView) -> KnownLinks:
    """Returns the ids of the links of the system, else of the accelerator's row."""
    if given.system is not MISSING and (system := find_system(given, catalog)):
        return system.links
    known = _find_accelerator(given, catalog)
    return known.usual_links if known else KnownLinks()


def _list_own_links(
    links: KnownLinks, pcie_generation: int | None, catalog: CatalogView, per_node: int
) -> Iterator[KnownLink]:
    """Yields links that join all devices of a node: the link of the system, then PCI Express."""
    names = (links.intra_node_link_id, f"pcie-{pcie_generation}-x16")
    for link in (catalog.links.get(name) for name in names if name):
        if link and link.link.kind is not LinkKind.C2C and not 1 < link.link.joined < per_node:
            yield link


def _resolve_links(given: ClusterInput, catalog: CatalogView, per_node: int) -> _ClusterLinks:
    """Returns the links that the question names, else those of the catalog, else assumed ones.

    Bridges between some cards of a node and links of a superchip to its processor do not count.
    """
    known, own = _find_accelerator(given, catalog), find_links(given, catalog)
    intra, inter, interfaces = ASSUMED_INTRA_LINK, ASSUMED_INTER_LINK, 1.0
    sources: dict[str, EstimateSource | None] = {}
    if given.intra_node_link is not MISSING:
        pointer = "/cluster/intra_node_link"
        intra, sources[pointer] = resolve_link(given.intra_node_link, catalog, pointer)
    elif known and (joining := next(_list_own_links(own, known.pcie_generation, catalog, per_node), None)):
        intra, sources["/cluster/intra_node_link"] = joining.link, joining.source
    if given.inter_node_link is not MISSING:
        pointer = "/cluster/inter_node_link"
        inter, sources[pointer] = resolve_link(given.inter_node_link, catalog, pointer)
    elif network := catalog.links.get(own.inter_node_link_id or ""):
        inter, sources["/cluster/inter_node_link"] = network.link, network.source
        interfaces = own.network_interfaces_per_device
    else:
        interfaces = 1.0 / per_node
    if given.network_interfaces_per_node is not MISSING:
        interfaces = given.network_interfaces_per_node / per_node
    inter = inter._replace(bytes_per_second=inter.bytes_per_second * interfaces)
    return _ClusterLinks(intra, inter, {at: source for at, source in sources.items() if source})


def _check_node(given: ClusterInput, catalog: CatalogView) -> None:
    """Refuses a node that the tenant does not have and that no calibration covers."""
    if given.node_id is MISSING or catalog.node_ids is None or given.node_id in catalog.node_ids:
        return
    if all(each.scope.node_id != given.node_id for each in catalog.calibrations):
        raise PlanningError("UNKNOWN_REFERENCE", "/cluster/node_id", "there is no node with this id")


def get_accelerators_per_node(given: ClusterInput, catalog: CatalogView) -> int:
    """Returns the accelerators of a full node: as stated, else of the reference system, else eight."""
    if given.accelerators_per_node is not MISSING:
        return given.accelerators_per_node
    if system := find_system(given, catalog):
        return system.accelerators_per_node
    known = _find_accelerator(given, catalog)
    server = known.accelerator.server if known else None
    return server.accelerator_count if server else ACCELERATORS_PER_NODE


def resolve_cluster(
    given: ClusterInput,
    catalog: CatalogView,
    notes: AnswerNotes,
    *,
    communicates: bool = False,
    reach: int | None = None,
) -> Cluster:
    """Returns the cluster with the catalog's figures and defaults.

    ``communicates`` is true if the time of the links enters the answer, which then cites their sources.
    ``reach`` is the number of devices that wait for each other, by default all of them.
    """
    _check_node(given, catalog)
    measured = catalog.constants
    accelerator = measured.apply_to_accelerator(_resolve_accelerator(given.accelerator, catalog, notes))
    per_node = min(get_accelerators_per_node(given, catalog), given.accelerator_count)
    links = _resolve_links(given, catalog, per_node)
    _note_system(given, catalog, notes)
    host_watts = given.host_power_watts
    cluster = Cluster(
        accelerator,
        given.accelerator_count,
        per_node,
        None if host_watts is MISSING else assumed(host_watts),
        measured.apply_to_link(links.intra),
        measured.apply_to_link(links.inter),
        resolve_host(given.host, accelerator.id, catalog),
    )
    _note_measured(given, measured, notes)
    if communicates:
        _note_links(cluster, links, cluster.accelerator_count if reach is None else reach, notes)
    else:
        _note_unused_links(given, notes)
    return cluster


def _note_system(given: ClusterInput, catalog: CatalogView, notes: AnswerNotes) -> None:
    """Names the system of several devices, where the question leaves its nodes or its links open."""
    system, parts = (
        find_system(given, catalog),
        ("accelerators_per_node", "intra_node_link", "inter_node_link"),
    )
    is_used = given.accelerator_count > 1 and any(getattr(given, part) is MISSING for part in parts)
    known = _find_accelerator(given, catalog)
    is_named = known is not None and known.instance_type is not None
    if system and (is_used or is_named) and given.system is MISSING:
        which = "the one that names the accelerator" if is_named else "the usual one"
        detail = f"{which}, with its links and interfaces: nodes of {system.accelerators_per_node}"
        notes.fill("/cluster/system", system.name, "reference_system", detail)


def _note_measured(given: ClusterInput, measured: DeviceConstants, notes: AnswerNotes) -> None:
    """Warns of a named node without measurements, and of measured rates above the accelerator's figures."""
    at_node = any(held.basis is EvidenceBasis.CALIBRATED_NODE for held in measured.held.values())
    if given.node_id is not MISSING and not at_node:
        detail = "this node has no accepted measurement: figures of its kind are used"
        notes.warn("NODE_NOT_CALIBRATED", "/cluster/node_id", detail)
    if measured.above_limit:
        names = ", ".join(measured.above_limit)
        detail = f"measured rates exceed the accelerator's figures, which are used instead: {names}"
        notes.warn("CALIBRATION_ABOVE_LIMIT", "/cluster/accelerator", detail)


def replace_accelerator(given: ClusterInput, reference: AcceleratorReference) -> ClusterInput:
    """Returns the cluster with other devices. A named node or system is dropped: it has the old devices."""
    changes: dict[str, object] = {"accelerator": reference}
    if reference != given.accelerator:
        changes |= {"node_id": MISSING, "system": MISSING}
    return given.model_copy(update=changes)


def find_catalog_cluster(catalog: CatalogView, name: str, count: int, per_node: int) -> Cluster | None:
    """Returns a cluster of an accelerator with its links of the catalog, or None if the catalog lacks it."""
    if name not in catalog.accelerators:
        return None
    accelerator = CatalogAccelerator(source="catalog", id=name)
    given = ClusterInput(accelerator=accelerator, accelerator_count=count, accelerators_per_node=per_node)
    return resolve_cluster(given, catalog, AnswerNotes())


def _note_links(cluster: Cluster, links: _ClusterLinks, reach: int, notes: AnswerNotes) -> None:
    used = {
        "/cluster/intra_node_link": min(cluster.domain, reach) > 1,
        "/cluster/inter_node_link": cluster.domain < reach,
    }
    details = {
        "/cluster/intra_node_link": "no link inside a node is known: give intra_node_link",
        "/cluster/inter_node_link": "no link between nodes is known: give inter_node_link",
    }
    for pointer, link in zip(used, (links.intra, links.inter), strict=True):
        if used[pointer] and pointer in links.sources:
            notes.cite(links.sources[pointer], pointer)
        elif used[pointer] and link.basis is EvidenceBasis.ASSUMED:
            raise PlanningError("LINK_UNKNOWN", pointer, details[pointer])


def _note_unused_links(given: ClusterInput, notes: AnswerNotes) -> None:
    for name in ("intra_node_link", "inter_node_link", "network_interfaces_per_node"):
        if getattr(given, name) is not MISSING:
            notes.warn("NOT_USED", f"/cluster/{name}", "this estimate does not use links")
