"""Requests and answers for the bill of a given load under a tariff."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.schemas.base import (
    AnswerWarning,
    CatalogName,
    EstimateEvidence,
    EstimateGap,
    MoneyQuantity,
    NotNegative,
    QuantityEstimate,
    Share,
    StrictModel,
)
from service.schemas.bill_answers import BillingPeriodTotal, ElectricityBillLine
from service.schemas.energy import IntervalMinutes
from service.schemas.site import MOST_MONTHS, LocalDate, MonthlyPeak
from service.schemas.tariffs import MOST_VALUES, Months, Name, TariffTerms, Weekdays

_INT64 = {"format": "int64"}
_KW = Annotated[float, Field(ge=-1e9, le=1e9)]

LoadTime = Annotated[
    str,
    Field(
        pattern=r"^2[01][0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"T([01][0-9]|2[0-3]):[0-5][0-9](:00)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$",
        max_length=25,
    ),
]
"""A time with an offset from UTC, such as 2026-07-01T07:00:00Z, or without one on the local clock."""
Year = Annotated[int, Field(ge=2000, le=2199, json_schema_extra=_INT64)]
Month = Annotated[int, Field(ge=1, le=12, json_schema_extra=_INT64)]
BillingYear = Annotated[Year, Field(description="Calendar year of the load.")]
LoadStart = Annotated[
    LoadTime,
    Field(description="Start of the first interval. Without an offset from UTC it is on the local clock."),
]
LoadEnd = Annotated[
    LoadTime, Field(description="End of the last interval, as a time of the same kind as the start.")
]
IntervalLength = Annotated[IntervalMinutes, Field(description="Length of each interval, in minutes.")]


class CatalogTariff(StrictModel):
    """A tariff of the catalog."""

    source: Literal["catalog"]
    id: CatalogName


class SpecifiedTariff(StrictModel):
    """A tariff that is not in the catalog."""

    source: Literal["terms"]
    terms: TariffTerms
    """Terms of the tariff."""


TariffReference = TypeAliasType(
    "TariffReference", Annotated[CatalogTariff | SpecifiedTariff, Field(discriminator="source")]
)


class ConstantDemand(StrictModel):
    """Constant power."""

    kind: Literal["constant"]
    starts_at: LoadStart
    ends_at: LoadEnd
    interval_minutes: IntervalLength = 15
    kw: NotNegative
    """Power at the meter."""


class DemandSeries(StrictModel):
    """Mean power of consecutive intervals."""

    kind: Literal["series"]
    starts_at: LoadStart
    interval_minutes: IntervalLength = 15
    kw: Annotated[list[NotNegative], Field(min_length=1, max_length=MOST_VALUES)]
    """Mean power of each interval at the meter."""


class DemandRuleIncrement(StrictModel):
    """Power that is added in the intervals whose start matches every member that is given."""

    kw: NotNegative
    """Added power."""
    months: Annotated[Months, Field(description="Calendar months. Defaults to all.")] | MISSING = MISSING
    weekdays: Annotated[Weekdays, Field(description="1 (Monday) to 7. Defaults to all.")] | MISSING = MISSING
    from_time: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", max_length=5)] = "00:00"
    """Local time of day at which the added power begins."""
    to_time: Annotated[str, Field(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", max_length=5)] = "24:00"
    """Local time of day at which the added power ends. A time not after `from_time` is on the next day."""


class DemandRuleOverride(StrictModel):
    """Power of single intervals, which replaces the power of the rest of the rule."""

    intervals: Annotated[
        list[Annotated[int, Field(ge=1, le=MOST_VALUES, json_schema_extra=_INT64)]],
        Field(min_length=1, max_length=10_000),
    ]
    """Positions of the intervals in the load, from 1."""
    kw: NotNegative
    """Power of the intervals."""


class DemandRule(StrictModel):
    """Power by local month, weekday and time of day."""

    kind: Literal["rule"]
    starts_at: LoadStart
    ends_at: LoadEnd
    interval_minutes: IntervalLength = 15
    base_kw: NotNegative = 0.0
    """Power of every interval."""
    step_kw: _KW = 0.0
    """Power that each interval adds to the one before it."""
    add: Annotated[list[DemandRuleIncrement], Field(max_length=100)] = []
    """Powers that are added in intervals of some months, weekdays and times of day."""
    set: Annotated[list[DemandRuleOverride], Field(max_length=100)] = []
    """Intervals with a power of their own."""


class AnnualDemand(StrictModel):
    """Energy and peak of a year, for a load without a known series."""

    kind: Literal["annual"]
    year: BillingYear
    energy_kwh: NotNegative
    """Energy of the year."""
    peak_kw: NotNegative
    """Highest demand of the year."""


class MonthlyBillingQuantity(StrictModel):
    """A billing quantity of a month."""

    month: Month
    """Calendar month."""
    period: Name | MISSING = MISSING
    """Price period of the charge. Absent for a quantity of all hours of the month."""
    value: NotNegative
    """Value of the quantity."""


class DemandDeterminants(StrictModel):
    """Billing quantities of the months of a year, for a load without a known series."""

    kind: Literal["determinants"]
    year: BillingYear
    energy_kwh: Annotated[list[MonthlyBillingQuantity], Field(max_length=2000)] = []
    """Energy by month and price period."""
    peak_kw: Annotated[list[MonthlyBillingQuantity], Field(max_length=2000)] = []
    """Highest demand by month, and by month and price period."""
    coincident_kw: Annotated[list[NotNegative], Field(max_length=1000)] = []
    """Demand in the grid's peak intervals, in the order of the tariff's sets."""


TariffLoad = TypeAliasType(
    "TariffLoad",
    Annotated[
        ConstantDemand | DemandSeries | DemandRule | AnnualDemand | DemandDeterminants,
        Field(discriminator="kind"),
    ],
)


class TariffBillRequest(StrictModel):
    """Request for the charges of a tariff for a load."""

    tariff: TariffReference
    """Tariff that the load is billed by."""
    load: TariffLoad
    """Load at the meter."""
    power_factor: Share = 1.0
    """Ratio of active to apparent power at the meter."""
    metering_side: Literal["primary", "secondary"] = "primary"
    """Side of the transformer that the meter is on. A tariff may add the loss of the transformer to the
    reading of a secondary meter."""
    billing_period_starts: (
        Annotated[list[LocalDate], Field(min_length=2, max_length=MOST_MONTHS + 1)] | MISSING
    ) = MISSING
    """First local days of consecutive billing periods, and of the period after the last. Defaults to the
    calendar months of the load."""
    monthly_peaks: Annotated[list[MonthlyPeak], Field(max_length=MOST_MONTHS)] | MISSING = MISSING
    """Demand of months before the load, for charges that look back."""
    wraps_year: bool = False
    """Set to true to take the peaks of months before the load that are not given from the end of the same
    year."""


class BilledDemand(TypedDict):
    """Demand that a charge bills."""

    charge: str
    """Name of the charge."""
    kw: float
    """Demand after floors and ratchets."""


class TariffBillPeriodTotal(BillingPeriodTotal):
    """Totals of a billing period."""

    billing_demand: list[BilledDemand]
    """Billed demand by demand charge."""


class TariffBill(TypedDict):
    """The bill of a load. Each line is rounded once, half to even, to the minor unit of the currency."""

    total: MoneyQuantity
    """Sum of the lines."""
    energy_kwh: QuantityEstimate
    """Energy of all billing periods at the meter."""
    peak_kw: QuantityEstimate
    """Highest demand of all billing periods."""
    lines: list[ElectricityBillLine]
    """Charges by billing period, in the order of the tariff."""
    periods: list[TariffBillPeriodTotal]
    """Totals by billing period."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    warnings: list[AnswerWarning]
    """Remarks about the question and the tariff."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""
