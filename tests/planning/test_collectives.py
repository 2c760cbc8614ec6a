import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.evidence.service import load_reference_curves
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.links import IDEAL_LINKS
from service.planning.hardware.cluster import Accelerator, Cluster
from service.planning.hardware.collectives import (
    ClusterFabric,
    Collective,
    CollectiveAlgorithm,
    LevelRate,
    build_fabric,
    bus_bandwidth,
    collective_seconds,
)
from service.planning.hardware.links import Link, LinkKind

GB, GIB, MIB = 1e9, 2.0**30, 2.0**20
EVERY = [(kind, None) for kind in Collective] + [
    (Collective.ALL_REDUCE, CollectiveAlgorithm.RING),
    (Collective.ALL_REDUCE, CollectiveAlgorithm.TREE),
    (Collective.ALL_REDUCE, CollectiveAlgorithm.HALVING_DOUBLING),
    (Collective.ALL_REDUCE, CollectiveAlgorithm.HIERARCHICAL),
    (Collective.ALL_REDUCE, CollectiveAlgorithm.IN_NETWORK),
    (Collective.ALL_GATHER, CollectiveAlgorithm.HALVING_DOUBLING),
    (Collective.REDUCE_SCATTER, CollectiveAlgorithm.HIERARCHICAL),
    (Collective.ALL_TO_ALL, CollectiveAlgorithm.HIERARCHICAL),
    (Collective.BROADCAST, CollectiveAlgorithm.TREE),
]


def fabric(
    intra=900 * GB, inter=25 * GB, *, latency=0.0, domain=8, chunk=0.0, launch=0.0, switched=True, mesh=False
):
    near = LevelRate(intra, latency, chunk)
    return ClusterFabric(
        near,
        LevelRate(inter, latency, chunk),
        domain,
        launch,
        near if switched else None,
        mesh=domain if mesh else 0,
    )


def seconds(kind, message, devices, per_domain, on, algorithm=None):  # noqa: PLR0917
    return collective_seconds(
        kind, message, devices=devices, per_domain=per_domain, fabric=on, algorithm=algorithm
    )


def cluster(generation="hopper", link=None, count=8):
    accelerator = Accelerator(
        id="x",
        generation=generation,
        capacity_bytes=None,
        bandwidth_bytes_per_second=None,
        peak_flops_per_second={},
        power_limit_watts=None,
    )
    link = link or Link(LinkKind.NVLINK, 450 * GB, joined=8, in_network=True)
    return Cluster(accelerator, count, 8, None, link, Link(LinkKind.INFINIBAND, 50 * GB, 5e-6))


def reduced(message, devices, per_domain, on, algorithm=None):
    return seconds(Collective.ALL_REDUCE, message, devices, per_domain, on, algorithm)


# --- the alpha-beta formulas of the notes (claims C02 to C13) ---------------------------------------------


@pytest.mark.parametrize(
    ("devices", "bandwidth", "expected"),
    [
        (8, 25 * GB, 0.98),  # C05
        (8, 900 * GB, 0.0272222),  # C06
        (1024, 25 * GB, 27.97265625 / 25),  # C03, C04: 1.12 s
    ],
)
def test_a_ring_moves_twice_the_message_less_one_share(devices, bandwidth, expected):
    on = fabric(inter=bandwidth)
    assert reduced(14 * GB, devices, 1, on, CollectiveAlgorithm.RING) == pytest.approx(expected, rel=1e-5)
    # C13: for a hundred devices and more the bytes are those of infinitely many, to a hundredth.
    assert devices < 100 or expected == pytest.approx(2 * 14 * GB / bandwidth, rel=0.01)


def test_ten_billion_parameters_take_800_and_not_40_milliseconds():
    """X1: 20 GB over 400 Gbit/s by many devices."""
    assert reduced(20 * GB, 4096, 1, fabric(inter=50 * GB), CollectiveAlgorithm.RING) == pytest.approx(
        0.8, rel=0.01
    )


@pytest.mark.parametrize(("devices", "steps"), [(8, 14), (64, 126), (1024, 2046)])
def test_steps_of_a_ring(devices, steps):
    """C08, C11, X3: 2 (n - 1) steps, each of 1/n of the message."""
    on = fabric(math.inf, math.inf, latency=5e-6)
    assert reduced(14 * GB, devices, 1, on, CollectiveAlgorithm.RING) == pytest.approx(
        steps * 5e-6, rel=1e-12
    )


