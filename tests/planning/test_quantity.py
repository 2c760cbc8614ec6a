import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.quantity import (
    EvidenceBasis,
    IntervalFactors,
    LogReach,
    Quantity,
    assumed,
    combine,
    compute_log_reach,
    compute_ratio_reach,
    exact,
    has_interval,
    inverted,
    probability_at_most,
    scaled,
    weakest,
)

amounts = st.floats(1e-6, 1e12)


@st.composite
def quantities(draw):
    low, value, high = sorted(draw(st.tuples(amounts, amounts, amounts)))
    return Quantity(
        value, low, high, draw(st.sampled_from([EvidenceBasis.REFERENCE, EvidenceBasis.DATASHEET]))
    )


@given(quantities(), quantities())
def test_a_combination_stays_in_order(first, second):
    for figure in (
        combine(lambda a, b: a * b, first, second),
        combine(lambda a, b: a / b, first, inverted(second)),
        combine(lambda a: 1 / a, first),
    ):
        assert figure.low <= figure.value <= figure.high


def test_a_falling_formula_exchanges_the_ends():
    figure = combine(lambda a: 12 / a, Quantity(3.0, 2.0, 4.0, EvidenceBasis.REFERENCE))
    assert figure == Quantity(4.0, 3.0, 6.0, EvidenceBasis.REFERENCE)


def test_points_stay_points():
    assert combine(lambda a, b: a + b, exact(1.0), assumed(2.0)) == assumed(3.0)
    assert scaled(assumed(2.0), 3.0) == assumed(6.0)


@pytest.mark.parametrize(
    ("inputs", "basis"),
    [
        ((exact(1.0), exact(2.0)), EvidenceBasis.EXACT),
        ((exact(1.0), assumed(2.0)), EvidenceBasis.ASSUMED),
        # An assumed point brings no interval: the evidence is that of the part which does.
        ((assumed(1.0), Quantity(2.0, 1.0, 3.0, EvidenceBasis.DATASHEET)), EvidenceBasis.DATASHEET),
        (
            (
                Quantity(2.0, 1.0, 3.0, EvidenceBasis.REFERENCE),
                Quantity(2.0, 1.0, 3.0, EvidenceBasis.DATASHEET),
            ),
            EvidenceBasis.DATASHEET,
        ),
        ((Quantity(2.0, 1.0, 3.0, EvidenceBasis.REFERENCE), exact(2.0)), EvidenceBasis.REFERENCE),
    ],
)
def test_the_basis_is_that_of_the_weakest_part_with_an_interval(inputs, basis):
    assert weakest(*inputs) is basis
    assert weakest(*reversed(inputs)) is basis


@st.composite
def pairs(draw):
    """A point or an interval, and the same with ends a few last bits apart, as another NumPy adds it up."""
    value, basis = draw(amounts), draw(st.sampled_from(EvidenceBasis))
    share = draw(st.just(0.0) | st.floats(1e-9, 0.9))
    plain = Quantity(value, value * (1.0 - share), value * (1.0 + share), basis)
    low, high = (end + draw(st.integers(-8, 8)) * math.ulp(end) for end in (plain.low, plain.high))
    return plain, plain._replace(low=low, high=high)


@given(st.lists(pairs(), min_size=1, max_size=5))
def test_last_bits_between_the_ends_name_no_other_basis(inputs):
    plain, rounded = zip(*inputs, strict=True)
    assert weakest(*rounded) is weakest(*plain)


@given(amounts, st.floats(1e-9, 1.0))
def test_the_narrowest_evidence_has_an_interval(value, share):
    assert has_interval(Quantity(value, value, value * (1.0 + share), EvidenceBasis.REFERENCE))
    assert has_interval(Quantity(value, value, math.inf, EvidenceBasis.REFERENCE))
    assert not has_interval(exact(value))


def test_a_spread_surrounds_its_value():
    assert IntervalFactors(0.5, 2.0, "x").around(10.0, EvidenceBasis.REFERENCE) == Quantity(
        10.0, 5.0, 20.0, EvidenceBasis.REFERENCE
    )


def test_probability_of_an_80_percent_interval():
    figure = Quantity(10.0, 8.0, 14.0, EvidenceBasis.REFERENCE)
    assert probability_at_most(figure, exact(14.0)) == pytest.approx(0.9)
    assert probability_at_most(figure, exact(8.0)) == pytest.approx(0.1)
    assert probability_at_most(figure, exact(10.0)) == 0.5
    assert probability_at_most(exact(10.0), exact(10.0)) == 1.0
    assert probability_at_most(exact(10.0), exact(9.0)) == 0.0


def test_doubt_on_either_side_adds_up():
    figure = Quantity(10.0, 7.0, 13.0, EvidenceBasis.REFERENCE)
    limit = Quantity(15.0, 11.0, 16.0, EvidenceBasis.DATASHEET)
    assert probability_at_most(figure, limit) == pytest.approx(
        0.5 * (1 + math.erf(5 / (5 / 1.2815515655446004) / math.sqrt(2)))
    )


@given(quantities(), quantities(), st.floats(1.0, 100.0))
def test_more_room_never_fits_worse(figure, limit, factor):
    assert probability_at_most(figure, scaled(limit, factor)) >= probability_at_most(
        figure, limit
    ) - 1e-12 or (
        # A larger limit brings a larger doubt of its own.
        limit.low < limit.value
    )


reaches = st.builds(LogReach, st.floats(0.0, 1.0), st.floats(0.0, 1.0))


class TestPairs:
    """How far the first of two estimates may pass the second."""

    def test_nine_times_out_of_ten_it_does_not_pass_further(self):
        """Errors drawn with correlation 0.8 and 80% intervals of a factor 1.3 either way."""
        reach = compute_log_reach(Quantity(1.0, 1.0 / 1.3, 1.3, EvidenceBasis.REFERENCE))
        drawn = np.random.default_rng(1).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 40_000)
        errors = drawn * math.log(1.3) / 1.2815515655446004
        passed = errors[:, 0] - errors[:, 1] > compute_ratio_reach(reach, reach, 0.8)
        assert passed.mean() == pytest.approx(0.1, abs=0.005)

    @given(reaches)
    def test_what_both_share_is_in_no_doubt(self, reach):
        assert compute_ratio_reach(reach, reach, 1.0) == 0.0

    @given(reaches, reaches)
    def test_errors_of_their_own_add_as_squares(self, first, second):
        assert compute_ratio_reach(first, second, 0.0) == pytest.approx(math.hypot(first.up, second.down))

    @given(reaches, reaches, st.floats(0.0, 1.0))
    def test_it_is_no_more_than_if_nothing_were_shared_and_one_end_faced_the_other(
        self, first, second, correlation
    ):
        assert 0.0 <= compute_ratio_reach(first, second, correlation) <= first.up + second.down + 1e-12

    @given(reaches, reaches)
    def test_a_part_and_the_rest_are_the_whole(self, whole, part):
        timed = part.limit_to(whole)
        rest = whole.subtract(timed)
        assert (timed.down + rest.down, timed.up + rest.up) == pytest.approx(whole)
