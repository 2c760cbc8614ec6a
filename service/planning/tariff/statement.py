"""Bill of one load: every charge of every billing period, in the order of the tariff."""

from collections.abc import Collection, Mapping, Sequence

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillFinding, BillLine, LoadBill, PeriodBill
from service.planning.tariff.calendar import split_month_key, to_month_key
from service.planning.tariff.charges import (
    ChargeProration,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    MinimumCharge,
    OverrunCharge,
    PeakSpan,
    PercentageCharge,
    ReactiveCharge,
    RealTimeCharge,
    Tariff,
    TariffCharge,
    TierAccumulation,
)
from service.planning.tariff.coincident import build_coincident_lines, compute_statistic
from service.planning.tariff.demand import (
    ChargeFloors,
    EarlierPeaks,
    LoadMetering,
    PeriodDemand,
    RatchetHistory,
    build_demand_lines,
    compute_period_demands,
)
from service.planning.tariff.demands import DemandPeak, find_highest_peak
from service.planning.tariff.energy import build_energy_lines, build_tiered_lines
from service.planning.tariff.fixed import (
    ChargedAmounts,
    build_fixed_lines,
    build_minimum_lines,
    build_percentage_line,
)
from service.planning.tariff.ladders import OF_DEMAND
from service.planning.tariff.market import MarketEnergy, build_market_lines
from service.planning.tariff.meter import AnnualUse, LoadMeter, find_pointer
from service.planning.tariff.spans import RevisionSpan
from service.planning.tariff.surplus import build_overrun_lines, build_reactive_lines