def test_latency_adds_to_the_bytes():
    """C10."""
    assert reduced(14 * GB, 64, 1, fabric(latency=5e-6), CollectiveAlgorithm.RING) == pytest.approx(
        1.1031, rel=1e-3
    )


def test_a_tree_moves_the_message_twice_in_twelve_steps():
    """C09."""
    assert reduced(14 * GB, 64, 1, fabric(), CollectiveAlgorithm.TREE) == pytest.approx(28 / 25)
    on = fabric(math.inf, math.inf, latency=1.0)
    assert reduced(14 * GB, 64, 1, on, CollectiveAlgorithm.TREE) == pytest.approx(12)


def test_halving_and_doubling_moves_as_much_as_a_ring():
    """X4: not half of it."""
    on = fabric()
    assert reduced(14 * GB, 64, 1, on, CollectiveAlgorithm.HALVING_DOUBLING) == pytest.approx(
        reduced(14 * GB, 64, 1, on, CollectiveAlgorithm.RING)
    )
    waiting = fabric(math.inf, math.inf, latency=1.0)
    assert reduced(1.0, 64, 1, waiting, CollectiveAlgorithm.HALVING_DOUBLING) == pytest.approx(12)


def test_devices_above_a_power_of_two_cost_two_steps_and_two_messages():
    on, waiting = fabric(), fabric(math.inf, math.inf, latency=1.0)
    exact = 2 * 4 * (1 - 1 / 4) / 25 + 2 * 4 / 25
    assert reduced(4 * GB, 6, 1, on, CollectiveAlgorithm.HALVING_DOUBLING) == pytest.approx(exact)
    assert reduced(1.0, 6, 1, waiting, CollectiveAlgorithm.HALVING_DOUBLING) == pytest.approx(2 * 2 + 2)


def test_trees_win_below_456_megabytes():
    """C12: bandwidth x latency x n x (n - 1 - log2 n)."""
    on = fabric(latency=5e-6)
    at = 25e9 * 5e-6 * 64 * (63 - 6)
    assert at == pytest.approx(456e6, rel=0.01)
    for message, fastest in ((0.9 * at, CollectiveAlgorithm.TREE), (1.1 * at, CollectiveAlgorithm.RING)):
        assert reduced(message, 64, 1, on) == reduced(message, 64, 1, on, fastest)
    assert reduced(at, 64, 1, on, CollectiveAlgorithm.TREE) == pytest.approx(
        reduced(at, 64, 1, on, CollectiveAlgorithm.RING)
    )


def test_reducing_inside_nodes_first():
    """C33: 14 GB on 8 nodes of 8: 0.15 s, against 1.10 s of one ring through one interface each."""
    assert reduced(14 * GB, 64, 8, fabric(), CollectiveAlgorithm.HIERARCHICAL) == pytest.approx(
        0.150, rel=0.02
    )
    assert reduced(14 * GB, 64, 1, fabric(), CollectiveAlgorithm.RING) == pytest.approx(1.10, rel=0.02)


def test_one_interface_for_a_node_leaves_almost_no_gain():
    """The same with one interface that eight devices share: 0.98 s between the nodes."""
    assert reduced(
        14 * GB, 64, 8, fabric(inter=25 * GB / 8), CollectiveAlgorithm.HIERARCHICAL
    ) == pytest.approx(0.98 + 0.0272, rel=0.01)


def test_rings_through_every_interface_cut_the_traffic_between_nodes():
    """C32: a node's interfaces side by side send an eighth each of what one would."""
    one = reduced(14 * GB, 64, 1, fabric(math.inf), CollectiveAlgorithm.RING)
    assert reduced(14 * GB, 64, 8, fabric(math.inf), CollectiveAlgorithm.RING) == pytest.approx(one / 8)


# --- what gathers, exchanges and sends move ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
def test_gathers_and_scatters_are_half_an_all_reduce(kind):
    on = fabric(latency=3e-6)
    assert 2 * seconds(kind, GB, 32, 8, on) == pytest.approx(reduced(GB, 32, 8, on, CollectiveAlgorithm.RING))


def test_an_all_to_all_is_bound_by_what_leaves_the_domain():
    """Of 16 devices' buffers 8/16 leave a domain of 8."""
    assert seconds(Collective.ALL_TO_ALL, 16 * GB, 16, 8, fabric()) == pytest.approx(8 / 25)
    assert seconds(Collective.ALL_TO_ALL, 8 * GB, 8, 8, fabric()) == pytest.approx(7 / 900)


