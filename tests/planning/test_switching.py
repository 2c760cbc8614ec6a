"""How far an assumption is moved until a choice changes: against lines whose crossings are known."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.planning.switching import PRECISION, first_switch, rungs

ENDS = st.sampled_from([0.25, 4.0])
LINES = st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.1, 100.0)), min_size=2, max_size=6)


def first_of(lines, factor):
    return min(range(len(lines)), key=lambda place: (lines[place][0] + lines[place][1] * factor, place))


@given(LINES, ENDS)
@settings(max_examples=200)
def test_among_lines_it_is_their_nearest_crossing_with_the_first(lines, end):
    """a + b f of the first is passed by another where f = (a' - a) / (b - b')."""
    chosen = first_of(lines, 1.0)
    fixed, moved = lines[chosen]
    crossings = [
        (other - fixed) / (moved - slope)
        for place, (other, slope) in enumerate(lines)
        if place != chosen and abs(moved - slope) > 1e-3 and (end > 1.0) == (slope < moved)
    ]
    on_the_way = [each for each in crossings if each > 0 and math.log(each) / math.log(end) > 0]
    nearest = min(on_the_way, key=lambda each: abs(math.log(each)), default=None)
    assume(all(abs(other[1] - moved) > 1e-3 for other in lines if other != lines[chosen]))
    found = first_switch(lambda factor: first_of(lines, factor) != chosen, end)
    if nearest is None or abs(math.log(nearest)) > abs(math.log(end)) * (1 + 1e-6):
        assert found is None
        return
    if abs(abs(math.log(nearest)) - abs(math.log(end))) < 1e-6 * abs(math.log(end)):
        return
    assert found is not None
    assert found.changed == pytest.approx(nearest, rel=1e-6)


@given(st.floats(0.26, 3.9), st.integers(1, 8))
def test_both_sides_of_a_switch_are_as_it_says(where, number):
    assume(abs(math.log(where)) > 1e-6)
    end = 4.0 if where > 1.0 else 0.25

    def is_changed(factor):
        return factor >= where if where > 1.0 else factor <= where

    found = first_switch(is_changed, end, number)
    assert found is not None
    assert is_changed(found.changed)
    assert not is_changed(found.holds)
    assert found.changed == pytest.approx(found.holds, rel=2 * PRECISION)


def test_a_change_that_does_not_last_is_found_between_tries():
    """A whole number of paid blocks: the choice changes from 1.6 to 1.9 alone."""
    assert first_switch(lambda factor: 1.6 < factor < 1.9, 4.0) is None
    found = first_switch(lambda factor: 1.6 < factor < 1.9, 4.0, 8)
    assert found is not None
    assert found.changed == pytest.approx(1.6, rel=1e-8)


def test_nothing_changes():
    assert first_switch(lambda _: False, 4.0, 3) is None


@pytest.mark.parametrize("end", [0.0, -1.0, 1.0, math.nan])
def test_there_is_no_way_to_nowhere(end):
    with pytest.raises(ValueError, match="no way leads"):
        rungs(end, 2)
