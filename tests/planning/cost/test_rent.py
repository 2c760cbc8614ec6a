"""Device-hours that are paid beside those that a run uses."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost import (
    billed_seconds,
    compute_commitment,
    count_blocks,
    count_paid_devices,
    estimate_interrupted_time,
    interruption_mtbf_seconds,
    replaced_share,
)
from service.planning.reliability.interruptions import RecoveryCosts, estimate_elapsed_time

HOURS = st.floats(0.01, 1e5)


@pytest.mark.parametrize(
    ("devices", "per_instance", "least", "paid"),
    [(5, 8, 1, 8), (8, 8, 1, 8), (9, 8, 1, 16), (3, 1, 1, 3), (5, 8, 4, 32)],
)
def test_instances_are_rented_whole(devices, per_instance, least, paid):
    assert count_paid_devices(devices, per_instance, least) == paid


@pytest.mark.parametrize(
    ("seconds", "increment", "minimum", "billed"),
    [
        (10.0, None, 0.0, 10.0),
        (10.0, None, 60.0, 60.0),
        (61.0, 60.0, 0.0, 120.0),
        (120.0, 60.0, 0.0, 120.0),
        (10.0, 3600.0, 60.0, 3600.0),
        (3700.0, 1.0, 60.0, 3700.0),
        # What a float leaves of an hour does not begin another one.
        (0.1 * 3 * 36000.0, 3600.0, 0.0, 10800.0),
    ],
)
def test_time_is_counted_in_increments_from_a_minimum(seconds, increment, minimum, billed):
    assert billed_seconds(seconds, increment=increment, minimum=minimum) == pytest.approx(billed)


@given(
    st.floats(1.0, 1e9), st.floats(1.0, 1e9), st.sampled_from([None, 1.0, 60.0, 3600.0]), st.floats(0, 1e5)
)
def test_more_time_is_never_billed_less(one, other, increment, minimum):
    less, more = sorted((one, other))
    shorter = billed_seconds(less, increment=increment, minimum=minimum)
    assert less <= shorter <= billed_seconds(more, increment=increment, minimum=minimum)


class TestCommitments:
    def test_without_other_use_whole_terms_are_paid(self):
        """A run of 1,000 hours under a year's commitment pays 7,766 idle hours; one of 9,000 two years."""
        assert compute_commitment(1000.0, 8766.0) == (7766.0, 1.0)
        assert compute_commitment(9000.0, 8766.0) == (2 * 8766.0 - 9000.0, 2.0)

    def test_with_an_idle_share_the_run_bears_its_part(self):
        """At a fifth idle, 800 of 1,000 hours are used: 400 used hours bear 100 idle ones and half a term."""
        idle, terms = compute_commitment(400.0, 1000.0, 0.2)
        assert (idle, terms) == pytest.approx((100.0, 0.5))

    @given(st.floats(1.0, 1e4))
    def test_a_term_that_is_used_whole_has_nothing_idle(self, hours):
        assert compute_commitment(hours, hours) == (0.0, 1.0)
        assert compute_commitment(hours, hours, 0.0) == (0.0, 1.0)

    @given(HOURS, HOURS, st.floats(1.0, 1e4), st.none() | st.floats(0.0, 0.9))
    def test_more_hours_never_bear_less(self, one, other, term, idle_share):
        less, more = (compute_commitment(hours, term, idle_share) for hours in sorted((one, other)))
        paid = [hours + found.idle for hours, found in zip(sorted((one, other)), (less, more), strict=True)]
        assert paid[0] <= paid[1] * (1 + 1e-12)
        assert less.terms <= more.terms


def test_blocks_are_paid_whole():
    assert [count_blocks(hours, 24.0) for hours in (0.5, 24.0, 24.1, 471.857)] == [1.0, 1.0, 2.0, 20.0]


class TestSpot:
    RECOVERY = RecoveryCosts(interval=1800.0, stall=20.0, mtbf=1e6, restart=600.0)

    def interrupted(self, mtbf, restart=600.0, **changes):
        return estimate_interrupted_time(
            1e6,
            self.RECOVERY._replace(**changes),
            mtbf=mtbf,
            restart=restart,
            fixed_interval=True,
        )

    def test_interruptions_of_any_instance_stop_the_run(self):
        """Eight instances, each interrupted every 50 hours: one every 6.25 hours."""
        assert interruption_mtbf_seconds(8, 0.02) == 22_500.0

    def test_two_causes_are_one_poisson_process(self):
        """Failures every 1e6 s and interruptions every 22,500 s come every 22,004.9 s together."""
        found = self.interrupted(22_500.0)
        both = 1 / (1 / 1e6 + 1 / 22_500)
        expected = estimate_elapsed_time(1e6, self.RECOVERY._replace(mtbf=both))
        assert found.elapsed.total == pytest.approx(expected.total)
        assert found.interruptions == pytest.approx(found.elapsed.failures * both / 22_500)

    def test_restarts_of_both_count_by_their_rate(self):
        found = self.interrupted(1e6, restart=0.0)
        alike = estimate_elapsed_time(1e6, self.RECOVERY._replace(mtbf=5e5, restart=300.0))
        assert found.elapsed.total == pytest.approx(alike.total)

    def test_the_best_interval_loses_least(self):
        """Daly's interval beats those around it."""
        recovery = RecoveryCosts(interval=1e6, stall=20.0)
        best = estimate_interrupted_time(1e6, recovery, mtbf=22_500.0, restart=600.0, fixed_interval=False)
        assert best.interval == pytest.approx(math.sqrt(2 * 20 * 22_500), rel=0.05)
        for factor in (0.5, 2.0):
            other = recovery._replace(interval=best.interval * factor)
            found = estimate_interrupted_time(1e6, other, mtbf=22_500.0, restart=600.0, fixed_interval=True)
            assert found.elapsed.total > best.elapsed.total

    @given(st.floats(1e4, 1e9), st.floats(1e4, 1e9))
    def test_more_interruptions_never_take_less_time(self, one, other):
        often, seldom = (self.interrupted(mtbf).elapsed.total for mtbf in sorted((one, other)))
        assert often >= seldom * (1 - 1e-12)
        assert seldom >= estimate_elapsed_time(1e6, self.RECOVERY).total * (1 - 1e-9)

    def test_a_serving_instance_is_replaced(self):
        """Interrupted once in 20 hours for ten minutes: 0.83% more hours."""
        assert replaced_share(0.05, 600.0) == pytest.approx(1 / 120)
