"""What is around accelerators, against nodes measured at the wall and the limits of their data sheets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.evidence.service import load_facility_curves
from service.planning.energy.facility import (
    NodeRates,
    build_node_rates,
    compute_node_draw,
    count_fabric_ports,
    dynamic_share,
    fabric_watts,
    host_watts,
    supply_loss_watts,
)
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.facility import Cooling
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import Link, LinkKind
from tests.asking import shipped

CURVES = load_facility_curves()
NODES = {
    "a100-sxm-80gb": 6_500.0,
    "h100-sxm": 10_200.0,
    "h200-sxm": 10_200.0,
    "b200-sxm": 14_300.0,
    "b300-sxm": 14_500.0,
}


def cluster(name="h100-sxm", count=8, **changes):
    accelerator = shipped().accelerators[name].accelerator
    return Cluster(accelerator, count, min(8, count), None)._replace(**changes)


def wall_watts(name, device_watts, *, load=1.0, cooling=Cooling.AIR, end=0):
    """Node of 8 devices, at the middle (0), low (1) or high (2) end."""
    rates = build_node_rates(cluster(name), cooling, CURVES)[end]
    return 8 * device_watts + sum(compute_node_draw(8 * device_watts, load, rates))


class TestMeasuredAtTheWall:
    def test_eight_h100_in_a_bath(self):
        """MLPerf Training v4.1 power: 7.03 kW of a node without fans, devices near their limit."""
        assert wall_watts("h100-sxm", 700.0, cooling=Cooling.IMMERSION) == pytest.approx(7_030.0, rel=0.025)
        assert wall_watts("h100-sxm", 700.0, cooling=Cooling.IMMERSION, end=1) < 7_030.0

    def test_eight_h100_cooled_by_air_at_their_highest(self):
        """Latif et al. 2025: about 8.4 kW, 18% below the 10.2 kW of the data sheet."""
        assert wall_watts("h100-sxm", 700.0) == pytest.approx(8_400.0, rel=0.01)

    def test_eight_h100_cooled_by_air_in_training(self):
        """Newkirk et al. 2025: 76% of 10.2 kW, with devices below their limit."""
        drawn = 0.76 * 10_200.0
        assert wall_watts("h100-sxm", 600.0) < drawn < wall_watts("h100-sxm", 700.0)

    def test_eight_h200_of_less_power_stay_below_what_their_full_limit_draws(self):
        """MLPerf Inference v4.1, MaxQ: 4.7 to 6.3 kW of a server of 8 H200 whose limit is not stated."""
        for drawn in (4_722.6, 4_775.3, 6_153.0, 6_154.8, 6_174.9, 6_280.2):
            assert wall_watts("h200-sxm", 70.0, load=0.0) < drawn < wall_watts("h200-sxm", 700.0)

    @pytest.mark.parametrize(("name", "nameplate"), NODES.items())
    def test_no_node_draws_more_than_its_data_sheet(self, name, nameplate):
        limit = cluster(name).accelerator.power_limit_watts
        value, low, high = (wall_watts(name, limit, end=end) for end in range(3))
        assert 8 * limit < low < value < high < nameplate

    def test_a_scalable_unit_is_its_nodes(self):
        """32 DGX B200: 458 kW by the vendor's guide, 14.3 kW each by their data sheet."""
        assert (
            32 * wall_watts("b200-sxm", 1000.0, end=2)
            < 458_000.0
            < 32 * wall_watts("b200-sxm", 1000.0) * 1.25
        )


