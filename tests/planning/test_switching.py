"""How far an assumption is moved until a choice changes: against lines whose crossings are known."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.planning.search.switching import PRECISION, SwitchingFactors, build_factor_steps, refine_switch

ENDS = st.sampled_from([0.25, 4.0])
AMOUNTS = st.floats(0.1, 100.0)


class CountedFunction:
    """Counts how often it is asked."""

    def __init__(self, lead):
        self.lead, self.times = lead, 0

    def __call__(self, factor):
        self.times += 1
        return self.lead(factor)


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.floats(0.01, 0.99), ENDS)
@settings(max_examples=200)
def test_two_costs_that_are_linear_cross_where_they_do(fixed, slope, other, share, end):
    """a + b f passes a' + b' f at f = (a' - a) / (b - b')."""
    crossing = end**share
    rival = slope + (other if end < 1.0 else -min(other, 0.9 * slope))
    beside = fixed + (slope - rival) * crossing
    assume(beside > 0.0)
    asked = CountedFunction(lambda f: math.log((fixed + slope * f) / (beside + rival * f)))
    found = refine_switch(asked, SwitchingFactors(1.0, end))
    assert found.changed == pytest.approx(crossing, rel=1e-6)
    assert asked.times <= 16


@given(st.floats(0.26, 3.9))
def test_a_limit_that_is_passed_takes_no_more_than_halving(where):
    assume(abs(math.log(where)) > 1e-6)
    end = 4.0 if where > 1.0 else 0.25
    asked = CountedFunction(lambda f: 1.0 if (f >= where if end > 1.0 else f <= where) else -1.0)
    found = refine_switch(asked, SwitchingFactors(1.0, end))
    assert asked.lead(found.changed) > 0.0 >= asked.lead(found.holds)
    assert abs(math.log(found.changed / found.holds)) <= PRECISION * (1 + 1e-6)
    assert min(1.0, end) <= min(found) <= where * (1 + 1e-9)
    assert asked.times <= math.log2(math.log(4.0) / PRECISION) + 6


@given(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=9), ENDS)
def test_whatever_leads_there_is_a_change_between_both_ends(steps, end):
    """A lead that jumps about is still one that changes between neighbours."""

    def lead(factor):
        place = abs(math.log(factor)) / math.log(4.0)
        return -0.5 if place < 0.01 else 0.5 if place > 0.99 else steps[int(place * len(steps))]

    found = refine_switch(lead, SwitchingFactors(1.0, end))
    assert lead(found.changed) > 0.0 >= lead(found.holds)
    assert abs(math.log(found.changed / found.holds)) <= PRECISION * (1 + 1e-6)


def test_a_switch_that_is_narrow_is_as_it_is():
    switch = SwitchingFactors(1.0, 1.0 + 1e-10)
    assert refine_switch(lambda _: math.nan, switch) == switch


def test_the_way_is_divided_in_equal_ratios():
    assert build_factor_steps(4.0, 2) == (2.0, 4.0)
    assert build_factor_steps(0.25, 2) == (0.5, 0.25)
    assert build_factor_steps(4.0, 1) == (4.0,)


@pytest.mark.parametrize("end", [0.0, -1.0, 1.0, math.nan])
def test_there_is_no_way_to_nowhere(end):
    with pytest.raises(ValueError, match="no factors lead"):
        build_factor_steps(end, 2)
