"""Memory available to a process, and the rates of the host, its link and its storage."""

from collections.abc import Sequence
from typing import Final

from service.calibrations.fitting.device import FittedDevice
from service.calibrations.fitting.observations import (
    BenchmarkObservation,
    FittedFigure,
    build_rests_on,
    select_work,
    solve_figure,
)
from service.planning.quantity import EvidenceBasis, Quantity
from service.protocol.work.links import HostLinkWork, StorageWork
from service.protocol.work.memory import CapacityWork, ContextMemoryWork, HostStreamWork

_LEAST_TRANSFER_BYTES: Final = 2**26
"""Shortest transfer that is used; shorter copies measure their start."""


def compute_memory_figures(observations: Sequence[BenchmarkObservation]) -> list[FittedFigure]:
    """Computes the memory that a process can allocate, and that driver and libraries take first."""
    contexts = select_work(observations, ContextMemoryWork)
    with_library = [one for one, work in contexts if work.with_library]
    return [
        *_build_reading_figure(
            "memory_bytes", [one for one, _ in select_work(observations, CapacityWork)], "the largest block"
        ),
        *_build_reading_figure(
            "context_bytes",
            with_library or [one for one, _ in contexts],
            "memory in use after the context and its matrix library have started",
        ),
    ]


def _build_reading_figure(name: str, used: Sequence[BenchmarkObservation], method: str) -> list[FittedFigure]:
    found = solve_figure(name, used, lambda _one, value: value, limit=None, method=method)
    return [
        FittedFigure(
            name,
            Quantity(each.figure.value, each.figure.low, each.figure.high, EvidenceBasis.CALIBRATED_NODE),
            rest,
        )
        for each in found
        for rest in [build_rests_on(used, method)]
    ]


def compute_rates(observations: Sequence[BenchmarkObservation], device: FittedDevice) -> list[FittedFigure]:
    """Computes rates between device, host and storage from the longest transfers of each."""
    pinned = [
        one
        for one, work in select_work(observations, HostLinkWork)
        if work.memory == "pinned" and work.direction == "host_to_device"
        if work.transfer_bytes >= _LEAST_TRANSFER_BYTES
    ]
    host = [
        one for one, work in select_work(observations, HostStreamWork) if work.pattern in ("copy", "triad")
    ]
    stored = select_work(observations, StorageWork)
    limit = device.host_link.bytes_per_second if device.host_link else None
    return [
        *_compute_transfer_rate("host_link_bytes_per_second", pinned, limit),
        *_compute_transfer_rate("host_memory_bytes_per_second", host),
        *_compute_transfer_rate(
            "storage_read_bytes_per_second", [one for one, work in stored if work.direction == "read"]
        ),
        *_compute_transfer_rate(
            "storage_write_bytes_per_second", [one for one, work in stored if work.direction == "write"]
        ),
    ]


def _compute_transfer_rate(
    name: str, used: Sequence[BenchmarkObservation], limit: float | None = None
) -> list[FittedFigure]:
    def compute_rate(one: BenchmarkObservation, seconds: float) -> float:
        return one.work.count_work().moved_bytes / seconds

    return solve_figure(name, used, compute_rate, limit=limit, method="bytes over the time of a transfer")
