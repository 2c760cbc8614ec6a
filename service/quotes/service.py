"""The rules of quotes: a version is frozen once, and only its state moves."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from pydantic import MISSING
from pydantic_core import from_json

from service.audit.service import Change
from service.catalog.service import version as catalog_version
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.problems import FieldError, NotFound, Unprocessable
from service.kit.http.web import from_state
from service.kit.security.subjects import SHIPPED_TENANT
from service.plans.service import candidate
from service.quotes import documents, repository
from service.quotes.compare import compared
from service.quotes.documents import frozen_columns, holds, place, summary_of, whole
from service.quotes.errors import (
    PlanNotQuotable,
    QuoteChanged,
    QuoteNotAsFrozen,
    QuoteNotExportable,
    QuoteNotFound,
    QuotePending,
    QuoteStateConflict,
)
from service.quotes.freeze import QUESTIONS, Asked, Frozen, freeze, owns_devices, projected, request_of
from service.quotes.schemas import (
    NEWEST,
    CandidateQuoteInput,
    QuoteComparison,
    QuoteComparisonQuery,
    QuoteInput,
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
from service.schemas.base import Source

__all__ = [
    "Freezing",
    "Frozen",
    "QuoteFreezing",
    "QuoteRow",
    "QuoteStateConflict",
    "add_version",
    "check_frozen",
    "compare",
    "create",
    "exported",
    "focus",
    "get",
    "locked",
    "recorded",
    "set_state",
    "states",
    "summaries",
    "summary_of",
    "whole",
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
"""Where the state of a version may move; whoever was refused asks with another version."""


class Freezing:
    """Freezes what is asked under the catalog as it is now, outside of any transaction of a write."""

    def __init__(
        self,
        database: Database,
        snapshots: SnapshotStore,
        has_cost_center: Callable[[Reader, str, str], bool],
    ) -> None:
        self._database = database
        self._has_cost_center = has_cost_center
        self._snapshots = snapshots

    def of(self, tenant_id: str, body: QuoteInput, at: str = "") -> Frozen:
        """What a body asks for; what is wrong with it is named below ``at``."""
        with self._database.reading() as session:
            asked = asked_of(session, tenant_id, body, at)
            payer = asked.cost_center_id
            if payer is not None and not self._has_cost_center(session, tenant_id, payer):
                fault = FieldError(
                    f"{at}/cost_center_id", "UNKNOWN_REFERENCE", "there is no such cost centre"
                )
                raise Unprocessable("A member refers to no row", fault)
        return self._frozen(tenant_id, asked)

    def again(self, tenant_id: str, quote_id: str, version: int | None = None) -> Frozen:
        """What the newest version of a quote asks for; refuses one that is not the ``version`` meant."""
        with self._database.reading() as session:
            asked = asked_again(session, tenant_id, quote_id)
        if version not in (None, asked.version):
            raise QuoteChanged
        return self._frozen(tenant_id, asked)

    def _frozen(self, tenant_id: str, asked: Asked) -> Frozen:
        return freeze(asked, self._snapshots.newest(tenant_id), partial(self._rows, tenant_id))

    def _rows(self, tenant_id: str, sources: Sequence[Source]) -> list[Mapping[str, Any]]:
        with self._database.reading() as session:
            return [_catalog_row(session, tenant_id, source) for source in sources]


QuoteFreezing = Annotated[Freezing, from_state("freezing")]


def _catalog_row(session: Reader, tenant_id: str, source: Source) -> Mapping[str, Any]:
    owner = SHIPPED_TENANT if source["origin"] == "shipped" else tenant_id
    row = catalog_version(session, source["kind"], owner, source["id"], source["version"])
    if row is None:
        raise LookupError(
            f"there is no version {source['version']} of a {source['kind']} that an answer rests on"
        )
    return row


def asked_of(session: Reader, tenant_id: str, body: QuoteInput, at: str = "") -> Asked:
    """What a body ``at`` a place of the request asks for; requests of a plan's row as the plan has them."""
    cost_center_id = None if body.cost_center_id is MISSING else body.cost_center_id
    note = None if body.note is MISSING else body.note
    if isinstance(body, CandidateQuoteInput):
        asked = _asked_of_plan(session, tenant_id, body, at)
        return asked._replace(cost_center_id=cost_center_id, note=note)
    return Asked(
        operation=body.operation,
        name=body.name,
        requests=projected(body.operation.replace("-", "_"), body.request),
        owns_devices=owns_devices(body.request),
        cost_center_id=cost_center_id,
        note=note,
        refused_at=f"{at}/request",
    )


def _asked_of_plan(session: Reader, tenant_id: str, body: CandidateQuoteInput, at: str) -> Asked:
    try:
        row = candidate(session, tenant_id, body.plan_id, body.candidate)
    except NotFound as missing:
        fault = FieldError(f"{at}/plan_id", "UNKNOWN_REFERENCE", missing.detail)
        raise Unprocessable("A member refers to no row", fault) from missing
    if row is None:
        raise PlanNotQuotable
    said = row["requests"]
    return Asked(
        operation="plan",
        name=body.name,
        requests={name: request_of(name, said[name]) for name in QUESTIONS if name in said},
        owns_devices=row["supply"]["kind"] == "owned",
        plan={"plan_id": body.plan_id, "candidate": body.candidate},
        planned=row,
        refused_at=f"{at}/candidate",
    )


