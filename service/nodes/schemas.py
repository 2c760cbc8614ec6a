"""Requests and answers of enrolment tokens and nodes, for operators."""

from typing import Annotated, Literal

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType

from service.kit.http.pages import NextPageToken, PageQuery
from service.protocol.nodes import DeviceKind, NodeInventory, NodeSpoolState
from service.schemas.base import Integer, ResourceId, StrictModel, Text

TokenId = Annotated[str, Field(pattern=r"^[a-z0-9]{16}$", max_length=16)]
NodeId = Annotated[str, Field(pattern=r"^[a-z0-9]{16}$", max_length=16)]
NodeState = TypeAliasType("NodeState", Literal["active", "draining", "quarantined", "revoked"])
TokenLifetime = Annotated[int, Field(ge=1, le=86_400, json_schema_extra={"format": "int64"})]
Digest = Annotated[str, Field(max_length=64)]
ShortText = Annotated[str, Field(max_length=500)]


class EnrolmentTokenRequest(StrictModel):
    """A token by which one node enrols."""

    lifetime_seconds: TokenLifetime = 900
    """Lifetime of the token."""
    node_name: ResourceId | MISSING = MISSING
    """Name of the node. By default the node chooses it, and takes its host name unless configured
    otherwise."""


class EnrolmentToken(StrictModel):
    """An enrolment token, without its secret."""

    id: TokenId
    node_name: ResourceId | MISSING = MISSING
    """Name of the node."""
    created_at: AwareDatetime
    created_by: Text | MISSING = MISSING
    """Kind and id of the subject that made the token."""
    expires_at: AwareDatetime
    """Time at which the token expires, unless the key that made it ends earlier."""
    used_at: AwareDatetime | MISSING = MISSING
    """Time at which a node enrolled by the token."""
    node_id: NodeId | MISSING = MISSING
    """Id of the node that enrolled by the token."""


class IssuedEnrolmentToken(StrictModel):
    """An enrolment token and its secret. The secret is shown only in this answer and is not stored."""

    enrolment_token: EnrolmentToken
    """The stored token."""
    token: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """Secret that the node sends. Absent from a repeated answer."""


class EnrolmentTokenPage(StrictModel):
    """A page of enrolment tokens."""

    items: list[EnrolmentToken]
    """Tokens in order of id."""
    next_page_token: NextPageToken


class RunningLease(StrictModel):
    """Benchmark run that a node is running."""

    benchmark_run_id: ResourceId
    """Id of the benchmark run that the lease is for."""
    attempt: Integer
    """Number of times that the run was granted so far."""
    begun_at: AwareDatetime
    """Start of this attempt."""


class Node(StrictModel):
    """A host that has enrolled as a node, with GPUs or to measure its processor."""

    id: NodeId
    name: ResourceId
    device: DeviceKind
    """Kind of device that the node measures."""
    state: NodeState
    """State of the node. A `draining` node finishes its suite and gets no other; a `quarantined` node gets
    nothing."""
    reason: ShortText | MISSING = MISSING
    """Reason of the quarantine: `OPERATOR`, `CREDENTIAL_REUSED` or `TWO_HOSTS`."""
    reachable: bool
    """True if the node was heard from recently."""
    last_seen_at: AwareDatetime | MISSING = MISSING
    """Time at which the node was last heard from. Accurate to some minutes if it spoke with another process
    of the service."""
    activity: Literal["idle", "measuring", "draining"] | MISSING = MISSING
    """Activity of the node, as last reported."""
    spool: NodeSpoolState | MISSING = MISSING
    """Results that are kept on the node, as last reported."""
    worker_version: ShortText
    """Version of the worker on the node."""
    inventory_sha256: Digest | MISSING = MISSING
    """SHA-256 of the present inventory."""
    inventory: NodeInventory | MISSING = MISSING
    """Inventory of the node. Present only if a single node is requested."""
    lease: RunningLease | MISSING = MISSING
    """Benchmark run that the node is running."""
    rotation_requested: bool
    """True if the credential of the node is to be replaced before its time."""
    version: Integer
    """Number of changes of the node's state."""
    created_at: AwareDatetime
    revoked_at: AwareDatetime | MISSING = MISSING
    """Time from which the node is refused."""
    barred_at: AwareDatetime | MISSING = MISSING
    """Time from which the host may not enrol again. Absent unless an operator quarantined or revoked the
    node."""


class NodePage(StrictModel):
    """A page of nodes."""

    items: list[Node]
    """Nodes in order of id, without their inventories."""
    next_page_token: NextPageToken


class NodeQuery(PageQuery):
    """Filters of nodes."""

    state: Annotated[list[NodeState], Field(max_length=4)] = []
    """States to list."""
    device: Annotated[list[DeviceKind], Field(max_length=2)] = []
    """Kinds of devices to list."""
