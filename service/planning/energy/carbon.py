"""Carbon of electricity and of machines, in kg CO2-equivalent.

Location-based: the average intensity of the grid at the place, of the year or of each hour. Market-based: the
intensity of the contracted electricity, and of the residual mix for the rest (GHG Protocol Scope 2 Guidance,
2015). The marginal intensity is the effect of one kWh more or less; it is a separate figure and enters
neither. Embodied emissions are spread over the hours in which a machine is used in its life. The software
carbon intensity is (O + M) per R (SCI, ISO/IEC 21031:2024), with O location-based.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.calendar import build_clock, to_utc_minute
from service.planning.units import HOUR_SECONDS, MINUTE_SECONDS

_MINUTES_PER_HOUR = 60
_HOURS_PER_DAY = 24
_YEAR_HOURS = 8760.0
_FEBRUARY_28 = 58
"""Day of the year, from 0, before which 29 February stands."""
HOUSEHOLD_MONTH_KWH = 900.0
"""Monthly energy of a household of the United States, approximately."""


class HoursOfYearIntensity(NamedTuple):
    """Intensity in kg per kWh of the hours of a year from its first on, by the clock of ``zone``.

    The values may end before the year. 29 February repeats the day before.
    """

    zone: ZoneInfo
    values: NDArray[np.float64]


class MonthHoursIntensity(NamedTuple):
    """Intensity in kg per kWh by month and hour of the day, by the clock of ``zone``: 12 by 24."""

    zone: ZoneInfo
    values: NDArray[np.float64]


class IntervalIntensity(NamedTuple):
    """Intensity in kg per kWh of consecutive intervals, the first from ``start``."""

    start: datetime
    interval_minutes: int
    values: NDArray[np.float64]


IntensitySeries = HoursOfYearIntensity | MonthHoursIntensity | IntervalIntensity


def location_based_kg_co2e(facility_kwh: float, intensity_kg_co2e_per_kwh: float) -> float:
    """Returns the emissions of a mean intensity for the energy taken from the grid."""
    return facility_kwh * intensity_kg_co2e_per_kwh


def _local_hours(
    zone: ZoneInfo, minutes: NDArray[np.int64]
) -> tuple[NDArray[np.datetime64], NDArray[np.int64]]:
    """Returns local day and hour of UTC minutes."""
    offsets = build_clock(zone, int(minutes[0]), int(minutes[-1]) + 1).get_offset(minutes)
    local = minutes + offsets
    days = (local // (_MINUTES_PER_HOUR * _HOURS_PER_DAY)).astype("datetime64[D]")
    return days, local // _MINUTES_PER_HOUR % _HOURS_PER_DAY


def sample_intensities(series: IntensitySeries, load: MeteredLoad) -> NDArray[np.float64]:
    """Returns kg per kWh at the start of each interval of a load; NaN where the series has none."""
    minutes = to_utc_minute(load.start) + np.arange(len(load.kw), dtype=np.int64) * load.interval_minutes
    if isinstance(series, IntervalIntensity):
        place = (minutes - to_utc_minute(series.start)) // series.interval_minutes
    else:
        days, hours = _local_hours(series.zone, minutes)
        months = days.astype("datetime64[M]").astype(np.int64) % 12
        if isinstance(series, MonthHoursIntensity):
            return series.values[months, hours]
        years = days.astype("datetime64[Y]")
        day = (days - years.astype("datetime64[D]")).astype(np.int64)
        leap = (years + 1).astype("datetime64[D]") - years.astype("datetime64[D]") == np.timedelta64(366, "D")
        place = (day - (leap & (day > _FEBRUARY_28))) * _HOURS_PER_DAY + hours
    inside = (place >= 0) & (place < len(series.values))
    return np.where(inside, series.values[np.clip(place, 0, len(series.values) - 1)], np.nan)


class HourlyEmissions(NamedTuple):
    """Hourly emissions, and the share of the energy for which the series has an intensity."""

    kg_co2e: float
    covered_share: float


def compute_emissions(series: IntensitySeries, load: MeteredLoad) -> HourlyEmissions:
    """Returns the sum of energy times intensity over the intervals with power."""
    kwh = load.kw * (load.interval_minutes * MINUTE_SECONDS / HOUR_SECONDS)
    rates = sample_intensities(series, load)
    known = ~np.isnan(rates)
    whole = float(kwh.sum())
    share = float(kwh[known].sum()) / whole if whole else 1.0
    return HourlyEmissions(float((kwh[known] * rates[known]).sum()), share)


class ContractedSupply(NamedTuple):
    """A share of the electricity that was contracted at a separate intensity."""

    share: float
    intensity_kg_co2e_per_kwh: float


def market_based_kg_co2e(
    facility_kwh: float, contracts: Sequence[ContractedSupply], residual_kg_co2e_per_kwh: float
) -> float:
    """Returns the emissions of contracts by their shares, and of the residual mix for the rest."""
    bought = sum(contract.share for contract in contracts)
    rate = sum(contract.share * contract.intensity_kg_co2e_per_kwh for contract in contracts)
    return facility_kwh * (rate + max(0.0, 1.0 - bought) * residual_kg_co2e_per_kwh)


def embodied_kg_co2e(
    device_hours: float, kg_co2e_per_device: float, lifetime_years: float, utilization: float
) -> float:
    """Returns the embodied emissions of the machines for the hours of their useful life that a run takes.

    ``kg_co2e_per_device`` includes the share of the server that holds it.
    """
    return device_hours * kg_co2e_per_device / (lifetime_years * _YEAR_HOURS * utilization)


def software_carbon_intensity(operational_kg: float, embodied_kg: float, units: float) -> float:
    """Returns (O + M) / R in kg per functional unit."""
    return (operational_kg + embodied_kg) / units


def household_months(kwh: float) -> float:
    """Returns the months that a household would take the same energy, as the source documents count them."""
    return kwh / HOUSEHOLD_MONTH_KWH
