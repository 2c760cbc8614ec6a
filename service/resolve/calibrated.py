"""Selection of the calibrations that apply to the devices of a question."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.nearest import RequestedDevice, resolve_basis
from service.planning.hardware.resolution import resolve_curves
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.schemas.references import (
    CalibrationEfficiency,
    ClusterInput,
    EfficiencyInput,
    SpecifiedAccelerator,
)

_MOST_VIEWS = 256
"""Largest number of devices whose views are cached with a snapshot."""


def apply_calibrations(
    catalog: CatalogView, cluster: ClusterInput | MISSING, efficiency: EfficiencyInput | MISSING = MISSING
) -> CatalogView:
    """Returns the catalog with the measured constants of the question's devices, if there are any.

    Raises :class:`PlanningError` if a named calibration or node does not cover these devices.
    """
    base = catalog.of_all_devices
    asked_id = efficiency.id if isinstance(efficiency, CalibrationEfficiency) else None
    if asked_id is not None and all(each.id != asked_id for each in base.calibrations):
        detail = "no active calibration has this id: it is unknown, superseded or withdrawn"
        raise PlanningError("UNKNOWN_REFERENCE", "/efficiency/id", detail)
    if cluster is MISSING or not base.calibrations:
        return base
    asked = _resolve_devices(cluster, base, asked_id)
    views: dict[object, CatalogView | None] = base.cache.setdefault("calibrated", {})
    key = _build_key(asked)
    view = views.get(key, MISSING)
    if view is MISSING:
        if len(views) >= _MOST_VIEWS:
            views.clear()
        view = views[key] = _build_view(base, asked)
    return view or base


def _resolve_devices(cluster: ClusterInput, base: CatalogView, calibration_id: str | None) -> RequestedDevice:
    resolved_cluster = resolve_cluster(cluster, base, AnswerNotes())
    links = (resolved_cluster.inter_node_link, resolved_cluster.intra_node_link)
    version = cluster.driver_version
    return RequestedDevice(
        resolved_cluster.accelerator,
        specified=isinstance(cluster.accelerator, SpecifiedAccelerator),
        node_id=None if cluster.node_id is MISSING else cluster.node_id,
        driver_major=None if version is MISSING else int(version.partition(".")[0]),
        calibration_id=calibration_id,
        links=tuple((link.kind, link.bytes_per_second) for link in links),
    )


def _build_key(asked: RequestedDevice) -> object:
    """Returns the cache key of a view. An accelerator of the catalog is identified by its id."""
    device = asked.accelerator
    figures: object = device.id
    if asked.specified:
        rates = tuple(sorted(device.peak_flops_per_second.items()))
        figures = (device.generation, device.bandwidth_bytes_per_second, device.power_limit_watts, rates)
    named = (asked.node_id, asked.driver_major, asked.calibration_id)
    return (figures, asked.specified, *named, asked.links)


def _build_view(base: CatalogView, asked: RequestedDevice) -> CatalogView | None:
    """Returns the view of the devices; None if no calibration has a figure of them."""
    _check_scope(base, asked)
    found = resolve_curves(base.curves, base.calibrations, asked)
    return base.replace_device(found) if found.held else None


def _check_scope(base: CatalogView, asked: RequestedDevice) -> None:
    """Refuses a named calibration or node that was measured on other devices."""
    if asked.calibration_id is not None:
        named = next(each for each in base.calibrations if each.id == asked.calibration_id)
        if resolve_basis(named.scope, asked) is None:
            detail = "this calibration was measured on other devices than those of the cluster"
            raise PlanningError("CALIBRATION_OF_ANOTHER_DEVICE", "/efficiency/id", detail)
    of_node = [each.scope for each in base.calibrations if each.scope.node_id == asked.node_id]
    if asked.node_id is not None and of_node and not any(resolve_basis(scope, asked) for scope in of_node):
        detail = "this node has other devices than those of the cluster"
        raise PlanningError("NODE_HAS_ANOTHER_DEVICE", "/cluster/node_id", detail)
