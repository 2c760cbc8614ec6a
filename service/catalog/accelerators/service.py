"""Rules of accelerators."""

from service.catalog.rows import RowDocument
from service.planning.errors import PlanningError


def check_accelerator(document: RowDocument) -> RowDocument:
    """Returns no members.

    Raises :class:`PlanningError` for an assessment outside its own range and for two systems of one name.
    """
    names = [system["name"].casefold() for system in document.get("systems", [])]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise PlanningError("DUPLICATE", f"/systems/{index}/name", "another system has this name")
    if (made := document.get("embodied_kg_co2e")) and not made["low"] <= made["value"] <= made["high"]:
        raise PlanningError("INTERVAL", "/embodied_kg_co2e", "low <= value <= high is expected")
    return {}
