"""Charges on the demand in the peak intervals of the grid."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.tariff.amounts import price_quantity
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import Integers, to_local_time, to_utc_minute
from service.planning.tariff.cells import CalendarCells
from service.planning.tariff.charges import CoincidentPeakCharge, CoincidentPeakSet, PeakStatistic
from service.planning.tariff.demands import DemandPeak, Floats


class EnergyUntil(NamedTuple):
    """Energy in kWh that a load has used until each of several moments, in UTC minutes."""

    minutes: Integers
    kwh: Floats

    def interpolate_energy(self, minutes: Sequence[int] | Integers) -> Floats:
        """Returns the energy until any minutes: 0 before the load, all of it after."""
        found: Floats = np.interp(minutes, self.minutes, self.kwh)
        return found


def accumulate_energy(cells: CalendarCells, kwh: Floats) -> EnergyUntil:
    """Returns the energy of a load up to the edges of its cells."""
    edges = np.append(cells.starts, cells.starts[-1] + cells.minutes[-1])
    return EnergyUntil(edges, np.concatenate(([0.0], np.cumsum(kwh))))


def compute_peak_demands(
    sets: Sequence[CoincidentPeakSet],
    used: EnergyUntil,
    cells: CalendarCells,
    zone: ZoneInfo,
    years: Sequence[int],
) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
    """Returns the mean kW in the peak intervals of each set, by local year of the load; 0 outside the load.

    Hour n of a year begins n - 1 hours after its local 1 January 00:00.
    """
    found: dict[int, list[list[DemandPeak]]] = {year: [] for year in years}
    for one in sets:
        length = 60 if one.hours_of_year else one.interval_minutes or cells.interval_minutes
        for year, begins in _list_peak_intervals(one, years, zone).items():
            ends = np.array(begins, np.int64) + length
            kw = ((used.interpolate_energy(ends) - used.interpolate_energy(begins)) * 60.0 / length).tolist()
            found[year].append([DemandPeak(*pair) for pair in zip(kw, begins, strict=True)])
    return found


def _list_peak_intervals(
    peaks: CoincidentPeakSet, years: Sequence[int], zone: ZoneInfo
) -> dict[int, list[int]]:
    """Returns the UTC minutes at which the peak intervals of each local year begin."""
    if peaks.hours_of_year:
        firsts = {year: to_utc_minute(datetime(year, 1, 1, tzinfo=zone)) for year in years}
        return {
            year: [first + 60 * (hour - 1) for hour in peaks.hours_of_year] for year, first in firsts.items()
        }
    found: dict[int, list[int]] = {year: [] for year in years}
    for start in peaks.starts:
        year = start.astimezone(zone).year
        if year in found:
            found[year].append(to_utc_minute(start))
    return found


def compute_statistic(charge: CoincidentPeakCharge, demands: Sequence[DemandPeak]) -> DemandPeak | None:
    """Returns the billed demand of a set: the highest, or the mean; None where there is none."""
    if not demands:
        return None
    best = max(demands, key=lambda peak: peak.kw)
    if charge.statistic is PeakStatistic.MAX:
        return best
    return DemandPeak(fmean(peak.kw for peak in demands), best.at)


def build_coincident_lines(
    charge: CoincidentPeakCharge, demands: Sequence[Sequence[DemandPeak]], share: float, zone: ZoneInfo
) -> list[BillLine]:
    """Builds lines of price x demand x ``share`` for each set that has a price, once a year."""
    found = []
    for place, (one, row) in enumerate(zip(charge.sets, demands, strict=True), 1):
        billed = compute_statistic(charge, row)
        if one.price is None or billed is None:
            continue
        at = None if billed.at is None else to_local_time(billed.at, zone)
        kw = billed.kw * share
        note = f"{charge.statistic.value} of {len(row)} peak intervals"
        amount = price_quantity(kw, one.price)
        line = BillLine(charge.name, "coincident_peak", kw, "kW", one.price, amount, f"set {place}")
        found.append(line._replace(peak_at=at, note=note))
    return found
