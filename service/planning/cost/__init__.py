"""What a plan costs: rent, ownership, break-even, shares of tokens, and cost rows for accountants."""

from service.planning.cost.break_even import (
    Saving,
    break_even_months,
    break_even_runs,
    runs_per_month,
)
from service.planning.cost.money import charge, rounded
from service.planning.cost.ownership import (
    MONTH_HOURS,
    YEAR_HOURS,
    Terms,
    YearlyCost,
    share_of_year,
    used_device_hours,
    yearly_cost,
)
from service.planning.cost.rent import (
    Commitment,
    Interrupted,
    billed_seconds,
    blocks,
    committed,
    devices_paid,
    interrupted,
    interruption_mtbf_seconds,
    replaced_share,
    whole_parts,
)
from service.planning.cost.work import EqualWork, apportioned, equal_work, gigabyte_months

__all__ = [
    "MONTH_HOURS",
    "YEAR_HOURS",
    "Commitment",
    "EqualWork",
    "Interrupted",
    "Saving",
    "Terms",
    "YearlyCost",
    "apportioned",
    "billed_seconds",
    "blocks",
    "break_even_months",
    "break_even_runs",
    "charge",
    "committed",
    "devices_paid",
    "equal_work",
    "gigabyte_months",
    "interrupted",
    "interruption_mtbf_seconds",
    "replaced_share",
    "rounded",
    "runs_per_month",
    "share_of_year",
    "used_device_hours",
    "whole_parts",
    "yearly_cost",
]
