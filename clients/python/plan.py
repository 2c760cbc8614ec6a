"""The cheapest of several ways to train a model: a search that is waited for."""

import time

from connection import connected, expected, money
from ironlaw_client.api.plans import create_plan, get_plan
from ironlaw_client.models import (
    CatalogAccelerator,
    CatalogModel,
    ClusterInput,
    MoneyInput,
    Plan,
    PlanGoal,
    PlanRequest,
    PlanSearch,
    PlanState,
    Rental,
    RentedDevices,
    TrainingWorkloadInput,
)
from ironlaw_client.types import Unset

POLL_SECONDS = 0.5


def devices(accelerator: str, price: str) -> RentedDevices:
    """Up to 16 devices at a price per hour."""
    return RentedDevices(
        name=f"{accelerator} at {price} USD",
        cluster=ClusterInput(CatalogAccelerator(source="catalog", id=accelerator), accelerator_count=16),
        rental=Rental(price_per_device_hour=MoneyInput(price, "USD")),
    )


QUESTION = PlanRequest(
    model=CatalogModel(source="catalog", id="llama-3.1-8b"),
    workload=TrainingWorkloadInput(
        kind="training", sequence_length=8192, global_batch_size=64, total_tokens=1_000_000_000
    ),
    goal=PlanGoal.PLAN_GOAL_CHEAPEST,
    rented=[devices("h100-sxm", "2.50"), devices("a100-sxm-80gb", "1.30")],
    search=PlanSearch(offers=False, accelerator_counts=[8, 16]),
)


def main() -> None:
    """Ask, wait and show the best rows."""
    with connected() as client:
        plan = expected(Plan, create_plan.sync(client=client, body=QUESTION))
        while plan.state == PlanState.PLAN_STATE_RUNNING:
            time.sleep(POLL_SECONDS)
            plan = expected(Plan, get_plan.sync(plan.id, client=client))
    if isinstance(plan.answer, Unset):
        raise SystemExit(f"the plan is {plan.state}: {plan.error_summary}")
    for row in plan.answer.rows[:3]:
        layout = f"tensor {row.parallelism.tensor}, sharding {row.parallelism.sharding}"
        print(f"{row.rank}. {row.supply.name}: {row.accelerator_count} devices, {layout}, {money(row.cost)}")


if __name__ == "__main__":
    main()
