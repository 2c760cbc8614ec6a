"""Shapes of energy and emissions."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.questions.base import QuantityAnswer


class EnergyLine(TypedDict):
    """The energy of one kind of equipment."""

    name: Literal["accelerators", "hosts"]
    """Kind of equipment."""
    it_kwh: QuantityAnswer
    """Energy that the equipment draws."""
    facility_kwh: NotRequired[QuantityAnswer]
    """The same at the meter of the building."""


class EnergyAnswer(TypedDict):
    """Energy of accelerators and hosts, and at the meter of the building."""

    lines: list[EnergyLine]
    """Energy by kind of equipment."""
    it_kwh: NotRequired[QuantityAnswer]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityAnswer]
    """The same at the meter of the building."""
    peak_kw: NotRequired[QuantityAnswer]
    """Power at the meter of the building."""


class CarbonAnswer(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityAnswer]
    """At the mean intensity of the grid."""
    market_based_kg_co2e: NotRequired[QuantityAnswer]
    """At the intensity of the contracted electricity."""
    embodied_kg_co2e: NotRequired[QuantityAnswer]
    """Share of making the equipment."""
