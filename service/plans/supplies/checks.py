"""Refusal of questions that contradict themselves."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.scheduling.shift import build_starts
from service.resolve.catalog import CatalogView
from service.schemas.energy import RunLoadInput
from service.schemas.plans import PlanRequest


def check_times(question: PlanRequest) -> None:
    """Refuses an end without a start, an end before it, and two starts."""
    window = question.window
    if question.constraints.finish_by is not MISSING and question.starts_at is MISSING and window is MISSING:
        detail = "finish_by needs the start of the run: give starts_at or window"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    start = question.starts_at if window is MISSING else window.earliest_start_at
    done = question.constraints.finish_by
    if done is not MISSING and start is not MISSING and done <= start:
        detail = "finish_by must be after the start"
        raise PlanningError("FINISH_BEFORE_START", "/constraints/finish_by", detail)
    if window is MISSING:
        return
    if question.starts_at is not MISSING:
        raise PlanningError("STARTS_TWICE", "/window", "give either starts_at or window")
    build_starts(
        window.earliest_start_at, window.latest_start_at, window.step_minutes, RunLoadInput().interval_minutes
    )


def check_names(question: PlanRequest, catalog: CatalogView) -> None:
    """Refuses duplicate names of supplies and given configurations, and duplicate regions of sites."""
    named = [(f"/owned/{place}/name", each.name) for place, each in enumerate(question.owned)]
    named += [(f"/rented/{place}/name", each.name) for place, each in enumerate(question.rented)]
    seen = set(catalog.offers)
    for pointer, name in named:
        if name in seen:
            raise PlanningError("NAME_TWICE", pointer, "another supply has this name")
        seen.add(name)
    given: set[str] = set()
    for place, each in enumerate(question.given):
        if each.name in given:
            raise PlanningError(
                "NAME_TWICE", f"/given/{place}/name", "another given configuration has this name"
            )
        given.add(each.name)
    regions: set[str] = set()
    for place, site in enumerate(question.sites):
        if regions & set(site.regions):
            pointer = f"/sites/{place}/regions"
            raise PlanningError("REGION_TWICE", pointer, "a region may have one site only")
        regions |= set(site.regions)
