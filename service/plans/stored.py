"""Stored plans: searched by pieces under one catalog, ranked once, and immutable afterwards.

A search ends in one transaction, so that the states of plan, pieces and jobs agree, wherever a process is
killed.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import uuid4

from pydantic_core import from_json, to_json

from service.audit.service import WriteOutcome
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.plans import jobs, repository
from service.plans.errors import PlanEnded, PlanNotFound, TooManyPlans
from service.plans.jobs import PieceToSearch, PlanToRank
from service.plans.service import PreparedSearch, SearchPin
from service.plans.space import KeptConfiguration, SearchOutcome, SearchPiece
from service.plans.tables import CANCELLED, CONFIGURATION, DONE, FAILED, FLEET, RUNNING, PlanRow
from service.schemas.fleet_plans import FleetPlan, FleetPlanRequest
from service.schemas.plan_answers import PlanConstraint, PlanResult, PruningRule
from service.schemas.plans import PlanRequest

KEPT: Final = timedelta(days=90)
"""Retention of a plan after it has ended."""
MOST_RUNNING: Final = 20
"""Most running searches of one tenant."""
_FULL_RETRY: Final = {"Retry-After": "10"}
"""Headers of a refusal because as many searches run: most end within seconds."""
MOST_BEGINNINGS: Final = 5
"""Most starts of one search. A further change of the catalog fails it."""
_SUMMARY_CHARACTERS: Final = 500
_FAILED_AT_ONCE: Final = 100
_EXPIRED_AT_ONCE: Final = 1000


_Question = TypeVar("_Question", PlanRequest, FleetPlanRequest)


class RunningPlan(NamedTuple, Generic[_Question]):
    """A plan whose search is running, as a job reads it."""

    question: _Question
    pin: SearchPin


def create_plan(session: Writer, tenant_id: str, prepared: PreparedSearch) -> WriteOutcome:
    """Stores a plan with its answer, or with the jobs of its search."""
    if prepared.answer is None:
        repository.lock_searches(session, tenant_id)
        check_place(session, tenant_id)
    row = build_draft(tenant_id, prepared)
    if prepared.answer is None:
        _begin_search(session, row, prepared)
    session.add(row)
    session.flush()
    shown = to_detail(row)
    path = f"plans/{row.id}"
    status = 202 if prepared.answer is None else 200
    headers = {"Location": f"/v1/{path}"}
    return WriteOutcome(resource=path, status=status, body=shown, headers=headers, after=shown)


def check_place(session: Reader | Writer, tenant_id: str) -> None:
    """Raises :class:`TooManyPlans` if the tenant has no place for another search in the background."""
    if repository.count_running(session, tenant_id) >= MOST_RUNNING:
        raise TooManyPlans(headers=_FULL_RETRY)


def build_draft(tenant_id: str, prepared: PreparedSearch) -> PlanRow:
    """Returns the row of a new plan, with its answer if known."""
    question = prepared.question
    row = PlanRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        kind=FLEET if isinstance(question, FleetPlanRequest) else CONFIGURATION,
        state=RUNNING,
        goal=question.goal,
        question=question.model_dump(mode="json", exclude_unset=True),
        beginning=0,
        created_at=now(),
    )
    _record_counts(row, prepared)
    if prepared.answer is not None:
        row.pieces_done, row.candidates_decided = row.piece_count, row.candidates
        _record_answer(row, prepared.answer)
    return row


def _record_counts(row: PlanRow, prepared: PreparedSearch) -> None:
    row.catalog_revision, row.method_version, row.day = prepared.pin
    row.piece_count, row.pieces_done = len(prepared.pieces), 0
    row.candidates, row.candidates_decided = sum(piece.candidates for piece in prepared.pieces), 0


def _begin_search(session: Writer, row: PlanRow, prepared: PreparedSearch) -> None:
    """Enqueues the search of every piece, or the ranking where there is nothing to search."""
    _record_counts(row, prepared)
    row.beginning += 1
    if not prepared.pieces:  # a fleet of workloads that no pool has the devices for
        jobs.enqueue_ranking(session, row)
        return
    own = {"tenant_id": row.tenant_id, "plan_id": row.id}
    drafts = (
        {**own, "number": number, "candidates": piece.candidates, "part": dict(piece.part)}
        for number, piece in enumerate(prepared.pieces)
    )
    repository.insert_pieces(session, drafts)
    for number in range(row.piece_count):
        jobs.enqueue_search(session, row, number)


def _record_answer(row: PlanRow, answer: PlanResult | FleetPlan) -> None:
    row.state, row.finished_at = DONE, now()
    row.answer = to_json(answer).decode()
    cost = _get_best_cost(answer)
    if cost is not None:
        row.best_cost = {"amount": cost["amount"], "currency_code": cost["currency_code"]}


def _get_best_cost(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the cost of the first row of a plan, or of all workloads of a fleet."""
    best = answer if "rows" not in answer else next(iter(answer["rows"]), {})
    return best.get("cost")