def asked_again(session: Reader, tenant_id: str, quote_id: str) -> Asked:
    """What the newest version of a quote asks for."""
    row = _version(session, tenant_id, quote_id)
    document = from_json(row.document)
    said = document["requests"]
    requests = {name: request_of(name, said[name]) for name in QUESTIONS if name in said}
    return Asked(
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


def _version(session: Reader | Writer, tenant_id: str, quote_id: str, version: int = NEWEST) -> QuoteRow:
    row = repository.get(session, tenant_id, quote_id, version or None)
    if row is None:
        raise QuoteNotFound
    return row


def create(session: Writer, tenant_id: str, frozen: Frozen, created_by: str, *, days: int) -> Change:
    """Store the first version of a quote."""
    row = documents.row_of(frozen, tenant_id, created_by, days=days)
    return _stored(session, row)


def add_version(
    session: Writer, tenant_id: str, quote_id: str, frozen: Frozen, created_by: str, *, days: int
) -> Change:
    """Store the next version of a quote, of which no approval may be pending; a draft is superseded.

    What an earlier version asked for follows that version alone: with another one meanwhile, its question or
    its prices would go back to what they were.
    """
    newest = locked(session, tenant_id, quote_id)
    if frozen.asked.version not in (None, newest.version):
        raise QuoteChanged
    if newest.state == PENDING:
        raise QuotePending
    if newest.state == DRAFT:
        set_state(session, newest, SUPERSEDED)
    version = newest.version + 1
    row = documents.row_of(frozen, tenant_id, created_by, days=days, quote_id=newest.id, version=version)
    return _stored(session, row)


def _stored(session: Writer, row: QuoteRow) -> Change:
    session.add(row)
    session.flush()
    return Change(
        resource=f"quotes/{place(row)}",
        status=201,
        body=whole(row),
        headers={"Location": f"/v1/quotes/{row.id}"},
        after=frozen_columns(row),
    )


def get(session: Reader | Writer, tenant_id: str, quote_id: str, version: int = NEWEST) -> dict[str, Any]:
    """A version of a quote, whole; the newest unless one is named."""
    return whole(_version(session, tenant_id, quote_id, version))


def compare(session: Reader, tenant_id: str, quote_id: str, query: QuoteComparisonQuery) -> QuoteComparison:
    """A version of a quote beside the one before it, another version, or another quote."""
    after = get(session, tenant_id, quote_id, query.version)
    base = query.base_version
    if not query.base_id and base == NEWEST:
        base = max(1, after["version"] - 1)
    return compared(get(session, tenant_id, query.base_id or quote_id, base), after)


def focus(session: Reader, tenant_id: str, quote_id: str, version: int = NEWEST) -> str:
    """The charges of a version as CSV in the columns of FOCUS; refuses one that has none."""
    row = _version(session, tenant_id, quote_id, version)
    if row.focus is not None:
        return row.focus
    gap = next(gap for gap in from_json(row.document)["gaps"] if gap["pointer"] == "/focus_digest")
    raise QuoteNotExportable(gap["detail"], FieldError("", gap["code"], gap["detail"]))


def locked(session: Writer, tenant_id: str, quote_id: str, version: int = NEWEST) -> QuoteRow:
    """A version of a quote, of which nobody else changes or adds any until the transaction ends."""
    repository.lock(session, tenant_id, quote_id)
    return _version(session, tenant_id, quote_id, version)


def summaries(session: Reader | Writer, tenant_id: str, quote_ids: Collection[str]) -> list[dict[str, Any]]:
    """Every version of some quotes, as lists show them."""
    return [summary_of(row) for row in repository.of_all(session, tenant_id, quote_ids)]


def exported(
    session: Reader | Writer, tenant_id: str, quote_ids: Collection[str]
) -> list[tuple[dict[str, Any], str | None]]:
    """The same with the charges of each, as CSV in the columns of FOCUS, where it has some."""
    rows = repository.of_all(session, tenant_id, quote_ids, with_charges=True)
    return [(summary_of(row), row.focus) for row in rows]


def set_state(session: Writer, row: QuoteRow, state: str) -> None:
    """Move the state of a version that is locked; refuses what no version does."""
    if state not in _MOVES[row.state]:
        raise QuoteStateConflict(f"a version that is {row.state} does not become {state}")
    row.state = state
    session.flush()


def check_frozen(
    session: Reader | Writer, tenant_id: str, quote_id: str, version: int, content_digest: str
) -> None:
    """Refuse a version of which what is stored is not what was frozen under a digest."""
    row = _version(session, tenant_id, quote_id, version)
    if row.content_digest != content_digest or not holds(row):
        raise QuoteNotAsFrozen


def recorded(session: Reader | Writer, tenant_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every version under the name that the audit has for it, with all of it that never moves."""
    return ((place(row), frozen_columns(row)) for row in repository.everything(session, tenant_id))


def states(session: Reader | Writer, tenant_id: str) -> Iterator[tuple[str, int, str, str]]:
    """Id, version, state and content digest of everything that was ever frozen."""
    return repository.states(session, tenant_id)
