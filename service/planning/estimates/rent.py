"""Cost of renting the devices of a run: hours that it uses, and unused hours that are billed."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

from service.planning.cost import RentCommitment, billed_seconds, compute_commitment, count_blocks
from service.planning.cost.charges import CurrencyCharges, add_charges, charge_quantities
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.terms import RentalTerms
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.estimates.spot import SpotInterruptionTime, estimate_spot_time
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, scaled, weakest
from service.planning.units import HOUR_SECONDS

DEVICE_HOUR = "device_hour"


class Rent(NamedTuple):
    """Charges of a rental, with its terms and the device-hours that they bill."""

    charges: CurrencyCharges
    terms: RentalTerms
    instances: int
    paid: Quantity
    """Billed device-hours."""
    due_at_start: Decimal
    spot: SpotInterruptionTime | None = None


def estimate_rent(run: Run, terms: RentalTerms, currencies: TotalCurrency) -> Rent | None:
    """Returns the rent of the devices; None without an exchange rate or where the duration is not known."""
    hours = estimate_device_hours(run)
    exchanged = _exchange_terms(terms, currencies, run.notes)
    duration = run.duration_seconds
    if exchanged is None or hours is None or duration is None:
        return None
    spot = None
    if terms.spot is not None:
        instances = terms.count_instances(run.case.cluster.accelerator_count)
        spot = estimate_spot_time(terms.spot, run, duration, instances)
    elif terms.option == "spot":
        detail = "the interruption rate is not given; the rent is that of a run without interruptions"
        run.notes.warn("INTERRUPTIONS_NOT_COUNTED", "/rental", detail)
    return _charge_rent(exchanged, run, hours, duration, spot)


def _exchange_terms(terms: RentalTerms, currencies: TotalCurrency, notes: AnswerNotes) -> RentalTerms | None:
    """Returns the terms in the currency of the totals."""
    price = currencies.exchange_price(terms.price, "/rent/total", notes)
    if price is None:
        return None
    upfront, least = (
        given and currencies.exchange_price(given, "/rent/total", notes)
        for given in (terms.upfront, terms.least_spend_per_hour)
    )
    return terms._replace(price=price, upfront=upfront, least_spend_per_hour=least)


def _charge_rent(
    terms: RentalTerms, run: Run, hours: Quantity, duration: Quantity, spot: SpotInterruptionTime | None
) -> Rent:
    devices = run.case.cluster.accelerator_count
    instances = terms.count_instances(devices)
    rented = instances * terms.devices_per_instance
    paid = [*_list_used_hours(run, hours)]
    if rented > devices:
        paid.append(("unused_devices", scaled(duration, (rented - devices) / HOUR_SECONDS)))
    paid += _list_unused_hours(terms, duration, spot, float(rented))
    found, due = charge_quantities(terms.price, DEVICE_HOUR, *paid), Decimal(0)
    if terms.block_hours is not None:
        due = found.amount
    upfront = _charge_upfront(terms, duration, float(rented))
    if upfront is not None:
        due = upfront.amount
    found = add_charges(found, _charge_least_spend(terms, duration, float(rented)), upfront)
    total = _add_hours([part for _, part in paid])
    return Rent(found, terms, instances, total, due, spot)


def _list_unused_hours(
    terms: RentalTerms, duration: Quantity, spot: SpotInterruptionTime | None, devices: float
) -> Iterator[tuple[str, Quantity]]:
    """Yields the device-hours that the terms bill in addition to the run's own."""
    if terms.term_hours is not None:
        idle = _build_committed_hours(terms, terms.term_hours, devices, lambda found: found.idle)
        yield "idle_commitment", _evaluate_at_ends(idle, duration)
        return
    if terms.block_hours is not None:
        block = terms.block_hours

        def count_unused_hours(seconds: float) -> float:
            hours = seconds / HOUR_SECONDS
            return devices * max(0.0, count_blocks(hours, block) * block - hours)

        yield "unused_block", _evaluate_at_ends(count_unused_hours, duration)
        return
    if spot is not None and spot.extra.high > 0.0:
        yield "spot_interruptions", scaled(spot.extra, devices / HOUR_SECONDS)
    if terms.increment_seconds is not None or terms.minimum_seconds:

        def count_rounding_hours(seconds: float) -> float:
            billed = billed_seconds(seconds, increment=terms.increment_seconds, minimum=terms.minimum_seconds)
            return devices / HOUR_SECONDS * (billed - seconds)

        yield (
            "billing_rounding",
            _evaluate_at_ends(count_rounding_hours, duration if spot is None else spot.lasting),
        )


