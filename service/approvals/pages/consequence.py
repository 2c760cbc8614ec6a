"""What pressing a button on the page of an approval does, and what is still awaited of one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from service.approvals.schemas import BudgetEffect
from service.kit.http.problems import Problem


class AwaitedVotes(NamedTuple):
    """What the open step of an approval waits for."""

    step: str
    quorum: int
    missing: int
    """Approvals that it lacks."""
    approvers: Sequence[str]
    """In whose place nobody has decided yet."""
    due_at: datetime | None


class ForeseenOutcome(NamedTuple):
    """What an approval of somebody would do now."""

    refusal: Problem | None = None
    """Why it would be refused."""
    places: Sequence[str] = ()
    """In whose place they would decide, where that is not their own."""
    completed: Sequence[str] = ()
    """Steps that would have their quorum by it."""
    awaited: AwaitedVotes | None = None
    """What would have to follow; without it the quote is approved."""
    budgets: Sequence[BudgetEffect] = ()
    """What would be committed; where others have to follow, what that would be as things are now."""


def find_awaited(approval: Mapping[str, Any]) -> AwaitedVotes | None:
    """What an approval waits for; nothing once it has ended."""
    step = next((one for one in approval["steps"] if one["state"] == "open"), None)
    if step is None:
        return None
    taken = {decision["approver"] for decision in step["decisions"]}
    left = [name for name in step["approvers"] if name not in taken]
    return AwaitedVotes(
        step["name"], step["quorum"], step["quorum"] - len(step["decisions"]), left, step.get("due_at")
    )


def predict_effect(
    before: Mapping[str, Any], after: Mapping[str, Any], decider: str, budgets: Sequence[BudgetEffect]
) -> ForeseenOutcome:
    """What an approval by ``decider`` has changed, of which ``budgets`` would have been told before."""
    # A decision may count in several steps, and steps are only ever decided in their order.
    known = sum(len(step["decisions"]) for step in before["steps"])
    made = [decision for step in after["steps"] for decision in step["decisions"]][known:]
    steps = zip(before["steps"], after["steps"], strict=True)
    return ForeseenOutcome(
        places=sorted({one["approver"] for one in made if one["approver"] != decider}),
        completed=[was["name"] for was, now in steps if was["state"] != now["state"] == "approved"],
        awaited=find_awaited(after),
        budgets=after["budgets"] if after["state"] == "approved" else budgets,
    )
