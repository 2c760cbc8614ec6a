"""Costs of a plan: rent, ownership, break-even, shares of tokens, and cost rows for accountants."""

from service.planning.cost.break_even import (
    PurchaseSaving,
    break_even_months,
    break_even_runs,
    runs_per_month,
)
from service.planning.cost.money import compute_charge, round_amount
from service.planning.cost.ownership import (
    MONTH_HOURS,
    YEAR_HOURS,
    OwnershipTerms,
    YearlyCost,
    share_of_year,
    used_device_hours,
    yearly_cost,
)
from service.planning.cost.rent import (
    InterruptedRun,
    RentCommitment,
    billed_seconds,
    compute_commitment,
    count_blocks,
    count_paid_devices,
    count_parts,
    estimate_interrupted_time,
    interruption_mtbf_seconds,
    replaced_share,
)
from service.planning.cost.work import EqualWork, apportion_by_tokens, compare_equal_work, gigabyte_months

__all__ = [
    "MONTH_HOURS",
    "YEAR_HOURS",
    "EqualWork",
    "InterruptedRun",
    "OwnershipTerms",
    "PurchaseSaving",
    "RentCommitment",
    "YearlyCost",
    "apportion_by_tokens",
    "billed_seconds",
    "break_even_months",
    "break_even_runs",
    "compare_equal_work",
    "compute_charge",
    "compute_commitment",
    "count_blocks",
    "count_paid_devices",
    "count_parts",
    "estimate_interrupted_time",
    "gigabyte_months",
    "interruption_mtbf_seconds",
    "replaced_share",
    "round_amount",
    "runs_per_month",
    "share_of_year",
    "used_device_hours",
    "yearly_cost",
]
