"""Supplies of a plan: owned nodes, rented devices and offers of the catalog, and their clusters."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.prices import is_expired
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.planning.scheduling.shift import build_starts
from service.plans.checks import check_space
from service.plans.defaults import fill_question
from service.plans.space import DeviceSupply, SearchSpace
from service.resolve.catalog import CatalogView, KnownOffer, resolve_row
from service.resolve.hardware import find_links, get_accelerators_per_node, resolve_cluster
from service.resolve.model import resolve_model
from service.resolve.price_age import find_newest_day, is_used_by_id_only
from service.resolve.rental import TERM_OPTIONS
from service.schemas.energy import RunLoadInput
from service.schemas.plans import PlanConstraints, PlanRequest, RentedDevices
from service.schemas.references import (
    CatalogAccelerator,
    ClusterInput,
    LinkSpecification,
    SpecifiedLink,
)
from service.schemas.rental import Rental
from service.schemas.site import RunSiteInput
from service.schemas.workloads import TrainingWorkloadInput

MOST_DEVICES: Final = 16_384
"""Most devices of one offer if no limit is given: the largest published run on one kind of cluster (Llama
3).
"""

_NAMED_OFFERS: Final = 10
"""Most offers that a warning names."""
_Matches = Callable[[str, KnownOffer], bool]
_Offers = dict[str, KnownOffer]


class _SupplyMachine(NamedTuple):
    """A supply with one machine of all its devices, before its clusters are chosen."""

    supply: DeviceSupply
    cluster: ClusterInput
    is_joined: bool = True
    """True if the network between nodes is known or given by the question."""


def build_space(question: PlanRequest, catalog: CatalogView) -> SearchSpace:
    """Returns the clusters that a plan may use, with their supplies.

    Raises:
        PlanningError: the question contradicts itself, or no supply is left; names the field.
    """
    _check_times(question)
    _check_names(question, catalog)
    warnings, stated = AnswerNotes(), question
    question = fill_question(question, warnings)
    model = resolve_model(question.model, catalog, warnings)
    machines = [
        *_list_owned(question, catalog),
        *_list_rented(question, catalog),
        *_list_offered(question, catalog, warnings),
    ]
    clusters: list[ClusterInput] = []
    order: dict[tuple[str, bool], int] = {}
    supplies = []
    for machine in machines:
        places = []
        for count in _list_counts(question, machine, catalog):
            cluster = machine.cluster.model_copy(update={"accelerator_count": count})
            places.append(order.setdefault((cluster.model_dump_json(), machine.is_joined), len(order)))
            if len(order) > len(clusters):
                clusters.append(cluster)
        if places:
            supplies.append(machine.supply._replace(clusters=tuple(places)))
        elif machine.is_joined:
            detail = f"{machine.supply.name} has fewer devices than any number to search"
            warnings.warn("SUPPLY_TOO_SMALL", machine.supply.pointer, detail)
    if not supplies:
        pointer = "/search/accelerator_counts" if machines else "/search/offers"
        raise PlanningError("NO_SUPPLY", pointer, "no supply is left: give owned, rented or offers")
    _note_unknown_buildings(question, supplies, warnings)
    _note_unknown_networks(question, machines, warnings)
    apart = frozenset(place for (_, is_joined), place in order.items() if not is_joined)
    space = SearchSpace(
        question,
        catalog,
        model,
        tuple(clusters),
        tuple(supplies),
        tuple(warnings.warnings),
        apart,
        stated,
        tuple(warnings.defaults),
    )
    check_space(space)
    return space


def _note_unknown_networks(
    question: PlanRequest, machines: Sequence[_SupplyMachine], notes: AnswerNotes
) -> None:
    ids = sorted({machine.supply.accelerator_id for machine in machines if not machine.is_joined})
    if ids:
        use = "a training run uses one of them" if _is_training(question) else "a replica lies within one"
        detail = (
            f"the network between instances of {', '.join(ids)} is unknown, and {use}: give it under "
            "`rented` with an inter_node_link"
        )
        notes.warn("LINK_UNKNOWN", "/search/offers", detail)


def _is_training(question: PlanRequest) -> bool:
    return isinstance(question.workload, TrainingWorkloadInput)


def _note_unknown_buildings(
    question: PlanRequest, supplies: Sequence[DeviceSupply], notes: AnswerNotes
) -> None:
    """Warns of supplies without a site: limits of power or emissions rule them out."""
    limits = question.constraints
    asked = (limits.facility_kw, limits.location_based_kg_co2e)
    if question.goal != "cleanest" and all(limit is MISSING for limit in asked):
        return
    unknown = sum(supply.site is None for supply in supplies)
    if unknown:
        detail = (
            f"the sites of {unknown} of {len(supplies)} supplies are not given: their power and "
            "emissions are unknown, which rules them out"
        )
        notes.warn("SITE_REQUIRED", "/site", detail)


def _check_times(question: PlanRequest) -> None:
    window = question.window
    if question.constraints.finish_by is not MISSING and question.starts_at is MISSING and window is MISSING:
        detail = "finish_by needs the start of the run: give starts_at or window"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    start = question.starts_at if window is MISSING else window.earliest_start_at
    done = question.constraints.finish_by
    if done is not MISSING and start is not MISSING and done <= start:
        detail = "finish_by must be after the start"
        raise PlanningError("FINISH_BEFORE_START", "/constraints/finish_by", detail)
    if window is MISSING:
        return
    if question.starts_at is not MISSING:
        raise PlanningError("STARTS_TWICE", "/window", "give either starts_at or window")
    build_starts(
        window.earliest_start_at, window.latest_start_at, window.step_minutes, RunLoadInput().interval_minutes
    )


def _check_names(question: PlanRequest, catalog: CatalogView) -> None:
    """Refuses duplicate names of supplies and given configurations, and duplicate regions of sites."""
    named = [(f"/owned/{place}/name", each.name) for place, each in enumerate(question.owned)]
    named += [(f"/rented/{place}/name", each.name) for place, each in enumerate(question.rented)]
    seen = set(catalog.offers)
    for pointer, name in named:
        if name in seen:
            raise PlanningError("NAME_TWICE", pointer, "another supply has this name")
        seen.add(name)
    given: set[str] = set()
    for place, each in enumerate(question.given):
        if each.name in given:
            raise PlanningError(
                "NAME_TWICE", f"/given/{place}/name", "another given configuration has this name"
            )
        given.add(each.name)
    regions: set[str] = set()
    for place, site in enumerate(question.sites):
        if regions & set(site.regions):
            pointer = f"/sites/{place}/regions"
            raise PlanningError("REGION_TWICE", pointer, "a region may have one site only")
        regions |= set(site.regions)


def _list_owned(question: PlanRequest, catalog: CatalogView) -> Iterator[_SupplyMachine]:
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
        yield _SupplyMachine(supply, each.cluster)


def _list_rented(question: PlanRequest, catalog: CatalogView) -> Iterator[_SupplyMachine]:
    for place, each in enumerate(question.rented):
        if not _is_allowed(each, question.constraints):
            continue
        pointer = f"/rented/{place}"
        region = None if each.region is MISSING else each.region
        site, at = _find_site(question, region)
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
        yield _SupplyMachine(supply, _build_rented_cluster(each, catalog))


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


def _find_site(question: PlanRequest, region: str | None) -> tuple[RunSiteInput | None, str]:
    """Returns the site of rented devices in a region, and its pointer in the question."""
    for place, each in enumerate(question.sites):
        if region in each.regions:
            return each.site, f"/sites/{place}/site"
    return (None if question.site is MISSING else question.site), "/site"


def _list_offered(
    question: PlanRequest, catalog: CatalogView, notes: AnswerNotes
) -> Iterator[_SupplyMachine]:
    """Yields the offers that are valid, at most a year old, and that the constraints allow."""
    if not question.search.offers:
        if question.search.accelerators is not MISSING:
            notes.warn("NOT_USED", "/search/accelerators", "it selects offers, which are not searched")
        return
    today = now().date()
    offers = dict(sorted(catalog.offers.items()))
    for pointer, matches in _list_filters(question, catalog):
        left = {name: offer for name, offer in offers.items() if matches(name, offer)}
        if not left and not (question.owned or question.rented):
            raise PlanningError("NO_SUPPLY", pointer, "no offer of the catalog matches it")
        offers = left
    current = {name: offer for name, offer in offers.items() if not is_expired(offer.valid_until, today)}
    if len(current) < len(offers):
        detail = f"{len(offers) - len(current)} expired offers are left out"
        notes.warn("OFFER_EXPIRED", "/search/offers", detail)
    current = _drop_old(question, current, catalog, notes)
    current = _drop_unknown_spot(question, current, notes)
    current = _drop_unknown_terms(question, current, notes)
    current = _drop_unlinked(question, current, catalog, notes)
    if _is_training(question):
        current = _select_distinct(current, catalog)
    for name, offer in current.items():
        site, at = _find_site(question, offer.region)
        supply = DeviceSupply(
            name=name,
            kind="offer",
            clusters=(),
            accelerator_id=offer.accelerator_id,
            most_devices=MOST_DEVICES,
            pointer="/search/offers",
            site_pointer=at,
            rental=_build_rental(name, offer, question),
            site=site,
            provider=offer.provider,
            region=offer.region,
            purchase_option=offer.purchase_option,
        )
        cluster = _build_cluster(offer, catalog)
        yield _SupplyMachine(supply, cluster, _is_joined(offer, cluster, catalog))


def _leave_out(
    question: PlanRequest, offers: _Offers, kept: _Offers, refusal: PlanningError, notes: AnswerNotes
) -> _Offers:
    """Returns the kept offers with a warning about the others. Refuses a plan that has no other supply."""
    if len(kept) < len(offers):
        if not (kept or question.owned or question.rented):
            raise PlanningError("NO_SUPPLY", refusal.pointer, refusal.detail)
        notes.warn(refusal.code, refusal.pointer, refusal.detail)
    return kept


def _drop_old(question: PlanRequest, offers: _Offers, catalog: CatalogView, notes: AnswerNotes) -> _Offers:
    """Returns the offers without those that are used by their id only, because of their age."""
    kept = {name: offer for name, offer in offers.items() if not is_used_by_id_only(offer, catalog)}
    left = [name for name in offers if name not in kept]
    fresh = {offer.accelerator_id for offer in kept.values()}
    named = [name for name in left if offers[name].accelerator_id not in fresh] or left
    more = f" and {len(named) - _NAMED_OFFERS} more" if len(named) > _NAMED_OFFERS else ""
    detail = (
        f"{len(left)} offers are left out, since they are more than a year older than the newest price of "
        f"the catalog, of {find_newest_day(catalog).isoformat()}; rent one by its id under `rented`: "
        f"{', '.join(named[:_NAMED_OFFERS])}{more}"
    )
    return _leave_out(question, offers, kept, PlanningError("OFFER_OLD", "/search/offers", detail), notes)


def _drop_unknown_spot(question: PlanRequest, offers: _Offers, notes: AnswerNotes) -> _Offers:
    """Returns the offers without spot offers of unknown interruption rate, unless they are requested."""
    allowed = question.constraints.purchase_options
    if question.search.spot is not MISSING or (allowed is not MISSING and "spot" in allowed):
        return offers
    kept = {name: offer for name, offer in offers.items() if offer.purchase_option != "spot"}
    detail = (
        f"{len(offers) - len(kept)} spot offers are left out, since their interruption rates are "
        "unknown; give search.spot, or name spot in the purchase_options of the constraints"
    )
    refusal = PlanningError("SPOT_LEFT_OUT", "/search/spot", detail)
    return _leave_out(question, offers, kept, refusal, notes)


def _drop_unknown_terms(question: PlanRequest, offers: _Offers, notes: AnswerNotes) -> _Offers:
    """Returns the offers without those of a term of unknown length, unless their option is requested."""
    allowed = question.constraints.purchase_options
    named = () if allowed is MISSING else allowed
    kept = {
        name: offer
        for name, offer in offers.items()
        if offer.term is not None
        or offer.purchase_option in named
        or offer.purchase_option not in TERM_OPTIONS
    }
    detail = (
        f"{len(offers) - len(kept)} offers are left out, since they are paid for a term or block whose "
        "length is unknown; name their option in the purchase_options of the constraints"
    )
    refusal = PlanningError("TERM_LEFT_OUT", "/constraints/purchase_options", detail)
    return _leave_out(question, offers, kept, refusal, notes)


def _drop_unlinked(
    question: PlanRequest, offers: _Offers, catalog: CatalogView, notes: AnswerNotes
) -> _Offers:
    """Returns the offers without instances of several devices whose link to each other is unknown."""
    kept = {name: offer for name, offer in offers.items() if _is_linked(offer, catalog)}
    ids = sorted({offer.accelerator_id for name, offer in offers.items() if name not in kept})
    detail = (
        f"{len(offers) - len(kept)} offers are left out, since the link between the devices of an "
        f"instance of {', '.join(ids)} is unknown: give it under `rented` with an intra_node_link"
    )
    return _leave_out(question, offers, kept, PlanningError("LINK_UNKNOWN", "/search/offers", detail), notes)


def _is_linked(offer: KnownOffer, catalog: CatalogView) -> bool:
    """Returns true if the catalog knows the link between the devices of an instance."""
    cluster = _build_cluster(offer, catalog).model_copy(update={"accelerator_count": offer.accelerator_count})
    found = resolve_cluster(cluster, catalog, AnswerNotes())
    return found.domain <= 1 or found.intra_node_link.basis is not EvidenceBasis.ASSUMED


def _build_rental(name: str, offer: KnownOffer, question: PlanRequest) -> Rental:
    if offer.purchase_option != "spot" or question.search.spot is MISSING:
        return Rental(offer_id=name)
    return Rental(offer_id=name, spot=question.search.spot)


def _select_distinct(offers: dict[str, KnownOffer], catalog: CatalogView) -> dict[str, KnownOffer]:
    """Returns the offer of the largest instance among offers of equal nodes at one price on equal terms."""
    largest: dict[tuple[object, ...], str] = {}
    for name, offer in offers.items():
        terms = (offer.accelerator_id, offer.provider, offer.region, offer.zone, offer.purchase_option)
        paid = (offer.price_per_device_hour, offer.currency_code, offer.term, offer.billing_increment_seconds)
        key = (*terms, *paid, offer.minimum_billed_seconds, _build_cluster(offer, catalog).model_dump_json())
        other = largest.get(key)
        if other is None or offers[other].accelerator_count < offer.accelerator_count:
            largest[key] = name
    kept = set(largest.values())
    return {name: offer for name, offer in offers.items() if name in kept}


def _list_filters(question: PlanRequest, catalog: CatalogView) -> Iterator[tuple[str, _Matches]]:
    """Yields conditions of an offer, each with the member of the question that states it."""
    accelerators = question.search.accelerators
    if accelerators is not MISSING:
        for place, name in enumerate(accelerators):
            pointer = f"/search/accelerators/{place}"
            known = resolve_row(catalog.accelerators, name, pointer).accelerator.id
            if not catalog.offers.list_of_key("accelerator_id", known):
                raise PlanningError("NO_OFFER", pointer, "the catalog has no offer of this accelerator")
        ids = {catalog.accelerators[name].accelerator.id for name in accelerators}
        yield "/search/accelerators", lambda _, offer: offer.accelerator_id in ids
    members: dict[str, Callable[[KnownOffer], str | None]] = {
        "providers": lambda offer: offer.provider,
        "regions": lambda offer: offer.region,
        "purchase_options": lambda offer: offer.purchase_option,
    }
    for member, of in members.items():
        allowed = getattr(question.constraints, member)
        if allowed is not MISSING:
            yield f"/constraints/{member}", _build_filter(of, allowed)


def _build_filter(of: Callable[[KnownOffer], str | None], allowed: Sequence[str]) -> _Matches:
    return lambda _, offer: of(offer) in allowed


def _build_cluster(offer: KnownOffer, catalog: CatalogView) -> ClusterInput:
    accelerator = CatalogAccelerator(source="catalog", id=offer.accelerator_id)
    return _build_instance_cluster(ClusterInput(accelerator=accelerator), offer.accelerator_count, catalog)


def _is_joined(offer: KnownOffer, cluster: ClusterInput, catalog: CatalogView) -> bool:
    """Returns true if the catalog knows the network between instances of an offer.

    The network of a vendor's system joins whole nodes: it is not sold with parts of one.
    """
    accelerator = CatalogAccelerator(source="catalog", id=offer.accelerator_id)
    if offer.accelerator_count < get_accelerators_per_node(ClusterInput(accelerator=accelerator), catalog):
        return False
    asked = cluster.model_copy(update={"accelerator_count": 2 * offer.accelerator_count})
    return resolve_cluster(asked, catalog, AnswerNotes()).inter_node_link.basis is not EvidenceBasis.ASSUMED


def _build_rented_cluster(each: RentedDevices, catalog: CatalogView) -> ClusterInput:
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


def _list_counts(question: PlanRequest, machine: _SupplyMachine, catalog: CatalogView) -> Iterable[int]:
    """Returns the numbers of devices to search.

    For a service, the most, of which it uses as few as it can.
    """
    most, asked = machine.supply.most_devices, question.search.accelerator_counts
    if question.constraints.accelerator_count is not MISSING:
        most = min(most, question.constraints.accelerator_count)
    if not _is_training(question):
        return (most,)
    if not machine.is_joined:
        most = min(most, get_accelerators_per_node(machine.cluster, catalog))
    if asked is not MISSING:
        return [count for count in sorted(set(asked)) if count <= most]
    return _list_doublings(get_accelerators_per_node(machine.cluster, catalog), most)


def _list_doublings(node: int, most: int) -> Iterator[int]:
    """Yields doublings of whole nodes, then all devices. Less than a node is one cluster."""
    if most <= node:
        yield most
        return
    count = node
    while count <= most:
        yield count
        count *= 2
    whole = most // node * node
    if whole != count // 2:
        yield whole
