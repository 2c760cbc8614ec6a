"""Pieces of a search, and the refusal of questions that it cannot answer."""

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.estimates.serving_run import list_unserved_kinds
from service.plans.serving.devices import SearchedDevices
from service.plans.serving.layouts import get_max_configurations, list_layouts
from service.plans.serving.settings import get_workload
from service.plans.space import SearchPiece, SearchSpace

_OF_A_PIECE = 80
_APART = ("disaggregated", "passes", "diffusion")
"""Members for services other than replicas of one layout that generate tokens."""


def split_services(space: SearchSpace) -> tuple[SearchPiece, ...]:
    """Returns the configurations of a service in pieces of about a second.

    Raises :class:`PlanningError` for a workload that is not a service under a load, and for too large a
    search.
    """
    _check_question(space)
    counts = _count_configurations(space)
    found: list[SearchPiece] = []
    ranges: list[list[int]] = []
    room = _OF_A_PIECE
    for place, count in enumerate(counts):
        first = 0
        while first < count:
            taken = min(room, count - first)
            ranges.append([place, first, first + taken])
            first, room = first + taken, room - taken
            if not room:
                found.append(SearchPiece(_OF_A_PIECE, {"ranges": ranges}))
                ranges, room = [], _OF_A_PIECE
    if ranges:
        found.append(SearchPiece(_OF_A_PIECE - room, {"ranges": ranges}))
    return tuple(found)


def _check_question(space: SearchSpace) -> None:
    """Refuses a workload that is not a service under a load, or that is not modelled."""
    given, profile = get_workload(space), space.model.profile
    for name in _APART:
        if getattr(given, name) is not MISSING:
            detail = "only replicas of one kind that generate tokens can be searched"
            raise PlanningError("NOT_MODELLED", f"/workload/{name}", detail)
    if not profile.shapes_known:
        detail = "prefill and decode need the shapes of the model"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/model", detail)
    if kinds := list_unserved_kinds(profile):
        detail = f"layers of kind {', '.join(sorted(kinds))} are not modelled"
        raise PlanningError("LAYER_KIND_NOT_MODELLED", "/model", detail)
    if not profile.generates:
        raise PlanningError("NOT_MODELLED", "/model", "a service of forward passes cannot be searched")
    trace = given.arrivals is not MISSING and given.arrivals.process == "trace"
    if given.concurrency is MISSING and given.request_rate_per_second is MISSING and not trace:
        detail = "a plan of a service needs a load: give request_rate_per_second or concurrency"
        raise PlanningError("LOAD_REQUIRED", "/workload/request_rate_per_second", detail)


def _count_configurations(space: SearchSpace) -> list[int]:
    """Returns the configurations on each cluster. Too many are refused, naming the longest list."""
    counts: list[int] = []
    for place in range(len(space.clusters)):
        counts.append(0)
        for stored in list_layouts(SearchedDevices(space, place)):
            counts[place] += len(stored.layouts)
            if sum(counts) > get_max_configurations(space):
                raise _build_too_large_error(space)
    return counts


def _build_too_large_error(space: SearchSpace) -> PlanningError:
    lists = {name: len(given) for name, given in space.question.search.serving if isinstance(given, list)}
    longest = max(lists, key=lambda name: lists[name], default=None)
    pointer = f"/search/serving/{longest}" if longest else "/most_candidates"
    detail = f"a search of a service has at most {get_max_configurations(space):,} configurations"
    return PlanningError("SEARCH_TOO_LARGE", pointer, detail)
