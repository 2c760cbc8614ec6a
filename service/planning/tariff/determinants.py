"""Meters that read billing quantities instead of a series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillFinding, BillingDeterminants, BillingPeriod
from service.planning.tariff.calendar import (
    build_days,
    build_price_period_table,
    list_boundary_minutes,
    list_calendar_months,
    resolve_zone,
    split_month_key,
    to_day_number,
    to_month_key,
)
from service.planning.tariff.charges import (
    MONTHS,
    ChargeProration,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PeakSpan,
    PricePeriod,
    RealTimeCharge,
    Tariff,
    TariffCharge,
    TierAccumulation,
)
from service.planning.tariff.demands import DemandPeak, find_highest_peak
from service.planning.tariff.market import MarketEnergy
from service.planning.tariff.meter import AnnualUse, PeaksByPeriod, find_pointer
from service.planning.tariff.spans import split_parts


def _build_series_error(tariff: Tariff, charge: TariffCharge) -> PlanningError:
    return PlanningError(
        "SERIES_REQUIRED", find_pointer(tariff, charge), "this charge needs the load as a series of intervals"
    )


def _list_price_periods(tariff: Tariff, kind: type[EnergyCharge | DemandCharge]) -> Iterable[PricePeriod]:
    for revision in tariff.revisions:
        for charge in revision.charges:
            if isinstance(charge, kind):
                yield from charge.periods


class DeterminantsMeter:
    """Billing quantities of the calendar months of a year."""

    def __init__(self, tariff: Tariff, determinants: BillingDeterminants) -> None:
        self.tariff, self.given = tariff, determinants
        self.zone, self.power_factor = resolve_zone(tariff.time_zone), determinants.power_factor
        year = determinants.year
        self.periods = list_calendar_months(date(year, 1, 1), date(year, 12, 31))
        self.parts = split_parts(self.periods, tariff.revisions)
        self.months = [to_month_key(year, month) for month in sorted(MONTHS)]
        self.first_month = self.months[0]
        self.findings: Sequence[BillFinding] = ()
        self._factor = 1.0 + tariff.secondary_loss_factor * determinants.secondary
        self._check_names()
        self._whole: dict[int, set[tuple[int, int]]] = {}
        self._energy: dict[int, Sequence[Sequence[float]]] = {}

    def _check_names(self) -> None:
        given, unknown = self.given, set(self.given.month_peak_kw) - MONTHS
        for kind, known in ((EnergyCharge, given.energy_kwh), (DemandCharge, given.period_peak_kw)):
            names = {period.name for period in _list_price_periods(self.tariff, kind)}
            unknown |= {month for month, name in known if month not in MONTHS or name not in names}
        if unknown:
            raise PlanningError("DETERMINANT_UNKNOWN", "", "a quantity names no month or price period")

    def _covers_month(self, periods: Sequence[PricePeriod], place: int, month: int) -> bool:
        """Returns true if a price period has every hour of a month."""
        if id(periods) not in self._whole:
            year, slots = self.given.year, list_boundary_minutes(periods)
            first, last = to_day_number(date(year, 1, 1)), to_day_number(date(year, 12, 31))
            days = build_days(first, last, self.tariff.holidays)
            table, months = build_price_period_table(periods, days, slots), days.months[1:]
            lowest, highest_place = table.min(axis=1), table.max(axis=1)
            ends = {one: (lowest[months == one].min(), highest_place[months == one].max()) for one in MONTHS}
            self._whole[id(periods)] = {
                (int(low), one) for one, (low, high) in ends.items() if low == high and low >= 0
            }
        return (place, month) in self._whole[id(periods)]

    def _compute_month_energy(self, charge: EnergyCharge, month: int) -> list[float]:
        if month not in charge.months:
            return [0.0] * len(charge.periods)
        given = [self.given.energy_kwh.get((month, period.name)) for period in charge.periods]
        tells = any(kwh is not None for kwh in given)
        return [
            (self._get_full_month_kwh(charge, place, month, tells=tells) if kwh is None else kwh)
            * self._factor
            for place, kwh in enumerate(given)
        ]

    def _get_full_month_kwh(self, charge: EnergyCharge, place: int, month: int, *, tells: bool) -> float:
        """Returns a month's energy for a price period that has all hours.

        0 if ``tells``: others have energy.
        """
        is_whole = not tells and self._covers_month(charge.periods, place, month)
        return self._get_month_kwh(month) if is_whole else 0.0

    def _get_month_kwh(self, month: int) -> float:
        """Returns the energy of a month, by the charge whose price periods give most of it."""
        return self._kwh_by_month.get(month, 0.0)

    @cached_property
    def _kwh_by_month(self) -> dict[int, float]:
        given, found = self.given.energy_kwh, dict.fromkeys(MONTHS, 0.0)
        for revision in self.tariff.revisions:
            for charge in revision.charges:
                if isinstance(charge, EnergyCharge):
                    for month, most in found.items():
                        told = sum(given.get((month, period.name), 0.0) for period in charge.periods)
                        found[month] = max(most, told)
        return found

    @cached_property
    def part_kwh(self) -> Sequence[float]:
        """Energy of each part, by its share of days."""
        return [self._get_month_kwh(part.start.month) * part.share * self._factor for part in self.parts]

    def _get_month_peak(self, month: int) -> DemandPeak | None:
        known = self._kw_by_month.get(month)
        return None if known is None else DemandPeak(known * self._factor)

    @cached_property
    def _kw_by_month(self) -> dict[int, float]:
        """Highest given demand of each month."""
        found = dict(self.given.month_peak_kw)
        for (month, _), kw in self.given.period_peak_kw.items():
            found[month] = max(found.get(month, kw), kw)
        return found

    @cached_property
    def period_peaks(self) -> Sequence[DemandPeak | None]:
        """Highest demand of each month, None where none is given."""
        return [self._get_month_peak(month) for month in sorted(MONTHS)]

    def find_window_peak(self, period: int, window_minutes: int | None) -> DemandPeak:
        """Returns the highest demand of a month as given, whatever ``window_minutes`` is."""
        del window_minutes
        return self._require_month_peak(period + 1) or DemandPeak(0.0)

    def _require_month_peak(self, month: int) -> DemandPeak | None:
        peak = self._get_month_peak(month)
        if peak is None and self._get_month_kwh(month) > 0.0:
            raise PlanningError("DETERMINANT_MISSING", "", f"month {month} has energy and no peak")
        return peak

    def compute_energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Returns energy in kWh by part and price period.

        A revision within a month takes its share of days.
        """
        if id(charge) not in self._energy:
            self._energy[id(charge)] = [
                [kwh * part.share for kwh in self._compute_month_energy(charge, part.start.month)]
                for part in self.parts
            ]
        return self._energy[id(charge)]

    def compute_energy_in_order(
        self, charge: EnergyCharge, number: int, billing_kw: float
    ) -> Sequence[Sequence[float]]:
        """Raises ``SERIES_REQUIRED``."""
        del number, billing_kw
        raise _build_series_error(self.tariff, charge)

    def find_peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Returns the demand in kW by billing period, month and price period."""
        if charge.peaks > 1:
            raise _build_series_error(self.tariff, charge)
        rows = [self._build_peak_row(charge, month) for month in sorted(MONTHS)]
        if charge.span is PeakSpan.CALENDAR_YEAR:
            rows = [[find_highest_peak(column) for column in zip(*rows, strict=True)]] * len(rows)
        month = {
            key: peak for key, peak in zip(self.months, self.period_peaks, strict=True) if peak is not None
        }
        return PeaksByPeriod(rows, dict(zip(self.months, rows, strict=True)), month)

    def _build_peak_row(self, charge: DemandCharge, month: int) -> list[DemandPeak | None]:
        row: list[DemandPeak | None] = []
        for place, period in enumerate(charge.periods):
            kw = self.given.period_peak_kw.get((month, period.name))
            if kw is not None:
                row.append(DemandPeak(kw * self._factor))
            else:
                whole = self._covers_month(charge.periods, place, month)
                row.append(self._require_month_peak(month) if whole else None)
        return row

    def compute_market_energy(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        """Raises ``SERIES_REQUIRED``."""
        raise _build_series_error(self.tariff, charge)

    def find_coincident_demands(
        self, charge: CoincidentPeakCharge
    ) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
        """Returns the demands given for the grid's peak intervals, in the order of the sets."""
        given, rows = [DemandPeak(kw * self._factor) for kw in self.given.coincident_kw], []
        for one in charge.sets:
            rows.append(given[: one.given])
            given = given[one.given :]
            if len(rows[-1]) < max(one.given, 1):
                raise PlanningError(
                    "DETERMINANT_MISSING", "", "demand in the grid's peak intervals is missing"
                )
        return {self.given.year: rows}

    def compute_annual_use(self, year: int) -> AnnualUse:
        """Returns energy and peak of the year."""
        if year != self.given.year:
            return AnnualUse(0.0, 0.0, 0.0)
        peaks = [peak.kw for peak in map(self._require_month_peak, sorted(MONTHS)) if peak is not None]
        kwh = sum(self._get_month_kwh(month) for month in MONTHS) * self._factor
        return AnnualUse(kwh, max(peaks, default=0.0), 1.0)


