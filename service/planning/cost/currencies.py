"""Prices in one currency, by exchange rates of a day."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple

from service.planning.cost.charges import CurrencyCharges, UnitPrice
from service.planning.cost.exchange import Conversion, ExchangeRates
from service.planning.cost.money import round_amount
from service.planning.cost.prices import STALE_DAYS
from service.planning.notes import AnswerNotes


class TotalCurrency(NamedTuple):
    """Currency of the totals, at the rates of a day; None leaves each price in its own."""

    code: str | None = None
    rates: ExchangeRates = ExchangeRates()
    on: date = date.min

    def exchange_price(self, price: UnitPrice, gap_at: str, notes: AnswerNotes) -> UnitPrice | None:
        """Returns ``price`` in the currency of the totals; without a rate None, and ``gap_at`` is a gap."""
        if self.code is None or price.currency_code == self.code:
            return price
        pair = f"{price.currency_code} to {self.code}"
        found = self.rates.convert(price.amount, price.currency_code, self.code, self.on)
        if found is None:
            detail = f"no exchange rate from {pair} is known on {self.on}"
            notes.add_gap(gap_at, "CURRENCY_MISMATCH", detail)
            return None
        _cite_rates(found, notes)
        stale = ("EXCHANGE_RATE_STALE", "/currency_code")
        if found.age_days > STALE_DAYS and stale not in [
            (note["code"], note["pointer"]) for note in notes.warnings
        ]:
            detail = f"the rate from {pair} is of {found.oldest_on}, {found.age_days} days old"
            notes.warn(*stale, detail)
        amount, low, high = (end * found.rate for end in price.ends)
        source = f"{price.source}, at {found.rate:.6g} {self.code}/{price.currency_code} of {found.oldest_on}"
        return UnitPrice(amount, self.code, source, price.basis, low, high)

    def exchange_total(
        self, charged: CurrencyCharges, gap_at: str, notes: AnswerNotes
    ) -> CurrencyCharges | None:
        """Returns the sum of ``charged`` in the currency of the totals, without its lines."""
        amount, low, high, currency, basis = charged.total
        price = self.exchange_price(UnitPrice(amount, currency, "", basis, low, high), gap_at, notes)
        if price is None:
            return None
        ends: tuple[Decimal, ...] = tuple(round_amount(end, price.currency_code) for end in price.ends)
        return CurrencyCharges((), ends[0], ends[1], ends[2], price.currency_code, basis)


def _cite_rates(found: Conversion, notes: AnswerNotes) -> None:
    """Cites each rate once."""
    cited = {(source["kind"], source["id"]) for source in notes.sources}
    for rate in found.rates:
        if rate.row and ("exchange_rate", rate.row["id"]) not in cited:
            notes.cite(rate.row, "/currency_code")
