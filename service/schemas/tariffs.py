"""A tariff as an API shape: one class for each class of planning, member for member.

Times of windows are text such as "08:30" and prices are decimal text; all else bears planning's names, so
that a shape can be turned into its planning class and back by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import Field as DataclassField
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.planning.errors import PlanningError
from service.planning.tariff import charges as planning
from service.planning.tariff.checks import check_tariff
from service.schemas.base import (
    CurrencyCode,
    Degree,
    Instant,
    NotNegative,
    SignedDecimalText,
    StrictModel,
)

_INT64 = {"format": "int64"}
MOST_VALUES = 90_000
"""Most values of one series: a year of intervals of six minutes."""

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Day = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", max_length=10)]
"""A day of the calendar, such as 2026-11-22."""
TimeZone = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{0,99}$", max_length=100)]
"""A name of the IANA time zone database."""
Months = Annotated[
    list[Annotated[int, Field(ge=1, le=12, json_schema_extra=_INT64)]], Field(min_length=1, max_length=12)
]
Weekdays = Annotated[
    list[Annotated[int, Field(ge=1, le=7, json_schema_extra=_INT64)]], Field(min_length=1, max_length=7)
]
Minutes = Annotated[int, Field(ge=1, le=60, json_schema_extra=_INT64)]
_Share = Annotated[float, Field(ge=0, le=100)]
TwelveShares = Annotated[list[_Share], Field(min_length=12, max_length=12)]

ChargeName = Annotated[Name, Field(description="What no other charge of the revision is called.")]
ChargedMonths = Annotated[Months, Field(description="Calendar months in which it is charged; all if absent.")]
HoursOfUse = Annotated[
    NotNegative, Field(description="Charged from this many annual kWh for each kW of the annual peak.")
]
HoursOfUseBelow = Annotated[
    NotNegative, Field(description="Charged below this many annual kWh for each kW of the annual peak.")
]
WindowMinutes = Annotated[
    Minutes, Field(description="Minutes over which demand is averaged; those of the load if absent.")
]
Price = Annotated[SignedDecimalText, Field(description="Decimal number as text; credits are below zero.")]
ChargeNames = Annotated[list[Name], Field(max_length=100)]

HolidayTreatment = TypeAliasType("HolidayTreatment", Literal["as_weekday", "included", "excluded"])
TariffTierUnit = TypeAliasType(
    "TariffTierUnit", Literal["kwh", "kwh_per_kw", "kwh_per_day", "kwh_per_kw_per_day", "kw"]
)
FixedChargePeriod = TypeAliasType("FixedChargePeriod", Literal["day", "month", "year"])
ChargeProration = TypeAliasType("ChargeProration", Literal["none", "thirty_days", "days_of_month"])


class TariffWindow(StrictModel):
    """Local times: an instant is inside when its month, its day and its time all match."""

    months: Annotated[Months, Field(description="Calendar months; all if absent.")] | MISSING = MISSING
    weekdays: Annotated[Weekdays, Field(description="1 for Monday to 7; all if absent.")] | MISSING = MISSING
    from_time: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", max_length=5)] = "00:00"
    """Local time at which it begins."""
    to_time: Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", max_length=5)] = "24:00"
    """Local time at which it ends. One that is not above from_time passes midnight into the next day."""
    holidays: HolidayTreatment = "as_weekday"
    """What a holiday is to it: a day like any other, always in it, or never."""


class TariffPriceTier(StrictModel):
    """A price up to a limit."""

    price: Price
    limit: NotNegative | MISSING = MISSING
    """Cumulative upper limit within the billing period; absent without end."""
    unit: TariffTierUnit = "kwh"
    """What the limit counts; hours of use are kWh for each kW of billing demand."""


class TariffPricePeriod(StrictModel):
    """The hours of a charge that share a ladder of tiers. Those of one charge do not overlap."""

    name: Name
    """What no other period of the charge is called."""
    tiers: Annotated[list[TariffPriceTier], Field(min_length=1, max_length=50)]
    """Prices, the limits ascending."""
    windows: Annotated[list[TariffWindow], Field(min_length=1, max_length=600)] | MISSING = MISSING
    """When it applies; at all times if absent."""


PricePeriods = Annotated[
    list[TariffPricePeriod], Field(min_length=1, max_length=100, description="Prices by the time of use.")
]


class _Charge(StrictModel):
    """What every charge has."""

    name: ChargeName
    months: ChargedMonths | MISSING = MISSING
    hours_of_use_from: HoursOfUse = 0.0
    hours_of_use_below: HoursOfUseBelow | MISSING = MISSING


class FixedCharge(_Charge):
    """An amount whatever is used."""

    kind: Literal["fixed"]
    price: Price
    per: FixedChargePeriod = "month"
    """What it is charged for; of a year one twelfth for each month."""
    meters: Degree = 1
    """Meters that it is charged for."""
    proration: ChargeProration = "none"
    """What a price by month or year is charged for in a billing period that is not one month."""


class EnergyCharge(_Charge):
    """A price for each kWh: flat, by time of use, by tier, by hours of use of the billing demand."""

    kind: Literal["energy"]
    periods: PricePeriods
    accumulation: Literal["per_period", "all_periods_in_time_order"] = "per_period"
    """Which energy fills the tiers."""
    billing_demand_of: Name | MISSING = MISSING
    """Demand charge whose billing demand scales hours of use; the peak of the billing period if absent."""


class IntervalPrices(StrictModel):
    """Prices of consecutive intervals."""

    starts_at: Instant
    """Start of the first interval."""
    interval_minutes: Minutes
    """Length of an interval; it divides the hour."""
    values: Annotated[
        list[Annotated[float, Field(ge=-1e9, le=1e9)]], Field(min_length=1, max_length=MOST_VALUES)
    ]
    """Price of a kWh in each interval, in the currency of the tariff."""


class RealTimeCharge(_Charge):
    """The price of the market in each interval times a factor, and an adder per kWh."""

    kind: Literal["real_time"]
    prices: IntervalPrices
    """Prices of the market."""
    adder: Price = "0"
    factor: Annotated[
        SignedDecimalText, Field(description="What the price of the market is multiplied by.")
    ] = "1"


class DemandRatchet(StrictModel):
    """A billing demand is at least a share of earlier peaks."""

    share_by_billing_month: TwelveShares | MISSING = MISSING
    """Shares by the calendar month that is billed; 1 each if absent."""
    share_by_peak_month: TwelveShares | MISSING = MISSING
    """Shares by the calendar month of the peak, multiplied by the others; 1 each if absent."""
    preceding_months: Annotated[int, Field(ge=0, le=120, json_schema_extra=_INT64)] | MISSING = MISSING
    """Months before the billing month whose peaks are looked back on."""
    peak_months: Months | MISSING = MISSING
    """Calendar months whose peaks are looked back on."""
    within_billing_month: bool = False
    """Whether the peak of the billing month itself is among them."""
    period: Name | MISSING = MISSING
    """Price period whose peaks count; all hours if absent."""
    raises: Annotated[list[Name], Field(max_length=100)] = []
    """Price periods whose demand it raises; all where empty."""
    wraps_year: bool = False
    """Whether months before the load, where no peak of theirs is known, are taken from the end of the same
    year."""


class BillingDemand(StrictModel):
    """How the metered peak becomes the demand that is billed: the highest of all of these."""

    minimum_kw: NotNegative = 0.0
    """The least that is billed."""
    contract_kw: NotNegative = 0.0
    """Contracted capacity, billed whether it is used or not."""
    ratchets: Annotated[list[DemandRatchet], Field(max_length=24)] = []
    """Shares of earlier peaks."""
    apparent_power_share: _Share = 0.0
    """Share of the kVA at the peak."""
    power_factor_threshold: Annotated[float, Field(gt=0, le=1)] | MISSING = MISSING
    """Below it demand is multiplied by 1 + threshold - power factor."""
    own_peak_months: Months | MISSING = MISSING
    """Calendar months in which the period's own peak counts; all if absent."""


