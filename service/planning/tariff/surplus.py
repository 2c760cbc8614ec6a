"""Charges on excess: capacity above the contract, and reactive power."""

from math import sqrt
from zoneinfo import ZoneInfo

from service.planning.tariff.amounts import price_quantity
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import to_local_time
from service.planning.tariff.charges import OverrunCharge, ReactiveCharge
from service.planning.tariff.demand import LoadMetering
from service.planning.tariff.demands import DemandPeak


def build_overrun_lines(
    charge: OverrunCharge, peak: DemandPeak, share: float, zone: ZoneInfo
) -> list[BillLine]:
    """Builds the line of each kW of a billing period's peak above contract x tolerance."""
    above = (peak.kw - charge.contract_kw * charge.tolerance) * share
    if above <= 0.0:
        return []
    at = None if peak.at is None else to_local_time(peak.at, zone)
    amount = price_quantity(above, charge.price)
    return [BillLine(charge.name, "overrun", above, "kW", charge.price, amount, peak_at=at)]


def reactive_ratio(power_factor: float) -> float:
    """Returns reactive over active power, the tangent of the phase angle: sqrt(1 - pf^2) / pf."""
    return sqrt(1.0 - power_factor**2) / power_factor


def build_reactive_lines(
    charge: ReactiveCharge, peak: DemandPeak, kwh: float, metering: LoadMetering
) -> list[BillLine]:
    """Builds the line of kvar at the period's peak, or of kvarh, above the free share of the active part."""
    ratio = max(reactive_ratio(metering.power_factor) - charge.free_share_of_active, 0.0)
    quantity = ratio * (kwh if charge.by_energy else peak.kw)
    if quantity <= 0.0:
        return []
    at = None if charge.by_energy or peak.at is None else to_local_time(peak.at, metering.zone)
    unit = "kvarh" if charge.by_energy else "kvar"
    amount = price_quantity(quantity, charge.price)
    return [BillLine(charge.name, "reactive", quantity, unit, charge.price, amount, peak_at=at)]
