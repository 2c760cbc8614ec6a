"""Operators of measured devices: comparison of estimated and measured rates, and the fit of constants.

A row of a multiplication, of a stream or of an attention is one operator on one machine. The fit minimises
the sum of absolute logarithms of estimated over measured rates, each group weighed by the root of its size,
within the plausible range of each constant; every group is then predicted by constants that were fitted
without it.

Rows of multiplications are products back to back. A peak with a ``mixed_clock`` is that of a device which the
power limit slows then (decision 110): it is fitted without that factor and stored with it.
"""

import copy
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from accuracy.hardware import HardwareRow
from accuracy.spreads import rounded
from service.evidence.service import parse_operator_calibration
from service.planning.hardware.calibration import OperatorCalibration, OperatorQuantity
from service.planning.hardware.cluster import Accelerator
from service.planning.models.profile import FusedAttention
from service.planning.operators import (
    DeviceMachine,
    OperatorKind,
    OperatorWork,
    build_gemm,
    build_machine,
    operator_seconds,
)
from service.planning.precision import ELEMENT_BYTES, NumberFormat

Document = dict[str, Any]
FitGroup = tuple[str, str]

STREAM_BYTES: Final = 3.0 * 2.0**30
"""Least bytes that a stream benchmark moves, so that its launch does not count."""
_HIDDEN = 2048
"""Width of all heads in the benchmark of FlashAttention, whose rows do not state the heads."""

SERVED: Final[Mapping[str, tuple[OperatorQuantity, ...]]] = {
    "gemm": (
        OperatorQuantity.MATRIX_PEAK,
        OperatorQuantity.MATRIX_FILL,
        OperatorQuantity.WAVE_TAIL,
        OperatorQuantity.KERNEL_SECONDS,
    ),
    "memory": (OperatorQuantity.BANDWIDTH,),
    "attention": (
        OperatorQuantity.ATTENTION_PEAK,
        OperatorQuantity.ATTENTION_NATIVE_PEAK,
        OperatorQuantity.ATTENTION_BACKWARD,
        OperatorQuantity.ATTENTION_CONTEXT,
        OperatorQuantity.ATTENTION_HEAD,
    ),
}
"""Kinds of rows, and the constants that are fitted to them."""


_RATES = frozenset({"achieved_tflops", "bandwidth"})


class OperatorProbe(NamedTuple):
    """A measured row as an operator of a known device."""

    row: HardwareRow
    operator: OperatorWork
    accelerator: Accelerator


def _multiplication(row: HardwareRow) -> OperatorWork | None:
    if row.shape is None or row.number_format is None:
        return None
    rows, columns, depth = row.shape
    width = ELEMENT_BYTES[row.number_format]
    # Results of 8-bit operands are 16 bits wide.
    shape = (float(rows), float(columns), float(depth))
    return build_gemm("gemm", shape, row.number_format, operand=width, result=max(width, 2.0))


