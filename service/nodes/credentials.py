"""The credential of a node: issued, confirmed by its first use, replaced, and noticed when it is stolen."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastapi.concurrency import run_in_threadpool

from service.audit.service import Call, Change, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.admission import refused
from service.kit.http.problems import Unauthorized
from service.kit.logs import request_ids
from service.kit.security.credentials import NODE, digest_of, id_of, is_whole, mint
from service.kit.security.keyring import Keyring
from service.kit.security.subjects import NODE_SCOPES, Subject, SubjectKind
from service.nodes import repository
from service.nodes.leases import withdraw
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
"""Why a node is quarantined."""
_DIGESTS = "node credential digests"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Issues credentials under the key that their digests are made with."""

    digest_key: bytes

    @classmethod
    def of(cls, keyring: Keyring) -> "Credentials":
        """The rules under a service's secret."""
        return cls(keyring.key(_DIGESTS))

    def digest(self, credential: str) -> str:
        """What is kept of a credential."""
        return digest_of(credential, self.digest_key)

    def issue(self, session: Writer, node: NodeRow) -> tuple[str, int]:
        """The next generation of a locked node, pending; asked again before its use, it is made anew."""
        known = repository.credentials(session, node.id)
        secret = mint(NODE, node.id)
        generation = known[0].generation if known else 0
        if known and known[0].state == PENDING:
            session.delete(known[0])
            session.flush()
        else:
            generation += 1
        time = repository.time(session)
        row = NodeCredentialRow(
            tenant_id=node.tenant_id,
            node_id=node.id,
            generation=generation,
            state=PENDING,
            digest=self.digest(secret),
            created_at=time,
            expires_at=time + LIFE,
        )
        session.add(row)
        session.flush()
        return secret, generation


def subject_of(node: NodeRow) -> Subject:
    """Who a node is."""
    return Subject(SubjectKind.NODE, node.id, node.tenant_id, NODE_SCOPES)


def own_call(node: NodeRow, operation: str) -> Call:
    """What the audit says of something that a node's request brought about beside its operation."""
    state = request_ids.get() or {}
    return Call(subject_of(node), operation, "", state.get("request_id", ""))


def state_of(node: NodeRow) -> Mapping[str, Any]:
    """What the audit digests of a node."""
    own = ("id", "name", "device", "state", "reason", "installation_id")
    names = (*own, "rotate_requested", "barred_at", "version")
    return {name: getattr(node, name) for name in names}


def changed(session: Writer, node: NodeRow, before: Mapping[str, Any]) -> Change:
    """A node after a change of its state."""
    node.version += 1
    session.flush()
    return Change(
        tenant_id=node.tenant_id,
        resource=f"nodes/{node.id}",
        before=before,
        after=state_of(node),
        state=NODES.state(session, node),
    )


def quarantine(session: Writer, node: NodeRow, reason: str) -> Change | None:
    """Give a locked node nothing any more, and take its lease; None if it is out already.

    Theft outweighs the word of an operator, who could else resume a node whose credential is in two hands.
    """
    if node.state == REVOKED or (node.state == QUARANTINED and node.reason != OPERATOR):
        return None
    before = state_of(node)
    node.state, node.reason = QUARANTINED, reason
    withdraw(session, node.id)
    return changed(session, node, before)


class NodeAuthenticator:
    """From the credential of a node to its subject, by the database: a change counts at once."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        credentials: Credentials,
        has_tenant: Callable[[str], bool],
    ) -> None:
        self._database = database
        self._writes = writes
        self._credentials = credentials
        self._has_tenant = has_tenant

    async def __call__(self, credential: str) -> Subject:
        """The subject behind ``credential``, looked up in a thread."""
        return await run_in_threadpool(self.check, credential)

    def check(self, credential: str) -> Subject:
        """The subject behind ``credential``."""
        node_id = id_of(credential) or ""
        if not is_whole(credential):
            raise refused("The credential is not whole: a part was mistyped")
        digest = self._credentials.digest(credential)
        with self._database.reading() as session:
            node = repository.presenting(session, node_id)
            found = [row for row in repository.credentials(session, node_id) if _is(row, digest)]
            if node is None or not found or not self._has_tenant(node.tenant_id):
                raise refused()
            row = found[0]
            if refusal := _refusal(node, row, repository.time(session)):
                raise refusal
        if row.state in (PENDING, RETIRED):
            self._settle(node, row.generation, digest)
        return subject_of(node)

    def _settle(self, node: NodeRow, generation: int, digest: str) -> None:
        """Confirm a pending credential; whoever uses a retired one quarantines the node."""
        with self._database.writing() as session:
            locked = repository.locked_node(session, node.tenant_id, node.id)
            known = repository.credentials(session, node.id)
            row = next((row for row in known if row.generation == generation and _is(row, digest)), None)
            if locked is None or row is None:
                raise refused()
            if row.state == PENDING:
                self._confirm(session, locked, row, known[1:])
            is_reused = row.state == RETIRED
            change = quarantine(session, locked, CREDENTIAL_REUSED) if is_reused else None
            if change is not None:
                self._writes.record(session, own_call(locked, "quarantine_node"), change)
        if is_reused:
            raise refused("The credential was replaced before it was used again: the node is quarantined")

    def _confirm(
        self, session: Writer, node: NodeRow, row: NodeCredentialRow, earlier: Sequence[NodeCredentialRow]
    ) -> None:
        before = state_of(node)
        for one in earlier:
            if one.state == CURRENT:
                one.state, one.ended_at = RETIRED, repository.time(session)
                node.rotate_requested = False
        row.state, row.confirmed_at = CURRENT, repository.time(session)
        change = changed(session, node, before)
        self._writes.record(session, own_call(node, "confirm_node_credential"), change)


def _is(row: NodeCredentialRow, digest: str) -> bool:
    return hmac.compare_digest(row.digest, digest)


def _refusal(node: NodeRow, row: NodeCredentialRow, time: datetime) -> Unauthorized | None:
    if node.state == REVOKED:
        return refused("The node is revoked")
    if row.state == WITHDRAWN:
        return refused("The node was enrolled again: its earlier credentials do not work")
    if row.state != RETIRED and row.expires_at <= time:
        return refused("The credential has expired: enrol the node again")
    return None
