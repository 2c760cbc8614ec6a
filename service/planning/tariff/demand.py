"""Demand charges: from metered peaks to billed demand, by tier or bracket."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.tariff.amounts import price_quantity, quantize_amount
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import Integers, split_month_key, to_local_time
from service.planning.tariff.charges import (
    BillingDemand,
    DemandCharge,
    DemandPricing,
    DemandRatchet,
    PricePeriod,
)
from service.planning.tariff.demands import DemandPeak, find_highest_peak
from service.planning.tariff.ladders import split_demand
from service.planning.tariff.meter import PeaksByPeriod
from service.planning.tariff.spans import RevisionSpan, count_charged_months


class EarlierPeaks(NamedTuple):
    """Peaks of months before the load."""

    history: Mapping[int, float]
    """kW by month key; a value below 0 never counts. In a month of the load the higher of both counts."""
    wraps_year: bool
    first_month: int
    """Month key of the first month of the load."""


class LoadMetering(NamedTuple):
    """Properties of the load that lines need besides its peaks."""

    power_factor: float
    zone: ZoneInfo


class BilledDemand(NamedTuple):
    """A demand in kW after floors and ratchets, the rule that set it, and its billing factor."""

    kw: float
    at: int | None = None
    note: str | None = None
    factor: float = 1.0
    """Factor for a power factor below its threshold."""


def _list_ratchet_months(ratchet: DemandRatchet, months: Sequence[int]) -> Integers:
    """Returns the month keys whose peaks a ratchet reads, a row for each billing month; -1 for none."""
    billed = np.array(months, np.int64)[:, None]
    if ratchet.preceding_months is None:
        keys = billed // 12 * 12 + np.array(sorted(ratchet.peak_months or ()), np.int64)[None, :] - 1
    else:
        keys = billed - np.arange(ratchet.preceding_months, 0, -1)[None, :]
    if ratchet.within_billing_month:
        # The billing month is not repeated where the months of the year include it.
        own = np.where((keys == billed).any(axis=1, keepdims=True), -1, billed)
        keys = np.concatenate((keys, own), axis=1)
    if ratchet.peak_months is not None:
        keys = np.where(np.isin(keys % 12 + 1, list(ratchet.peak_months)), keys, -1)
    return keys


class RatchetFloors(NamedTuple):
    """Floors of a ratchet for the demand of each billing month, by month key."""

    by_month: Mapping[int, BilledDemand]
    unknown: frozenset[int]
    """Month keys before the load without a given peak; they count 0."""


class RatchetHistory:
    """Peaks of months for the ratchets of charges; each month of ``months`` is evaluated once."""

    def __init__(self, months: Sequence[int], earlier: EarlierPeaks) -> None:
        self._months = sorted(set(months))
        self._earlier = earlier
        self._floors: dict[tuple[object, ...], RatchetFloors] = {}
        self._read: dict[int, PeaksByPeriod] = {}

    def get_floors(self, ratchet: DemandRatchet, peaks: PeaksByPeriod, place: int | None) -> RatchetFloors:
        """Returns the floors of a ratchet; ``place`` is the index of its price period, None for all hours.

        Equal ratchets, of whichever charge, are computed once.
        """
        alike = replace(ratchet, period=None, raises=())
        known = (id(peaks), place, alike)
        self._read[id(peaks)] = peaks  # kept, so that its identity is its own
        if known not in self._floors:
            self._floors[known] = self._compute_floors(ratchet, peaks, place)
        return self._floors[known]

    def _compute_floors(
        self, ratchet: DemandRatchet, peaks: PeaksByPeriod, place: int | None
    ) -> RatchetFloors:
        keys = _list_ratchet_months(ratchet, self._months)
        by_billing = np.array(ratchet.share_by_billing_month)[np.array(self._months) % 12]
        shares = by_billing[:, None] * np.array(ratchet.share_by_peak_month)[keys % 12]
        counted = (keys >= 0) & (shares != 0.0)
        known = {
            key: self._find_month_peak(key, ratchet, peaks, place)
            for key in np.unique(keys[counted]).tolist()
        }
        least = min(known, default=0)
        kw = np.full(max(known, default=0) - least + 2, -np.inf)
        for key, peak in known.items():
            kw[key - least] = -np.inf if peak is None else peak.kw
        raised = np.where(counted, kw[np.where(counted, keys - least, -1)], -np.inf)
        raised = np.where(np.isneginf(raised), -np.inf, raised * np.where(counted, shares, 1.0))
        found = {}
        best = raised.argmax(axis=1) if raised.shape[1] else None
        for row, month in enumerate(self._months):
            column = None if best is None else int(best[row])
            key = None if column is None else int(keys[row, column])
            peak = None if key is None else known.get(key)
            if column is None or key is None or peak is None or raised[row, column] <= 0.0:
                found[month] = BilledDemand(0.0)
                continue
            year, number = split_month_key(key)
            note = f"{shares[row, column]:.4g} of the {peak.kw:.10g} kW of {year}-{number:02d}"
            found[month] = BilledDemand(float(raised[row, column]), peak.at, note)
        unknown = frozenset(
            key for key, peak in known.items() if peak is None and self._is_unknown(key, ratchet)
        )
        return RatchetFloors(found, unknown)

    def _find_month_peak(
        self, key: int, ratchet: DemandRatchet, peaks: PeaksByPeriod, place: int | None
    ) -> DemandPeak | None:
        """Returns the peak of a month, from the load, the history or the end of the same year."""
        given = DemandPeak(self._earlier.history[key]) if key in self._earlier.history else None
        if key >= self._earlier.first_month:
            return find_highest_peak([_get_measured_peak(peaks, key, place), given])
        if given is not None:
            return given
        if self._earlier.wraps_year or ratchet.wraps_year:
            years = -((key - self._earlier.first_month) // 12)
            return _get_measured_peak(peaks, key + 12 * years, place)
        return None

    def _is_unknown(self, key: int, ratchet: DemandRatchet) -> bool:
        wraps = self._earlier.wraps_year or ratchet.wraps_year
        return key < self._earlier.first_month and key not in self._earlier.history and not wraps


def _get_measured_peak(peaks: PeaksByPeriod, key: int, place: int | None) -> DemandPeak | None:
    if place is None:
        return peaks.month.get(key)
    row = peaks.by_month.get(key)
    return None if row is None else row[place]


class ChargeFloors:
    """Ratchets of one charge, and their floors for each of its price periods."""

    def __init__(self, charge: DemandCharge, peaks: PeaksByPeriod, back: RatchetHistory) -> None:
        rule, names = charge.billing_demand, [period.name for period in charge.periods]
        self.unknown: set[int] = set()
        """Month keys before the load without a given peak."""
        places = {name: place for place, name in enumerate(names)}
        found = []
        for ratchet in rule.ratchets:
            floors = back.get_floors(
                ratchet, peaks, None if ratchet.period is None else places[ratchet.period]
            )
            found.append(floors)
            self.unknown |= floors.unknown
        raising = [frozenset(ratchet.raises) for ratchet in rule.ratchets]
        self._of_period = [
            tuple(n for n, raises in enumerate(raising) if not raises or name in raises) for name in names
        ]
        self._floors = found
        self._best: dict[tuple[tuple[int, ...], int], BilledDemand | None] = {}

    def find_best_floor(self, place: int, month: int) -> BilledDemand | None:
        """Returns the highest floor of a price period, the first of equals; None without a ratchet."""
        known = (self._of_period[place], month)
        if known not in self._best:
            floors = [self._floors[number].by_month[month] for number in known[0]]
            self._best[known] = max(floors, key=lambda billed: billed.kw, default=None)
        return self._best[known]


def _compute_billing_demand(
    rule: BillingDemand, own: DemandPeak | None, floor: BilledDemand | None, month: int, power_factor: float
) -> BilledDemand:
    """Returns the demand billed for a price period.

    The highest of its own peak, floors and ratchets, in kW.
    """
    own = own or DemandPeak(0.0)
    counts = split_month_key(month)[1] in rule.own_peak_months
    found = [BilledDemand(own.kw, own.at)] if counts else [BilledDemand(0.0)]
    found += [
        BilledDemand(rule.minimum_kw, None, "minimum demand"),
        BilledDemand(rule.contract_kw, None, "contract"),
    ]
    apparent_kw = rule.apparent_power_share * own.kw / power_factor
    found.append(BilledDemand(apparent_kw, own.at, "share of the apparent power"))
    found += [] if floor is None else [floor]
    best = max(found, key=lambda billed: billed.kw)
    threshold = rule.power_factor_threshold
    if threshold is not None and power_factor < threshold:
        factor = 1.0 + threshold - power_factor
        note = "; ".join(filter(None, [best.note, f"times {factor:.4g} for the power factor"]))
        return BilledDemand(best.kw, best.at, note, factor)
    return best


def list_season_months(period: PricePeriod) -> frozenset[int]:
    """Returns the calendar months in which a price period occurs."""
    return frozenset().union(*(window.months for window in period.windows))


class PeriodDemand(NamedTuple):
    """Demand billed for each price period of a charge in one billing period; None: does not occur."""

    billed: Sequence[BilledDemand | None]
    seasons: Sequence[frozenset[int]]
    """Calendar months in which each price period occurs."""

    @property
    def kw(self) -> float:
        """Highest billed demand."""
        return max((one.kw * one.factor for one in self.billed if one is not None), default=0.0)

    @property
    def raised_kw(self) -> float:
        """Highest demand after floors and ratchets, without the power factor, which scales hours of use."""
        return max((one.kw for one in self.billed if one is not None), default=0.0)


def compute_period_demands(
    charge: DemandCharge,
    own: Sequence[Sequence[DemandPeak | None]],
    months: Sequence[int],
    floors: ChargeFloors,
    power_factor: float,
) -> list[PeriodDemand]:
    """Returns the demand of each price period that occurs in each billing period, given their ``months``."""
    of_periods = [list_season_months(period) for period in charge.periods]
    found = []
    for row, month in zip(own, months, strict=True):
        number = split_month_key(month)[1]
        billed = [
            _compute_billing_demand(
                charge.billing_demand, peak, floors.find_best_floor(place, month), month, power_factor
            )
            if peak is not None or number in occurs
            else None
            for place, (peak, occurs) in enumerate(zip(row, of_periods, strict=True))
        ]
        found.append(PeriodDemand(billed, of_periods))
    return found


def build_demand_lines(
    charge: DemandCharge, demand: PeriodDemand, part: RevisionSpan, metering: LoadMetering
) -> list[BillLine]:
    """Builds the lines of a part; the amount missing to the minimum of the charge is a separate line."""
    found = []
    for period, billed, occurs in zip(charge.periods, demand.billed, demand.seasons, strict=True):
        if billed is not None:
            months = count_charged_months(part, charge.proration, charge.months & occurs)
            found += _build_period_lines(charge, period, billed, months, metering)
    due = Decimal(count_charged_months(part, charge.proration, charge.months))
    if charge.minimum is not None:
        missing = quantize_amount(charge.minimum * due) - sum((line.amount for line in found), Decimal(0))
        if missing > 0:
            found.append(BillLine(charge.name, "demand", 1.0, "minimum", missing, missing))
    return found


def _build_period_lines(
    charge: DemandCharge, period: PricePeriod, billed: BilledDemand, months: float, metering: LoadMetering
) -> list[BillLine]:
    quantity = billed.kw * billed.factor / (metering.power_factor if charge.apparent else 1.0)
    unit = "kVA" if charge.apparent else "kW"
    if charge.pricing is DemandPricing.BRACKET_AMOUNT:
        unit = "step"
    at = None if billed.at is None else to_local_time(billed.at, metering.zone)
    due = None if months == 1.0 else f"times {months:.6g} months"
    note = "; ".join(filter(None, [billed.note, due])) or None
    found = []
    for place, tier, within in split_demand(period.tiers, quantity, charge.pricing):
        counted = within * months
        if counted > 0.0:
            amount = price_quantity(counted, tier.price)
            line = BillLine(
                charge.name, "demand", counted, unit, tier.price, amount, period.name, place, at, note
            )
            found.append(line)
    return found
