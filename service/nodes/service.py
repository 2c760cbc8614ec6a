"""Rules of nodes, and those of leases for other rooms."""

import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request
from pydantic import MISSING
from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.auth.service import build_named_subject, check_covers, is_active
from service.kit.database.engine import Reader, Writer
from service.kit.http.pages import Page
from service.kit.http.web import from_state
from service.kit.jobs import leases as clock
from service.kit.jobs.notifier import notify_after_commit
from service.kit.security.credentials import (
    ENROLMENT,
    digest_credential,
    generate_id,
    is_well_formed,
    mint_credential,
    parse_id,
)
from service.kit.security.keyring import Keyring
from service.kit.security.principals import NODE_SCOPES, Principal, PrincipalKind, build_permission
from service.nodes import repository
from service.nodes.credentials import (
    OPERATOR,
    ROTATED_AFTER,
    TWO_HOSTS,
    NodeCredentials,
    build_audit_state,
    quarantine_node,
    record_change,
)
from service.nodes.errors import (
    EnrolmentRefused,
    EnrolmentTokenExpired,
    EnrolmentTokenNotFound,
    EnrolmentTokenUsed,
    NodeBarred,
    NodeCompromised,
    NodeNotFound,
    NodeQuarantined,
    NodeRevoked,
    NotANode,
)
from service.nodes.heartbeats import HEARTBEAT_SECONDS, HeartbeatRegistry
from service.nodes.intake import IntakeQuota, count_inventory, count_result, open_intake
from service.nodes.leases import (
    RunStanding,
    RunState,
    build_standing_condition,
    cancel_run,
    complete_lease,
    expire_abandoned,
    fail_targeted_runs,
    find_grant_time,
    is_known_node,
    list_standings,
    request_run,
    resolve_receipt_state,
    was_granted_run,
    withdraw_lease,
)
from service.nodes.records import NODES, TOKENS
from service.nodes.schemas import EnrolmentTokenRequest, NodeQuery
from service.nodes.tables import (
    ACTIVE,
    CURRENT,
    DRAINING,
    PENDING,
    QUARANTINED,
    REVOKED,
    EnrolmentTokenRow,
    LeaseRow,
    NodeCredentialRow,
    NodeRow,
)
from service.protocol.canonical import compute_digest as content_digest
from service.protocol.nodes import NodeEnrolmentRequest, NodeHeartbeatRequest, NodeInventory

__all__ = [
    "CLAIM",
    "CallingNode",
    "HeartbeatRegistry",
    "IntakeQuota",
    "NodeQuota",
    "RunStanding",
    "RunState",
    "build_standing_condition",
    "cancel_run",
    "complete_lease",
    "count_result",
    "expire_abandoned",
    "find_grant_time",
    "is_known_node",
    "list_standings",
    "open_intake",
    "request_run",
    "resolve_receipt_state",
    "was_granted_run",
]

TOKENS_KEPT = timedelta(days=30)
"""Retention of an enrolment token after it has expired."""
BOOTS_KEPT = 8
_DIGESTS = "enrolment token digests"
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


async def _require_node(request: Request) -> Principal:
    """Returns the calling node. Refuses other subjects, with any scopes."""
    subject: Principal = request.scope["state"]["subject"]
    if subject.kind is not PrincipalKind.NODE:
        raise NotANode
    return subject


CallingNode = Annotated[Principal, Depends(_require_node)]
NodeHeartbeats = Annotated[HeartbeatRegistry, from_state("heartbeats")]
NodeQuota = Annotated[IntakeQuota, from_state("node_quota")]
CLAIM = build_permission("leases", "claim")
"""Permission for the operations of nodes."""


def expire_tokens(session: Writer) -> list[WriteOutcome]:
    """Deletes the enrolment tokens that expired long ago."""
    return [
        WriteOutcome(tenant_id=row.tenant_id, resource=TOKENS.resource(row))
        for row in repository.delete_expired_tokens(session, repository.get_time(session) - TOKENS_KEPT)
    ]


