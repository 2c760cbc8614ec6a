"""Curves with measured constants in their place."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure
from service.planning.hardware.calibration.operators import OperatorQuantity
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.distance import ServingEvidence
from service.planning.hardware.nearest import (
    ACCELERATOR_KIND,
    PROCESSOR_GENERATION,
    ConstantSearch,
    DistanceLevel,
    RequestedDevice,
    build_levels,
)
from service.planning.hardware.resolution.constants import DeviceConstants
from service.planning.hardware.resolution.links import resolve_links
from service.planning.hardware.resolution.operators import resolve_operators
from service.planning.hardware.resolution.power import resolve_power
from service.planning.hardware.resolution.serving import resolve_serving
from service.planning.quantity import EvidenceBasis, Quantity

_HOST: Final = (
    "host_link_bytes_per_second",
    "host_memory_bytes_per_second",
    "storage_read_bytes_per_second",
    "storage_write_bytes_per_second",
)


def resolve_curves(
    curves: ReferenceCurves, sets: Iterable[DeviceCalibration], asked: RequestedDevice
) -> DeviceConstants:
    """Returns the reference set with the constants of ``sets`` in place of those of the device's generation.

    Without a set that applies, the curves are the same object. Shares are of the data sheet, seconds and
    bytes as they were measured.
    """
    if asked.calibration_id is not None:
        sets = [each for each in sets if each.id == asked.calibration_id]
    near = build_levels(sets, asked)
    if not near:
        return DeviceConstants(curves)
    given, asked = asked, _apply_node_rates(asked, near[0])
    search = ConstantSearch(near)
    known = curves.calibration
    operators = resolve_operators(known.operators, search, asked)
    calibration = Calibration(
        operators=operators,
        links=resolve_links(known.links, search, asked),
        steps=known.steps,
        passes=known.passes,
        serving=resolve_serving(known, operators, search, asked),
        power=resolve_power(known.power, search, asked),
    )
    _find_host_figures(search)
    changed = _apply_context(replace(curves, calibration=calibration), search)
    if "operators.bandwidth" in search.held and operators.list_bases(OperatorQuantity.MATRIX_PEAK):
        evidence = changed.serving_evidence
        changed = replace(
            changed,
            serving_evidence=ServingEvidence(
                evidence.systems,
                evidence.parameter_counts,
                frozenset({asked.accelerator.id}),
            ),
        )
    limits = {each.scope.power_limit_watts for each in near[0].sets}
    of_node = near[0].basis is EvidenceBasis.CALIBRATED_NODE and not asked.specified
    limit = limits.pop() if of_node and len(limits) == 1 else None
    device, stated = asked.accelerator, given.accelerator
    rates = {
        number_format: rate
        for number_format, rate in device.peak_flops_per_second.items()
        if number_format not in stated.peak_flops_per_second
    }
    streams = device.bandwidth_bytes_per_second if stated.bandwidth_bytes_per_second is None else None
    generation = PROCESSOR_GENERATION if _is_processor(near[0]) else None
    return DeviceConstants(changed, search.held, tuple(search.above_limit), limit, streams, rates, generation)


def _is_processor(nearest: DistanceLevel) -> bool:
    return all(each.scope.kind != ACCELERATOR_KIND for each in nearest.sets)


def _apply_node_rates(asked: RequestedDevice, nearest: DistanceLevel) -> RequestedDevice:
    """Returns the device with the measured rates of its node for rates that the question does not give.

    A processor has no data sheet of an accelerator, so that its measured rates are all that is known of it,
    and takes the tiles of processors.
    """
    if _is_processor(nearest):
        accelerator = replace(asked.accelerator, generation=PROCESSOR_GENERATION)
        asked = asked._replace(accelerator=accelerator)
    if not asked.specified or nearest.basis is not EvidenceBasis.CALIBRATED_NODE:
        return asked
    accelerator, rates = asked.accelerator, dict(asked.accelerator.peak_flops_per_second)
    bandwidth = accelerator.bandwidth_bytes_per_second
    for each in reversed(nearest.sets):
        for (quantity, number_format), figure in each.operators.items():
            if quantity is OperatorQuantity.MATRIX_PEAK and number_format is not None:
                rates.setdefault(number_format, figure.value)
            elif quantity is OperatorQuantity.BANDWIDTH:
                bandwidth = bandwidth or figure.value
    filled = replace(accelerator, bandwidth_bytes_per_second=bandwidth, peak_flops_per_second=rates)
    return asked._replace(accelerator=filled)


def _find_host_figures(search: ConstantSearch) -> None:
    for name in _HOST:
        search.find_seconds(name, lambda each, name=name: getattr(each, name))  # type: ignore[misc]


def _apply_context(curves: ReferenceCurves, search: ConstantSearch) -> ReferenceCurves:
    """Returns the curves with the measured context of a device, and looks up its memory."""
    search.find_seconds("memory_bytes", lambda each: _build_figure(each.memory_bytes))
    context = search.find_seconds("context_bytes", lambda each: _build_figure(each.context_bytes))
    if context is None:
        return curves
    serving = {
        engine: {name: context if name == "context_bytes" else share for name, share in known.items()}
        for engine, known in curves.serving_memory.items()
    }
    training = curves.training_memory._replace(context=context)
    return replace(curves, training_memory=training, serving_memory=serving)


def _build_figure(measured: Quantity | None) -> MeasuredFigure | None:
    if measured is None:
        return None
    return MeasuredFigure(measured.low, measured.value, measured.high, 1, None, "measured on the device")
