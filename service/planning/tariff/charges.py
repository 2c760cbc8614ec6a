"""A tariff as data: each charge with its price, and when and on what it is charged.

Prices are decimals of the tariff's currency, per kWh, kW, kvar, day, month or year as the charge says;
they may be below zero (credits). Quantities are floats. Windows are local times of the tariff's clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

MONTHS = frozenset(range(1, 13))
WEEKDAYS = frozenset(range(1, 8))
DAY_MINUTES = 1440


class HolidayTreatment(StrEnum):
    """Treatment of a holiday by a window: a day like any other, always inside, or never."""

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
    """Unit of the limit of a tier in a billing period."""

    KWH = "kwh"
    KWH_PER_KW = "kwh_per_kw"
    """Hours of use: kWh for each kW of billing demand."""
    KWH_PER_DAY = "kwh_per_day"
    KWH_PER_KW_PER_DAY = "kwh_per_kw_per_day"
    KW = "kw"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """A price up to a limit; tiers are marginal unless a charge says otherwise."""

    price: Decimal
    limit: float | None = None
    """Cumulative upper limit within the billing period; absent without end."""
    unit: TariffTierUnit = TariffTierUnit.KWH
    """Unit of the limit; hours of use are kWh for each kW of billing demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePeriod:
    """The hours of a charge that share a ladder of tiers. The periods of one charge do not overlap."""

    name: str
    """Name that no other period of the charge has."""
    tiers: tuple[PriceTier, ...]
    """Prices, with ascending limits."""
    windows: tuple[LocalTimeWindow, ...] = ALWAYS
    """Times at which it applies. Defaults to all times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TariffCharge:
    """Members of every charge.

    ``hours_of_use_from`` and ``hours_of_use_below`` choose the charge by annual energy over annual peak
    (kWh/kW), as German grid fees do.
    """

    name: str
    """Name that no other charge of the revision has."""
    months: frozenset[int] = MONTHS
    """Calendar months in which it is charged: energy by its time, all else by the month in which most days of
    the billing period lie. Defaults to all months."""
    hours_of_use_from: float = 0.0
    """Annual kWh for each kW of the annual peak from which it is charged."""
    hours_of_use_below: float | None = None
    """Annual kWh for each kW of the annual peak below which it is charged; absent without a bound."""


class ChargeProration(StrEnum):
    """Part of a monthly price that is charged in a billing period that is not one month."""

    NONE = "none"
    THIRTY_DAYS = "thirty_days"
    """Times days of the period / 30."""
    DAYS_OF_MONTH = "days_of_month"
    """Times the share of each calendar month's days."""


class FixedChargePeriod(StrEnum):
    """Time that a fixed amount is for."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"
    """One twelfth for each month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedCharge(TariffCharge):
    """An amount that does not depend on use."""

    kind: ClassVar[Literal["fixed"]] = "fixed"
    price: Decimal
    per: FixedChargePeriod = FixedChargePeriod.MONTH
    """Time that the price is for; of a yearly price, one twelfth is charged for each month."""
    meters: int = 1
    """Number of meters that are charged."""
    proration: ChargeProration = ChargeProration.NONE
    """Part of a monthly or yearly price that is charged in a billing period that is not one month. Defaults
    to the whole: each billing period counts as one month."""


class TierAccumulation(StrEnum):
    """Energy that fills the tiers of a charge."""

    PER_PERIOD = "per_period"
    ALL_PERIODS_IN_TIME_ORDER = "all_periods_in_time_order"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCharge(TariffCharge):
    """A price for each kWh: flat, by time of use, by tier, by hours of use of the billing demand."""

    kind: ClassVar[Literal["energy"]] = "energy"
    periods: tuple[PricePeriod, ...]
    """Prices by the time of use."""
    accumulation: TierAccumulation = TierAccumulation.PER_PERIOD
    """Energy that fills the tiers."""
    billing_demand_of: str | None = None
    """Demand charge whose billing demand scales hours of use. Defaults to the peak of the billing period."""


