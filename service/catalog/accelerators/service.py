"""Rules of accelerators."""

from service.catalog.rows import RowDocument
from service.planning.errors import PlanningError


def check_accelerator(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for an assessment outside its own range."""
    if (made := document.get("embodied_kg_co2e")) and not made["low"] <= made["value"] <= made["high"]:
        raise PlanningError("INTERVAL", "/embodied_kg_co2e", "low <= value <= high is expected")
    return {}