class DemandCharge(_Charge):
    """A price for each kW (or kVA) of demand: the mean over a demand window at its highest."""

    kind: Literal["demand"]
    periods: PricePeriods
    apparent: bool = False
    """Whether it is billed in kVA: kW over the power factor."""
    window_minutes: WindowMinutes | MISSING = MISSING
    rolling: bool = False
    """Whether a demand window begins with every interval, and not only at multiples of it past midnight."""
    peaks: Annotated[int, Field(ge=1, le=1000, json_schema_extra=_INT64)] = 1
    """Number of highest demands whose mean is billed."""
    on_distinct_days: bool = False
    """Whether each of them is of another local day."""
    span: Literal["billing_period", "calendar_year"] = "billing_period"
    """Over which time a peak is the highest; that of a year is charged once."""
    pricing: Literal["marginal", "bracket", "bracket_amount"] = "marginal"
    """Each tier prices the part within it, or the whole demand is at the price of the tier that it falls in,
    or that tier's price is the amount."""
    billing_demand: BillingDemand | MISSING = MISSING
    """How the peak becomes what is billed; as metered if absent."""
    proration: ChargeProration = "none"
    """What a monthly price is charged for in a billing period that is not one month."""
    minimum: Annotated[Price, Field(description="The least that a period's charge is.")] | MISSING = MISSING


