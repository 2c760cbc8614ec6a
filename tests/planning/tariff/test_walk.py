"""The engine against a walk over the minutes of a load, written as the words of a window say it."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.charges import (
    DemandCharge,
    EnergyCharge,
    HolidayTreatment,
    LocalTimeWindow,
    PricePeriod,
    PriceTier,
)
from tests.planning.tariff.loads import tariff

STEP = 5
ZONES = ("Etc/UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe")
HOLIDAYS = frozenset({date(2024, 3, 30), date(2024, 4, 1), date(2024, 10, 25), date(2024, 11, 4)})
ONE = (PriceTier(price=Decimal(1)),)

windows = st.builds(
    LocalTimeWindow,
    months=st.sampled_from((frozenset({3, 10}), frozenset({4, 11}), frozenset(range(1, 13)))),
    weekdays=st.frozensets(st.integers(1, 7), min_size=1),
    from_minute=st.integers(0, 287).map(lambda step: step * STEP),
    to_minute=st.integers(0, 288).map(lambda step: step * STEP),
    holidays=st.sampled_from(HolidayTreatment),
)


@st.composite
def loads(draw):
    """Up to nine days around a change of the clock or anywhere else in 2024."""
    minutes = draw(st.sampled_from((5, 15, 60)))
    day = draw(st.sampled_from((date(2024, 3, 27), date(2024, 10, 24), date(2024, 10, 30), date(2024, 4, 4))))
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) + STEP * timedelta(
        minutes=draw(st.integers(0, 500))
    )
    count = draw(st.integers(1, 9 * 24 * 60 // minutes))
    kw = np.random.default_rng(draw(st.integers(0, 2**32))).integers(1, 1000, count)
    return MeteredLoad(start, minutes, kw.astype(float))


def begins_on(window, day):
    if day.month not in window.months:
        return False
    if day in HOLIDAYS and window.holidays is not HolidayTreatment.AS_WEEKDAY:
        return window.holidays is HolidayTreatment.INCLUDED
    return day.isoweekday() in window.weekdays


def is_inside(window, local):
    minute, today = local.hour * 60 + local.minute, local.date()
    if window.to_minute > window.from_minute:
        return begins_on(window, today) and window.from_minute <= minute < window.to_minute
    evening = begins_on(window, today) and minute >= window.from_minute
    return evening or (begins_on(window, today - timedelta(days=1)) and minute < window.to_minute)


def walk(load, zone, inside):
    """Energy by month, and the peak by month with the start of its interval."""
    energy, peaks = {}, {}
    for place, kw in enumerate(load.kw):
        start = load.start + timedelta(minutes=place * load.interval_minutes)
        for minute in range(0, load.interval_minutes, STEP):
            local = (start + timedelta(minutes=minute)).astimezone(zone)
            if any(is_inside(window, local) for window in inside):
                month = (local.year, local.month)
                energy[month] = energy.get(month, 0.0) + kw * STEP / 60
                if kw > peaks.get(month, (0.0, None))[0]:
                    peaks[month] = (kw, start)
    return energy, peaks


@settings(max_examples=60, deadline=None)
@given(st.lists(windows, min_size=1, max_size=3), loads(), st.sampled_from(ZONES))
def test_energy_and_peaks_are_those_of_a_walk_over_the_minutes(inside, load, zone):
    periods = (PricePeriod(name="inside", tiers=ONE, windows=tuple(inside)),)
    charges = (EnergyCharge(name="energy", periods=periods), DemandCharge(name="demand", periods=periods))
    found = compute_bill(tariff(*charges, zone=zone, holidays=HOLIDAYS), load)
    energy, peaks = {}, {}
    for period in found.periods:
        month = (period.period.start.year, period.period.start.month)
        for line in period.lines:
            if line.charge == "energy":
                energy[month] = line.quantity
            else:
                peaks[month] = (line.quantity, line.peak_at.astimezone(UTC))
    expected_energy, expected_peaks = walk(load, ZoneInfo(zone), inside)
    assert energy == {month: pytest.approx(kwh, rel=1e-12) for month, kwh in expected_energy.items()}
    assert peaks == expected_peaks
