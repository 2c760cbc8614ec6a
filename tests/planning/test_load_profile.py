"""A run in time: what the meter counts is what the phases draw, whatever the clock and its intervals."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.energy.load_profile import (
    INTERVAL_MINUTES,
    EquipmentPower,
    LoadProfile,
    PhaseName,
    PowerCycle,
    PowerPause,
    PowerPhase,
    TimeUse,
    build_daily_parts,
    build_load_series,
    build_regular_pauses,
    build_run_parts,
    equipment_kwh,
    facility_kwh,
    it_kwh,
    peak_kw,
    phase_shares,
)
from service.planning.errors import PlanningError

DRAWS = EquipmentPower(working=(5_600.0, 1_400.0), waiting=(1_000.0, 700.0))
NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)
SEASONS = (1.1, 1.1, 1.12, 1.14, 1.18, 1.25, 1.3, 1.3, 1.22, 1.15, 1.12, 1.1)
ZONES = st.sampled_from(
    [UTC, ZoneInfo("Europe/Stockholm"), ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata")]
)
STARTS = st.builds(
    lambda second, zone: (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).astimezone(zone),
    st.integers(0, 365 * 86_400),
    ZONES,
)
SPENT = st.builds(
    TimeUse,
    working=st.floats(1.0, 3e6),
    checkpoints=st.floats(0.0, 1e5),
    restarts=st.floats(0.0, 1e5),
    interval=st.floats(10.0, 1e5),
    failures=st.floats(0.0, 300.0),
)
PAUSES = st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(1.0, 1e5), st.floats(0.0, 1e4)), max_size=4)


def paused(drawn):
    after, found = 0.0, []
    for gap, seconds, watts in drawn:
        after += gap
        found.append(PowerPause(after, PowerPhase(PhaseName.MAINTENANCE, seconds, (watts, 0.0))))
        after += seconds
    return tuple(found)


def profile(spent, pauses=(), pue=(1.12,)):
    return LoadProfile(("accelerators", "hosts"), build_run_parts(spent, DRAWS), pue, pauses)


@given(SPENT, PAUSES, STARTS, st.sampled_from(INTERVAL_MINUTES), st.sampled_from([(1.12,), SEASONS]))
def test_the_series_holds_the_energy_of_the_run_and_no_interval_is_above_its_peak(
    spent, drawn, starts_at, minutes, pue
):
    run = profile(spent, paused(drawn), pue)
    load = build_load_series(run, starts_at, minutes)
    assert load.kw.sum() * minutes / 60 == pytest.approx(facility_kwh(run, starts_at), rel=1e-12)
    assert (load.kw >= 0.0).all()
    assert load.kw.max() <= peak_kw(run, starts_at) * (1 + 1e-9)
    assert load.start <= starts_at < load.start + timedelta(minutes=minutes)
    local = load.start.astimezone(starts_at.tzinfo)
    assert (local.hour * 60 + local.minute) % minutes == local.second == local.microsecond == 0
    ends = load.start + timedelta(minutes=minutes) * len(load.kw)
    assert (
        ends
        >= starts_at.astimezone(UTC) + timedelta(seconds=run.elapsed_seconds)
        > ends - timedelta(minutes=minutes, seconds=1)
    )


@given(SPENT, PAUSES)
def test_equipment_and_phases_add_up_to_the_run(spent, drawn):
    run = profile(spent, paused(drawn))
    assert sum(equipment_kwh(run).values()) == pytest.approx(it_kwh(run), rel=1e-12)
    shares = phase_shares(run)
    assert sum(share.it_kwh for share in shares.values()) == pytest.approx(it_kwh(run), rel=1e-9)
    assert sum(share.seconds for share in shares.values()) == pytest.approx(run.elapsed_seconds, rel=1e-9)
    assert shares[PhaseName.STEADY].seconds == pytest.approx(spent.working, rel=1e-9)
    assert facility_kwh(run) == pytest.approx(1.12 * it_kwh(run), rel=1e-12)


@given(SPENT, STARTS)
def test_whatever_the_interval_the_energy_is_the_same(spent, starts_at):
    run = profile(spent, pue=SEASONS)
    energies = [build_load_series(run, starts_at, minutes).kw.sum() * minutes for minutes in INTERVAL_MINUTES]
    assert energies == pytest.approx([energies[0]] * 4, rel=1e-11)


def test_an_interval_by_hand():
    """Ten minutes at 7 kW and five at 1.7 kW, from 12:05: work in 10 of the first 15 minutes."""
    parts = (
        PowerPhase(PhaseName.STEADY, 600.0, DRAWS.working),
        PowerPhase(PhaseName.CHECKPOINT, 300.0, DRAWS.waiting),
    )
    load = build_load_series(
        LoadProfile(("accelerators", "hosts"), parts, (1.2,)), NOON + timedelta(minutes=5), 15
    )
    assert load.start == NOON
    assert load.kw == pytest.approx([1.2 * 7.0 * 10 / 15, 1.2 * 1.7 * 5 / 15])


def test_a_cycle_is_its_parts_one_after_another():
    spent = TimeUse(
        working=7 * 3_000.0, checkpoints=7 * 100.0, restarts=600.0, interval=3_000.0, failures=1.0
    )
    run = profile(spent)
    listed = []
    for _ in range(7):
        listed.append(PowerPhase(PhaseName.STEADY, 3_000.0, DRAWS.working))
        listed.append(PowerPhase(PhaseName.CHECKPOINT, 100.0, DRAWS.waiting))
    listed.append(PowerPhase(PhaseName.RESTART, 600.0, DRAWS.waiting))
    same = run._replace(parts=tuple(listed))
    assert build_load_series(run, NOON, 5).kw == pytest.approx(build_load_series(same, NOON, 5).kw, rel=1e-12)


def test_checkpoints_longer_than_an_interval_show_and_shorter_ones_do_not():
    long = profile(TimeUse(working=36_000.0, checkpoints=9_000.0, interval=9_000.0))
    kw = build_load_series(long, NOON, 15).kw
    assert kw.max() == pytest.approx(peak_kw(long), rel=1e-12)
    assert kw.min() == pytest.approx(1.7 * 1.12)
    short = profile(TimeUse(working=36_000.0, checkpoints=900.0, interval=100.0))
    assert build_load_series(short, NOON, 15).kw.max() < peak_kw(short)


def test_a_maintenance_window_stops_the_run_and_moves_its_end():
    window = PowerPhase(PhaseName.MAINTENANCE, 4 * 3_600.0, (0.0, 400.0))
    pauses = build_regular_pauses(7 * 86_400.0, window, 20 * 86_400.0, first_after_seconds=86_400.0)
    run = profile(TimeUse(working=20 * 86_400.0), pauses)
    assert len(pauses) == 3
    assert run.elapsed_seconds == 20 * 86_400.0 + 3 * 4 * 3_600.0
    kw = build_load_series(run, NOON, 60).kw
    assert kw[24:28] == pytest.approx([0.4 * 1.12] * 4)
    assert kw[28] == pytest.approx(7.0 * 1.12)
    late = run._replace(pauses=(*pauses, PowerPause(99 * 86_400.0, window)))
    assert late.elapsed_seconds == run.elapsed_seconds


def test_the_effectiveness_of_each_month_counts_from_its_local_midnight():
    """From 12:00 UTC on 31 May, 14:00 in Stockholm: 10 hours of May, and 38 of June."""
    starts_at = datetime(2026, 5, 31, 14, tzinfo=ZoneInfo("Europe/Stockholm"))
    run = profile(TimeUse(working=48 * 3_600.0), pue=SEASONS)
    assert facility_kwh(run, starts_at) == pytest.approx(7.0 * (10 * 1.18 + 38 * 1.25))
    assert peak_kw(run, starts_at) == pytest.approx(7.0 * 1.25)
    with pytest.raises(PlanningError) as refused:
        facility_kwh(run)
    assert (refused.value.code, refused.value.pointer) == ("STARTS_AT_REQUIRED", "/starts_at")


def test_daylight_saving_moves_no_energy():
    """Stockholm sets its clocks forward in the night to 29 March 2026."""
    starts_at = NOON.astimezone(ZoneInfo("Europe/Stockholm"))
    run = profile(TimeUse(working=24 * 3_600.0))
    here, there = build_load_series(run, starts_at, 60), build_load_series(run, NOON, 60)
    assert np.array_equal(here.kw, there.kw)
    assert here.start == there.start


def test_half_an_hour_of_a_zone_shifts_the_hours_of_its_meter():
    india = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert build_load_series(profile(TimeUse(working=7_200.0)), india, 60).start == NOON - timedelta(
        minutes=30
    )


def test_a_service_follows_the_hour_of_the_day():
    """From 06:30: half an hour of the seventh hour, then the eighth."""
    hours = [(100.0 * hour, 10.0) for hour in range(24)]
    parts = build_daily_parts(hours, 2 * 86_400.0, from_second_of_day=6.5 * 3_600.0)
    run = LoadProfile(("accelerators", "hosts"), parts)
    kw = build_load_series(run, datetime(2026, 1, 5, 6, 30, tzinfo=UTC), 30).kw
    assert kw[:4] == pytest.approx([0.61, 0.71, 0.71, 0.81])
    assert kw[:48] == pytest.approx(kw[48:])
    assert it_kwh(run) == pytest.approx(2 * sum(sum(watts) for watts in hours) / 1000)


def test_a_year_of_checkpoints_each_minute_needs_no_list_of_them():
    run = profile(
        TimeUse(working=365 * 86_400.0, checkpoints=5e5, restarts=1e5, interval=60.0, failures=2_000.0)
    )
    load = build_load_series(run, NOON, 15)
    assert load.kw.sum() / 4 == pytest.approx(facility_kwh(run), rel=1e-12)


def test_more_work_is_more_energy_and_longer_waits_are_too():
    spent = TimeUse(working=1e5, checkpoints=1e3, restarts=600.0, interval=1e4, failures=1.0)
    least = it_kwh(profile(spent))
    for member in ("working", "checkpoints", "restarts"):
        assert it_kwh(profile(spent._replace(**{member: getattr(spent, member) * 1.1}))) > least


@pytest.mark.parametrize("minutes", [0, 1, 7, 45, 1440])
def test_other_intervals_are_refused(minutes):
    with pytest.raises(PlanningError) as refused:
        build_load_series(profile(TimeUse(working=100.0)), NOON, minutes)
    assert refused.value.code == "INTERVAL_MINUTES"


def test_a_run_of_a_century_has_no_profile():
    with pytest.raises(PlanningError) as refused:
        build_load_series(profile(TimeUse(working=3.2e9)), NOON, 60)
    assert refused.value.code == "RUN_TOO_LONG"


def test_a_cycle_of_nothing_takes_no_time():
    nothing = PowerCycle((PowerPhase(PhaseName.IDLE, 0.0, (1.0,)),), 0.0)
    run = LoadProfile(("hosts",), (nothing, PowerPhase(PhaseName.STEADY, 3_600.0, (1_000.0,))))
    assert it_kwh(run) == pytest.approx(1.0)
