"""Rules of quotes: a version is frozen once, and only its state changes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import MISSING
from pydantic_core import from_json

from service.audit.service import WriteOutcome
from service.catalog.service import get_version as catalog_version
from service.cost_centers import service as cost_centers
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.problems import FieldError, NotFound, Unprocessable
from service.kit.http.web import from_state
from service.kit.security.principals import SHIPPED_TENANT
from service.plans.service import get_candidate_row
from service.quotes import documents, repository
from service.quotes.compare import compare_quotes
from service.quotes.documents import build_resource_id, is_intact, to_audit_columns, to_detail, to_summary
from service.quotes.errors import (
    PlanNotQuotable,
    QuoteChanged,
    QuoteNotAsFrozen,
    QuoteNotExportable,
    QuoteNotFound,
    QuotePending,
    QuoteStateConflict,
)
from service.quotes.schemas import (
    NEWEST,
    CandidateQuoteRequest,
    QuoteComparison,
    QuoteComparisonQuery,
    QuoteRequest,
)
from service.quotes.snapshot import (
    QUESTIONS,
    QuoteSnapshot,
    QuoteSubject,
    build_quote,
    is_owning_devices,
    parse_request,
    project_questions,
)
from service.quotes.tables import (
    APPROVED,
    CANCELLED,
    DRAFT,
    EXPIRED,
    PENDING,
    REJECTED,
    SUPERSEDED,
    QuoteRow,
)
from service.resolve import length
from service.schemas.base import EstimateSource

__all__ = [
    "QuoteFreezing",
    "QuoteRow",
    "QuoteSnapshot",
    "QuoteSnapshots",
    "QuoteStateConflict",
    "add_version",
    "check_integrity",
    "compare",
    "compare_with_previous",
    "create_quote",
    "find_names",
    "get_focus_csv",
    "get_quote",
    "is_search",
    "list_audit_documents",
    "list_exports",
    "list_newest",
    "list_summaries",
    "list_version_states",
    "lock_version",
    "set_state",
    "to_detail",
    "to_summary",
]

_MOVES: Final[Mapping[str, frozenset[str]]] = {
    DRAFT: frozenset({PENDING, APPROVED, CANCELLED, SUPERSEDED}),
    PENDING: frozenset({APPROVED, REJECTED, EXPIRED, CANCELLED, SUPERSEDED}),
    APPROVED: frozenset({CANCELLED, SUPERSEDED}),
    REJECTED: frozenset(),
    EXPIRED: frozenset(),
    CANCELLED: frozenset(),
    SUPERSEDED: frozenset(),
}
"""Allowed changes of state. A rejected version is followed by a new version."""


class QuoteSnapshots:
    """Builder of quotes under the current catalog, outside of write transactions."""

    def __init__(self, database: Database, snapshots: SnapshotStore) -> None:
        self._database = database
        self._snapshots = snapshots

    def build_from_body(self, tenant_id: str, body: QuoteRequest, at: str = "") -> QuoteSnapshot:
        """Returns the snapshot for a request body. Pointers of errors begin with ``at``."""
        with self._database.open_reader() as session:
            asked = resolve_request(session, tenant_id, body, at)
            payer = asked.cost_center_id
            if payer is not None and not cost_centers.is_known(session, tenant_id, payer):
                fault = FieldError(
                    f"{at}/cost_center_id", "UNKNOWN_REFERENCE", "there is no cost centre with this id"
                )
                raise Unprocessable("A member refers to no row", fault)
        return self._build_quote(tenant_id, asked)

    def rebuild_newest(self, tenant_id: str, quote_id: str, version: int | None = None) -> QuoteSnapshot:
        """Returns a new snapshot of the newest version's question. Refuses if it is not ``version``."""
        with self._database.open_reader() as session:
            asked = resolve_newest_request(session, tenant_id, quote_id)
        if version not in (None, asked.version):
            raise QuoteChanged
        return self._build_quote(tenant_id, asked)

    def _build_quote(self, tenant_id: str, asked: QuoteSubject) -> QuoteSnapshot:
        return build_quote(asked, self._snapshots.newest(tenant_id), partial(self._load_rows, tenant_id))

    def _load_rows(self, tenant_id: str, sources: Sequence[EstimateSource]) -> list[Mapping[str, Any]]:
        with self._database.open_reader() as session:
            return [_load_catalog_row(session, tenant_id, source) for source in sources]


def is_search(body: QuoteRequest) -> bool:
    """Returns true if freezing a quote may take over a second."""
    return not isinstance(body, CandidateQuoteRequest) and length.is_search(body.request)


