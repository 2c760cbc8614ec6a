"""Resolution of rental terms from a question and the offers of a catalog."""

from decimal import Decimal

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import UnitPrice
from service.planning.cost.terms import RentalTerms, SpotTerms
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, assumed
from service.resolve.catalog import CatalogView, KnownOffer, resolve_row
from service.resolve.offer_warnings import warn_of_offer
from service.resolve.price_age import find_newest_day
from service.resolve.prices import add_range, multiply_price, resolve_price
from service.schemas.rental import Rental
from service.schemas.rental import SpotTerms as SpotInput

_COMMITTED = ("reserved", "committed")
TERM_OPTIONS = (*_COMMITTED, "capacity_block")
"""Purchase options that are paid for a time that is agreed in advance."""
_OPTIONS = {"spot": ("spot",), "commitment": _COMMITTED, "capacity_block": ("capacity_block",)}


def resolve_rental(
    rental: Rental, accelerator_id: str, catalog: CatalogView, notes: AnswerNotes
) -> RentalTerms:
    """Returns the terms on which devices of this kind are rented, in the currency of their prices."""
    given, offer_id = rental.price_per_device_hour, rental.offer_id
    if given is not MISSING and offer_id is MISSING:
        kind = _find_kind(rental)
        price = resolve_price(given, rental.price_range, "/rental/price_range")
        stated = None if rental.purchase_option is MISSING else rental.purchase_option
        terms = RentalTerms(price, _OPTIONS[kind][0] if kind else stated)
    elif offer_id is not MISSING and given is MISSING:
        kind = _find_kind(rental)
        terms = _resolve_offer(offer_id, rental, accelerator_id, catalog, notes)
        if kind and terms.option not in _OPTIONS[kind]:
            raise PlanningError("OFFER_MISMATCH", f"/rental/{kind}", f"the offer is {terms.option}")
    else:
        raise PlanningError("RENTAL_PRICE", "/rental", "give either price_per_device_hour or offer_id")
    terms = _resolve_stated_terms(terms, rental)
    _note_open_terms(terms, notes)
    return _multiply_prices(terms, rental.price_factor)


def _find_kind(rental: Rental) -> str | None:
    """Returns the kind of terms that the question gives. Refuses two, since they exclude each other."""
    kinds = [name for name in _OPTIONS if getattr(rental, name) is not MISSING]
    if len(kinds) > 1:
        detail = f"at most one of these may be given: {', '.join(kinds)}"
        raise PlanningError("RENTAL_TERMS", f"/rental/{kinds[1]}", detail)
    return kinds[0] if kinds else None


def _resolve_offer(
    offer_id: str, rental: Rental, accelerator_id: str, catalog: CatalogView, notes: AnswerNotes
) -> RentalTerms:
    """Returns the terms of an offer."""
    offer = resolve_row(catalog.offers, offer_id, "/rental/offer_id", notes)
    offer_id = offer.source["id"]
    if offer.accelerator_id != accelerator_id:
        raise PlanningError("OFFER_MISMATCH", "/rental/offer_id", f"the offer is for {offer.accelerator_id}")
    if rental.purchase_option not in (MISSING, offer.purchase_option):
        raise PlanningError(
            "OFFER_MISMATCH", "/rental/purchase_option", f"the offer is {offer.purchase_option}"
        )
    notes.cite(offer.source, "/rental/offer_id")
    warn_of_offer(
        notes,
        offer,
        "/rental/offer_id",
        offers=catalog.offers,
        newest=find_newest_day(catalog),
        on=now().date(),
    )
    source = f"offer {offer_id} of {offer.as_of}"
    terms = RentalTerms(
        UnitPrice(offer.price_per_device_hour, offer.currency_code, source, EvidenceBasis.REFERENCE),
        offer.purchase_option,
        devices_per_instance=offer.accelerator_count,
        increment_seconds=offer.billing_increment_seconds,
        minimum_seconds=float(offer.minimum_billed_seconds or 0),
        offer_id=offer_id,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
    )
    terms = _resolve_term(terms, offer)
    if rental.price_range is MISSING:
        return terms
    return terms._replace(price=add_range(terms.price, rental.price_range, "/rental/price_range"))


def _resolve_term(terms: RentalTerms, offer: KnownOffer) -> RentalTerms:
    """Returns the terms of an offer that is paid for a fixed time, used or not."""
    term, price = offer.term, terms.price
    if term is None:
        return terms
    if offer.purchase_option == "capacity_block":
        return terms._replace(block_hours=float(term.hours))
    terms = terms._replace(term_hours=float(term.hours), least_instances=term.minimum_instances or 1)
    if term.minimum_spend_per_hour is not None:
        terms = terms._replace(least_spend_per_hour=price._replace(amount=term.minimum_spend_per_hour))
    if term.upfront is None and term.hourly is None:
        return terms
    count = offer.accelerator_count
    hourly = price._replace(amount=(term.hourly or Decimal(0)) / count)
    if term.upfront is None:
        return terms._replace(price=hourly)
    return terms._replace(price=hourly, upfront=price._replace(amount=term.upfront / count))


def _resolve_stated_terms(terms: RentalTerms, rental: Rental) -> RentalTerms:
    """Returns the terms with the members that the question states in place of those of the offer."""
    if rental.devices_per_instance is not MISSING:
        terms = terms._replace(devices_per_instance=rental.devices_per_instance)
    if rental.billing is not MISSING:
        increment = rental.billing.increment_seconds
        terms = terms._replace(
            increment_seconds=None if increment is MISSING else increment,
            minimum_seconds=rental.billing.minimum_seconds,
        )
    if rental.commitment is not MISSING:
        given = rental.commitment
        upfront = None
        if given.upfront_per_device is not MISSING:
            if given.upfront_per_device.currency_code != terms.price.currency_code:
                pointer = "/rental/commitment/upfront_per_device/currency_code"
                detail = "the upfront payment must be in the currency of the hourly price"
                raise PlanningError("CURRENCY_MISMATCH", pointer, detail)
            upfront = resolve_price(given.upfront_per_device)
        terms = terms._replace(
            term_hours=given.term_hours,
            upfront=upfront,
            idle_share=None if given.idle_share is MISSING else given.idle_share,
        )
    if rental.capacity_block is not MISSING:
        terms = terms._replace(block_hours=rental.capacity_block.block_hours)
    if rental.spot is not MISSING:
        terms = terms._replace(spot=_resolve_spot(rental.spot))
    return terms


def _resolve_spot(given: SpotInput) -> SpotTerms:
    restart = None if given.restart_seconds is MISSING else assumed(given.restart_seconds)
    return SpotTerms(given.interruptions_per_hour, restart)


def _note_open_terms(terms: RentalTerms, notes: AnswerNotes) -> None:
    """Warns of a commitment or capacity block without a length."""
    if terms.option in _COMMITTED and terms.term_hours is None:
        detail = "the length of the commitment is not given; the rent counts the hours used"
        notes.warn("COMMITMENT_NOT_COUNTED", "/rental", detail)
    if terms.option == "capacity_block" and terms.block_hours is None:
        detail = "the length of a block is not given; the rent counts the hours used"
        notes.warn("BLOCK_NOT_COUNTED", "/rental", detail)


def _multiply_prices(terms: RentalTerms, factor: float | MISSING) -> RentalTerms:
    upfront, least = terms.upfront, terms.least_spend_per_hour
    return terms._replace(
        price=multiply_price(terms.price, factor),
        upfront=upfront and multiply_price(upfront, factor),
        least_spend_per_hour=least and multiply_price(least, factor),
    )
