"""Checks that a tariff can be billed: known names, one price for every hour, complete ladders."""

from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from functools import cache
from itertools import groupby, pairwise, product
from math import inf, isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.calendar import (
    BooleanArray,
    LocalDays,
    find_window_days,
    list_boundary_minutes,
    resolve_zone,
    to_month_key,
)
from service.planning.tariff.charges import (
    DAY_MINUTES,
    MONTHS,
    WEEKDAYS,
    BillingDemand,
    CoincidentPeakCharge,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    RealTimeCharge,
    Tariff,
    TariffCharge,
    TariffRevision,
    TariffTierUnit,
)
from service.planning.tariff.ladders import OF_DEMAND, list_energy_reaches

_ENERGY_UNITS: Final = frozenset(TariffTierUnit) - {TariffTierUnit.KW}
_HOURS_PER_LEAP_YEAR: Final = 8784
MOST_WINDOWS: Final = 10_000
"""Maximum number of windows of all price periods of a tariff."""


def check_tariff(tariff: Tariff) -> None:
    """Raises the first fault of ``tariff`` as a :class:`PlanningError` that points at it.

    Codes: ``TIME_ZONE_UNKNOWN``, ``TARIFF_REVISIONS``, ``TARIFF_VALUE`` (a number out of its range),
    ``CHARGE_NAME``, ``CHARGE_UNKNOWN``, ``CHARGE_KIND``, ``PRICE_PERIODS`` (none, or a name twice),
    ``PRICE_PERIODS_OVERLAP``, ``WINDOW``, ``LADDER``, ``RATCHET``, ``DEMAND_WINDOW``, ``PEAK_SET``,
    ``PRICES`` and ``TARIFF_TOO_COSTLY`` (more windows than are compared).
    """
    resolve_zone(tariff.time_zone)
    _check_number(tariff.secondary_loss_factor, "/secondary_loss_factor")
    _check_number(tariff.hours_of_use_minimum, "/hours_of_use_minimum")
    _require_that(bool(tariff.revisions), "TARIFF_REVISIONS", "/revisions", "a tariff has a revision")
    starts = [revision.effective_from for revision in tariff.revisions]
    for place, (before, after) in enumerate(pairwise(starts), 1):
        pointer = f"/revisions/{place}/effective_from"
        _require_that(before < after, "TARIFF_REVISIONS", pointer, "revisions are in order of time")
    _check_windows(tariff)
    for place, revision in enumerate(tariff.revisions):
        _check_revision(tariff, revision, f"/revisions/{place}/charges")


def _check_windows(tariff: Tariff) -> None:
    """Refuses a tariff with more windows than are compared."""
    count = sum(
        len(period.windows)
        for revision in tariff.revisions
        for charge in revision.charges
        if isinstance(charge, EnergyCharge | DemandCharge)
        for period in charge.periods
    )
    detail = f"its price periods have {count:,} windows, and at most {MOST_WINDOWS:,} are compared"
    _require_that(count <= MOST_WINDOWS, "TARIFF_TOO_COSTLY", "/revisions", detail)


def _require_that(holds: object, code: str, pointer: str, detail: str) -> None:
    if not holds:
        raise PlanningError(code, pointer, detail)


def _check_number(value: float, pointer: str, *, least: float = 0.0) -> None:
    detail = f"a finite number of at least {least:g} is needed"
    _require_that(isfinite(value) and value >= least, "TARIFF_VALUE", pointer, detail)


def _check_price(price: Decimal, pointer: str) -> None:
    _require_that(price.is_finite(), "TARIFF_VALUE", pointer, "a price is a finite number")


def _check_months(months: Collection[int], pointer: str) -> None:
    _require_that(months and set(months) <= MONTHS, "TARIFF_VALUE", pointer, "months are some of 1 to 12")


