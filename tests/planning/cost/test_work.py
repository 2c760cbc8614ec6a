"""The same work, and what a request, its tokens, a gigabyte bear of a cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost import apportion_by_tokens, compare_equal_work, gigabyte_months


def test_fewer_devices_for_longer_are_no_saving():
    """Against 32 GPUs for two weeks at 16 USD, 8 take 4 x 1.08 as long and cost 1.08 times as much."""
    found = compare_equal_work(185_794.56, 8 * 1451.52, 1451.52, against=(172_032.0, 32 * 336.0, 336.0))
    assert found == pytest.approx((4.32, 1.08, 1.08))


def test_a_terabyte_for_a_month():
    assert gigabyte_months(1e12, 730.5 * 3600) == pytest.approx(1000.0)


def test_prompts_bear_the_time_that_they_take():
    """A fifth of the busy time for 1,024 tokens of prompt, the rest for 256 of output."""
    prompt, output = apportion_by_tokens(0.2, 1024.0, 256.0)
    assert (prompt * 1024, output * 256) == pytest.approx((0.2, 0.8))


@given(st.floats(0.0, 1.0), st.floats(1.0, 1e6), st.floats(0.0, 1e6))
def test_shares_of_tokens_are_the_whole(share, inputs, outputs):
    prompt, output = apportion_by_tokens(share, inputs, outputs)
    assert prompt * inputs + output * outputs == pytest.approx(1.0)
