"""Operations on changes of policies and budgets that wait, and on how long they do."""

from typing import Annotated, Any, Final

from fastapi import Query, Response

from service.approvals.changes.face import Face, PolicyChangePath
from service.approvals.changes.schemas import (
    ApprovalSettings,
    ApprovalSettingsPatch,
    PolicyChange,
    PolicyChangePage,
    PolicyChangeQuery,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.versions import ETAG, IfMatch
from service.kit.http.web import LOCATED, api_router

changes = api_router("/v1/policy-changes", tag="policy-changes")
settings = api_router("/v1/approval-settings", tag="approval-settings")
PROPOSED: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "model": PolicyChange,
        "headers": LOCATED[201]["headers"],
        "description": "It waits for its approval or the end of the delay.",
    }
}
"""The answer to a write that waits."""
_SEEN: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}


@changes.get("", response_model=PolicyChangePage)
def list_policy_changes(face: Face, caller: Caller, query: Annotated[PolicyChangeQuery, Query()]) -> Response:
    """A page of the tenant's changes of policies, budgets and the delay, the newest first."""
    return face.list(caller.tenant_id, query)


@changes.get("/{id:name}", response_model=PolicyChange)
def get_policy_change(face: Face, caller: Caller, id: PolicyChangePath) -> Response:
    """A change: what is to stand then, who wants it and when it takes effect."""
    return face.get(caller.tenant_id, id)


@changes.post("/{id:name}:approve", response_model=PolicyChange)
def approve_policy_change(face: Face, call: WriteCall, id: PolicyChangePath) -> Response:
    """Agree to a change, as an approver of the policies that stand; with every quorum it holds at once.

    A policy that gives up quotes or signatures of its own asks the approvers of its steps. All else asks
    those of every policy; a budget, those of the policies that can speak of its cost centre. Its author never
    counts.
    """
    return face.approve(call, id)


@changes.post("/{id:name}:reject", response_model=PolicyChange)
def reject_policy_change(face: Face, call: WriteCall, id: PolicyChangePath) -> Response:
    """Let what stands go on, whoever wanted the change; a new one can be proposed then."""
    return face.reject(call, id)


@settings.get("", response_model=ApprovalSettings, responses=_SEEN)
def get_approval_settings(face: Face, caller: Caller) -> Response:
    """How long changes of the tenant's policies and budgets wait."""
    return face.settings(caller.tenant_id)


@settings.patch("", response_model=ApprovalSettings, responses=_SEEN | PROPOSED)
def update_approval_settings(
    face: Face, call: WriteCall, body: ApprovalSettingsPatch, if_match: IfMatch = ""
) -> Response:
    """Say how long changes wait; a shorter time waits (202) as long as the one that stands.

    Until the tenant has its first policy everything holds at once.
    """
    return face.change_settings(call, body, if_match)
