"""Charges on what goes beyond: capacity above the contract, reactive power."""

from math import sqrt
from zoneinfo import ZoneInfo

from service.planning.tariff.amounts import priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import local
from service.planning.tariff.charges import OverrunCharge, ReactiveCharge
from service.planning.tariff.demand import Metering
from service.planning.tariff.demands import Peak


def overrun_lines(charge: OverrunCharge, peak: Peak, share: float, zone: ZoneInfo) -> list[BillLine]:
    """Price of each kW of a billing period's peak above contract x tolerance."""
    above = (peak.kw - charge.contract_kw * charge.tolerance) * share
    if above <= 0.0:
        return []
    at = None if peak.at is None else local(peak.at, zone)
    amount = priced(above, charge.price)
    return [BillLine(charge.name, "overrun", above, "kW", charge.price, amount, peak_at=at)]


def reactive_ratio(power_factor: float) -> float:
    """Reactive over active power, the tangent of the phase angle: sqrt(1 - pf^2) / pf."""
    return sqrt(1.0 - power_factor**2) / power_factor


def reactive_lines(charge: ReactiveCharge, peak: Peak, kwh: float, metering: Metering) -> list[BillLine]:
    """Price of each kvar at the period's peak, or each kvarh, above the free share of the active part."""
    ratio = max(reactive_ratio(metering.power_factor) - charge.free_share_of_active, 0.0)
    quantity = ratio * (kwh if charge.by_energy else peak.kw)
    if quantity <= 0.0:
        return []
    at = None if charge.by_energy or peak.at is None else local(peak.at, metering.zone)
    unit = "kvarh" if charge.by_energy else "kvar"
    amount = priced(quantity, charge.price)
    return [BillLine(charge.name, "reactive", quantity, unit, charge.price, amount, peak_at=at)]
