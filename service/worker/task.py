"""Task of a child process: one repeat of one benchmark, and everything its record has to name."""

from pydantic import MISSING

from service.protocol.base import (
    FencingToken,
    FiniteNumber,
    Hex128,
    Int53,
    Name,
    PositiveInt53,
    ProtocolMessage,
    Sha256,
    SingleLine,
)
from service.protocol.nodes import DeviceKind
from service.protocol.suites import Benchmark


class RepeatTask(ProtocolMessage):
    """One repeat of one benchmark, on one accelerator or on the processor."""

    benchmark: Benchmark
    suite_id: Name
    suite_version: PositiveInt53
    run_id: Name
    fencing_token: FencingToken
    attempt: Int53
    nonce: Hex128
    node_id: Name
    boot_id_sha256: Sha256
    inventory_sha256: Sha256
    seed: Int53
    repeat: PositiveInt53
    """Number of the repeat, counted from 1."""
    device: DeviceKind
    accelerator_index: Int53 | MISSING = MISSING
    """Index in the inventory; absent on a node without accelerators."""
    concurrent_accelerators: Int53 = 0
    """Number of accelerators that are measured at the same time, including this one."""
    clock_offset_seconds: FiniteNumber | MISSING = MISSING
    """Offset of the service's clock from the node's, if it is known."""
    worker_version: SingleLine