def to_token_summary(row: EnrolmentTokenRow) -> dict[str, Any]:
    """Returns the representation of an enrolment token for operators."""
    names = ("id", "node_name", "created_at", "created_by", "expires_at", "used_at", "node_id")
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def get_token(session: Reader, tenant_id: str, token_id: str) -> dict[str, Any]:
    """Returns an enrolment token of a tenant."""
    row = repository.get_token(session, tenant_id, token_id)
    if row is None:
        raise EnrolmentTokenNotFound
    return to_token_summary(row)


def delete_token(session: Writer, tenant_id: str, token_id: str) -> WriteOutcome:
    """Deletes an enrolment token."""
    row = repository.get_token(session, tenant_id, token_id)
    if row is None:
        raise EnrolmentTokenNotFound
    before = to_token_summary(row)
    session.delete(row)
    session.flush()
    return WriteOutcome(resource=f"enrolment-tokens/{token_id}", status=204, before=before)


class EnrolmentService:
    """Enrolment of nodes by single-use tokens of operators."""

    def __init__(self, keyring: Keyring) -> None:
        self._digest_key = keyring.derive_key(_DIGESTS)
        self._credentials = NodeCredentials.from_keyring(keyring)

    def create_token(self, session: Writer, creator: Principal, body: EnrolmentTokenRequest) -> WriteOutcome:
        """Creates a token. Its creator must have all permissions of a node."""
        check_covers(creator, sorted(NODE_SCOPES))
        token_id = generate_id()
        secret = mint_credential(ENROLMENT, token_id)
        time = repository.get_time(session)
        row = EnrolmentTokenRow(
            tenant_id=creator.tenant_id,
            id=token_id,
            node_name=None if body.node_name is MISSING else body.node_name,
            digest=digest_credential(secret, self._digest_key),
            created_at=time,
            created_by=creator.name,
            expires_at=time + timedelta(seconds=body.lifetime_seconds),
        )
        session.add(row)
        session.flush()
        shown = to_token_summary(row)
        return WriteOutcome(
            resource=f"enrolment-tokens/{token_id}",
            status=201,
            body={"enrolment_token": shown},
            headers={"Location": f"/v1/enrolment-tokens/{token_id}"},
            after=shown,
            state=TOKENS.build_state(session, row),
            once={"token": secret},
        )

    def enrol_node(
        self, session: Writer, body: NodeEnrolmentRequest, has_tenant: Callable[[str], bool]
    ) -> tuple[NodeRow, str, WriteOutcome]:
        """Enrols a node. Returns the node, its credential and the outcome for the audit."""
        token = self._use_token(session, body, has_tenant)
        node = None
        if token.node_id is not None:
            node = repository.lock_node(session, token.tenant_id, token.node_id)
            known = repository.list_credentials(session, token.node_id)
            if node is None or not known or known[0].state != PENDING or _has_current(known):
                raise EnrolmentTokenUsed
        before = None if node is None else build_audit_state(node)
        if node is None:
            node, before = self._join_installation(session, token, body)
        # Checked last, so that a concurrent decision of an operator counts.
        if repository.is_barred(session, token.tenant_id, body.installation_id):
            raise NodeBarred
        if node.state == REVOKED:
            raise EnrolmentTokenUsed
        token.node_id = node.id
        secret, _ = self._credentials.issue_credential(session, node)
        change = record_change(session, node, before or {})
        return node, secret, replace(change, also=(_build_token_change(session, token),))

    def _use_token(
        self, session: Writer, body: NodeEnrolmentRequest, has_tenant: Callable[[str], bool]
    ) -> EnrolmentTokenRow:
        """Returns the token of an enrolling node, which is now used by it."""
        token_id = parse_id(body.token) or ""
        if not is_well_formed(body.token):
            raise EnrolmentRefused("The token is incomplete or mistyped", headers=_CHALLENGE)
        digest = digest_credential(body.token, self._digest_key)
        is_first = repository.use_token(session, token_id, digest, body.installation_id)
        row = repository.lock_presented_token(session, token_id)
        if row is None or not hmac.compare_digest(row.digest, digest) or not has_tenant(row.tenant_id):
            raise EnrolmentRefused(headers=_CHALLENGE)
        # A token is valid only as long as the key that made it.
        if row.created_by and not is_active(
            session, build_named_subject(row.tenant_id, row.created_by), repository.get_time(session)
        ):
            raise EnrolmentTokenExpired(headers=_CHALLENGE)
        if not is_first and row.expires_at <= repository.get_time(session):
            raise EnrolmentTokenExpired(headers=_CHALLENGE)
        if not is_first and row.installation_id != body.installation_id:
            raise EnrolmentTokenUsed
        return row

    def _join_installation(
        self, session: Writer, token: EnrolmentTokenRow, body: NodeEnrolmentRequest
    ) -> tuple[NodeRow, Mapping[str, Any] | None]:
        """Returns a new node for an installation, or its existing one, whose credentials are withdrawn."""
        node_id = generate_id()
        sent = None if body.name is MISSING else body.name
        name = token.node_name or sent or f"node-{node_id}"
        is_new = repository.add_node(
            session,
            tenant_id=token.tenant_id,
            id=node_id,
            name=name,
            device=body.device,
            state=ACTIVE,
            installation_id=body.installation_id,
            worker_version=body.worker_version,
            boots=[],
            rotate_requested=False,
            created_at=clock.get_database_time(),
            version=0,
        )
        node = repository.lock_installation(session, token.tenant_id, body.installation_id)
        if node is None:  # found by the insert, and revoked before it was locked
            raise NodeBarred
        if is_new:
            return node, None
        before = build_audit_state(node)
        withdraw_lease(session, node.id)
        repository.withdraw_credentials(session, node.id)
        if node.state == QUARANTINED:
            node.state, node.reason = ACTIVE, None
        node.name, node.device, node.worker_version = name, body.device, body.worker_version
        node.boots, node.rotate_requested = [], False
        return node, before

    def rotate_credential(self, session: Writer, node: Principal) -> tuple[str, int, WriteOutcome]:
        """Returns the next credential of a node, its generation and the outcome for the audit."""
        row = lock_node(session, node.tenant_id, node.id)
        before = build_audit_state(row)
        secret, generation = self._credentials.issue_credential(session, row)
        return secret, generation, record_change(session, row, before)


