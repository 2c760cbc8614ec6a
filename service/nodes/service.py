"""The rules of nodes, and those of leases for the rooms that use them."""

import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Request
from pydantic import MISSING
from sqlalchemy.orm import Session

from service.audit.service import Change
from service.auth.service import check_covers, named, works
from service.kit.database.engine import Reader, Writer
from service.kit.http.pages import Page
from service.kit.http.web import from_state
from service.kit.jobs import leases as clock
from service.kit.jobs.bell import ring_after_commit
from service.kit.security.credentials import ENROLMENT, digest_of, id_of, is_whole, mint, new_id
from service.kit.security.keyring import Keyring
from service.kit.security.subjects import NODE_SCOPES, Subject, SubjectKind, permission
from service.nodes import repository
from service.nodes.credentials import (
    OPERATOR,
    ROTATED_AFTER,
    TWO_HOSTS,
    Credentials,
    changed,
    quarantine,
    state_of,
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
from service.nodes.heard import HEARTBEAT_SECONDS, Heartbeats
from service.nodes.intake import Quota, open_intake, take_inventory, take_result
from service.nodes.leases import (
    AtReceipt,
    Standing,
    State,
    abandon_targeted,
    ask,
    cancel,
    complete,
    granted_at,
    has_held,
    is_known,
    lease_at_receipt,
    settle_abandoned,
    standing,
    stands,
    withdraw,
)
from service.nodes.records import NODES, TOKENS
from service.nodes.schemas import EnrolmentTokenInput, NodeQuery
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
from service.protocol.canonical import digest as content_digest
from service.protocol.nodes import Enrolment, Heartbeat, Inventory

__all__ = [
    "CLAIM",
    "AskingNode",
    "AtReceipt",
    "NodeQuota",
    "Quota",
    "Standing",
    "State",
    "ask",
    "cancel",
    "complete",
    "granted_at",
    "has_held",
    "is_known",
    "lease_at_receipt",
    "open_intake",
    "settle_abandoned",
    "standing",
    "stands",
    "take_result",
]

TOKENS_KEPT = timedelta(days=30)
"""How long an enrolment token can be looked up after it has expired."""
BOOTS_KEPT = 8
_DIGESTS = "enrolment token digests"
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


async def _node(request: Request) -> Subject:
    """The node that asks; nobody else may, whatever the scopes."""
    subject: Subject = request.scope["state"]["subject"]
    if subject.kind is not SubjectKind.NODE:
        raise NotANode
    return subject


AskingNode = Annotated[Subject, Depends(_node)]
NodeQuota = Annotated[Quota, from_state("node_quota")]
CLAIM = permission("leases", "claim")
"""What the operations of nodes need."""


def expire_tokens(session: Writer) -> list[Change]:
    """Delete the enrolment tokens that expired long ago."""
    return [
        Change(tenant_id=row.tenant_id, resource=TOKENS.resource(row))
        for row in repository.delete_expired_tokens(session, repository.time(session) - TOKENS_KEPT)
    ]


def shown_token(row: EnrolmentTokenRow) -> dict[str, Any]:
    """An enrolment token as operators see it."""
    names = ("id", "node_name", "created_at", "created_by", "expires_at", "used_at", "node_id")
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def get_token(session: Reader, tenant_id: str, token_id: str) -> dict[str, Any]:
    """An enrolment token of a tenant."""
    row = repository.token(session, tenant_id, token_id)
    if row is None:
        raise EnrolmentTokenNotFound
    return shown_token(row)


def delete_token(session: Writer, tenant_id: str, token_id: str) -> Change:
    """Let nobody in by a token any more."""
    row = repository.token(session, tenant_id, token_id)
    if row is None:
        raise EnrolmentTokenNotFound
    before = shown_token(row)
    session.delete(row)
    session.flush()
    return Change(resource=f"enrolment-tokens/{token_id}", status=204, before=before)


class Enrolments:
    """How nodes join: by a token that an operator made, once."""

    def __init__(self, keyring: Keyring) -> None:
        self._digest_key = keyring.key(_DIGESTS)
        self._credentials = Credentials.of(keyring)

    def create_token(self, session: Writer, creator: Subject, body: EnrolmentTokenInput) -> Change:
        """Make a token; whoever makes it may do all that the node will do."""
        check_covers(creator, sorted(NODE_SCOPES))
        token_id = new_id()
        secret = mint(ENROLMENT, token_id)
        time = repository.time(session)
        row = EnrolmentTokenRow(
            tenant_id=creator.tenant_id,
            id=token_id,
            node_name=None if body.node_name is MISSING else body.node_name,
            digest=digest_of(secret, self._digest_key),
            created_at=time,
            created_by=creator.name,
            expires_at=time + timedelta(seconds=body.lifetime_seconds),
        )
        session.add(row)
        session.flush()
        shown = shown_token(row)
        return Change(
            resource=f"enrolment-tokens/{token_id}",
            status=201,
            body={"enrolment_token": shown},
            headers={"Location": f"/v1/enrolment-tokens/{token_id}"},
            after=shown,
            state=TOKENS.state(session, row),
            once={"token": secret},
        )

    def enrol(
        self, session: Writer, body: Enrolment, has_tenant: Callable[[str], bool]
    ) -> tuple[NodeRow, str, Change]:
        """Let a node in: the node, its credential, and what the audit says of it."""
        token = self._token(session, body, has_tenant)
        node = None
        if token.node_id is not None:
            node = repository.locked_node(session, token.tenant_id, token.node_id)
            known = repository.credentials(session, token.node_id)
            if node is None or not known or known[0].state != PENDING or _has_current(known):
                raise EnrolmentTokenUsed
        before = None if node is None else state_of(node)
        if node is None:
            node, before = self._join(session, token, body)
        # Last: an operator's word that came in the meantime counts.
        if repository.is_barred(session, token.tenant_id, body.installation_id):
            raise NodeBarred
        if node.state == REVOKED:
            raise EnrolmentTokenUsed
        token.node_id = node.id
        secret, _ = self._credentials.issue(session, node)
        change = changed(session, node, before or {})
        return node, secret, replace(change, also=(_used(session, token),))

    def _token(
        self, session: Writer, body: Enrolment, has_tenant: Callable[[str], bool]
    ) -> EnrolmentTokenRow:
        """The token that a node presents, used by now, and by it."""
        token_id = id_of(body.token) or ""
        if not is_whole(body.token):
            raise EnrolmentRefused("The token is not whole: a part was mistyped", headers=_CHALLENGE)
        digest = digest_of(body.token, self._digest_key)
        is_first = repository.use_token(session, token_id, digest, body.installation_id)
        row = repository.presented_token(session, token_id)
        if row is None or not hmac.compare_digest(row.digest, digest) or not has_tenant(row.tenant_id):
            raise EnrolmentRefused(headers=_CHALLENGE)
        # A token ends with the key that made it.
        if row.created_by and not works(
            session, named(row.tenant_id, row.created_by), repository.time(session)
        ):
            raise EnrolmentTokenExpired(headers=_CHALLENGE)
        if not is_first and row.expires_at <= repository.time(session):
            raise EnrolmentTokenExpired(headers=_CHALLENGE)
        if not is_first and row.installation_id != body.installation_id:
            raise EnrolmentTokenUsed
        return row

    def _join(
        self, session: Writer, token: EnrolmentTokenRow, body: Enrolment
    ) -> tuple[NodeRow, Mapping[str, Any] | None]:
        """The node of an installation: a new one, or the one that it has, whose credentials all end."""
        node_id = new_id()
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
            created_at=clock.now(),
            version=0,
        )
        node = repository.locked_installation(session, token.tenant_id, body.installation_id)
        if node is None:  # found by the insert, and revoked before it was locked
            raise NodeBarred
        if is_new:
            return node, None
        before = state_of(node)
        withdraw(session, node.id)
        repository.withdraw_credentials(session, node.id)
        if node.state == QUARANTINED:
            node.state, node.reason = ACTIVE, None
        node.name, node.device, node.worker_version = name, body.device, body.worker_version
        node.boots, node.rotate_requested = [], False
        return node, before

    def rotate(self, session: Writer, node: Subject) -> tuple[str, int, Change]:
        """The next credential of a node, its generation, and what the audit says of it."""
        row = locked(session, node.tenant_id, node.id)
        before = state_of(row)
        secret, generation = self._credentials.issue(session, row)
        return secret, generation, changed(session, row, before)


