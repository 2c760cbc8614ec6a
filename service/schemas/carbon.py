"""Carbon intensities in time, electricity that was bought, and what making machines emits."""

from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import numpy as np
from pydantic import MISSING, Discriminator, Field
from typing_extensions import TypeAliasType

from service.planning.energy.carbon import (
    HoursOfYearIntensity,
    IntensitySeries,
    IntervalIntensity,
    MonthHoursIntensity,
)
from service.planning.tariff.calendar import resolve_zone
from service.schemas.base import CatalogName, Factor, Instant, NotNegative, Share, StrictModel, Text
from service.schemas.energy import IntervalMinutes

MOST_HOURS = 8784
MOST_INTERVALS = 35_136
_MONTH_HOURS = 288
_MOST_CONTRACTS = 20
Intensity = Annotated[float, Field(ge=-100, le=100)]
"""kg for each kWh; a marginal one may be below zero."""
ZoneName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9._+/-]{0,63}$", max_length=64)]
"""Name of the IANA time zone database, such as America/Chicago."""

EmissionAccounting = TypeAliasType(
    "EmissionAccounting", Literal["generation", "life_cycle", "provider", "unstated"]
)
EmissionRate = TypeAliasType("EmissionRate", Literal["average", "marginal"])


class HoursOfYearIntensityInput(StrictModel):
    """The hours of any year, from its first on. 29 February repeats the day before."""

    kind: Literal["hours_of_year"]
    """Discriminator."""
    time_zone: ZoneName
    """Clock by which the hours count."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=1, max_length=MOST_HOURS)]
    """Intensity of each hour."""


class MonthHoursIntensityInput(StrictModel):
    """Hours of the day, in each month of any year."""

    kind: Literal["month_hours"]
    """Discriminator."""
    time_zone: ZoneName
    """Clock by which the hours count."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=_MONTH_HOURS, max_length=_MONTH_HOURS)]
    """Intensity of the 24 hours of January, then of February, and so on."""


class IntervalIntensityInput(StrictModel):
    """Consecutive intervals of one time."""

    kind: Literal["intervals"]
    """Discriminator."""
    starts_at: Instant
    """Start of the first."""
    interval_minutes: IntervalMinutes = 60
    """Length of each."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=1, max_length=MOST_INTERVALS)]
    """Intensity of each."""


CarbonIntensitySeriesInput = TypeAliasType(
    "CarbonIntensitySeriesInput",
    Annotated[
        HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput, Discriminator("kind")
    ],
)


def to_planning(
    given: HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput, pointer: str
) -> IntensitySeries:
    """The series as planning reads it; an unknown zone is refused at ``pointer``."""
    values = np.array(given.kg_co2e_per_kwh)
    if isinstance(given, IntervalIntensityInput):
        return IntervalIntensity(given.starts_at, given.interval_minutes, values)
    zone: ZoneInfo = resolve_zone(given.time_zone, f"{pointer}/time_zone")
    if isinstance(given, MonthHoursIntensityInput):
        return MonthHoursIntensity(zone, values.reshape(12, 24))
    return HoursOfYearIntensity(zone, values)


class ElectricityContract(StrictModel):
    """Electricity that was bought at an intensity of its own."""

    kind: Literal["power_purchase_agreement", "certificate", "supplier", "green_tariff"]
    """Instrument by which it was bought."""
    share: Share
    """Of the run's energy."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Emissions of each kWh."""
    accounting: EmissionAccounting = "generation"
    """What is counted."""
    source: Text
    """Document that says so."""


class ResidualMix(StrictModel):
    """What is left of a grid's electricity when all contracts are taken out."""

    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Emissions of each kWh."""
    accounting: EmissionAccounting = "generation"
    """What is counted."""
    source: Text
    """Document that says so."""


class EmbodiedEmissionsInput(StrictModel):
    """What making the machines emitted, and how long they are used. Figures given here go first."""

    kg_co2e_per_device: NotNegative | MISSING = MISSING
    """Of one accelerator; that of the catalog when left out."""
    kg_co2e_per_server: NotNegative | MISSING = MISSING
    """Of a server without its accelerators."""
    lifetime_years: Annotated[float, Field(ge=0.1, le=100)] | MISSING = MISSING
    """From first to last use."""
    utilization: Annotated[float, Field(ge=0.01, le=1)] | MISSING = MISSING
    """Share of its life in which a machine is used."""


class SiteCarbonInput(StrictModel):
    """Emissions of a site's electricity in time and by contract."""

    carbon_intensity_series: CarbonIntensitySeriesInput | MISSING = MISSING
    """Average intensity in time, in place of that of the grid; needs `starts_at`."""
    carbon_intensity_factor: Factor | MISSING = MISSING
    """What the average intensity, given or of the grid, is multiplied by: a grid that changes."""
    marginal_grid_id: CatalogName | MISSING = MISSING
    """Grid of the catalog with marginal intensities: what the run changes, beside what it is charged with."""
    contracts: Annotated[list[ElectricityContract], Field(max_length=_MOST_CONTRACTS)] = []
    """Electricity that was bought at intensities of its own; together at most all of it."""
    residual_mix: ResidualMix | MISSING = MISSING
    """For what the contracts leave."""
