"""Which measured constants hold for a device: level by level, pooled over nodes, none of another kind."""

from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.hardware.calibration import OperatorQuantity, PowerQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredLink
from service.planning.hardware.links import LinkKind
from service.planning.hardware.nearest import RequestedDevice
from service.planning.hardware.resolution import resolve_curves
from service.planning.operators import build_machine
from service.planning.operators.timing import matrix_seconds
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity
from tests.asking import shipped
from tests.calibrated import a_set, figure, scope_of

CATALOG = shipped()
CURVES = CATALOG.curves
H100, H200, A100 = (
    CATALOG.accelerators[name].accelerator for name in ("h100-sxm", "h200-sxm", "a100-sxm-80gb")
)
STREAMS = OperatorQuantity.BANDWIDTH
EXPECTED = CURVES.calibration.operators.find_share(STREAMS, "hopper").value


def stream(found, accelerator=H100):
    return found.curves.calibration.operators.find_share(STREAMS, accelerator.generation)


def slow(id, streaming, name="h100-sxm", **scope):  # noqa: A002
    return a_set(CATALOG, name, streaming=streaming, id=id, **scope)


NODE = slow("node", 0.5, node="asked")
SAME_DRIVER = slow("driver", 0.6, node="b")
OTHER_DRIVER = slow("sku", 0.7, node="c", driver_major=535)
CAPPED = slow("capped", 0.4, node="e", power_limit_watts=500.0)
OF_GENERATION = slow("generation", 0.8, name="h200-sxm", node="d")
OF_ANOTHER = slow("ampere", 0.9, name="a100-sxm-80gb", node="f")
ASKED = RequestedDevice(H100, node_id="asked", driver_major=570)


@pytest.mark.parametrize(
    ("sets", "expected", "basis", "ids"),
    [
        ([NODE, SAME_DRIVER, OTHER_DRIVER, OF_GENERATION], 0.5, EvidenceBasis.CALIBRATED_NODE, ("node",)),
        ([SAME_DRIVER, OTHER_DRIVER, CAPPED, OF_GENERATION], 0.6, EvidenceBasis.CALIBRATED_SKU, ("driver",)),
        ([OTHER_DRIVER, OF_GENERATION], 0.7, EvidenceBasis.CALIBRATED_SKU, ("sku",)),
        ([CAPPED, OF_GENERATION], 0.4, EvidenceBasis.CALIBRATED_SKU, ("capped",)),
        ([OF_GENERATION, OF_ANOTHER], 0.8, EvidenceBasis.CALIBRATED_GENERATION, ("generation",)),
    ],
)
def test_the_nearest_level_gives_a_constant(sets, expected, basis, ids):
    found = resolve_curves(CURVES, sets, ASKED)
    assert stream(found).value == pytest.approx(EXPECTED * expected)
    assert found.held["operators.bandwidth"].basis is basis
    assert found.held["operators.bandwidth"].ids == ids
    assert found.curves.calibration.operators.get_rates("hopper").get_basis(STREAMS) is basis


def test_each_constant_finds_its_own_level():
    only_products = replace(NODE, operators={k: v for k, v in NODE.operators.items() if k[0] is not STREAMS})
    found = resolve_curves(CURVES, [only_products, SAME_DRIVER], ASKED)
    assert found.held["operators.matrix_peak.bf16"].basis is EvidenceBasis.CALIBRATED_NODE
    assert found.held["operators.bandwidth"].basis is EvidenceBasis.CALIBRATED_SKU
    assert found.list_calibration_ids(["operators."]) == ("node", "driver")


@pytest.mark.parametrize(
    "sets",
    [
        [],
        [OF_ANOTHER],
        [replace(NODE, scope=NODE.scope._replace(kind="cpu"))],
        [replace(NODE, scope=NODE.scope._replace(kind="cpu", generation="hopper", accelerator_id=None))],
        [replace(NODE, scope=NODE.scope._replace(accelerator_id="a100-sxm-80gb", generation="ampere"))],
    ],
)
def test_what_says_nothing_of_a_device_leaves_the_reference_set(sets):
    found = resolve_curves(CURVES, sets, ASKED)
    assert found.curves is CURVES
    assert not found.held


