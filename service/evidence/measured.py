"""What a measured figure is a reading of, and which estimate stands beside it."""

from collections.abc import Mapping
from enum import StrEnum

from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest


class MeasuredOperation(StrEnum):
    """The question that a metric is read from."""

    MEMORY = "memory"
    THROUGHPUT = "throughput"


class MemoryView(StrEnum):
    """What a peak of memory was read from: the whole device, or PyTorch's allocator.

    The allocator knows neither the context of the device nor the buffers of collectives; what it handed out
    is also less than what it reserved.
    """

    DEVICE = "device"
    RESERVED = "reserved"
    ALLOCATED = "allocated"


UNSEEN_COMPONENTS: Mapping[MemoryView, frozenset[str]] = {
    MemoryView.DEVICE: frozenset(),
    MemoryView.RESERVED: frozenset({"device_context", "communication_buffers"}),
    MemoryView.ALLOCATED: frozenset({"device_context", "communication_buffers", "fragmentation"}),
}
"""Parts of a device's memory that a reading of its peak does not see."""

SHAPES: Mapping[MeasuredOperation, type[MemoryEstimateRequest] | type[ThroughputEstimateRequest]] = {
    MeasuredOperation.MEMORY: MemoryEstimateRequest,
    MeasuredOperation.THROUGHPUT: ThroughputEstimateRequest,
}
