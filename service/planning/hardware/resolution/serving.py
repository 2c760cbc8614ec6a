"""Constants of engines on a measured device.

The efficiency of software on a device stays: constants of an engine keep their ratio to those of any engine,
and a measured figure replaces the latter where it is worse. So weights stream at

    skinny product, at most what any engine reached, x (stream of the engine / stream of any engine)

whether bandwidth or multiprocessors were the limit in the reference set.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure
from service.planning.hardware.calibration.operators import OperatorCalibration, OperatorQuantity
from service.planning.hardware.calibration.serving import ServingCalibration, ServingQuantity
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.nearest import ConstantSearch, RequestedDevice
from service.planning.hardware.resolution.operators import ATTENTION_FORMATS

_STREAMED: Final = (
    ServingQuantity.WEIGHT_BANDWIDTH,
    ServingQuantity.EXPERT_BANDWIDTH,
    ServingQuantity.CACHE_BANDWIDTH,
)
"""Rates of kernels that stream their operands, over that of a streaming kernel."""


def resolve_serving(
    known: Calibration, operators: OperatorCalibration, search: ConstantSearch, asked: RequestedDevice
) -> ServingCalibration:
    """Returns the constants of engines on the measured device: each keeps its ratio to that of any engine.

    A benchmark bounds the rate of software; a benchmark above the reference does not make software faster.
    """
    serving, accelerator = known.serving, asked.accelerator
    factors: dict[ServingQuantity, float] = {}

    def find_general_value(quantity: ServingQuantity) -> float:
        return serving.find_share(quantity, None).value

    streamed = operators.find_share(OperatorQuantity.BANDWIDTH, accelerator.generation).value
    for quantity in _STREAMED:
        figure_of = _build_streaming_lookup(quantity, accelerator.bandwidth_bytes_per_second, streamed)
        found = search.find_seconds(f"serving.{quantity}", figure_of)
        if found is not None:
            factors[quantity] = min(1.0, found.value / find_general_value(quantity))
    weights = factors.get(ServingQuantity.WEIGHT_BANDWIDTH)
    if weights is not None:
        factors.setdefault(ServingQuantity.EXPERT_BANDWIDTH, weights)
        slower = _compute_stream_factor(known, accelerator, weights, streamed)
        factors[ServingQuantity.UNIT_BANDWIDTH] = min(1.0, slower)
    peaks, quantity = accelerator.peak_flops_per_second, ServingQuantity.DECODE_ATTENTION
    wide = next((peaks[each] for each in ATTENTION_FORMATS if peaks.get(each)), None)
    if (found := search.find_share(f"serving.{quantity}", _build_serving_lookup(quantity), wide)) is not None:
        factors[quantity] = min(1.0, found.value / find_general_value(quantity))
    quantity = ServingQuantity.SCALED_SHARE
    if (found := search.find_seconds(f"serving.{quantity}", _build_serving_lookup(quantity))) is not None:
        factors[quantity] = min(1.0, found.value / find_general_value(quantity))
    quantity = ServingQuantity.WIDENED_BANDWIDTH
    if (found := search.find_seconds(f"serving.{quantity}", _build_serving_lookup(quantity))) is not None:
        # The worker's own kernel measures it: those of engines are as fast or faster.
        factors[quantity] = max(1.0, min(1.0, found.value) / find_general_value(quantity))
    quantity = ServingQuantity.KERNEL_SECONDS
    if (found := search.find_seconds(f"serving.{quantity}", _build_serving_lookup(quantity))) is not None:
        factors[quantity] = max(1.0, found.value / find_general_value(quantity))
    if not factors:
        return serving
    constants = {
        key: _scale_share(share, factors.get(key[0], 1.0)) for key, share in serving.constants.items()
    }
    return replace(serving, constants=constants, _known={})


def _compute_stream_factor(
    known: Calibration, accelerator: Accelerator, factor: float, streamed: float
) -> float:
    """Returns measured over expected rate of streaming weights, the latter under both limits of any engine.

    A node that streams weights at half the rate does so whichever limit the reference set has: each
    multiprocessor has fewer bytes in flight, too.
    """
    bandwidth, serving = accelerator.bandwidth_bytes_per_second, known.serving
    reached = serving.find_share(ServingQuantity.WEIGHT_BANDWIDTH, None).value
    before = known.operators.find_share(OperatorQuantity.BANDWIDTH, accelerator.generation).value
    if bandwidth is None:
        return factor * streamed / before
    machine, expected = known.operators.find_machine(accelerator.id, accelerator.generation), before * reached
    if machine.bounds_streams:
        most = machine.multiprocessors * serving.find_share(ServingQuantity.UNIT_BANDWIDTH, None).value
        expected = min(expected, most / bandwidth)
    return factor * reached * streamed / expected


def _build_serving_lookup(quantity: ServingQuantity) -> Callable[[DeviceCalibration], MeasuredFigure | None]:
    return lambda each: each.serving.get(quantity)


def _build_streaming_lookup(
    quantity: ServingQuantity, bandwidth: float | None, streamed: float
) -> Callable[[DeviceCalibration], MeasuredFigure | None]:
    """Returns a lookup of a rate over that of streaming kernels of the same set, or over the known share."""

    def find_figure(each: DeviceCalibration) -> MeasuredFigure | None:
        figure, stream = each.serving.get(quantity), each.operators.get((OperatorQuantity.BANDWIDTH, None))
        if figure is None:
            return None
        limit = bandwidth or figure.limit
        over = stream.value if stream else limit and limit * streamed
        if not over:
            return None
        low, value, high = (end / over for end in figure.ends)
        return MeasuredFigure(low, value, high, figure.runs, None, figure.source)

    return find_figure


def _scale_share(share: AchievedShare, factor: float) -> AchievedShare:
    if factor == 1.0:
        return share
    return share._replace(low=share.low * factor, value=share.value * factor, high=share.high * factor)
