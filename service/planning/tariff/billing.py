"""The bill of a load under a tariff, period by period and charge by charge."""

from collections.abc import Mapping, Sequence

from service.planning.errors import PlanningError
from service.planning.tariff.bill import Bill, BillingPeriod, BillLine, Finding, Load, PeriodBill
from service.planning.tariff.calendar import month_key, month_of
from service.planning.tariff.charges import (
    Accumulation,
    Charge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PercentageCharge,
    Span,
    Tariff,
)
from service.planning.tariff.demand import (
    DemandOfPeriod,
    Earlier,
    LookBack,
    Metering,
    demand_lines,
    demand_of_period,
    is_charged,
)
from service.planning.tariff.energy import energy_lines, tiered_lines
from service.planning.tariff.fixed import fixed_line, minimum_line, percentage_line
from service.planning.tariff.meter import SeriesMeter
from service.planning.tariff.spans import Part


def bill(
    tariff: Tariff,
    load: Load,
    *,
    periods: Sequence[BillingPeriod] | None = None,
    history: Mapping[tuple[int, int], float] | None = None,
    wraps_year: bool = False,
) -> Bill:
    """What ``tariff`` charges for ``load`` in ``periods``; None: the local calendar months it touches.

    ``history`` has monthly peaks in kW before the load, by (year, month), for ratchets. Without it, months
    before the load count 0 and a finding names them, or are taken from the end of the same year under
    ``wraps_year`` (URDB's lookback range, REopt). Intervals outside ``periods`` are not billed and count for
    ratchets. Periods may lie after the load. Amounts are not rounded.
    """
    meter = SeriesMeter(tariff, load, periods)
    known = {month_key(*month): kw for month, kw in (history or {}).items()}
    first = min(month for month in meter.compiled.group_months[len(meter.periods) :])
    return _Statement(tariff, meter, Earlier(known, wraps_year, first)).bill()


class _Statement:
    """The bill of one load, charge by charge."""

    def __init__(self, tariff: Tariff, meter: SeriesMeter, earlier: Earlier) -> None:
        self.tariff, self.meter, self.earlier = tariff, meter, earlier
        self.findings: list[Finding] = list(meter.findings)
        self._demands: dict[int, Sequence[DemandOfPeriod]] = {}

    def bill(self) -> Bill:
        parts: list[list[tuple[int, Part]]] = [[] for _ in self.meter.periods]
        for place, part in enumerate(self.meter.parts):
            parts[part.period].append((place, part))
        return Bill(
            self.tariff.currency_code,
            tuple(self._period(place, inside) for place, inside in enumerate(parts)),
            tuple(dict.fromkeys(self.findings)),
        )

    def _period(self, place: int, parts: Sequence[tuple[int, Part]]) -> PeriodBill:
        lines: list[BillLine] = []
        demands: dict[str, float] = {}
        for number, part in parts:
            found: list[BillLine] = []
            for charge in self.tariff.revisions[part.revision].charges:
                found += self._lines(charge, number, part, found)
                if isinstance(charge, DemandCharge):
                    demands[charge.name] = self._demand(charge)[place].kw
            lines += found
        peak = self.meter.period_peaks[place]
        kwh = self.meter.period_kwh[place]
        period = self.meter.periods[place]
        return PeriodBill(period, tuple(lines), kwh, 0.0 if peak is None else peak.kw, demands)

    def _lines(self, charge: Charge, number: int, part: Part, before: Sequence[BillLine]) -> list[BillLine]:
        month = self.meter.months[part.period]
        if isinstance(charge, EnergyCharge):
            return self._energy(charge, number, part)
        if isinstance(charge, DemandCharge):
            return self._demand_lines(charge, part, month)
        if month_of(month)[1] not in charge.months:
            return []
        if isinstance(charge, FixedCharge):
            return [fixed_line(charge, part)]
        if isinstance(charge, MinimumCharge):
            line = minimum_line(charge, part, before)
            return [] if line is None else [line]
        if isinstance(charge, PercentageCharge):
            return [percentage_line(charge, before)]
        raise PlanningError("CHARGE_KIND", "/revisions", "this kind of charge has no formula")

    def _energy(self, charge: EnergyCharge, number: int, part: Part) -> list[BillLine]:
        billing_kw = self._billing_kw(charge, part)
        if charge.accumulation is Accumulation.ALL_PERIODS_IN_TIME_ORDER:
            return tiered_lines(charge, self.meter.energy_in_time_order(charge, number, billing_kw))
        return energy_lines(charge, self.meter.energy(charge)[number], part, billing_kw)

    def _billing_kw(self, charge: EnergyCharge, part: Part) -> float:
        """What scales hours of use: a charge's billing demand, or the peak of the billing period."""
        if charge.billing_demand_of is None:
            peak = self.meter.period_peaks[part.period]
            return 0.0 if peak is None else peak.kw
        for other in self.tariff.revisions[part.revision].charges:
            if isinstance(other, DemandCharge) and other.name == charge.billing_demand_of:
                return self._demand(other)[part.period].kw
        raise PlanningError("CHARGE_UNKNOWN", "/revisions", "an energy charge names an unknown demand charge")

    def _demand(self, charge: DemandCharge) -> Sequence[DemandOfPeriod]:
        """Billing demand by billing period."""
        if id(charge) not in self._demands:
            peaks = self.meter.peaks(charge)
            back = LookBack(charge, peaks, self.earlier, self.meter.load.power_factor)
            self._demands[id(charge)] = [
                demand_of_period(charge, own, month, back)
                for own, month in zip(peaks.own, self.meter.months, strict=True)
            ]
            if back.unknown:
                self.findings.append(_unknown_months(charge, back))
        return self._demands[id(charge)]

    def _demand_lines(self, charge: DemandCharge, part: Part, month: int) -> list[BillLine]:
        if charge.span is Span.CALENDAR_YEAR and not self._ends_year(part.period):
            return []
        if not is_charged(charge, month):
            return []
        demand = self._demand(charge)[part.period]
        return demand_lines(charge, demand, part, Metering(self.meter.load.power_factor, self.meter.zone))

    def _ends_year(self, period: int) -> bool:
        """Whether a billing period is the last of its calendar year."""
        months = self.meter.months
        return period + 1 == len(months) or month_of(months[period + 1])[0] != month_of(months[period])[0]


def _unknown_months(charge: DemandCharge, back: LookBack) -> Finding:
    names = ", ".join("{}-{:02d}".format(*month_of(key)) for key in sorted(back.unknown))
    return Finding(
        "RATCHET_HISTORY", "", f"{charge.name}: no peaks of {names} are known, they count 0 in its ratchets"
    )
