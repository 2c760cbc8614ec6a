"""How a node joins, says what it is, and says that it is alive."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.protocol.base import (
    Hex,
    Instant,
    Line,
    Message,
    Name,
    NotNegative,
    Positive,
    Reply,
    Sha256,
    Whole,
)

DeviceKind = Literal["cuda", "cpu"]
"""What a node measures: its NVIDIA accelerators, or its processor where it has none."""

NodeCredential = Annotated[str, Field(max_length=120, pattern=r"^[!-~]+$")]


class Enrolment(Message):
    """A node joins. Sent again with the same `installation_id`, it is the same node."""

    token: NodeCredential
    """The single-use enrolment token."""
    installation_id: Hex
    """Made by the node, and kept before the first attempt, so that a lost answer costs nothing."""
    name: Name | MISSING = MISSING
    """What the node should be called; its host name by default."""
    device: DeviceKind
    """What the node measures."""
    worker_version: Line
    """Version of the worker."""


class Enrolled(Reply):
    """A node and its credential, which is shown this once."""

    node_id: Name
    """Id of the node."""
    credential: NodeCredential
    """What the node sends as `Authorization: Bearer`."""
    server_time: Instant
    """The service's time."""


class SpoolState(Message):
    """Results that a node holds."""

    waiting_count: Whole
    """Not acknowledged yet."""
    waiting_bytes: Whole
    """Size of those."""
    rejected_count: Whole = 0
    """Refused by the service and kept for somebody to look at."""
    free_bytes: Whole | MISSING = MISSING
    """Room left on the file system of the spool."""
    is_full: bool = False
    """Whether the node stops claiming because of it."""


class Heartbeat(Message):
    """A node is alive."""

    boot_id_sha256: Sha256
    """Digest of the id of this boot of the host; two of them in turn are two hosts with one credential."""
    worker_version: Line
    """Version of the worker."""
    inventory_sha256: Sha256
    """Digest of the inventory that holds now."""
    activity: Literal["idle", "measuring", "draining"]
    """What the node does."""
    spool: SpoolState
    acknowledged: Annotated[list[Sha256], Field(max_length=1000)] = []
    """After a reconnect: digests of results that were acknowledged, for the service to ask for again."""


class HeartbeatAnswer(Reply):
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


class InventoryKept(Reply):
    """The service has an inventory, under the digest by which claims and results name it."""

    inventory_sha256: Sha256
    """Digest of the inventory."""


class NewCredential(Reply):
    """The next credential of a node. The one before works until this one has been used."""

    credential: NodeCredential
    """What the node sends as `Authorization: Bearer` from now on."""
    generation: Positive
    """Number of credentials of the node so far."""


class Accelerator(Message):
    """One device, as its driver describes it. The identity is in its numbers, not in its name."""

    index: Whole
    """Place among the devices of the node."""
    uuid_sha256: Sha256
    """Digest of the device's own id."""
    name: Line
    pci_bus_id: Line | MISSING = MISSING
    """Place on the bus."""
    pci_device_id: Line | MISSING = MISSING
    """Vendor and model of the chip."""
    pci_subsystem_id: Line | MISSING = MISSING
    """Vendor and model of the board."""
    vbios_version: Line | MISSING = MISSING
    """Firmware of the board."""
    compute_capability: Line | MISSING = MISSING
    """Major and minor, such as 9.0."""
    multiprocessor_count: Positive | MISSING = MISSING
    """Multiprocessors that are enabled."""
    memory_bytes: Positive | MISSING = MISSING
    """Memory as the driver reports it."""
    l2_bytes: Positive | MISSING = MISSING
    """Size of the second-level cache."""
    memory_bus_bits: Positive | MISSING = MISSING
    """Width of the memory bus."""
    power_limit_watts: NotNegative | MISSING = MISSING
    """As enforced now."""
    power_limit_default_watts: NotNegative | MISSING = MISSING
    """As delivered."""
    power_limit_minimum_watts: NotNegative | MISSING = MISSING
    """Lowest that can be set."""
    power_limit_maximum_watts: NotNegative | MISSING = MISSING
    """Highest that can be set."""
    sm_clock_maximum_hz: Positive | MISSING = MISSING
    """Highest clock of the multiprocessors."""
    memory_clock_maximum_hz: Positive | MISSING = MISSING
    """Highest clock of the memory."""
    sm_clock_application_hz: Positive | MISSING = MISSING
    """Clock of the multiprocessors that is asked for."""
    memory_clock_application_hz: Positive | MISSING = MISSING
    """Clock of the memory that is asked for."""
    persistence_mode: bool | MISSING = MISSING
    """Whether the driver stays loaded."""
    compute_mode: Line | MISSING = MISSING
    """Who may use the device at a time."""
    mig_mode: bool | MISSING = MISSING
    """Whether the device is partitioned."""
    ecc_mode: bool | MISSING = MISSING
    """Whether errors of the memory are corrected."""
    pcie_generation_maximum: Positive | MISSING = MISSING
    """Highest generation of the bus that device and slot have."""
    pcie_width_maximum: Positive | MISSING = MISSING
    """Most lanes that device and slot have."""
    nvlink_count: Whole | MISSING = MISSING
    """Links to other devices that are up."""
    numa_node: Whole | MISSING = MISSING
    """Part of the host's memory that is near."""


class Host(Message):
    """The machine around the devices."""

    operating_system: Line
    """Name and version."""
    kernel: Line
    """Version."""
    architecture: Line
    """Of the processor, such as x86_64."""
    cpu_model: Line | MISSING = MISSING
    """As the processor names itself."""
    cpu_count: Positive
    """Logical processors that the worker may use."""
    socket_count: Positive | MISSING = MISSING
    """Processors in sockets."""
    numa_node_count: Positive | MISSING = MISSING
    """Parts of the memory with a distance of their own."""
    memory_bytes: Positive | MISSING = MISSING
    """Memory of the host."""
    virtualization: Line | MISSING = MISSING
    """none, container, kvm and the like."""
    cgroup_memory_limit_bytes: Positive | MISSING = MISSING
    """What the container may use."""
    cgroup_cpu_limit: NotNegative | MISSING = MISSING
    """Processors that the container may use."""


class Software(Message):
    """A part of the stack that a measurement goes through."""

    name: Name
    """driver, cuda_driver_api, nvrtc, cublas, numpy, python and the like."""
    version: Line
    """As it says itself."""


class Gap(Message):
    """A fact that is unknown, and why."""

    pointer: Line
    """JSON Pointer of the absent member."""
    code: Name
    """Stable name of the reason."""
    detail: Line = ""
    """The reason in words."""


class Inventory(Message):
    """What a node is made of; named by the digest of its canonical form."""

    device: DeviceKind
    """What the node measures."""
    host: Host
    accelerators: Annotated[list[Accelerator], Field(max_length=64)] = []
    software: Annotated[list[Software], Field(max_length=100)] = []
    gaps: Annotated[list[Gap], Field(max_length=200)] = []
