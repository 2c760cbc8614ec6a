"""Stored sets: every figure under its name, with its sources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from service.planning.hardware.calibration import OperatorQuantity, PowerQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import (
    DeviceCalibration,
    MeasuredAnswer,
    MeasuredFigure,
    MeasuredLink,
    MeasuredScope,
)
from service.planning.hardware.links import LinkKind
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity

SetDocument = dict[str, Any]

_MEMORY = ("memory_bytes", "context_bytes")
_RATES = (
    "host_link_bytes_per_second",
    "host_memory_bytes_per_second",
    "storage_read_bytes_per_second",
    "storage_write_bytes_per_second",
)
_LINK_FIGURES = MeasuredLink._fields


_UNITS = {
    OperatorQuantity.MATRIX_FILL: "bytes",
    OperatorQuantity.WAVE_TAIL: "share",
    OperatorQuantity.KERNEL_SECONDS: "seconds",
    OperatorQuantity.BANDWIDTH: "bytes_per_second",
    OperatorQuantity.GATHER_ROW: "bytes",
    OperatorQuantity.ATTENTION_BACKWARD: "share",
    OperatorQuantity.ATTENTION_CONTEXT: "tokens",
    OperatorQuantity.ATTENTION_HEAD: "elements",
    OperatorQuantity.EXPERT_VARIATION: "share",
}
"""Units of constants of operators other than FLOPs per second."""
_SHARES = frozenset({ServingQuantity.SCALED_SHARE, ServingQuantity.WIDENED_BANDWIDTH})
"""Constants of serving over another rate of the same device."""


def resolve_unit(name: str) -> str:
    """Returns the unit of a figure by its name, from its suffix if it has one."""
    match name.split("."):
        case ["operators", quantity, *_]:
            return _UNITS.get(OperatorQuantity(quantity), "flops_per_second")
        case ["serving", ServingQuantity.DECODE_ATTENTION]:
            return "flops_per_second"
        case ["serving", quantity] if quantity in _SHARES:
            return "share"
        case ["power", "byte_joules"]:
            return "joules_per_byte"
        case ["power", _]:
            return "watts"
    ends = ("bytes_per_second", "seconds", "bytes")
    return next((end for end in ends if name.endswith(end)), "bytes_per_second")


class FigureSources(NamedTuple):
    """Sources of one figure, and the method that computed it."""

    result_ids: tuple[str, ...] = ()
    run_ids: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    method: str = ""
    """Method by which the figure follows from the sources, in words."""
    conditions: Mapping[str, float | str] = {}
    """Conditions of the measurements: the median of each number, and a text if all agree."""


NOTHING = FigureSources()


class MeasuredSet(NamedTuple):
    """Measurements that were read: figures of a device, answers to whole questions, or both.

    Ids inside are ignored: a stored set assigns its own.
    """

    calibration: DeviceCalibration | None = None
    answers: tuple[MeasuredAnswer, ...] = ()


def build_name(*parts: str | None) -> str:
    """Builds the name of a figure, such as operators.matrix_peak.bf16."""
    return ".".join(part for part in parts if part)


def list_figures(calibration: DeviceCalibration) -> Iterator[tuple[str, MeasuredFigure | Quantity]]:
    """Yields every figure of a set under its name."""
    for (quantity, number_format), figure in calibration.operators.items():
        yield build_name("operators", quantity, number_format), figure
    for serving, figure in calibration.serving.items():
        yield build_name("serving", serving), figure
    for power, figure in calibration.power.items():
        yield build_name("power", power), figure
    for kind, link in calibration.links.items():
        for part in _LINK_FIGURES:
            if (of_link := getattr(link, part)) is not None:
                yield build_name("links", kind, part), of_link
    for single in (*_MEMORY, *_RATES):
        if (alone := getattr(calibration, single)) is not None:
            yield single, alone


def to_document(
    name: str, figure: MeasuredFigure | Quantity, rests_on: FigureSources = NOTHING
) -> SetDocument:
    """Returns a figure as it is stored; unknown members are absent."""
    return {"name": name, **_figure_to_document(figure), **_rest_to_document(rests_on)}


def _figure_to_document(figure: MeasuredFigure | Quantity) -> SetDocument:
    if isinstance(figure, Quantity):
        return {"low": figure.low, "value": figure.value, "high": figure.high}
    return {name: value for name, value in figure._asdict().items() if value is not None}


def _rest_to_document(rest: FigureSources) -> SetDocument:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in rest._asdict().items()
        if value
    }


def parse_calibration(set_id: str, scope: MeasuredScope, entries: Sequence[SetDocument]) -> DeviceCalibration:
    """Parses a stored set into planning values."""
    operators: dict[tuple[OperatorQuantity, NumberFormat | None], MeasuredFigure] = {}
    serving, power = {}, {}
    links: dict[str, dict[str, MeasuredFigure]] = {}
    single: dict[str, Any] = {}
    for entry in entries:
        match entry["name"].split("."):
            case ["operators", quantity, number_format]:
                operators[OperatorQuantity(quantity), NumberFormat(number_format)] = _parse_figure(entry)
            case ["operators", quantity]:
                operators[OperatorQuantity(quantity), None] = _parse_figure(entry)
            case ["serving", quantity]:
                serving[ServingQuantity(quantity)] = _parse_figure(entry)
            case ["power", quantity]:
                power[PowerQuantity(quantity)] = _parse_figure(entry)
            case ["links", kind, part]:
                links.setdefault(kind, {})[part] = _parse_figure(entry)
            case [name] if name in _MEMORY:
                value, low, high = (float(entry[end]) for end in ("value", "low", "high"))
                single[name] = Quantity(value, low, high, EvidenceBasis.CALIBRATED_NODE)
            case [name]:
                single[name] = _parse_figure(entry)
    return DeviceCalibration(
        id=set_id,
        scope=scope,
        operators=operators,
        serving=serving,
        power=power,
        links={LinkKind(kind): _parse_link(parts) for kind, parts in links.items()},
        **single,
    )


def _parse_figure(entry: SetDocument) -> MeasuredFigure:
    # PostgreSQL returns a large number in a document as an integer.
    low, value, high = (float(entry[end]) for end in ("low", "value", "high"))
    limit = None if "limit" not in entry else float(entry["limit"])
    return MeasuredFigure(low, value, high, entry["runs"], limit, entry["source"])


def _parse_link(parts: Mapping[str, MeasuredFigure]) -> MeasuredLink:
    return MeasuredLink(
        parts["rate"], parts.get("hop_seconds"), parts.get("launch_seconds"), parts.get("in_network_rate")
    )


_OF_THE_SET = frozenset({"id", "calibration_id"})


def answers_to_documents(answers: Sequence[MeasuredAnswer]) -> list[SetDocument]:
    """Returns measured answers as they are stored; their ids derive from that of their set."""
    return [
        {name: value for name, value in answer._asdict().items() if name not in _OF_THE_SET}
        for answer in answers
    ]


def parse_answers(set_id: str, entries: Sequence[SetDocument]) -> tuple[MeasuredAnswer, ...]:
    """Parses stored answers into planning values, each with the id of its set and its position there."""
    return tuple(
        MeasuredAnswer(
            **{
                **entry,
                "id": f"{set_id}-{place}",
                "calibration_id": set_id,
                "measured": float(entry["measured"]),
            }
        )
        for place, entry in enumerate(entries, start=1)
    )