class OverrunCharge(_Charge):
    """A price for each kW of the period's peak above the contracted capacity."""

    kind: Literal["overrun"]
    contract_kw: NotNegative
    """Contracted capacity."""
    price: Price
    tolerance: Annotated[float, Field(ge=0, le=100)] = 1.0
    """What the contracted capacity is multiplied by before anything is above it."""
    window_minutes: WindowMinutes | MISSING = MISSING


class CoincidentPeakSet(StrictModel):
    """Peak intervals of the grid: by hour of the local year (the first is 1) or by their start."""

    price: (
        Annotated[Price, Field(description="Price per kW, once a year; absent where only kW are wanted.")]
        | MISSING
    ) = MISSING
    hours_of_year: Annotated[
        list[Annotated[int, Field(ge=1, le=8784, json_schema_extra=_INT64)]], Field(max_length=1000)
    ] = []
    """Hours of the local year; 1 begins on 1 January 00:00."""
    starts: Annotated[list[Instant], Field(max_length=1000)] = []
    """Starts of the intervals."""
    given: Annotated[int, Field(ge=0, le=1000, json_schema_extra=_INT64)] = 0
    """How many of them are known from the load's determinants only."""
    interval_minutes: Minutes | MISSING = MISSING
    """Length of the intervals that are given by their start; that of the load's intervals if absent."""


class CoincidentPeakCharge(_Charge):
    """A price for the demand in the grid's own peak intervals (4CP in ERCOT, the triad in Great Britain)."""

    kind: Literal["coincident_peak"]
    sets: Annotated[list[CoincidentPeakSet], Field(min_length=1, max_length=24)]
    """Sets of peak intervals, each with its price."""
    statistic: Literal["max", "mean"] = "max"
    """What of the demands in a set is billed."""
    in_following_year: bool = False
    """Whether it is billed in the calendar year after the peaks."""


class ReactiveCharge(_Charge):
    """A price for each kvar at the period's peak, or each kvarh, above a free share of the active part."""

    kind: Literal["reactive"]
    price: Price
    free_share_of_active: _Share = 0.0
    """Share of the active part up to which nothing is charged."""
    by_energy: bool = False
    """Whether it is charged per kvarh instead of kvar."""


class MinimumCharge(_Charge):
    """The least that other charges amount to in a billing period."""

    kind: Literal["minimum"]
    amount: Price
    per: FixedChargePeriod = "month"
    """What the amount is for."""
    of: ChargeNames = []
    """Charges that fill it; all but taxes and riders where empty."""
    proration: ChargeProration = "none"
    """What an amount by month or year is for in a billing period that is not one month."""


class PercentageCharge(_Charge):
    """A rider, tax or credit: percent of other charges."""

    kind: Literal["percentage"]
    percent: Annotated[
        SignedDecimalText, Field(description="Percent as decimal text; credits are below zero.")
    ]
    of: ChargeNames = []
    """Charges that it is of; all before it where empty."""
    tax: bool = False
    """Whether it is a tax."""


