"""Comparison of policies: changes that can only add signatures. Others may admit a quote.

The comparison reads policies as they are written, and a change that is not certainly stricter counts as
weaker.
"""

from decimal import Decimal
from typing import TYPE_CHECKING

from pydantic import MISSING

from service.policies.schemas import ApprovalPolicyRequest, PolicyConditions

if TYPE_CHECKING:
    from service.schemas.base import MoneyInput


def has_more_steps(policy: ApprovalPolicyRequest, standing: ApprovalPolicyRequest) -> bool:
    """Returns true if a policy adds steps only for quotes that ``standing`` already has steps for."""
    return bool(policy.steps and standing.steps) and is_superset(standing.conditions, policy.conditions)


def is_only_stricter(before: ApprovalPolicyRequest, after: ApprovalPolicyRequest) -> bool:
    """Returns true if a policy has the conditions and all steps of before, with optional further steps."""
    left = list(after.steps)
    for step in before.steps:
        if step not in left:
            return False
        left.remove(step)
    return after.conditions == before.conditions and bool(before.steps or not after.steps)


def is_superset(wide: PolicyConditions, narrow: PolicyConditions) -> bool:
    """Returns true if ``wide`` matches every quote that ``narrow`` matches, even with unknown figures."""
    sets = (
        (wide.cost_center_ids, narrow.cost_center_ids),
        (wide.requesters, narrow.requesters),
        (wide.providers, narrow.providers),
    )
    carbon, own_carbon = wide.location_based_kg_co2e_above, narrow.location_based_kg_co2e_above
    return (
        all(own is MISSING or (its is not MISSING and set(its) <= set(own)) for own, its in sets)
        and _is_below(wide.total_above, narrow.total_above)
        and _is_below(wide.total_high_above, narrow.total_high_above)
        and (carbon is MISSING or (own_carbon is not MISSING and own_carbon >= carbon))
    )


def _is_below(limit: "MoneyInput | MISSING", other: "MoneyInput | MISSING") -> bool:
    """Returns true if amounts above ``other`` are also above ``limit``, at any exchange rate."""
    if limit is MISSING:
        return True
    if other is MISSING or other.currency_code != limit.currency_code:
        return False
    return Decimal(other.amount) >= Decimal(limit.amount)
