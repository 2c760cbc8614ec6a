"""Warnings about the age, validity and plausibility of a price."""

from collections.abc import Iterator, Mapping
from datetime import date

from service.planning.cost.prices import STALE_DAYS, is_early, is_expired, is_old, is_stale
from service.planning.notes import AnswerNotes
from service.resolve.catalog import KnownOffer


def warn_of_offer(
    notes: AnswerNotes,
    offer: KnownOffer,
    pointer: str,
    *,
    offers: Mapping[str, KnownOffer],
    newest: date,
    on: date,
) -> None:
    """Warns of an offer that is old, not valid, doubtful, or a spot price above the price on demand.

    ``newest`` is the day of the newest offer of the catalog, ``on`` is today.
    """
    for code, detail in (*_list_date_warnings(offer, newest, on), *_list_doubt_warnings(offer, offers)):
        notes.warn(code, pointer, detail)


def warn_of_instance(notes: AnswerNotes, size: int, linked: int, pointer: str) -> None:
    """Warns of instances with fewer accelerators than the estimate joins by the links of a node."""
    if size < linked:
        detail = (
            f"the offer rents instances of {size}, and the estimate joins {linked} accelerators by the links "
            "of a node: whether the provider places them in one is not known"
        )
        notes.warn("OFFER_INSTANCE_SMALLER", pointer, detail)


def warn_of_age(notes: AnswerNotes, as_of: str, pointer: str, *, on: date) -> None:
    """Warns of a price that is older than the limit."""
    for code, detail in _list_age_warnings(as_of, on):
        notes.warn(code, pointer, detail)


def _list_age_warnings(as_of: str, on: date) -> Iterator[tuple[str, str]]:
    try:
        stale = is_stale(as_of, on)
    except ValueError:
        # Rows of earlier versions may hold a date that does not exist.
        yield "PRICE_UNDATED", "the date of the price does not exist in the calendar, so its age is unknown"
        return
    if stale:
        # Without its age, which is another one each day: one question has one answer.
        yield "PRICE_STALE", f"the price of {as_of} is more than {STALE_DAYS} days old"


def _list_old_warnings(as_of: str, newest: date) -> Iterator[tuple[str, str]]:
    if is_old(as_of, newest):
        detail = (
            f"the price of {as_of} is more than a year older than the newest of the catalog, of "
            f"{newest.isoformat()}; only a question that names the offer uses it"
        )
        yield "OFFER_OLD", detail


def _list_date_warnings(offer: KnownOffer, newest: date, on: date) -> Iterator[tuple[str, str]]:
    if is_expired(offer.valid_until, on):
        yield "OFFER_EXPIRED", f"the price was valid until {offer.valid_until} and has expired"
    else:
        yield from _list_old_warnings(offer.as_of, newest)
        yield from _list_age_warnings(offer.as_of, on)
    if is_early(offer.valid_from, on):
        yield "OFFER_NOT_YET_VALID", f"the price is valid from {offer.valid_from}"


def _list_doubt_warnings(offer: KnownOffer, offers: Mapping[str, KnownOffer]) -> Iterator[tuple[str, str]]:
    if offer.doubt is not None:
        yield "OFFER_DOUBTFUL", offer.doubt
    if offer.purchase_option == "spot" and any(_is_undercutting(other, offer) for other in offers.values()):
        yield "SPOT_ABOVE_ON_DEMAND", "the same instance costs less on demand: one of the two prices is wrong"


def _is_undercutting(other: KnownOffer, spot: KnownOffer) -> bool:
    """Returns true if ``other`` is the same instance on demand at a lower price."""
    return (
        other.purchase_option == "on_demand"
        and other.instance_type is not None
        and _build_instance_key(other) == _build_instance_key(spot)
        and other.price_per_instance_hour < spot.price_per_instance_hour
    )


def _build_instance_key(offer: KnownOffer) -> tuple[object, ...]:
    what = (offer.provider, offer.region, offer.instance_type)
    return *what, offer.accelerator_id, offer.accelerator_count, offer.currency_code
