"""Answers on energy and emissions."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.base import Integer, QuantityEstimate
from service.schemas.carbon import EmissionAccounting, EmissionRate


class EnergyUseLine(TypedDict):
    """The energy of one kind of equipment."""

    name: Literal["accelerators", "hosts", "fans", "power_supplies", "fabric", "measured"]
    """Kind of equipment. `measured` is all equipment of a measured run."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that the equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of the equipment at the meter of the building."""
    source: str
    """Source of the figure."""


class LoadProfilePhase(TypedDict):
    """Total of all phases of one name."""

    name: Literal["ramp", "steady", "checkpoint", "restart", "maintenance", "idle"]
    """Activity of the run."""
    seconds: float
    """Time of the phases."""
    it_kwh: float
    """Energy that all equipment draws in the phases."""


class LoadProfileEstimate(TypedDict):
    """Power over time, at the middle of the interval of the energy."""

    elapsed_seconds: float
    """Time from switching on to switching off, pauses included."""
    phases: list[LoadProfilePhase]
    """Time and energy by phase."""
    interval_minutes: Integer
    """Interval of the meter, in minutes."""
    first_interval_at: NotRequired[str]
    """Start of the first interval."""
    highest_interval_kw: NotRequired[float]
    """Highest mean of an interval at the meter."""
    intervals_kw: NotRequired[list[float]]
    """Mean power of each interval at the meter."""


class EnergyEstimate(TypedDict):
    """Energy of the accelerators and the equipment around them, and of the building at its meter."""

    lines: list[EnergyUseLine]
    """Energy by kind of equipment."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of all equipment at the meter of the building."""
    overhead_kwh: NotRequired[QuantityEstimate]
    """Energy that cooling and distribution of the building add."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building in the phase that draws most."""
    load_profile: NotRequired[LoadProfileEstimate]
    """Power over time."""


class CarbonMethod(TypedDict):
    """Method of an emission figure. Figures of different methods do not add up."""

    emission_rate: EmissionRate
    """Rate of the average kWh, or of one additional kWh."""
    accounting: NotRequired[EmissionAccounting]
    """Emissions that are counted. Absent if the request gives a bare number."""
    in_time: bool
    """True if the figure sums the intervals of the run, false if it is a mean intensity times its energy."""


class MarketBasedEmissionsLine(TypedDict):
    """Electricity of one contract instrument."""

    name: Literal["power_purchase_agreement", "certificate", "supplier", "green_tariff", "residual_mix"]
    """Instrument, or the residual mix for what the instruments leave."""
    share: float
    """Share of the run's energy."""
    kwh: float
    """Energy at the meter."""
    kg_co2e: float
    """Emissions of the electricity."""
    source: str
    """Document that states the intensity."""


class EmbodiedEmissionsLine(TypedDict):
    """Embodied emissions of machines of one kind."""

    name: Literal["accelerators", "servers"]
    """Kind of machine. Servers are counted without their accelerators."""
    kg_co2e: QuantityEstimate
    """Emissions of making the machines that are allocated to the run."""
    source: str
    """Source of the assessment."""


class SoftwareCarbonIntensity(TypedDict):
    """Location-based and embodied emissions over a functional unit (ISO/IEC 21031)."""

    per: Literal["run", "million_tokens", "request"]
    """Functional unit. Tokens are those trained on, or those generated."""
    kg_co2e: QuantityEstimate
    """Emissions of one unit."""


class EnergyEquivalent(TypedDict):
    """An illustration of the amount of energy; it is not a measure."""

    name: Literal["household_months"]
    """Unit of the illustration."""
    value: float
    """Number of units."""
    detail: str
    """Definition of one unit."""


class WaterUse(TypedDict):
    """Water use of the run, by place."""

    onsite_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site for cooling."""
    offsite_liters: NotRequired[QuantityEstimate]
    """Water that the power plants of the grid use."""


class CarbonEmissions(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions at the average intensity of the grid."""
    location_based_method: NotRequired[CarbonMethod]
    """Method of the location-based figure."""
    marginal_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions that the run changes, at the marginal intensity of the grid. Reported beside the other
    figures, not part of them."""
    marginal_method: NotRequired[CarbonMethod]
    """Method of the marginal figure."""
    market_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions at the intensity of the contracted electricity."""
    market_based_method: NotRequired[CarbonMethod]
    """Method of the market-based figure."""
    market_based_lines: NotRequired[list[MarketBasedEmissionsLine]]
    """Market-based emissions by instrument, at the middle of the interval of the energy."""
    embodied_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of making the equipment that are allocated to the run."""
    embodied_lines: NotRequired[list[EmbodiedEmissionsLine]]
    """Embodied emissions by kind of machine."""
    software_carbon_intensity: NotRequired[list[SoftwareCarbonIntensity]]
    """Emissions by functional unit."""
