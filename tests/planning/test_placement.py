from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.parallelism import DeviceGroup, GroupPlacement, Parallelism, Sharding, build_placement

POWERS = [1, 2, 4, 8]


def ranks(sizes, members, fixed=0):
    """The ranks of one group: all values of the named degrees, the others at ``fixed``; innermost first."""
    strides, stride = {}, 1
    for name, size in sizes.items():
        strides[name] = stride
        stride *= size
    chosen = [range(size) if name in members else [fixed] for name, size in sizes.items()]
    return [sum(map(int.__mul__, at, strides.values())) for at in product(*chosen)]


def counted(group, per_domain):
    """Devices of a group, and how many share the domain of its first one."""
    return len(group), sum(rank // per_domain == min(group) // per_domain for rank in group)


@pytest.mark.parametrize("per_node", [1, 4, 8, 64])
@pytest.mark.parametrize("tensor", POWERS)
@pytest.mark.parametrize("context", [1, 2, 4])
@pytest.mark.parametrize("data", [1, 2, 8])
@pytest.mark.parametrize("pipeline", [1, 2, 4])
def test_groups_lie_where_megatron_puts_them(per_node, tensor, context, data, pipeline):
    """The dense ranks in the order tp-cp-dp-pp, the experts' in tp-ep-dp-pp."""
    expert = data
    layout = Parallelism(tensor=tensor, context=context, data=data, pipeline=pipeline, expert=expert)
    dense = {"tensor": tensor, "context": context, "data": data, "pipeline": pipeline}
    experts = {"tensor": tensor, "expert": expert, "replicas": data * context // expert, "pipeline": pipeline}
    found = build_placement(layout, per_node)
    for group, wanted in (
        (found.tensor, ranks(dense, {"tensor"})),
        (found.context, ranks(dense, {"context"})),
        (found.replicas, ranks(dense, {"context", "data"})),
        (found.expert, ranks(experts, {"expert"})),
        (found.expert_replicas, ranks(experts, {"replicas"})),
    ):
        assert (group.devices, group.per_domain) == counted(wanted, per_node)
    stages = ranks(dense, {"pipeline"})
    for group, wanted in ((found.pipeline, stages[:2]), (found.ends, sorted({stages[0], stages[-1]}))):
        assert (group.devices, group.per_domain) == counted(wanted, per_node)


def test_eight_by_eight():
    """Tensor parallelism fills the nodes, so that replicas and stages are one to a node."""
    found = build_placement(Parallelism(tensor=8, data=4, pipeline=2), 8)
    assert found == GroupPlacement(
        tensor=DeviceGroup(8, 8),
        context=DeviceGroup(1, 1),
        expert=DeviceGroup(1, 1),
        replicas=DeviceGroup(4, 1),
        expert_replicas=DeviceGroup(4, 1),
        shards=DeviceGroup(4, 1),
        shard_replicas=DeviceGroup(1, 1),
        expert_shards=DeviceGroup(4, 1),
        expert_shard_replicas=DeviceGroup(1, 1),
        pipeline=DeviceGroup(2, 1),
        ends=DeviceGroup(2, 1),
    )


def test_hybrid_shards_are_the_nearest_replicas():
    """Sharded in a node, replicated between nodes."""
    layout = Parallelism(data=32, sharding=Sharding.HYBRID, sharding_group_size=8)
    found = build_placement(layout, 8)
    assert (found.shards, found.shard_replicas) == (DeviceGroup(8, 8), DeviceGroup(4, 1))
    experts = build_placement(layout._replace(expert=8), 8)
    assert (experts.expert_shards, experts.expert_shard_replicas) == (DeviceGroup(4, 1), DeviceGroup(1, 1))


def test_stages_of_a_small_layout_share_a_node():
    assert build_placement(Parallelism(tensor=2, pipeline=4), 8).pipeline == DeviceGroup(2, 2)
    assert build_placement(Parallelism(tensor=2, pipeline=4), 8).ends == DeviceGroup(2, 2)
    assert build_placement(Parallelism(tensor=4, pipeline=4), 8).ends == DeviceGroup(2, 1)
    assert build_placement(Parallelism(), 8).pipeline.devices == 1


@given(
    layouts=st.lists(st.tuples(*[st.sampled_from(POWERS)] * 5), min_size=1, max_size=6),
    per_domain=st.sampled_from([1, 4, 8, 72]),
)
def test_arrays_give_what_numbers_give(layouts, per_domain):
    def laid_out(tensor, context, data, pipeline, expert):
        return Parallelism(tensor=tensor, context=context, data=data, pipeline=pipeline, expert=expert)

    one_by_one = [build_placement(laid_out(*layout), per_domain) for layout in layouts]
    found = build_placement(laid_out(*np.array(layouts).T), per_domain)
    for name in GroupPlacement._fields:
        for field in DeviceGroup._fields:
            wanted = [getattr(getattr(one, name), field) for one in one_by_one]
            assert getattr(getattr(found, name), field) == pytest.approx(wanted), (name, field)
            group = getattr(found, name)
            assert np.all(group.per_domain <= group.devices)
