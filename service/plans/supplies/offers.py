"""Offers of the catalog that a plan may use."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.prices import is_expired
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.plans.space import DeviceSupply
from service.plans.supplies.clusters import build_offer_cluster, has_known_network
from service.plans.supplies.machines import SupplyMachine, find_site, is_training
from service.resolve.catalog import CatalogView, KnownOffer, resolve_row
from service.resolve.hardware import resolve_cluster
from service.resolve.price_age import find_newest_day, is_used_by_id_only
from service.resolve.rental import TERM_OPTIONS
from service.schemas.plans import PlanRequest
from service.schemas.rental import Rental

MOST_DEVICES: Final = 16_384
"""Most devices of one offer if no limit is given: the largest published run on one kind of cluster (Llama
3).
"""
_NAMED_OFFERS: Final = 10
"""Most offers that a warning names."""
_Matches = Callable[[str, KnownOffer], bool]
_Offers = dict[str, KnownOffer]


def list_offered(question: PlanRequest, catalog: CatalogView, notes: AnswerNotes) -> Iterator[SupplyMachine]:
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
    if is_training(question):
        current = _select_distinct(current, catalog)
    for name, offer in current.items():
        site, at = find_site(question, offer.region)
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
        cluster = build_offer_cluster(offer, catalog)
        yield SupplyMachine(supply, cluster, has_known_network(offer, cluster, catalog))


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
    cluster = build_offer_cluster(offer, catalog).model_copy(
        update={"accelerator_count": offer.accelerator_count}
    )
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
        key = (
            *terms,
            *paid,
            offer.minimum_billed_seconds,
            build_offer_cluster(offer, catalog).model_dump_json(),
        )
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