def test_a_processor_calibrates_figures_that_its_own_node_is_asked_for_and_nothing_else():
    host = DeviceCalibration(
        id="cpu",
        scope=scope_of(H100, node="host", kind="cpu", accelerator_id=None, generation=None),
        operators={
            (STREAMS, None): figure(2e10),
            (OperatorQuantity.MATRIX_PEAK, NumberFormat.FP32): figure(1e11),
        },
    )
    machine = replace(
        H100, id="this machine", generation="", bandwidth_bytes_per_second=4e10, peak_flops_per_second={}
    )
    found = resolve_curves(CURVES, [host], RequestedDevice(machine, specified=True, node_id="host"))
    assert stream(found, found.apply_to_accelerator(machine)).value == pytest.approx(0.5)
    # The rate that nobody gave is the one that was measured.
    assert found.apply_to_accelerator(machine).peak_flops_per_second == {NumberFormat.FP32: 1e11}
    assert resolve_curves(CURVES, [host], RequestedDevice(machine, specified=True)).curves is CURVES
    cuda = replace(host, scope=host.scope._replace(kind="cuda", accelerator_id="h100-sxm"))
    assert not resolve_curves(CURVES, [host], RequestedDevice(H100, node_id="host")).held
    assert resolve_curves(CURVES, [cuda], RequestedDevice(H100, node_id="host")).held


@pytest.mark.parametrize("generation", ["", "sapphire-rapids", "hopper"])
def test_a_processor_has_no_waves_of_tiles(generation):
    """One row of 4,096 x 4,096 is padded to the six rows of a micro-kernel, not to 128 of a GPU's tile."""
    host = DeviceCalibration(
        id="cpu",
        scope=scope_of(H100, node="host", kind="cpu", accelerator_id=None, generation=None),
        operators={
            (STREAMS, None): figure(2e11),
            (OperatorQuantity.MATRIX_PEAK, NumberFormat.FP32): figure(4e12),
        },
    )
    given = replace(
        H100,
        id="this machine",
        generation=generation,
        bandwidth_bytes_per_second=None,
        peak_flops_per_second={},
    )
    found = resolve_curves(CURVES, [host], RequestedDevice(given, specified=True, node_id="host"))
    machine = build_machine(found.apply_to_accelerator(given), found.curves.calibration.operators)
    for rows, padded in ((1.0, 6.0), (6.0, 6.0), (132.0, 132.0), (4096.0, 4098.0)):
        seconds = matrix_seconds(rows, 4096.0, 4096.0, 1.0, machine=machine, number_format=NumberFormat.FP32)
        assert seconds == pytest.approx(2.0 * padded * 4096.0 * 4096.0 / 4e12, rel=1e-9)


nodes = st.lists(st.floats(0.2, 1.1), min_size=1, max_size=5)


@settings(max_examples=25)
@given(rates=nodes)
def test_nodes_are_pooled_by_their_middle_and_their_range(rates):
    sets = [slow(f"s{place}", rate, node=f"n{place}") for place, rate in enumerate(rates)]
    found = stream(resolve_curves(CURVES, sets, RequestedDevice(H100)))
    assert found.value == pytest.approx(EXPECTED * median(rates))
    assert found.low == pytest.approx(EXPECTED * min(rates) * 0.99)
    assert found.high == pytest.approx(min(1.0, EXPECTED * max(rates) * 1.01))
    assert found.low <= found.value <= found.high
    backwards = resolve_curves(CURVES, sets[::-1], RequestedDevice(H100))
    assert stream(backwards)[:4] == found[:4]


