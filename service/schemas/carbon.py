"""Carbon intensities over time, electricity contracts, and emissions of making machines."""

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
"""kg CO2e per kWh. A marginal intensity may be below zero."""
ZoneName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9._+/-]{0,63}$", max_length=64)]
"""Name of the IANA time zone database, such as America/Chicago."""

EmissionAccounting = TypeAliasType(
    "EmissionAccounting", Literal["generation", "life_cycle", "provider", "unstated"]
)
EmissionRate = TypeAliasType("EmissionRate", Literal["average", "marginal"])


class HoursOfYearIntensityInput(StrictModel):
    """Intensity of the hours of any year, from its first hour. 29 February repeats the day before."""

    kind: Literal["hours_of_year"]
    """Selects this shape."""
    time_zone: ZoneName
    """Time zone of the hours."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=1, max_length=MOST_HOURS)]
    """Intensity of each hour."""


class MonthHoursIntensityInput(StrictModel):
    """Intensity of the hours of the day, for each month of any year."""

    kind: Literal["month_hours"]
    """Selects this shape."""
    time_zone: ZoneName
    """Time zone of the hours."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=_MONTH_HOURS, max_length=_MONTH_HOURS)]
    """Intensity of the 24 hours of January, then of February, and so on."""


class IntervalIntensityInput(StrictModel):
    """Intensity of consecutive intervals from a fixed time."""

    kind: Literal["intervals"]
    """Selects this shape."""
    starts_at: Instant
    """Start of the first interval."""
    interval_minutes: IntervalMinutes = 60
    """Length of each interval, in minutes."""
    kg_co2e_per_kwh: Annotated[list[Intensity], Field(min_length=1, max_length=MOST_INTERVALS)]
    """Intensity of each interval."""


CarbonIntensitySeriesInput = TypeAliasType(
    "CarbonIntensitySeriesInput",
    Annotated[
        HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput, Discriminator("kind")
    ],
)


def to_planning(
    given: HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput, pointer: str
) -> IntensitySeries:
    """Returns the series as planning reads it; raises a problem at ``pointer`` for an unknown time zone."""
    values = np.array(given.kg_co2e_per_kwh)
    if isinstance(given, IntervalIntensityInput):
        return IntervalIntensity(given.starts_at, given.interval_minutes, values)
    zone: ZoneInfo = resolve_zone(given.time_zone, f"{pointer}/time_zone")
    if isinstance(given, MonthHoursIntensityInput):
        return MonthHoursIntensity(zone, values.reshape(12, 24))
    return HoursOfYearIntensity(zone, values)


class ElectricityContract(StrictModel):
    """Electricity that is bought at an intensity of its own."""

    kind: Literal["power_purchase_agreement", "certificate", "supplier", "green_tariff"]
    """Instrument by which the electricity is bought."""
    share: Share
    """Share of the run's energy."""
    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Emissions of each kWh."""
    accounting: EmissionAccounting = "generation"
    """Emissions that are counted."""
    source: Text
    """Document that states the figure."""


class ResidualMix(StrictModel):
    """Electricity of a grid that is left when all contracts are taken out."""

    carbon_intensity_kg_co2e_per_kwh: NotNegative
    """Emissions of each kWh."""
    accounting: EmissionAccounting = "generation"
    """Emissions that are counted."""
    source: Text
    """Document that states the figure."""


class EmbodiedEmissionsInput(StrictModel):
    """Emissions of making the machines, and their lifetime. Figures given here replace the catalog's."""

    kg_co2e_per_device: NotNegative | MISSING = MISSING
    """Emissions of making one accelerator. Defaults to the value of the catalog."""
    kg_co2e_per_server: NotNegative | MISSING = MISSING
    """Emissions of making a server without its accelerators."""
    lifetime_years: Annotated[float, Field(ge=0.1, le=100)] | MISSING = MISSING
    """Years from first to last use."""
    utilization: Annotated[float, Field(ge=0.01, le=1)] | MISSING = MISSING
    """Share of its lifetime in which a machine is used."""


class SiteCarbonInput(StrictModel):
    """Emissions of a site's electricity over time and by contract."""

    carbon_intensity_series: CarbonIntensitySeriesInput | MISSING = MISSING
    """Average intensity over time, in place of the intensity of the grid. Needs `starts_at`."""
    carbon_intensity_factor: Factor | MISSING = MISSING
    """Factor of the average intensity, given or of the grid, to model a grid that changes."""
    marginal_grid_id: CatalogName | MISSING = MISSING
    """Grid of the catalog with marginal intensities. Adds the emissions that the run changes to those it is
    charged with."""
    contracts: Annotated[list[ElectricityContract], Field(max_length=_MOST_CONTRACTS)] = []
    """Electricity that is bought at intensities of its own. The shares sum to at most 1."""
    residual_mix: ResidualMix | MISSING = MISSING
    """Intensity of the electricity that the contracts leave."""
