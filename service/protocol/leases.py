"""How a node gets the right to run a suite, keeps it and gives it back."""

from typing import Annotated, Literal

from pydantic import MISSING, Field

from service.protocol.base import (
    Code,
    Hex,
    Instant,
    Line,
    Message,
    Name,
    Reply,
    Seconds,
    Sha256,
    Token,
    Uuid,
    Whole,
)
from service.protocol.suites import Suite

LONGEST_WAIT_SECONDS = 30.0


class Claim(Message):
    """A node asks for work. Sent again with the same `request_id`, it gets the same lease."""

    request_id: Hex
    """Names this claim; a node draws another for the next."""
    wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_SECONDS)] = LONGEST_WAIT_SECONDS
    """How long the answer may be held back until there is work."""
    inventory_sha256: Sha256
    """Digest of the inventory that holds now."""


class Lease(Reply):
    """The right of one node to run one suite until it ends or is renewed."""

    id: Name
    """Id of the benchmark run."""
    fencing_token: Token
    """Higher with every grant; every write under the lease carries it."""
    nonce: Hex
    """Goes into every result, to show that it was measured under this lease."""
    attempt: Whole
    """Grants of the run so far."""
    lease_seconds: Seconds
    """How long the lease lasts, counted from when the request was sent."""
    renew_seconds: Seconds
    """When to renew it."""
    runtime_seconds: Seconds
    """How long an attempt may take in all."""
    seed: Whole
    """Input data of the benchmarks come from it."""
    suite: Suite
    """What to run: data, never code."""
    server_time: Instant
    """The service's time."""


class Step(Message):
    """How far one benchmark is."""

    benchmark: Name
    """Name of the benchmark."""
    state: Literal["waiting", "running", "done", "failed", "skipped"]
    """How it stands."""
    repeat: Whole = 0
    """Repeats that have ended."""
    detail: Line | MISSING = MISSING
    """The figure that came of it, or why there is none."""


class Progress(Message):
    """How far a run is."""

    steps: Annotated[list[Step], Field(max_length=200)]


class Renewal(Message):
    """A node holds on to its lease, and says how far it is."""

    fencing_token: Token
    """Token of the grant."""
    progress: Progress | MISSING = MISSING


class Renewed(Reply):
    """The lease goes on."""

    lease_seconds: Seconds
    """How long the lease lasts, counted from when the request was sent."""
    cancel: bool
    """The run is to be ended: complete the lease with outcome cancelled."""


class StoredResult(Message):
    """A result that the node has had acknowledged."""

    result_id: Uuid
    """Id of the result."""
    content_sha256: Sha256
    """Digest of its bytes."""


class Completion(Message):
    """A node is done with its lease. It ends only once every result it names is stored."""

    fencing_token: Token
    """Of the lease."""
    outcome: Literal["completed", "failed", "released", "cancelled"]
    """`released` gives the run back, for another attempt that does not count."""
    reason: Code | MISSING = MISSING
    """Why a run failed or was released."""
    detail: Line | MISSING = MISSING
    """The reason in words."""
    results: Annotated[list[StoredResult], Field(max_length=1000)] = []
    progress: Progress | MISSING = MISSING


class Completed(Reply):
    """What became of the run."""

    state: Literal["waiting", "completed", "failed", "cancelled", "dead"]
    """`waiting` for another attempt, or ended."""
