"""The age at which an offer is used by its id only, counted from the newest price of the catalog.

Today's date has no part in it: a question has one answer under a catalog revision and a method version.
"""

from collections.abc import Iterator
from datetime import date

from service.planning.cost.prices import is_old, parse_first_day
from service.resolve.catalog import CatalogView, KnownOffer

_KEY = "offers_newest_day"


def find_newest_day(catalog: CatalogView) -> date:
    """Returns the day of the newest offer that a tenant sees, which is the date of its catalog."""
    if _KEY not in catalog.cache:
        catalog.cache[_KEY] = max(_list_days(catalog), default=date.min)
    day: date = catalog.cache[_KEY]
    return day


def _list_days(catalog: CatalogView) -> Iterator[date]:
    for offer in catalog.offers.values():
        try:
            yield parse_first_day(offer.as_of)
        except ValueError:
            # Rows of earlier versions may hold a day that no calendar has.
            continue


def is_used_by_id_only(offer: KnownOffer, catalog: CatalogView) -> bool:
    """Returns true if an offer is more than a year older than the newest price of the catalog."""
    return is_old(offer.as_of, find_newest_day(catalog))