@given(st.floats(0.0, 6_000.0), st.floats(0.0, 500.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_node_draws_more_where_its_devices_or_its_host_do(watts, more, load, busier):
    rates = build_node_rates(cluster(), Cooling.AIR, CURVES)[0]

    def drawn(accelerators, host_load):
        return accelerators + sum(compute_node_draw(accelerators, host_load, rates))

    for other in (drawn(watts + more, load), drawn(watts, max(load, busier))):
        assert other >= drawn(watts, load) - 1e-9


@given(st.floats(1.0, 30_000.0), st.floats(1.0, 5_000.0))
def test_supplies_lose_more_where_they_deliver_more(watts, more):
    assert supply_loss_watts(watts + more, 20_000.0) > supply_loss_watts(watts, 20_000.0) > 0.0


def test_the_loss_of_supplies_at_their_certified_loads():
    """80 PLUS Titanium at 230 V: 90, 94, 96 and 91% at 10, 20, 50 and 100% of 1 kW."""
    lost = [supply_loss_watts(load, 1_000.0) for load in (100.0, 200.0, 500.0, 1_000.0)]
    assert lost == pytest.approx([100 / 0.9 - 100, 200 / 0.94 - 200, 500 / 0.96 - 500, 1_000 / 0.91 - 1_000])
    # Below a tenth of the rating nothing is certified.
    assert supply_loss_watts(10.0, 1_000.0) == pytest.approx(10 / 0.9 - 10)


def test_hosts_by_the_measured_share_of_the_reference_server():
    """10.2 kW less 8 x 700 W is 4.6 kW; 26.6% of it is what a node's electronics drew."""
    watts = host_watts(cluster(), CURVES)
    assert watts.value == pytest.approx(0.266 * 4_600)
    assert watts.value == pytest.approx(7_030 * 11_769_962 / 12_127_904 - 5_600, rel=0.01)
    assert watts.low < watts.value < watts.high


def test_hosts_without_a_reference_server_follow_the_accelerators():
    accelerator = shipped().accelerators["h100-pcie"].accelerator
    assert accelerator.server is None
    hosts = host_watts(Cluster(accelerator, 4, 4, None), CURVES)
    assert hosts.value == pytest.approx(0.22 * 4 * accelerator.power_limit_watts)


def test_hosts_of_an_unknown_accelerator_are_unknown():
    unknown = shipped().accelerators["tpu-v5p"].accelerator
    assert host_watts(Cluster(unknown, 8, 8, None), CURVES) is None
    assert build_node_rates(Cluster(unknown, 8, 8, None), Cooling.AIR, CURVES) is None


def test_a_server_below_its_accelerators_is_refused(small_server):
    with pytest.raises(PlanningError, match="Box draws less"):
        host_watts(small_server, CURVES)


@pytest.fixture
def small_server():
    from dataclasses import replace  # noqa: PLC0415

    from service.planning.hardware.cluster import ReferenceServer  # noqa: PLC0415

    box = ReferenceServer(name="Box", accelerator_count=8, power_limit_watts=5_000.0)
    return cluster()._replace(accelerator=replace(cluster().accelerator, server=box))


class TestFabric:
    def test_ports_of_a_fat_tree(self):
        assert [count_fabric_ports(count) for count in (1, 64, 65, 2_048, 2_049, 65_536, 65_537)] == [
            1,
            1,
            3,
            3,
            5,
            5,
            7,
        ]

    def test_sixty_four_measured_nodes(self):
        """0.931 kW of network for each of 64 nodes of 8 H100 (MLPerf Training v4.0 power): our high end."""
        network = cluster(count=512, inter_node_link=Link(LinkKind.INFINIBAND, 50e9))
        watts = fabric_watts(network, CURVES)
        assert watts.value == pytest.approx(512 * 3 * 25.0)
        assert watts.value < 64 * 931.0 <= watts.high * 1.01

    def test_one_node_has_none_and_devices_that_are_wired_to_each_other_neither(self):
        assert fabric_watts(cluster(), CURVES) is None
        assert fabric_watts(cluster(count=64, inter_node_link=Link(LinkKind.ICI, 1e11)), CURVES) is None

    def test_half_the_bandwidth_draws_half(self):
        fast, slow = (
            fabric_watts(cluster(count=64, inter_node_link=Link(LinkKind.ROCE, rate)), CURVES)
            for rate in (50e9, 25e9)
        )
        assert slow.value == pytest.approx(fast.value / 2)


def test_the_load_of_a_host_is_that_of_its_devices():
    assert dynamic_share(70.0, 70.0, 700.0) == 0.0
    assert dynamic_share(700.0, 70.0, 700.0) == 1.0
    assert dynamic_share(385.0, 70.0, 700.0) == pytest.approx(0.5)


def test_the_worked_number_of_the_page():
    """docs/methods/power.md: a node of 8 H100 at their limit, cooled by air."""
    drawn = compute_node_draw(5_600.0, 1.0, build_node_rates(cluster(), Cooling.AIR, CURVES)[0])
    assert drawn == pytest.approx((1_223.6, 1_160.01, 388.78), abs=0.05)
    idle = compute_node_draw(560.0, 0.0, build_node_rates(cluster(), Cooling.AIR, CURVES)[0])
    assert idle.hosts == pytest.approx(611.8)


def test_shipped_constants_say_where_they_come_from():
    shares = [*CURVES[:3], *CURVES.fans.values(), *CURVES[4:]]
    for share in shares:
        assert share.low <= share.value <= share.high
    assert all(len(share.source) > 20 for share in shares)
    assert NodeRates(1.0, 0.5, 0.1, 1.0, 10.0).fans == 0.1
