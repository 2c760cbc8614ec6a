"""Replicas of a served model: every layout of one, and the fewest that carry a load."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from service.planning.inference.replicas import (
    EACH,
    ReplicaDegrees,
    find_fewest_replicas,
    list_replica_counts,
    list_replica_layouts,
)
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.resolve.model import resolve_model
from service.schemas.references import CatalogModel
from tests.asking import shipped

PROFILES = {
    name: resolve_model(CatalogModel(source="catalog", id=name), shipped(), AnswerNotes()).profile
    for name in ("llama-3.1-8b", "qwen3-30b-a3b")
}


def carried_by(numbers, asked):
    """Whether each of several numbers is one of these, noting what was asked for."""

    def carries(tried):
        asked.extend(tried)
        return [number in numbers for number in tried]

    return carries


@given(least=st.integers(1, 50), span=st.integers(0, 5000), place=st.floats(0.0, 1.2))
def test_where_all_larger_ones_carry_the_load_the_fewest_is_the_fewest_of_all(least, span, place):
    most, first = least + span, least + round(span * place)
    asked = []
    found = find_fewest_replicas(least, most, carried_by(range(first, most + 1), asked))
    assert found == (first if first <= most else None)
    assert len(asked) == len(set(asked))
    assert all(least <= number <= most for number in asked)


@given(least=st.integers(1, 50), carried=st.sets(st.integers(0, EACH), min_size=1))
def test_among_the_first_each_is_tried(least, carried):
    """Also where a larger number does not carry what a smaller one does."""
    numbers = {least + number for number in carried}
    assert find_fewest_replicas(least, least + EACH, carried_by(numbers, [])) == min(numbers)


@given(least=st.integers(1, 50), span=st.integers(0, 20_000))
def test_numbers_ascend_to_the_most_by_a_tenth_at_most(least, span):
    found = list(list_replica_counts(least, least + span))
    assert found[0] == least
    assert found[-1] == least + span
    for before, after in pairwise(found):
        assert before < after <= max(before + 1, round(before * 1.1))


def test_where_the_least_is_more_than_the_most_there_is_none():
    assert list(list_replica_counts(4, 3)) == []
    assert find_fewest_replicas(4, 3, carried_by(range(10), [])) is None


def test_a_model_without_experts_has_replicas_of_one_rank():
    degrees = ReplicaDegrees((1, 2), (1, 4), expert=(1, 8))
    assert list(list_replica_layouts(PROFILES["llama-3.1-8b"], degrees)) == [
        Parallelism(tensor=tensor, pipeline=pipeline) for tensor in (1, 2) for pipeline in (1, 4)
    ]


def test_experts_are_spread_over_ranks_whole_or_cut():
    found = list(list_replica_layouts(PROFILES["qwen3-30b-a3b"], ReplicaDegrees((1, 2), expert=(1, 4))))
    assert [(each.tensor, each.expert, each.expert_tensor) for each in found] == [
        (1, 1, None),
        (1, 4, None),
        (2, 1, 1),
        (2, 1, None),
        (2, 4, 1),
        (2, 4, None),
    ]
    assert all(each.data == each.expert for each in found)


def test_experts_are_cut_over_as_many_devices_as_are_listed():
    degrees = ReplicaDegrees((2,), expert=(4,), expert_tensor=(4, 3, 2, 4))
    found = list(list_replica_layouts(PROFILES["qwen3-30b-a3b"], degrees))
    # 3 does not divide the 8 devices; 2 is what is left out.
    assert [each.expert_tensor for each in found] == [None, 4]
