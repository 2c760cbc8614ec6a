"""Work of links: copies between host and device, between devices and adapters, and of storage."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import MISSING, Field, model_validator

from service.protocol.work.base import INT64, Bytes, Work, WorkAmount

Devices = Annotated[int, Field(ge=2, le=64, json_schema_extra=INT64)]


class HostLinkWork(Work):
    """Copies between host and device."""

    halved: ClassVar[Mapping[str, int]] = {"transfer_bytes": 2**26}

    kind: Literal["host_link"]
    direction: Literal["host_to_device", "device_to_host", "both"]
    """Direction of the copies, or both at once."""
    memory: Literal["pinned", "pageable"]
    """Kind of memory on the host."""
    transfer_bytes: Bytes
    """Payload of one direction."""

    def count_work(self) -> WorkAmount:
        """Returns the payload, twice for both directions at once."""
        return WorkAmount(moved_bytes=self.transfer_bytes * (2 if self.direction == "both" else 1))


class PeerLinkWork(Work):
    """Copies from one device of a node to the next."""

    is_joint: ClassVar[bool] = True

    kind: Literal["peer_link"]
    direction: Literal["one_way", "both"]
    """One way, or both at once."""
    method: Literal["copy_engine", "kernel"]
    """Means of the copies. Their figures differ, so they are never compared."""
    transfer_bytes: Bytes
    """Payload of one direction."""

    def count_work(self) -> WorkAmount:
        """Returns the payload, twice for both directions at once."""
        return WorkAmount(moved_bytes=self.transfer_bytes * (2 if self.direction == "both" else 1))


class PeerMatrixWork(Work):
    """Copies of the copy engines between several devices of a node, all at once."""

    is_joint: ClassVar[bool] = True

    kind: Literal["peer_matrix"]
    pattern: Literal["all_to_one", "one_to_all", "all_to_all"]
    """Pairs that copy: every other device and the first one, or every two devices in both directions."""
    devices: Devices
    """Devices that take part."""
    transfer_bytes: Bytes
    """Payload of each pair in one direction."""

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    @property
    def pairs(self) -> int:
        """Pairs of a source and a target."""
        others = self.devices - 1
        return self.devices * others if self.pattern == "all_to_all" else others

    def count_work(self) -> WorkAmount:
        """Returns the payload of all pairs."""
        return WorkAmount(moved_bytes=self.pairs * self.transfer_bytes)


class CollectiveWork(Work):
    """A collective of devices of one node."""

    is_joint: ClassVar[bool] = True

    kind: Literal["collective"]
    operation: Literal[
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_receive"
    ]
    """Operation of the collective."""
    devices: Devices
    """Devices that take part."""
    payload_bytes: Bytes
    """Payload as nccl-tests counts it: bytes of a device after a gather, before all others."""
    algorithm: Literal["default", "ring", "tree", "nvls"] = "default"
    """Algorithm that the library is told to use."""
    processes: Literal["per_device"] | MISSING = MISSING
    """A process for each device, as frameworks have. Without it one process works on all devices."""
    launch: Literal["graph"] | MISSING = MISSING
    """A graph that replays several collectives, as engines do. Without it they are started one by one."""
    in_place: Literal[True] | MISSING = MISSING
    """True if the result takes the place of the input, as of tensors that are reduced."""

    @model_validator(mode="after")
    def _validate_processes(self) -> "CollectiveWork":
        alone = self.launch is MISSING and self.in_place is MISSING
        if self.processes is MISSING and not alone:
            raise ValueError("graphs and results in place are those of a process for each device")
        if self.in_place is not MISSING and self.operation in ("all_to_all", "send_receive"):
            raise ValueError(f"{self.operation} has no result in place")
        return self

    @property
    def suite_form(self) -> int:
        """2 of processes for each device."""
        return 1 if self.processes is MISSING else 2

    def count_work(self) -> WorkAmount:
        """Returns bytes of the bus: the payload times a factor that makes all numbers of devices comparable.

        The factor is 2 (n - 1) / n of an all-reduce, (n - 1) / n of gather, scatter and all-to-all, 1 of the
        others (nccl-tests, PERFORMANCE.md).
        """
        rest = self.payload_bytes * (self.devices - 1)
        match self.operation:
            case "all_reduce":
                return WorkAmount(moved_bytes=2 * rest // self.devices)
            case "all_gather" | "reduce_scatter" | "all_to_all":
                return WorkAmount(moved_bytes=rest // self.devices)
            case "broadcast" | "send_receive":
                return WorkAmount(moved_bytes=self.payload_bytes)


class ExternalToolWork(Work):
    """A transfer that a tool measures, where it is installed. Its times are those that the tool reports."""

    is_reported: ClassVar[bool] = True
    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["external_tool"]
    tool: Literal["nvbandwidth", "nccl_tests", "dcgm"]
    """Tool that runs: a fixed name, looked up on the path."""
    test: Annotated[str, Field(max_length=60, pattern="^[a-z0-9_]{1,60}$")]
    """Test of the tool, such as host_to_device_memcpy_ce or all_reduce."""
    transfer_bytes: Bytes
    """Payload."""

    def count_work(self) -> WorkAmount:
        """Returns the payload that the tool was asked for."""
        return WorkAmount(moved_bytes=self.transfer_bytes)


class RdmaLinkWork(Work):
    """Messages from the adapter nearest to an accelerator to another one of the node, or to itself.

    The time of one is that which perftest reports: the payload over the average bandwidth, or the median
    latency, half of the way there and back of writes and sends.
    """

    is_reported: ClassVar[bool] = True
    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["rdma_link"]
    operation: Literal["write", "read", "send"]
    """Operation of the messages."""
    path: Literal["between_adapters", "loopback"]
    """Path of the messages: through the network to another adapter, or within one."""
    memory: Literal["device", "host"]
    """Memory at both ends, which adapters access directly."""
    message_bytes: Bytes
    """Size of one message."""

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns the payload of one message."""
        return WorkAmount(moved_bytes=self.message_bytes)


class StorageWork(Work):
    """A file written and flushed to the device, or read back past the page cache where that is possible."""

    is_on_host: ClassVar[bool] = True

    kind: Literal["storage"]
    direction: Literal["read", "write"]
    """Direction: the file is read or written."""
    file_bytes: Bytes
    """Size of the file."""
    block_bytes: Bytes
    """Size of one call."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes of the file."""
        return WorkAmount(moved_bytes=self.file_bytes)


class StorageToDeviceWork(Work):
    """A file read into device memory past the page cache, block after block."""

    kind: Literal["storage_to_device"]
    method: Literal["cufile", "host_memory"]
    """Means of the reads: cuFile, which the record says the mode of, or pinned host memory and copies."""
    file_bytes: Bytes
    """Size of the file."""
    block_bytes: Bytes
    """Size of one read."""

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns the bytes of the file."""
        return WorkAmount(moved_bytes=self.file_bytes)


LinkWork = (
    HostLinkWork
    | PeerLinkWork
    | PeerMatrixWork
    | CollectiveWork
    | ExternalToolWork
    | RdmaLinkWork
    | StorageWork
    | StorageToDeviceWork
)
