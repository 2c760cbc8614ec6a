"""Operations on delayed changes of policies and budgets, and on the settings of the delay."""

from typing import Annotated

from fastapi import Path, Query, Response

from service.evidence.snapshot import Snapshots
from service.kit.http.pages import newest_first
from service.kit.http.versions import VERSIONED, IfMatch, versioned_response
from service.kit.http.web import api_router, json_response
from service.policies.changes import repository, service
from service.policies.changes.schemas import (
    PROPOSED,
    ApprovalSettings,
    ApprovalSettingsPatch,
    PolicyChange,
    PolicyChangeId,
    PolicyChangePage,
    PolicyChangeQuery,
)
from service.policies.changes.service import Appliers, SettledRead, SettledWrite
from service.policies.changes.waiting import to_response

changes = api_router("/v1/policy-changes", tag="policy-changes")
settings = api_router("/v1/approval-settings", tag="approval-settings")
PolicyChangePath = Annotated[PolicyChangeId, Path(description="Id of the change.")]


@changes.get("", summary="List changes that wait or waited", response_model=PolicyChangePage)
def list_policy_changes(read: SettledRead, query: Annotated[PolicyChangeQuery, Query()]) -> Response:
    """Lists the tenant's changes of policies, budgets and the delay, the newest first."""
    page = read.page(query, newest_first("proposed_at"), "policy-changes", query.state)
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, query.state, page.after, page.limit)
        return json_response(page.to_response([to_response(row) for row in rows]))


@changes.get("/{id:name}", summary="Get a change of a policy or budget", response_model=PolicyChange)
def get_policy_change(read: SettledRead, id: PolicyChangePath) -> Response:
    """Returns a change: the terms after it, its author, and the time at which it takes effect."""
    with read.session() as session:
        return json_response(service.get_change(session, read.tenant_id, id))


@changes.post(
    "/{id:name}:approve", summary="Approve a change of a policy or budget", response_model=PolicyChange
)
def approve_policy_change(
    write: SettledWrite, snapshots: Snapshots, appliers: Appliers, id: PolicyChangePath
) -> Response:
    """Approves a change, as an approver of the policies in force. With every quorum it takes effect at once.

    A policy that gives up quotes or signatures of its own needs the approvers of its steps. Any other change
    needs those of every policy; a change of a budget needs those of the policies that can apply to its cost
    centre. The author of a change never counts.
    """
    rates = snapshots.newest(write.tenant_id).exchange_rates
    return write.run(
        None, lambda session: service.approve_change(session, write.subject, id, rates, appliers)
    )


@changes.post(
    "/{id:name}:reject", summary="Reject a change of a policy or budget", response_model=PolicyChange
)
def reject_policy_change(write: SettledWrite, id: PolicyChangePath) -> Response:
    """Rejects a change, whoever proposed it. The present terms stay, and a new change can be proposed."""
    return write.run(None, lambda session: service.reject_change(session, write.subject, id))


@settings.get("", summary="Get the delay of changes", response_model=ApprovalSettings, responses=VERSIONED)
def get_approval_settings(read: SettledRead) -> Response:
    """Returns the delay for changes of the tenant's policies and budgets."""
    with read.session() as session:
        return versioned_response(service.get_settings(session, read.tenant_id))


@settings.patch(
    "", summary="Change the delay of changes", response_model=ApprovalSettings, responses=VERSIONED | PROPOSED
)
def update_approval_settings(
    write: SettledWrite, body: ApprovalSettingsPatch, if_match: IfMatch = ""
) -> Response:
    """Changes the delay. A shorter delay takes effect (202) only after the present one.

    Until the tenant has its first policy, every change takes effect at once.
    """
    patch = body.model_dump(mode="json")
    return write.run(
        [patch, if_match], lambda session: service.change_settings(session, write.subject, patch, if_match)
    )