QuoteFreezing = Annotated[QuoteSnapshots, from_state("freezing")]


def _load_catalog_row(session: Reader, tenant_id: str, source: EstimateSource) -> Mapping[str, Any]:
    owner = SHIPPED_TENANT if source["origin"] == "shipped" else tenant_id
    row = catalog_version(session, source["kind"], owner, source["id"], source["version"])
    if row is None:
        raise LookupError(f"a {source['kind']} that an answer cites has no version {source['version']}")
    return row


def resolve_request(session: Reader, tenant_id: str, body: QuoteRequest, at: str = "") -> QuoteSubject:
    """Returns the subject of a request body, with the requests of a plan's row if it names one.

    Pointers of errors begin with ``at``.
    """
    cost_center_id = None if body.cost_center_id is MISSING else body.cost_center_id
    note = None if body.note is MISSING else body.note
    if isinstance(body, CandidateQuoteRequest):
        asked = _resolve_plan_request(session, tenant_id, body, at)
        return asked._replace(cost_center_id=cost_center_id, note=note)
    return QuoteSubject(
        operation=body.operation,
        name=body.name,
        requests=project_questions(body.operation.replace("-", "_"), body.request),
        owns_devices=is_owning_devices(body.request),
        cost_center_id=cost_center_id,
        note=note,
        refused_at=f"{at}/request",
    )


def _resolve_plan_request(
    session: Reader, tenant_id: str, body: CandidateQuoteRequest, at: str
) -> QuoteSubject:
    try:
        row = get_candidate_row(session, tenant_id, body.plan_id, body.candidate)
    except NotFound as missing:
        fault = FieldError(f"{at}/plan_id", "UNKNOWN_REFERENCE", missing.detail)
        raise Unprocessable("A member refers to no row", fault) from missing
    if row is None:
        raise PlanNotQuotable
    said = row["requests"]
    return QuoteSubject(
        operation="plan",
        name=body.name,
        requests={name: parse_request(name, said[name]) for name in QUESTIONS if name in said},
        owns_devices=row["supply"]["kind"] == "owned",
        plan={"plan_id": body.plan_id, "candidate": body.candidate},
        planned=row,
        refused_at=f"{at}/candidate",
    )


def resolve_newest_request(session: Reader, tenant_id: str, quote_id: str) -> QuoteSubject:
    """Returns the subject of the newest version of a quote."""
    row = _get_version_row(session, tenant_id, quote_id)
    document = from_json(row.document)
    said = document["requests"]
    requests = {name: parse_request(name, said[name]) for name in QUESTIONS if name in said}
    return QuoteSubject(
        operation=row.operation,  # type: ignore[arg-type]
        name=row.name,
        requests=requests,
        owns_devices=document["owns_devices"],
        cost_center_id=row.cost_center_id,
        note=document.get("note"),
        plan=document.get("plan"),
        refused_at=None,
        version=row.version,
    )


def _get_version_row(
    session: Reader | Writer, tenant_id: str, quote_id: str, version: int = NEWEST
) -> QuoteRow:
    row = repository.get_version(session, tenant_id, quote_id, version or None)
    if row is None:
        raise QuoteNotFound
    return row


def create_quote(
    session: Writer, tenant_id: str, frozen: QuoteSnapshot, created_by: str, *, days: int
) -> WriteOutcome:
    """Stores the first version of a quote."""
    row = documents.build_row(frozen, tenant_id, created_by, days=days)
    return _store_row(session, row)


def add_version(
    session: Writer, tenant_id: str, quote_id: str, frozen: QuoteSnapshot, created_by: str, *, days: int
) -> WriteOutcome:
    """Stores the next version of a quote that has no pending approval. A draft is superseded.

    A version that repeats an earlier question follows only that version: after a version in between, it would
    revert question or prices.
    """
    newest = lock_version(session, tenant_id, quote_id)
    if frozen.asked.version not in (None, newest.version):
        raise QuoteChanged
    if newest.state == PENDING:
        raise QuotePending
    if newest.state == DRAFT:
        set_state(session, newest, SUPERSEDED)
    version = newest.version + 1
    row = documents.build_row(frozen, tenant_id, created_by, days=days, quote_id=newest.id, version=version)
    return _store_row(session, row)


