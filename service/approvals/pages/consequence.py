"""Foreseen effect of a decision, and outstanding decisions, for the page of an approval."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from service.budgets.schemas import BudgetEffect
from service.kit.http.problems import Problem


class AwaitedVotes(NamedTuple):
    """Decisions that the open step of an approval still needs."""

    step: str
    quorum: int
    missing: int
    """Number of missing approvals."""
    approvers: Sequence[str]
    """Approvers without a decision."""
    due_at: datetime | None


class ForeseenOutcome(NamedTuple):
    """Effect of an approval by a subject now."""

    refusal: Problem | None = None
    """Problem with which it would be refused."""
    places: Sequence[str] = ()
    """Delegators on whose behalf it would be made, other than the decider."""
    completed: Sequence[str] = ()
    """Steps that would reach their quorum."""
    awaited: AwaitedVotes | None = None
    """Decisions that would still be needed. None if the quote would be approved."""
    budgets: Sequence[BudgetEffect] = ()
    """Commitments that would be made, or estimated ones if further decisions are needed."""


def find_awaited(approval: Mapping[str, Any]) -> AwaitedVotes | None:
    """Returns the outstanding decisions of an approval, or None if it has ended."""
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
    """Returns the effect of an approval by ``decider`` from both states.

    ``budgets`` are estimated effects.
    """
    # A decision may count in several steps, which are decided in order.
    known = sum(len(step["decisions"]) for step in before["steps"])
    made = [decision for step in after["steps"] for decision in step["decisions"]][known:]
    steps = zip(before["steps"], after["steps"], strict=True)
    return ForeseenOutcome(
        places=sorted({one["approver"] for one in made if one["approver"] != decider}),
        completed=[was["name"] for was, now in steps if was["state"] != now["state"] == "approved"],
        awaited=find_awaited(after),
        budgets=after["budgets"] if after["state"] == "approved" else budgets,
    )