def _used(session: Writer, token: EnrolmentTokenRow) -> Change:
    """A token after its use."""
    return Change(
        tenant_id=token.tenant_id,
        resource=f"enrolment-tokens/{token.id}",
        after=shown_token(token),
        state=TOKENS.state(session, token),
    )


def _has_current(known: Sequence[NodeCredentialRow]) -> bool:
    return any(row.state == CURRENT for row in known)


class Census(NamedTuple):
    """What tells whether nodes have come or gone."""

    node_count: int
    latest_at: datetime | None


def census(session: Session) -> Census:
    """How many nodes of every tenant there are, and when the latest came."""
    return Census(*repository.count_nodes(session))


def ids_by_tenant(session: Session) -> dict[str, frozenset[str]]:
    """The ids of the nodes of each tenant that has any."""
    found: dict[str, set[str]] = defaultdict(set)
    for tenant_id, node_id in repository.every_node(session):
        found[tenant_id].add(node_id)
    return {tenant_id: frozenset(ids) for tenant_id, ids in found.items()}


def list_nodes(
    session: Reader, tenant_id: str, query: NodeQuery, page: Page[str], heartbeats: Heartbeats
) -> list[dict[str, Any]]:
    """Nodes of a tenant, each with what it said last."""
    rows = repository.nodes_after(
        session, tenant_id, page.after, states=query.state, devices=query.device, limit=page.limit
    )
    held = repository.running_leases(session, [row.id for row in rows])
    time = repository.time(session)
    return [_to_summary(row, held.get(row.id), heartbeats.of(row, time)) for row in rows]