class IntervalPrices(NamedTuple):
    """Prices of consecutive intervals: ``values`` in currency per kWh, the first from ``start`` (aware)."""

    start: datetime
    interval_minutes: int
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTimeCharge(TariffCharge):
    """The price of the market in each interval times a factor, and an adder for each kWh."""

    kind: ClassVar[Literal["real_time"]] = "real_time"
    prices: IntervalPrices
    """Prices of the market."""
    adder: Decimal = Decimal(0)
    """Decimal amount that is added for each kWh; credits are below zero."""
    factor: Decimal = Decimal(1)
    """Decimal factor of the price of the market."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandRatchet:
    """A billing demand is at least a share of earlier peaks.

    Peaks looked back on: those of ``preceding_months`` before the billing month, or those that fell in
    ``peak_months`` of the same calendar year, or both where both are given (such as peaks of winter months
    within the last twelve).
    """

    share_by_billing_month: tuple[float, ...] = (1.0,) * 12
    """Twelve shares by the calendar month that is billed. Defaults to 1 each."""
    share_by_peak_month: tuple[float, ...] = (1.0,) * 12
    """Twelve shares by the calendar month of the peak, multiplied by the others. Defaults to 1 each."""
    preceding_months: int | None = None
    """Number of months before the billing month whose peaks are looked back on."""
    peak_months: frozenset[int] | None = None
    """Calendar months whose peaks are looked back on."""
    within_billing_month: bool = False
    """True if the peak of the billing month itself is looked back on too."""
    period: str | None = None
    """Price period whose peaks count. Defaults to all hours."""
    raises: tuple[str, ...] = ()
    """Price periods whose demand is raised. Defaults to all."""
    wraps_year: bool = False
    """True if months before the load whose peaks are unknown are taken from the end of the same year."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingDemand:
    """The rule by which a metered peak becomes the demand that is billed: the highest of all members."""

    minimum_kw: float = 0.0
    """Least demand that is billed, in kW."""
    contract_kw: float = 0.0
    """Contracted capacity in kW, billed whether it is used or not."""
    ratchets: tuple[DemandRatchet, ...] = ()
    """Shares of earlier peaks."""
    apparent_power_share: float = 0.0
    """Share of the kVA at the peak."""
    power_factor_threshold: float | None = None
    """Power factor below which demand is multiplied by 1 + threshold - power factor."""
    own_peak_months: frozenset[int] = MONTHS
    """Calendar months in which the period's own peak counts. Defaults to all months."""


class PeakSpan(StrEnum):
    """Time over which a peak is the highest."""

    BILLING_PERIOD = "billing_period"
    CALENDAR_YEAR = "calendar_year"
    """Charged once a year, with the last billing period of the year that the load touches."""


