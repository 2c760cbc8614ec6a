"""Constants of the reference set in the units of a measured set, so that both can be compared."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from service.calibrations.sets import resolve_unit
from service.planning.errors import PlanningError
from service.planning.hardware.calibration import (
    Calibration,
    OperatorQuantity,
    PowerQuantity,
    ServingQuantity,
)
from service.planning.hardware.links import LinkKind
from service.planning.precision import NumberFormat

_SHARES: Final = frozenset({"flops_per_second", "bytes_per_second", "watts"})
"""Units of measured figures that the reference set has as shares of a limit."""
_STREAMED: Final = frozenset(
    {
        ServingQuantity.WEIGHT_BANDWIDTH,
        ServingQuantity.EXPERT_BANDWIDTH,
        ServingQuantity.CACHE_BANDWIDTH,
    }
)
"""Rates that the reference set keeps as shares of the rate of a streaming kernel."""


def find_reference_values(
    figures: Iterable[Mapping[str, Any]], generation: str | None, reference: Calibration
) -> dict[str, float]:
    """Returns what the reference set says of each figure of a set, by name.

    Rates and watts, which the reference set has as shares, are those shares of the limit of the measured
    figure. Left out are figures without a counterpart or without that limit, and every figure of a device
    whose generation is unknown.
    """
    if generation is None:
        return {}
    found = {}
    for figure in figures:
        name = figure["name"]
        factor = figure.get("limit") if resolve_unit(name) in _SHARES else 1.0
        value = _find_value(name, generation, reference)
        if value is not None and factor is not None:
            found[name] = value * factor
    return found


def _find_value(name: str, generation: str, reference: Calibration) -> float | None:
    """Returns a constant of the reference set: a share, or a value without a limit."""
    try:
        match name.split("."):
            case ["operators", quantity, *formats]:
                number_format = NumberFormat(formats[0]) if formats else None
                operators = reference.operators
                return operators.find_share(OperatorQuantity(quantity), generation, number_format).value
            case ["serving", quantity]:
                return _find_serving(ServingQuantity(quantity), generation, reference)
            case ["power", quantity]:
                return reference.power.find_share(PowerQuantity(quantity), generation).value
            case ["links", kind, part]:
                return _find_link(LinkKind(kind), part, generation, reference)
    except PlanningError:  # the reference set lacks the constant
        return None
    return None


def _find_serving(quantity: ServingQuantity, generation: str, reference: Calibration) -> float:
    value = reference.serving.find_share(quantity, None).value
    if quantity in _STREAMED:
        value *= reference.operators.find_share(OperatorQuantity.BANDWIDTH, generation).value
    return value


def _find_link(kind: LinkKind, part: str, generation: str, reference: Calibration) -> float | None:
    links = reference.links.value
    match part:
        case "rate":
            return links.links[kind].rate
        case "hop_seconds":
            return links.links[kind].hop_seconds
        case "launch_seconds":
            return links.launch_seconds
        case "in_network_rate":
            return links.in_network.get(generation, links.in_network_pooled)
    return None
