"""Give a cost centre a budget, and read what quotes, approvals and bills have left of it."""

import sys

from connection import connected, expected, money
from ironlaw_client.api.budgets import create_budget, get_budget
from ironlaw_client.api.cost_centers import create_cost_center
from ironlaw_client.models import (
    Budget,
    BudgetAmount,
    BudgetEnforcement,
    BudgetRequest,
    CostCenter,
    CostCenterRequest,
)


def main(name: str) -> None:
    """Make both, and show the budget."""
    body = BudgetRequest(
        id=f"{name}-2027",
        name=f"{name}, 2027",
        cost_center_id=name,
        starts_on="2027-01-01",
        ends_on="2027-12-31",
        amount=BudgetAmount("2000000", "USD"),
        thresholds=[0.8, 1.0],
        enforcement=BudgetEnforcement.BUDGET_ENFORCEMENT_BLOCK,
    )
    with connected() as client:
        center = create_cost_center.sync(client=client, body=CostCenterRequest(id=name, name=name))
        expected(CostCenter, center)
        expected(Budget, create_budget.sync(client=client, body=body))
        budget = expected(Budget, get_budget.sync(body.id, client=client))
    print(f"committed {money(budget.committed)}, spent {money(budget.spent)}, left {money(budget.remaining)}")


if __name__ == "__main__":
    main(sys.argv[1])
