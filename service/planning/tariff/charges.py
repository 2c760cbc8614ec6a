"""A tariff as data: each charge with its price, and when and on what it is charged.

Prices are decimals of the tariff's currency, per kWh, kW, kvar, day, month or year as the charge says;
they may be below zero (credits). Quantities are floats. Windows are local times of the tariff's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MONTHS = frozenset(range(1, 13))
WEEKDAYS = frozenset(range(1, 8))
DAY_MINUTES = 1440


class HolidayTreatment(StrEnum):
    """What a holiday is to a window: a day like any other, always in it, or never."""

    AS_WEEKDAY = "as_weekday"
    INCLUDED = "included"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTimeWindow:
    """Local times; an instant is inside when its month, its day and its minute all match.

    ``weekdays`` are ISO numbers, 1 for Monday. Minutes are of the day, half-open; where ``to_minute`` is not
    above ``from_minute`` the window passes midnight and belongs to the day on which it begins.
    """

    months: frozenset[int] = MONTHS
    weekdays: frozenset[int] = WEEKDAYS
    from_minute: int = 0
    to_minute: int = DAY_MINUTES
    holidays: HolidayTreatment = HolidayTreatment.AS_WEEKDAY


ALWAYS = (LocalTimeWindow(),)


class TariffTierUnit(StrEnum):
    """What the limit of a tier counts in a billing period."""

    KWH = "kwh"
    KWH_PER_KW = "kwh_per_kw"
    """Hours of use: kWh for each kW of billing demand."""
    KWH_PER_DAY = "kwh_per_day"
    KWH_PER_KW_PER_DAY = "kwh_per_kw_per_day"
    KW = "kw"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """A price up to a cumulative ``limit``, None without end; tiers are marginal unless a charge differs."""

    price: Decimal
    limit: float | None = None
    unit: TariffTierUnit = TariffTierUnit.KWH


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePeriod:
    """The hours of a charge that share a ladder of tiers. The periods of one charge do not overlap."""

    name: str
    tiers: tuple[PriceTier, ...]
    windows: tuple[LocalTimeWindow, ...] = ALWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffCharge:
    """What every charge has: a name that no other charge of its revision has, and when it applies.

    ``months`` are calendar months in which it is charged: energy by its time, all else by the month in which
    most days of the billing period lie. ``hours_of_use_from`` and ``hours_of_use_below``
    choose
    it by annual energy over annual peak (kWh/kW), as German grid fees do.
    """

    name: str
    months: frozenset[int] = MONTHS
    hours_of_use_from: float = 0.0
    hours_of_use_below: float | None = None


class ChargeProration(StrEnum):
    """What a monthly price is charged for in a billing period that is not one month."""

    NONE = "none"
    THIRTY_DAYS = "thirty_days"
    """Times days of the period / 30."""
    DAYS_OF_MONTH = "days_of_month"
    """Times the share of each calendar month's days."""


class FixedChargePeriod(StrEnum):
    """What a fixed amount is charged for."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    """One twelfth for each month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCharge(TariffCharge):
    """An amount whatever is used."""

    price: Decimal
    per: FixedChargePeriod = FixedChargePeriod.MONTH
    meters: int = 1
    proration: ChargeProration = ChargeProration.NONE
    """Of prices by month and year; without it each billing period counts as one month."""


class TierAccumulation(StrEnum):
    """Which energy fills the tiers of a charge."""

    PER_PERIOD = "per_period"
    ALL_PERIODS_IN_TIME_ORDER = "all_periods_in_time_order"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCharge(TariffCharge):
    """A price for each kWh: flat, by time of use, by tier, by hours of use of the billing demand.

    ``billing_demand_of`` names the demand charge whose billing demand scales hours-use tiers; without it
    that is the peak of the billing period.
    """

    periods: tuple[PricePeriod, ...]
    accumulation: TierAccumulation = TierAccumulation.PER_PERIOD
    billing_demand_of: str | None = None


class IntervalPrices(NamedTuple):
    """Prices of consecutive intervals: ``values`` in currency per kWh, the first from ``start`` (aware)."""

    start: datetime
    interval_minutes: int
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeCharge(TariffCharge):
    """The price of the market in each interval times ``factor``, and ``adder`` per kWh."""

    prices: IntervalPrices
    adder: Decimal = Decimal(0)
    factor: Decimal = Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandRatchet:
    """A billing demand is at least a share of earlier peaks.

    Peaks looked back on: those of ``preceding_months`` before the billing month, or those that fell in
    ``peak_months`` of the same calendar year, or both where both are given (such as peaks of winter months
    within the last twelve). ``share_by_billing_month`` and ``share_by_peak_month`` are twelve factors each,
    multiplied.
    ``within_billing_month`` adds the peak of the billing month itself to those looked back on.
    ``period`` names the price period whose peaks count, such as on-peak only; without it all hours do.
    ``raises`` names the price periods whose demand it raises, all where empty. Under ``wraps_year`` months
    before the load, where nothing else tells their peaks, are those of the load's own year.
    """

    share_by_billing_month: tuple[float, ...] = (1.0,) * 12
    share_by_peak_month: tuple[float, ...] = (1.0,) * 12
    preceding_months: int | None = None
    peak_months: frozenset[int] | None = None
    within_billing_month: bool = False
    period: str | None = None
    raises: tuple[str, ...] = ()
    wraps_year: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingDemand:
    """How the metered peak becomes the demand that is billed: the highest of all of these.

    ``power_factor_threshold`` multiplies it by 1 + threshold - power factor where that is below it.
    ``own_peak_months`` are the months in which the period's own peak counts.
    """

    minimum_kw: float = 0.0
    contract_kw: float = 0.0
    ratchets: tuple[DemandRatchet, ...] = ()
    apparent_power_share: float = 0.0
    """Times the kVA at the peak."""
    power_factor_threshold: float | None = None
    own_peak_months: frozenset[int] = MONTHS


