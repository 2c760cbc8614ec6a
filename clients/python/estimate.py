"""Rent or buy: what a training run on a thousand devices costs, either way."""

from connection import connected, expected, money
from ironlaw_client.api.estimates import estimate_utility_bill
from ironlaw_client.models import (
    AssumedEfficiency,
    CatalogAccelerator,
    ClusterInput,
    MoneyInput,
    ParameterCountModel,
    Purchase,
    Rental,
    TrainingWorkloadInput,
    UtilityBill,
    UtilityBillRequest,
)
from ironlaw_client.types import Unset

QUESTION = UtilityBillRequest(
    model=ParameterCountModel(source="parameter_count", parameter_count=70_000_000_000),
    workload=TrainingWorkloadInput(kind="training", total_tokens=2_000_000_000_000, sequence_length=4096),
    cluster=ClusterInput(CatalogAccelerator(source="catalog", id="h100-sxm"), accelerator_count=1000),
    efficiency=AssumedEfficiency(source="assumed", utilization=0.5),
    rental=Rental(price_per_device_hour=MoneyInput("3", "USD")),
    purchase=Purchase(price_per_device=MoneyInput("30000", "USD")),
)


def main() -> None:
    """Ask and show."""
    with connected() as client:
        answer = expected(UtilityBill, estimate_utility_bill.sync(client=client, body=QUESTION))
    print(f"rent {money(answer.rent.total)}, purchase {money(answer.purchase.total)}")
    if not isinstance(answer.break_even_runs, Unset):
        print(f"the purchase pays itself back after {answer.break_even_runs.value:.2f} runs")
    for gap in answer.gaps:
        print(f"not known: {gap.pointer}, {gap.detail}")


if __name__ == "__main__":
    main()
