"""Draws the figures of a device from what was observed of it, each as the quantity that planning defines."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from service.calibrations.drawing.device import Device
from service.calibrations.drawing.links import Line, Message, lines, link_of
from service.calibrations.drawing.memory import memory, rates
from service.calibrations.drawing.observations import (
    Figure,
    Observation,
    having,
    rests_on,
    runs_of,
    source_of,
)
from service.calibrations.drawing.operators import (
    SHAPED,
    attention,
    bandwidth,
    kernel_seconds,
    peaks,
    shapes,
    with_rates,
)
from service.calibrations.drawing.power import power
from service.calibrations.drawing.serving import cache_bandwidth, weight_bandwidth
from service.calibrations.sets import name_of
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.hardware.collectives import Algorithm, Collective
from service.planning.operators import Machine
from service.planning.precision import NumberFormat
from service.protocol.work import Collective as CollectiveWork

__all__ = ["Device", "Drawing", "Observation", "drawing"]


class Drawing(NamedTuple):
    """The figures of a device, and the lines through the times of its messages."""

    figures: tuple[Figure, ...]
    lines: tuple[Line, ...] = ()

    def documents(self) -> list[dict[str, Any]]:
        """The lines as they are kept."""
        return [line.document() for line in self.lines]


def drawing(observations: Sequence[Observation], device: Device) -> Drawing:
    """All that observations of one device say of it."""
    found = bandwidth(observations, device)
    machine, accelerator = device.machine, device.accelerator
    if machine is None or accelerator is None:
        found += peaks(observations, None)
        beside = 0.0
    else:
        machine, of_operators = _operators(observations, device, accelerator.generation, machine, found)
        found += of_operators
        beside = machine.rates.kernel_seconds
    found += weight_bandwidth(observations, device, beside)
    found += cache_bandwidth(observations, device, beside)
    found += memory(observations)
    found += rates(observations, device)
    found += _power(observations, device, machine)
    messages = _messages(observations)
    found += _link(observations, device, messages)
    return Drawing(tuple(found), tuple(lines(messages)))


def _operators(
    observations: Sequence[Observation],
    device: Device,
    generation: str,
    machine: Machine,
    streams: Sequence[Figure],
) -> tuple[Machine, list[Figure]]:
    """Constants of operators one after the other, each under those before it."""
    machine = _under(machine, streams)
    multiplied = peaks(observations, machine)
    machine = _under(machine, multiplied)
    reference = {quantity: device.reference.operators.find(quantity, generation) for quantity in SHAPED}
    shaped = shapes(observations, machine, reference) or kernel_seconds(observations, machine)
    machine = _under(machine, shaped)
    fused = attention(observations, machine, generation)
    return machine, [*multiplied, *shaped, *fused]


def _under(machine: Machine, drawn: Sequence[Figure]) -> Machine:
    """The machine with the constants of operators that were drawn."""
    for name, figure, _ in drawn:
        if not isinstance(figure, MeasuredFigure):
            continue
        value = figure.value / (figure.limit or 1.0)
        match name.split("."):
            case ["operators", "matrix_peak", number_format]:
                if figure.limit is not None:
                    peaks_of = {**machine.rates.matrix_peak, NumberFormat(number_format): value}
                    machine = with_rates(machine, matrix_peak=peaks_of)
            case ["operators", quantity]:
                machine = with_rates(machine, **{quantity: value})
    return machine


def _power(observations: Sequence[Observation], device: Device, machine: Machine | None) -> list[Figure]:
    limit, accelerator = device.power_limit_watts, device.accelerator
    if limit is None or accelerator is None or machine is None:
        return []
    peak = machine.peak_flops_per_second.get(NumberFormat.BF16)
    return power(
        observations,
        limit_watts=limit,
        rates=device.reference.power.rates(accelerator.generation),
        stream_bytes_per_second=machine.bandwidth_bytes_per_second * machine.rates.bandwidth,
        multiplied_flops_per_second=peak and peak * machine.rates.matrix_peak[NumberFormat.BF16],
    )


_COLLECTIVES = {"send_receive": Collective.POINT_TO_POINT}
_ALGORITHMS = {"ring": Algorithm.RING, "tree": Algorithm.TREE, "nvls": Algorithm.IN_NETWORK}


def _messages(observations: Sequence[Observation]) -> list[Message]:
    return [
        Message(
            _COLLECTIVES.get(work.operation) or Collective(work.operation),
            work.devices,
            float(work.payload_bytes),
            one.seconds,
            _ALGORITHMS.get(work.algorithm),
        )
        for one, work in having(observations, CollectiveWork)
    ]


def _link(observations: Sequence[Observation], device: Device, messages: Sequence[Message]) -> list[Figure]:
    """The constants of the link between the devices of the node."""
    used = [one for one, _ in having(observations, CollectiveWork)]
    if device.link is None or device.accelerator is None or not used:
        return []
    link = link_of(
        messages,
        device.link,
        device.reference.links.value,
        generation=device.accelerator.generation,
        runs=runs_of(used),
        source=source_of(used),
    )
    if link is None:
        return []
    rest = rests_on(used, "the values with which the times of all collectives are estimated best")
    return [
        Figure(name_of("links", device.link.kind, part), figure, rest)
        for part, figure in link._asdict().items()
        if figure is not None
    ]