@settings(max_examples=25)
@given(streaming=st.floats(0.1, 1.1), matrices=st.floats(0.1, 1.1))
def test_a_rate_comes_back_as_it_was_measured(streaming, matrices):
    """On the accelerator itself; on another of its generation the share does."""
    measured = a_set(CATALOG, "h100-sxm", streaming=streaming, matrices=matrices)
    key = OperatorQuantity.MATRIX_PEAK, NumberFormat.BF16
    for accelerator in (H100, H200):
        found = resolve_curves(CURVES, [measured], RequestedDevice(accelerator)).curves.calibration.operators
        rates = found.get_rates("hopper")
        share = measured.operators[key].value / H100.peak_flops_per_second[NumberFormat.BF16]
        assert rates.matrix_peak[NumberFormat.BF16] == pytest.approx(min(1.0, share))
        assert rates.matrix_peak[NumberFormat.FP16] == rates.matrix_peak[NumberFormat.BF16]
        assert rates.bandwidth == pytest.approx(EXPECTED * streaming)


def test_the_newest_set_of_a_node_stands_for_it():
    again = replace(slow("newer", 0.9, node="b"), serving={})
    found = resolve_curves(CURVES, [SAME_DRIVER, again], ASKED)
    assert found.held["operators.bandwidth"].ids == ("newer",)
    # What the newer one does not hold still comes from the older.
    assert found.held["serving.weight_bandwidth"].ids == ("driver",)


@settings(max_examples=20)
@given(streaming=st.floats(0.2, 1.0), engine=st.sampled_from([None, "llama.cpp", "vllm"]))
def test_weights_stream_at_the_measured_part_of_an_engines_rate_whatever_capped_it(streaming, engine):
    name = next((key[1] for key in CURVES.calibration.serving.constants if key[1] == engine), None)
    found = resolve_curves(CURVES, [slow("s", streaming)], RequestedDevice(H100)).curves.calibration

    def rate(calibration):
        rates = calibration.serving.get_rates(name)
        machine = calibration.operators.find_machine("h100-sxm", "hopper")
        streams = H100.bandwidth_bytes_per_second * calibration.operators.get_rates("hopper").bandwidth
        return min(streams * rates.weight_bandwidth, machine.multiprocessors * rates.unit_bandwidth)

    assert rate(found) == pytest.approx(streaming * rate(CURVES.calibration))


def test_products_of_few_rows_keep_their_ratio_to_streams_of_the_node():
    """A node at half the bandwidth whose skinny products were not measured takes the ratio of its kind."""
    bare = a_set(CATALOG, "h100-sxm", streaming=0.5, skinny=False, id="bare", node="asked")
    found = resolve_curves(CURVES, [slow("whole", 1.0, node="b"), bare], ASKED).curves.calibration
    known = CURVES.calibration.serving.find_share(ServingQuantity.WEIGHT_BANDWIDTH, None).value
    assert found.serving.find_share(ServingQuantity.WEIGHT_BANDWIDTH, None).value == pytest.approx(known)


@pytest.mark.parametrize(("reached", "factor"), [(0.95, 1.0), (0.5, 0.5 / 0.70990)])
def test_a_kernel_alone_bounds_an_engine_and_makes_none_faster(reached, factor):
    """Engines reach 0.70990 of the rate of streams over their caches."""
    quantity = ServingQuantity.CACHE_BANDWIDTH
    streams = NODE.operators[STREAMS, None].value
    own = replace(NODE, serving={quantity: figure(reached * streams, H100.bandwidth_bytes_per_second)})
    found = resolve_curves(CURVES, [own], ASKED).curves.calibration.serving.find_share(quantity, None)
    expected = CURVES.calibration.serving.find_share(quantity, None)
    assert found.value / expected.value == pytest.approx(factor, rel=0.01)


def test_attention_is_a_share_of_the_format_that_it_was_measured_in():
    quantity, fp32 = OperatorQuantity.ATTENTION_PEAK, NumberFormat.FP32
    peak = H100.peak_flops_per_second[fp32]
    for number_format, limit in ((fp32, peak), (fp32, None), (None, peak)):
        own = replace(NODE, operators={(quantity, number_format): figure(0.4 * peak, limit)})
        found = resolve_curves(CURVES, [own], ASKED).curves.calibration.operators
        assert found.get_rates("hopper").attention_peak == pytest.approx(0.4)


