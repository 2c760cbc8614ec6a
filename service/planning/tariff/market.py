"""Energy at prices that change with time, such as those of an exchange."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from service.planning.errors import PlanningError
from service.planning.tariff.amounts import price_quantity, quantize_amount
from service.planning.tariff.bill import BillLine
from service.planning.tariff.calendar import Integers, to_utc_minute
from service.planning.tariff.cells import CalendarCells
from service.planning.tariff.charges import IntervalPrices, RealTimeCharge
from service.planning.tariff.demands import Floats


class MarketEnergy(NamedTuple):
    """Energy in kWh and the sum of kWh x price."""

    kwh: float
    amount: float


def split_market_energy(
    prices: IntervalPrices, cells: CalendarCells, kwh: Floats, part: Integers, parts: int
) -> Sequence[MarketEnergy]:
    """Returns the energy of each part and its price; ``part`` is that of each cell, below 0 for none.

    A price interval that begins within a cell splits its energy by time. ``PRICES_MISSING`` where energy is
    used and no price is given.
    """
    first, step = to_utc_minute(prices.start, "/prices/start"), prices.interval_minutes
    values = np.asarray(prices.values, np.float64)
    begins = first + step * np.arange(len(values) + 1)
    end = int(cells.starts[-1] + cells.minutes[-1])
    edges = np.union1d(cells.starts, begins[(begins > cells.starts[0]) & (begins < end)])
    place = np.searchsorted(cells.starts, edges, side="right") - 1
    pieces = kwh[place] * np.diff(edges, append=end) / cells.minutes[place]
    of_part = part[place]
    counted = (of_part >= 0) & (pieces > 0.0)
    pieces, of_part = pieces[counted], of_part[counted]
    priced_by = (edges[counted] - first) // step
    if len(priced_by) and (priced_by.min() < 0 or priced_by.max() >= len(values)):
        raise PlanningError("PRICES_MISSING", "/prices", "the prices do not cover the load")
    paid = values[priced_by]
    if not np.isfinite(paid).all():
        raise PlanningError("PRICES_MISSING", "/prices", "the prices have gaps while energy is used")
    energy = np.bincount(of_part, pieces, parts).tolist()
    amounts = np.bincount(of_part, pieces * paid, parts).tolist()
    return [MarketEnergy(*pair) for pair in zip(energy, amounts, strict=True)]


def build_market_lines(charge: RealTimeCharge, used: MarketEnergy) -> list[BillLine]:
    """Builds the lines of the market price, at its mean weighted by use, and of the adder."""
    if not used.kwh:
        return []
    amount = quantize_amount(Decimal(used.amount) * charge.factor)
    mean = amount / Decimal(used.kwh)
    note = "mean of the prices of its intervals, weighted by use"
    found = [BillLine(charge.name, "energy", used.kwh, "kWh", mean, amount, "market", note=note)]
    if charge.adder:
        adder = price_quantity(used.kwh, charge.adder)
        found.append(BillLine(charge.name, "energy", used.kwh, "kWh", charge.adder, adder, "adder"))
    return found
