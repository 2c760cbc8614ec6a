"""Tariffs and loads that the tests of the engine share."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np

from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.charges import LocalTimeWindow, PricePeriod, PriceTier, Tariff, TariffRevision

START = datetime(2024, 1, 1, tzinfo=UTC)
WEEKDAYS = frozenset(range(1, 6))


def tariff(*charges, zone="Etc/UTC", currency="USD", **fields):
    return Tariff(
        currency_code=currency,
        time_zone=zone,
        revisions=(TariffRevision(effective_from=date(1, 1, 1), charges=charges),),
        **fields,
    )


def flat(price, name="all"):
    return PricePeriod(name=name, tiers=(PriceTier(price=Decimal(price)),))


def timed(name, price, from_hour, to_hour, **fields):
    window = LocalTimeWindow(from_minute=round(from_hour * 60), to_minute=round(to_hour * 60), **fields)
    return PricePeriod(name=name, tiers=(PriceTier(price=Decimal(price)),), windows=(window,))


def year(number, kw, minutes=60):
    start = datetime(number, 1, 1, tzinfo=UTC)
    hours = (datetime(number + 1, 1, 1, tzinfo=UTC) - start).total_seconds() / 3600
    return MeteredLoad(start, minutes, np.full(round(hours * 60 / minutes), float(kw)))


def load(start, kw, minutes=60):
    return MeteredLoad(start, minutes, np.asarray(kw, float))


def amounts(bill, name=None, month=None):
    """Amounts of a charge, of one billing period by its place or of all."""
    periods = bill.periods if month is None else [bill.periods[month]]
    return sum(
        (line.amount for one in periods for line in one.lines if name in {None, line.charge}), Decimal(0)
    )