def test_point_to_point_goes_over_the_level_that_two_devices_share():
    on = fabric(latency=1e-3)
    assert seconds(Collective.POINT_TO_POINT, GB, 2, 2, on) == pytest.approx(1 / 900 + 1e-3)
    assert seconds(Collective.POINT_TO_POINT, GB, 2, 1, on) == pytest.approx(1 / 25 + 1e-3)


def test_broadcasts_move_the_message_once():
    on = fabric(latency=1e-6)
    assert seconds(Collective.BROADCAST, GB, 8, 1, on, CollectiveAlgorithm.TREE) == pytest.approx(
        1 / 25 + 3e-6
    )
    assert seconds(Collective.BROADCAST, GB, 8, 1, on, CollectiveAlgorithm.RING) == pytest.approx(
        1 / 25 + 7e-6
    )


def test_pairs_of_a_mesh_have_one_wire():
    on = fabric(448 * GB, switched=False, mesh=True)
    assert bus_bandwidth(Collective.ALL_REDUCE, GB, 2, reduced(GB, 2, 2, on)) == pytest.approx(64e9)
    assert bus_bandwidth(Collective.ALL_REDUCE, GB, 8, reduced(GB, 8, 8, on)) == pytest.approx(448e9)


@pytest.mark.parametrize(("kind", "wires"), [(LinkKind.HCCS, 1), (LinkKind.NVLINK, 7)])
def test_two_devices_of_a_link_without_switches_have_one_wire(kind, wires):
    curves = load_reference_curves().links.value
    on = build_fabric(cluster(link=Link(kind, 196e9, joined=8)), curves)
    pair = bus_bandwidth(Collective.ALL_REDUCE, GB, 2, reduced(GB, 2, 2, on))
    assert pair == pytest.approx(wires * 28e9 * curves.links[kind].rate, rel=0.1)


# --- reduction in the switches ----------------------------------------------------------------------------


def test_the_bus_bandwidth_of_switches_that_reduce_exceeds_the_link():
    """H200, 8 devices: 473 to 482 GB/s of 450 in measurements."""
    on = build_fabric(cluster(), load_reference_curves().links.value)
    found = bus_bandwidth(Collective.ALL_REDUCE, 8 * GIB, 8, reduced(8 * GIB, 8, 8, on))
    assert 450e9 < found == pytest.approx(478e9, rel=0.05)


def test_few_devices_take_a_ring_and_many_the_switches():
    """NCCL on H200 takes a ring of four devices and the switches from five on."""
    on = build_fabric(cluster(), load_reference_curves().links.value)
    ring = [
        reduced(8 * GIB, n, n, on, CollectiveAlgorithm.RING) <= reduced(8 * GIB, n, n, on)
        for n in range(3, 9)
    ]
    assert ring[0]
    assert not any(ring[2:])


def test_a_link_without_such_switches_has_no_such_algorithm():
    with pytest.raises(PlanningError, match="no switches") as refused:
        reduced(GB, 8, 8, fabric(switched=False), CollectiveAlgorithm.IN_NETWORK)
    assert refused.value.code == "ALGORITHM_UNAVAILABLE"


def test_an_algorithm_of_another_collective_is_refused():
    with pytest.raises(PlanningError, match="no all_to_all by tree"):
        seconds(Collective.ALL_TO_ALL, GB, 8, 8, fabric(), CollectiveAlgorithm.TREE)


# --- properties -------------------------------------------------------------------------------------------

