"""Enrolment, heartbeat, inventory and credential messages of a node."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.protocol.base import (
    Hex128,
    Instant,
    Int53,
    Name,
    NotNegative,
    PositiveInt53,
    ProtocolMessage,
    ProtocolReply,
    Sha256,
    SingleLine,
)

DeviceKind = Literal["cuda", "cpu"]
"""Kind of device that a node measures: its NVIDIA accelerators, or its processor where it has none."""

NodeCredential = Annotated[str, Field(max_length=120, pattern=r"^[!-~]+$")]


class NodeEnrolmentRequest(ProtocolMessage):
    """The enrolment of a node. A request with the same `installation_id` enrols the same node."""

    token: NodeCredential
    """Enrolment token, which works once."""
    installation_id: Hex128
    """Id that the node makes and keeps before its first attempt, so that a lost answer costs nothing."""
    name: Name | MISSING = MISSING
    """Name of the node. Defaults to its host name."""
    device: DeviceKind
    """Kind of device that the node measures."""
    worker_version: SingleLine
    """Version of the worker."""


class NodeEnrolment(ProtocolReply):
    """A node and its credential, which is shown this once."""

    node_id: Name
    """Id of the node."""
    credential: NodeCredential
    """Credential that the node sends as `Authorization: Bearer`."""
    server_time: Instant
    """Time of the service."""


class NodeSpoolState(ProtocolMessage):
    """Results that a node holds."""

    waiting_count: Int53
    """Number of results that are not acknowledged yet."""
    waiting_bytes: Int53
    """Size of the results that are not acknowledged yet."""
    rejected_count: Int53 = 0
    """Number of results that the service refused and the node keeps for inspection."""
    free_bytes: Int53 | MISSING = MISSING
    """Free space on the file system of the spool."""
    is_full: bool = False
    """True if the spool is full, so that the node claims no work."""


class NodeHeartbeatRequest(ProtocolMessage):
    """A message that the node is alive."""

    boot_id_sha256: Sha256
    """Digest of the id of the boot of the host; two ids that alternate are two hosts with one credential."""
    worker_version: SingleLine
    """Version of the worker."""
    inventory_sha256: Sha256
    """Digest of the current inventory of the node."""
    activity: Literal["idle", "measuring", "draining"]
    """Activity of the node."""
    spool: NodeSpoolState
    acknowledged: Annotated[list[Sha256], Field(max_length=1000)] = []
    """Digests of acknowledged results, sent after a reconnect, that the service may ask for again."""


class NodeInstructions(ProtocolReply):
    """Instructions of the service to a node."""

    state: Literal["active", "draining", "quarantined"]
    """State of the node; a quarantined node may only report."""
    rotate: bool
    """True if the node should rotate its credential."""
    send_inventory: bool
    """True if the service does not know the inventory of the digest, and the node should send it."""
    missing: list[Sha256] = []
    """Acknowledged digests whose results the service does not have; the node should send them again."""
    heartbeat_seconds: NotNegative
    """Time until the next heartbeat."""
    server_time: Instant
    """Time of the service."""


class NodeInventoryReceipt(ProtocolReply):
    """Receipt of an inventory, with the digest by which claims and results name it."""

    inventory_sha256: Sha256
    """Digest of the inventory."""


class IssuedNodeCredential(ProtocolReply):
    """The next credential of a node. The previous credential works until this one has been used."""

    credential: NodeCredential
    """Credential that the node sends as `Authorization: Bearer` from now on."""
    generation: PositiveInt53
    """Number of credentials of the node so far."""


class NodeAccelerator(ProtocolMessage):
    """A device, as its driver describes it. Its numbers identify it, not its name."""

    index: Int53
    """Place among the devices of the node."""
    uuid_sha256: Sha256
    """Digest of the id of the device."""
    name: SingleLine
    pci_bus_id: SingleLine | MISSING = MISSING
    """Place on the bus."""
    pci_device_id: SingleLine | MISSING = MISSING
    """Vendor and model of the chip."""
    pci_subsystem_id: SingleLine | MISSING = MISSING
    """Vendor and model of the board."""
    vbios_version: SingleLine | MISSING = MISSING
    """Firmware of the board."""
    compute_capability: SingleLine | MISSING = MISSING
    """Compute capability by major and minor version, such as 9.0."""
    multiprocessor_count: PositiveInt53 | MISSING = MISSING
    """Number of enabled multiprocessors."""
    memory_bytes: PositiveInt53 | MISSING = MISSING
    """Memory as the driver reports it."""
    l2_bytes: PositiveInt53 | MISSING = MISSING
    """Size of the second-level cache."""
    memory_bus_bits: PositiveInt53 | MISSING = MISSING
    """Width of the memory bus."""
    power_limit_watts: NotNegative | MISSING = MISSING
    """Power limit that is enforced now."""
    power_limit_default_watts: NotNegative | MISSING = MISSING
    """Power limit as delivered."""
    power_limit_minimum_watts: NotNegative | MISSING = MISSING
    """Lowest power limit that can be set."""
    power_limit_maximum_watts: NotNegative | MISSING = MISSING
    """Highest power limit that can be set."""
    sm_clock_maximum_hz: PositiveInt53 | MISSING = MISSING
    """Highest clock of the multiprocessors."""
    memory_clock_maximum_hz: PositiveInt53 | MISSING = MISSING
    """Highest clock of the memory."""
    sm_clock_application_hz: PositiveInt53 | MISSING = MISSING
    """Requested clock of the multiprocessors."""
    memory_clock_application_hz: PositiveInt53 | MISSING = MISSING
    """Requested clock of the memory."""
    persistence_mode: bool | MISSING = MISSING
    """True if the driver stays loaded."""
    compute_mode: SingleLine | MISSING = MISSING
    """Compute mode: the processes that may use the device at a time."""
    mig_mode: bool | MISSING = MISSING
    """True if the device is partitioned."""
    mig_profile: SingleLine | MISSING = MISSING
    """Profile of a slice of a partitioned device, such as `1g.10gb`; absent of a whole device."""
    ecc_mode: bool | MISSING = MISSING
    """True if errors of the memory are corrected."""
    pcie_generation_maximum: PositiveInt53 | MISSING = MISSING
    """Highest generation of the bus that device and slot have."""
    pcie_width_maximum: PositiveInt53 | MISSING = MISSING
    """Most lanes that device and slot have."""
    nvlink_count: Int53 | MISSING = MISSING
    """Number of links to other devices that are up."""
    numa_node: Int53 | MISSING = MISSING
    """NUMA node of the host that the device is attached to."""


class NodeHost(ProtocolMessage):
    """The machine around the devices."""

    operating_system: SingleLine
    """Name and version of the operating system."""
    kernel: SingleLine
    """Version of the kernel."""
    architecture: SingleLine
    """Architecture of the processor, such as x86_64."""
    cpu_model: SingleLine | MISSING = MISSING
    """Model of the processor, as it names itself."""
    cpu_count: PositiveInt53
    """Number of logical processors that the worker may use."""
    socket_count: PositiveInt53 | MISSING = MISSING
    """Number of processors in sockets."""
    numa_node_count: PositiveInt53 | MISSING = MISSING
    """Number of NUMA nodes."""
    memory_bytes: PositiveInt53 | MISSING = MISSING
    """Memory of the host."""
    virtualization: SingleLine | MISSING = MISSING
    """Kind of virtualization, such as none, container or kvm."""
    cgroup_memory_limit_bytes: PositiveInt53 | MISSING = MISSING
    """Memory that the container may use."""
    cgroup_cpu_limit: NotNegative | MISSING = MISSING
    """Number of processors that the container may use."""


class NodeSoftware(ProtocolMessage):
    """A part of the stack that a measurement goes through."""

    name: Name
    """Name of the part, such as driver, cuda_driver_api, nvrtc, cublas, numpy or python."""
    version: SingleLine
    """Version, as the part states it."""


class NodeGap(ProtocolMessage):
    """An unknown fact, with the reason."""

    pointer: SingleLine
    """JSON Pointer of the absent member."""
    code: Name
    """Stable name of the reason."""
    detail: SingleLine = ""
    """Reason in words."""


class NodeInventory(ProtocolMessage):
    """Devices, host and software of a node. The digest of its canonical form names it."""

    device: DeviceKind
    """Kind of device that the node measures."""
    host: NodeHost
    accelerators: Annotated[list[NodeAccelerator], Field(max_length=64)] = []
    software: Annotated[list[NodeSoftware], Field(max_length=100)] = []
    gaps: Annotated[list[NodeGap], Field(max_length=200)] = []
