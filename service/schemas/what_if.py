"""Requests and answers of what-if questions: another start, another site, or a power cap on the devices."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from service.schemas.base import (
    AnswerWarning,
    EstimateEvidence,
    EstimateGap,
    Instant,
    Integer,
    MoneyAmount,
    MoneyQuantity,
    Positive,
    QuantityEstimate,
    StrictModel,
    Text,
)
from service.schemas.estimates import UtilityBillRequest
from service.schemas.site import RunSiteInput

_INT64 = {"format": "int64"}


class StartWindow(StrictModel):
    """Possible starts of the run."""

    earliest_start_at: Instant
    """First possible start."""
    latest_start_at: Instant
    """Last possible start."""
    step_minutes: Annotated[int, Field(ge=5, le=10_080, json_schema_extra=_INT64)] = 60
    """Minutes from one start to the next: a multiple of the interval of the load profile."""


class StartShiftEstimateRequest(UtilityBillRequest):
    """Request for the cheapest and the cleanest start of a run."""

    window: StartWindow
    """Possible starts of the run."""


class SiteChoice(StrictModel):
    """A building that could house the run."""

    name: Text
    """Name of the building in the answer."""
    site: RunSiteInput
    """The building."""


class SiteComparisonRequest(UtilityBillRequest):
    """Request for the cheapest, the cleanest and the least water-intensive site of a run."""

    sites: Annotated[list[SiteChoice], Field(min_length=2, max_length=20)]
    """Buildings to compare. They replace `site`."""


class PowerCapEstimateRequest(UtilityBillRequest):
    """Request for the effect of power caps on the time and the cost of a run."""

    power_caps_watts: Annotated[list[Positive], Field(min_length=1, max_length=20)]
    """Highest power of each device, one for each cap to compare."""


class StartFigures(TypedDict):
    """The run with one start. Figures are those at the middle of the intervals of power and duration."""

    starts_at: str
    """Start of the run."""
    electricity: NotRequired[MoneyAmount]
    """Cost of the electricity. Absent without a tariff or price."""
    location_based_kg_co2e: NotRequired[float]
    """Emissions. Absent if the emissions of the grid over time are unknown."""


class WhatIfEstimate(TypedDict):
    """Members that every what-if answer carries."""

    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    warnings: list[AnswerWarning]
    """Remarks about the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class StartShiftEstimate(WhatIfEstimate):
    """The cheapest and the cleanest start of a run."""

    starts_compared: Integer
    """Number of starts that were compared: all of the window."""
    duration_seconds: QuantityEstimate
    """Time of the run."""
    facility_kwh: QuantityEstimate
    """Energy at the meter of the building, the same for every start."""
    first: StartFigures
    """First start of the window."""
    cheapest: NotRequired[StartFigures]
    """Start with the least cost; among equals the cleanest, then the earliest."""
    cleanest: NotRequired[StartFigures]
    """Start with the least emissions; among equals the cheapest, then the earliest."""
    best: list[StartFigures]
    """Starts that no other improves in both cost and emissions, from the cheapest to the cleanest."""
    highest_electricity: NotRequired[MoneyAmount]
    """Cost of the most expensive start."""
    highest_location_based_kg_co2e: NotRequired[float]
    """Emissions of the start with the most emissions."""


class SiteComparisonFigures(TypedDict):
    """The run in one building."""

    name: str
    """Name of the building in the request."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""
    electricity: NotRequired[MoneyQuantity]
    """Cost of the electricity, in the currency of its price or tariff."""
    converted: NotRequired[MoneyQuantity]
    """Cost of the electricity in the currency of the request."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Location-based emissions."""
    water_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site and in the power plants of the grid."""
    warnings: list[AnswerWarning]
    """Remarks about the question for this building."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class SiteComparisonEstimate(TypedDict):
    """The cheapest, the cleanest and the least water-intensive site of a run."""

    sites: list[SiteComparisonFigures]
    """Figures by building, in the order of the request."""
    cheapest: NotRequired[str]
    """Name of the site with the least cost. Absent unless all costs are known in one currency."""
    cleanest: NotRequired[str]
    """Name of the site with the least emissions. Absent unless all are known."""
    least_water: NotRequired[str]
    """Name of the site with the least water. Absent unless all are known."""
    evidence: EstimateEvidence
    """Versions and sources that reproduce the answer."""
    gaps: list[EstimateGap]
    """Comparisons that are absent, and why."""


class PowerCapFigures(TypedDict):
    """The run with one power cap."""

    power_cap_watts: NotRequired[float]
    """Highest power of a device. Absent for the device's own limit."""
    clock_share: float
    """Lowest share of the clock that the work has left, relative to its clock under the device's own
    limit."""
    slowdown: QuantityEstimate
    """Time of the work over its time without a cap."""
    power_per_device_watts: QuantityEstimate
    """Mean power of a device."""
    duration_seconds: QuantityEstimate
    """Time of the whole run."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy of all equipment at the meter of the building."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""
    electricity: NotRequired[MoneyQuantity]
    """Cost of the electricity."""
    rent: NotRequired[MoneyQuantity]
    """Cost of renting the devices for the duration."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Location-based emissions."""


class PowerCapEstimate(WhatIfEstimate):
    """Effect of power caps on the time and the cost of a run."""

    uncapped: PowerCapFigures
    """Figures at the device's own limit."""
    caps: list[PowerCapFigures]
    """Figures by cap, in the order of the request."""
    least_energy_watts: NotRequired[float]
    """Cap of the request with the least energy. Absent if no cap saves energy."""
