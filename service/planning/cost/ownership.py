"""Yearly cost of ownership, and the share of it that a run bears.

Straight-line depreciation, an annuity for the financing, maintenance as a share of the purchase. Years are
Julian (8766 hours). Source of the annuity: equal payments at the end of each year whose present value, with
that of the residual, is the purchase.
"""

import math
from decimal import Decimal
from typing import Final, NamedTuple

YEAR_HOURS: Final = 8766.0
"""Hours of a year of 365.25 days."""
MONTH_HOURS: Final = YEAR_HOURS / 12.0
_LEAST_RATE: Final = 1e-12
"""Rate below which interest is lost in the digits of a float."""


class OwnershipTerms(NamedTuple):
    """Terms that turn a purchase into a yearly cost.

    Years above 0, shares and the yearly rate from 0 to 1.
    """

    years: float
    residual_share: float = 0.0
    interest_rate: float = 0.0
    maintenance_share: float = 0.0


class YearlyCost(NamedTuple):
    """Amounts of a year, not rounded."""

    depreciation: Decimal
    financing: Decimal
    """Interest: the annuity less the depreciation."""
    maintenance: Decimal


def compute_annuity(purchase: Decimal, residual: Decimal, rate: float, years: float) -> Decimal:
    """Returns the equal yearly payment that pays off ``purchase`` except ``residual``, with interest.

    (C - S v) i / (1 - v) with v = (1 + i)^-n, which is (C - S) i / (1 - v) + S i; (C - S) / n without
    interest.
    """
    if rate < _LEAST_RATE:
        return (purchase - residual) / Decimal(str(years))
    paid_off = rate / -math.expm1(-years * math.log1p(rate))
    return (purchase - residual) * Decimal(paid_off) + residual * Decimal(str(rate))


def yearly_cost(purchase: Decimal, terms: OwnershipTerms) -> YearlyCost:
    """Returns the yearly cost of a purchase without electricity, staff and space."""
    residual = purchase * Decimal(str(terms.residual_share))
    depreciation = (purchase - residual) / Decimal(str(terms.years))
    payment = compute_annuity(purchase, residual, terms.interest_rate, terms.years)
    financing = max(payment - depreciation, Decimal(0))
    return YearlyCost(depreciation, financing, purchase * Decimal(str(terms.maintenance_share)))


def used_device_hours(devices: float, utilization: float) -> float:
    """Returns the device-hours of a year in which something runs."""
    return devices * YEAR_HOURS * utilization


def share_of_year(device_hours: float, devices: float, utilization: float) -> float:
    """Returns the run's share of a year's cost: its device-hours over those used in a year."""
    return device_hours / used_device_hours(devices, utilization)
