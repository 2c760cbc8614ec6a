"""The answer on the utility bill."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.answers import BaseEstimate
from service.schemas.base import CostLine, Integer, MoneyAmount, MoneyQuantity, QuantityEstimate
from service.schemas.cost_answers import BreakEven, CostBreakdown
from service.schemas.energy_answers import CarbonEmissions, EnergyEquivalent, EnergyEstimate, WaterUse

Allocation = Literal["incremental", "standalone"]
ChargeKind = Literal[
    "fixed",
    "energy",
    "demand",
    "overrun",
    "coincident_peak",
    "reactive",
    "minimum",
    "percentage",
    "tax",
]


class BillingPeriod(TypedDict):
    """A billing period on the clock of the site."""

    start_date: str
    """First day of the period."""
    end_date: str
    """Day after the last day of the period."""


class ElectricityBillLine(CostLine):
    """One charge. Under a tariff: for one billing period, price period and tier."""

    kind: NotRequired[ChargeKind]
    """Kind of the charge."""
    billing_period: NotRequired[BillingPeriod]
    """Billing period that the charge falls in."""
    price_period: NotRequired[str]
    """Hours that share the price."""
    tier: NotRequired[Integer]
    """Position of the tier among its tiers, from 1."""
    peak_at: NotRequired[str]
    """Start of the interval that set the demand. If the demand looks back, start of the earlier peak."""
    note: NotRequired[str]
    """Remark, such as the reason why a demand was raised to the billed one."""
    after_run: NotRequired[bool]
    """True if the charge falls in a billing period after the run, because of a peak of the run."""


class BillingPeriodTotal(TypedDict):
    """Totals of a billing period."""

    billing_period: BillingPeriod
    """Billing period of the totals."""
    energy_kwh: float
    """Energy that is billed."""
    peak_kw: float
    """Highest demand of the meter, including the baseline load if there is one."""
    total: MoneyAmount
    """Sum of the charges of the period."""
    after_run: NotRequired[bool]
    """True if the billing period lies after the run."""


class ElectricityBill(TypedDict):
    """The electricity bill: a line for each kind of equipment at a flat price, else those of the tariff."""

    allocation: NotRequired[Allocation]
    """Share of the bill that is answered, under a tariff: what the run adds, or the run by itself."""
    lines: list[ElectricityBillLine]
    """Charges. With the allocation `incremental`, an amount below 0 is a saving through the run."""
    periods: NotRequired[list[BillingPeriodTotal]]
    """Totals by billing period, under a tariff."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


class UtilityBill(BaseEstimate):
    """Energy, emissions and cost of a run, rented or bought."""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""
    peak_flops_per_second_per_device: float
    """Dense rate of the number format that the multiplications use."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""
    device_hours: NotRequired[QuantityEstimate]
    """Hours of all devices together."""
    energy: EnergyEstimate
    """Energy of the run."""
    electricity: ElectricityBill
    """The electricity bill of the run."""
    carbon: CarbonEmissions
    """Emissions of the run."""
    water_liters: NotRequired[QuantityEstimate]
    """Water evaporated on the site and by the grid."""
    water: NotRequired[WaterUse]
    """Water by place."""
    equivalents: NotRequired[list[EnergyEquivalent]]
    """Illustrations of the amount of energy."""
    rent: CostBreakdown
    """Cost of renting the devices."""
    purchase: CostBreakdown
    """Cost of buying the devices."""
    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent: number of runs after which the purchase has paid for itself."""
    break_even_runs_with_electricity: NotRequired[QuantityEstimate]
    """The same if a run on owned devices pays for its electricity."""
    break_even: NotRequired[list[BreakEven]]
    """Runs and months until the purchase has paid itself back, under further assumptions."""


class UtilityBillList(TypedDict):
    """Answers in the order of the questions."""

    results: list[UtilityBill]
