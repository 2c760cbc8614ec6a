"""Constants of the reference set in the units of a measured set, and of the set before."""

import pytest

from service.calibrations import service as calibrations
from service.calibrations.errors import CalibrationNotFound
from service.calibrations.references import find_reference_values
from service.evidence.service import load_reference_curves
from service.planning.hardware.links import LinkKind
from service.planning.precision import NumberFormat
from tests.benchmarks.measured_nodes import MeasuredNodes
from tests.benchmarks.planned import SUITE, Planned, device

REFERENCE = load_reference_curves().calibration
RATES = device().machine.rates
USUAL = Planned(device()).figure
SLOW = Planned(device(), stream=0.5).figure


def value_of(name, limit=None, generation="hopper"):
    figure = {"name": name} if limit is None else {"name": name, "limit": limit}
    return find_reference_values([figure], generation, REFERENCE).get(name)


@pytest.mark.parametrize(
    ("name", "limit", "value"),
    [
        ("operators.matrix_peak.bf16", 989e12, 989e12 * RATES.matrix_peak[NumberFormat.BF16]),
        ("operators.bandwidth", 3.35e12, 3.35e12 * RATES.bandwidth),
        ("operators.kernel_seconds", None, RATES.kernel_seconds),
        ("operators.wave_tail", None, RATES.wave_tail),
        ("power.idle_share", 700.0, 700.0 * REFERENCE.power.get_rates("hopper").idle_share),
        ("power.byte_joules", None, REFERENCE.power.get_rates("hopper").byte_joules),
        ("links.nvlink.rate", 450e9, 450e9 * REFERENCE.links.value.links[LinkKind.NVLINK].rate),
        ("links.nvlink.hop_seconds", None, REFERENCE.links.value.links[LinkKind.NVLINK].hop_seconds),
        ("links.nvlink.launch_seconds", None, REFERENCE.links.value.launch_seconds),
        ("links.nvlink.in_network_rate", 450e9, 450e9 * REFERENCE.links.value.in_network["hopper"]),
    ],
)
def test_the_reference_speaks_in_the_unit_of_the_figure(name, limit, value):
    assert value_of(name, limit) == pytest.approx(value)


def test_a_share_without_its_limit_is_no_rate():
    assert value_of("operators.bandwidth") is None
    assert value_of("memory_bytes") is None
    assert value_of("operators.bandwidth", 3.35e12, generation=None) is None


def test_a_node_that_measures_as_planning_has_it_changes_nothing(database):
    """Every constant that has a counterpart is inverted from its own formula."""
    fleet = MeasuredNodes(database)
    fleet.node("node")
    fleet.run("node", USUAL)
    with database.open_writer() as session:
        (drawn,) = calibrations.calibrate_node(session, "default", "node", REFERENCE)
    with database.open_reader() as session:
        former = calibrations.find_former_constants(session, "default", drawn, REFERENCE)
        figures = calibrations.get_calibration(session, "default", drawn)["figures"]
    assert former.number is None
    measured = {figure["name"]: figure["value"] for figure in figures}
    assert len(former.values) >= 10
    for name, value in former.values.items():
        assert measured[name] == pytest.approx(value, rel=0.02), name


def test_a_later_set_replaces_the_one_before(database):
    fleet = MeasuredNodes(database)
    fleet.node("node")
    drawn = []
    for planned in (USUAL, SLOW):
        fleet.run("node", planned, benchmarks=SUITE)
        with database.open_writer() as session:
            drawn += calibrations.calibrate_node(session, "default", "node", REFERENCE)
    first, second = drawn
    with database.open_reader() as session:
        before = {
            one["name"]: one["value"]
            for one in calibrations.get_calibration(session, "default", first)["figures"]
        }
        former = calibrations.find_former_constants(session, "default", second, REFERENCE)
        with pytest.raises(CalibrationNotFound):
            calibrations.find_former_constants(session, "other", second, REFERENCE)
    assert former.number == 1
    assert former.values["operators.bandwidth"] == before["operators.bandwidth"]
