"""Bills of the months of a row's load."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from accuracy.bill_cases import BillCase, charges_of, is_annual, is_row, with_charges
from accuracy.bill_loads import (
    AnnualLoad,
    BillError,
    GivenLoad,
    PeriodNames,
    QuantityLoad,
    SeriesLoad,
    determinants_of,
    series_load,
)
from service.formats.urdb.rate import ENERGY, TIME_OF_USE_DEMAND
from service.planning.errors import PlanningError
from service.planning.tariff.bill import PeriodBill
from service.planning.tariff.billing import compute_annual_bill, compute_bill, compute_determinants_bill
from service.planning.tariff.charges import (
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    MinimumCharge,
    Tariff,
    TariffCharge,
)


def within(case: BillCase, tariff: Tariff) -> GivenLoad:
    """Returns the load within the row's period if that is not of whole months, else the whole load."""
    given, start, end = case.given, case.start, case.end
    if isinstance(given.known, AnnualLoad) and (start, end) != (given.start, given.end):
        raise BillError("the period is not that of the load, of which only a year is known")
    whole = all(edge == edge.replace(day=1, hour=0, minute=0, second=0) for edge in (start, end))
    if whole or (given.start >= start and given.end <= end):
        return given
    if not isinstance(given.known, SeriesLoad):
        raise BillError("the period is not of whole months, and the load is known by month")
    if any(_looks_beyond(charge) for charge in charges_of(tariff)):
        raise BillError("the period is not of whole months, and a charge looks beyond it")
    step = timedelta(minutes=given.known.interval_minutes)
    first, last = max(start, given.start), min(end, given.end)
    begins, ends = (first - given.start) / step, (last - given.start) / step
    if begins != int(begins) or ends != int(ends) or ends <= begins:
        raise BillError("the period does not begin and end with intervals of the load")
    cut = SeriesLoad(given.known.interval_minutes, given.known.kw[int(begins) : int(ends)])
    return given._replace(known=cut, start=first, end=last)


def _looks_beyond(charge: TariffCharge) -> bool:
    if isinstance(charge, DemandCharge):
        return bool(charge.billing_demand.ratchets) or is_annual(charge)
    return isinstance(charge, CoincidentPeakCharge)


def billed_months(case: BillCase, tariff: Tariff, given: GivenLoad) -> tuple[PeriodBill, ...] | BillError:
    """Returns bills of all months of the load, with coincident peaks in the year in which they fell."""
    charges = (
        replace(charge, in_following_year=False) if isinstance(charge, CoincidentPeakCharge) else charge
        for charge in charges_of(tariff)
    )
    try:
        _check_minimum(tariff, given)
        _check_peak_sets(tariff, given)
        return _months_of(case, with_charges(tariff, charges), given)
    except PlanningError as error:
        return BillError(f"{error.code}: {error.detail}")
    except BillError as error:
        return error


def _months_of(case: BillCase, tariff: Tariff, given: GivenLoad) -> tuple[PeriodBill, ...]:
    history = _history(case)
    if isinstance(given.known, SeriesLoad):
        load = series_load(given, given.known, case.clock)
        return compute_bill(tariff, load, history=history).periods
    if isinstance(given.known, AnnualLoad):
        return compute_annual_bill(
            tariff,
            year=case.year,
            energy_kwh=given.known.energy_kwh,
            peak_kw=given.known.peak_kw,
            power_factor=given.power_factor,
            secondary=given.secondary,
        ).periods
    if any(is_row(charge) for charge in charges_of(tariff)):
        raise BillError("x_charges have windows, and the load states no quantity for them")
    known = determinants_of(given, given.known, case.year, _names(tariff))
    periods = compute_determinants_bill(tariff, known, history=history).periods
    return tuple(one for one in periods if _touches(given, one))


def _touches(given: GivenLoad, one: PeriodBill) -> bool:
    return one.period.end > given.start.date() and one.period.start < given.end.date()


def _history(case: BillCase) -> dict[tuple[int, int], float]:
    """Returns peaks of the year before the load. Negative ones do not count."""
    peaks = case.found.year_zero_peaks_kw or ()
    return {(case.given.start.year - 1, month): kw for month, kw in enumerate(peaks, start=1) if kw >= 0.0}


def _check_minimum(tariff: Tariff, given: GivenLoad) -> None:
    """Refuses a minimum charge for a load without months."""
    if isinstance(given.known, AnnualLoad) and any(
        isinstance(one, MinimumCharge) for one in charges_of(tariff)
    ):
        raise BillError("mincharge: the months of the load are not known")


def _check_peak_sets(tariff: Tariff, given: GivenLoad) -> None:
    """Refuses a load without its demand in each of the grid's peak intervals."""
    sets = [
        one
        for charge in charges_of(tariff)
        if isinstance(charge, CoincidentPeakCharge)
        for one in charge.sets
    ]
    if not sets:
        return
    hours = [hour for one in sets for hour in one.hours_of_year]
    counted = sum(one.given for one in sets)
    if hours:
        _check_hours(given, hours)
    stated = 0
    if isinstance(given.known, QuantityLoad):
        stated = sum(one.kind == "coincident_peak" for one in given.known.values)
    if stated != counted:
        raise BillError(f"intervals_in_load is {counted}, and the load states {stated} coincident peaks")


def _check_hours(given: GivenLoad, hours: Sequence[int]) -> None:
    if not isinstance(given.known, SeriesLoad):
        raise BillError("hours_of_year_1based: the load is not known by the hour")
    january = given.start.replace(month=1, day=1, hour=0, minute=0)
    for hour in hours:
        begins = january + timedelta(hours=hour - 1)
        if begins < given.start or begins + timedelta(hours=1) > given.end:
            raise BillError("hours_of_year_1based: the load does not cover all of them")


def _names(tariff: Tariff) -> PeriodNames:
    """Returns the names of price periods by place, for energy and for time-of-use demand."""
    energy: dict[int, str] = {}
    demand: dict[int, str] = {}
    has_price = False
    for charge in charges_of(tariff):
        if isinstance(charge, EnergyCharge):
            has_price = True
            energy = _by_place(charge) if charge.name == ENERGY else energy
        elif charge.name == TIME_OF_USE_DEMAND and isinstance(charge, DemandCharge):
            demand = _by_place(charge)
    return PeriodNames(energy, demand, has_energy=has_price)


def _by_place(charge: EnergyCharge | DemandCharge) -> dict[int, str]:
    return {int(period.name.removeprefix("period_")): period.name for period in charge.periods}
