"""What if a run began at another time, took place elsewhere, or its devices were held below their limit?"""

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
    """Moments at which the run may begin."""

    earliest_start_at: Instant
    """First of them."""
    latest_start_at: Instant
    """Last of them."""
    step_minutes: Annotated[int, Field(ge=5, le=10_080, json_schema_extra=_INT64)] = 60
    """Minutes from one to the next; a multiple of the interval of the load profile."""


class StartShiftEstimateRequest(UtilityBillRequest):
    """When would the run be cheapest, when cleanest?"""

    window: StartWindow
    """Moments at which it may begin."""


class SiteChoice(StrictModel):
    """A building that the run could take place in."""

    name: Text
    """What it is called in the answer."""
    site: RunSiteInput
    """The building."""


class SiteComparisonRequest(UtilityBillRequest):
    """Where would the run be cheapest, cleanest, and take least water?"""

    sites: Annotated[list[SiteChoice], Field(min_length=2, max_length=20)]
    """Buildings; they take the place of `site`."""


class PowerCapEstimateRequest(UtilityBillRequest):
    """What do devices that are held below their power limit cost, in time and in money?"""

    power_caps_watts: Annotated[list[Positive], Field(min_length=1, max_length=20)]
    """Most that each device may draw."""


class StartFigures(TypedDict):
    """The run from one moment on. Figures are those of the middle of power and duration."""

    starts_at: str
    """When it begins."""
    electricity: NotRequired[MoneyAmount]
    """What its electricity costs; absent without a tariff or price."""
    location_based_kg_co2e: NotRequired[float]
    """Emissions, where those of the grid are known in time."""


class WhatIfEstimate(TypedDict):
    """What every such answer carries."""

    evidence: EstimateEvidence
    """What it takes to reproduce the answer."""
    warnings: list[AnswerWarning]
    """What to know of the question."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class StartShiftEstimate(WhatIfEstimate):
    """When would the run be cheapest, when cleanest?"""

    starts_compared: Integer
    """Moments that were compared, all of the window."""
    duration_seconds: QuantityEstimate
    """Time of the run."""
    facility_kwh: QuantityEstimate
    """Energy at the meter of the building, whenever it begins."""
    first: StartFigures
    """The first moment of the window."""
    cheapest: NotRequired[StartFigures]
    """Least cost; of equals the cleanest, then the earliest."""
    cleanest: NotRequired[StartFigures]
    """Least emissions; of equals the cheapest, then the earliest."""
    best: list[StartFigures]
    """Those that no other betters in both, from the cheapest to the cleanest."""
    highest_electricity: NotRequired[MoneyAmount]
    """What the dearest moment costs."""
    highest_location_based_kg_co2e: NotRequired[float]
    """Emissions of the dirtiest moment."""


class SiteComparisonFigures(TypedDict):
    """The run in one building."""

    name: str
    """What the question calls it."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at its meter."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at its meter."""
    electricity: NotRequired[MoneyQuantity]
    """What its electricity costs, in the currency of its price or tariff."""
    converted: NotRequired[MoneyQuantity]
    """The same in the currency of the question."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions."""
    water_liters: NotRequired[QuantityEstimate]
    """Water evaporated on the site and by the grid."""
    warnings: list[AnswerWarning]
    """What to know of the question about this building."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class SiteComparisonEstimate(TypedDict):
    """Where would the run be cheapest, cleanest, and take least water?"""

    sites: list[SiteComparisonFigures]
    """In the order of the question."""
    cheapest: NotRequired[str]
    """Name of the site with the least cost; absent unless all are known in one currency."""
    cleanest: NotRequired[str]
    """Name of the site with the least emissions; absent unless all are known."""
    least_water: NotRequired[str]
    """Name of the site with the least water; absent unless all are known."""
    evidence: EstimateEvidence
    """What it takes to reproduce the answer."""
    gaps: list[EstimateGap]
    """Comparisons that are absent, and why."""


class PowerCapFigures(TypedDict):
    """The run with devices held to a power."""

    power_cap_watts: NotRequired[float]
    """Most that a device may draw; absent for its own limit."""
    clock_share: float
    """Lowest share that is left of the clock which the work has under the device's own limit."""
    slowdown: QuantityEstimate
    """Time of the work over that without a cap."""
    power_per_device_watts: QuantityEstimate
    """Mean draw of a device."""
    duration_seconds: QuantityEstimate
    """Time of the whole run."""
    it_kwh: NotRequired[QuantityEstimate]
    """Energy that all equipment draws."""
    facility_kwh: NotRequired[QuantityEstimate]
    """The same at the meter of the building."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""
    electricity: NotRequired[MoneyQuantity]
    """What the electricity costs."""
    rent: NotRequired[MoneyQuantity]
    """What renting the devices costs for the time."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions."""


class PowerCapEstimate(WhatIfEstimate):
    """What do devices that are held below their power limit cost, in time and in money?"""

    uncapped: PowerCapFigures
    """At the device's own limit."""
    caps: list[PowerCapFigures]
    """In the order of the question."""
    least_energy_watts: NotRequired[float]
    """The cap of the question with the least energy; absent where no cap saves any."""
