"""The shape of the utility bill."""

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
    """A billing period of the site's clock."""

    start_date: str
    """Its first day."""
    end_date: str
    """The day after its last."""


class ElectricityBillLine(CostLine):
    """One charge. Of a tariff: of one billing period, price period and tier."""

    kind: NotRequired[ChargeKind]
    """What is charged."""
    billing_period: NotRequired[BillingPeriod]
    """When it is billed."""
    price_period: NotRequired[str]
    """Hours that share the price."""
    tier: NotRequired[Integer]
    """Place of the tier in its ladder, from 1."""
    peak_at: NotRequired[str]
    """Start of the interval that set the demand; where demand looks back, of the peak looked back on."""
    note: NotRequired[str]
    """Such as what raised a demand to what is billed."""
    after_run: NotRequired[bool]
    """Whether it is billed in a period that the run does not touch, because of a peak of the run."""


class BillingPeriodTotal(TypedDict):
    """What a billing period amounts to."""

    billing_period: BillingPeriod
    """When it is billed."""
    energy_kwh: float
    """Energy that is billed."""
    peak_kw: float
    """Highest demand of the meter, the baseline load counted where there is one."""
    total: MoneyAmount
    """Sum of its lines."""
    after_run: NotRequired[bool]
    """Whether the run does not touch it."""


class ElectricityBill(TypedDict):
    """The electricity bill: at a flat price a line for each kind of equipment, else those of the tariff."""

    allocation: NotRequired[Allocation]
    """Whose bill it is, under a tariff."""
    lines: list[ElectricityBillLine]
    """Charges; where what the run adds is billed, an amount below 0 is one that it saves."""
    periods: NotRequired[list[BillingPeriodTotal]]
    """Totals by billing period, under a tariff."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


class UtilityBill(BaseEstimate):
    """What will the run draw, emit and cost, rented or bought?"""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""
    peak_flops_per_second_per_device: float
    """Dense rate of the format that is multiplied in."""
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
    """The same apart."""
    equivalents: NotRequired[list[EnergyEquivalent]]
    """What the energy may be pictured as."""
    rent: CostBreakdown
    """What renting the devices costs."""
    purchase: CostBreakdown
    """What buying the devices costs."""
    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent: runs that pay the purchase back."""
    break_even_runs_with_electricity: NotRequired[QuantityEstimate]
    """The same where a run on own devices pays its electricity."""
    break_even: NotRequired[list[BreakEven]]
    """Runs and months until the purchase has paid itself back, under further assumptions."""


class UtilityBillList(TypedDict):
    """Answers in the order of the questions."""

    results: list[UtilityBill]
