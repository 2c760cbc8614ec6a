"""Memory that a process finds, and the rates of host, its link and its storage."""

from collections.abc import Callable, Sequence
from typing import Final

from service.calibrations.drawing.device import Device
from service.calibrations.drawing.observations import (
    Figure,
    Observation,
    having,
    rests_on,
    solved,
)
from service.planning.quantity import Basis, Quantity
from service.protocol.work import Capacity, ContextMemory, HostLink, HostStream, Storage

_LEAST_TRANSFER_BYTES: Final = 2**26
"""Shorter copies measure how one starts."""


def memory(observations: Sequence[Observation]) -> list[Figure]:
    """What a process can allocate, and what driver and libraries take before that."""
    contexts = having(observations, ContextMemory)
    with_library = [one for one, work in contexts if work.with_library]
    return [
        *_read("memory_bytes", [one for one, _ in having(observations, Capacity)], "the largest block"),
        *_read(
            "context_bytes",
            with_library or [one for one, _ in contexts],
            "memory in use after the context and its matrix library have started",
        ),
    ]


def _read(name: str, used: Sequence[Observation], method: str) -> list[Figure]:
    found = solved(name, used, lambda _one, value: value, limit=None, method=method)
    return [
        Figure(
            name, Quantity(each.figure.value, each.figure.low, each.figure.high, Basis.CALIBRATED_NODE), rest
        )
        for each in found
        for rest in [rests_on(used, method)]
    ]


def rates(observations: Sequence[Observation], device: Device) -> list[Figure]:
    """Rates between device, host and storage; the longest transfers of each."""
    pinned = [
        one
        for one, work in having(observations, HostLink)
        if work.memory == "pinned" and work.direction == "host_to_device"
        if work.transfer_bytes >= _LEAST_TRANSFER_BYTES
    ]
    host = [one for one, work in having(observations, HostStream) if work.pattern in ("copy", "triad")]
    stored = having(observations, Storage)
    limit = device.host_link.bytes_per_second if device.host_link else None
    return [
        *_moved("host_link_bytes_per_second", pinned, limit),
        *_moved("host_memory_bytes_per_second", host),
        *_moved("storage_read_bytes_per_second", [one for one, work in stored if work.direction == "read"]),
        *_moved("storage_write_bytes_per_second", [one for one, work in stored if work.direction == "write"]),
    ]


def _moved(name: str, used: Sequence[Observation], limit: float | None = None) -> list[Figure]:
    rate: Callable[[Observation, float], float] = lambda one, seconds: one.work.amount().moved_bytes / seconds  # noqa: E731
    return solved(name, used, rate, limit=limit, method="bytes over the time of a transfer")
