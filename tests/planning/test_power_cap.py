"""Power caps: against clocks and limits that were set on real devices, and what follows from any."""

import csv
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.energy.power import DeviceWork, mean_device_watts
from service.planning.energy.power_cap import apply_power_cap
from service.planning.errors import PlanningError
from tests.asking import shipped

# Zeus (You et al. 2023) and Perseus (Chung et al. 2024) publish them: ml-energy/zeus, Apache-2.0. Work whose
# time the multipliers set; watts before are the most that it draws, at the highest clock.
with (Path(__file__).parents[1] / "data" / "power_capping.csv").open() as file:
    ROWS = list(csv.DictReader(file))
LIMIT = 700.0


def rates():
    return shipped().curves.calibration.power.get_rates("hopper")


def slowdown(row):
    limit = float(row["watts_before"])
    return apply_power_cap([DeviceWork(1.0, 1.0, 1.0)], float(row["watts"]), limit, rates()).slowdown


def error(row):
    return slowdown(row) / float(row["slowdown"]) - 1


@pytest.mark.parametrize(
    ("device", "typical", "worst"),
    [("A100 SXM", 0.011, 0.021), ("V100", 0.017, 0.096), ("A40", 0.011, 0.141)],
)
def test_the_time_that_was_measured(device, typical, worst):
    """The voltage of A100 is what the model was made of; the other two never entered it."""
    errors = [abs(error(row)) for row in ROWS if row["device"] == device]
    assert median(errors) < typical
    assert max(errors) < worst


def test_down_to_two_thirds_of_the_power_it_is_within_four_percent():
    rows = [row for row in ROWS if float(row["watts"]) / float(row["watts_before"]) > 0.66]
    assert {row["device"] for row in rows} == {"A100 SXM", "V100", "A40"}
    assert max(abs(error(row)) for row in rows) < 0.04


def test_a_third_less_power_costs_a_sixth_more_time():
    """(0.667 - 0.1) / 0.9 = 0.63 of the dynamic power; its cube root is the clock: 0.857."""
    run = apply_power_cap([DeviceWork(1.0, 1.0, 1.0)], LIMIT * 2 / 3, LIMIT, rates())
    assert run.clock == pytest.approx(((2 / 3 - 0.1) / 0.9) ** (1 / 3), rel=1e-6)
    assert run.slowdown == pytest.approx(1 / run.clock)
    assert run.watts == pytest.approx(LIMIT * 2 / 3)


works = st.builds(
    lambda seconds, busy, matrix, rate: DeviceWork(
        seconds, seconds * busy, seconds * busy * matrix, seconds * busy * rate
    ),
    st.floats(0.01, 10),
    st.floats(0.1, 1),
    st.floats(0.01, 1),
    st.floats(0, 3e12),
)


@given(st.lists(works, min_size=1, max_size=4), st.floats(0.55, 1.0), st.floats(0.55, 1.0))
def test_less_power_is_never_faster_and_never_more_watts(parts, first, second):
    lower, higher = sorted((first, second))
    tight, loose = (apply_power_cap(parts, LIMIT * share, LIMIT, rates()) for share in (lower, higher))
    assert tight.slowdown >= loose.slowdown - 1e-9 >= 1.0 - 2e-9
    assert tight.watts <= loose.watts * (1 + 1e-9)
    assert tight.watts <= LIMIT * lower * (1 + 1e-9)


@given(st.lists(works, min_size=1, max_size=4))
def test_a_cap_at_the_limit_changes_nothing(parts):
    run = apply_power_cap(parts, LIMIT, LIMIT, rates())
    assert run.slowdown == 1.0
    assert run.watts == pytest.approx(mean_device_watts(parts, LIMIT, rates()))


def test_bytes_are_moved_as_fast_as_before():
    moving = DeviceWork(1.0, 1.0, 0.0, 3e12)
    multiplying = DeviceWork(1.0, 1.0, 1.0)
    assert apply_power_cap([moving, multiplying], 400.0, LIMIT, rates()).slowdown < (
        apply_power_cap([multiplying], 400.0, LIMIT, rates()).slowdown
    )


def test_who_waits_for_others_waits_longer():
    multiplying, waiting = DeviceWork(1.0, 1.0, 1.0), DeviceWork(0.5, 0.5)
    alone = apply_power_cap([multiplying], 400.0, LIMIT, rates())
    assert apply_power_cap([multiplying, waiting], 400.0, LIMIT, rates()).slowdown == pytest.approx(
        alone.slowdown
    )


def test_a_cap_below_what_the_device_draws_at_any_clock_is_refused():
    with pytest.raises(PlanningError) as caught:
        apply_power_cap([DeviceWork(1.0, 1.0, 1.0)], LIMIT * 0.1, LIMIT, rates())
    assert (caught.value.code, caught.value.pointer) == ("POWER_CAP_TOO_LOW", "/power_cap")


def test_the_rows_fall_with_the_power():
    for _, rows in groupby(ROWS, key=lambda row: (row["device"], row["work"])):
        for before, after in pairwise(rows):
            assert float(after["watts"]) < float(before["watts"])
            assert float(after["slowdown"]) > float(before["slowdown"])
