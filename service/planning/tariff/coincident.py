"""Demand in the peak intervals of the grid."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import fmean
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.tariff.amounts import priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import local, utc_minute
from service.planning.tariff.cells import Cells
from service.planning.tariff.charges import CoincidentPeakCharge, PeakSet, PeakStatistic
from service.planning.tariff.demands import Floats, Peak


def peak_demands(
    sets: Sequence[PeakSet], cells: Cells, kwh: Floats, zone: ZoneInfo, years: Sequence[int]
) -> Mapping[int, Sequence[Sequence[Peak]]]:
    """Mean kW in the peak intervals of each set, by local year of the load; 0 outside the load.

    Hour n of a year begins n - 1 hours after its local 1 January 00:00.
    """
    edges = np.append(cells.starts, cells.starts[-1] + cells.minutes[-1])
    total = np.concatenate(([0.0], np.cumsum(kwh)))
    found = {}
    for year in years:
        rows = []
        for one in sets:
            begins, length = _intervals(one, year, zone, cells.interval_minutes)
            ends = np.array(begins, np.int64) + length
            energy = np.interp(ends, edges, total) - np.interp(begins, edges, total)
            kw = (energy * 60.0 / length).tolist()
            rows.append([Peak(*pair) for pair in zip(kw, begins, strict=True)])
        found[year] = rows
    return found


def _intervals(peaks: PeakSet, year: int, zone: ZoneInfo, load_minutes: int) -> tuple[list[int], int]:
    """UTC minutes at which the peak intervals of a local year begin, and their length."""
    if peaks.hours_of_year:
        first = utc_minute(datetime(year, 1, 1, tzinfo=zone))
        return [first + 60 * (hour - 1) for hour in peaks.hours_of_year], 60
    starts = [start for start in peaks.starts if start.astimezone(zone).year == year]
    return [utc_minute(start) for start in starts], peaks.interval_minutes or load_minutes


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
