"""Copies between host and device, between devices, and to storage."""

from typing import Annotated, Literal

from pydantic import Field

from service.protocol.base import ProtocolMessage
from service.protocol.work.base import INT64, Bytes, WorkAmount

Devices = Annotated[int, Field(ge=2, le=64, json_schema_extra=INT64)]


class HostLinkWork(ProtocolMessage):
    """Copies between host and device."""

    kind: Literal["host_link"]
    direction: Literal["host_to_device", "device_to_host", "both"]
    """Which way, or both at once."""
    memory: Literal["pinned", "pageable"]
    """Kind of memory on the host."""
    transfer_bytes: Bytes
    """Payload of one direction."""

    def count_work(self) -> WorkAmount:
        """Payload; both directions at once count twice."""
        return WorkAmount(moved_bytes=self.transfer_bytes * (2 if self.direction == "both" else 1))


class PeerLinkWork(ProtocolMessage):
    """Copies from one device of a node to the next."""

    kind: Literal["peer_link"]
    direction: Literal["one_way", "both"]
    """One way, or both at once."""
    method: Literal["copy_engine", "kernel"]
    """Who copies; their figures differ, so they are never compared."""
    transfer_bytes: Bytes
    """Payload of one direction."""

    def count_work(self) -> WorkAmount:
        """Payload; both directions at once count twice."""
        return WorkAmount(moved_bytes=self.transfer_bytes * (2 if self.direction == "both" else 1))


class CollectiveWork(ProtocolMessage):
    """A collective of devices of one node."""

    kind: Literal["collective"]
    operation: Literal[
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"
    ]
    """What is exchanged."""
    devices: Devices
    """Devices that take part."""
    payload_bytes: Bytes
    """As nccl-tests counts: what a device has in the end of a gather, in the beginning of all others."""
    algorithm: Literal["default", "ring", "tree", "nvls"] = "default"
    """What the library is told to use."""

    def count_work(self) -> WorkAmount:
        """Bytes of the bus: payload times the factor that makes figures of any number of devices comparable.

        2 (n - 1) / n of an all-reduce, (n - 1) / n of gather, scatter and all-to-all, 1 of the others
        (nccl-tests, PERFORMANCE.md).
        """
        rest = self.payload_bytes * (self.devices - 1)
        match self.operation:
            case "all_reduce":
                return WorkAmount(moved_bytes=2 * rest // self.devices)
            case "all_gather" | "reduce_scatter" | "all_to_all":
                return WorkAmount(moved_bytes=rest // self.devices)
            case "broadcast" | "send_receive":
                return WorkAmount(moved_bytes=self.payload_bytes)


class ExternalToolWork(ProtocolMessage):
    """A transfer that a tool of others measures, where it is installed; its times are what it reports."""

    kind: Literal["external_tool"]
    tool: Literal["nvbandwidth", "nccl_tests", "dcgm"]
    """Whose program runs; a fixed name, looked up on the path."""
    test: Annotated[str, Field(max_length=60, pattern="^[a-z0-9_]{1,60}$")]
    """Test of the tool, such as host_to_device_memcpy_ce or all_reduce."""
    transfer_bytes: Bytes
    """Payload."""

    def count_work(self) -> WorkAmount:
        """The payload that the tool was asked for."""
        return WorkAmount(moved_bytes=self.transfer_bytes)


class StorageWork(ProtocolMessage):
    """A file written and flushed to the device, or read back past the page cache where that is possible."""

    kind: Literal["storage"]
    direction: Literal["read", "write"]
    """Whether the file is written or read."""
    file_bytes: Bytes
    """Size of the file."""
    block_bytes: Bytes
    """Size of one call."""

    def count_work(self) -> WorkAmount:
        """The bytes of the file."""
        return WorkAmount(moved_bytes=self.file_bytes)
