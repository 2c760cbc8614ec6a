"""Curves of a question's device: the reference set with measured constants in its place.

The sets that apply to the device, and their distance, are found in :mod:`service.planning.hardware.nearest`.
A rate that was measured on this accelerator is divided by this accelerator's own data sheet, so that the rate
comes back as it was measured; a rate of another accelerator of its generation by the data sheet that it was
measured against. Constants without measurements stay those of the reference set.

The efficiency of software on a device stays: constants of an engine keep their ratio to those of any engine,
and a measured figure replaces the latter where it is worse. So weights stream at

    skinny product, at most what any engine reached, x (stream of the engine / stream of any engine)

whether bandwidth or multiprocessors were the limit in the reference set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.links import LinkCalibration, LinkCurves, LinkShare
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, MeasuredLink
from service.planning.hardware.calibration.operators import OperatorCalibration, OperatorKey, OperatorQuantity
from service.planning.hardware.calibration.power import DRAW, PowerCalibration, PowerQuantity
from service.planning.hardware.calibration.serving import ServingCalibration, ServingQuantity
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.distance import ServingEvidence
from service.planning.hardware.links import Link, LinkKind
from service.planning.hardware.nearest import (
    ACCELERATOR_KIND,
    PROCESSOR_GENERATION,
    ConstantSearch,
    DistanceLevel,
    MeasuredConstant,
    RequestedDevice,
    build_levels,
    resolve_basis,
)
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity


class DeviceConstants(NamedTuple):
    """Constants of a question's device; ``held`` are the measured ones by name."""

    curves: ReferenceCurves
    held: Mapping[str, MeasuredConstant] = {}
    above_limit: tuple[str, ...] = ()
    """Constants that were measured above the data sheet, and count as its full value."""
    power_limit_watts: float | None = None
    """Power limit of the requested node."""
    bandwidth_bytes_per_second: float | None = None
    peak_flops_per_second: Mapping[NumberFormat, float] = {}
    """Measured rates that the question leaves to the node."""
    generation: str | None = None
    """Generation of a measured processor; None for accelerators, whose generation the question has."""

    def list_calibration_ids(self, prefixes: Iterable[str]) -> tuple[str, ...]:
        """Returns the sets behind the constants whose names start with any of ``prefixes``, each once."""
        wanted = tuple(prefixes)
        found = (held.ids for name, held in self.held.items() if name.startswith(wanted))
        return tuple(dict.fromkeys(each for ids in found for each in ids))

    def get_value(self, name: str) -> float | None:
        """Returns the measured constant of a name, or None."""
        held = self.held.get(name)
        return held and held.share.value

    def apply_to_accelerator(self, accelerator: Accelerator) -> Accelerator:
        """Returns the accelerator with the memory, power limit, rates and generation that were measured.

        The memory is the sum of the allocatable memory and of the context. A rate that the question gives
        stays.
        """
        memory, context = self.held.get("memory_bytes"), self.held.get("context_bytes")
        given = (
            accelerator.capacity_bytes is not None
            and accelerator.capacity_bytes.basis is EvidenceBasis.ASSUMED
        )
        own = memory is not None and memory.basis is not EvidenceBasis.CALIBRATED_GENERATION
        if memory is not None and context is not None and own and not given:
            both = (one + other for one, other in zip(memory.share.ends, context.share.ends, strict=True))
            low, value, high = both
            accelerator = replace(accelerator, capacity_bytes=Quantity(value, low, high, memory.basis))
        if self.generation is not None:
            accelerator = replace(accelerator, generation=self.generation)
        if self.power_limit_watts is not None:
            accelerator = replace(accelerator, power_limit_watts=self.power_limit_watts)
        if accelerator.bandwidth_bytes_per_second is None:
            accelerator = replace(accelerator, bandwidth_bytes_per_second=self.bandwidth_bytes_per_second)
        if self.peak_flops_per_second:
            rates = {**self.peak_flops_per_second, **accelerator.peak_flops_per_second}
            accelerator = replace(accelerator, peak_flops_per_second=rates)
        return accelerator

    def apply_to_link(self, link: Link) -> Link:
        """Returns the link without the latency of its data sheet, where a hop was measured."""
        if f"links.{link.kind}.hop_seconds" in self.held:
            return link._replace(latency_seconds=None)
        return link


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
    operators = _resolve_operators(known.operators, search, asked)
    calibration = Calibration(
        operators=operators,
        links=_resolve_links(known.links, search, asked),
        steps=known.steps,
        passes=known.passes,
        serving=_resolve_serving(known, operators, search, asked),
        power=_resolve_power(known.power, search, asked),
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
_ATTENTION_FORMATS: Final = (NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP32)


def _list_formats(
    quantity: OperatorQuantity, number_format: NumberFormat | None
) -> tuple[NumberFormat | None, ...]:
    """Returns the formats whose figure applies to a constant; the first one with a figure is used."""
    if quantity in _FUSED:
        return (*_ATTENTION_FORMATS, None)
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


def _resolve_operators(
    known: OperatorCalibration, search: ConstantSearch, asked: RequestedDevice
) -> OperatorCalibration:
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


_STREAMED: Final = (
    ServingQuantity.WEIGHT_BANDWIDTH,
    ServingQuantity.EXPERT_BANDWIDTH,
    ServingQuantity.CACHE_BANDWIDTH,
)
"""Rates of kernels that stream their operands, over that of a streaming kernel."""


def _resolve_serving(
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
    wide = next((peaks[each] for each in _ATTENTION_FORMATS if peaks.get(each)), None)
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


_OF_THE_LIMIT: Final = frozenset(
    {
        PowerQuantity.IDLE_SHARE,
        PowerQuantity.ACTIVE_SHARE,
        PowerQuantity.UNPACKING_SHARE,
        PowerQuantity.MATRIX_SHARE,
        PowerQuantity.COMMUNICATION_SHARE,
    }
)


def _resolve_power(
    known: PowerCalibration, search: ConstantSearch, asked: RequestedDevice
) -> PowerCalibration:
    generation, constants, bases = asked.accelerator.generation, dict(known.constants), {}
    for quantity in PowerQuantity:
        name = f"power.{quantity}"

        def find_figure(each: DeviceCalibration, quantity: PowerQuantity = quantity) -> MeasuredFigure | None:
            # A generation is sold with several memories: what an H200 draws made estimates of an H100 worse.
            is_own = resolve_basis(each.scope, asked) is not EvidenceBasis.CALIBRATED_GENERATION
            return each.power.get(quantity) if is_own else None

        if quantity in _OF_THE_LIMIT:
            # A share of the limit that it was measured under: a node may be capped below its data sheet.
            found = search.find_share(name, find_figure, None)
        else:
            found = search.find_seconds(name, find_figure)
        if found is not None:
            constants[quantity, generation], bases[quantity] = found, search.held[name].basis
    if not bases:
        return known
    measured = known.measured | {generation} if bases.keys() >= DRAW else known.measured
    return replace(known, constants=constants, measured=measured, bases=bases, _known={})


def _resolve_links(known: LinkCurves, search: ConstantSearch, asked: RequestedDevice) -> LinkCurves:
    own, ends, sources = dict(asked.links), [known.slow, known.value, known.fast], dict(known.sources)
    measured = set(known.measured)
    for kind in LinkKind:

        def build_link_lookup(
            name: str, kind: LinkKind = kind
        ) -> Callable[[DeviceCalibration], MeasuredFigure | None]:
            def find_figure(each: DeviceCalibration) -> MeasuredFigure | None:
                link: MeasuredLink | None = each.links.get(kind)
                return link and getattr(link, name)

            return find_figure

        rate = search.find_share(f"links.{kind}.rate", build_link_lookup("rate"), own.get(kind))
        if rate is None:
            continue
        hop = search.find_seconds(f"links.{kind}.hop_seconds", build_link_lookup("hop_seconds"))
        through = search.find_share(
            f"links.{kind}.in_network_rate", build_link_lookup("in_network_rate"), own.get(kind)
        )
        launch = search.find_seconds(f"links.{kind}.launch_seconds", build_link_lookup("launch_seconds"))
        # Slow ends have a low rate and long seconds.
        for place, (share, end) in enumerate(zip(rate.ends, ("high", "value", "low"), strict=True)):
            before = ends[place]
            link = LinkShare(share, getattr(hop, end) if hop else before.links[kind].hop_seconds)
            ends[place] = before._replace(
                links={**before.links, kind: link},
                launch_seconds=getattr(launch, end) if launch else before.launch_seconds,
            )
        if through is not None:
            ends = _apply_switch_shares(ends, asked.accelerator.generation, through.ends)
        measured.add(kind)
        sources[kind] = rate.source
    if measured == known.measured and sources == known.sources:
        return known
    slow, value, fast = ends
    return LinkCurves(slow, value, fast, frozenset(measured), sources)


def _apply_switch_shares(
    ends: Sequence[LinkCalibration], generation: str, shares: Sequence[float]
) -> list[LinkCalibration]:
    """Returns both ends and the middle with the measured shares of reducing switches."""
    return [
        end._replace(in_network={**end.in_network, generation: share})
        for end, share in zip(ends, shares, strict=True)
    ]


_HOST: Final = (
    "host_link_bytes_per_second",
    "host_memory_bytes_per_second",
    "storage_read_bytes_per_second",
    "storage_write_bytes_per_second",
)


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
