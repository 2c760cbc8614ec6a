"""Demand in the peak intervals of the grid."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.tariff.amounts import priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import Integers, local, utc_minute
from service.planning.tariff.cells import Cells
from service.planning.tariff.charges import CoincidentPeakCharge, PeakSet, PeakStatistic
from service.planning.tariff.demands import Floats, Peak


class EnergyUntil(NamedTuple):
    """Energy in kWh that a load has used until each of some moments, UTC minutes."""

    minutes: Integers
    kwh: Floats

    def at(self, minutes: Sequence[int] | Integers) -> Floats:
        """The same at any minutes: nothing before the load, all of it after."""
        found: Floats = np.interp(minutes, self.minutes, self.kwh)
        return found


def energy_until(cells: Cells, kwh: Floats) -> EnergyUntil:
    """Energy of a load up to the edges of its cells."""
    edges = np.append(cells.starts, cells.starts[-1] + cells.minutes[-1])
    return EnergyUntil(edges, np.concatenate(([0.0], np.cumsum(kwh))))


def peak_demands(
    sets: Sequence[PeakSet], used: EnergyUntil, cells: Cells, zone: ZoneInfo, years: Sequence[int]
) -> Mapping[int, Sequence[Sequence[Peak]]]:
    """Mean kW in the peak intervals of each set, by local year of the load; 0 outside the load.

    Hour n of a year begins n - 1 hours after its local 1 January 00:00.
    """
    found: dict[int, list[list[Peak]]] = {year: [] for year in years}
    for one in sets:
        length = 60 if one.hours_of_year else one.interval_minutes or cells.interval_minutes
        for year, begins in _intervals(one, years, zone).items():
            ends = np.array(begins, np.int64) + length
            kw = ((used.at(ends) - used.at(begins)) * 60.0 / length).tolist()
            found[year].append([Peak(*pair) for pair in zip(kw, begins, strict=True)])
    return found


def _intervals(peaks: PeakSet, years: Sequence[int], zone: ZoneInfo) -> dict[int, list[int]]:
    """UTC minutes at which the peak intervals of each local year begin."""
    if peaks.hours_of_year:
        firsts = {year: utc_minute(datetime(year, 1, 1, tzinfo=zone)) for year in years}
        return {
            year: [first + 60 * (hour - 1) for hour in peaks.hours_of_year] for year, first in firsts.items()
        }
    found: dict[int, list[int]] = {year: [] for year in years}
    for start in peaks.starts:
        year = start.astimezone(zone).year
        if year in found:
            found[year].append(utc_minute(start))
    return found


def statistic(charge: CoincidentPeakCharge, demands: Sequence[Peak]) -> Peak | None:
    """What of the demands of a set is billed: their highest, or their mean; None where there is none."""
    if not demands:
        return None
    best = max(demands, key=lambda peak: peak.kw)
    if charge.statistic is PeakStatistic.MAX:
        return best
    return Peak(fmean(peak.kw for peak in demands), best.at)


def coincident_lines(
    charge: CoincidentPeakCharge, demands: Sequence[Sequence[Peak]], share: float, zone: ZoneInfo
) -> list[BillLine]:
    """Price x demand x ``share`` of each set that has a price, once a year."""
    found = []
    for place, (one, row) in enumerate(zip(charge.sets, demands, strict=True), 1):
        billed = statistic(charge, row)
        if one.price is None or billed is None:
            continue
        at = None if billed.at is None else local(billed.at, zone)
        kw = billed.kw * share
        note = f"{charge.statistic.value} of {len(row)} peak intervals"
        amount = priced(kw, one.price)
        line = BillLine(charge.name, "coincident_peak", kw, "kW", one.price, amount, f"set {place}")
        found.append(line._replace(peak_at=at, note=note))
    return found
