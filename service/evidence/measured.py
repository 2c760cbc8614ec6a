"""Subjects of measured figures, and the estimates that correspond to them."""

from collections.abc import Mapping
from enum import StrEnum

from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest


class MeasuredOperation(StrEnum):
    """The estimate that a metric is compared with."""

    MEMORY = "memory"
    THROUGHPUT = "throughput"


class MemoryView(StrEnum):
    """Source of a memory peak: the whole device, or PyTorch's allocator.

    The allocator counts neither the context of the device nor the buffers of collectives; the memory that it
    handed out is also less than what it reserved.
    """

    DEVICE = "device"
    RESERVED = "reserved"
    ALLOCATED = "allocated"


UNSEEN_COMPONENTS: Mapping[MemoryView, frozenset[str]] = {
    MemoryView.DEVICE: frozenset(),
    MemoryView.RESERVED: frozenset({"device_context", "communication_buffers"}),
    MemoryView.ALLOCATED: frozenset({"device_context", "communication_buffers", "fragmentation"}),
}
"""Components of a device's memory that a reading of its peak does not count."""

SHAPES: Mapping[MeasuredOperation, type[MemoryEstimateRequest] | type[ThroughputEstimateRequest]] = {
    MeasuredOperation.MEMORY: MemoryEstimateRequest,
    MeasuredOperation.THROUGHPUT: ThroughputEstimateRequest,
}