def convert_to_annual(tariff: Tariff) -> Tariff:
    """Returns ``tariff`` with prices by month and year due for each month of a billing period of a year.

    A minimum applies to each billing period, which a year does not give: ``SERIES_REQUIRED``.
    """
    for charge in (charge for revision in tariff.revisions for charge in revision.charges):
        if isinstance(charge, MinimumCharge):
            raise _build_series_error(tariff, charge)
    return replace(
        tariff,
        revisions=tuple(
            replace(
                revision,
                charges=tuple(
                    replace(charge, proration=ChargeProration.DAYS_OF_MONTH)
                    if isinstance(charge, FixedCharge)
                    else charge
                    for charge in revision.charges
                ),
            )
            for revision in tariff.revisions
        ),
    )


class AnnualMeter:
    """Energy and peak of a calendar year, and nothing else."""

    def __init__(
        self,
        tariff: Tariff,
        year: int,
        energy_kwh: float,
        peak_kw: float,
        *,
        power_factor: float,
        secondary: bool,
    ) -> None:
        self.tariff, factor = tariff, 1.0 + tariff.secondary_loss_factor * secondary
        self.year, self.energy_kwh, self.peak = year, energy_kwh * factor, DemandPeak(peak_kw * factor)
        self.zone, self.power_factor = resolve_zone(tariff.time_zone), power_factor
        self.periods = (BillingPeriod(date(year, 1, 1), date(year + 1, 1, 1)),)
        self.parts = split_parts(self.periods, tariff.revisions)
        self.months = [to_month_key(year, 1)]
        self.first_month = self.months[0]
        self.findings: Sequence[BillFinding] = ()

    @property
    def part_kwh(self) -> Sequence[float]:
        """Energy of each part, by its share of days."""
        return [self.energy_kwh * part.share for part in self.parts]

    @property
    def period_peaks(self) -> Sequence[DemandPeak | None]:
        """The peak of the year."""
        return [self.peak]

    def find_window_peak(self, period: int, window_minutes: int | None) -> DemandPeak:
        """Raises ``SERIES_REQUIRED``: peaks of months are not known."""
        del period, window_minutes
        raise PlanningError("SERIES_REQUIRED", "/revisions", "a charge needs the peak of each month")

    def compute_energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Returns the energy in kWh, where the whole year has one price."""
        self._check_seasons(charge, charge.periods)
        if len(charge.periods[0].tiers) > 1 or charge.accumulation is not TierAccumulation.PER_PERIOD:
            raise _build_series_error(self.tariff, charge)
        return [[kwh] for kwh in self.part_kwh]

    def _check_seasons(self, charge: TariffCharge, periods: Sequence[PricePeriod]) -> None:
        days = build_days(to_day_number(date(self.year, 1, 1)), to_day_number(date(self.year, 12, 31)), ())
        table = build_price_period_table(periods, days, list_boundary_minutes(periods))
        if len(periods) > 1 or charge.months != MONTHS or (table < 0).any():
            raise _build_series_error(self.tariff, charge)

    def compute_energy_in_order(
        self, charge: EnergyCharge, number: int, billing_kw: float
    ) -> Sequence[Sequence[float]]:
        """Raises ``SERIES_REQUIRED``."""
        del number, billing_kw
        raise _build_series_error(self.tariff, charge)

    def find_peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Returns the peak of the year, for charges of a year."""
        self._check_seasons(charge, charge.periods)
        if charge.span is not PeakSpan.CALENDAR_YEAR or charge.peaks > 1 or charge.billing_demand.ratchets:
            raise _build_series_error(self.tariff, charge)
        return PeaksByPeriod([[self.peak]], {}, {})

    def compute_market_energy(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        """Raises ``SERIES_REQUIRED``."""
        raise _build_series_error(self.tariff, charge)

    def find_coincident_demands(
        self, charge: CoincidentPeakCharge
    ) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
        """Raises ``SERIES_REQUIRED``."""
        raise _build_series_error(self.tariff, charge)

    def compute_annual_use(self, year: int) -> AnnualUse:
        """Returns energy and peak of the year."""
        if year != split_month_key(self.first_month)[0]:
            raise ValueError(f"{year} is not the year of the bill")
        return AnnualUse(self.energy_kwh, self.peak.kw, 1.0)
