"""The rules of links."""

import hmac
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from service.approvals import repository as approvals
from service.approvals.errors import ApprovalEnded, ApprovalNotFound, NotAnApprover, OwnApproval
from service.approvals.links import repository
from service.approvals.links.errors import LinkExpired, LinkNotFound, LinkUsed, PublicUrlUnknown
from service.approvals.links.schemas import ApprovalLink, ApprovalLinkInput
from service.approvals.links.tables import ApprovalLinkRow
from service.approvals.people import is_barred, person
from service.approvals.repository import Held
from service.approvals.tables import PENDING
from service.audit.service import Change
from service.auth.service import named, works
from service.kit import leases
from service.kit.credentials import APPROVAL_LINK, digest_of, id_of, is_whole, mint, new_id
from service.kit.database import Writer
from service.kit.keyring import Keyring
from service.kit.subjects import Subject

LINKS_KEPT = timedelta(days=30)
_DIGESTS = "approval links"


class Links:
    """Makes and reads links under the key that their digests are made with."""

    def __init__(self, keyring: Keyring, *, public_url: str, has_tenant: Callable[[str], bool]) -> None:
        self._digest_key = keyring.key(_DIGESTS)
        self._public_url = public_url
        self._has_tenant = has_tenant

    def create(self, session: Writer, maker: Subject, approval_id: str, body: ApprovalLinkInput) -> Change:
        """Make a link by which an approver of the open step decides."""
        held = approvals.locked(session, maker.tenant_id, approval_id)
        if held is None:
            raise ApprovalNotFound
        if not self._public_url:
            raise PublicUrlUnknown
        _check_barred(session, maker, held)
        step = held.open_step
        if held.row.state != PENDING or step is None:
            raise ApprovalEnded
        approver = named(maker.tenant_id, body.approver)
        if body.approver not in held.approvers_of(step) or not works(session, approver, leases.time(session)):
            raise NotAnApprover
        _check_barred(session, approver, held)
        link_id = new_id()
        secret = mint(APPROVAL_LINK, link_id)
        row = ApprovalLinkRow(
            tenant_id=maker.tenant_id,
            id=link_id,
            approval_id=approval_id,
            step_number=step.number,
            approver=body.approver,
            digest=digest_of(secret, self._digest_key),
            created_at=leases.time(session),
            created_by=maker.name,
            expires_at=min(at for at in (step.due_at, held.row.valid_until) if at is not None),
        )
        session.add(row)
        session.flush()
        shown = shown_link(row)
        return Change(
            resource=f"approvals/{approval_id}/links/{link_id}",
            status=201,
            body={"link": shown},
            after=shown,
            once={"url": f"{self._public_url}/decide/{secret}"},
        )

    def presented(self, session: Session, token: str) -> ApprovalLinkRow:
        """The link that somebody presents, used or not."""
        row = repository.presented(session, id_of(token) or "") if is_whole(token) else None
        if row is None or not hmac.compare_digest(row.digest, digest_of(token, self._digest_key)):
            raise LinkNotFound
        if not self._has_tenant(row.tenant_id):
            raise LinkNotFound
        return row


def _check_barred(session: Writer, subject: Subject, held: Held) -> None:
    """Refuse whoever asked for the approval: by a link that they make, they could decide it."""
    if is_barred(held.row, person(session, subject.tenant_id, subject.name)):
        raise OwnApproval


def subject_of(row: ApprovalLinkRow) -> Subject:
    """Whom the holder of a link acts for; all that they may do is decide."""
    return named(row.tenant_id, row.approver)


def is_open(session: Session, row: ApprovalLinkRow) -> bool:
    """Whether a link can still be used: its step is open, and it has not been used or expired."""
    held = approvals.get(session, row.tenant_id, row.approval_id)
    return row.used_at is None and row.expires_at > leases.time(session) and _is_of_open_step(row, held)


def use(session: Writer, row: ApprovalLinkRow) -> None:
    """Use a link for the decision of this transaction. It locks the approval first, as decisions do."""
    held = approvals.locked(session, row.tenant_id, row.approval_id)
    if not _is_of_open_step(row, held) or not works(session, subject_of(row), leases.time(session)):
        raise LinkExpired
    if not repository.use(session, row.tenant_id, row.id):
        raise LinkUsed if row.used_at is not None else LinkExpired


def _is_of_open_step(row: ApprovalLinkRow, held: Held | None) -> bool:
    step = held.open_step if held is not None else None
    return step is not None and step.number == row.step_number


def expire(session: Writer) -> int:
    """Delete the links that expired long ago; their number."""
    return repository.delete_expired(session, leases.time(session) - LINKS_KEPT)


def shown_link(row: ApprovalLinkRow) -> dict[str, Any]:
    """A link as callers see it."""
    return {name: getattr(row, name) for name in ApprovalLink.__annotations__}
