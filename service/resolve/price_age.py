"""The age at which a price is used by its id only, counted from the newest of its kind in the catalog.

Today's date has no part in it: a question has one answer under a catalog revision and a method version.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Literal

from service.planning.cost.prices import is_old, parse_first_day
from service.resolve.catalog import CatalogView, KnownOffer, KnownTokenPrice

PricedResource = Literal["offers", "token_prices"]


def find_newest_day(catalog: CatalogView, resource: PricedResource = "offers") -> date:
    """Returns the day of the newest price that a tenant sees; that of offers is the date of its catalog."""
    key = f"{resource}_newest_day"
    if key not in catalog.cache:
        prices = catalog.offers if resource == "offers" else catalog.token_prices
        catalog.cache[key] = max(_parse_days(prices.list_key_values("as_of")), default=date.min)
    day: date = catalog.cache[key]
    return day


def _parse_days(dates: Iterable[str]) -> Iterator[date]:
    for as_of in dates:
        try:
            yield parse_first_day(as_of)
        except ValueError:
            # Rows of earlier versions may hold a day that no calendar has.
            continue


def is_used_by_id_only(price: KnownOffer | KnownTokenPrice, catalog: CatalogView) -> bool:
    """Returns true if a price is more than a year older than the newest of its kind in the catalog."""
    kind: PricedResource = "offers" if isinstance(price, KnownOffer) else "token_prices"
    return is_old(price.as_of, find_newest_day(catalog, kind))
