"""Runs and months after which a purchase has paid itself back."""

import math
from typing import NamedTuple

from service.planning.cost.ownership import MONTH_HOURS
from service.planning.units import HOUR_SECONDS


def break_even_runs(purchase: float, saved_per_run: float) -> float:
    """Returns the runs after which a purchase has paid itself back: purchase / saving per run.

    A run on bought devices saves its rent; with electricity, rent less electricity.
    """
    return purchase / saved_per_run


class PurchaseSaving(NamedTuple):
    """Amounts that are set against the rent: of one run, and of a year whatever runs."""

    rent: float
    electricity: float = 0.0
    running_per_year: float = 0.0
    """Maintenance, staff and space per year."""
    interest_rate: float = 0.0
    """Interest rate per year; early savings are worth more."""


def runs_per_month(duration_seconds: float, utilization: float) -> float:
    """Returns the consecutive runs of this length in ``utilization`` of a month of 730.5 hours."""
    return utilization * MONTH_HOURS * HOUR_SECONDS / duration_seconds


def break_even_months(purchase: float, saving: PurchaseSaving, per_month: float) -> float:
    """Returns the months until ``per_month`` runs a month have saved the purchase; infinite where never.

    A month saves s = per_month (rent - electricity) - running / 12. Without interest the purchase takes P / s
    months; with interest at r = (1 + i)^(1/12) - 1 a month the present value of n months of saving pays it: n
    = -ln(1 - P r / s) / ln(1 + r).
    """
    saved = per_month * (saving.rent - saving.electricity) - saving.running_per_year / 12.0
    if saved <= 0.0:
        return math.inf
    monthly = math.expm1(math.log1p(saving.interest_rate) / 12.0)
    if not monthly:
        return purchase / saved
    owed = purchase * monthly / saved
    return -math.log1p(-owed) / math.log1p(monthly) if owed < 1.0 else math.inf