def get_node(session: Reader, tenant_id: str, node_id: str, heartbeats: Heartbeats) -> dict[str, Any]:
    """A node of a tenant, with its inventory."""
    row = _found(session, tenant_id, node_id)
    summary = to_summary(session, row, heartbeats)
    inventory = repository.inventory(session, row.id, row.inventory_sha256 or "")
    return summary if inventory is None else {**summary, "inventory": inventory.inventory}


def to_summary(session: Session, row: NodeRow, heartbeats: Heartbeats) -> dict[str, Any]:
    """A node with what it said last and what it is running."""
    held = repository.running_leases(session, [row.id])
    return _to_summary(row, held.get(row.id), heartbeats.of(row, repository.time(session)))


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
    heartbeats: Heartbeats,
) -> Change:
    """Do something with a node, as an operator."""
    row = locked(session, tenant_id, node_id)
    before = state_of(row)
    do(session, row)
    if state_of(row) != before:
        changed(session, row, before)
    return Change(
        resource=f"nodes/{node_id}",
        body=to_summary(session, row, heartbeats),
        before=before,
        after=state_of(row),
        state=NODES.state(session, row),
    )


def _found(session: Reader, tenant_id: str, node_id: str) -> NodeRow:
    row = repository.node(session, tenant_id, node_id)
    if row is None:
        raise NodeNotFound
    return row


def locked(session: Writer, tenant_id: str, node_id: str) -> NodeRow:
    """A node of a tenant, locked."""
    row = repository.locked_node(session, tenant_id, node_id)
    if row is None:
        raise NodeNotFound
    return row


def keep_inventory(session: Writer, node: Subject, inventory: Inventory, quota: Quota) -> str:
    """Keep what a node is made of, as what holds now; the digest that names it."""
    row = locked(session, node.tenant_id, node.id)
    digest = content_digest(inventory)
    if repository.inventory(session, row.id, digest) is None:
        size = len(inventory.model_dump_json().encode())
        take_inventory(session, open_intake(session, node), size, quota)
        repository.add_inventory(session, row, digest, inventory.model_dump(mode="json"))
    row.inventory_sha256 = digest
    return digest


def inventory(session: Session, node_id: str, content_sha256: str) -> Inventory | None:
    """What a node was made of when it named the digest; None if it never said."""
    row = repository.inventory(session, node_id, content_sha256)
    return None if row is None else Inventory.model_validate_json(json.dumps(row.inventory))


MissingResults = Callable[[Session, Subject, Sequence[str]], list[str]]
"""Which of the results that a node says were acknowledged the service does not have, by digest."""


class AnsweredHeartbeat(NamedTuple):
    """What a node is told, and whether what it says has to be written down."""

    node: NodeRow
    time: datetime
    is_news: bool
    wanted: Mapping[str, Any]


