import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.hardware.collectives import ClusterFabric, Collective, LevelRate
from service.planning.hardware.traffic import (
    ContextExchange,
    ExpertChoice,
    ReplicaExchange,
    bucket_bytes,
    compute_message_seconds,
    context_messages,
    copies_sent,
    count_buckets,
    expert_messages,
    pipeline_messages,
    replica_messages,
    tensor_messages,
    tied_embedding,
    total_seconds,
    vocabulary_messages,
)
from service.planning.parallelism import DeviceGroup, Parallelism, Sharding, build_placement
from service.planning.software.frameworks import Framework
from service.planning.training.communication import split_exposed

GB = 1e9
FABRIC = ClusterFabric(LevelRate(400 * GB, 0.0), LevelRate(40 * GB, 0.0), 8)
SEVEN_BILLION = ReplicaExchange(dense=7e9, expert=0.0, weight_bytes=2.0, gradient_bytes=2.0, units=1.0)
SENT = {Collective.ALL_REDUCE: 2.0, Collective.ALL_GATHER: 1.0, Collective.REDUCE_SCATTER: 1.0}


def sent_bytes(messages):
    """What one device sends in rings of many devices."""
    return sum(SENT[message.kind] * message.message_bytes * message.times for message in messages)


def replicas(sharding, micro_batches=1.0, exchanged=SEVEN_BILLION, group=None, data=1024):
    layout = Parallelism(data=data, sharding=sharding, sharding_group_size=group)
    return list(replica_messages(exchanged, layout, build_placement(layout, 8), micro_batches))


# --- weights and gradients --------------------------------------------------------------------------------


def test_seven_billion_parameters_are_28_gigabytes_a_step():
    """Claim C01."""
    assert sent_bytes(replicas(Sharding.NONE)) == 28 * GB


@pytest.mark.parametrize(
    ("sharding", "ratio"),
    [(Sharding.ZERO_1, 1.0), (Sharding.ZERO_2, 1.0), (Sharding.ZERO_3, 1.5)],
)
def test_bytes_of_sharding_over_those_of_plain_replicas(sharding, ratio):
    """Claim M09 and Rajbhandari et al. 2020, section 7: 1, 1 and 1.5."""
    assert sent_bytes(replicas(sharding)) == ratio * sent_bytes(replicas(Sharding.NONE))


def test_accumulation_reduces_gradients_once():
    """Claim C22: K micro-batches, one reduction; stages 2 and 3 hold a shard and cannot wait."""
    assert replicas(Sharding.NONE, 8.0) == replicas(Sharding.NONE)
    assert replicas(Sharding.ZERO_1, 8.0) == replicas(Sharding.ZERO_1)
    assert sent_bytes(replicas(Sharding.ZERO_2, 8.0)) == (8 + 1) * 14 * GB
    assert sent_bytes(replicas(Sharding.ZERO_3, 8.0)) == 8 * sent_bytes(replicas(Sharding.ZERO_3))


def test_hybrid_sharding_sends_an_eighth_between_nodes():
    messages = replicas(Sharding.HYBRID, group=8, data=64)
    groups = [message.group for message in messages]
    assert groups == [DeviceGroup(8, 8), DeviceGroup(8, 8), DeviceGroup(8, 8), DeviceGroup(8, 1)]
    assert messages[-1].message_bytes == 14 * GB / 8


def test_one_hybrid_group_of_all_is_full_sharding():
    whole = [compute_message_seconds(one, FABRIC) for one in replicas(Sharding.HYBRID, group=64, data=64)]
    assert whole[-1] == 0.0
    assert whole[:-1] == [compute_message_seconds(one, FABRIC) for one in replicas(Sharding.ZERO_3, data=64)]


def test_experts_are_reduced_over_their_own_replicas():
    exchanged = SEVEN_BILLION._replace(expert=1e9)
    layout = Parallelism(data=32, expert=8)
    dense, expert = replica_messages(exchanged, layout, build_placement(layout, 8), 1.0)
    assert (dense.group, expert.group) == (DeviceGroup(32, 8), DeviceGroup(4, 1))
    assert expert.message_bytes == 2 * GB


def test_units_split_a_message_and_not_its_bytes():
    units = SEVEN_BILLION._replace(units=32.0)
    assert sent_bytes(replicas(Sharding.ZERO_3, exchanged=units)) == pytest.approx(42 * GB)
    assert total_seconds(replicas(Sharding.ZERO_3, exchanged=units), FABRIC) == pytest.approx(
        total_seconds(replicas(Sharding.ZERO_3), FABRIC)
    )