def _check_revision(tariff: Tariff, revision: TariffRevision, pointer: str) -> None:
    before: dict[str, TariffCharge] = {}
    for place, charge in enumerate(revision.charges):
        here = f"{pointer}/{place}"
        _require_that(charge.name, "CHARGE_NAME", f"{here}/name", "a charge has a name")
        _require_that(
            charge.name not in before, "CHARGE_NAME", f"{here}/name", "another charge has this name"
        )
        _check_months(charge.months, f"{here}/months")
        _check_number(charge.hours_of_use_from, f"{here}/hours_of_use_from")
        if charge.hours_of_use_below is not None:
            least = charge.hours_of_use_from
            _check_number(charge.hours_of_use_below, f"{here}/hours_of_use_below", least=least)
        for kind, checks in _CHECKS.items():
            if isinstance(charge, kind):
                checks(charge, here)
                break
        else:
            raise PlanningError("CHARGE_KIND", here, "this kind of charge is not known")
        if isinstance(charge, EnergyCharge | DemandCharge):
            _check_overlap(charge.periods, f"{here}/periods", holidays=bool(tariff.holidays))
        if isinstance(charge, MinimumCharge | PercentageCharge):
            for number, name in enumerate(charge.of):
                known = name in before
                _require_that(
                    known, "CHARGE_UNKNOWN", f"{here}/of/{number}", "no charge before it has this name"
                )
        before[charge.name] = charge
    demands = {name for name, charge in before.items() if isinstance(charge, DemandCharge)}
    for place, charge in enumerate(revision.charges):
        if isinstance(charge, EnergyCharge) and charge.billing_demand_of is not None:
            here = f"{pointer}/{place}/billing_demand_of"
            _require_that(
                charge.billing_demand_of in demands, "CHARGE_UNKNOWN", here, "no such demand charge"
            )


def _check_fixed(charge: FixedCharge, here: str) -> None:
    _check_price(charge.price, f"{here}/price")
    _check_number(charge.meters, f"{here}/meters", least=1)


def _check_energy(charge: EnergyCharge, here: str) -> None:
    _check_periods(charge.periods, f"{here}/periods", _check_energy_ladder)


def _check_demand(charge: DemandCharge, here: str) -> None:
    _check_periods(charge.periods, f"{here}/periods", _check_demand_ladder)
    _check_window_minutes(charge.window_minutes, f"{here}/window_minutes")
    _check_number(charge.peaks, f"{here}/peaks", least=1)
    rolls = not charge.rolling or charge.window_minutes is not None
    _require_that(rolls, "DEMAND_WINDOW", f"{here}/window_minutes", "a rolling window has a length")
    if charge.minimum is not None:
        _check_price(charge.minimum, f"{here}/minimum")
    names = {period.name for period in charge.periods}
    _check_billing_demand(charge.billing_demand, names, f"{here}/billing_demand")


def _check_billing_demand(rule: BillingDemand, names: Collection[str], here: str) -> None:
    _check_number(rule.minimum_kw, f"{here}/minimum_kw")
    _check_number(rule.contract_kw, f"{here}/contract_kw")
    _check_number(rule.apparent_power_share, f"{here}/apparent_power_share")
    threshold = rule.power_factor_threshold
    fits = threshold is None or 0.0 < threshold <= 1.0
    _require_that(fits, "TARIFF_VALUE", f"{here}/power_factor_threshold", "above 0 and at most 1")
    valid = set(rule.own_peak_months) <= MONTHS
    _require_that(valid, "TARIFF_VALUE", f"{here}/own_peak_months", "months are 1 to 12")
    for place, ratchet in enumerate(rule.ratchets):
        _check_ratchet(ratchet, names, f"{here}/ratchets/{place}")


def _check_ratchet(ratchet: DemandRatchet, names: Collection[str], here: str) -> None:
    for name, shares in (
        ("share_by_billing_month", ratchet.share_by_billing_month),
        ("share_by_peak_month", ratchet.share_by_peak_month),
    ):
        fits = len(shares) == len(MONTHS) and all(isfinite(share) and share >= 0.0 for share in shares)
        _require_that(fits, "RATCHET", f"{here}/{name}", "twelve shares of at least 0")
    if ratchet.preceding_months is not None:
        _check_number(ratchet.preceding_months, f"{here}/preceding_months")
    if ratchet.peak_months is not None:
        _check_months(ratchet.peak_months, f"{here}/peak_months")
    earlier = ratchet.preceding_months or (ratchet.preceding_months is None and ratchet.peak_months)
    looks = earlier or ratchet.within_billing_month
    _require_that(looks, "RATCHET", here, "a ratchet names the months that it looks back on")
    named = [*ratchet.raises, *([] if ratchet.period is None else [ratchet.period])]
    _require_that(set(named) <= set(names), "RATCHET", here, "no price period of the charge has this name")


def _check_window_minutes(minutes: int | None, here: str) -> None:
    fits = minutes is None or (minutes > 0 and DAY_MINUTES % minutes == 0)
    _require_that(fits, "DEMAND_WINDOW", here, "a demand window divides the day")


