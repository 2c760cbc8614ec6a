"""The rules of links."""

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from service.approvals import repository as approvals
from service.approvals.errors import ApprovalEnded, ApprovalNotFound, NotAnApprover, OwnApproval
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
from service.approvals.links.schemas import ApprovalLink, ApprovalLinkInput
from service.approvals.links.tables import ApprovalLinkRow
from service.approvals.people import is_barred, person
from service.approvals.repository import Held
from service.approvals.tables import PENDING
from service.audit.service import Change
from service.auth.service import lineage, named, works
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import Problem
from service.kit.http.web import from_state
from service.kit.jobs import leases
from service.kit.security.credentials import APPROVAL_LINK, digest_of, id_of, is_whole, mint, new_id
from service.kit.security.keyring import Keyring
from service.kit.security.subjects import Subject, SubjectKind

LINKS_KEPT = timedelta(days=30)
MOST_LINKS: Final = 200
_DIGESTS = "approval links"


class Links:
    """Makes and reads links under the key that their digests are made with."""

    def __init__(self, keyring: Keyring, *, public_url: str, has_tenant: Callable[[str], bool]) -> None:
        self._digest_key = keyring.key(_DIGESTS)
        self._public_url = public_url
        self._has_tenant = has_tenant

    def create(self, session: Writer, maker: Subject, approval_id: str, body: ApprovalLinkInput) -> Change:
        """Make a link by which an approver of the open step decides."""
        held = _locked(session, maker.tenant_id, approval_id)
        if not self._public_url:
            raise PublicUrlUnknown
        _check_barred(session, maker, held)
        step = held.open_step
        if held.row.state != PENDING or step is None:
            raise ApprovalEnded
        approver = named(maker.tenant_id, body.approver)
        if body.approver not in held.approvers_of(step):
            raise NotAnApprover
        if approver.kind is not SubjectKind.PERSON:
            raise LinkForPersonsOnly
        _check_barred(session, approver, held)
        if len(repository.of_approval(session, maker.tenant_id, approval_id)) >= MOST_LINKS:
            raise TooManyLinks
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
            resource=_resource(row),
            status=201,
            body={"link": shown},
            after=shown,
            state=LINKS.state(session, row),
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


LinkRules = Annotated[Links, from_state("links")]


def _check_barred(session: Writer, subject: Subject, held: Held) -> None:
    """Refuse whoever asked for the approval: by a link that they make, they could decide it."""
    if is_barred(held.row, person(session, subject.tenant_id, subject.name, lineage(session, subject))):
        raise OwnApproval


def subject_of(row: ApprovalLinkRow) -> Subject:
    """Whom the holder of a link acts for; all that they may do is decide."""
    return named(row.tenant_id, row.approver)


def is_open(session: Reader | Writer, row: ApprovalLinkRow) -> bool:
    """Returns true where a link can still be used."""
    held = approvals.get(session, row.tenant_id, row.approval_id)
    return _state(row, held, leases.time(session)) == "open" and not _has_lost_its_maker(session, row)


def _state(row: ApprovalLinkRow, held: Held | None, time: datetime) -> str:
    """What has become of a link; it ends with the step that it was made for."""
    if row.used_at is not None:
        return "used"
    if row.revoked_at is not None:
        return "revoked"
    if not _is_of_open_step(row, held):
        return "ended"
    return "open" if row.expires_at > time else "expired"


def _has_lost_its_maker(session: Reader | Writer, row: ApprovalLinkRow) -> bool:
    """Returns true where the key that made a link has ended: whoever stole it may hold the link too."""
    return not works(session, named(row.tenant_id, row.created_by), leases.time(session))


def use(session: Writer, row: ApprovalLinkRow) -> Change:
    """Use a link for the decision of this transaction. It locks the approval first, as decisions do."""
    held = approvals.locked(session, row.tenant_id, row.approval_id)
    before = shown_link(row)
    if row.revoked_at is not None:
        raise LinkRevoked
    # A link of before, for somebody with credentials, decides nothing.
    if not _is_of_open_step(row, held) or subject_of(row).kind is not SubjectKind.PERSON:
        raise LinkExpired
    if _has_lost_its_maker(session, row):
        raise LinkRevoked
    if not repository.use(session, row.tenant_id, row.id):
        session.refresh(row)
        raise _UNUSABLE[_state(row, held, leases.time(session))]
    session.refresh(row)
    return Change(
        resource=_resource(row), before=before, after=shown_link(row), state=LINKS.state(session, row)
    )


_UNUSABLE: Final[Mapping[str, type[Problem]]] = {
    "used": LinkUsed,
    "revoked": LinkRevoked,
    "ended": LinkExpired,
    "expired": LinkExpired,
    "open": LinkExpired,
}


def revoke(session: Writer, tenant_id: str, link_id: str) -> Change:
    """Let a link decide nothing any more; what was decided by it stays."""
    row = repository.presented(session, link_id)
    if row is None or row.tenant_id != tenant_id:
        raise LinkNotFound
    # Whoever decides by it locks the approval first.
    _locked(session, tenant_id, row.approval_id)
    session.refresh(row)
    before = shown_link(row)
    row.revoked_at = row.revoked_at or leases.time(session)
    session.flush()
    return Change(
        resource=_resource(row),
        status=204,
        before=before,
        after=shown_link(row),
        state=LINKS.state(session, row),
    )


def listed(session: Reader, tenant_id: str, approval_id: str) -> list[dict[str, Any]]:
    """The links of an approval, each with what has become of it."""
    held = approvals.get(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    time = leases.time(session)
    rows = repository.of_approval(session, tenant_id, approval_id)
    states = ("revoked" if _has_lost_its_maker(session, row) else _state(row, held, time) for row in rows)
    return [{**shown_link(row), "state": state} for row, state in zip(rows, states, strict=True)]


def _locked(session: Writer, tenant_id: str, approval_id: str) -> Held:
    held = approvals.locked(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return held


def _resource(row: ApprovalLinkRow) -> str:
    return f"approvals/{row.approval_id}/links/{row.id}"


def _is_of_open_step(row: ApprovalLinkRow, held: Held | None) -> bool:
    step = held.open_step if held is not None else None
    return step is not None and step.number == row.step_number


def expire(session: Writer) -> list[Change]:
    """Delete the links that expired long ago."""
    return [
        Change(tenant_id=row.tenant_id, resource=LINKS.resource(row))
        for row in repository.delete_expired(session, leases.time(session) - LINKS_KEPT)
    ]


def shown_link(row: ApprovalLinkRow) -> dict[str, Any]:
    """A link as callers see it."""
    members = ((name, getattr(row, name)) for name in ApprovalLink.__annotations__)
    return {name: value for name, value in members if value is not None}
