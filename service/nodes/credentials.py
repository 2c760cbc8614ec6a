"""Credentials of nodes: issued, confirmed by their first use, replaced, and quarantined after theft."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastapi.concurrency import run_in_threadpool

from service.audit.service import WriteContext, WriteOutcome, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.admission import build_unauthorized
from service.kit.http.problems import Unauthorized
from service.kit.logs import request_ids
from service.kit.security.credentials import (
    NODE,
    digest_credential,
    is_well_formed,
    mint_credential,
    parse_id,
)
from service.kit.security.keyring import Keyring
from service.kit.security.principals import NODE_SCOPES, Principal, PrincipalKind
from service.nodes import repository
from service.nodes.leases import withdraw_lease
from service.nodes.records import NODES
from service.nodes.tables import (
    CURRENT,
    PENDING,
    QUARANTINED,
    RETIRED,
    REVOKED,
    WITHDRAWN,
    NodeCredentialRow,
    NodeRow,
)

LIFE = timedelta(days=30)
ROTATED_AFTER = LIFE * 2 / 3
CREDENTIAL_REUSED = "CREDENTIAL_REUSED"
TWO_HOSTS = "TWO_HOSTS"
OPERATOR = "OPERATOR"
"""Reasons of a quarantine."""
_DIGESTS = "node credential digests"


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """Issuer of credentials, with the key for their digests."""

    digest_key: bytes

    @classmethod
    def from_keyring(cls, keyring: Keyring) -> "NodeCredentials":
        """Derives the issuer from a service's secret."""
        return cls(keyring.derive_key(_DIGESTS))

    def compute_digest(self, credential: str) -> str:
        """Returns the stored digest of a credential."""
        return digest_credential(credential, self.digest_key)

    def issue_credential(self, session: Writer, node: NodeRow) -> tuple[str, int]:
        """Issues the next generation for a locked node, pending until its use. An unused one is replaced."""
        known = repository.list_credentials(session, node.id)
        secret = mint_credential(NODE, node.id)
        generation = known[0].generation if known else 0
        if known and known[0].state == PENDING:
            session.delete(known[0])
            session.flush()
        else:
            generation += 1
        time = repository.get_time(session)
        row = NodeCredentialRow(
            tenant_id=node.tenant_id,
            node_id=node.id,
            generation=generation,
            state=PENDING,
            digest=self.compute_digest(secret),
            created_at=time,
            expires_at=time + LIFE,
        )
        session.add(row)
        session.flush()
        return secret, generation


def build_subject(node: NodeRow) -> Principal:
    """Returns the subject of a node."""
    return Principal(PrincipalKind.NODE, node.id, node.tenant_id, NODE_SCOPES)


def build_node_call(node: NodeRow, operation: str) -> WriteContext:
    """Returns the audit context of a change that a node's request causes besides its operation."""
    state = request_ids.get() or {}
    return WriteContext(build_subject(node), operation, "", state.get("request_id", ""))


def build_audit_state(node: NodeRow) -> Mapping[str, Any]:
    """Returns the members of a node that the audit digests."""
    own = ("id", "name", "device", "state", "reason", "installation_id")
    names = (*own, "rotate_requested", "barred_at", "version")
    return {name: getattr(node, name) for name in names}


def record_change(session: Writer, node: NodeRow, before: Mapping[str, Any]) -> WriteOutcome:
    """Returns the outcome of a change of a node's state."""
    node.version += 1
    session.flush()
    return WriteOutcome(
        tenant_id=node.tenant_id,
        resource=f"nodes/{node.id}",
        before=before,
        after=build_audit_state(node),
        state=NODES.build_state(session, node),
    )


def quarantine_node(session: Writer, node: NodeRow, reason: str) -> WriteOutcome | None:
    """Quarantines a locked node and withdraws its lease. Returns None if it is already out of service.

    Theft overrides a quarantine by an operator, who could otherwise resume a node with a stolen credential.
    """
    if node.state == REVOKED or (node.state == QUARANTINED and node.reason != OPERATOR):
        return None
    before = build_audit_state(node)
    node.state, node.reason = QUARANTINED, reason
    withdraw_lease(session, node.id)
    return record_change(session, node, before)


class NodeAuthenticator:
    """Authentication of a node by its credential.

    It reads the database, so that a change has immediate effect.
    """

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        credentials: NodeCredentials,
        has_tenant: Callable[[str], bool],
    ) -> None:
        self._database = database
        self._writes = writes
        self._credentials = credentials
        self._has_tenant = has_tenant

    async def __call__(self, credential: str) -> Principal:
        """Returns the subject of ``credential``, which is looked up in a thread."""
        return await run_in_threadpool(self.check_credential, credential)

    def check_credential(self, credential: str) -> Principal:
        """Returns the subject of ``credential``."""
        node_id = parse_id(credential) or ""
        if not is_well_formed(credential):
            raise build_unauthorized("The credential is incomplete or mistyped")
        digest = self._credentials.compute_digest(credential)
        with self._database.open_reader() as session:
            node = repository.find_node_by_id(session, node_id)
            found = [row for row in repository.list_credentials(session, node_id) if _has_digest(row, digest)]
            if node is None or not found or not self._has_tenant(node.tenant_id):
                raise build_unauthorized()
            row = found[0]
            if refusal := _find_refusal(node, row, repository.get_time(session)):
                raise refusal
        if row.state in (PENDING, RETIRED):
            self._settle_credential(node, row.generation, digest)
        return build_subject(node)

    def _settle_credential(self, node: NodeRow, generation: int, digest: str) -> None:
        """Confirms a pending credential. The use of a retired one quarantines the node."""
        with self._database.open_writer() as session:
            locked = repository.lock_node(session, node.tenant_id, node.id)
            known = repository.list_credentials(session, node.id)
            row = next(
                (row for row in known if row.generation == generation and _has_digest(row, digest)), None
            )
            if locked is None or row is None:
                raise build_unauthorized()
            if row.state == PENDING:
                self._confirm_credential(session, locked, row, known[1:])
            is_reused = row.state == RETIRED
            change = quarantine_node(session, locked, CREDENTIAL_REUSED) if is_reused else None
            if change is not None:
                self._writes.record(session, build_node_call(locked, "quarantine_node"), change)
        if is_reused:
            raise build_unauthorized("The credential was replaced before this use: the node is quarantined")

    def _confirm_credential(
        self, session: Writer, node: NodeRow, row: NodeCredentialRow, earlier: Sequence[NodeCredentialRow]
    ) -> None:
        before = build_audit_state(node)
        for one in earlier:
            if one.state == CURRENT:
                one.state, one.ended_at = RETIRED, repository.get_time(session)
                node.rotate_requested = False
        row.state, row.confirmed_at = CURRENT, repository.get_time(session)
        change = record_change(session, node, before)
        self._writes.record(session, build_node_call(node, "confirm_node_credential"), change)


def _has_digest(row: NodeCredentialRow, digest: str) -> bool:
    return hmac.compare_digest(row.digest, digest)


def _find_refusal(node: NodeRow, row: NodeCredentialRow, time: datetime) -> Unauthorized | None:
    if node.state == REVOKED:
        return build_unauthorized("The node is revoked")
    if row.state == WITHDRAWN:
        return build_unauthorized("The node was enrolled again, so its earlier credentials are invalid")
    if row.state != RETIRED and row.expires_at <= time:
        return build_unauthorized("The credential has expired: enrol the node again")
    return None