TariffCharge = TypeAliasType(
    "TariffCharge",
    Annotated[
        FixedCharge
        | EnergyCharge
        | RealTimeCharge
        | DemandCharge
        | OverrunCharge
        | CoincidentPeakCharge
        | ReactiveCharge
        | MinimumCharge
        | PercentageCharge,
        Field(discriminator="kind"),
    ],
)


class TariffRevision(StrictModel):
    """The charges in force from a local day on, until the next revision."""

    effective_from: Day
    """First local day."""
    charges: Annotated[list[TariffCharge], Field(min_length=1, max_length=200)]
    """What is charged, in the order of the bill."""


class TariffTerms(StrictModel):
    """What a tariff charges: revisions in order of time, on one local clock."""

    currency_code: CurrencyCode
    """Currency of every price (ISO 4217)."""
    time_zone: TimeZone
    """IANA name of the local clock, such as America/Los_Angeles."""
    revisions: Annotated[list[TariffRevision], Field(min_length=1, max_length=100)]
    """Charges by the day from which they are in force, ascending."""
    holidays: Annotated[list[Day], Field(max_length=2000)] = []
    """Local days that windows treat as holidays."""
    secondary_loss_factor: _Share = 0.0
    """Raises kWh and kW of a load that is metered behind the customer's transformer."""
    hours_of_use_minimum: NotNegative = 0.0
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""
    notes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]],
        Field(max_length=50),
    ] = []
    """What the tariff says and no charge can: shown as warnings."""


_KINDS: Mapping[str, type[planning.TariffCharge]] = {
    "fixed": planning.FixedCharge,
    "energy": planning.EnergyCharge,
    "real_time": planning.RealTimeCharge,
    "demand": planning.DemandCharge,
    "overrun": planning.OverrunCharge,
    "coincident_peak": planning.CoincidentPeakCharge,
    "reactive": planning.ReactiveCharge,
    "minimum": planning.MinimumCharge,
    "percentage": planning.PercentageCharge,
}
_KIND_OF = {planned: kind for kind, planned in _KINDS.items()}


def parse_terms(row: Mapping[str, Any]) -> TariffTerms:
    """The terms in a document that has other members too."""
    return TariffTerms.model_validate({name: row[name] for name in TariffTerms.model_fields if name in row})


def to_planning(terms: TariffTerms) -> planning.Tariff:
    """The tariff as planning knows it; :class:`PlanningError` names the member at fault."""
    tariff = planning.Tariff(
        currency_code=terms.currency_code,
        time_zone=terms.time_zone,
        revisions=tuple(
            planning.TariffRevision(
                effective_from=parse_day(revision.effective_from, f"/revisions/{place}/effective_from"),
                charges=tuple(_build_object(_KINDS[charge.kind], charge) for charge in revision.charges),
            )
            for place, revision in enumerate(terms.revisions)
        ),
        holidays=frozenset(
            parse_day(text, f"/holidays/{place}") for place, text in enumerate(terms.holidays)
        ),
        secondary_loss_factor=terms.secondary_loss_factor,
        hours_of_use_minimum=terms.hours_of_use_minimum,
        notes=tuple(terms.notes),
    )
    check_tariff(tariff)
    return tariff