def _build_token_change(session: Writer, token: EnrolmentTokenRow) -> WriteOutcome:
    """Returns the outcome of a token's use."""
    return WriteOutcome(
        tenant_id=token.tenant_id,
        resource=f"enrolment-tokens/{token.id}",
        after=to_token_summary(token),
        state=TOKENS.build_state(session, token),
    )


def _has_current(known: Sequence[NodeCredentialRow]) -> bool:
    return any(row.state == CURRENT for row in known)


class NodeCensus(NamedTuple):
    """Counts by which the service notices new or removed nodes."""

    node_count: int
    latest_at: datetime | None


def read_census(session: Session) -> NodeCensus:
    """Returns the number of nodes of every tenant and the creation time of the latest."""
    return NodeCensus(*repository.count_nodes(session))


def list_ids_by_tenant(session: Session) -> dict[str, frozenset[str]]:
    """Returns the ids of the nodes by tenant."""
    found: dict[str, set[str]] = defaultdict(set)
    for tenant_id, node_id in repository.list_node_ids(session):
        found[tenant_id].add(node_id)
    return {tenant_id: frozenset(ids) for tenant_id, ids in found.items()}


def list_nodes(
    session: Reader, tenant_id: str, query: NodeQuery, page: Page[str], heartbeats: HeartbeatRegistry
) -> list[dict[str, Any]]:
    """Returns nodes of a tenant, each with its last heartbeat."""
    rows = repository.list_nodes(
        session, tenant_id, page.after, states=query.state, devices=query.device, limit=page.limit
    )
    held = repository.list_running_leases(session, [row.id for row in rows])
    time = repository.get_time(session)
    return [_to_summary(row, held.get(row.id), heartbeats.get_status(row, time)) for row in rows]


def list_fleet(
    session: Reader, tenant_id: str, heartbeats: HeartbeatRegistry, *, limit: int
) -> list[dict[str, Any]]:
    """Returns nodes of a tenant by name with their inventories, those that are revoked last."""
    rows = repository.list_nodes_by_name(session, tenant_id, limit=limit)
    held = repository.list_running_leases(session, [row.id for row in rows])
    inventories = repository.list_present_inventories(session, tenant_id, rows)
    time = repository.get_time(session)
    return [
        _to_summary(row, held.get(row.id), heartbeats.get_status(row, time))
        | ({"inventory": inventories[row.id]} if row.id in inventories else {})
        for row in rows
    ]