def test_buckets():
    """Claims C14 and C15."""
    assert count_buckets(7e9, 2.0, bucket_bytes(Framework.DDP, 2.0)) == 535
    assert bucket_bytes(Framework.DDP, 4.0) == 25 * 2**20
    assert bucket_bytes(Framework.DEEPSPEED, 2.0) == 1e9
    assert count_buckets(10.0, 2.0, 1e6) == 1


def test_a_tied_table_is_reduced_between_the_ends():
    layout = Parallelism(tensor=4, pipeline=4, data=2)
    message = tied_embedding(1e8, 4.0, build_placement(layout, 8))
    assert (message.group, message.message_bytes) == (DeviceGroup(2, 1), 4e8)
    assert (
        compute_message_seconds(tied_embedding(1e8, 4.0, build_placement(Parallelism(data=8), 8)), FABRIC)
        == 0.0
    )


@pytest.mark.parametrize(
    ("share", "overlap", "left"),
    [(0.2, 0.8, 0.048), (0.3, 0.5, 0.176), (0.3, 0.6, 0.146), (0.3, 0.8, 0.079), (0.5, 0.6, 0.286)],
)
def test_what_overlap_leaves_of_a_step(share, overlap, left):
    """Claims C16, C17, C21."""
    work = 1.0 - share
    waited = split_exposed(share, overlap=overlap, behind=work).seconds
    assert waited / (work + waited) == pytest.approx(left, abs=5e-4)
    if share <= 0.3 and overlap >= 0.8:
        assert waited / work < 0.10


# --- activations ------------------------------------------------------------------------------------------


def test_sequence_parallelism_moves_as_much_and_gathers_once_more():
    placed = build_placement(Parallelism(tensor=8), 8)
    plain = tensor_messages(1e8, 2.0, placed, sequence=False)
    cut = tensor_messages(1e8, 2.0, placed, sequence=True)
    assert sent_bytes(plain.forward) == sent_bytes(cut.forward) == 4e8
    assert sent_bytes(plain.backward) == 4e8
    assert sent_bytes(cut.backward) == 6e8


def test_one_tensor_device_sends_nothing():
    placed = build_placement(Parallelism(data=8), 8)
    passes = (
        tensor_messages(1e8, 2.0, placed, sequence=True),
        vocabulary_messages(1e8, 4096, placed, sequence=False),
        context_messages(ContextExchange.RING, 1e7, 1e8, placed),
        pipeline_messages(1e8, Parallelism(data=8), placed, 1.0),
    )
    for each in passes:
        assert total_seconds((*each.forward, *each.backward), FABRIC) == 0.0


def test_the_head_gathers_where_sequences_are_cut():
    placed = build_placement(Parallelism(tensor=8), 8)
    plain = vocabulary_messages(1e8, 4096, placed, sequence=False)
    cut = vocabulary_messages(1e8, 4096, placed, sequence=True)
    assert sent_bytes(plain.forward) == sent_bytes(cut.forward) == 2e8 + 2 * 3 * 4 * 4096
    assert sent_bytes(plain.backward) == sent_bytes(cut.backward) == 2e8


def test_ways_to_share_a_sequence():
    """Four devices, 1 of keys and values and 8 of queries each."""
    layout = Parallelism(context=4)
    placed = build_placement(layout, 8)
    ring = context_messages(ContextExchange.RING, 1e9, 8e9, placed)
    gather = context_messages(ContextExchange.GATHER, 1e9, 8e9, placed)
    ulysses = context_messages(ContextExchange.ULYSSES, 1e9, 8e9, placed)
    times = [[total_seconds(messages, FABRIC) for messages in passes] for passes in (ring, gather, ulysses)]
    assert times[0] == pytest.approx([3 / 400, 6 / 400])
    assert times[1] == pytest.approx([3 / 400, 6 / 400])
    assert times[2] == pytest.approx([(9 + 8) * 3 / 4 / 400] * 2)


@pytest.mark.parametrize(("layout", "shared"), [((1, 8), 2), ((1, 16), 1), ((8, 2), 1)])
def test_a_ring_over_two_nodes_keeps_the_pace_of_what_passes_between_them(layout, shared):
    tensor, context = layout
    placed = build_placement(Parallelism(tensor=tensor, context=context), 8)
    ring = context_messages(ContextExchange.RING, 1e9, 8e9, placed)
    assert ring.forward[0].group == DeviceGroup(2, shared)