def _store_row(session: Writer, row: QuoteRow) -> WriteOutcome:
    session.add(row)
    session.flush()
    return WriteOutcome(
        resource=f"quotes/{build_resource_id(row)}",
        status=201,
        body=to_detail(row),
        headers={"Location": f"/v1/quotes/{row.id}"},
        after=to_audit_columns(row),
    )


def get_quote(
    session: Reader | Writer, tenant_id: str, quote_id: str, version: int = NEWEST
) -> dict[str, Any]:
    """Returns a version of a quote, by default the newest."""
    return to_detail(_get_version_row(session, tenant_id, quote_id, version))


def compare(session: Reader, tenant_id: str, quote_id: str, query: QuoteComparisonQuery) -> QuoteComparison:
    """Returns the comparison of a version with the one before it, another version, or another quote."""
    after = get_quote(session, tenant_id, quote_id, query.version)
    base = query.base_version
    if not query.base_id and base == NEWEST:
        base = max(1, after["version"] - 1)
    return compare_quotes(get_quote(session, tenant_id, query.base_id or quote_id, base), after)


def compare_with_previous(
    session: Reader | Writer, tenant_id: str, quote: Mapping[str, Any]
) -> QuoteComparison | None:
    """Returns the comparison of a version with the one before it, or None for the first version."""
    if quote["version"] == 1:
        return None
    return compare_quotes(get_quote(session, tenant_id, quote["id"], quote["version"] - 1), quote)


def get_focus_csv(session: Reader, tenant_id: str, quote_id: str, version: int = NEWEST) -> str:
    """Returns the charges of a version as CSV in the columns of FOCUS. Refuses one without charges."""
    row = _get_version_row(session, tenant_id, quote_id, version)
    if row.focus is not None:
        return row.focus
    gap = next(gap for gap in from_json(row.document)["gaps"] if gap["pointer"] == "/focus_digest")
    raise QuoteNotExportable(gap["detail"], FieldError("", gap["code"], gap["detail"]))


def lock_version(session: Writer, tenant_id: str, quote_id: str, version: int = NEWEST) -> QuoteRow:
    """Returns a version of a quote, with all versions locked until the transaction ends."""
    repository.lock_quote(session, tenant_id, quote_id)
    return _get_version_row(session, tenant_id, quote_id, version)


def list_summaries(
    session: Reader | Writer, tenant_id: str, quote_ids: Collection[str]
) -> list[dict[str, Any]]:
    """Returns the list representations of every version of some quotes."""
    return [to_summary(row) for row in repository.list_all_versions(session, tenant_id, quote_ids)]


def list_newest(session: Reader, tenant_id: str, limit: int) -> list[dict[str, Any]]:
    """Returns the list representations of the newest versions, the last frozen first."""
    rows = repository.list_page(
        session, tenant_id, states=(), operations=(), cost_centers=(), after=None, limit=limit
    )
    return [to_summary(row) for row in rows]


def find_names(session: Reader, tenant_id: str, quote_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of quotes by their ids, each as its newest version has it."""
    rows = repository.list_all_versions(session, tenant_id, quote_ids)
    return {row.id: row.name for row in sorted(rows, key=lambda row: row.version)}


def list_exports(
    session: Reader | Writer, tenant_id: str, quote_ids: Collection[str]
) -> list[tuple[dict[str, Any], str | None]]:
    """Returns the list representations of every version, with their charges as FOCUS CSV."""
    rows = repository.list_all_versions(session, tenant_id, quote_ids, with_charges=True)
    return [(to_summary(row), row.focus) for row in rows]


def set_state(session: Writer, row: QuoteRow, state: str) -> None:
    """Changes the state of a locked version. Refuses a change that is not allowed."""
    if state not in _MOVES[row.state]:
        raise QuoteStateConflict(f"a version that is {row.state} cannot become {state}")
    row.state = state
    session.flush()


def check_integrity(
    session: Reader | Writer, tenant_id: str, quote_id: str, version: int, content_digest: str
) -> None:
    """Refuses a version whose stored content does not match its digest."""
    row = _get_version_row(session, tenant_id, quote_id, version)
    if row.content_digest != content_digest or not is_intact(row):
        raise QuoteNotAsFrozen


def list_audit_documents(session: Reader | Writer, tenant_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every version with its audit id and its immutable columns."""
    return (
        (build_resource_id(row), to_audit_columns(row))
        for row in repository.iterate_all_versions(session, tenant_id)
    )


def list_version_states(session: Reader | Writer, tenant_id: str) -> Iterator[tuple[str, int, str, str]]:
    """Yields id, version, state and content digest of every version."""
    return repository.list_version_states(session, tenant_id)
