"""Answer to a question of the best configurations of a served model, for its users and for the devices."""

from typing import cast

from pydantic import MISSING

from service.kit.http.cancellation import check_cancelled
from service.planning.estimates.frontier import (
    FrontierEstimate,
    FrontierSpace,
    search_frontier,
)
from service.planning.estimates.frontier import FrontierPoint as PlannedPoint
from service.planning.inference import FrontierConstraint
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.resolve.frontier import FrontierResolver
from service.resolve.load import resolve_levels
from service.schemas.answer import to_evidence, to_integer, to_parallelism, to_quantities
from service.schemas.frontier import FrontierPoint, ThroughputFrontier, ThroughputFrontierRequest


def estimate_frontier(question: ThroughputFrontierRequest, catalog: CatalogView) -> ThroughputFrontier:
    """Answers with the Pareto set of tokens by device and by user, and the question of each point."""
    notes = AnswerNotes()
    resolver = FrontierResolver(question, catalog, notes)
    found = _search(question, resolver, notes) if resolver.is_searchable() else None
    points = [_to_point(point, resolver) for point in found.points] if found else []
    answer: ThroughputFrontier = {
        "points": points,
        "configurations": {
            "considered": found.considered if found else 0,
            "feasible": found.feasible if found else 0,
            "pareto": found.pareto if found else 0,
            "ruled_out": [
                {"constraint": constraint, "configurations": found.ruled_out[constraint]}
                for constraint in FrontierConstraint
                if found and found.ruled_out.get(constraint)
            ],
        },
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if question.workload.service_levels is not MISSING:
        if points:
            answer["best"] = points[0]
        elif found:
            notes.add_gap("/best", "NONE_WITHIN_LEVELS", "no configuration keeps to the service levels")
    return answer


def _search(
    question: ThroughputFrontierRequest, resolver: FrontierResolver, notes: AnswerNotes
) -> FrontierEstimate:
    space = FrontierSpace(resolver.resolve_ranges(), resolver.list_settings())
    given, levels = question.workload.service_levels, None
    if space.variants and given is not MISSING:
        levels = resolve_levels(given)
    return search_frontier(space, levels, question.search.most_points, notes, check_cancelled)


def _to_point(point: PlannedPoint, resolver: FrontierResolver) -> FrontierPoint:
    case = point.case
    answer: dict[str, object] = {
        "parallelism": to_parallelism(case.layout, chosen=False),
        "accelerator_id": case.cluster.accelerator.id,
        "weight_format": case.resident.workload.storage.name,
        "kv_cache_precision": case.workload.cache_format.value,
        "concurrency": point.concurrency,
        "requests_per_replica": point.requests_per_replica,
        **to_quantities(point.rates),
        "throughput_question": resolver.build_question(point.setting, case.layout, point.concurrency),
    }
    if point.headroom_bytes is not None:
        answer["headroom_bytes"] = to_integer(point.headroom_bytes)
    return cast("FrontierPoint", answer)
