"""Demand charges: from metered peaks to what is billed, by tier or bracket."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

from service.planning.tariff.amounts import exact, priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import local, month_key, month_of
from service.planning.tariff.charges import (
    DemandCharge,
    DemandPricing,
    PricePeriod,
    Ratchet,
)
from service.planning.tariff.demands import Peak, highest
from service.planning.tariff.ladders import demand_parts
from service.planning.tariff.meter import PeaksByPeriod
from service.planning.tariff.spans import Part, months_charged


class Earlier(NamedTuple):
    """Peaks that the load does not tell."""

    history: Mapping[int, float]
    """kW by month key; one below 0 never counts. In a month of the load the higher of both does."""
    wraps_year: bool
    first_month: int
    """Month key of the first month of the load."""


class Metering(NamedTuple):
    """What lines need to know of the load besides its peaks."""

    power_factor: float
    zone: ZoneInfo


class Billed(NamedTuple):
    """A demand in kW after floors and ratchets, what made it so, and the factor that it is billed with."""

    kw: float
    at: int | None = None
    note: str | None = None
    factor: float = 1.0
    """Of the power factor."""


def looked_back_on(ratchet: Ratchet, month: int) -> list[int]:
    """Month keys whose peaks a ratchet looks at for the billing month with key ``month``."""
    if ratchet.preceding_months is None:
        year, _ = month_of(month)
        keys = [month_key(year, each) for each in sorted(ratchet.peak_months or ())]
    else:
        preceding = range(month - ratchet.preceding_months, month)
        keys = [
            key for key in preceding if ratchet.peak_months is None or month_of(key)[1] in ratchet.peak_months
        ]
    counts = ratchet.peak_months is None or month_of(month)[1] in ratchet.peak_months
    if ratchet.within_billing_month and counts and month not in keys:
        keys.append(month)
    return keys


class LookBack:
    """Peaks of months for the ratchets of one charge."""

    def __init__(
        self, charge: DemandCharge, peaks: PeaksByPeriod, earlier: Earlier, power_factor: float
    ) -> None:
        self.rule, self.power_factor = charge.billing_demand, power_factor
        self._places = {period.name: place for place, period in enumerate(charge.periods)}
        self._peaks = peaks
        self._earlier = earlier
        self.unknown: set[int] = set()
        """Month keys before the load whose peaks nobody gave: they count 0."""

    def _measured(self, key: int, period: str | None) -> Peak | None:
        if period is None:
            return self._peaks.month.get(key)
        row = self._peaks.by_month.get(key)
        return row[self._places[period]] if row is not None and period in self._places else None

    def peak(self, key: int, ratchet: Ratchet) -> Peak | None:
        """Peak of a month, from the load, the history or the end of the same year."""
        given = Peak(self._earlier.history[key]) if key in self._earlier.history else None
        if key >= self._earlier.first_month:
            return highest([self._measured(key, ratchet.period), given])
        if given is not None:
            return given
        if self._earlier.wraps_year or ratchet.wraps_year:
            years = -((key - self._earlier.first_month) // 12)
            return self._measured(key + 12 * years, ratchet.period)
        self.unknown.add(key)
        return None

    def floor(self, ratchet: Ratchet, month: int) -> Billed:
        """The least that a ratchet lets the billing demand of ``month`` be."""
        billing_share = ratchet.share_by_billing_month[month_of(month)[1] - 1]
        found = Billed(0.0)
        for key in looked_back_on(ratchet, month):
            share = billing_share * ratchet.share_by_peak_month[month_of(key)[1] - 1]
            peak = self.peak(key, ratchet) if share else None
            if peak is not None and peak.kw * share > found.kw:
                year, number = month_of(key)
                note = f"{share:.4g} of the {peak.kw:.10g} kW of {year}-{number:02d}"
                found = Billed(peak.kw * share, peak.at, note)
        return found


def billing_demand(back: LookBack, own: Peak | None, period: str, month: int) -> Billed:
    """The demand billed for a price period: the highest of its own peak, floors and ratchets, in kW."""
    rule, own = back.rule, own or Peak(0.0)
    counts = month_of(month)[1] in rule.own_peak_months
    found = [Billed(own.kw, own.at)] if counts else [Billed(0.0)]
    found += [Billed(rule.minimum_kw, None, "minimum demand"), Billed(rule.contract_kw, None, "contract")]
    apparent_kw = rule.apparent_power_share * own.kw / back.power_factor
    found.append(Billed(apparent_kw, own.at, "share of the apparent power"))
    ratchets = [ratchet for ratchet in rule.ratchets if not ratchet.raises or period in ratchet.raises]
    found += [back.floor(ratchet, month) for ratchet in ratchets]
    best = max(found, key=lambda billed: billed.kw)
    threshold = rule.power_factor_threshold
    if threshold is not None and back.power_factor < threshold:
        factor = 1.0 + threshold - back.power_factor
        note = "; ".join(filter(None, [best.note, f"times {factor:.4g} for the power factor"]))
        return Billed(best.kw, best.at, note, factor)
    return best


def seasons(period: PricePeriod) -> frozenset[int]:
    """Calendar months in which a price period occurs."""
    return frozenset().union(*(window.months for window in period.windows))


class DemandOfPeriod(NamedTuple):
    """The demand billed for each price period of a charge in one billing period; None: does not occur."""

    billed: Sequence[Billed | None]

    @property
    def kw(self) -> float:
        """The highest, as billed."""
        return max((one.kw * one.factor for one in self.billed if one is not None), default=0.0)

    @property
    def raised_kw(self) -> float:
        """The highest after floors and ratchets, whatever the power factor: what scales hours of use."""
        return max((one.kw for one in self.billed if one is not None), default=0.0)


def demand_of_period(
    charge: DemandCharge, own: Sequence[Peak | None], month: int, back: LookBack
) -> DemandOfPeriod:
    """What is billed for each price period that occurs in the billing period of ``month``."""
    number = month_of(month)[1]
    return DemandOfPeriod(
        [
            billing_demand(back, peak, period.name, month)
            if peak is not None or number in seasons(period)
            else None
            for period, peak in zip(charge.periods, own, strict=True)
        ]
    )


def demand_lines(
    charge: DemandCharge, demand: DemandOfPeriod, part: Part, metering: Metering
) -> list[BillLine]:
    """Lines of a part; what lifts them to the minimum of the charge is a line of its own."""
    found = []
    for period, billed in zip(charge.periods, demand.billed, strict=True):
        if billed is not None:
            months = months_charged(part, charge.proration, charge.months & seasons(period))
            found += _period_lines(charge, period, billed, months, metering)
    due = Decimal(months_charged(part, charge.proration, charge.months))
    if charge.minimum is not None:
        missing = exact(charge.minimum * due) - sum((line.amount for line in found), Decimal(0))
        if missing > 0:
            found.append(BillLine(charge.name, "demand", 1.0, "minimum", missing, missing))
    return found


def _period_lines(
    charge: DemandCharge, period: PricePeriod, billed: Billed, months: float, metering: Metering
) -> list[BillLine]:
    quantity = billed.kw * billed.factor / (metering.power_factor if charge.apparent else 1.0)
    unit = "kVA" if charge.apparent else "kW"
    if charge.pricing is DemandPricing.BRACKET_AMOUNT:
        unit = "step"
    at = None if billed.at is None else local(billed.at, metering.zone)
    due = None if months == 1.0 else f"times {months:.6g} months"
    note = "; ".join(filter(None, [billed.note, due])) or None
    found = []
    for place, tier, within in demand_parts(period.tiers, quantity, charge.pricing):
        counted = within * months
        if counted > 0.0:
            amount = priced(counted, tier.price)
            line = BillLine(
                charge.name, "demand", counted, unit, tier.price, amount, period.name, place, at, note
            )
            found.append(line)
    return found
