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
    worker_version: Line


class Enrolled(Reply):
    """A node and its credential, which is shown this once."""

    node_id: Name
    credential: NodeCredential
    server_time: Instant


class SpoolState(Message):
    """Results that a node holds."""

    waiting_count: Whole
    """Not acknowledged yet."""
    waiting_bytes: Whole
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
    inventory_sha256: Sha256
    """Digest of the inventory that holds now."""
    activity: Literal["idle", "measuring", "draining"]
    spool: SpoolState
    acknowledged: Annotated[list[Sha256], Field(max_length=1000)] = []
    """After a reconnect: digests of results that were acknowledged, for the service to ask for again."""


class HeartbeatAnswer(Reply):
    """What the service wants of a node."""

    state: Literal["active", "draining", "quarantined"]
    rotate: bool
    """The credential is to be rotated."""
    send_inventory: bool
    """The inventory of this digest is not known."""
    missing: list[Sha256] = []
    """Of the acknowledged digests, those that the service does not have: send them again."""
    heartbeat_seconds: NotNegative
    """When to send the next heartbeat."""
    server_time: Instant


class InventoryKept(Reply):
    """The service has an inventory, under the digest by which claims and results name it."""

    inventory_sha256: Sha256


class NewCredential(Reply):
    """The next credential of a node. The one before works until this one has been used."""

    credential: NodeCredential
    generation: Positive


class Accelerator(Message):
    """One device, as its driver describes it. The identity is in its numbers, not in its name."""

    index: Whole
    uuid_sha256: Sha256
    """Digest of the device's own id."""
    name: Line
    pci_bus_id: Line | MISSING = MISSING
    pci_device_id: Line | MISSING = MISSING
    pci_subsystem_id: Line | MISSING = MISSING
    vbios_version: Line | MISSING = MISSING
    compute_capability: Line | MISSING = MISSING
    """Major and minor, such as 9.0."""
    multiprocessor_count: Positive | MISSING = MISSING
    memory_bytes: Positive | MISSING = MISSING
    l2_bytes: Positive | MISSING = MISSING
    memory_bus_bits: Positive | MISSING = MISSING
    power_limit_watts: NotNegative | MISSING = MISSING
    """As enforced now."""
    power_limit_default_watts: NotNegative | MISSING = MISSING
    power_limit_minimum_watts: NotNegative | MISSING = MISSING
    power_limit_maximum_watts: NotNegative | MISSING = MISSING
    sm_clock_maximum_hz: Positive | MISSING = MISSING
    memory_clock_maximum_hz: Positive | MISSING = MISSING
    sm_clock_application_hz: Positive | MISSING = MISSING
    memory_clock_application_hz: Positive | MISSING = MISSING
    persistence_mode: bool | MISSING = MISSING
    compute_mode: Line | MISSING = MISSING
    mig_mode: bool | MISSING = MISSING
    ecc_mode: bool | MISSING = MISSING
    pcie_generation_maximum: Positive | MISSING = MISSING
    pcie_width_maximum: Positive | MISSING = MISSING
    nvlink_count: Whole | MISSING = MISSING
    numa_node: Whole | MISSING = MISSING


class Host(Message):
    """The machine around the devices."""

    operating_system: Line
    kernel: Line
    architecture: Line
    cpu_model: Line | MISSING = MISSING
    cpu_count: Positive
    """Logical processors that the worker may use."""
    socket_count: Positive | MISSING = MISSING
    numa_node_count: Positive | MISSING = MISSING
    memory_bytes: Positive | MISSING = MISSING
    virtualization: Line | MISSING = MISSING
    """none, container, kvm and the like."""
    cgroup_memory_limit_bytes: Positive | MISSING = MISSING
    cgroup_cpu_limit: NotNegative | MISSING = MISSING


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
    host: Host
    accelerators: Annotated[list[Accelerator], Field(max_length=64)] = []
    software: Annotated[list[Software], Field(max_length=100)] = []
    gaps: Annotated[list[Gap], Field(max_length=200)] = []
