"""How a node gets the right to run a suite, keeps it and gives it back."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.protocol.base import (
    Code,
    FencingToken,
    Hex128,
    Instant,
    Int53,
    Name,
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
    """A node asks for work. Sent again with the same `request_id`, it gets the same lease."""

    request_id: Hex128
    """Names this claim; a node draws another for the next."""
    wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)] = LONGEST_WAIT_SECONDS
    """How long the answer may be held back until there is work."""
    inventory_sha256: Sha256
    """Digest of the inventory that holds now."""


class BenchmarkLease(ProtocolReply):
    """The right of one node to run one suite until it ends or is renewed."""

    id: Name
    """Id of the benchmark run."""
    fencing_token: FencingToken
    """Higher with every grant; every write under the lease carries it."""
    nonce: Hex128
    """Goes into every result, to show that it was measured under this lease."""
    attempt: Int53
    """Grants of the run so far."""
    lease_seconds: Seconds
    """How long the lease lasts, counted from when the request was sent."""
    renew_seconds: Seconds
    """When to renew it."""
    runtime_seconds: Seconds
    """How long an attempt may take in all."""
    seed: Int53
    """Input data of the benchmarks come from it."""
    suite: BenchmarkSuite
    """What to run: data, never code."""
    server_time: Instant
    """The service's time."""


class BenchmarkProgress(ProtocolMessage):
    """How far one benchmark is."""

    benchmark: Name
    """Name of the benchmark."""
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    """How it stands."""
    repeat: Int53 = 0
    """Repeats that have ended."""
    detail: SingleLine | MISSING = MISSING
    """The figure that came of it, or why there is none."""


class LeaseProgress(ProtocolMessage):
    """How far a run is."""

    steps: Annotated[list[BenchmarkProgress], Field(max_length=200)]


class LeaseRenewalRequest(ProtocolMessage):
    """A node holds on to its lease, and says how far it is."""

    fencing_token: FencingToken
    """Token of the grant."""
    progress: LeaseProgress | MISSING = MISSING


class LeaseRenewal(ProtocolReply):
    """The lease goes on."""

    lease_seconds: Seconds
    """How long the lease lasts, counted from when the request was sent."""
    cancel: bool
    """The run is to be ended: complete the lease with outcome cancelled."""


class AcknowledgedBenchmarkResult(ProtocolMessage):
    """A result that the node has had acknowledged."""

    result_id: Uuid
    """Id of the result."""
    content_sha256: Sha256
    """Digest of its bytes."""


class LeaseCompletionRequest(ProtocolMessage):
    """A node is done with its lease. It ends only once every result it names is stored."""

    fencing_token: FencingToken
    """Of the lease."""
    outcome: Literal["completed", "failed", "released", "cancelled"]
    """`released` gives the run back, for another attempt that does not count."""
    reason: Code | MISSING = MISSING
    """Why a run failed or was released."""
    detail: SingleLine | MISSING = MISSING
    """The reason in words."""
    results: Annotated[list[AcknowledgedBenchmarkResult], Field(max_length=1000)] = []
    progress: LeaseProgress | MISSING = MISSING


class LeaseCompletion(ProtocolReply):
    """What became of the run."""

    state: Literal["waiting", "completed", "failed", "cancelled", "dead"]
    """`waiting` for another attempt, or ended."""