def find_active_plan(
    session: Reader, tenant_id: str, asked: PlanToRank, shape: type[_Question]
) -> RunningPlan[_Question] | None:
    """Returns the plan of a job, or None if its search has ended or was restarted."""
    row = repository.get_plan(session, tenant_id, asked.plan_id)
    if row is None or not _is_active(row, asked):
        return None
    question = shape.model_validate_json(json.dumps(row.question))
    return RunningPlan(question, SearchPin(row.catalog_revision, row.method_version, row.day))


def _is_active(row: PlanRow, asked: PlanToRank) -> bool:
    return row.state == RUNNING and row.beginning == asked.beginning


def _lock_plan(session: Writer, tenant_id: str, asked: PlanToRank) -> PlanRow | None:
    """Returns the locked plan of a job if it still needs the job."""
    row = repository.lock_plan(session, tenant_id, asked.plan_id)
    return row if row is not None and _is_active(row, asked) else None


def get_piece(session: Reader, tenant_id: str, asked: PieceToSearch) -> SearchPiece:
    """Returns the piece of a job."""
    row = repository.get_piece(session, tenant_id, asked.plan_id, asked.number)
    return SearchPiece(row.candidates, row.part)


def record_outcome(session: Writer, tenant_id: str, asked: PieceToSearch, outcome: SearchOutcome) -> None:
    """Stores the outcome of a piece. Enqueues the ranking once all are known."""
    row = _lock_plan(session, tenant_id, asked)
    if row is None:
        return
    written = json.dumps(to_document(outcome))
    candidates = repository.record_outcome(session, tenant_id, asked.plan_id, asked.number, written)
    if candidates is None:  # the job was cut off between here and its end
        return
    row.pieces_done += 1
    row.candidates_decided += candidates
    if row.pieces_done == row.piece_count:
        jobs.enqueue_ranking(session, row)


def list_outcomes(session: Reader, tenant_id: str, plan_id: str) -> list[SearchOutcome]:
    """Returns the outcomes of the pieces of a plan, in order."""
    return [parse_outcome(json.loads(text)) for text in repository.list_outcomes(session, tenant_id, plan_id)]


def record_answer(session: Writer, tenant_id: str, asked: PlanToRank, answer: PlanResult | FleetPlan) -> None:
    """Stores the answer of a search."""
    row = _lock_plan(session, tenant_id, asked)
    if row is not None:
        _record_answer(row, answer)
        repository.delete_pieces(session, tenant_id, row.id)


def restart_search(session: Writer, tenant_id: str, asked: PlanToRank, prepared: PreparedSearch) -> None:
    """Restarts a search under another catalog. Fails the plan after too many restarts."""
    row = _lock_plan(session, tenant_id, asked)
    if row is None:
        return
    if row.beginning >= MOST_BEGINNINGS:
        summary = f"The catalog changed {MOST_BEGINNINGS} times during the search."
        _end_search(session, row, FAILED, "CATALOG_CHANGED", summary)
        return
    jobs.cancel_jobs(session, tenant_id, row.id)
    repository.delete_pieces(session, tenant_id, row.id)
    _begin_search(session, row, prepared)


def fail_plan(session: Writer, tenant_id: str, asked: PlanToRank, fault: FieldError) -> None:
    """Ends a search whose question has no answer."""
    row = _lock_plan(session, tenant_id, asked)
    if row is not None:
        summary = f"{fault.pointer}: {fault.detail}" if fault.pointer else fault.detail
        _end_search(session, row, FAILED, fault.code, summary)


def fail_stuck_plans(session: Writer) -> int:
    """Fails searches with a job that has ended without its work. Returns their number."""
    failed = 0
    for found in repository.list_stuck(session, jobs.KINDS, limit=_FAILED_AT_ONCE):
        asked = PlanToRank(plan_id=found.plan_id, beginning=found.beginning)
        row = _lock_plan(session, found.tenant_id, asked)
        if row is not None:
            code, summary = "JOB_CANCELLED", "A job of the search was cancelled."
            if found.job_state != "cancelled":
                code, summary = found.error_code or "UNEXPECTED", found.error_summary or ""
            _end_search(session, row, FAILED, code, summary)
            failed += 1
    return failed


def _end_search(session: Writer, row: PlanRow, state: str, code: str | None, summary: str | None) -> None:
    row.state, row.finished_at = state, now()
    row.error_code = code
    row.error_summary = summary[:_SUMMARY_CHARACTERS] if summary else None
    jobs.cancel_jobs(session, row.tenant_id, row.id)
    repository.delete_pieces(session, row.tenant_id, row.id)