def _charge_upfront(terms: RentalTerms, duration: Quantity, devices: float) -> CurrencyCharges | None:
    if terms.upfront is None or terms.term_hours is None:
        return None
    paid = _build_committed_hours(terms, terms.term_hours, devices, lambda found: found.terms)
    payments = _evaluate_at_ends(paid, duration)
    return charge_quantities(terms.upfront, "device_term", ("upfront", payments), category="purchase")


def _charge_least_spend(terms: RentalTerms, duration: Quantity, devices: float) -> CurrencyCharges | None:
    """Returns the amount by which the hours of a commitment fall short of its minimum spend."""
    least = terms.least_spend_per_hour
    if least is None or terms.term_hours is None:
        return None
    short = least.amount - terms.price.amount * Decimal(devices)
    if short <= 0:
        return None
    idle = _build_committed_hours(terms, terms.term_hours, 1.0, lambda found: found.idle)
    hours = _evaluate_at_ends(lambda seconds: seconds / HOUR_SECONDS + idle(seconds), duration)
    short_price = least._replace(amount=short, low=None, high=None)
    return charge_quantities(short_price, "hour", ("minimum_spend", hours))


def _build_committed_hours(
    terms: RentalTerms, term_hours: float, devices: float, pick: Callable[[RentCommitment], float]
) -> Callable[[float], float]:
    """Returns a function from seconds of the run to the part of the commitment that ``pick`` selects."""

    def count_committed_hours(seconds: float) -> float:
        return devices * pick(compute_commitment(seconds / HOUR_SECONDS, term_hours, terms.idle_share))

    return count_committed_hours


def _evaluate_at_ends(formula: Callable[[float], float], given: Quantity) -> Quantity:
    """Evaluates ``formula`` at the value and both ends of ``given``; it need not be monotonic."""
    value, low, high, basis = given
    return Quantity(formula(value), formula(low), formula(high), basis)


def _add_hours(parts: list[Quantity]) -> Quantity:
    """Returns the sum of fully correlated parts, end by end."""
    value, low, high = map(sum, zip(*(part[:3] for part in parts), strict=True))
    return Quantity(value, min(low, value), max(high, value), weakest(*parts))


def _list_used_hours(run: Run, hours: Quantity) -> Iterator[tuple[str, Quantity]]:
    """Yields the device-hours of the run by use: progress, waiting, checkpoints, lost work, restarts."""
    if not isinstance(run, TrainingRun):
        yield "rental", hours
        return
    found = run.interruptions
    devices = float(run.case.cluster.accelerator_count) / HOUR_SECONDS
    progress = found.estimate_part(lambda elapsed: elapsed.productive)
    productive = hours if progress is None else scaled(progress, devices)
    waiting = 0.0
    if run.working_time is not None and run.time is not None:
        waiting = 1.0 - run.working_time.seconds_per_token.value / run.time.seconds_per_token.value
    yield "rental", scaled(productive, 1.0 - waiting) if waiting > 0.0 else productive
    if waiting > 0.0:
        yield "data_waiting", scaled(productive, waiting)
    if progress is None:
        return
    for name, part in (
        ("checkpoints", found.estimate_part(lambda elapsed: elapsed.checkpoints)),
        ("lost_work", found.estimate_part(lambda elapsed: elapsed.lost_work)),
        ("restarts", found.estimate_part(lambda elapsed: elapsed.restarts)),
    ):
        if part is not None and part.high > 0.0:
            yield name, scaled(part, devices)
