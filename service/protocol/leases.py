"""Messages by which a node claims, renews and completes the lease of a benchmark run."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.protocol.base import (
    Code,
    FencingToken,
    Hex128,
    Instant,
    Int53,
    Name,
    PositiveInt53,
    ProtocolMessage,
    ProtocolReply,
    Seconds,
    Sha256,
    SingleLine,
    Uuid,
)
from service.protocol.suites import BenchmarkSuite

LONGEST_WAIT_SECONDS = 30.0


class LeaseClaimRequest(ProtocolMessage):
    """A claim of a node for work. A claim with the same `request_id` gets the same lease."""

    request_id: Hex128
    """Random name of the claim; each claim has its own."""
    wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)] = LONGEST_WAIT_SECONDS
    """Longest time that the service may hold the answer back until there is work."""
    inventory_sha256: Sha256
    """Digest of the current inventory of the node."""
    suite_form: PositiveInt53 = 1
    """Newest form of suites that the node reads. The service leaves out benchmarks of newer forms."""


class BenchmarkLease(ProtocolReply):
    """The right of one node to run one suite until it ends or is renewed."""

    id: Name
    """Id of the benchmark run."""
    fencing_token: FencingToken
    """Fencing token, which rises with every grant; every write under the lease carries it."""
    nonce: Hex128
    """Random value that goes into every result, to show that it was measured under this lease."""
    attempt: Int53
    """Number of grants of the run so far."""
    lease_seconds: Seconds
    """Duration of the lease, counted from the time at which the request was sent."""
    renew_seconds: Seconds
    """Time after which the node renews the lease."""
    runtime_seconds: Seconds
    """Longest duration of an attempt."""
    seed: Int53
    """Seed of the input data of the benchmarks."""
    suite: BenchmarkSuite
    """Suite to run: data, never code."""
    server_time: Instant
    """Time of the service."""


class BenchmarkProgress(ProtocolMessage):
    """Progress of one benchmark."""

    benchmark: Name
    """Name of the benchmark."""
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    """State of the benchmark."""
    repeat: Int53 = 0
    """Number of repeats that have ended."""
    detail: SingleLine | MISSING = MISSING
    """Figure of the benchmark, or the reason that there is none."""


class LeaseProgress(ProtocolMessage):
    """Progress of a run."""

    steps: Annotated[list[BenchmarkProgress], Field(max_length=300)]


class LeaseRenewalRequest(ProtocolMessage):
    """A renewal of a lease, with the progress of the run."""

    fencing_token: FencingToken
    """Fencing token of the lease."""
    progress: LeaseProgress | MISSING = MISSING


class LeaseRenewal(ProtocolReply):
    """A renewed lease."""

    lease_seconds: Seconds
    """Duration of the lease, counted from the time at which the request was sent."""
    cancel: bool
    """True if the node should end the run and complete the lease with the outcome `cancelled`."""


class AcknowledgedBenchmarkResult(ProtocolMessage):
    """A result that the service has acknowledged."""

    result_id: Uuid
    """Id of the result."""
    content_sha256: Sha256
    """Digest of the bytes of the result."""


class LeaseCompletionRequest(ProtocolMessage):
    """The completion of a lease. The lease ends only once every result that it names is stored."""

    fencing_token: FencingToken
    """Fencing token of the lease."""
    outcome: Literal["completed", "failed", "released", "cancelled"]
    """Outcome of the attempt; `released` gives the run back, for another attempt that does not count."""
    reason: Code | MISSING = MISSING
    """Code of the reason that the run failed or was released."""
    detail: SingleLine | MISSING = MISSING
    """Reason in words."""
    results: Annotated[list[AcknowledgedBenchmarkResult], Field(max_length=1000)] = []
    progress: LeaseProgress | MISSING = MISSING


class LeaseCompletion(ProtocolReply):
    """State of the run after its lease was completed."""

    state: Literal["waiting", "completed", "failed", "cancelled", "dead"]
    """State of the run: `waiting` for another attempt, or ended."""
