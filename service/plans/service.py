"""Computation of a plan: its pieces are searched, here or by other processes, then ranked."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pydantic import MISSING
from pydantic_core import from_json

from service.kit.clock import now
from service.kit.database.engine import Reader
from service.planning import METHOD_VERSION
from service.plans import repository
from service.plans.answer import build_answer
from service.plans.defaults import drop_default_levels, select_within_levels
from service.plans.errors import PlanNotFound
from service.plans.fleet import schedule_fleet, search_fleet_piece, split_fleet
from service.plans.ranking import rank_candidates
from service.plans.search import merge_outcomes, search_space, split_search
from service.plans.sensitivity import has_tariff
from service.plans.space import SearchOutcome, SearchPiece, SearchSpace
from service.plans.supplies import build_space
from service.plans.tables import CONFIGURATION
from service.plans.words import describe_candidate
from service.resolve.catalog import CatalogView
from service.schemas.fleet_plans import FleetPlan, FleetPlanRequest
from service.schemas.plan_answers import PlanResult
from service.schemas.plans import PlanRequest

MOST_CANDIDATES_AT_ONCE: Final = 50_000
MOST_PIECES_AT_ONCE: Final = 4
MOST_SUPPLIES_AT_ONCE: Final = 120
"""Limits of a search that is answered while the caller waits: one or two seconds of work."""


class SearchPin(NamedTuple):
    """Versions that all pieces of a search share. Outcomes under different versions cannot be merged."""

    catalog_revision: int
    method_version: str
    day: str
    """Day of prices and exchange rates."""


def build_pin(catalog: CatalogView) -> SearchPin:
    """Returns the pin of a search under ``catalog`` now."""
    return SearchPin(catalog.revision, METHOD_VERSION, now().date().isoformat())


class PreparedSearch(NamedTuple):
    """A question and the pieces of its search, with the answer if the search is small.

    The answer of a fleet is never stored with its question: one that is found soon is not stored at all.
    """

    question: PlanRequest | FleetPlanRequest
    pin: SearchPin
    pieces: tuple[SearchPiece, ...]
    answer: PlanResult | None = None


def estimate_plan(question: PlanRequest, catalog: CatalogView) -> PlanResult:
    """Returns the answer of a plan, with all pieces searched in this call."""
    space = build_space(question, catalog)
    return _search_pieces(space, split_search(space))


def prepare_plan(question: PlanRequest, catalog: CatalogView) -> PreparedSearch:
    """Returns the pieces of a question, and its answer if they are few."""
    pin, space = build_pin(catalog), build_space(question, catalog)
    parts = split_search(space)
    is_small = _has_few_pieces(parts) and len(space.supplies) <= MOST_SUPPLIES_AT_ONCE
    answer = _search_pieces(space, parts) if is_small and not _is_billed(space) else None
    return PreparedSearch(question, pin, parts, answer)


def _has_few_pieces(parts: Sequence[SearchPiece]) -> bool:
    candidates = sum(piece.candidates for piece in parts)
    return candidates <= MOST_CANDIDATES_AT_ONCE and len(parts) <= MOST_PIECES_AT_ONCE


def _is_billed(space: SearchSpace) -> bool:
    """Returns true if ranking needs tariff bills for every start of a window, which may take many seconds."""
    return space.question.window is not MISSING and any(map(has_tariff, space.supplies))


def prepare_pieces(question: PlanRequest, catalog: CatalogView) -> PreparedSearch:
    """Returns the pieces of a question, without an answer."""
    return PreparedSearch(question, build_pin(catalog), split_search(build_space(question, catalog)))


def prepare_fleet(question: FleetPlanRequest, catalog: CatalogView) -> PreparedSearch:
    """Returns the pieces of the search of a fleet."""
    return PreparedSearch(question, build_pin(catalog), split_fleet(question, catalog))


def search_plan_piece(question: PlanRequest, catalog: CatalogView, piece: SearchPiece) -> SearchOutcome:
    """Returns the outcome of one piece of a question."""
    return search_space(build_space(question, catalog), piece)


def rank_plan(question: PlanRequest, catalog: CatalogView, outcomes: Iterable[SearchOutcome]) -> PlanResult:
    """Returns the answer from the outcomes of all pieces, in the order of the pieces."""
    return _rank_outcomes(build_space(question, catalog), outcomes)


_Question = TypeVar("_Question", PlanRequest, FleetPlanRequest)


class SearchSteps(NamedTuple, Generic[_Question]):
    """Steps of the search of one kind of question, which processes share."""

    question: type[_Question]
    prepare: Callable[[_Question, CatalogView], PreparedSearch]
    search: Callable[[_Question, CatalogView, SearchPiece], SearchOutcome]
    finish: Callable[[_Question, CatalogView, Iterable[SearchOutcome]], PlanResult | FleetPlan]


PLAN_STEPS: Final = SearchSteps(PlanRequest, prepare_pieces, search_plan_piece, rank_plan)
FLEET_STEPS: Final = SearchSteps(FleetPlanRequest, prepare_fleet, search_fleet_piece, schedule_fleet)


def _search_pieces(space: SearchSpace, parts: Iterable[SearchPiece]) -> PlanResult:
    return _rank_outcomes(space, (search_space(space, piece) for piece in parts))


def _rank_outcomes(space: SearchSpace, outcomes: Iterable[SearchOutcome]) -> PlanResult:
    """Returns the answer under the default service levels, or without these if nothing keeps them."""
    whole = merge_outcomes(outcomes, space.question.search.depth)
    outcome = select_within_levels(whole)
    ranking = rank_candidates(space, outcome)
    if len(outcome.kept) < len(whole.kept) and all(row.candidate.name for row in ranking.rows):
        space, outcome = drop_default_levels(space), whole
        ranking = rank_candidates(space, outcome)
    return build_answer(space, outcome, ranking)


def describe_plan_candidate(
    session: Reader, tenant_id: str, plan_id: str, rank: int, catalog: CatalogView
) -> str | None:
    """Returns model, work and devices of the row of a plan with this rank in words, or None."""
    row = get_candidate_row(session, tenant_id, plan_id, rank)
    plan = repository.get_plan(session, tenant_id, plan_id)
    return None if row is None or plan is None else describe_candidate(plan.question, row, catalog)


def get_candidate_row(session: Reader, tenant_id: str, plan_id: str, rank: int) -> dict[str, Any] | None:
    """Returns the row of a plan with this rank as it was answered, or None."""
    row = repository.get_plan(session, tenant_id, plan_id)
    if row is None:
        raise PlanNotFound
    if row.kind != CONFIGURATION:
        return None
    answer = from_json(row.answer) if row.answer is not None else {"rows": [], "given": []}
    rows = [*answer["rows"], *answer["given"]]
    return next((each for each in rows if each["rank"] == rank), None)
