"""Carbon in time, by contract and of machines, against figures worked out by hand or published."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.energy.carbon import (
    ContractedSupply,
    HoursOfYearIntensity,
    IntervalIntensity,
    MonthHoursIntensity,
    compute_emissions,
    embodied_kg_co2e,
    household_months,
    market_based_kg_co2e,
    sample_intensities,
    software_carbon_intensity,
)
from service.planning.tariff.bill import MeteredLoad

CHICAGO, STOCKHOLM = ZoneInfo("America/Chicago"), ZoneInfo("Europe/Stockholm")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
RISING = np.arange(8760) / 1000.0


def load(start, kw, minutes=60):
    return MeteredLoad(start, minutes, np.asarray(kw, dtype=float))


def test_an_hour_of_the_year_is_that_of_its_clock():
    """06:00 UTC on 1 January is the first hour of the year in Chicago."""
    rates = sample_intensities(
        HoursOfYearIntensity(CHICAGO, RISING), load(NEW_YEAR + timedelta(hours=6), [1.0] * 3)
    )
    assert rates == pytest.approx([0.0, 0.001, 0.002])


def test_quarters_take_their_hour():
    rates = sample_intensities(
        HoursOfYearIntensity(CHICAGO, RISING), load(NEW_YEAR + timedelta(hours=6), [1.0] * 8, 15)
    )
    assert rates == pytest.approx([0.0] * 4 + [0.001] * 4)


def test_the_last_day_of_february_stands_for_the_one_of_a_leap_year():
    start = datetime(2028, 2, 28, tzinfo=UTC)
    rates = sample_intensities(HoursOfYearIntensity(ZoneInfo("UTC"), RISING), load(start, [1.0] * 72))
    of_day = 58 * 24 / 1000
    assert rates[0] == rates[24] == pytest.approx(of_day)
    assert rates[48] == pytest.approx(of_day + 0.024)
    last = sample_intensities(
        HoursOfYearIntensity(ZoneInfo("UTC"), RISING), load(datetime(2028, 12, 31, 23, tzinfo=UTC), [1.0])
    )
    assert last == pytest.approx([8.759])


def test_the_clock_of_summer_moves_the_hour_and_no_energy():
    """01:00 UTC is 02:00 in Stockholm in winter and 03:00 in summer."""
    table = np.tile(np.arange(24) / 10.0, (12, 1))
    winter, summer = (
        sample_intensities(
            MonthHoursIntensity(STOCKHOLM, table), load(datetime(2026, month, 1, 1, tzinfo=UTC), [1.0])
        )
        for month in (1, 7)
    )
    assert (winter, summer) == (pytest.approx([0.2]), pytest.approx([0.3]))


def test_a_table_of_months_changes_at_local_midnight():
    table = np.repeat(np.arange(1.0, 13.0)[:, None], 24, axis=1)
    rates = sample_intensities(
        MonthHoursIntensity(CHICAGO, table), load(datetime(2026, 5, 1, 4, tzinfo=UTC), [1.0, 1.0])
    )
    assert rates == pytest.approx([4.0, 5.0])


def test_intervals_are_those_of_their_time_and_no_other():
    series = IntervalIntensity(NEW_YEAR, 30, np.array([0.1, 0.2, 0.3]))
    rates = sample_intensities(series, load(NEW_YEAR - timedelta(minutes=30), [1.0] * 6, 30))
    assert np.isnan(rates[[0, 4, 5]]).all()
    assert rates[1:4] == pytest.approx([0.1, 0.2, 0.3])
    found = compute_emissions(series, load(NEW_YEAR, [2.0, 4.0, 6.0, 8.0], 30))
    assert found.kg_co2e == pytest.approx(1.0 * 0.1 + 2.0 * 0.2 + 3.0 * 0.3)
    assert found.covered_share == pytest.approx(6.0 / 10.0)


def test_half_of_the_hours_at_each_of_two_rates_by_hand():
    """10 kW for an hour at 0.5 and one at 0.1 kg/kWh."""
    found = compute_emissions(
        IntervalIntensity(NEW_YEAR, 60, np.array([0.5, 0.1])), load(NEW_YEAR, [10.0, 10.0])
    )
    assert found == (pytest.approx(6.0), 1.0)


@given(st.lists(st.floats(0.0, 1e4), min_size=1, max_size=48), st.floats(0.0, 2.0))
def test_a_constant_series_is_its_mean(kw, rate):
    found = compute_emissions(HoursOfYearIntensity(CHICAGO, np.full(8760, rate)), load(NEW_YEAR, kw))
    assert found.kg_co2e == pytest.approx(sum(kw) * rate)
    assert found.covered_share == pytest.approx(1.0)


def test_nothing_drawn_is_nothing_emitted():
    assert compute_emissions(
        IntervalIntensity(NEW_YEAR, 60, np.array([0.5])), load(NEW_YEAR, [0.0, 0.0])
    ) == (
        0.0,
        1.0,
    )


@given(st.lists(st.floats(0.0, 0.2), max_size=5), st.floats(0.0, 1.0), st.floats(0.0, 1e6))
def test_contracts_and_the_rest_are_all_of_the_energy(shares, rate, kwh):
    """Where all of it has one intensity, it does not matter by whom it was sold."""
    supplies = [ContractedSupply(share, rate) for share in shares]
    assert market_based_kg_co2e(kwh, supplies, rate) == pytest.approx(kwh * rate)


def test_a_contract_of_60_percent():
    """100 kWh, 60% of wind at nothing, the rest at a residual mix of 0.5."""
    assert market_based_kg_co2e(100.0, [ContractedSupply(0.6, 0.0)], 0.5) == pytest.approx(20.0)


def test_bloom():
    """1,082,990 hours of A100: 150 kg each and an eighth of 2,500 kg, six years at 85%. Published: 11.2 t."""
    found = embodied_kg_co2e(1_082_990.0, 150.0 + 2_500.0 / 8.0, 6.0, 0.85)
    assert found == pytest.approx(11_200.0, rel=0.005)


def test_a_rate_is_both_over_its_units():
    assert software_carbon_intensity(30.0, 10.0, 8.0) == 5.0


def test_household_months_of_the_notes():
    """33,055.6 kWh of the 7B run are 36.73 months at 900 kWh."""
    assert household_months(33_055.6) == pytest.approx(36.73, abs=0.005)