def find_names(session: Reader, tenant_id: str, node_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of nodes, by id."""
    return repository.list_node_names(session, tenant_id, node_ids) if node_ids else {}


def get_node(session: Reader, tenant_id: str, node_id: str, heartbeats: HeartbeatRegistry) -> dict[str, Any]:
    """Returns a node of a tenant, with its inventory."""
    row = _found(session, tenant_id, node_id)
    summary = to_summary(session, row, heartbeats)
    inventory = repository.get_inventory(session, row.id, row.inventory_sha256 or "")
    return summary if inventory is None else {**summary, "inventory": inventory.inventory}


def to_summary(session: Session, row: NodeRow, heartbeats: HeartbeatRegistry) -> dict[str, Any]:
    """Returns the representation of a node with its last heartbeat and its lease."""
    held = repository.list_running_leases(session, [row.id])
    return _to_summary(row, held.get(row.id), heartbeats.get_status(row, repository.get_time(session)))


def _to_summary(row: NodeRow, lease: LeaseRow | None, said: Mapping[str, Any]) -> dict[str, Any]:
    own = ("id", "name", "device", "state", "reason", "worker_version", "inventory_sha256")
    names = (*own, "version", "created_at", "revoked_at", "barred_at")
    members = {name: getattr(row, name) for name in names}
    members |= {**said, "rotation_requested": row.rotate_requested}
    if lease is not None:
        members["lease"] = {
            "benchmark_run_id": lease.id,
            "attempt": lease.attempt,
            "begun_at": lease.begun_at,
        }
    return {name: value for name, value in members.items() if value is not None}


def change(
    session: Writer,
    tenant_id: str,
    node_id: str,
    do: Callable[[Writer, NodeRow], None],
    heartbeats: HeartbeatRegistry,
) -> WriteOutcome:
    """Applies an operator's change to a node."""
    row = lock_node(session, tenant_id, node_id)
    before = build_audit_state(row)
    do(session, row)
    if build_audit_state(row) != before:
        record_change(session, row, before)
    return WriteOutcome(
        resource=f"nodes/{node_id}",
        body=to_summary(session, row, heartbeats),
        before=before,
        after=build_audit_state(row),
        state=NODES.build_state(session, row),
    )


def _found(session: Reader, tenant_id: str, node_id: str) -> NodeRow:
    row = repository.get_node(session, tenant_id, node_id)
    if row is None:
        raise NodeNotFound
    return row


def lock_node(session: Writer, tenant_id: str, node_id: str) -> NodeRow:
    """Returns a node of a tenant, locked."""
    row = repository.lock_node(session, tenant_id, node_id)
    if row is None:
        raise NodeNotFound
    return row


def store_inventory(session: Writer, node: Principal, inventory: NodeInventory, quota: IntakeQuota) -> str:
    """Stores the current inventory of a node. Returns its digest."""
    row = lock_node(session, node.tenant_id, node.id)
    digest = content_digest(inventory)
    if repository.get_inventory(session, row.id, digest) is None:
        size = len(inventory.model_dump_json().encode())
        count_inventory(session, open_intake(session, node), size, quota)
        repository.add_inventory(session, row, digest, inventory.model_dump(mode="json"))
    row.inventory_sha256 = digest
    return digest


def get_inventory(session: Session, node_id: str, content_sha256: str) -> NodeInventory | None:
    """Returns the inventory of a node with this digest, or None."""
    row = repository.get_inventory(session, node_id, content_sha256)
    return None if row is None else NodeInventory.model_validate_json(json.dumps(row.inventory))


MissingResults = Callable[[Session, Principal, Sequence[str]], list[str]]
"""Returns the digests of acknowledged results of a node that the service lacks."""


class AnsweredHeartbeat(NamedTuple):
    """Answer to a heartbeat. ``is_news`` is true if the heartbeat must be written."""

    node: NodeRow
    time: datetime
    is_news: bool
    wanted: Mapping[str, Any]


def answer_heartbeat(
    session: Reader, node: Principal, beat: NodeHeartbeatRequest, missing_results: MissingResults
) -> AnsweredHeartbeat:
    """Returns the requests of the service to a node."""
    row = _found(session, node.tenant_id, node.id)
    has_inventory = repository.get_inventory(session, row.id, beat.inventory_sha256) is not None
    time = repository.get_time(session)
    wanted = {
        "rotate": needs_rotation(session, row),
        "send_inventory": not has_inventory,
        "missing": missing_results(session, node, beat.acknowledged),
        "heartbeat_seconds": HEARTBEAT_SECONDS,
        "server_time": time,
    }
    return AnsweredHeartbeat(row, time, has_changes(row, beat, has_inventory=has_inventory), wanted)


def has_changes(row: NodeRow, beat: NodeHeartbeatRequest, *, has_inventory: bool) -> bool:
    """Returns true if a heartbeat differs from its node's row."""
    return (
        row.boots[:1] != [beat.boot_id_sha256]
        or row.worker_version != beat.worker_version
        or (has_inventory and row.inventory_sha256 != beat.inventory_sha256)
    )


def apply_heartbeat(
    session: Writer, node: Principal, beat: NodeHeartbeatRequest
) -> tuple[NodeRow, WriteOutcome | None]:
    """Writes the news of a heartbeat. A heartbeat of an earlier boot quarantines the node."""
    row = lock_node(session, node.tenant_id, node.id)
    time = repository.get_time(session)
    # Queries come first, since each would flush the changes before it.
    if repository.get_inventory(session, row.id, beat.inventory_sha256) is not None:
        row.inventory_sha256 = beat.inventory_sha256
    row.worker_version = beat.worker_version
    row.last_seen_at = time
    row.activity, row.spool = beat.activity, beat.spool.model_dump(mode="json")
    change = None
    boot = beat.boot_id_sha256
    if row.boots[:1] != [boot]:
        is_back = boot in row.boots
        row.boots = [boot, *(one for one in row.boots if one != boot)][:BOOTS_KEPT]
        change = quarantine_node(session, row, TWO_HOSTS) if is_back else None
    session.flush()
    return row, change


def needs_rotation(session: Session, row: NodeRow) -> bool:
    """Returns true if the credential of a node must be replaced."""
    current = repository.get_current_credential(session, row.id)
    age = repository.get_time(session) - current.created_at if current else timedelta()
    return row.rotate_requested or age >= ROTATED_AFTER


def drain_node(session: Writer, row: NodeRow) -> None:
    """Drains a node: it completes its suite and gets no further leases."""
    _check_not_revoked(row)
    if row.state == QUARANTINED:
        raise NodeQuarantined
    row.state = DRAINING
    session.flush()


def resume_node(session: Writer, row: NodeRow) -> None:
    """Resumes a node, unless two hosts use its credential."""
    _check_not_revoked(row)
    if row.state == QUARANTINED and row.reason != OPERATOR:
        raise NodeCompromised
    row.state, row.reason, row.barred_at = ACTIVE, None, None
    notify_after_commit(session)


def readmit_node(session: Writer, row: NodeRow) -> None:
    """Allows the host of a node to enrol again. The state of the node itself does not change."""
    row.barred_at = None
    session.flush()


def quarantine_by_operator(session: Writer, row: NodeRow) -> None:
    """Quarantines a node, withdraws its lease and bars its host. Its results are still stored."""
    _check_not_revoked(row)
    row.barred_at = row.barred_at or repository.get_time(session)
    if row.state != QUARANTINED:
        row.state, row.reason = QUARANTINED, OPERATOR
        withdraw_lease(session, row.id)


def revoke_node(session: Writer, row: NodeRow) -> None:
    """Revokes a node for good and bars its host."""
    if row.state != REVOKED:
        row.revoked_at = repository.get_time(session)
        row.barred_at = row.barred_at or row.revoked_at
        row.state, row.reason = REVOKED, None
        withdraw_lease(session, row.id)
        fail_targeted_runs(session, row.tenant_id, row.id)


def request_rotation(session: Writer, row: NodeRow) -> None:
    """Requests that a node replaces its credential at its next heartbeat."""
    _check_not_revoked(row)
    row.rotate_requested = True
    session.flush()


def _check_not_revoked(row: NodeRow) -> None:
    if row.state == REVOKED:
        raise NodeRevoked