sizes = st.floats(1.0, 1e12)
rates = st.floats(1e8, 1e13)
degrees = st.integers(1, 4096)
inside = st.sampled_from([1, 2, 4, 8, 72])
groups = st.tuples(degrees, inside)
links = st.tuples(rates, rates, st.floats(0.0, 1e-3))
OF_EACH = settings(max_examples=20)
"""For each of the 15 collectives and algorithms."""


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@OF_EACH
@given(message=sizes, devices=degrees, per_domain=inside)
def test_links_without_limits_take_no_time(kind, algorithm, message, devices, per_domain):
    on = fabric(math.inf, math.inf)
    assert seconds(kind, message, devices, per_domain, on, algorithm) == 0.0


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@OF_EACH
@given(message=sizes, link=links)
def test_one_device_takes_no_time(kind, algorithm, message, link):
    near, far, latency = link
    on = fabric(near, far, latency=latency, chunk=latency, launch=latency)
    assert seconds(kind, message, 1, 1, on, algorithm) == 0.0


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@OF_EACH
@given(message=sizes, group=groups, link=links, faster=st.tuples(st.floats(1.0, 100.0), st.booleans()))
def test_more_bandwidth_never_slows(kind, algorithm, message, group, link, faster):  # noqa: PLR0917
    (near, far, latency), (times, inner) = link, faster
    before = fabric(near, far, latency=latency, chunk=latency)
    near, far = (near * times, far) if inner else (near, far * times)
    after = fabric(near, far, latency=latency, chunk=latency)
    assert seconds(kind, message, *group, after, algorithm) <= seconds(
        kind, message, *group, before, algorithm
    )


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@OF_EACH
@given(message=sizes, group=groups, link=links, more=st.floats(1.0, 100.0))
def test_more_bytes_never_speed_up(kind, algorithm, message, group, link, more):  # noqa: PLR0917
    near, far, latency = link
    on = fabric(near, far, latency=latency, chunk=latency)
    assert seconds(kind, message, *group, on, algorithm) <= seconds(
        kind, message * more, *group, on, algorithm
    )


@pytest.mark.parametrize(("kind", "algorithm"), EVERY)
@OF_EACH
@given(
    layouts=st.lists(st.tuples(sizes, degrees, inside), min_size=1, max_size=8),
    link=links,
    mesh=st.booleans(),
)
def test_arrays_give_what_numbers_give(kind, algorithm, layouts, link, mesh):
    near, far, latency = link
    on = fabric(near, far, latency=latency, chunk=latency, launch=latency, mesh=mesh)
    one_by_one = [seconds(kind, *layout, on, algorithm) for layout in layouts]
    message, devices, per_domain = np.array(layouts, dtype=np.float64).T
    assert seconds(kind, message, devices, per_domain, on, algorithm) == pytest.approx(one_by_one, rel=1e-12)


@given(message=sizes, devices=st.integers(2, 4096), per_domain=inside)
def test_the_fastest_of_what_nccl_has_is_taken(message, devices, per_domain):
    on = fabric(latency=1e-6)
    each = [
        reduced(message, devices, per_domain, on, algorithm)
        for algorithm in (CollectiveAlgorithm.RING, CollectiveAlgorithm.TREE, CollectiveAlgorithm.IN_NETWORK)
    ]
    assert reduced(message, devices, per_domain, on) == min(each)


def test_small_messages_waste_the_link():
    """C34: an 8 MB all-reduce at a time against 25 MiB buckets on eight H200."""
    on = build_fabric(cluster(), load_reference_curves().calibration.links.value)

    def rate(message):
        return bus_bandwidth(Collective.ALL_REDUCE, message, 8, reduced(message, 8, 8, on))

    assert 1.5 < rate(25 * MIB) / rate(8e6) < 2.5
    assert rate(25 * MIB) / rate(4e6) > 2.0


# --- from a cluster ---------------------------------------------------------------------------------------


def test_the_rates_of_a_cluster_are_those_its_links_achieve():
    curves = load_reference_curves().links
    on = build_fabric(cluster(), curves.value)
    share = curves.value.links[LinkKind.NVLINK].rate
    assert on.intra.bytes_per_second == pytest.approx(450 * GB * share)
    assert on.inter.hop_seconds == 5e-6
    slow, fast = (reduced(GB, 8, 8, build_fabric(cluster(), end)) for end in (curves.slow, curves.fast))
    assert fast < reduced(GB, 8, 8, on) < slow


def test_an_unknown_generation_takes_what_the_known_ones_have_between_them():
    value = load_reference_curves().links.value
    on = build_fabric(cluster("rubin"), value)
    assert on.in_network.bytes_per_second == pytest.approx(450 * GB * value.in_network_pooled)


def test_a_rack_is_one_domain():
    """NVL72: 18 nodes of 4 behind the same switches."""
    link = Link(LinkKind.NVLINK, 900 * GB, joined=72, in_network=True)
    rack = cluster("blackwell", link, 144)._replace(accelerators_per_node=4)
    assert build_fabric(rack, IDEAL_LINKS).domain == 72
    assert build_fabric(rack._replace(accelerator_count=36), IDEAL_LINKS).domain == 36
