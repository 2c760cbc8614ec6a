"""Rates and seconds of operators on a measured device."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure
from service.planning.hardware.calibration.operators import OperatorCalibration, OperatorKey, OperatorQuantity
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.nearest import ConstantSearch, RequestedDevice
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis

_FUSED: Final = frozenset(
    {
        OperatorQuantity.ATTENTION_PEAK,
        OperatorQuantity.ATTENTION_FIRST_PEAK,
        OperatorQuantity.ATTENTION_NATIVE_PEAK,
        OperatorQuantity.SCAN_PEAK,
    }
)
"""Shares of the dense rate of the format that they were measured in."""
_UNITS: Final = (
    (NumberFormat.BF16, NumberFormat.FP16),
    (NumberFormat.FP8, NumberFormat.INT8),
)
"""Formats that the same units multiply at the same rate; the first stands for both."""
ATTENTION_FORMATS: Final = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)


def resolve_operators(
    known: OperatorCalibration, search: ConstantSearch, asked: RequestedDevice
) -> OperatorCalibration:
    """Returns the constants of operators with the rates and seconds that were measured."""
    accelerator, constants = asked.accelerator, dict(known.constants)
    bases: dict[OperatorKey, EvidenceBasis] = {}
    peaks = accelerator.peak_flops_per_second
    second = {unit[1] for unit in _UNITS}
    for quantity in OperatorQuantity:
        by_format = quantity is OperatorQuantity.MATRIX_PEAK
        for number_format in [each for each in NumberFormat if each not in second] if by_format else [None]:
            figure_of = _build_operator_lookup(quantity, number_format, accelerator)
            name = ".".join(part for part in ("operators", quantity, number_format) if part)
            if quantity in _FUSED:
                found = search.find_share(name, figure_of, None)
            elif number_format is not None:
                units = (
                    peaks.get(each) for each in _list_formats(quantity, number_format) if each is not None
                )
                found = search.find_share(name, figure_of, next((rate for rate in units if rate), None))
            elif quantity is OperatorQuantity.BANDWIDTH:
                found = search.find_share(name, figure_of, accelerator.bandwidth_bytes_per_second)
            else:
                found = search.find_seconds(name, figure_of)
            if found is not None:
                key = (quantity, accelerator.generation, number_format)
                constants[key], bases[key] = found, search.held[name].basis
    return replace(known, constants=constants, bases=bases, reference=known, _known={})


def _list_formats(
    quantity: OperatorQuantity, number_format: NumberFormat | None
) -> tuple[NumberFormat | None, ...]:
    """Returns the formats whose figure applies to a constant; the first one with a figure is used."""
    if quantity in _FUSED:
        return (*ATTENTION_FORMATS, None)
    if quantity is not OperatorQuantity.MATRIX_PEAK:
        return (None,)
    same = next((unit for unit in _UNITS if number_format in unit), None)
    return same or (number_format,)


def _build_operator_lookup(
    quantity: OperatorQuantity, number_format: NumberFormat | None, accelerator: Accelerator
) -> Callable[[DeviceCalibration], MeasuredFigure | None]:
    """Returns a lookup of the first format with a figure; a missing limit is set to the device's rate."""

    def find_figure(calibration: DeviceCalibration) -> MeasuredFigure | None:
        for each in _list_formats(quantity, number_format):
            figure = calibration.operators.get((quantity, each))
            if figure is not None and figure.limit is None and each is not None:
                return figure._replace(limit=accelerator.peak_flops_per_second.get(each))
            if figure is not None:
                return figure
        return None

    return find_figure