def _check_periods(
    periods: Sequence[PricePeriod], here: str, check_ladder: Callable[[Sequence[PriceTier], str], None]
) -> None:
    _require_that(periods, "PRICE_PERIODS", here, "a charge has a price period")
    names = set()
    for place, period in enumerate(periods):
        at = f"{here}/{place}"
        _require_that(period.name not in names, "PRICE_PERIODS", f"{at}/name", "another period has this name")
        names.add(period.name)
        _require_that(period.windows, "WINDOW", f"{at}/windows", "a price period has a window")
        for number, window in enumerate(period.windows):
            _check_window(window, f"{at}/windows/{number}")
        _require_that(period.tiers, "LADDER", f"{at}/tiers", "a price period has a tier")
        for number, tier in enumerate(period.tiers):
            _check_price(tier.price, f"{at}/tiers/{number}/price")
            if tier.limit is not None:
                _check_number(tier.limit, f"{at}/tiers/{number}/limit")
        check_ladder(period.tiers, f"{at}/tiers")


def _check_window(window: LocalTimeWindow, here: str) -> None:
    _check_months(window.months, f"{here}/months")
    days = set(window.weekdays) <= WEEKDAYS
    _require_that(days, "WINDOW", f"{here}/weekdays", "weekdays are 1 to 7")
    begins = 0 <= window.from_minute < DAY_MINUTES
    _require_that(begins, "WINDOW", f"{here}/from_minute", "a window begins at a minute of the day")
    _require_that(0 <= window.to_minute <= DAY_MINUTES, "WINDOW", f"{here}/to_minute", "0 to 1440")


def _check_rising_limits(tiers: Iterable[tuple[int, PriceTier]], here: str) -> None:
    highest = 0.0
    for place, tier in tiers:
        limit = inf if tier.limit is None else tier.limit
        _require_that(limit > highest, "LADDER", f"{here}/{place}/limit", "the limits of a ladder rise")
        highest = limit


def _check_energy_ladder(tiers: Sequence[PriceTier], here: str) -> None:
    for place, tier in enumerate(tiers):
        known = tier.unit in _ENERGY_UNITS
        _require_that(known, "LADDER", f"{here}/{place}/unit", "energy is tiered by kWh or by hours of use")
    _check_rising_limits([(place, tier) for place, tier in enumerate(tiers) if tier.unit in OF_DEMAND], here)
    for of_demand, run in groupby(enumerate(tiers), lambda pair: pair[1].unit in OF_DEMAND):
        if not of_demand:
            _check_rising_limits(run, here)
    ends = list_energy_reaches(tiers, 1.0, 1.0)[-1].high == inf
    _require_that(ends, "LADDER", f"{here}/{len(tiers) - 1}/limit", "a ladder prices all that is used")


def _check_demand_ladder(tiers: Sequence[PriceTier], here: str) -> None:
    for place, tier in enumerate(tiers):
        known = tier.unit in {TariffTierUnit.KW, TariffTierUnit.KWH}
        _require_that(known, "LADDER", f"{here}/{place}/unit", "demand is tiered by kW")
    _check_rising_limits(enumerate(tiers), here)
    _require_that(
        tiers[-1].limit is None, "LADDER", f"{here}/{len(tiers) - 1}/limit", "the last tier has no limit"
    )


