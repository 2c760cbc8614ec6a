"""What a child process is told: one repeat of one benchmark, and everything its record has to name."""

from pydantic import MISSING

from service.protocol.base import Hex, Line, Message, Name, Number, Positive, Sha256, Token, Whole
from service.protocol.nodes import DeviceKind
from service.protocol.suites import Benchmark


class Task(Message):
    """One repeat of one benchmark, on one accelerator or on the processor."""

    benchmark: Benchmark
    suite_id: Name
    suite_version: Positive
    run_id: Name
    fencing_token: Token
    attempt: Whole
    nonce: Hex
    node_id: Name
    boot_id_sha256: Sha256
    inventory_sha256: Sha256
    seed: Whole
    repeat: Positive
    """Counted from 1."""
    device: DeviceKind
    accelerator_index: Whole | MISSING = MISSING
    """In the inventory; absent on a node without accelerators."""
    concurrent_accelerators: Whole = 0
    """How many are measured at the same time, this one included."""
    clock_offset_seconds: Number | MISSING = MISSING
    """The service's clock less the node's, where the service has been heard."""
    worker_version: Line
