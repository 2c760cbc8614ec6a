"""Rules of approval links."""

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from service.approvals import repository as approvals
from service.approvals.errors import ApprovalEnded, ApprovalNotFound, NotAnApprover
from service.approvals.links import repository
from service.approvals.links.errors import (
    LinkExpired,
    LinkForPersonsOnly,
    LinkNotFound,
    LinkRevoked,
    LinkUsed,
    PublicUrlUnknown,
    TooManyLinks,
)
from service.approvals.links.records import LINKS
from service.approvals.links.schemas import ApprovalLink, ApprovalLinkRequest
from service.approvals.links.tables import ApprovalLinkRow
from service.approvals.people import is_barred
from service.approvals.repository import LoadedApproval
from service.approvals.tables import PENDING
from service.audit.service import WriteOutcome
from service.auth.service import build_named_subject, is_active, resolve_lineage
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import Problem
from service.kit.http.web import from_state
from service.kit.jobs import leases
from service.kit.security.credentials import (
    APPROVAL_LINK,
    digest_credential,
    generate_id,
    is_well_formed,
    mint_credential,
    parse_id,
)
from service.kit.security.keyring import Keyring
from service.kit.security.principals import Principal, PrincipalKind
from service.policies.errors import OwnApproval
from service.policies.people import resolve_person

LINKS_KEPT = timedelta(days=30)
MOST_LINKS: Final = 200
_DIGESTS = "approval links"


class Links:
    """Creation and verification of links, with the key for their digests."""

    def __init__(self, keyring: Keyring, *, public_url: str, has_tenant: Callable[[str], bool]) -> None:
        self._digest_key = keyring.derive_key(_DIGESTS)
        self._public_url = public_url
        self._has_tenant = has_tenant

    def create(
        self, session: Writer, maker: Principal, approval_id: str, body: ApprovalLinkRequest
    ) -> WriteOutcome:
        """Creates a link by which an approver of the open step can decide."""
        held = _lock_approval(session, maker.tenant_id, approval_id)
        if not self._public_url:
            raise PublicUrlUnknown
        _check_barred(session, maker, held)
        step = held.open_step
        if held.row.state != PENDING or step is None:
            raise ApprovalEnded
        approver = build_named_subject(maker.tenant_id, body.approver)
        if body.approver not in held.list_approvers(step):
            raise NotAnApprover
        if approver.kind is not PrincipalKind.PERSON:
            raise LinkForPersonsOnly
        _check_barred(session, approver, held)
        if len(repository.list_by_approval(session, maker.tenant_id, approval_id)) >= MOST_LINKS:
            raise TooManyLinks
        link_id = generate_id()
        secret = mint_credential(APPROVAL_LINK, link_id)
        row = ApprovalLinkRow(
            tenant_id=maker.tenant_id,
            id=link_id,
            approval_id=approval_id,
            step_number=step.number,
            approver=body.approver,
            digest=digest_credential(secret, self._digest_key),
            created_at=leases.read_database_time(session),
            created_by=maker.name,
            expires_at=min(at for at in (step.due_at, held.row.valid_until) if at is not None),
        )
        session.add(row)
        session.flush()
        shown = link_to_response(row)
        return WriteOutcome(
            resource=_build_resource_name(row),
            status=201,
            body={"link": shown},
            after=shown,
            state=LINKS.build_state(session, row),
            once={"url": f"{self._public_url}/decide/{secret}"},
        )

    def resolve_token(self, session: Session, token: str) -> ApprovalLinkRow:
        """Returns the link of a token, used or not. Raises LinkNotFound for an invalid token."""
        row = (
            repository.find_presented_link(session, parse_id(token) or "") if is_well_formed(token) else None
        )
        if row is None or not hmac.compare_digest(row.digest, digest_credential(token, self._digest_key)):
            raise LinkNotFound
        if not self._has_tenant(row.tenant_id):
            raise LinkNotFound
        return row


LinkRules = Annotated[Links, from_state("links")]


def _check_barred(session: Writer, subject: Principal, held: LoadedApproval) -> None:
    """Refuses requesters, who could decide by a link that they make."""
    if is_barred(
        held.row, resolve_person(session, subject.tenant_id, subject.name, resolve_lineage(session, subject))
    ):
        raise OwnApproval


def build_subject(row: ApprovalLinkRow) -> Principal:
    """Returns the subject of a link's holder, who can only decide."""
    return build_named_subject(row.tenant_id, row.approver)


