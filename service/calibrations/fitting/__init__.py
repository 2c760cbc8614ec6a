"""Figures of a device computed from observations, each as the quantity that planning defines."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import MISSING

from service.calibrations.fitting.device import FittedDevice
from service.calibrations.fitting.links import CollectiveLine, CollectiveMessage, fit_lines, fit_link
from service.calibrations.fitting.memory import compute_memory_figures, compute_rates
from service.calibrations.fitting.observations import (
    BenchmarkObservation,
    FittedFigure,
    build_rests_on,
    count_runs,
    format_source,
    select_work,
)
from service.calibrations.fitting.operators import (
    SHAPED,
    compute_attention,
    compute_bandwidth,
    compute_kernel_seconds,
    compute_peaks,
    fit_shapes,
    replace_rates,
)
from service.calibrations.fitting.power import compute_power_figures
from service.calibrations.fitting.serving import (
    compute_cache_bandwidth,
    compute_expert_bandwidth,
    compute_scaled_share,
    compute_weight_bandwidth,
    compute_widened_bandwidth,
)
from service.calibrations.sets import build_name
from service.planning.hardware.calibration import ServingQuantity
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.hardware.collectives import Collective, CollectiveAlgorithm
from service.planning.operators import DeviceMachine
from service.planning.precision import NumberFormat
from service.protocol.work.links import CollectiveWork

__all__ = ["BenchmarkObservation", "DeviceFit", "FittedDevice", "compute_figures"]


class DeviceFit(NamedTuple):
    """The figures of a device, and the lines through the times of its messages."""

    figures: tuple[FittedFigure, ...]
    lines: tuple[CollectiveLine, ...] = ()

    def to_documents(self) -> list[dict[str, Any]]:
        """Returns the lines as they are stored."""
        return [line.to_document() for line in self.lines]


def compute_figures(observations: Sequence[BenchmarkObservation], device: FittedDevice) -> DeviceFit:
    """Computes all figures that the observations of one device determine."""
    found = compute_bandwidth(observations, device)
    machine, accelerator = device.machine, device.accelerator
    if machine is None or accelerator is None:
        found += compute_peaks(observations, None)
        beside = 0.0
    else:
        machine, of_operators = _compute_operators(
            observations, device, accelerator.generation, machine, found
        )
        found += of_operators
        beside = machine.rates.kernel_seconds
    weights = compute_weight_bandwidth(observations, device, beside)
    found += weights
    found += compute_expert_bandwidth(observations, device, beside)
    found += compute_cache_bandwidth(observations, device, beside)
    if machine is not None:
        streamed = _get_rate(weights, ServingQuantity.WEIGHT_BANDWIDTH, device, machine)
        found += compute_widened_bandwidth(observations, device, machine, streamed)
        found += compute_scaled_share(observations, machine)
    found += compute_memory_figures(observations)
    found += compute_rates(observations, device)
    found += _compute_power(observations, device, machine)
    collectives = _select_collectives(observations)
    messages = _build_messages(collectives)
    found += _compute_link([one for one, _ in collectives], device, messages)
    return DeviceFit(tuple(found), tuple(fit_lines(messages)))


def _compute_operators(
    observations: Sequence[BenchmarkObservation],
    device: FittedDevice,
    generation: str,
    machine: DeviceMachine,
    streams: Sequence[FittedFigure],
) -> tuple[DeviceMachine, list[FittedFigure]]:
    """Computes constants of operators in sequence, each under those before it."""
    machine = _apply_constants(machine, streams)
    multiplied = compute_peaks(observations, machine)
    machine = _apply_constants(machine, multiplied)
    reference = {quantity: device.reference.operators.find_share(quantity, generation) for quantity in SHAPED}
    shaped = fit_shapes(observations, machine, reference) or compute_kernel_seconds(observations, machine)
    machine = _apply_constants(machine, shaped)
    fused = compute_attention(observations, machine, generation)
    return machine, [*multiplied, *shaped, *fused]


def _apply_constants(machine: DeviceMachine, drawn: Sequence[FittedFigure]) -> DeviceMachine:
    """Returns the machine with the constants of operators that were computed."""
    for name, figure, _ in drawn:
        if not isinstance(figure, MeasuredFigure):
            continue
        value = figure.value / (figure.limit or 1.0)
        match name.split("."):
            case ["operators", "matrix_peak", number_format]:
                if figure.limit is not None:
                    peaks_of = {**machine.rates.matrix_peak, NumberFormat(number_format): value}
                    machine = replace_rates(machine, matrix_peak=peaks_of)
            case ["operators", quantity]:
                machine = replace_rates(machine, **{quantity: value})
    return machine


def _get_rate(
    drawn: Sequence[FittedFigure], quantity: ServingQuantity, device: FittedDevice, machine: DeviceMachine
) -> float:
    """Returns the bytes per second at which weights stream or a cache is read, as computed or as known."""
    if drawn:
        return drawn[0].figure.value
    known = device.reference.serving.find_share(quantity, None).value
    return machine.bandwidth_bytes_per_second * machine.rates.bandwidth * known


def _compute_power(
    observations: Sequence[BenchmarkObservation], device: FittedDevice, machine: DeviceMachine | None
) -> list[FittedFigure]:
    limit, accelerator = device.power_limit_watts, device.accelerator
    if limit is None or accelerator is None or machine is None:
        return []
    peak = machine.peak_flops_per_second.get(NumberFormat.BF16)
    return compute_power_figures(
        observations,
        limit_watts=limit,
        rates=device.reference.power.get_rates(accelerator.generation),
        stream_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
        multiplied_flops_per_second=peak and peak * machine.rates.matrix_peak[NumberFormat.BF16],
    )


_COLLECTIVES = {"send_receive": Collective.POINT_TO_POINT}
_ALGORITHMS = {
    "ring": CollectiveAlgorithm.RING,
    "tree": CollectiveAlgorithm.TREE,
    "nvls": CollectiveAlgorithm.IN_NETWORK,
}


def _select_collectives(
    observations: Sequence[BenchmarkObservation],
) -> list[tuple[BenchmarkObservation, CollectiveWork]]:
    """Returns collectives as frameworks run them: of a process for each device where that was measured.

    Graphs and results in place are left out: an engine has kernels of its own for short messages.
    """
    found: dict[tuple[object, ...], tuple[BenchmarkObservation, CollectiveWork]] = {}
    for one, work in select_work(observations, CollectiveWork):
        if work.launch is MISSING and work.in_place is MISSING:
            message = (work.operation, work.devices, work.payload_bytes, work.algorithm)
            if message not in found or work.processes is not MISSING:
                found[message] = (one, work)
    return list(found.values())


def _build_messages(
    collectives: Sequence[tuple[BenchmarkObservation, CollectiveWork]],
) -> list[CollectiveMessage]:
    return [
        CollectiveMessage(
            _COLLECTIVES.get(work.operation) or Collective(work.operation),
            work.devices,
            float(work.payload_bytes),
            one.seconds,
            _ALGORITHMS.get(work.algorithm),
        )
        for one, work in collectives
    ]


def _compute_link(
    used: Sequence[BenchmarkObservation], device: FittedDevice, messages: Sequence[CollectiveMessage]
) -> list[FittedFigure]:
    """Computes the constants of the link between the devices of the node, by its collectives."""
    if device.link is None or device.accelerator is None or not used:
        return []
    link = fit_link(
        messages,
        device.link,
        device.reference.links.value,
        generation=device.accelerator.generation,
        runs=count_runs(used),
        source=format_source(used),
    )
    if link is None:
        return []
    rest = build_rests_on(used, "the values with which the times of all collectives are estimated best")
    return [
        FittedFigure(build_name("links", device.link.kind, part), figure, rest)
        for part, figure in link._asdict().items()
        if figure is not None
    ]
