"""What a site must obey."""

from service.catalog.rows import RowDocument
from service.planning.tariff.calendar import resolve_zone


def check_site(document: RowDocument) -> RowDocument:
    """Nothing to add; :class:`PlanningError` for a time zone that does not exist."""
    if "time_zone" in document:
        resolve_zone(document["time_zone"])
    return {}
