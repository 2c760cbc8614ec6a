"""Shapes of energy and emissions."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.questions.base import Integer, QuantityAnswer


class EnergyLine(TypedDict):
    """The energy of one kind of equipment."""

    name: Literal["accelerators", "hosts", "fans", "power_supplies", "fabric", "measured"]
    """Kind of equipment; all of it where the energy was measured."""
    it_kwh: NotRequired[QuantityAnswer]
    """Energy that the equipment draws."""
    facility_kwh: NotRequired[QuantityAnswer]
    """The same at the meter of the building."""
    source: str
    """Where the figure comes from."""


class LoadPhase(TypedDict):
    """All phases of one name together."""

    name: Literal["ramp", "steady", "checkpoint", "restart", "maintenance", "idle"]
    """What the run does."""
    seconds: float
    """Time that it spends so."""
    it_kwh: float
    """Energy that all equipment draws meanwhile."""


class LoadProfileAnswer(TypedDict):
    """The course of the power in time, at the middle of its interval."""

    elapsed_seconds: float
    """From switching on to switching off, with pauses."""
    phases: list[LoadPhase]
    """What the time is spent on."""
    interval_minutes: Integer
    """Interval of the meter."""
    first_interval_at: NotRequired[str]
    """Start of the first interval."""
    highest_interval_kw: NotRequired[float]
    """Highest mean of an interval at the meter."""
    intervals_kw: NotRequired[list[float]]
    """Mean power of each interval at the meter."""


class EnergyAnswer(TypedDict):
    """Energy of accelerators and of what is around them, and at the meter of the building."""

    lines: list[EnergyLine]
    """Energy by kind of equipment."""
    it_kwh: NotRequired[QuantityAnswer]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityAnswer]
    """The same at the meter of the building."""
    overhead_kwh: NotRequired[QuantityAnswer]
    """What cooling and distribution of the building add to the equipment."""
    peak_kw: NotRequired[QuantityAnswer]
    """Power at the meter of the building in the phase that draws most."""
    load_profile: NotRequired[LoadProfileAnswer]
    """The course of the power in time."""


class CarbonAnswer(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityAnswer]
    """At the mean intensity of the grid."""
    market_based_kg_co2e: NotRequired[QuantityAnswer]
    """At the intensity of the contracted electricity."""
    embodied_kg_co2e: NotRequired[QuantityAnswer]
    """Share of making the equipment."""