class DemandPricing(StrEnum):
    """Method by which tiers price a demand."""

    MARGINAL = "marginal"
    """Each tier prices the part within it."""
    BRACKET = "bracket"
    """The whole demand at the price of the tier that it falls in."""
    BRACKET_AMOUNT = "bracket_amount"
    """The price of the tier that it falls in is the amount (capacity steps, as in Norway)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandCharge(TariffCharge):
    """A price for each kW (or kVA) of demand: the mean over a demand window at its highest."""

    kind: ClassVar[Literal["demand"]] = "demand"
    periods: tuple[PricePeriod, ...]
    """Prices by the time of use."""
    apparent: bool = False
    """True if the charge is billed in kVA (kW divided by the power factor)."""
    window_minutes: int | None = None
    """Minutes over which demand is averaged. Defaults to the intervals of the load."""
    rolling: bool = False
    """True if a demand window begins with every interval, and not only at multiples of its length past local
    midnight. A rolling window belongs to the time at which it ends."""
    peaks: int = 1
    """Number of highest demands whose mean is billed."""
    on_distinct_days: bool = False
    """True if each of these demands is of another local day."""
    span: PeakSpan = PeakSpan.BILLING_PERIOD
    """Time over which a peak is the highest; the peak of a calendar year is charged once."""
    pricing: DemandPricing = DemandPricing.MARGINAL
    """Method by which tiers price a demand: each tier prices the part within it (``marginal``), the whole
    demand has the price of the tier that it falls in (``bracket``), or that price is the amount
    (``bracket_amount``)."""
    billing_demand: BillingDemand = BillingDemand()
    """Rule by which the peak becomes the demand that is billed. Defaults to the metered peak."""
    proration: ChargeProration = ChargeProration.NONE
    """Part of a monthly price that is charged in a billing period that is not one month."""
    minimum: Decimal | None = None
    """Least decimal amount of the charge in a period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrunCharge(TariffCharge):
    """A price for each kW of the period's peak above the contracted capacity."""

    kind: ClassVar[Literal["overrun"]] = "overrun"
    contract_kw: float
    """Contracted capacity in kW."""
    price: Decimal
    tolerance: float = 1.0
    """Factor of the contracted capacity above which demand is charged."""
    window_minutes: int | None = None
    """Minutes over which demand is averaged. Defaults to the intervals of the load."""


class PeakStatistic(StrEnum):
    """Statistic of the demands in the grid's peak intervals that is billed."""

    MAX = "max"
    MEAN = "mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoincidentPeakSet:
    """Peak intervals of the grid: by hour of the local year (the first is 1) or by their start."""

    price: Decimal | None = None
    """Price per kW, once a year; absent where only the kW are wanted."""
    hours_of_year: tuple[int, ...] = ()
    """Hours of the local year; 1 begins on 1 January 00:00."""
    starts: tuple[datetime, ...] = ()
    """Starts of the intervals."""
    given: int = 0
    """Number of intervals that only the determinants of a load state."""
    interval_minutes: int | None = None
    """Length of the intervals that are given by their start. Defaults to the intervals of the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoincidentPeakCharge(TariffCharge):
    """A price for the demand in the grid's own peak intervals (4CP in ERCOT, the triad in Great Britain)."""

    kind: ClassVar[Literal["coincident_peak"]] = "coincident_peak"
    sets: tuple[CoincidentPeakSet, ...]
    """Sets of peak intervals, each with its price."""
    statistic: PeakStatistic = PeakStatistic.MAX
    """Statistic of the demands in a set that is billed."""
    in_following_year: bool = False
    """True if it is billed in the calendar year after the peaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactiveCharge(TariffCharge):
    """A price for each kvar at the period's peak, or each kvarh, above a free share of the active part."""

    kind: ClassVar[Literal["reactive"]] = "reactive"
    price: Decimal
    free_share_of_active: float = 0.0
    """Share of the active part up to which nothing is charged."""
    by_energy: bool = False
    """True if it is charged per kvarh instead of kvar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumCharge(TariffCharge):
    """The least that other charges amount to in a billing period."""

    kind: ClassVar[Literal["minimum"]] = "minimum"
    amount: Decimal
    per: FixedChargePeriod = FixedChargePeriod.MONTH
    """Time that the amount is for; of a yearly amount, one twelfth counts for each month."""
    of: tuple[str, ...] = ()
    """Charges that fill it. Defaults to all but taxes and riders."""
    proration: ChargeProration = ChargeProration.NONE
    """Part of a monthly or yearly amount that counts in a billing period that is not one month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentageCharge(TariffCharge):
    """A rider, tax or credit: percent of other charges."""

    kind: ClassVar[Literal["percentage"]] = "percentage"
    percent: Decimal
    """Decimal percent of the charges; credits are below zero."""
    of: tuple[str, ...] = ()
    """Charges that it is a percentage of. Defaults to all before it."""
    tax: bool = False
    """True if it is a tax."""


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
    """Terms that no charge can express: shown as warnings."""
