"""Shapes of energy and emissions."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.base import Integer, QuantityEstimate
from service.schemas.carbon import EmissionAccounting, EmissionRate


class EnergyUseLine(TypedDict):
    """The energy of one kind of equipment."""

    name: Literal["accelerators", "hosts", "fans", "power_supplies", "fabric", "measured"]
    """Kind of equipment; all of it where the energy was measured."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that the equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """The same at the meter of the building."""
    source: str
    """Where the figure comes from."""


class LoadProfilePhase(TypedDict):
    """All phases of one name together."""

    name: Literal["ramp", "steady", "checkpoint", "restart", "maintenance", "idle"]
    """What the run does."""
    seconds: float
    """Time that it spends so."""
    it_kwh: float
    """Energy that all equipment draws meanwhile."""


class LoadProfileEstimate(TypedDict):
    """The course of the power in time, at the middle of its interval."""

    elapsed_seconds: float
    """From switching on to switching off, with pauses."""
    phases: list[LoadProfilePhase]
    """What the time is spent on."""
    interval_minutes: Integer
    """Interval of the meter."""
    first_interval_at: NotRequired[str]
    """Start of the first interval."""
    highest_interval_kw: NotRequired[float]
    """Highest mean of an interval at the meter."""
    intervals_kw: NotRequired[list[float]]
    """Mean power of each interval at the meter."""


class EnergyEstimate(TypedDict):
    """Energy of accelerators and of what is around them, and at the meter of the building."""

    lines: list[EnergyUseLine]
    """Energy by kind of equipment."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """The same at the meter of the building."""
    overhead_kwh: NotRequired[QuantityEstimate]
    """What cooling and distribution of the building add to the equipment."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building in the phase that draws most."""
    load_profile: NotRequired[LoadProfileEstimate]
    """The course of the power in time."""


class CarbonMethod(TypedDict):
    """What an intensity counts. Figures of different methods do not add up."""

    emission_rate: EmissionRate
    """Of the average kWh, or of one more."""
    accounting: NotRequired[EmissionAccounting]
    """What is counted; absent where the question gives a bare number."""
    in_time: bool
    """Whether it is the sum over the intervals of the run, or a mean times its energy."""


class MarketBasedEmissionsLine(TypedDict):
    """Electricity of one instrument."""

    name: Literal["power_purchase_agreement", "certificate", "supplier", "green_tariff", "residual_mix"]
    """The instrument, or what the others leave."""
    share: float
    """Of the run's energy."""
    kwh: float
    """Energy at the meter."""
    kg_co2e: float
    """Its emissions."""
    source: str
    """Document that says so."""


class EmbodiedEmissionsLine(TypedDict):
    """Machines of one kind."""

    name: Literal["accelerators", "servers"]
    """Kind of machine; servers without their accelerators."""
    kg_co2e: QuantityEstimate
    """Share of making them that the run takes."""
    source: str
    """Where the assessment comes from."""


class SoftwareCarbonIntensity(TypedDict):
    """Location-based and embodied emissions over a functional unit (ISO/IEC 21031)."""

    per: Literal["run", "million_tokens", "request"]
    """The functional unit; tokens are those trained on, or generated."""
    kg_co2e: QuantityEstimate
    """Emissions of one unit."""


class EnergyEquivalent(TypedDict):
    """A picture of the energy: an illustration, no measure."""

    name: Literal["household_months"]
    """What it is set against."""
    value: float
    """How many of them."""
    detail: str
    """What one of them is."""


class WaterUse(TypedDict):
    """Water of the run, by place."""

    onsite_liters: NotRequired[QuantityEstimate]
    """Evaporated on the site to cool."""
    offsite_liters: NotRequired[QuantityEstimate]
    """Taken by the power plants of the grid."""


class CarbonEmissions(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """At the average intensity of the grid."""
    location_based_method: NotRequired[CarbonMethod]
    """What that intensity counts."""
    marginal_kg_co2e: NotRequired[QuantityEstimate]
    """What the run changes, at the marginal intensity of the grid: beside the others, not part of them."""
    marginal_method: NotRequired[CarbonMethod]
    """What that intensity counts."""
    market_based_kg_co2e: NotRequired[QuantityEstimate]
    """At the intensity of the contracted electricity."""
    market_based_method: NotRequired[CarbonMethod]
    """What that intensity counts."""
    market_based_lines: NotRequired[list[MarketBasedEmissionsLine]]
    """The same by instrument, at the middle of the energy."""
    embodied_kg_co2e: NotRequired[QuantityEstimate]
    """Share of making the equipment."""
    embodied_lines: NotRequired[list[EmbodiedEmissionsLine]]
    """The same by kind of machine."""
    software_carbon_intensity: NotRequired[list[SoftwareCarbonIntensity]]
    """Rates by functional unit."""
