"""Intervals of whole answers, from the residuals of measured rows that were held out of the fit."""

import math
from collections.abc import Iterable

from service.planning.hardware.calibration import (
    LinkCalibration,
    LinkCurves,
    OperatorQuantity,
    StepCalibration,
)
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.distance import EvidenceSystem, find_residual_spread
from service.planning.precision import NumberFormat
from service.planning.quantity import CALIBRATED, EvidenceBasis, IntervalFactors, Quantity
from service.planning.training.launches import get_launch_quantity
from service.planning.workload import TrainingWorkload

_UNNAMED = frozenset({"", "generic"})


def widen_memory(total: Quantity, family: str, software: str, curves: ReferenceCurves) -> Quantity:
    """Returns the memory with the interval of measured rows of the same software.

    Unchanged where there are none. A workload that names no ``software`` takes the interval over all
    software. A workload that names software without measured rows keeps the interval of its own constants.
    """
    name = family if software in _UNNAMED else f"{family}/{software}"
    spread = curves.residuals.get((name, total.basis))
    if spread is None:
        return total
    around = IntervalFactors(min(spread.low, 1.0), max(spread.high, 1.0), spread.source)
    return around.around(total.value, total.basis)


def find_step_spread(
    curves: ReferenceCurves,
    workload: TrainingWorkload,
    cluster: Cluster,
    compute_format: NumberFormat,
    *,
    waiting_share: float = 0.0,
    launch_share: float = 0.0,
) -> IntervalFactors:
    """Returns measured over modelled seconds of a step: of the software, else of any, else the shipped ones.

    On a generation without measured kernels the interval widens by the range of kernel efficiencies over all
    devices. Over links without a measured collective it widens by their range, on the share of the step that
    waits for them, and by that of a launch on the share that waits for the host of a framework without a
    constant of its own.
    """
    framework = workload.framework
    generation, spread = cluster.accelerator.generation, curves.training_step
    for family in (f"training_step/{framework.value}", "training_step"):
        known = curves.residuals.get((family, EvidenceBasis.REFERENCE))
        if known is not None:
            spread = IntervalFactors(min(known.low, 1.0), max(known.high, 1.0), known.source)
            break
    spread = _add_link_spread(spread, curves.calibration.links, cluster, waiting_share)
    spread = _add_launch_spread(spread, curves.calibration.steps, workload, launch_share)
    operators = curves.calibration.operators
    rates, multiplied = operators.get_rates(generation), OperatorQuantity.MATRIX_PEAK
    if rates.get_basis(multiplied, compute_format) in CALIBRATED:
        return add_device_spread(spread, curves, generation, multiplied, compute_format)
    if rates.basis is EvidenceBasis.REFERENCE:
        return spread
    share = operators.find_share(multiplied, generation, compute_format)
    return IntervalFactors(
        spread.low * share.value / share.high,
        spread.high * share.value / share.low,
        f"{spread.source}; kernels of this generation are not measured",
    )


def add_device_spread(
    spread: IntervalFactors,
    curves: ReferenceCurves,
    generation: str,
    quantity: OperatorQuantity,
    number_format: NumberFormat | None = None,
) -> IntervalFactors:
    """Widens a spread of times by the measured range of a constant.

    Returns it unchanged without measurements. Deviations of software and of devices are independent.
    """
    operators = curves.calibration.operators
    if operators.get_rates(generation).get_basis(quantity, number_format) not in CALIBRATED:
        return spread
    share = operators.find_share(quantity, generation, number_format)
    source = f"{spread.source}; {quantity} of {share.runs} own runs"
    return _widen_independently(spread, share.value / share.high, share.value / share.low, source)


def _widen_independently(spread: IntervalFactors, low: float, high: float, source: str) -> IntervalFactors:
    """Adds deviations of another origin: logarithms of independent factors add as squares."""
    return IntervalFactors(
        math.exp(-math.hypot(math.log(spread.low), math.log(low))),
        math.exp(math.hypot(math.log(spread.high), math.log(high))),
        source,
    )


def _add_link_spread(
    spread: IntervalFactors, links: LinkCurves, cluster: Cluster, waiting_share: float
) -> IntervalFactors:
    used = {cluster.intra_node_link.kind} if cluster.domain > 1 else set()
    if cluster.domain < cluster.accelerator_count:
        used.add(cluster.inter_node_link.kind)
    unmeasured = used - links.measured
    if not unmeasured or not waiting_share:
        return spread

    def compute_ratios(end: LinkCalibration) -> list[float]:
        return [links.value.links[kind].rate / end.links[kind].rate for kind in unmeasured]

    slower, faster = max(compute_ratios(links.slow)), min(compute_ratios(links.fast))
    return IntervalFactors(
        spread.low * (1.0 - waiting_share * (1.0 - faster)),
        spread.high * (1.0 + waiting_share * (slower - 1.0)),
        "; ".join([spread.source, *(f"{kind.value}: {links.sources[kind]}" for kind in sorted(unmeasured))]),
    )


def _add_launch_spread(
    spread: IntervalFactors, steps: StepCalibration, workload: TrainingWorkload, launch_share: float
) -> IntervalFactors:
    quantity = get_launch_quantity(workload)
    if not launch_share or (quantity, workload.framework) in steps.constants:
        return spread
    low, value, high = steps.find_share(quantity, workload.framework).ends
    faster, slower = 1.0 - launch_share * (1.0 - low / value), 1.0 + launch_share * (high / value - 1.0)
    return _widen_independently(spread, faster, slower, spread.source)


def find_serving_spreads(
    curves: ReferenceCurves, families: Iterable[str], system: EvidenceSystem, parameter_count: int | None
) -> list[IntervalFactors]:
    """Returns measured over modelled figures of serving, by the nearest measured system.

    ``families`` are serving_tpot, serving_ttft, serving_throughput, serving_power and serving_energy,
    followed by "/burst" for a load whose requests all arrive at the start.
    """
    level = curves.serving_evidence.resolve_level(system, parameter_count)
    shipped = {"serving_power": curves.served_power}
    return [
        find_residual_spread(curves.residuals, family, level)
        or shipped.get(family.partition("/")[0], curves.inference_latency)
        for family in families
    ]
