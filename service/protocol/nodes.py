"""How a node joins, says what it is, and says that it is alive."""

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
"""What a node measures: its NVIDIA accelerators, or its processor where it has none."""

NodeCredential = Annotated[str, Field(max_length=120, pattern=r"^[!-~]+$")]


class NodeEnrolmentRequest(ProtocolMessage):
    """A node joins. Sent again with the same `installation_id`, it is the same node."""

    token: NodeCredential
    """The single-use enrolment token."""
    installation_id: Hex128
    """Made by the node, and kept before the first attempt, so that a lost answer costs nothing."""
    name: Name | MISSING = MISSING
    """What the node should be called; its host name by default."""
    device: DeviceKind
    """What the node measures."""
    worker_version: SingleLine
    """Version of the worker."""


class NodeEnrolment(ProtocolReply):
    """A node and its credential, which is shown this once."""

    node_id: Name
    """Id of the node."""
    credential: NodeCredential
    """What the node sends as `Authorization: Bearer`."""
    server_time: Instant
    """The service's time."""


class NodeSpoolState(ProtocolMessage):
    """Results that a node holds."""

    waiting_count: Int53
    """Not acknowledged yet."""
    waiting_bytes: Int53
    """Size of those."""
    rejected_count: Int53 = 0
    """Refused by the service and kept for somebody to look at."""
    free_bytes: Int53 | MISSING = MISSING
    """Room left on the file system of the spool."""
    is_full: bool = False
    """Whether the node stops claiming because of it."""


class NodeHeartbeatRequest(ProtocolMessage):
    """A node is alive."""

    boot_id_sha256: Sha256
    """Digest of the id of this boot of the host; two of them in turn are two hosts with one credential."""
    worker_version: SingleLine
    """Version of the worker."""
    inventory_sha256: Sha256
    """Digest of the inventory that holds now."""
    activity: Literal["idle", "measuring", "draining"]
    """What the node does."""
    spool: NodeSpoolState
    acknowledged: Annotated[list[Sha256], Field(max_length=1000)] = []
    """After a reconnect: digests of results that were acknowledged, for the service to ask for again."""


class NodeInstructions(ProtocolReply):
    """What the service wants of a node."""

    state: Literal["active", "draining", "quarantined"]
    """What the node may do; one that is quarantined may only report."""
    rotate: bool
    """The credential is to be rotated."""
    send_inventory: bool
    """The inventory of this digest is not known."""
    missing: list[Sha256] = []
    """Of the acknowledged digests, those that the service does not have: send them again."""
    heartbeat_seconds: NotNegative
    """When to send the next heartbeat."""
    server_time: Instant
    """The service's time."""


class NodeInventoryReceipt(ProtocolReply):
    """The service has an inventory, under the digest by which claims and results name it."""

    inventory_sha256: Sha256
    """Digest of the inventory."""


class IssuedNodeCredential(ProtocolReply):
    """The next credential of a node. The one before works until this one has been used."""

    credential: NodeCredential
    """What the node sends as `Authorization: Bearer` from now on."""
    generation: PositiveInt53
    """Number of credentials of the node so far."""


class NodeAccelerator(ProtocolMessage):
    """One device, as its driver describes it. The identity is in its numbers, not in its name."""

    index: Int53
    """Place among the devices of the node."""
    uuid_sha256: Sha256
    """Digest of the device's own id."""
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
    """Major and minor, such as 9.0."""
    multiprocessor_count: PositiveInt53 | MISSING = MISSING
    """Multiprocessors that are enabled."""
    memory_bytes: PositiveInt53 | MISSING = MISSING
    """Memory as the driver reports it."""
    l2_bytes: PositiveInt53 | MISSING = MISSING
    """Size of the second-level cache."""
    memory_bus_bits: PositiveInt53 | MISSING = MISSING
    """Width of the memory bus."""
    power_limit_watts: NotNegative | MISSING = MISSING
    """As enforced now."""
    power_limit_default_watts: NotNegative | MISSING = MISSING
    """As delivered."""
    power_limit_minimum_watts: NotNegative | MISSING = MISSING
    """Lowest that can be set."""
    power_limit_maximum_watts: NotNegative | MISSING = MISSING
    """Highest that can be set."""
    sm_clock_maximum_hz: PositiveInt53 | MISSING = MISSING
    """Highest clock of the multiprocessors."""
    memory_clock_maximum_hz: PositiveInt53 | MISSING = MISSING
    """Highest clock of the memory."""
    sm_clock_application_hz: PositiveInt53 | MISSING = MISSING
    """Clock of the multiprocessors that is asked for."""
    memory_clock_application_hz: PositiveInt53 | MISSING = MISSING
    """Clock of the memory that is asked for."""
    persistence_mode: bool | MISSING = MISSING
    """Whether the driver stays loaded."""
    compute_mode: SingleLine | MISSING = MISSING
    """Who may use the device at a time."""
    mig_mode: bool | MISSING = MISSING
    """Whether the device is partitioned."""
    ecc_mode: bool | MISSING = MISSING
    """Whether errors of the memory are corrected."""
    pcie_generation_maximum: PositiveInt53 | MISSING = MISSING
    """Highest generation of the bus that device and slot have."""
    pcie_width_maximum: PositiveInt53 | MISSING = MISSING
    """Most lanes that device and slot have."""
    nvlink_count: Int53 | MISSING = MISSING
    """Links to other devices that are up."""
    numa_node: Int53 | MISSING = MISSING
    """Part of the host's memory that is near."""


class NodeHost(ProtocolMessage):
    """The machine around the devices."""

    operating_system: SingleLine
    """Name and version."""
    kernel: SingleLine
    """Version."""
    architecture: SingleLine
    """Of the processor, such as x86_64."""
    cpu_model: SingleLine | MISSING = MISSING
    """As the processor names itself."""
    cpu_count: PositiveInt53
    """Logical processors that the worker may use."""
    socket_count: PositiveInt53 | MISSING = MISSING
    """Processors in sockets."""
    numa_node_count: PositiveInt53 | MISSING = MISSING
    """Parts of the memory with a distance of their own."""
    memory_bytes: PositiveInt53 | MISSING = MISSING
    """Memory of the host."""
    virtualization: SingleLine | MISSING = MISSING
    """none, container, kvm and the like."""
    cgroup_memory_limit_bytes: PositiveInt53 | MISSING = MISSING
    """What the container may use."""
    cgroup_cpu_limit: NotNegative | MISSING = MISSING
    """Processors that the container may use."""


class NodeSoftware(ProtocolMessage):
    """A part of the stack that a measurement goes through."""

    name: Name
    """driver, cuda_driver_api, nvrtc, cublas, numpy, python and the like."""
    version: SingleLine
    """As it says itself."""


class NodeGap(ProtocolMessage):
    """A fact that is unknown, and why."""

    pointer: SingleLine
    """JSON Pointer of the absent member."""
    code: Name
    """Stable name of the reason."""
    detail: SingleLine = ""
    """The reason in words."""


class NodeInventory(ProtocolMessage):
    """What a node is made of; named by the digest of its canonical form."""

    device: DeviceKind
    """What the node measures."""
    host: NodeHost
    accelerators: Annotated[list[NodeAccelerator], Field(max_length=64)] = []
    software: Annotated[list[NodeSoftware], Field(max_length=100)] = []
    gaps: Annotated[list[NodeGap], Field(max_length=200)] = []
