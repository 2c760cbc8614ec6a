"""Exchange rates as dated facts, and conversion of amounts.

A rate applies from its day until a newer one of the same pair. An amount is converted on a day by the newest
rate that is not after it: that of the pair, the inverse of the opposite pair, or two rates through one
currency that both sides have a rate with. Where none is known there is no conversion.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from service.planning.notes import RowSource


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """Rate of a day: on ``on`` one unit of ``from_code`` was worth ``rate`` units of ``to_code``."""

    from_code: str
    to_code: str
    rate: Decimal
    on: date
    source: str
    row: RowSource | None = None
    """Catalog row of the rate."""


class Conversion(NamedTuple):
    """An amount in another currency, not rounded, with the rates behind it."""

    amount: Decimal
    rate: Decimal
    """Units of the target currency that one unit of the source currency is worth."""
    rates: tuple[ExchangeRate, ...]
    """Rates as stated: none for a single currency, two for a crossed rate."""
    on: date
    """Requested day."""

    @property
    def oldest_on(self) -> date:
        """Day of the oldest rate."""
        return min((rate.on for rate in self.rates), default=self.on)

    @property
    def age_days(self) -> int:
        """Days from the oldest rate to the requested day."""
        return (self.on - self.oldest_on).days


class _RatePath(NamedTuple):
    """A rate from one currency to another, as stated or inverted."""

    rate: Decimal
    rates: tuple[ExchangeRate, ...]

    @property
    def oldest_on(self) -> date:
        return min(rate.on for rate in self.rates)


class ExchangeRates:
    """Dated rates; of two for one pair and day, the later one in order counts."""

    def __init__(self, rates: Iterable[ExchangeRate] = ()) -> None:
        by_pair: dict[tuple[str, str], dict[date, ExchangeRate]] = {}
        for rate in rates:
            if rate.rate <= 0:
                raise ValueError("an exchange rate must be above zero")
            by_pair.setdefault((rate.from_code, rate.to_code), {})[rate.on] = rate
        self._rates = {pair: [dated[on] for on in sorted(dated)] for pair, dated in by_pair.items()}
        self.newest_on = max((dated[-1].on for dated in self._rates.values()), default=None)
        """Day of the newest rate."""
        self._partners: dict[str, set[str]] = {}
        for first, second in self._rates:
            self._partners.setdefault(first, set()).add(second)
            self._partners.setdefault(second, set()).add(first)

    def __iter__(self) -> Iterator[ExchangeRate]:
        """Yields every rate, by pair and day."""
        return (rate for pair in sorted(self._rates) for rate in self._rates[pair])

    def __eq__(self, other: object) -> bool:
        """Returns true if both have the same rates."""
        return isinstance(other, ExchangeRates) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def convert(self, amount: Decimal, from_code: str, to_code: str, on: date) -> Conversion | None:
        """Converts ``amount`` to ``to_code`` by the newest rates not after ``on``; None without them.

        A rate of the pair, as stated or inverted, takes precedence over a crossed one. Of crossed rates, the
        one whose older rate is newest counts, then the first by the common currency's code.
        """
        if from_code == to_code:
            return Conversion(amount, Decimal(1), (), on)
        way = self._find_direct_rate(from_code, to_code, on) or self._find_cross_rate(from_code, to_code, on)
        return None if way is None else Conversion(amount * way.rate, way.rate, way.rates, on)

    def _find_direct_rate(self, from_code: str, to_code: str, on: date) -> _RatePath | None:
        stated = self._find_newest_rate((from_code, to_code), on)
        opposite = self._find_newest_rate((to_code, from_code), on)
        if stated and (opposite is None or stated.on >= opposite.on):
            return _RatePath(stated.rate, (stated,))
        return _RatePath(1 / opposite.rate, (opposite,)) if opposite else None

    def _find_newest_rate(self, pair: tuple[str, str], on: date) -> ExchangeRate | None:
        dated = self._rates.get(pair, [])
        place = bisect_right(dated, on, key=lambda rate: rate.on)
        return dated[place - 1] if place else None

    def _find_cross_rate(self, from_code: str, to_code: str, on: date) -> _RatePath | None:
        common = self._partners.get(from_code, set()) & self._partners.get(to_code, set())
        ways = [
            _RatePath(first.rate * second.rate, first.rates + second.rates)
            for code in sorted(common)
            if (first := self._find_direct_rate(from_code, code, on))
            and (second := self._find_direct_rate(code, to_code, on))
        ]
        return max(ways, key=lambda way: way.oldest_on, default=None)