class BillStatement:
    """Bill of one load under one tariff."""

    def __init__(self, tariff: Tariff, meter: LoadMeter, earlier: EarlierPeaks) -> None:
        self.tariff, self.meter, self.earlier = tariff, meter, earlier
        self.findings: list[BillFinding] = []
        self._demands: dict[int, Sequence[PeriodDemand]] = {}
        self._markets: dict[int, Sequence[MarketEnergy]] = {}
        self._uses: dict[int, AnnualUse] = {}
        self._coincident: dict[int, Mapping[int, Sequence[Sequence[DemandPeak]]]] = {}
        self._look_back = RatchetHistory(meter.months, earlier)

    def build_bill(self) -> LoadBill:
        """Builds all lines, not rounded."""
        self._check_hours_of_use()
        parts: list[list[tuple[int, RevisionSpan]]] = [[] for _ in self.meter.periods]
        for number, part in enumerate(self.meter.parts):
            parts[part.period].append((number, part))
        found = tuple(self._build_period(place, inside) for place, inside in enumerate(parts))
        findings = dict.fromkeys([*self.meter.findings, *self.findings])
        return LoadBill(self.tariff.currency_code, found, tuple(findings))

    def _build_period(self, place: int, parts: Sequence[tuple[int, RevisionSpan]]) -> PeriodBill:
        lines: list[BillLine] = []
        demands: dict[str, float] = {}
        for number, part in parts:
            charged = ChargedAmounts()
            for charge in self.tariff.revisions[part.revision].charges:
                if self._is_due(charge, place):
                    found = self._build_lines(charge, number, part, charged)
                    charged.add(charge, found)
                    lines += found
                    demands |= self._get_billed_kw(charge, place)
        peak = self.meter.period_peaks[place]
        kwh = sum(self.meter.part_kwh[number] for number, _ in parts)
        period = self.meter.periods[place]
        return PeriodBill(period, tuple(lines), kwh, 0.0 if peak is None else peak.kw, demands)

    def _build_lines(
        self, charge: TariffCharge, number: int, part: RevisionSpan, before: ChargedAmounts
    ) -> list[BillLine]:
        found: list[BillLine]
        match charge:
            case EnergyCharge():
                found = self._build_energy_lines(charge, number, part)
            case RealTimeCharge():
                found = build_market_lines(charge, self._get_market_energy(charge)[number])
            case DemandCharge():
                found = self._build_demand_lines(charge, part)
            case CoincidentPeakCharge():
                found = self._build_coincident_lines(charge, part)
            case FixedCharge():
                found = build_fixed_lines(charge, part)
            case MinimumCharge():
                found = build_minimum_lines(charge, part, before)
            case PercentageCharge():
                found = [build_percentage_line(charge, before)]
            case OverrunCharge():
                peak = self.meter.find_window_peak(part.period, charge.window_minutes)
                found = build_overrun_lines(charge, peak, part.share, self.meter.zone)
            case ReactiveCharge():
                found = self._build_reactive_lines(charge, number, part)
            case _:
                pointer = find_pointer(self.tariff, charge)
                raise PlanningError("CHARGE_KIND", pointer, "this kind of charge has no formula")
        return found

    def _is_due(self, charge: TariffCharge, period: int) -> bool:
        """Returns true if a charge is due in a billing period, if only for some of its days."""
        year, month = split_month_key(self.meter.months[period])
        if charge.hours_of_use_from > 0.0 or charge.hours_of_use_below is not None:
            hours = self._get_annual_use(year).hours
            below = charge.hours_of_use_below
            if hours < charge.hours_of_use_from or (below is not None and hours >= below):
                return False
        return month in charge.months or _depends_on_days(charge)

    def _get_annual_use(self, year: int) -> AnnualUse:
        if year in self._uses:
            return self._uses[year]
        use = self._uses[year] = self.meter.compute_annual_use(year)
        if use.covered < 1.0:
            detail = f"the load covers {use.covered:.2%} of {year}; without more use the year has "
            detail += f"{use.hours:.6g} hours of use"
            self.findings.append(BillFinding("HOURS_OF_USE_PART", "", detail))
        return use

    def _check_hours_of_use(self) -> None:
        least = self.tariff.hours_of_use_minimum
        for year in sorted({split_month_key(month)[0] for month in self.meter.months}) if least else ():
            use = self._get_annual_use(year)
            if use.covered > 0.0 and use.hours < least:
                raise PlanningError(
                    "HOURS_OF_USE", "/hours_of_use_minimum", "the load has fewer annual hours of use"
                )

    def _build_energy_lines(self, charge: EnergyCharge, number: int, part: RevisionSpan) -> list[BillLine]:
        billing_kw = self._compute_billing_kw(charge, part)
        if charge.accumulation is TierAccumulation.ALL_PERIODS_IN_TIME_ORDER:
            return build_tiered_lines(charge, self.meter.compute_energy_in_order(charge, number, billing_kw))
        return build_energy_lines(charge, self.meter.compute_energy(charge)[number], part, billing_kw)

    def _compute_billing_kw(self, charge: EnergyCharge, part: RevisionSpan) -> float:
        """Returns the kW that scale hours of use.

        A charge's billing demand, or the peak of the billing period.
        """
        if not any(tier.unit in OF_DEMAND for period in charge.periods for tier in period.tiers):
            return 0.0
        if charge.billing_demand_of is None:
            return self.meter.find_window_peak(part.period, None).kw
        for other in self.tariff.revisions[part.revision].charges:
            if isinstance(other, DemandCharge) and other.name == charge.billing_demand_of:
                return self._get_period_demands(other)[part.period].raised_kw
        pointer = f"{find_pointer(self.tariff, charge)}/billing_demand_of"
        raise PlanningError("CHARGE_UNKNOWN", pointer, "no demand charge has this name")

    def _get_market_energy(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        if id(charge) not in self._markets:
            self._markets[id(charge)] = self.meter.compute_market_energy(charge)
        return self._markets[id(charge)]

    def _get_period_demands(self, charge: DemandCharge) -> Sequence[PeriodDemand]:
        """Returns the billing demand by billing period."""
        if id(charge) not in self._demands:
            peaks, months = self.meter.find_peaks(charge), self.meter.months
            floors = ChargeFloors(charge, peaks, self._look_back)
            own = [self._add_history(charge, *each) for each in zip(peaks.own, months, strict=True)]
            self._demands[id(charge)] = compute_period_demands(
                charge, own, months, floors, self.meter.power_factor
            )
            if floors.unknown:
                self.findings.append(_build_history_finding(charge, floors.unknown))
        return self._demands[id(charge)]

    def _add_history(
        self, charge: DemandCharge, own: Sequence[DemandPeak | None], month: int
    ) -> Sequence[DemandPeak | None]:
        """Adds the peaks of a year's months before the load to the peaks of the year."""
        if charge.span is not PeakSpan.CALENDAR_YEAR or len(charge.periods) > 1:
            return own
        january = to_month_key(split_month_key(month)[0], 1)
        keys = range(january, min(january + 12, self.earlier.first_month))
        earlier = [DemandPeak(self.earlier.history[key]) for key in keys if key in self.earlier.history]
        return [find_highest_peak([*own, *earlier])]

    def _build_demand_lines(self, charge: DemandCharge, part: RevisionSpan) -> list[BillLine]:
        if charge.span is PeakSpan.CALENDAR_YEAR and not self._is_year_end(part.period):
            return []
        demand = self._get_period_demands(charge)[part.period]
        return build_demand_lines(
            charge, demand, part, LoadMetering(self.meter.power_factor, self.meter.zone)
        )

    def _get_billed_kw(self, charge: TariffCharge, period: int) -> dict[str, float]:
        """Returns the demand by name of the charge; a year's demand or coincident peaks stand at its end."""
        ends = self._is_year_end(period)
        if isinstance(charge, DemandCharge) and (ends or charge.span is not PeakSpan.CALENDAR_YEAR):
            return {charge.name: self._get_period_demands(charge)[period].kw}
        if isinstance(charge, CoincidentPeakCharge) and ends:
            year = split_month_key(self.meter.months[period])[0]
            rows = [
                compute_statistic(charge, row) for row in self._get_coincident_demands(charge).get(year, ())
            ]
            known = [peak.kw for peak in rows if peak is not None]
            return {charge.name: max(known)} if known else {}
        return {}

    def _get_coincident_demands(
        self, charge: CoincidentPeakCharge
    ) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
        """Returns demands in the grid's peak intervals by year and set."""
        if id(charge) not in self._coincident:
            self._coincident[id(charge)] = self.meter.find_coincident_demands(charge)
        return self._coincident[id(charge)]

    def _build_coincident_lines(self, charge: CoincidentPeakCharge, part: RevisionSpan) -> list[BillLine]:
        if not self._is_year_end(part.period):
            return []
        year = split_month_key(self.meter.months[part.period])[0] - charge.in_following_year
        demands = self._get_coincident_demands(charge).get(year)
        if demands is None:
            detail = (
                f"{charge.name}: the load does not reach the peak intervals of {year}, which are not billed"
            )
            self.findings.append(BillFinding("COINCIDENT_PEAK_HISTORY", "", detail))
            return []
        return build_coincident_lines(charge, demands, part.share, self.meter.zone)

    def _build_reactive_lines(
        self, charge: ReactiveCharge, number: int, part: RevisionSpan
    ) -> list[BillLine]:
        kwh = self.meter.part_kwh[number]
        peak = DemandPeak(0.0) if charge.by_energy else self.meter.find_window_peak(part.period, None)
        active = peak._replace(kw=peak.kw * part.share)
        return build_reactive_lines(
            charge, active, kwh, LoadMetering(self.meter.power_factor, self.meter.zone)
        )

    def _is_year_end(self, period: int) -> bool:
        """Returns true if a billing period is the last of its calendar year."""
        months = self.meter.months
        return (
            period + 1 == len(months)
            or split_month_key(months[period + 1])[0] != split_month_key(months[period])[0]
        )


def _depends_on_days(charge: TariffCharge) -> bool:
    """Returns true if a charge depends on each day of a billing period and not on the month billed."""
    if isinstance(charge, FixedCharge | MinimumCharge):
        return charge.per is FixedChargePeriod.DAY or charge.proration is not ChargeProration.NONE
    if isinstance(charge, DemandCharge):
        return charge.proration is not ChargeProration.NONE
    return isinstance(charge, EnergyCharge | RealTimeCharge)


def _build_history_finding(charge: DemandCharge, unknown: Collection[int]) -> BillFinding:
    names = ", ".join("{}-{:02d}".format(*split_month_key(key)) for key in sorted(unknown))
    return BillFinding(
        "RATCHET_HISTORY", "", f"{charge.name}: no peaks of {names} are known, they count 0 in its ratchets"
    )
