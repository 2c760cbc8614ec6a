from service.evidence.service import load_reference_curves
from service.planning.hardware.cluster import Accelerator, Cluster, ReferenceServer, memory_capacity
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis

CURVES = load_reference_curves()
SHARE = CURVES.reported_memory


def accelerator(**changes) -> Accelerator:
    figures = {
        "id": "x",
        "generation": "hopper",
        "capacity_bytes": None,
        "bandwidth_bytes_per_second": 3.35e12,
        "peak_flops_per_second": {NumberFormat.BF16: 989e12},
        "power_limit_watts": 700.0,
        "server": ReferenceServer(name="DGX H100", accelerator_count=8, power_limit_watts=10_200.0),
    }
    return Accelerator(**{**figures, **changes})


def capacity(**changes):
    given = {"label_gb": 80.0, "label_reading": "unknown", "reported_bytes": None, "reported_share": SHARE}
    return memory_capacity(**{**given, **changes})


def test_what_the_driver_reports_is_exact():
    reported = capacity(reported_bytes=84_929_757_053)
    assert (reported.value, reported.low, reported.basis) == (
        84_929_757_053,
        84_929_757_053,
        EvidenceBasis.EXACT,
    )


def test_a_label_is_an_interval_and_not_80e9_bytes():
    labelled = capacity()
    assert labelled.low < 80e9 < labelled.value < labelled.high == 80 * 2**30
    assert labelled.low < 84_929_757_053 < labelled.high


def test_a_decimal_label_caps_the_interval():
    assert capacity(label_reading="decimal").high == 80e9


def test_no_label_is_no_capacity():
    assert capacity(label_gb=None) is None


def test_nodes_round_up():
    assert Cluster(accelerator(), 1001, 8, None).node_count == 126


def test_the_first_known_rate_counts():
    assert accelerator().find_peak(NumberFormat.FP8, NumberFormat.BF16) == (NumberFormat.BF16, 989e12)
    assert accelerator().find_peak(NumberFormat.FP8) is None
