"""What a site must obey."""

from service.catalog.rows import Document
from service.planning.tariff.calendar import zone_of


def check_site(document: Document) -> Document:
    """Nothing to add; :class:`PlanningError` for a time zone that does not exist."""
    if "time_zone" in document:
        zone_of(document["time_zone"])
    return {}
