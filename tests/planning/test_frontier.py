"""Layouts of a served model, and the Pareto set found without asking for every configuration."""

import math
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.cluster import Cluster
from service.planning.inference import (
    FrontierConstraint,
    FrontierSpeed,
    FrontierVariant,
    SearchDegrees,
    find_frontier,
    find_layout_constraint,
    list_batch_sizes,
    list_layouts,
)
from service.planning.parallelism import Parallelism
from tests.asking import shipped


def profile(name):
    return shipped().models[name].profile


def nodes(count, per_node=8):
    return Cluster(shipped().accelerators["h200-sxm"].accelerator, count, per_node, None)


class TestLayouts:
    @pytest.mark.parametrize("devices", [1, 6, 8, 64])
    def test_each_takes_every_device_once(self, devices):
        found = list(list_layouts(profile("llama-3.1-70b"), devices))
        assert all(layout.devices == devices for layout in found)
        assert len(set(found)) == len(found)

    def test_eight_devices_have_ten(self):
        """Tensor, pipeline and replicas: 8 = 2 x 2 x 2 on three places."""
        assert len(list(list_layouts(profile("llama-3.1-70b"), 8))) == math.comb(5, 2)

    def test_experts_are_spread_over_replicas(self):
        found = list(list_layouts(profile("deepseek-v3"), 8, SearchDegrees(tensor=(1, 2), pipeline=(1,))))
        degrees = {(layout.tensor, layout.data, layout.expert) for layout in found}
        assert degrees == {(1, 8, 1), (1, 8, 2), (1, 8, 4), (1, 8, 8), (2, 4, 1), (2, 4, 2), (2, 4, 4)}

    def test_degrees_that_do_not_divide_are_no_layouts(self):
        assert not list(list_layouts(profile("llama-3.1-70b"), 8, SearchDegrees(tensor=(3,))))

    @pytest.mark.parametrize(
        ("layout", "reason"),
        [
            (Parallelism(tensor=3), FrontierConstraint.HEADS),
            (Parallelism(pipeline=96), FrontierConstraint.BLOCKS),
            (Parallelism(tensor=16), FrontierConstraint.LINK),
            (Parallelism(tensor=8, pipeline=80), None),
        ],
    )
    def test_shapes_and_links_rule_out(self, layout, reason):
        assert find_layout_constraint(layout, profile("llama-3.1-70b"), nodes(96)) is reason

    def test_experts_that_do_not_divide_are_ruled_out(self):
        layout = Parallelism(data=6, expert=3)
        assert (
            find_layout_constraint(layout, profile("deepseek-v3"), nodes(6, 6)) is FrontierConstraint.EXPERTS
        )


@pytest.mark.parametrize("most", [1, 5, 32, 33, 4096])
def test_batch_sizes_rise_from_one_to_the_most(most):
    sizes = list_batch_sizes(most)
    assert sizes[0] == 1
    assert sizes[-1] == most
    assert all(before < after for before, after in pairwise(sizes))


class Table(NamedTuple):
    """A variant that answers from a table, and counts what it is asked."""

    speeds: list[FrontierSpeed]

    @property
    def variant(self):
        return FrontierVariant(range(len(self.speeds)), self.of)

    def of(self, sizes):
        return [self.speeds[size] for size in sizes]


@st.composite
def tables(draw):
    """Tokens per device that do not fall, per user that do not rise; few values, so that some tie."""
    size = draw(st.integers(1, 30))
    devices = sorted(draw(st.lists(st.integers(0, 40), min_size=size, max_size=size)))
    users = sorted(draw(st.lists(st.integers(1, 40), min_size=size, max_size=size)), reverse=True)
    within = draw(st.integers(0, size))
    return Table(
        [
            FrontierSpeed(float(d), float(u), i < within)
            for i, (d, u) in enumerate(zip(devices, users, strict=True))
        ]
    )


def dominated(one, speeds):
    return any(
        other.per_device >= one.per_device and other.per_user >= one.per_user and other != one
        for other in speeds
    )


class TestParetoSet:
    @given(st.lists(tables(), max_size=6))
    def test_it_is_that_of_asking_for_everything(self, asked):
        found = find_frontier([table.variant for table in asked])
        kept = {speed for table in asked for speed in table.speeds if speed.within}
        assert [chosen.speed for chosen in found.chosen] == sorted(
            (speed for speed in kept if not dominated(speed, kept)), reverse=True
        )
        assert found.within == tuple(sum(speed.within for speed in table.speeds) for table in asked)
        assert all(asked[chosen.variant].speeds[chosen.size] == chosen.speed for chosen in found.chosen)

    def test_what_a_known_configuration_reaches_is_not_asked_for(self):
        best = [FrontierSpeed(200.0 + size, 300.0 - size) for size in range(100)]
        worse = [FrontierSpeed(size / 10.0, 100.0 - size) for size in range(1000)]
        found = find_frontier([Table(best).variant, Table(worse).variant])
        assert len(found.chosen) == 100
        assert found.asked < 110