def _check_overlap(periods: Sequence[PricePeriod], here: str, *, holidays: bool) -> None:
    """Refuses two price periods that share a minute of any possible day, after any other day."""
    if len(periods) == 1:
        return
    days, slots = _build_day_kinds(holidays=holidays), list_boundary_minutes(periods)
    covered = np.zeros((days.number // 2 + 1, (len(slots) + 7) // 8), np.uint8)
    for place, period in enumerate(periods):
        mine = _find_covered_slots(period, days, slots)
        _require_that(
            not (covered & mine).any(),
            "PRICE_PERIODS_OVERLAP",
            f"{here}/{place}/windows",
            "price periods of a charge share hours",
        )
        covered |= mine


@cache
def _build_day_kinds(*, holidays: bool) -> LocalDays:
    """Builds days of which every other is one of each kind, after one of each kind that can precede it."""
    free = (False, True) if holidays else (False,)
    kinds = [
        (month - crosses, weekday - 1 or 7, before, month, weekday, today)
        for month, crosses, weekday, before, today in product(
            range(to_month_key(1970, 1), to_month_key(1971, 1)), (0, 1), sorted(WEEKDAYS), free, free
        )
    ]
    pairs = np.array(kinds).reshape(-1, 3)
    return LocalDays(0, pairs[:, 0], pairs[:, 0] % 12 + 1, pairs[:, 1], pairs[:, 2].astype(np.bool_))


def _find_covered_slots(period: PricePeriod, days: LocalDays, slots: Sequence[int]) -> NDArray[np.uint8]:
    """Returns whether each slot of every other day is within a window of the period, eight slots per byte.

    Windows of one kind (months, weekdays, holidays) begin on the same days, so that each kind is placed once.
    """
    place = {minute: slot for slot, minute in enumerate(slots)} | {DAY_MINUTES: len(slots)}
    kinds: dict[tuple[object, ...], tuple[LocalTimeWindow, BooleanArray, BooleanArray]] = {}
    for one in period.windows:
        none = np.zeros((2, len(slots)), np.bool_)
        _, today, after = kinds.setdefault((one.months, one.weekdays, one.holidays), (one, *none))
        begins, ends = place[one.from_minute], place[one.to_minute]
        if one.to_minute > one.from_minute:
            today[begins:ends] = True
        else:
            today[begins:] = True
            after[:ends] = True
    found = np.zeros((days.number // 2 + 1, (len(slots) + 7) // 8), np.uint8)
    for one, today, after in kinds.values():
        starts = find_window_days(one, days)
        found[starts[1::2]] |= np.packbits(today)
        found[starts[::2]] |= np.packbits(after)
    return found


def _check_market(charge: RealTimeCharge, here: str) -> None:
    _check_price(charge.adder, f"{here}/adder")
    _check_price(charge.factor, f"{here}/factor")
    prices = charge.prices
    aware = prices.start.utcoffset() is not None
    _require_that(aware, "PRICES", f"{here}/prices/start", "a start needs its offset from UTC")
    lasts = prices.interval_minutes >= 1
    _require_that(lasts, "PRICES", f"{here}/prices/interval_minutes", "an interval lasts at least a minute")
    values = np.asarray(prices.values)
    _require_that(values.ndim == 1 and len(values), "PRICES", f"{here}/prices/values", "there is no price")


def _check_coincident(charge: CoincidentPeakCharge, here: str) -> None:
    _require_that(charge.sets, "PEAK_SET", f"{here}/sets", "a charge has a set of peaks")
    for place, one in enumerate(charge.sets):
        at = f"{here}/sets/{place}"
        if one.price is not None:
            _check_price(one.price, f"{at}/price")
        ways = [bool(one.hours_of_year), bool(one.starts), one.given > 0]
        _require_that(sum(ways) == 1, "PEAK_SET", at, "peaks are named by hour, by start or by number")
        hours = all(1 <= hour <= _HOURS_PER_LEAP_YEAR for hour in one.hours_of_year)
        _require_that(hours, "PEAK_SET", f"{at}/hours_of_year", "hours of a year are 1 to 8784")
        aware = all(start.utcoffset() is not None for start in one.starts)
        _require_that(aware, "PEAK_SET", f"{at}/starts", "a start needs its offset from UTC")
        if one.interval_minutes is not None:
            _check_number(one.interval_minutes, f"{at}/interval_minutes", least=1)


def _check_overrun(charge: OverrunCharge, here: str) -> None:
    _check_price(charge.price, f"{here}/price")
    _check_number(charge.contract_kw, f"{here}/contract_kw")
    _check_number(charge.tolerance, f"{here}/tolerance")
    _check_window_minutes(charge.window_minutes, f"{here}/window_minutes")


def _check_reactive(charge: ReactiveCharge, here: str) -> None:
    _check_price(charge.price, f"{here}/price")
    _check_number(charge.free_share_of_active, f"{here}/free_share_of_active")


def _check_minimum(charge: MinimumCharge, here: str) -> None:
    _check_price(charge.amount, f"{here}/amount")


def _check_percentage(charge: PercentageCharge, here: str) -> None:
    _check_price(charge.percent, f"{here}/percent")


_CHECKS: Final[dict[type[TariffCharge], Callable[..., None]]] = {
    FixedCharge: _check_fixed,
    EnergyCharge: _check_energy,
    RealTimeCharge: _check_market,
    DemandCharge: _check_demand,
    OverrunCharge: _check_overrun,
    CoincidentPeakCharge: _check_coincident,
    ReactiveCharge: _check_reactive,
    MinimumCharge: _check_minimum,
    PercentageCharge: _check_percentage,
}
