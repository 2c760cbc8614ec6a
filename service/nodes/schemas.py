"""Shapes of enrolment tokens and nodes, as operators see them."""

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
    """A token that lets one node in."""

    lifetime_seconds: TokenLifetime = 900
    """How long the token works."""
    node_name: ResourceId | MISSING = MISSING
    """What the node is to be called; its own choice, by default its host name, if it is left out."""


class EnrolmentToken(StrictModel):
    """An enrolment token, without its secret."""

    id: TokenId
    node_name: ResourceId | MISSING = MISSING
    """What the node is to be called."""
    created_at: AwareDatetime
    created_by: Text | MISSING = MISSING
    """Kind and id of the subject that made it."""
    expires_at: AwareDatetime
    """Until when the token works, unless the key that made it ends before."""
    used_at: AwareDatetime | MISSING = MISSING
    """When a node came in by it."""
    node_id: NodeId | MISSING = MISSING
    """The node that came in by it."""


class IssuedEnrolmentToken(StrictModel):
    """An enrolment token and its secret, which is shown this once and kept nowhere."""

    enrolment_token: EnrolmentToken
    """What is kept of it."""
    token: Annotated[str, Field(max_length=100)] | MISSING = MISSING
    """What the node sends; absent from a repeated answer."""


class EnrolmentTokenPage(StrictModel):
    """A page of enrolment tokens."""

    items: list[EnrolmentToken]
    """Tokens in order of id."""
    next_page_token: NextPageToken


class RunningLease(StrictModel):
    """What a node is running."""

    benchmark_run_id: ResourceId
    """The run that its lease is for."""
    attempt: Integer
    """Grants of the run so far."""
    begun_at: AwareDatetime
    """When this attempt began."""


class Node(StrictModel):
    """A GPU host that has enrolled, or one that measures its processor."""

    id: NodeId
    name: ResourceId
    device: DeviceKind
    """What it measures."""
    state: NodeState
    """A `draining` node ends its suite and is given no other; a `quarantined` one is given nothing."""
    reason: ShortText | MISSING = MISSING
    """Why it is quarantined: `OPERATOR`, `CREDENTIAL_REUSED` or `TWO_HOSTS`."""
    reachable: bool
    """Whether it was heard of lately."""
    last_seen_at: AwareDatetime | MISSING = MISSING
    """When it was last heard of; to some minutes if it spoke with another process of the service."""
    activity: Literal["idle", "measuring", "draining"] | MISSING = MISSING
    """What it does, as it said when it was last heard of."""
    spool: NodeSpoolState | MISSING = MISSING
    """Results that it holds, as it said when it was last heard of."""
    worker_version: ShortText
    """Version of the worker that runs on it."""
    inventory_sha256: Digest | MISSING = MISSING
    """Digest of the inventory that holds now."""
    inventory: NodeInventory | MISSING = MISSING
    """What it is made of; only where one node is asked for."""
    lease: RunningLease | MISSING = MISSING
    """What it is running."""
    rotation_requested: bool
    """Whether its credential is to be replaced before its time."""
    version: Integer
    """Number of changes of its state."""
    created_at: AwareDatetime
    revoked_at: AwareDatetime | MISSING = MISSING
    """Since when nothing is taken from it."""
    barred_at: AwareDatetime | MISSING = MISSING
    """Since when its host may not enrol again; absent unless an operator quarantined or revoked it."""


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