def is_open(session: Reader | Writer, row: ApprovalLinkRow) -> bool:
    """Returns true if a link can still be used."""
    held = approvals.get_approval(session, row.tenant_id, row.approval_id)
    return _resolve_state(row, held, leases.read_database_time(session)) == "open" and not _is_maker_revoked(
        session, row
    )


def _resolve_state(row: ApprovalLinkRow, held: LoadedApproval | None, time: datetime) -> str:
    """Returns the state of a link, which ends with its step."""
    if row.used_at is not None:
        return "used"
    if row.revoked_at is not None:
        return "revoked"
    if not _is_of_open_step(row, held):
        return "ended"
    return "open" if row.expires_at > time else "expired"


def _is_maker_revoked(session: Reader | Writer, row: ApprovalLinkRow) -> bool:
    """Returns true if the key that made a link has ended. A thief of the key may hold the link too."""
    return not is_active(
        session, build_named_subject(row.tenant_id, row.created_by), leases.read_database_time(session)
    )


def use_link(session: Writer, row: ApprovalLinkRow) -> WriteOutcome:
    """Marks a link as used by the decision of this transaction.

    It locks the approval first, as decisions do.
    """
    held = approvals.lock_approval(session, row.tenant_id, row.approval_id)
    before = link_to_response(row)
    if row.revoked_at is not None:
        raise LinkRevoked
    # An older link for an approver with credentials is not valid.
    if not _is_of_open_step(row, held) or build_subject(row).kind is not PrincipalKind.PERSON:
        raise LinkExpired
    if _is_maker_revoked(session, row):
        raise LinkRevoked
    if not repository.mark_used(session, row.tenant_id, row.id):
        session.refresh(row)
        raise _UNUSABLE[_resolve_state(row, held, leases.read_database_time(session))]
    session.refresh(row)
    return WriteOutcome(
        resource=_build_resource_name(row),
        before=before,
        after=link_to_response(row),
        state=LINKS.build_state(session, row),
    )


_UNUSABLE: Final[Mapping[str, type[Problem]]] = {
    "used": LinkUsed,
    "revoked": LinkRevoked,
    "ended": LinkExpired,
    "expired": LinkExpired,
    "open": LinkExpired,
}


def revoke_link(session: Writer, tenant_id: str, link_id: str) -> WriteOutcome:
    """Revokes a link. A decision that it was used for remains."""
    row = repository.find_presented_link(session, link_id)
    if row is None or row.tenant_id != tenant_id:
        raise LinkNotFound
    # Decisions by the link lock the approval first.
    _lock_approval(session, tenant_id, row.approval_id)
    session.refresh(row)
    before = link_to_response(row)
    row.revoked_at = row.revoked_at or leases.read_database_time(session)
    session.flush()
    return WriteOutcome(
        resource=_build_resource_name(row),
        status=204,
        before=before,
        after=link_to_response(row),
        state=LINKS.build_state(session, row),
    )


def list_link_states(session: Reader, tenant_id: str, approval_id: str) -> list[dict[str, Any]]:
    """Returns the links of an approval with their states."""
    held = approvals.get_approval(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    time = leases.read_database_time(session)
    rows = repository.list_by_approval(session, tenant_id, approval_id)
    states = (
        "revoked" if _is_maker_revoked(session, row) else _resolve_state(row, held, time) for row in rows
    )
    return [{**link_to_response(row), "state": state} for row, state in zip(rows, states, strict=True)]


def _lock_approval(session: Writer, tenant_id: str, approval_id: str) -> LoadedApproval:
    held = approvals.lock_approval(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return held


def _build_resource_name(row: ApprovalLinkRow) -> str:
    return f"approvals/{row.approval_id}/links/{row.id}"


def _is_of_open_step(row: ApprovalLinkRow, held: LoadedApproval | None) -> bool:
    step = held.open_step if held is not None else None
    return step is not None and step.number == row.step_number


def expire_links(session: Writer) -> list[WriteOutcome]:
    """Deletes links that expired long ago."""
    return [
        WriteOutcome(tenant_id=row.tenant_id, resource=LINKS.resource(row))
        for row in repository.delete_expired_links(session, leases.read_database_time(session) - LINKS_KEPT)
    ]


def link_to_response(row: ApprovalLinkRow) -> dict[str, Any]:
    """Returns the representation of a link."""
    members = ((name, getattr(row, name)) for name in ApprovalLink.__annotations__)
    return {name: value for name, value in members if value is not None}
