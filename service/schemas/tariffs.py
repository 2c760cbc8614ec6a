"""A tariff as an API shape: tiers, periods and charges are derived from the classes of planning.

Times of windows are text such as "08:30", days are text and prices are decimal text; all else bears
planning's names.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import MISSING, Field

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
from service.schemas.derived import (
    build_planned,
    derive_model,
    list_of,
    name_choices,
    unite_models,
    write_document,
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

Price = Annotated[SignedDecimalText, Field(description="Decimal number as text; credits are below zero.")]
HolidayTreatment = name_choices(planning.HolidayTreatment)


class TariffWindow(StrictModel):
    """Local times: an instant is inside when its month, its day and its time all match."""

    months: Annotated[Months, Field(description="Calendar months; all if absent.")] | MISSING = MISSING
    weekdays: Annotated[Weekdays, Field(description="1 for Monday to 7; all if absent.")] | MISSING = MISSING
    from_time: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", max_length=5)] = "00:00"
    """Local time at which it begins."""
    to_time: Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", max_length=5)] = "24:00"
    """Local time at which it ends. A time that is not above `from_time` passes midnight into the next day."""
    holidays: HolidayTreatment = "as_weekday"  # type: ignore[valid-type]
    """Treatment of a holiday: a day like any other, always inside, or never."""


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


def _integer(least: int, most: int) -> Any:  # noqa: ANN401
    return Annotated[int, Field(ge=least, le=most, json_schema_extra={"format": "int64"})]


_derive = partial(
    derive_model,
    types={
        str: Name,
        float: NotNegative,
        Decimal: Price,
        frozenset[int]: Months | MISSING,
        tuple[str, ...]: list_of(Name, most=100),
        planning.IntervalPrices: IntervalPrices,
        planning.TariffTierUnit: name_choices(planning.TariffTierUnit),
        planning.FixedChargePeriod: name_choices(planning.FixedChargePeriod),
        planning.ChargeProration: name_choices(planning.ChargeProration),
    },
)
_tier = _derive("TariffPriceTier", planning.PriceTier, members={})
_period = _derive(
    "TariffPricePeriod",
    planning.PricePeriod,
    members={
        "tiers": list_of(_tier, least=1, most=50),
        "windows": list_of(TariffWindow, least=1, most=600) | MISSING,
    },
)
_ratchet = _derive(
    "DemandRatchet",
    planning.DemandRatchet,
    members={
        "share_by_billing_month": TwelveShares | MISSING,
        "share_by_peak_month": TwelveShares | MISSING,
        "preceding_months": _integer(0, 120) | MISSING,
    },
)
_billing_demand = _derive(
    "BillingDemand",
    planning.BillingDemand,
    members={
        "ratchets": list_of(_ratchet, most=24),
        "apparent_power_share": _Share,
        "power_factor_threshold": Annotated[float, Field(gt=0, le=1)] | MISSING,
    },
)
_peak_set = _derive(
    "CoincidentPeakSet",
    planning.CoincidentPeakSet,
    members={
        "hours_of_year": list_of(_integer(1, 8784), most=1000),
        "starts": list_of(Instant, most=1000),
        "given": _integer(0, 1000),
        "interval_minutes": Minutes | MISSING,
    },
)
_CHARGE_MEMBERS = {
    "meters": Degree,
    "periods": list_of(_period, least=1, most=100),
    "window_minutes": Minutes | MISSING,
    "peaks": _integer(1, 1000),
    "billing_demand": _billing_demand | MISSING,
    "tolerance": _Share,
    "sets": list_of(_peak_set, least=1, most=24),
    "free_share_of_active": _Share,
}
_charges = [
    _derive(charge.__name__, charge, members=_CHARGE_MEMBERS)
    for charge in (
        planning.FixedCharge,
        planning.EnergyCharge,
        planning.RealTimeCharge,
        planning.DemandCharge,
        planning.OverrunCharge,
        planning.CoincidentPeakCharge,
        planning.ReactiveCharge,
        planning.MinimumCharge,
        planning.PercentageCharge,
    )
]
TariffCharge = unite_models("TariffCharge", _charges)


class TariffRevision(StrictModel):
    """The charges in force from a local day on, until the next revision."""

    effective_from: Day
    """First local day."""
    charges: Annotated[list[TariffCharge], Field(min_length=1, max_length=200)]  # type: ignore[valid-type]
    """Charges in the order of the bill."""


class TariffTerms(StrictModel):
    """The terms of a tariff: revisions in order of time, on one local clock."""

    currency_code: CurrencyCode
    """Currency of every price (ISO 4217)."""
    time_zone: TimeZone
    """IANA name of the local clock, such as America/Los_Angeles."""
    revisions: Annotated[list[TariffRevision], Field(min_length=1, max_length=100)]
    """Charges by the day from which they are in force, ascending."""
    holidays: Annotated[list[Day], Field(max_length=2000)] = []
    """Local days that windows treat as holidays."""
    secondary_loss_factor: _Share = 0.0
    """Share that raises kWh and kW of a load that is metered behind the customer's transformer."""
    hours_of_use_minimum: NotNegative = 0.0
    """Annual kWh for each kW of the annual peak below which the tariff does not apply."""
    notes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x1f\x7f]*$")]],
        Field(max_length=50),
    ] = []
    """Terms that no charge can express: shown as warnings."""


def parse_terms(row: Mapping[str, Any]) -> TariffTerms:
    """Returns the terms in a document that has other members too."""
    return TariffTerms.model_validate({name: row[name] for name in TariffTerms.model_fields if name in row})


def to_planning(terms: TariffTerms) -> planning.Tariff:
    """Returns the tariff as planning knows it; :class:`PlanningError` names the member at fault."""
    tariff = planning.Tariff(
        currency_code=terms.currency_code,
        time_zone=terms.time_zone,
        revisions=tuple(
            planning.TariffRevision(
                effective_from=parse_day(revision.effective_from, f"/revisions/{place}/effective_from"),
                charges=tuple(build_planned(charge) for charge in revision.charges),
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
    """Returns a day of the calendar."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise PlanningError("DAY_UNKNOWN", pointer, "the calendar has no such day") from None


def to_document(tariff: planning.Tariff) -> dict[str, Any]:
    """Returns the tariff as a document of :class:`TariffTerms`, without members that have their default."""
    document: dict[str, Any] = write_document(tariff)
    return document


@build_planned.register
def build_window(shape: TariffWindow) -> planning.LocalTimeWindow:
    """Returns the window as planning knows it."""
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


@write_document.register
def _(window: planning.LocalTimeWindow) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if window.months != planning.MONTHS:
        document["months"] = sorted(window.months)
    if window.weekdays != planning.WEEKDAYS:
        document["weekdays"] = sorted(window.weekdays)
    document |= {"from_time": _format_time(window.from_minute), "to_time": _format_time(window.to_minute)}
    if window.holidays is not planning.HolidayTreatment.AS_WEEKDAY:
        document["holidays"] = window.holidays.value
    return document


def _parse_minute(time: str) -> int:
    hours, minutes = time.split(":")
    return 60 * int(hours) + int(minutes)


def _format_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@build_planned.register
def _(shape: IntervalPrices) -> planning.IntervalPrices:
    return planning.IntervalPrices(
        shape.starts_at, shape.interval_minutes, np.array(shape.values, dtype=np.float64)
    )


@write_document.register
def _(prices: planning.IntervalPrices) -> dict[str, Any]:
    return {
        "starts_at": prices.start.isoformat(),
        "interval_minutes": prices.interval_minutes,
        "values": prices.values.tolist(),
    }
