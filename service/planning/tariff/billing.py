"""Bills from a series of intervals, from billing quantities, and from the energy and peak of a year."""

from collections.abc import Mapping, Sequence
from datetime import date

from service.planning.tariff.bill import BillingDeterminants, BillingPeriod, LoadBill, MeteredLoad
from service.planning.tariff.calendar import to_month_key
from service.planning.tariff.charges import Tariff
from service.planning.tariff.demand import EarlierPeaks
from service.planning.tariff.determinants import AnnualMeter, DeterminantsMeter, convert_to_annual
from service.planning.tariff.effort import (
    MOST_STEPS,
    LoadExtent,
    check_size,
    estimate_bill_effort,
    estimate_size,
)
from service.planning.tariff.meter import LoadMeter, SeriesMeter
from service.planning.tariff.statement import BillStatement

PeakHistory = Mapping[tuple[int, int], float]


def compute_bill(
    tariff: Tariff,
    load: MeteredLoad,
    *,
    periods: Sequence[BillingPeriod] | None = None,
    history: PeakHistory | None = None,
    wraps_year: bool = False,
) -> LoadBill:
    """Computes the bill of ``load`` under ``tariff`` in ``periods``.

    None: the local calendar months it touches. ``history`` has monthly peaks in kW before the load, by (year,
    month), for ratchets. Without it, months before the load count 0 and a finding names them, or are taken
    from the end of the same year under ``wraps_year`` (URDB's lookback range, REopt). Intervals outside
    ``periods`` are not billed but count for ratchets. Periods may lie after the load. Outside its intervals a
    load draws nothing. Amounts are not rounded.
    """
    meter = SeriesMeter(tariff, load, periods)
    return compute_metered_bill(tariff, meter, history=history, wraps_year=wraps_year)


def compute_determinants_bill(
    tariff: Tariff,
    determinants: BillingDeterminants,
    *,
    history: PeakHistory | None = None,
    wraps_year: bool = False,
) -> LoadBill:
    """Computes the bill of twelve calendar months from billing quantities alone.

    ``SERIES_REQUIRED`` where a charge needs more than they give, ``DETERMINANT_MISSING`` where a month has
    energy but no peak that a charge needs, ``DETERMINANT_UNKNOWN`` where a quantity names no price period.
    """
    _check_year(tariff, determinants.year, 12)
    meter = DeterminantsMeter(tariff, determinants)
    return compute_metered_bill(tariff, meter, history=history, wraps_year=wraps_year)


def compute_annual_bill(
    tariff: Tariff,
    *,
    year: int,
    energy_kwh: float,
    peak_kw: float,
    power_factor: float = 1.0,
    secondary: bool = False,
) -> LoadBill:
    """Computes the bill of a calendar year as one billing period, from its energy and its peak alone.

    ``SERIES_REQUIRED`` for charges that depend on the time of use or on the peaks of months.
    """
    _check_year(tariff, year, 1)
    terms = convert_to_annual(tariff)
    meter = AnnualMeter(terms, year, energy_kwh, peak_kw, power_factor=power_factor, secondary=secondary)
    return compute_metered_bill(terms, meter)


def _check_year(tariff: Tariff, year: int, periods: int) -> None:
    """Refuses a bill of a year of billing quantities that takes too many steps."""
    hours = (date(year + 1, 1, 1) - date(year, 1, 1)).days * 24
    extent = LoadExtent(hours, 60, periods, date(year, 1, 1))
    check_size(estimate_size(tariff, extent))
    estimate_bill_effort(tariff, extent).check(MOST_STEPS, "")


def compute_metered_bill(
    tariff: Tariff, meter: LoadMeter, *, history: PeakHistory | None = None, wraps_year: bool = False
) -> LoadBill:
    """Computes the bill of a load that ``meter`` reads; the other functions differ only in their meter."""
    known = {to_month_key(*month): kw for month, kw in (history or {}).items()}
    return BillStatement(tariff, meter, EarlierPeaks(known, wraps_year, meter.first_month)).build_bill()
