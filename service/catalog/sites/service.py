"""Rules of sites."""

from service.catalog.rows import RowDocument
from service.planning.tariff.calendar import resolve_zone


def check_site(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for a time zone that does not exist."""
    if "time_zone" in document:
        resolve_zone(document["time_zone"])
    return {}