class PeakSpan(StrEnum):
    """Over which time a peak is the highest."""

    BILLING_PERIOD = "billing_period"
    CALENDAR_YEAR = "calendar_year"
    """Charged once a year, with the last billing period of the year that the load touches."""


class DemandPricing(StrEnum):
    """How tiers price a demand."""

    MARGINAL = "marginal"
    """Each tier prices the part within it."""
    BRACKET = "bracket"
    """The whole demand at the price of the tier that it falls in."""
    BRACKET_AMOUNT = "bracket_amount"
    """The price of the tier that it falls in is the amount (capacity steps, as in Norway)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandCharge(TariffCharge):
    """A price for each kW (or kVA) of demand: the mean over a demand window at its highest.

    ``window_minutes`` None takes the intervals of the load; others begin at multiples of it past local
    midnight, or with every interval where they are ``rolling``, which belong to the time at which they end.
    ``peaks`` above 1 is the mean of the N highest, at most one of each local day under ``on_distinct_days``.
    ``minimum`` is the least that the charge of a period amounts to.
    """

    periods: tuple[PricePeriod, ...]
    apparent: bool = False
    """Billed in kVA: kW over the power factor."""
    window_minutes: int | None = None
    rolling: bool = False
    peaks: int = 1
    on_distinct_days: bool = False
    span: PeakSpan = PeakSpan.BILLING_PERIOD
    pricing: DemandPricing = DemandPricing.MARGINAL
    billing_demand: BillingDemand = BillingDemand()
    proration: ChargeProration = ChargeProration.NONE
    minimum: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrunCharge(TariffCharge):
    """A price for each kW above the contracted capacity times ``tolerance``, on the period's peak."""

    contract_kw: float
    price: Decimal
    tolerance: float = 1.0
    window_minutes: int | None = None


class PeakStatistic(StrEnum):
    """What of the demands in the grid's peak intervals is billed."""

    MAX = "max"
    MEAN = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoincidentPeakSet:
    """Peak intervals of the grid: by hour of the local year (1 begins on 1 January 00:00) or by start.

    Those given by start last ``interval_minutes``, None: as long as the interval of the load.
    ``given`` is how many of them a load states as determinants. ``price`` per kW, once a year; None yields
    the kW alone.
    """

    price: Decimal | None
    hours_of_year: tuple[int, ...] = ()
    starts: tuple[datetime, ...] = ()
    interval_minutes: int | None = None
    given: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoincidentPeakCharge(TariffCharge):
    """A price for the demand in the grid's own peak intervals (4CP in ERCOT, the triad in Great Britain)."""

    sets: tuple[CoincidentPeakSet, ...]
    statistic: PeakStatistic = PeakStatistic.MAX
    in_following_year: bool = False
    """Billed in the calendar year after the peaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactiveCharge(TariffCharge):
    """A price for each kvar at the period's peak, or each kvarh, above a free share of the active part."""

    price: Decimal
    free_share_of_active: float = 0.0
    by_energy: bool = False
    """Per kvarh instead of kvar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumCharge(TariffCharge):
    """The least that the charges in ``of`` (all but taxes and riders where empty) amount to in a period."""

    amount: Decimal
    per: FixedChargePeriod = FixedChargePeriod.MONTH
    of: tuple[str, ...] = ()
    proration: ChargeProration = ChargeProration.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentageCharge(TariffCharge):
    """A rider, tax or credit: percent of the charges named in ``of``, or of all before it where empty."""

    percent: Decimal
    of: tuple[str, ...] = ()
    tax: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffRevision:
    """The charges in force from a local day on, until the next revision."""

    effective_from: date
    charges: tuple[TariffCharge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """A tariff: revisions in order of time, on one local clock.

    ``time_zone`` is an IANA name. ``holidays`` are local days. ``secondary_loss_factor`` raises kWh and kW
    of a load that is metered on the secondary side. ``hours_of_use_minimum`` refuses a load of fewer annual
    hours of use.
    """

    currency_code: str
    time_zone: str
    revisions: tuple[TariffRevision, ...]
    holidays: frozenset[date] = frozenset()
    secondary_loss_factor: float = 0.0
    hours_of_use_minimum: float = 0.0
    notes: Sequence[str] = ()
    """What the tariff says and no charge can: shown as warnings."""
