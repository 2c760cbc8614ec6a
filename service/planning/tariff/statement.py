"""The bill of one load: every charge of every billing period, in the order of the tariff."""

from collections.abc import Collection, Mapping, Sequence

from service.planning.errors import PlanningError
from service.planning.tariff.bill import Bill, BillLine, Finding, PeriodBill
from service.planning.tariff.calendar import month_key, month_of
from service.planning.tariff.charges import (
    Accumulation,
    Charge,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    OverrunCharge,
    Per,
    PercentageCharge,
    Proration,
    ReactiveCharge,
    RealTimeCharge,
    Span,
    Tariff,
)
from service.planning.tariff.coincident import coincident_lines, statistic
from service.planning.tariff.demand import (
    ChargeFloors,
    DemandOfPeriod,
    Earlier,
    LookBack,
    Metering,
    demand_lines,
    demands_of_periods,
)
from service.planning.tariff.demands import Peak, highest
from service.planning.tariff.energy import energy_lines, tiered_lines
from service.planning.tariff.fixed import Charged, fixed_lines, minimum_lines, percentage_line
from service.planning.tariff.ladders import OF_DEMAND
from service.planning.tariff.market import MarketEnergy, market_lines
from service.planning.tariff.meter import AnnualUse, Meter, pointer_of
from service.planning.tariff.spans import Part
from service.planning.tariff.surplus import overrun_lines, reactive_lines


