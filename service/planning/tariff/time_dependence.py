"""Dependence of a bill on the start of a load."""

from enum import StrEnum

from service.planning.tariff.charges import (
    ALWAYS,
    MONTHS,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PercentageCharge,
    RealTimeCharge,
    Tariff,
    TariffCharge,
)
from service.planning.tariff.reach import needs_full_year


class TimeDependence(StrEnum):
    """Part of a bill that depends on the start of a load."""

    NOTHING = "nothing"
    PERIODS = "periods"
    """Charges by billing period, through the number of periods that a load touches."""
    PRICES = "prices"


def find_time_dependence(tariff: Tariff, *, alone: bool) -> TimeDependence:
    """Returns the part of the bill that depends on the start of the load.

    ``alone`` if it pays fixed charges.
    """
    if len(tariff.revisions) > 1:
        return TimeDependence.PRICES
    found = {_classify_charge(charge, alone=alone) for charge in tariff.revisions[0].charges}
    order = (TimeDependence.PRICES, TimeDependence.PERIODS)
    return next((dependence for dependence in order if dependence in found), TimeDependence.NOTHING)


def _classify_charge(charge: TariffCharge, *, alone: bool) -> TimeDependence:
    if charge.months != MONTHS or needs_full_year(charge) or isinstance(charge, RealTimeCharge):
        return TimeDependence.PRICES
    if isinstance(charge, EnergyCharge | DemandCharge):
        if any(period.windows != ALWAYS for period in charge.periods):
            return TimeDependence.PRICES
        if isinstance(charge, DemandCharge):
            return TimeDependence.PRICES if charge.billing_demand.ratchets else TimeDependence.PERIODS
        is_one_price = all(len(period.tiers) == 1 for period in charge.periods)
        return TimeDependence.NOTHING if is_one_price else TimeDependence.PERIODS
    if isinstance(charge, FixedCharge | MinimumCharge):
        return TimeDependence.PERIODS if alone else TimeDependence.NOTHING
    return TimeDependence.NOTHING if isinstance(charge, PercentageCharge) else TimeDependence.PERIODS