def answer_heartbeat(
    session: Reader, node: Subject, beat: Heartbeat, missing_results: MissingResults
) -> AnsweredHeartbeat:
    """What the service wants of a node."""
    row = _found(session, node.tenant_id, node.id)
    has_inventory = repository.inventory(session, row.id, beat.inventory_sha256) is not None
    time = repository.time(session)
    wanted = {
        "rotate": wants_rotation(session, row),
        "send_inventory": not has_inventory,
        "missing": missing_results(session, node, beat.acknowledged),
        "heartbeat_seconds": HEARTBEAT_SECONDS,
        "server_time": time,
    }
    return AnsweredHeartbeat(row, time, is_news(row, beat, has_inventory=has_inventory), wanted)


def is_news(row: NodeRow, beat: Heartbeat, *, has_inventory: bool) -> bool:
    """Whether a heartbeat says something that its node's row does not."""
    return (
        row.boots[:1] != [beat.boot_id_sha256]
        or row.worker_version != beat.worker_version
        or (has_inventory and row.inventory_sha256 != beat.inventory_sha256)
    )


def take_news(session: Writer, node: Subject, beat: Heartbeat) -> tuple[NodeRow, Change | None]:
    """Write what a heartbeat says that is new; a boot that was left behind quarantines the node."""
    row = locked(session, node.tenant_id, node.id)
    time = repository.time(session)
    # Queries first: each would write down what was set before it.
    if repository.inventory(session, row.id, beat.inventory_sha256) is not None:
        row.inventory_sha256 = beat.inventory_sha256
    row.worker_version = beat.worker_version
    row.last_seen_at = time
    row.activity, row.spool = beat.activity, beat.spool.model_dump(mode="json")
    change = None
    boot = beat.boot_id_sha256
    if row.boots[:1] != [boot]:
        is_back = boot in row.boots
        row.boots = [boot, *(one for one in row.boots if one != boot)][:BOOTS_KEPT]
        change = quarantine(session, row, TWO_HOSTS) if is_back else None
    session.flush()
    return row, change


def wants_rotation(session: Session, row: NodeRow) -> bool:
    """Whether the credential of a node is to be replaced."""
    current = repository.current_credential(session, row.id)
    age = repository.time(session) - current.created_at if current else timedelta()
    return row.rotate_requested or age >= ROTATED_AFTER


def drain(session: Writer, row: NodeRow) -> None:
    """Let a node end its suite and give it no other."""
    _refuse_revoked(row)
    if row.state == QUARANTINED:
        raise NodeQuarantined
    row.state = DRAINING
    session.flush()


def resume(session: Writer, row: NodeRow) -> None:
    """Give a node something to run again, unless its credential is in two hands."""
    _refuse_revoked(row)
    if row.state == QUARANTINED and row.reason != OPERATOR:
        raise NodeCompromised
    row.state, row.reason, row.barred_at = ACTIVE, None, None
    ring_after_commit(session)


def readmit(session: Writer, row: NodeRow) -> None:
    """Let the host of a node enrol again; until it does, the node stays as it is."""
    row.barred_at = None
    session.flush()


def set_aside(session: Writer, row: NodeRow) -> None:
    """Give a node nothing any more, take its lease and keep its host out; what it reports is kept."""
    _refuse_revoked(row)
    row.barred_at = row.barred_at or repository.time(session)
    if row.state != QUARANTINED:
        row.state, row.reason = QUARANTINED, OPERATOR
        withdraw(session, row.id)


def revoke(session: Writer, row: NodeRow) -> None:
    """Take nothing from a node any more, for good, and keep its host out."""
    if row.state != REVOKED:
        row.revoked_at = repository.time(session)
        row.barred_at = row.barred_at or row.revoked_at
        row.state, row.reason = REVOKED, None
        withdraw(session, row.id)
        abandon_targeted(session, row.tenant_id, row.id)


def ask_rotation(session: Writer, row: NodeRow) -> None:
    """Have a node replace its credential at its next heartbeat."""
    _refuse_revoked(row)
    row.rotate_requested = True
    session.flush()


def _refuse_revoked(row: NodeRow) -> None:
    if row.state == REVOKED:
        raise NodeRevoked