class Statement:
    """The bill of one load under one tariff."""

    def __init__(self, tariff: Tariff, meter: Meter, earlier: Earlier) -> None:
        self.tariff, self.meter, self.earlier = tariff, meter, earlier
        self.findings: list[Finding] = []
        self._demands: dict[int, Sequence[DemandOfPeriod]] = {}
        self._markets: dict[int, Sequence[MarketEnergy]] = {}
        self._uses: dict[int, AnnualUse] = {}
        self._coincident: dict[int, Mapping[int, Sequence[Sequence[Peak]]]] = {}
        self._look_back = LookBack(meter.months, earlier)

    def bill(self) -> Bill:
        """All lines, not rounded."""
        self._refuse_short_use()
        parts: list[list[tuple[int, Part]]] = [[] for _ in self.meter.periods]
        for number, part in enumerate(self.meter.parts):
            parts[part.period].append((number, part))
        found = tuple(self._period(place, inside) for place, inside in enumerate(parts))
        findings = dict.fromkeys([*self.meter.findings, *self.findings])
        return Bill(self.tariff.currency_code, found, tuple(findings))

    def _period(self, place: int, parts: Sequence[tuple[int, Part]]) -> PeriodBill:
        lines: list[BillLine] = []
        demands: dict[str, float] = {}
        for number, part in parts:
            charged = Charged()
            for charge in self.tariff.revisions[part.revision].charges:
                if self._applies(charge, place):
                    found = self._lines(charge, number, part, charged)
                    charged.add(charge, found)
                    lines += found
                    demands |= self._billed_kw(charge, place)
        peak = self.meter.period_peaks[place]
        kwh = sum(self.meter.part_kwh[number] for number, _ in parts)
        period = self.meter.periods[place]
        return PeriodBill(period, tuple(lines), kwh, 0.0 if peak is None else peak.kw, demands)

    def _lines(self, charge: Charge, number: int, part: Part, before: Charged) -> list[BillLine]:
        found: list[BillLine]
        match charge:
            case EnergyCharge():
                found = self._energy(charge, number, part)
            case RealTimeCharge():
                found = market_lines(charge, self._market(charge)[number])
            case DemandCharge():
                found = self._demand_lines(charge, part)
            case CoincidentPeakCharge():
                found = self._coincident_lines(charge, part)
            case FixedCharge():
                found = fixed_lines(charge, part)
            case MinimumCharge():
                found = minimum_lines(charge, part, before)
            case PercentageCharge():
                found = [percentage_line(charge, before)]
            case OverrunCharge():
                peak = self.meter.peak_at_window(part.period, charge.window_minutes)
                found = overrun_lines(charge, peak, part.share, self.meter.zone)
            case ReactiveCharge():
                found = self._reactive(charge, number, part)
            case _:
                pointer = pointer_of(self.tariff, charge)
                raise PlanningError("CHARGE_KIND", pointer, "this kind of charge has no formula")
        return found

    def _applies(self, charge: Charge, period: int) -> bool:
        """Whether a charge is due in a billing period, if only for some of its days."""
        year, month = month_of(self.meter.months[period])
        if charge.hours_of_use_from > 0.0 or charge.hours_of_use_below is not None:
            hours = self._annual_use(year).hours
            below = charge.hours_of_use_below
            if hours < charge.hours_of_use_from or (below is not None and hours >= below):
                return False
        return month in charge.months or _counts_days(charge)

    def _annual_use(self, year: int) -> AnnualUse:
        if year in self._uses:
            return self._uses[year]
        use = self._uses[year] = self.meter.annual_use(year)
        if use.covered < 1.0:
            detail = f"the load covers {use.covered:.2%} of {year}; without more use the year has "
            detail += f"{use.hours:.6g} hours of use"
            self.findings.append(Finding("HOURS_OF_USE_PART", "", detail))
        return use

    def _refuse_short_use(self) -> None:
        least = self.tariff.hours_of_use_minimum
        for year in sorted({month_of(month)[0] for month in self.meter.months}) if least else ():
            use = self._annual_use(year)
            if use.covered > 0.0 and use.hours < least:
                raise PlanningError(
                    "HOURS_OF_USE", "/hours_of_use_minimum", "the load has fewer annual hours of use"
                )

    def _energy(self, charge: EnergyCharge, number: int, part: Part) -> list[BillLine]:
        billing_kw = self._billing_kw(charge, part)
        if charge.accumulation is Accumulation.ALL_PERIODS_IN_TIME_ORDER:
            return tiered_lines(charge, self.meter.energy_in_time_order(charge, number, billing_kw))
        return energy_lines(charge, self.meter.energy(charge)[number], part, billing_kw)

    def _billing_kw(self, charge: EnergyCharge, part: Part) -> float:
        """What scales hours of use: a charge's billing demand, or the peak of the billing period."""
        if not any(tier.unit in OF_DEMAND for period in charge.periods for tier in period.tiers):
            return 0.0
        if charge.billing_demand_of is None:
            return self.meter.peak_at_window(part.period, None).kw
        for other in self.tariff.revisions[part.revision].charges:
            if isinstance(other, DemandCharge) and other.name == charge.billing_demand_of:
                return self._demand(other)[part.period].raised_kw
        pointer = f"{pointer_of(self.tariff, charge)}/billing_demand_of"
        raise PlanningError("CHARGE_UNKNOWN", pointer, "no demand charge has this name")

    def _market(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        if id(charge) not in self._markets:
            self._markets[id(charge)] = self.meter.market(charge)
        return self._markets[id(charge)]

    def _demand(self, charge: DemandCharge) -> Sequence[DemandOfPeriod]:
        """Billing demand by billing period."""
        if id(charge) not in self._demands:
            peaks, months = self.meter.peaks(charge), self.meter.months
            floors = ChargeFloors(charge, peaks, self._look_back)
            own = [self._with_history(charge, *each) for each in zip(peaks.own, months, strict=True)]
            self._demands[id(charge)] = demands_of_periods(
                charge, own, months, floors, self.meter.power_factor
            )
            if floors.unknown:
                self.findings.append(_unknown_months(charge, floors.unknown))
        return self._demands[id(charge)]

    def _with_history(
        self, charge: DemandCharge, own: Sequence[Peak | None], month: int
    ) -> Sequence[Peak | None]:
        """Peaks of the year with those of its months before the load."""
        if charge.span is not Span.CALENDAR_YEAR or len(charge.periods) > 1:
            return own
        january = month_key(month_of(month)[0], 1)
        keys = range(january, min(january + 12, self.earlier.first_month))
        earlier = [Peak(self.earlier.history[key]) for key in keys if key in self.earlier.history]
        return [highest([*own, *earlier])]

    def _demand_lines(self, charge: DemandCharge, part: Part) -> list[BillLine]:
        if charge.span is Span.CALENDAR_YEAR and not self._ends_year(part.period):
            return []
        demand = self._demand(charge)[part.period]
        return demand_lines(charge, demand, part, Metering(self.meter.power_factor, self.meter.zone))

    def _billed_kw(self, charge: Charge, period: int) -> dict[str, float]:
        """Demand under the name of a charge; that of a year or of its coincident peaks stands at its end."""
        ends = self._ends_year(period)
        if isinstance(charge, DemandCharge) and (ends or charge.span is not Span.CALENDAR_YEAR):
            return {charge.name: self._demand(charge)[period].kw}
        if isinstance(charge, CoincidentPeakCharge) and ends:
            year = month_of(self.meter.months[period])[0]
            rows = [statistic(charge, row) for row in self._coincident_demands(charge).get(year, ())]
            known = [peak.kw for peak in rows if peak is not None]
            return {charge.name: max(known)} if known else {}
        return {}

    def _coincident_demands(self, charge: CoincidentPeakCharge) -> Mapping[int, Sequence[Sequence[Peak]]]:
        """Demands in the grid's peak intervals by year and set."""
        if id(charge) not in self._coincident:
            self._coincident[id(charge)] = self.meter.coincident(charge)
        return self._coincident[id(charge)]

    def _coincident_lines(self, charge: CoincidentPeakCharge, part: Part) -> list[BillLine]:
        if not self._ends_year(part.period):
            return []
        year = month_of(self.meter.months[part.period])[0] - charge.in_following_year
        demands = self._coincident_demands(charge).get(year)
        if demands is None:
            detail = (
                f"{charge.name}: the load does not reach the peak intervals of {year}, which are not billed"
            )
            self.findings.append(Finding("COINCIDENT_PEAK_HISTORY", "", detail))
            return []
        return coincident_lines(charge, demands, part.share, self.meter.zone)

    def _reactive(self, charge: ReactiveCharge, number: int, part: Part) -> list[BillLine]:
        kwh = self.meter.part_kwh[number]
        peak = Peak(0.0) if charge.by_energy else self.meter.peak_at_window(part.period, None)
        active = peak._replace(kw=peak.kw * part.share)
        return reactive_lines(charge, active, kwh, Metering(self.meter.power_factor, self.meter.zone))

    def _ends_year(self, period: int) -> bool:
        """Whether a billing period is the last of its calendar year."""
        months = self.meter.months
        return period + 1 == len(months) or month_of(months[period + 1])[0] != month_of(months[period])[0]


def _counts_days(charge: Charge) -> bool:
    """Whether a charge looks at each day of a billing period and not at the month billed."""
    if isinstance(charge, FixedCharge | MinimumCharge):
        return charge.per is Per.DAY or charge.proration is not Proration.NONE
    if isinstance(charge, DemandCharge):
        return charge.proration is not Proration.NONE
    return isinstance(charge, EnergyCharge | RealTimeCharge)


def _unknown_months(charge: DemandCharge, unknown: Collection[int]) -> Finding:
    names = ", ".join("{}-{:02d}".format(*month_of(key)) for key in sorted(unknown))
    return Finding(
        "RATCHET_HISTORY", "", f"{charge.name}: no peaks of {names} are known, they count 0 in its ratchets"
    )