def cancel_plan(session: Writer, tenant_id: str, plan_id: str) -> WriteOutcome:
    """Ends a search without an answer."""
    row = repository.lock_plan(session, tenant_id, plan_id)
    if row is None:
        raise PlanNotFound
    before = to_summary(row)
    if row.state in (DONE, FAILED):
        raise PlanEnded
    if row.state == RUNNING:
        _end_search(session, row, CANCELLED, None, None)
    session.flush()
    after = to_summary(row)
    return WriteOutcome(resource=f"plans/{plan_id}", body=after, before=before, after=after)


def delete_plan(session: Writer, tenant_id: str, plan_id: str) -> WriteOutcome:
    """Deletes a plan and ends its search. Quotes have their own copies of its rows."""
    row = repository.lock_plan(session, tenant_id, plan_id)
    if row is None:
        raise PlanNotFound
    before = to_summary(row)
    if row.state == RUNNING:
        _end_search(session, row, CANCELLED, None, None)
    session.delete(row)
    return WriteOutcome(resource=f"plans/{plan_id}", status=204, before=before)


def delete_expired_plans(session: Writer) -> int:
    """Deletes plans that ended long ago. Returns their number."""
    return repository.delete_expired_plans(session, KEPT, limit=_EXPIRED_AT_ONCE)


def get_plan(session: Reader, tenant_id: str, plan_id: str) -> dict[str, Any]:
    """Returns a plan with its question and, once it is done, its answer."""
    row = repository.get_plan(session, tenant_id, plan_id)
    if row is None:
        raise PlanNotFound
    return to_detail(row)


def render_plan(session: Reader, tenant_id: str, plan_id: str) -> bytes:
    """Returns the representation of a plan as JSON.

    Question and answer are not decoded: an answer that repeats a model of its question has megabytes.
    """
    found = repository.get_plan_texts(session, tenant_id, plan_id)
    if found is None:
        raise PlanNotFound
    prefix = _get_prefix(found.row).encode()
    members = [to_json(to_summary(found.row)).removesuffix(b"}")]
    members.append(b'"%bquestion":%b' % (prefix, found.question.encode()))
    if found.answer is not None:
        members.append(b'"%banswer":%b' % (prefix, found.answer.encode()))
    return b",".join(members) + b"}"


def to_detail(row: PlanRow) -> dict[str, Any]:
    """Returns the representation of a plan with its question and its answer."""
    prefix = _get_prefix(row)
    shown = {**to_summary(row), f"{prefix}question": row.question}
    return shown if row.answer is None else {**shown, f"{prefix}answer": from_json(row.answer)}


def _get_prefix(row: PlanRow) -> str:
    """Returns the prefix of the members that hold question and answer."""
    return "fleet_" if row.kind == FLEET else ""


def list_details(session: Reader, tenant_id: str, rows: Sequence[PlanRow], most: int) -> list[dict[str, Any]]:
    """Returns the representations of plans, with question and answer of those that are short."""
    short = repository.load_short_plans(session, tenant_id, [row.id for row in rows], most)
    return [to_detail(row) if row.id in short else to_summary(row) for row in rows]


_MEMBERS: Final = ("id", "state", "kind", "goal", "created_at", "finished_at", "error_code", "error_summary")


def to_summary(row: PlanRow) -> dict[str, Any]:
    """Returns the representation of a plan in lists."""
    members = {name: getattr(row, name) for name in (*_MEMBERS, "best_cost")}
    progress = {
        "pieces": row.piece_count,
        "pieces_done": row.pieces_done,
        "candidates": row.candidates,
        "candidates_decided": row.candidates_decided,
    }
    return {name: value for name, value in members.items() if value is not None} | {"progress": progress}


def to_document(outcome: SearchOutcome) -> dict[str, Any]:
    """Returns an outcome as JSON."""
    defaults = KeptConfiguration._field_defaults
    kept = [
        {
            name: value
            for name, value in one._asdict().items()
            if name not in defaults or value != defaults[name]
        }
        for one in outcome.kept
    ]
    counts = {"ruled_out": dict(outcome.ruled_out), "pruned": dict(outcome.pruned)}
    return {**outcome._asdict(), **counts, "kept": kept}


def parse_outcome(document: dict[str, Any]) -> SearchOutcome:
    """Parses an outcome from JSON."""
    return SearchOutcome(
        **{
            **document,
            "ruled_out": {PlanConstraint(name): count for name, count in document["ruled_out"].items()},
            "pruned": {PruningRule(name): count for name, count in document["pruned"].items()},
            "kept": tuple(KeptConfiguration(**one) for one in document["kept"]),
        }
    )
