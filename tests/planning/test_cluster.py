import pytest

from service.evidence.service import reference_curves
from service.planning.cluster import Accelerator, Cluster, Server, host_power, memory_capacity
from service.planning.errors import PlanningError
from service.planning.precision import NumberFormat
from service.planning.quantity import Basis, assumed

CURVES = reference_curves()
SHARE = CURVES.reported_memory


def accelerator(**changes) -> Accelerator:
    figures = {
        "id": "x",
        "generation": "hopper",
        "capacity_bytes": None,
        "bandwidth_bytes_per_second": 3.35e12,
        "peak_flops_per_second": {NumberFormat.BF16: 989e12},
        "power_limit_watts": 700.0,
        "server": Server(name="DGX H100", accelerator_count=8, power_limit_watts=10_200.0),
    }
    return Accelerator(**{**figures, **changes})


def capacity(**changes):
    given = {"label_gb": 80.0, "label_reading": "unknown", "reported_bytes": None, "reported_share": SHARE}
    return memory_capacity(**{**given, **changes})


def test_what_the_driver_reports_is_exact():
    reported = capacity(reported_bytes=84_929_757_053)
    assert (reported.value, reported.low, reported.basis) == (84_929_757_053, 84_929_757_053, Basis.EXACT)


def test_a_label_is_an_interval_and_not_80e9_bytes():
    labelled = capacity()
    assert labelled.low < 80e9 < labelled.value < labelled.high == 80 * 2**30
    assert labelled.low < 84_929_757_053 < labelled.high


def test_a_decimal_label_caps_the_interval():
    assert capacity(label_reading="decimal").high == 80e9


def test_no_label_is_no_capacity():
    assert capacity(label_gb=None) is None


def test_hosts_by_the_measured_share_of_the_reference_server():
    """10.2 kW less 8 x 700 W is 4.6 kW; 31% of it is the 7.03 kW that MLPerf nodes draw, less 5.6 kW."""
    power = host_power(Cluster(accelerator(), 8, 8, None), CURVES)
    assert power.value == pytest.approx(0.31 * 4600)
    assert power.value == pytest.approx(7030 - 5600, rel=0.01)
    assert (power.low, power.high) == pytest.approx((0.043 * 4600, 4600))


def test_hosts_without_a_reference_server_follow_the_accelerators():
    power = host_power(Cluster(accelerator(server=None), 4, 4, None), CURVES)
    assert power.value == pytest.approx(0.26 * 4 * 700)


def test_hosts_as_given():
    assert host_power(Cluster(accelerator(), 8, 8, assumed(200.0)), CURVES) == assumed(200.0)


def test_hosts_of_an_unknown_accelerator_are_unknown():
    assert host_power(Cluster(accelerator(power_limit_watts=None), 8, 8, None), CURVES) is None


def test_a_server_below_its_accelerators_is_refused():
    impossible = accelerator(server=Server(name="Box", accelerator_count=8, power_limit_watts=5000.0))
    with pytest.raises(PlanningError, match="Box draws less"):
        host_power(Cluster(impossible, 8, 8, None), CURVES)


def test_nodes_round_up():
    assert Cluster(accelerator(), 1001, 8, None).node_count == 126


def test_the_first_known_rate_counts():
    assert accelerator().peak(NumberFormat.FP8, NumberFormat.BF16) == (NumberFormat.BF16, 989e12)
    assert accelerator().peak(NumberFormat.FP8) is None
