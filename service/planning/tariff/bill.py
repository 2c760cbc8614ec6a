"""Parts of a bill: loads, billing periods, lines and findings."""

from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class MeteredLoad(NamedTuple):
    """Mean kW of consecutive intervals, the first from ``start`` (aware, any zone).

    ``power_factor`` 1 has no reactive part. ``secondary`` loads are metered behind the customer's
    transformer.
    """

    start: datetime
    interval_minutes: int
    kw: NDArray[np.float64]
    power_factor: float = 1.0
    secondary: bool = False


class BillFinding(NamedTuple):
    """A remark about a bill or a tariff; ``pointer`` names the part of the tariff, empty for all of it."""

    code: str
    pointer: str
    detail: str


class BillingPeriod(NamedTuple):
    """A billing period of local days, half-open."""

    start: date
    end: date


class BillLine(NamedTuple):
    """One charge of one billing period: ``amount`` is quantity times price, not rounded to money."""

    charge: str
    kind: str
    """``fixed``, ``energy``, ``demand``, ``overrun``, ``coincident_peak``, ``reactive``, ``minimum``,
    ``percentage``, ``tax``."""
    quantity: float
    unit: str
    price: Decimal
    amount: Decimal
    period: str | None = None
    """Name of the price period."""
    tier: int | None = None
    """Number of the tier in its ladder, from 1."""
    peak_at: datetime | None = None
    """Start of the interval that set the demand; for a ratchet, that of the earlier peak."""
    note: str | None = None
    """Remark, such as the rule that raised a demand to the billed one."""


class PeriodBill(NamedTuple):
    """Lines of one billing period."""

    period: BillingPeriod
    lines: tuple[BillLine, ...]
    energy_kwh: float
    peak_kw: float
    billing_demand_kw: dict[str, float]
    """Billed demand in kW by the name of the demand charge."""

    @property
    def total(self) -> Decimal:
        """Sum of the lines."""
        return sum((line.amount for line in self.lines), Decimal(0))


class LoadBill(NamedTuple):
    """Bills of a load, in the currency of its tariff."""

    currency_code: str
    periods: tuple[PeriodBill, ...]
    findings: tuple[BillFinding, ...] = ()

    @property
    def total(self) -> Decimal:
        """Sum of all lines."""
        return sum((period.total for period in self.periods), Decimal(0))


class BillingDeterminants(NamedTuple):
    """Billing quantities of a year without a series; ``months`` are calendar months of ``year``."""

    year: int
    energy_kwh: dict[tuple[int, str], float]
    """Energy by month and price period of the energy charge."""
    period_peak_kw: dict[tuple[int, str], float]
    """Peak by month and price period of the demand charge."""
    month_peak_kw: dict[int, float]
    coincident_kw: tuple[float, ...] = ()
    power_factor: float = 1.0
    secondary: bool = False