def parse_day(text: str, pointer: str) -> date:
    """A day of the calendar."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise PlanningError("DAY_UNKNOWN", pointer, "the calendar has no such day") from None


def _build_object(planned: type[Any], shape: StrictModel) -> Any:  # noqa: ANN401
    """An object of planning by the members of its shape that are given."""
    given = {name: value for name, value in shape if name != "kind" and value is not MISSING}
    return planned(**{name: _READ.get(name, _to_tuple)(value) for name, value in given.items()})


def _build_list_reader(planned: type[Any]) -> Callable[[list[StrictModel]], tuple[Any, ...]]:
    return lambda shapes: tuple(_build_object(planned, shape) for shape in shapes)


def _to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _build_windows(shapes: list[TariffWindow]) -> tuple[planning.LocalTimeWindow, ...]:
    return tuple(build_window(shape) for shape in shapes)


def build_window(shape: TariffWindow) -> planning.LocalTimeWindow:
    """The window as planning knows it."""
    given = {
        name: frozenset(days)
        for name in ("months", "weekdays")
        if (days := getattr(shape, name)) is not MISSING
    }
    return planning.LocalTimeWindow(
        **given,
        from_minute=_parse_minute(shape.from_time),
        to_minute=_parse_minute(shape.to_time),
        holidays=planning.HolidayTreatment(shape.holidays),
    )


def _parse_minute(time: str) -> int:
    hours, minutes = time.split(":")
    return 60 * int(hours) + int(minutes)


def _format_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _build_prices(shape: IntervalPrices) -> planning.IntervalPrices:
    return planning.IntervalPrices(
        shape.starts_at, shape.interval_minutes, np.array(shape.values, dtype=np.float64)
    )


_READ: Mapping[str, Callable[[Any], Any]] = {
    "months": frozenset,
    "own_peak_months": frozenset,
    "peak_months": frozenset,
    "price": Decimal,
    "amount": Decimal,
    "percent": Decimal,
    "adder": Decimal,
    "factor": Decimal,
    "minimum": Decimal,
    "per": planning.FixedChargePeriod,
    "unit": planning.TariffTierUnit,
    "accumulation": planning.TierAccumulation,
    "span": planning.PeakSpan,
    "pricing": planning.DemandPricing,
    "proration": planning.ChargeProration,
    "statistic": planning.PeakStatistic,
    "periods": _build_list_reader(planning.PricePeriod),
    "tiers": _build_list_reader(planning.PriceTier),
    "windows": _build_windows,
    "sets": lambda shapes: tuple(_build_peak_set(shape) for shape in shapes),
    "ratchets": _build_list_reader(planning.DemandRatchet),
    "billing_demand": lambda shape: _build_object(planning.BillingDemand, shape),
    "prices": _build_prices,
}
"""How a member becomes planning's, by its name; all others are taken as they are."""


def _build_peak_set(shape: CoincidentPeakSet) -> planning.CoincidentPeakSet:
    price = None if shape.price is MISSING else Decimal(shape.price)
    return planning.CoincidentPeakSet(
        price=price,
        hours_of_year=tuple(shape.hours_of_year),
        starts=tuple(shape.starts),
        given=shape.given,
        interval_minutes=None if shape.interval_minutes is MISSING else shape.interval_minutes,
    )


def to_document(tariff: planning.Tariff) -> dict[str, Any]:
    """The tariff as a document of :class:`TariffTerms`, without members that have their default."""
    document: dict[str, Any] = _write_value(tariff)
    return document


def _write_value(value: object) -> Any:  # noqa: ANN401
    match value:
        case planning.LocalTimeWindow():
            return _write_window(value)
        case planning.IntervalPrices(start, interval_minutes, values):
            written = {"starts_at": start.isoformat(), "interval_minutes": interval_minutes}
            return {**written, "values": values.tolist()}
        case frozenset():
            return sorted(_write_value(item) for item in value)
        case tuple() | list():
            return [_write_value(item) for item in value]
    return _write_object(value) if is_dataclass(value) else _write_scalar(value)


def _write_scalar(value: object) -> object:
    match value:
        case Decimal():
            return f"{value:f}"
        case StrEnum():
            return value.value
        case date():  # and datetime
            return value.isoformat()
    return value


def _write_object(value: Any) -> dict[str, Any]:  # noqa: ANN401
    kind = {"kind": _KIND_OF[type(value)]} if isinstance(value, planning.TariffCharge) else {}
    members = [(field, getattr(value, field.name)) for field in fields(value)]
    return kind | {
        field.name: _write_value(member)
        for field, member in members
        if member is not None and not _is_default(field, member)
    }


def _is_default(field: DataclassField[Any], member: object) -> bool:
    # An array is no default, and cannot be compared with one.
    return field.default is not NO_DEFAULT and bool(member == field.default)


def _write_window(window: planning.LocalTimeWindow) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if window.months != planning.MONTHS:
        document["months"] = sorted(window.months)
    if window.weekdays != planning.WEEKDAYS:
        document["weekdays"] = sorted(window.weekdays)
    document |= {"from_time": _format_time(window.from_minute), "to_time": _format_time(window.to_minute)}
    if window.holidays is not planning.HolidayTreatment.AS_WEEKDAY:
        document["holidays"] = window.holidays.value
    return document