def test_habits_of_an_engine_are_none_of_a_device():
    own = replace(NODE, serving={ServingQuantity.HOST_SECONDS: figure(1.0)}, operators={})
    assert resolve_curves(CURVES, [own], ASKED).curves.calibration.serving is CURVES.calibration.serving


def test_a_rate_above_the_data_sheet_counts_as_all_of_it():
    found = resolve_curves(CURVES, [slow("fast", 1.3)], RequestedDevice(H100))
    assert stream(found).value == stream(found).high == 1.0
    assert found.above_limit == ("operators.bandwidth",)


def test_memory_of_a_device_is_what_can_be_allocated_and_its_context():
    measured = replace(
        NODE,
        memory_bytes=Quantity(84e9, 83e9, 84.5e9, EvidenceBasis.CALIBRATED_NODE),
        context_bytes=Quantity(0.6e9, 0.5e9, 0.7e9, EvidenceBasis.CALIBRATED_NODE),
    )
    found = resolve_curves(CURVES, [measured], ASKED)
    assert found.apply_to_accelerator(H100).capacity_bytes == (
        84.6e9,
        83.5e9,
        85.2e9,
        EvidenceBasis.CALIBRATED_NODE,
    )
    assert found.curves.training_memory.context.value == 0.6e9
    assert {
        each["context_bytes"].value
        for each in found.curves.serving_memory.values()
        if "context_bytes" in each
    } == {0.6e9}
    # Another accelerator of the generation has other memory.
    assert (
        resolve_curves(CURVES, [measured], RequestedDevice(H200)).apply_to_accelerator(H200).capacity_bytes
        == H200.capacity_bytes
    )


def test_a_link_has_the_share_and_the_seconds_that_were_measured():
    link = MeasuredLink(figure(3e11, 4.5e11), figure(2e-6), figure(9e-6), figure(2.7e11, 4.5e11))
    found = resolve_curves(CURVES, [replace(NODE, links={LinkKind.NVLINK: link})], ASKED).curves.links
    assert found.value.links[LinkKind.NVLINK].rate == pytest.approx(2 / 3)
    assert found.value.links[LinkKind.NVLINK].hop_seconds == 2e-6
    assert found.value.launch_seconds == 9e-6
    assert found.value.in_network["hopper"] == pytest.approx(0.6)
    assert found.slow.links[LinkKind.NVLINK].rate < found.value.links[LinkKind.NVLINK].rate
    assert found.value.links[LinkKind.PCIE] == CURVES.links.value.links[LinkKind.PCIE]


def test_power_is_a_share_of_the_limit_that_it_was_measured_under():
    shares = (PowerQuantity.IDLE_SHARE, PowerQuantity.ACTIVE_SHARE, PowerQuantity.MATRIX_SHARE)
    draw = {each: figure(watts, 500.0) for each, watts in zip(shares, (60.0, 100.0, 400.0), strict=True)}
    part = resolve_curves(
        CURVES, [replace(CAPPED, power=draw)], RequestedDevice(H100)
    ).curves.calibration.power
    assert part.get_rates("hopper").idle_share == pytest.approx(0.12)
    assert part.basis_of_draw is None
    draw[PowerQuantity.BYTE_JOULES] = figure(8e-11)
    whole = resolve_curves(
        CURVES, [replace(CAPPED, power=draw)], RequestedDevice(H100)
    ).curves.calibration.power
    assert whole.basis_of_draw is EvidenceBasis.CALIBRATED_SKU
    node = resolve_curves(CURVES, [replace(CAPPED, power=draw)], RequestedDevice(H100, node_id="e"))
    assert node.apply_to_accelerator(H100).power_limit_watts == 500.0


def test_power_of_another_part_of_the_generation_is_not_taken():
    """An H200 draws more for its memory than an H100; its rates are shares of data sheets, and hold."""
    draw = {PowerQuantity.IDLE_SHARE: figure(121.0, 700.0), PowerQuantity.BYTE_JOULES: figure(9e-11)}
    found = resolve_curves(CURVES, [replace(NODE, power=draw)], RequestedDevice(H200))
    assert "operators.bandwidth" in found.held
    assert found.curves.calibration.power is CURVES.calibration.power
