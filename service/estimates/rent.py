"""What renting the devices of a run costs: hours that it uses, and hours that are paid beside them."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import Charges, Price, added, charges, given_price
from service.estimates.interruptions import SpotTime, spot_time
from service.estimates.run import Run
from service.planning.cost import Commitment, billed_seconds, blocks, committed, devices_paid
from service.planning.errors import PlanningError
from service.planning.quantity import Basis, Quantity, scaled
from service.planning.units import HOUR_SECONDS
from service.questions.answer import quantity
from service.questions.catalog import Catalog, KnownOffer
from service.questions.cost_answers import RentAnswer
from service.questions.estimates import CostQuestion
from service.questions.notes import lookup
from service.questions.rental import Rental

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
    block_hours: float | None = None


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
    terms = _terms(question.rental, run, catalog)
    if hours is None or run.duration_seconds is None:
        return None
    spot = None
    if question.rental.spot is not MISSING:
        devices = devices_paid(run.cluster.accelerator_count, terms.devices_per_instance)
        spot = spot_time(question.rental.spot, question, run, catalog, devices // terms.devices_per_instance)
    elif terms.option == "spot":
        detail = (
            "how often the devices are taken back is not given; the rent is that of a run that keeps them"
        )
        run.notes.warn("INTERRUPTIONS_NOT_COUNTED", "/rental", detail)
    return _charged(terms, run, hours, run.duration_seconds, spot)


def _charged(terms: Terms, run: Run, hours: Quantity, duration: Quantity, spot: SpotTime | None) -> Rented:
    devices = run.cluster.accelerator_count
    whole = devices_paid(devices, terms.devices_per_instance)
    paid = [*_used(run, hours)]
    if whole > devices:
        paid.append(("unused_devices", scaled(duration, (whole - devices) / HOUR_SECONDS)))
    paid += _beside(terms, duration, spot, float(whole))
    found, due = charges(terms.price, DEVICE_HOUR, *paid), Decimal(0)
    if terms.block_hours is not None:
        due = found.amount
    upfront = _upfront(terms, duration, float(whole))
    if upfront is not None:
        found, due = added([found, upfront]) or found, upfront.amount
    total = _sum_of([part for _, part in paid])
    return Rented(found, terms, whole // terms.devices_per_instance, total, due, spot)


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
            return devices * (blocks(hours, block) * block - hours)

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
    return Quantity(value, min(low, value), max(high, value), parts[0].basis)


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


def _terms(rental: Rental, run: Run, catalog: Catalog) -> Terms:
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
        terms = Terms(price, _OPTIONS[kinds[0]] if kinds else None if stated is MISSING else stated)
    else:
        assert offer_id is not MISSING  # noqa: S101
        offer = lookup(catalog.offers, offer_id, "/rental/offer_id")
        terms = _offered(offer, offer_id, rental, run)
        if kinds and terms.option not in (_OPTIONS[kinds[0]], *_LIKE.get(kinds[0], ())):
            raise PlanningError("OFFER_MISMATCH", f"/rental/{kinds[0]}", f"the offer is {terms.option}")
    return _stated(terms, rental)


_OPTIONS = {"spot": "spot", "commitment": "reserved", "capacity_block": "capacity_block"}
_LIKE = {"commitment": ("committed",)}


def _offered(offer: KnownOffer, offer_id: str, rental: Rental, run: Run) -> Terms:
    """The terms of an offer."""
    if offer.accelerator_id != run.cluster.accelerator.id:
        raise PlanningError("OFFER_MISMATCH", "/rental/offer_id", f"the offer is for {offer.accelerator_id}")
    if rental.purchase_option not in (MISSING, offer.purchase_option):
        raise PlanningError(
            "OFFER_MISMATCH", "/rental/purchase_option", f"the offer is {offer.purchase_option}"
        )
    run.notes.cite(offer.source, "/rental/offer_id")
    source = f"offer {offer_id} of {offer.as_of}"
    price = Price(offer.price_per_device_hour, offer.currency_code, source, Basis.REFERENCE)
    if rental.price_range is not MISSING:
        low, high = Decimal(rental.price_range.low), Decimal(rental.price_range.high)
        if not low <= price.amount <= high:
            raise PlanningError("PRICE_RANGE", "/rental/price_range", "the price lies outside its range")
        price = price._replace(low=low, high=high)
    return Terms(price, offer.purchase_option)


def _stated(terms: Terms, rental: Rental) -> Terms:
    """The terms with those of the question in their place."""
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
