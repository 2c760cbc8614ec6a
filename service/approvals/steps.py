"""Steps of an approval: opening, decisions, escalation and end.

All functions work on a locked approval. A decision counts in every step that entitles the decider, so that a
repeated request never becomes a decision on a later step.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pydantic import MISSING

from service.approvals.repository import LoadedApproval
from service.approvals.schemas import ApprovalDecisionKind
from service.approvals.tables import (
    APPROVED,
    ENDED,
    OPEN,
    WAITING,
    ApprovalApproverRow,
    ApprovalDecisionRow,
    ApprovalRow,
    ApprovalStepRow,
)
from service.kit.database.engine import Reader, Writer
from service.kit.jobs import leases
from service.policies.people import Person
from service.policies.schemas import PolicyStep
from service.policies.service import VersionedPolicy

DUE_SOON_SHARE: Final = 0.75
"""Share of a step's time after which an event reports that it is due soon."""


class Vote(NamedTuple):
    """A vote that somebody can cast in a step, in person or by a delegation."""

    place: Person
    decider: Person
    delegation_id: str | None = None

    def is_used_by(self, other: "Vote") -> bool:
        """Returns true if one of its two people is, or was represented by, one of the other vote's people."""
        return any(one.is_same(its) for one in self[:2] for its in other[:2])


def get_decision_time(session: Reader | Writer, held: LoadedApproval) -> datetime:
    """Returns the database's time, but not before the last event of the approval."""
    times = [held.row.submitted_at, *(one.decided_at for one in held.decisions)]
    times += [at for step in held.steps for at in (step.opened_at, step.escalated_at) if at is not None]
    return max(leases.read_database_time(session), *times)


def order_steps(policies: Iterable[VersionedPolicy]) -> list[tuple[VersionedPolicy, PolicyStep]]:
    """Returns the steps of all policies in the order in which they open."""
    steps = [(policy, step) for policy in policies for step in policy.body.steps]
    return sorted(steps, key=lambda found: (found[1].order, found[0].body.id))


def add_approval(
    session: Writer, row: ApprovalRow, steps: Iterable[tuple[VersionedPolicy, PolicyStep]]
) -> LoadedApproval:
    """Adds an approval with its steps, none of which is open."""
    held = LoadedApproval(row, [], [], [], [])
    for number, (policy, step) in enumerate(steps, 1):
        escalation = None if step.escalation is MISSING else step.escalation
        expiry = None if step.expires_after_seconds is MISSING else step.expires_after_seconds
        held.steps.append(
            ApprovalStepRow(
                tenant_id=row.tenant_id,
                approval_id=row.id,
                number=number,
                name=step.name,
                policy_id=policy.body.id,
                policy_version=policy.version,
                quorum=step.quorum,
                expires_after_seconds=expiry,
                escalates_after_seconds=escalation.after_seconds if escalation else None,
                escalates_to=list(dict.fromkeys(escalation.to)) if escalation else [],
                state=WAITING,
            )
        )
        _add_approvers(held, held.steps[-1], step.approvers)
    session.add_all([row, *held.steps, *held.approvers])
    session.flush()
    return held


def _add_approvers(
    held: LoadedApproval, step: ApprovalStepRow, names: Iterable[str]
) -> list[ApprovalApproverRow]:
    known = held.list_approvers(step)
    added = [
        ApprovalApproverRow(
            tenant_id=step.tenant_id,
            approval_id=step.approval_id,
            step_number=step.number,
            approver=name,
            position=position,
        )
        for position, name in enumerate((name for name in names if name not in known), len(known))
    ]
    held.approvers.extend(added)
    held.approvers.sort(key=lambda one: (one.step_number, one.position))
    return added


def open_next_step(held: LoadedApproval, time: datetime) -> ApprovalStepRow | None:
    """Opens the next step and returns it, or returns None if there is none."""
    step = next((step for step in held.steps if step.state == WAITING), None)
    if step is None:
        return None
    ends = [held.row.valid_until]
    if step.expires_after_seconds is not None:
        ends.append(time + timedelta(seconds=step.expires_after_seconds))
    step.state, step.opened_at, step.due_at = OPEN, time, min(ends)
    step.due_soon_at = time + DUE_SOON_SHARE * (step.due_at - time)
    if step.escalates_after_seconds is not None:
        step.escalates_at = time + timedelta(seconds=step.escalates_after_seconds)
    schedule_step(held)
    return step


def schedule_step(held: LoadedApproval) -> None:
    """Sets the time of the next action on the open step."""
    step = held.open_step
    if step is None:
        held.row.acts_at = None
        return
    held.row.expires_at = step.due_at
    waits = [step.due_at, step.due_soon_at, None if step.escalated_at else step.escalates_at]
    held.row.acts_at = min(moment for moment in waits if moment is not None)


def escalate_step(session: Writer, held: LoadedApproval, step: ApprovalStepRow, time: datetime) -> None:
    """Adds the escalation approvers to a step."""
    session.add_all(_add_approvers(held, step, step.escalates_to))
    step.escalated_at = time
    schedule_step(held)


def is_escalation_due(step: ApprovalStepRow, time: datetime) -> bool:
    """Returns true if a step is due for escalation."""
    return step.escalates_at is not None and step.escalated_at is None and step.escalates_at <= time


def select_free_mandate(
    held: LoadedApproval, step: ApprovalStepRow, voices: Iterable[Vote], used: Collection[Vote]
) -> Vote | None:
    """Returns the first unused vote in a step: the decider's own, or that of the first delegator."""
    taken = {decision.approver for decision in held.list_decisions(step)}
    names = [name for name in held.list_approvers(step) if name not in taken]
    able = [voice for voice in voices if voice.place.name in names]
    able.sort(key=lambda voice: (voice.delegation_id is not None, names.index(voice.place.name)))
    return next((voice for voice in able if not any(voice.is_used_by(each) for each in used)), None)


def record_decision(
    session: Writer, held: LoadedApproval, step: ApprovalStepRow, voice: Vote, made: ApprovalDecisionRow
) -> None:
    """Records a decision in a step."""
    row = ApprovalDecisionRow(
        tenant_id=step.tenant_id,
        approval_id=step.approval_id,
        step_number=step.number,
        approver=voice.place.name,
        number=len(held.decisions) + 1,
        decided_by=made.decided_by,
        delegation_id=voice.delegation_id,
        lineage=made.lineage,
        linked_by=made.linked_by,
        decision=made.decision,
        via=made.via,
        comment=made.comment,
        content_digest=made.content_digest,
        decided_at=made.decided_at,
    )
    held.decisions.append(row)
    session.add(row)


def has_quorum(held: LoadedApproval, step: ApprovalStepRow) -> bool:
    """Returns true if a step has enough approvals."""
    kind: ApprovalDecisionKind = "approve"
    return sum(one.decision == kind for one in held.list_decisions(step)) >= step.quorum


def close_step(step: ApprovalStepRow, state: str = APPROVED) -> None:
    """Closes a step."""
    step.state, step.due_soon_at = state, None


def end_approval(held: LoadedApproval, state: str, time: datetime, *, step_state: str = ENDED) -> None:
    """Ends an approval and its open and waiting steps."""
    for step in held.steps:
        if step.state == OPEN:
            close_step(step, step_state)
        elif step.state == WAITING:
            close_step(step, ENDED)
    held.row.state, held.row.ended_at = state, time
    held.row.expires_at = held.row.acts_at = None