def test_experts_are_reached_and_left_in_both_passes():
    placed = build_placement(Parallelism(data=16, expert=16), 8)
    passes = expert_messages(1e9, 2e9, placed, imbalance=1.5)
    assert [message.message_bytes for message in passes.forward] == [1.5e9, 3e9]
    assert [message.message_bytes for message in passes.backward] == [3e9, 3e9]
    assert {message.group for message in passes.forward} == {DeviceGroup(16, 8)}


def test_tokens_that_go_to_few_nodes_cross_less():
    """64 devices in 8 nodes, 8 experts a token in 4 nodes at most: half of the copies leave a node."""
    placed = build_placement(Parallelism(data=64, expert=64), 8)
    free = expert_messages(8e9, 8e9, placed)
    bound = expert_messages(8e9, 8e9, placed, nodes_per_token=(4.0, 8.0))
    between, within, *_ = bound.forward
    assert between.message_bytes == 4e9
    assert within.message_bytes == 8e9
    assert total_seconds(bound.forward, FABRIC) < total_seconds(free.forward, FABRIC)


def test_stages_send_the_parts_of_their_devices():
    layout = Parallelism(tensor=8, pipeline=4, sequence_parallel=True)
    sent = pipeline_messages(8e8, layout, build_placement(layout, 8), 2.0)
    assert total_seconds(sent.forward, FABRIC) == pytest.approx(2 * 1e8 / 40e9)
    plain = layout._replace(sequence_parallel=False)
    gathered = pipeline_messages(8e8, plain, build_placement(plain, 8), 2.0)
    assert total_seconds(gathered.forward, FABRIC) == pytest.approx(2 * 1e8 / 40e9 + 2 * 7e8 / 400e9)


@given(
    degrees=st.lists(st.tuples(*[st.sampled_from([1, 2, 4, 8])] * 3), min_size=1, max_size=6),
    sharding=st.sampled_from([Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_2, Sharding.ZERO_3]),
)
def test_arrays_give_what_numbers_give(degrees, sharding):
    def found(tensor, data, expert):
        layout = Parallelism(tensor=tensor, data=data * expert, expert=expert, sharding=sharding)
        placed = build_placement(layout, 8)
        exchanged = ReplicaExchange(7e9 / tensor, 1e9 / (tensor * expert), 2.0, 4.0, 32.0)
        passes = tensor_messages(1e8 / tensor, 2.0, placed, sequence=True)
        messages = [*replica_messages(exchanged, layout, placed, 4.0), *passes.forward, *passes.backward]
        return total_seconds(messages, FABRIC)

    assert found(*np.array(degrees, dtype=float).T) == pytest.approx([found(*one) for one in degrees])


def test_fast_links_leave_nothing():
    fabric = ClusterFabric(LevelRate(math.inf, 0.0), LevelRate(math.inf, 0.0), 8)
    assert total_seconds(replicas(Sharding.ZERO_3), fabric) == 0.0


# --- places that the experts of a token lie on ------------------------------------------------------------


def count_places(choice, places, draws=4_000):
    """Draws tokens of 256 experts, which lie on places in order, and counts the places of each."""
    generator = np.random.default_rng(7)
    reached = 0
    for _ in range(draws):
        groups = generator.choice(choice.groups, choice.taken_groups, replace=False)
        each = 256 // choice.groups
        allowed = (groups[:, None] * each + np.arange(each)).ravel()
        experts = generator.choice(allowed, int(choice.chosen), replace=True)
        reached += len(set(experts * places // 256))
    return reached / draws


@pytest.mark.parametrize(
    ("choice", "places"),
    [
        (ExpertChoice(8.0), 8),
        (ExpertChoice(8.0, 8, 4), 8),
        (ExpertChoice(8.0, 8, 4), 2),
        (ExpertChoice(8.0, 8, 4), 64),
        (ExpertChoice(6.0, 8, 3), 4),
        (ExpertChoice(8.0, 8, 8), 16),
    ],
)
def test_a_token_reaches_as_many_places_as_drawn_ones_do(choice, places):
    assert copies_sent(choice, places) == pytest.approx(count_places(choice, places), rel=0.03)


def test_a_token_of_deepseek_v3_goes_to_four_nodes_at_most():
    """DeepSeek-V3 2024, section 2.1.2: 8 of 256 experts in 4 of 8 groups, each on a node."""
    assert copies_sent(ExpertChoice(8.0), 8) == pytest.approx(8 * (1 - (7 / 8) ** 8))
    assert copies_sent(ExpertChoice(8.0, 8, 4), 8) == pytest.approx(4 * (1 - (3 / 4) ** 8))
    assert copies_sent(ExpertChoice(8.0, 8, 4), 1) == 1.0