def _fused_attention(row: HardwareRow) -> OperatorWork | None:
    settings = row.settings
    if "flash" not in row.operation.lower() or not {"batch", "seq", "head_dim"} <= settings.keys():
        return None
    length, size = float(settings["seq"]), float(settings["head_dim"])
    heads = settings.get("heads", _HIDDEN // settings["head_dim"])
    causal = "causal" in row.text["shape_or_size"]
    context = length / 2.0 if causal else length
    backward = "backward" in row.operation
    products = 10.0 if backward else 4.0
    tokens = settings["batch"] * length * heads
    return OperatorWork(
        "attention",
        OperatorKind.ATTENTION,
        row.number_format or NumberFormat.BF16,
        tokens * products * size * context,
        tokens * size * 2.0 * (8.0 if backward else 4.0),
        kernels=3.0 if backward else 1.0,
        columns=size,
        context=context,
        backward=backward,
        fused=FusedAttention.NATIVE if "3" in row.operation else FusedAttention.SECOND,
    )


def operator_of(row: HardwareRow) -> OperatorWork | None:
    """Returns the operator that a row measured, or None for other rows, such as collectives."""
    match row.kind:
        case "gemm":
            return _multiplication(row)
        case "memory":
            return OperatorWork("stream", OperatorKind.MEMORY, NumberFormat.FP64, 0.0, STREAM_BYTES)
        case "attention":
            return _fused_attention(row)
        case _:
            return None


def probes(rows: Iterable[HardwareRow], accelerators: Mapping[str, Accelerator]) -> list[OperatorProbe]:
    """Returns the rows that are operators of a catalog device with the required rate."""
    found = []
    for row in rows:
        operator, accelerator = operator_of(row), accelerators.get(row.accelerator_id)
        if operator is None or accelerator is None or accelerator.bandwidth_bytes_per_second is None:
            continue
        if row.metric not in _RATES or row.value == 0.0:
            continue
        needs_rate = operator.kind is not OperatorKind.MEMORY
        if needs_rate and operator.number_format not in accelerator.peak_flops_per_second:
            continue
        found.append(OperatorProbe(row, operator, accelerator))
    return found


def estimated(probe: OperatorProbe, machine: DeviceMachine) -> float:
    """Returns the estimated rate of the operator, in the unit of its row."""
    work = probe.operator.moved_bytes if probe.row.unit == "bytes/s" else probe.operator.flops
    return work / operator_seconds(probe.operator, machine).seconds


def ratios(found: Sequence[OperatorProbe], calibration: OperatorCalibration) -> list[float]:
    """Returns estimated over measured rate of each probe."""
    machines: dict[str, DeviceMachine] = {}
    result = []
    for probe in found:
        machine = machines.get(probe.accelerator.id)
        if machine is None:
            known = build_machine(probe.accelerator, calibration)
            assert known is not None  # noqa: S101 - probes have a bandwidth
            machine = machines[probe.accelerator.id] = known
        result.append(estimated(probe, machine) / probe.row.value)
    return result


def _entries(document: Document, found: Sequence[OperatorProbe]) -> list[int]:
    """Returns the indexes of the constants that some probe reads."""
    calibration = parse_operator_calibration(document)
    read = {
        id(calibration.find_share(quantity, probe.accelerator.generation, probe.operator.number_format))
        for probe in found
        for quantity in SERVED[probe.row.kind]
    }
    shares = list(calibration.constants.values())
    return [place for place, share in enumerate(shares) if id(share) in read]


def _loss(document: Document, found: Sequence[OperatorProbe], weights: Sequence[float]) -> float:
    of = ratios(found, parse_operator_calibration(document))
    return sum(weight * abs(math.log(ratio)) for weight, ratio in zip(weights, of, strict=True))


_SWEEPS, _POINTS, _PULL = 6, 12, 0.002


def fit_operators(document: Document, found: Sequence[OperatorProbe]) -> Document:
    """Fits constants of operators to the probes by coordinate descent within their ranges.

    The fit starts at the priors; a constant that affects no row stays there. Peaks are those of products
    back to back, without ``mixed_clock``.
    """
    document = _with_priors(document)
    sizes: dict[FitGroup, int] = {}
    for probe in found:
        sizes[probe.row.group] = sizes.get(probe.row.group, 0) + 1
    weights = [1.0 / math.sqrt(sizes[probe.row.group]) for probe in found]
    places = _entries(document, found)
    for sweep in range(_SWEEPS):
        for place in places:
            entry = document["constants"][place]
            entry["value"] = _best(document, entry, found, weights, sweep)
    for place in places:
        entry = document["constants"][place]
        entry["value"] = rounded(entry["value"])
    return _pooled(document)


def _best(
    document: Document, entry: Document, found: Sequence[OperatorProbe], weights: Sequence[float], sweep: int
) -> float:
    """Returns the best value of a constant near its current one, in a range that shrinks by sweep."""
    low, high = entry["range"]
    width, start = (high - low) / 2.0 ** (sweep + 1), entry["value"]
    steps = range(-_POINTS, _POINTS + 1)
    tried = {min(high, max(low, start + width * step / _POINTS)) for step in steps}
    best, kept = math.inf, start
    for value in sorted(tried, key=lambda value: (abs(value - start), value)):
        entry["value"] = value
        loss = _loss(document, found, weights) + _PULL * abs(value - start) / (high - low)
        if loss < best:
            best, kept = loss, value
    return float(kept)


def _with_priors(document: Document) -> Document:
    document = copy.deepcopy(document)
    for entry in document["constants"]:
        entry["value"] = entry.get("prior", entry["value"])
    return document


_POOLED = (OperatorQuantity.MATRIX_PEAK, OperatorQuantity.BANDWIDTH)


def _pooled(document: Document) -> Document:
    """Sets constants of generations without rows to the median of the others, between their extremes."""
    for quantity in _POOLED:
        of = [entry for entry in document["constants"] if entry["quantity"] == quantity]
        values = [entry["value"] for entry in of if "generation" in entry]
        for entry in of:
            if "generation" not in entry and values:
                entry["value"] = rounded(statistics.median(values))
                entry["low"], entry["high"] = min(values), max(values)
    return document


def _unmeasured(
    document: Document, found: Sequence[OperatorProbe], rest: Sequence[OperatorProbe]
) -> Document:
    """Returns the document without constants of a generation that no row in ``rest`` determines."""
    read = set(_entries(document, rest))
    lost = {
        place for place in _entries(document, found) if "generation" in document["constants"][place]
    } - read
    kept = [entry for place, entry in enumerate(document["constants"]) if place not in lost]
    return {**document, "constants": kept}


class FittedProbe(NamedTuple):
    """A probe with its ratio of estimated to measured rate, fitted with its group and without."""

    probe: OperatorProbe
    fitted: float
    held_out: float


class DeviceFit(NamedTuple):
    """Constants fitted to all groups and without each group, and every probe under both."""

    document: Document
    without: Mapping[FitGroup, Document]
    tried: tuple[FittedProbe, ...]


def scale_by_mixed_clock(document: Document, exponent: int) -> Document:
    """Returns the constants with peaks times the power ``exponent`` of their ``mixed_clock``."""
    document = copy.deepcopy(document)
    for entry in document["constants"]:
        factor = entry.get("mixed_clock", 1.0) ** exponent
        for name in ("low", "value", "prior", "high"):
            if name in entry and factor != 1.0:
                entry[name] = rounded(entry[name] * factor)
        if "range" in entry and factor != 1.0:
            entry["range"] = [rounded(end * factor) for end in entry["range"]]
    return document


def fit_devices(document: Document, found: Sequence[OperatorProbe]) -> DeviceFit:
    """Fits all groups, then predicts each group by constants fitted to the others."""
    document = scale_by_mixed_clock(document, -1)
    whole = fit_operators(document, found)
    without: dict[FitGroup, Document] = {}
    held: dict[str, float] = {}
    for group in sorted({probe.row.group for probe in found}):
        rest = [probe for probe in found if probe.row.group != group]
        own = [probe for probe in found if probe.row.group == group]
        without[group] = fit_operators(_unmeasured(document, found, rest), rest)
        of = ratios(own, parse_operator_calibration(without[group]))
        held |= {probe.row.id: ratio for probe, ratio in zip(own, of, strict=True)}
    fitted = ratios(found, parse_operator_calibration(whole))
    tried = tuple(
        FittedProbe(probe, ratio, held[probe.row.id]) for probe, ratio in zip(found, fitted, strict=True)
    )
    fitted_document = scale_by_mixed_clock(_with_intervals(whole, without, found), 1)
    return DeviceFit(fitted_document, without, tried)


def _with_intervals(
    document: Document, without: Mapping[FitGroup, Document], found: Sequence[OperatorProbe]
) -> Document:
    """Sets low and high of a fitted constant to its extremes over the fits without one group each."""
    document = copy.deepcopy(document)
    calibration = parse_operator_calibration(document)
    shares = list(calibration.constants.values())
    for place in _entries(document, found):
        entry = document["constants"][place]
        values = [
            each["value"] for other in without.values() for each in other["constants"] if _same(each, entry)
        ]
        entry["low"], entry["high"] = min([entry["value"], *values]), max([entry["value"], *values])
        entry["runs"] = sum(
            any(
                calibration.find_share(quantity, probe.accelerator.generation, probe.operator.number_format)
                is shares[place]
                for quantity in SERVED[probe.row.kind]
            )
            for probe in found
        )
    return document


def _same(first: Document, second: Document) -> bool:
    """Returns true if both are the same constant."""
    return all(first.get(name) == second.get(name) for name in ("quantity", "generation", "format"))


class DeviceFitLine(NamedTuple):
    """Errors of a set of rows in per cent: medians fitted and held out, and the largest held out."""

    kind: str
    group: str
    rows: int
    fitted: float
    held_out: float
    worst: float


def _median_error(of: Sequence[float]) -> float:
    return 100.0 * statistics.median(abs(ratio - 1.0) for ratio in of)


def lines(tried: Sequence[FittedProbe]) -> list[DeviceFitLine]:
    """Returns one line for each kind and group, and one for each kind."""
    sets: dict[tuple[str, str], list[FittedProbe]] = {}
    for one in tried:
        kind, group = one.probe.row.kind, " on ".join(one.probe.row.group)
        sets.setdefault((kind, group), []).append(one)
        sets.setdefault((kind, "all"), []).append(one)
    return [
        DeviceFitLine(
            kind,
            group,
            len(of),
            _median_error([one.fitted for one in of]),
            _median_error([one.held_out for one in of]),
            100.0 * max(abs(one.held_out - 1.0) for one in of),
        )
        for (kind, group), of in sorted(sets.items())
    ]
