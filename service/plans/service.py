"""A plan from its question: searched piece by piece, here or by any number of processes, then ranked."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from pydantic import MISSING
from pydantic_core import from_json

from service.kit.clock import now
from service.kit.database.engine import Reader
from service.planning import METHOD_VERSION
from service.plans import repository
from service.plans.answer import answer_of
from service.plans.errors import PlanNotFound
from service.plans.ranking import ranked
from service.plans.search import merged, pieces, search
from service.plans.sensitivity import has_tariff
from service.plans.space import Outcome, Piece, Space
from service.plans.supplies import space_of
from service.resolve.catalog import CatalogView
from service.schemas.plan_answers import PlanAnswer
from service.schemas.plans import PlanQuestion

MOST_CANDIDATES_AT_ONCE: Final = 50_000
MOST_PIECES_AT_ONCE: Final = 4
"""What is searched while the caller waits: a second or two of work."""


class Pin(NamedTuple):
    """What all pieces of a search are searched under; those of another one do not add up with them."""

    catalog_revision: int
    method_version: str
    day: str
    """Prices and exchange rates are those of a day."""


def pin_of(catalog: CatalogView) -> Pin:
    """The pin of what is searched under ``catalog`` now."""
    return Pin(catalog.revision, METHOD_VERSION, now().date().isoformat())


class Prepared(NamedTuple):
    """A question and the pieces of its search; with the answer, if the search is small."""

    question: PlanQuestion
    pin: Pin
    pieces: tuple[Piece, ...]
    answer: PlanAnswer | None = None


def estimate_plan(question: PlanQuestion, catalog: CatalogView) -> PlanAnswer:
    """Which configuration does this work best? All of the search, in one go."""
    space = space_of(question, catalog)
    return _searched(space, pieces(space))


def prepare(question: PlanQuestion, catalog: CatalogView) -> Prepared:
    """The pieces of a question, and its answer if they are few."""
    pin, space = pin_of(catalog), space_of(question, catalog)
    parts = pieces(space)
    answer = _searched(space, parts) if _are_few(parts) and not _is_billed(space) else None
    return Prepared(question, pin, parts, answer)


def _are_few(parts: Sequence[Piece]) -> bool:
    candidates = sum(piece.candidates for piece in parts)
    return candidates <= MOST_CANDIDATES_AT_ONCE and len(parts) <= MOST_PIECES_AT_ONCE


def _is_billed(space: Space) -> bool:
    """Whether ranking takes bills of a tariff from every start of a window, which may take many seconds."""
    return space.question.window is not MISSING and any(map(has_tariff, space.supplies))


def pieces_of(question: PlanQuestion, catalog: CatalogView) -> Prepared:
    """The pieces of a question, all still to be searched."""
    return Prepared(question, pin_of(catalog), pieces(space_of(question, catalog)))


def search_piece(question: PlanQuestion, catalog: CatalogView, piece: Piece) -> Outcome:
    """What becomes of a piece of a question."""
    return search(space_of(question, catalog), piece)


def rank(question: PlanQuestion, catalog: CatalogView, outcomes: Iterable[Outcome]) -> PlanAnswer:
    """The answer, once every piece of a question is searched; ``outcomes`` in the order of the pieces."""
    return _ranked(space_of(question, catalog), outcomes)


def _searched(space: Space, parts: Iterable[Piece]) -> PlanAnswer:
    return _ranked(space, (search(space, piece) for piece in parts))


def _ranked(space: Space, outcomes: Iterable[Outcome]) -> PlanAnswer:
    outcome = merged(outcomes, space.question.search.depth)
    return answer_of(space, outcome, ranked(space, outcome))


def candidate(session: Reader, tenant_id: str, plan_id: str, rank: int) -> dict[str, Any] | None:
    """The row of this rank of a plan, as it was answered; None where the plan has none."""
    row = repository.get(session, tenant_id, plan_id)
    if row is None:
        raise PlanNotFound
    answer = from_json(row.answer) if row.answer is not None else {"rows": [], "given": []}
    rows = [*answer["rows"], *answer["given"]]
    return next((each for each in rows if each["rank"] == rank), None)
