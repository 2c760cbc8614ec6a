"""Prices in the currency that a question asks for, by the catalog's exchange rates."""

from datetime import date
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import Charges, Price
from service.kit.clock import now
from service.planning.cost import rounded
from service.planning.cost.exchange import Conversion, ExchangeRates
from service.planning.cost.prices import STALE_DAYS
from service.resolve.catalog import Catalog, KnownRate
from service.schemas.estimates import CostQuestion
from service.schemas.notes import Notes


class Currencies(NamedTuple):
    """The currency of the totals; None leaves each price in its own."""

    code: str | None
    rates: ExchangeRates
    on: date
    notes: Notes

    def price(self, price: Price, gap_at: str) -> Price | None:
        """``price`` in the currency asked for; without a rate None, and ``gap_at`` is a gap."""
        if self.code is None or price.currency_code == self.code:
            return price
        pair = f"{price.currency_code} to {self.code}"
        found = self.rates.convert(price.amount, price.currency_code, self.code, self.on)
        if found is None:
            detail = f"no exchange rate from {pair} is known on {self.on}"
            self.notes.gap(gap_at, "CURRENCY_MISMATCH", detail)
            return None
        self._cite(found)
        stale = ("EXCHANGE_RATE_STALE", "/currency_code")
        if found.age_days > STALE_DAYS and stale not in [
            (note["code"], note["pointer"]) for note in self.notes.warnings
        ]:
            detail = f"the rate from {pair} is of {found.oldest_on}, {found.age_days} days old"
            self.notes.warn(*stale, detail)
        amount, low, high = (end * found.rate for end in price.ends)
        source = f"{price.source}, at {found.rate:.6g} {self.code}/{price.currency_code} of {found.oldest_on}"
        return Price(amount, self.code, source, price.basis, low, high)

    def _cite(self, found: Conversion) -> None:
        """Name each rate once."""
        cited = {(source["kind"], source["id"]) for source in self.notes.sources}
        for rate in found.rates:
            if isinstance(rate, KnownRate) and rate.row and ("exchange_rate", rate.row["id"]) not in cited:
                self.notes.cite(rate.row, "/currency_code")

    def charges(self, charged: Charges, gap_at: str) -> Charges | None:
        """The sum of ``charged`` in the currency asked for, without its lines."""
        _, amount, low, high, currency, basis = charged
        price = self.price(Price(amount, currency, "", basis, low, high), gap_at)
        if price is None:
            return None
        amount, low, high = (rounded(end, price.currency_code) for end in price.ends)
        return Charges([], amount, low, high, price.currency_code, basis)


def currencies_of(question: CostQuestion, catalog: Catalog, notes: Notes) -> Currencies:
    """The exchange of a question, at the rates of its start or of today."""
    code = None if question.currency_code is MISSING else question.currency_code
    start = now() if question.starts_at is MISSING else question.starts_at
    return Currencies(code, catalog.exchange_rates, start.date(), notes)
