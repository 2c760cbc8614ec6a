"""What renting the devices of a run costs: hours that it uses, and hours that are paid beside them."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import Charges, Price, added, charges, given_price
from service.estimates.currencies import Currencies, currencies_of
from service.estimates.interruptions import SpotTime, spot_time
from service.estimates.offer_warnings import warn_of_offer
from service.estimates.run import Run
from service.kit.clock import now
from service.planning.cost import Commitment, billed_seconds, blocks, committed, devices_paid
from service.planning.errors import PlanningError
from service.planning.quantity import Basis, Quantity, scaled, weakest
from service.planning.units import HOUR_SECONDS
from service.resolve.catalog import Catalog, KnownOffer
from service.schemas.answer import quantity
from service.schemas.cost_answers import RentAnswer
from service.schemas.estimates import CostQuestion
from service.schemas.notes import Notes, lookup
from service.schemas.rental import Rental

DEVICE_HOUR = "device_hour"


class Terms(NamedTuple):
    """The terms of a rental; None where none is stated."""

    price: Price
    option: str | None = None
    devices_per_instance: int = 1
    increment_seconds: float | None = None
    minimum_seconds: float = 0.0
    term_hours: float | None = None
    upfront: Price | None = None
    """Of a device and term."""
    idle_share: float | None = None
    least_instances: int = 1
    least_spend_per_hour: Price | None = None
    """The least that a commitment costs in each of its hours."""
    block_hours: float | None = None
    offer_id: str | None = None
    provider: str | None = None
    region: str | None = None
    zone: str | None = None

    def instances(self, devices: int) -> int:
        """Whole instances that hold so many devices."""
        paid = devices_paid(devices, self.devices_per_instance, self.least_instances)
        return paid // self.devices_per_instance


class Rented(NamedTuple):
    """The charges of a rental and what they are for."""

    charges: Charges
    terms: Terms
    instances: int
    paid: Quantity
    """Device-hours."""
    due_at_start: Decimal
    spot: SpotTime | None = None


def rent(question: CostQuestion, run: Run, hours: Quantity | None, catalog: Catalog) -> Charges | None:
    """What renting costs; None without a rental or without a duration."""
    rental = rented(question, run, hours, catalog)
    return rental and rental.charges


def rented(question: CostQuestion, run: Run, hours: Quantity | None, catalog: Catalog) -> Rented | None:
    """The same with what is behind it."""
    if question.rental is MISSING:
        return None
    found = terms_of(question.rental, run.cluster.accelerator.id, catalog, run.notes)
    terms = _exchanged(found, currencies_of(question, catalog, run.notes))
    if terms is None or hours is None or run.duration_seconds is None:
        return None
    spot = None
    if question.rental.spot is not MISSING:
        instances = terms.instances(run.cluster.accelerator_count)
        spot = spot_time(question.rental.spot, question, run, catalog, instances)
    elif terms.option == "spot":
        detail = (
            "how often the devices are taken back is not given; the rent is that of a run that keeps them"
        )
        run.notes.warn("INTERRUPTIONS_NOT_COUNTED", "/rental", detail)
    return _charged(terms, run, hours, run.duration_seconds, spot)


def _exchanged(terms: Terms, currencies: Currencies) -> Terms | None:
    """The terms in the currency asked for."""
    price = currencies.price(terms.price, "/rent/total")
    if price is None:
        return None
    upfront, least = (
        given and currencies.price(given, "/rent/total")
        for given in (terms.upfront, terms.least_spend_per_hour)
    )
    return terms._replace(price=price, upfront=upfront, least_spend_per_hour=least)


def _charged(terms: Terms, run: Run, hours: Quantity, duration: Quantity, spot: SpotTime | None) -> Rented:
    devices = run.cluster.accelerator_count
    instances = terms.instances(devices)
    whole = instances * terms.devices_per_instance
    paid = [*_used(run, hours)]
    if whole > devices:
        paid.append(("unused_devices", scaled(duration, (whole - devices) / HOUR_SECONDS)))
    paid += _beside(terms, duration, spot, float(whole))
    found, due = charges(terms.price, DEVICE_HOUR, *paid), Decimal(0)
    if terms.block_hours is not None:
        due = found.amount
    upfront = _upfront(terms, duration, float(whole))
    if upfront is not None:
        due = upfront.amount
    found = added([found, _least_spend(terms, duration, float(whole)), upfront]) or found
    total = _sum_of([part for _, part in paid])
    return Rented(found, terms, instances, total, due, spot)


def _beside(
    terms: Terms, duration: Quantity, spot: SpotTime | None, devices: float
) -> Iterator[tuple[str, Quantity]]:
    """Device-hours that the terms make the run pay beside its own."""
    if terms.term_hours is not None:
        idle = _committed(terms, devices, lambda found: found.idle)
        yield "idle_commitment", _at_ends(idle, duration)
        return
    if terms.block_hours is not None:
        block = terms.block_hours

        def unused(seconds: float) -> float:
            hours = seconds / HOUR_SECONDS
            return devices * max(0.0, blocks(hours, block) * block - hours)

        yield "unused_block", _at_ends(unused, duration)
        return
    if spot is not None and spot.extra.high > 0.0:
        yield "spot_interruptions", scaled(spot.extra, devices / HOUR_SECONDS)
    if terms.increment_seconds is not None or terms.minimum_seconds:

        def rounding(seconds: float) -> float:
            billed = billed_seconds(seconds, increment=terms.increment_seconds, minimum=terms.minimum_seconds)
            return devices / HOUR_SECONDS * (billed - seconds)

        yield "billing_rounding", _at_ends(rounding, duration if spot is None else spot.lasting)


def _upfront(terms: Terms, duration: Quantity, devices: float) -> Charges | None:
    if terms.upfront is None:
        return None
    payments = _at_ends(_committed(terms, devices, lambda found: found.terms), duration)
    return charges(terms.upfront, "device_term", ("upfront", payments), category="purchase")


def _least_spend(terms: Terms, duration: Quantity, devices: float) -> Charges | None:
    """What the hours of a commitment fall short of the least that it is sold for."""
    least = terms.least_spend_per_hour
    if least is None:
        return None
    short = least.amount - terms.price.amount * Decimal(devices)
    if short <= 0:
        return None
    idle = _committed(terms, 1.0, lambda found: found.idle)
    hours = _at_ends(lambda seconds: seconds / HOUR_SECONDS + idle(seconds), duration)
    short_price = least._replace(amount=short, low=None, high=None)
    return charges(short_price, "hour", ("minimum_spend", hours))


def _committed(terms: Terms, devices: float, pick: Callable[[Commitment], float]) -> Callable[[float], float]:
    """What ``pick`` takes of the commitment of so many devices, by the seconds that the run lasts."""

    def found(seconds: float) -> float:
        assert terms.term_hours is not None  # noqa: S101
        return devices * pick(committed(seconds / HOUR_SECONDS, terms.term_hours, terms.idle_share))

    return found


def _at_ends(formula: Callable[[float], float], given: Quantity) -> Quantity:
    """``formula`` at the value and both ends of ``given``, which it may not follow in order."""
    value, low, high, basis = given
    return Quantity(formula(value), formula(low), formula(high), basis)


def _sum_of(parts: list[Quantity]) -> Quantity:
    """The sum of parts that belong together, end by end."""
    value, low, high = map(sum, zip(*(part[:3] for part in parts), strict=True))
    return Quantity(value, min(low, value), max(high, value), weakest(*parts))


def _used(run: Run, hours: Quantity) -> Iterator[tuple[str, Quantity]]:
    """The device-hours of the run by what they are spent on: progress, waiting, checkpoints, failures."""
    found = run.interruptions
    devices = float(run.cluster.accelerator_count) / HOUR_SECONDS
    progress = found.part(lambda elapsed: elapsed.productive)
    productive = hours if progress is None else scaled(progress, devices)
    waiting = 0.0
    if run.working is not None and run.training is not None:
        waiting = 1.0 - run.working.seconds_per_token.value / run.training.seconds_per_token.value
    yield "rental", scaled(productive, 1.0 - waiting) if waiting > 0.0 else productive
    if waiting > 0.0:
        yield "data_waiting", scaled(productive, waiting)
    if progress is None:
        return
    for name, part in (
        ("checkpoints", found.part(lambda elapsed: elapsed.checkpoints)),
        ("lost_work", found.part(lambda elapsed: elapsed.lost_work)),
        ("restarts", found.part(lambda elapsed: elapsed.restarts)),
    ):
        if part is not None and part.high > 0.0:
            yield name, scaled(part, devices)


def terms_of(rental: Rental, accelerator_id: str, catalog: Catalog, notes: Notes) -> Terms:
    """The terms on which devices of this kind are rented, in the currency of their prices."""
    given, offer_id = rental.price_per_device_hour, rental.offer_id
    if (given is MISSING) == (offer_id is MISSING):
        raise PlanningError("RENTAL_PRICE", "/rental", "give either price_per_device_hour or offer_id")
    kinds = [
        name for name in ("spot", "commitment", "capacity_block") if getattr(rental, name) is not MISSING
    ]
    if len(kinds) > 1:
        detail = f"at most one of them applies: {', '.join(kinds)}"
        raise PlanningError("RENTAL_TERMS", f"/rental/{kinds[1]}", detail)
    if given is not MISSING:
        price = given_price(given, rental.price_range, "/rental/price_range")
        stated = rental.purchase_option
        terms = Terms(price, _OPTIONS[kinds[0]][0] if kinds else None if stated is MISSING else stated)
    else:
        assert offer_id is not MISSING  # noqa: S101
        offer = lookup(catalog.offers, offer_id, "/rental/offer_id")
        terms = _offered(offer, rental, accelerator_id, catalog, notes)
        if kinds and terms.option not in _OPTIONS[kinds[0]]:
            raise PlanningError("OFFER_MISMATCH", f"/rental/{kinds[0]}", f"the offer is {terms.option}")
    return _moved(_stated(terms, rental, notes), rental.price_factor)


def _moved(terms: Terms, factor: float | MISSING) -> Terms:
    upfront, least = terms.upfront, terms.least_spend_per_hour
    return terms._replace(
        price=terms.price.times(factor),
        upfront=upfront and upfront.times(factor),
        least_spend_per_hour=least and least.times(factor),
    )


_COMMITTED = ("reserved", "committed")
_OPTIONS = {"spot": ("spot",), "commitment": _COMMITTED, "capacity_block": ("capacity_block",)}


def _offered(offer: KnownOffer, rental: Rental, accelerator_id: str, catalog: Catalog, notes: Notes) -> Terms:
    """The terms of an offer."""
    if offer.accelerator_id != accelerator_id:
        raise PlanningError("OFFER_MISMATCH", "/rental/offer_id", f"the offer is for {offer.accelerator_id}")
    if rental.purchase_option not in (MISSING, offer.purchase_option):
        raise PlanningError(
            "OFFER_MISMATCH", "/rental/purchase_option", f"the offer is {offer.purchase_option}"
        )
    notes.cite(offer.source, "/rental/offer_id")
    warn_of_offer(notes, offer, "/rental/offer_id", offers=catalog.offers, on=now().date())
    offer_id = None if rental.offer_id is MISSING else rental.offer_id
    source = f"offer {offer_id} of {offer.as_of}"
    price = Price(offer.price_per_device_hour, offer.currency_code, source, Basis.REFERENCE)
    terms = Terms(
        price,
        offer.purchase_option,
        devices_per_instance=offer.accelerator_count,
        increment_seconds=offer.billing_increment_seconds,
        minimum_seconds=float(offer.minimum_billed_seconds or 0),
        offer_id=offer_id,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
    )
    terms = _on_term(terms, offer)
    if rental.price_range is not MISSING:
        low, high = Decimal(rental.price_range.low), Decimal(rental.price_range.high)
        if not low <= terms.price.amount <= high:
            raise PlanningError("PRICE_RANGE", "/rental/price_range", "the price lies outside its range")
        terms = terms._replace(price=terms.price._replace(low=low, high=high))
    return terms


def _on_term(terms: Terms, offer: KnownOffer) -> Terms:
    """The terms of an offer that is paid for a time, used or not."""
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


def _stated(terms: Terms, rental: Rental, notes: Notes) -> Terms:
    """The terms with those of the question in their place; what is left open is a warning."""
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
                detail = "what is paid upfront is in the currency of the hours"
                raise PlanningError("CURRENCY_MISMATCH", pointer, detail)
            upfront = given_price(given.upfront_per_device)
        terms = terms._replace(
            term_hours=given.term_hours,
            upfront=upfront,
            idle_share=None if given.idle_share is MISSING else given.idle_share,
        )
    if rental.capacity_block is not MISSING:
        terms = terms._replace(block_hours=rental.capacity_block.block_hours)
    if terms.option in _COMMITTED and terms.term_hours is None:
        detail = "how long the commitment lasts is not given; the rent is that of the hours used"
        notes.warn("COMMITMENT_NOT_COUNTED", "/rental", detail)
    if terms.option == "capacity_block" and terms.block_hours is None:
        detail = "how long a block lasts is not given; the rent is that of the hours used"
        notes.warn("BLOCK_NOT_COUNTED", "/rental", detail)
    return terms


def rent_answer(rental: Rented) -> RentAnswer:
    """The rental as it is answered."""
    terms, found = rental.terms, rental.charges
    answer: RentAnswer = {
        "lines": found.lines,
        "total": found.total,
        "instances": rental.instances,
        "devices_per_instance": terms.devices_per_instance,
        "paid_device_hours": quantity(rental.paid),
    }
    if terms.option is not None:
        answer["purchase_option"] = terms.option
    if rental.due_at_start:
        amount = f"{rental.due_at_start:f}"
        answer["due_at_start"] = {"amount": amount, "currency_code": found.currency_code}
    if rental.spot is not None:
        spot = rental.spot
        devices = float(rental.instances * terms.devices_per_instance)
        answer["interruptions"] = {
            "expected_interruptions": spot.interruptions,
            "extra_device_hours": quantity(scaled(spot.extra, devices / HOUR_SECONDS)),
            "duration_seconds": quantity(spot.lasting),
        }
        if spot.mtbf_seconds is not None:
            answer["interruptions"]["mean_time_between_interruptions_seconds"] = spot.mtbf_seconds
    return answer
