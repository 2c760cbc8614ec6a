"""Stored writes: one transaction each, executed once and recorded in the chain of its tenant."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Depends, Header, Query, Request, Response
from pydantic import BaseModel, BeforeValidator
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from service.audit import repository
from service.audit.chain import (
    REDACTION,
    ChainVerdict,
    compute_event_hash,
    compute_seal,
    salt_subject,
    verify_chain,
)
from service.audit.tables import AuditEventRow
from service.kit.clock import now
from service.kit.database.engine import LATER, Base, Database, Reader, Writer
from service.kit.database.failures import follow_commit
from service.kit.http import idempotency
from service.kit.http.idempotency import RunningKeys, StoredAnswer, StoredKey
from service.kit.http.pages import Cursor, Order, Page, PageQuery, PageTokens
from service.kit.http.web import from_state
from service.kit.security.keyring import Keyring
from service.kit.security.principals import Principal, build_service_subject

REPLAYED = "Idempotency-Replayed"
"""Header that marks a repeated answer."""
_SEAL = "audit seal"


def _parse_boolean(value: object) -> object:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError("true or false")


IdempotencyKey = Annotated[
    str,
    Header(
        max_length=255,
        pattern=r"^[\x21-\x7e]*$",
        description="A repeated request with the same key within 24 hours gets the first answer again.",
    ),
]
ValidateOnly = Annotated[
    bool,
    BeforeValidator(_parse_boolean),
    Query(description="Runs all checks and answers as if the write had been done, but stores nothing."),
]


class WriteContext(NamedTuple):
    """Context of a stored write from its request."""

    subject: Principal
    operation: str
    path: str
    request_id: str
    idempotency_key: str = ""
    validate_only: bool = False


async def _build_call(
    request: Request, *, idempotency_key: IdempotencyKey = "", validate_only: ValidateOnly = False
) -> WriteContext:
    state = request.scope["state"]
    return WriteContext(
        subject=state["subject"],
        operation=request.scope["route"].name,
        path=request.scope["path"],
        request_id=state["request_id"],
        idempotency_key=idempotency_key,
        validate_only=validate_only,
    )


WriteContextDependency = Annotated[WriteContext, Depends(_build_call)]


async def _get_caller(request: Request) -> Principal:
    subject: Principal = request.scope["state"]["subject"]
    return subject


Caller = Annotated[Principal, Depends(_get_caller)]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """Outcome of a write: its answer, and the resource before and after.

    The event goes to the chain of ``tenant_id``, by default that of the subject. ``headers`` are sent only if
    something is stored. ``once`` is added to the first answer only and never stored. ``also`` are other
    changes of the write, recorded before it. ``state`` is the complete stored state of the resource, if
    ``after`` has less; see :mod:`service.audit.records`. ``by_service`` is the name of an operation that the
    service itself performed during the write, such as the expiry of a deadline.
    """

    resource: str
    status: int = 200
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    before: object = None
    after: object = None
    state: object = None
    once: Mapping[str, Any] = field(default_factory=dict)
    tenant_id: str = ""
    also: tuple["WriteOutcome", ...] = ()
    by_service: str = ""


def _ignore_subject(_session: Writer, _subject: Principal) -> None:
    """Default of ``note_subject``, which records nothing."""


class Writes:
    """Executor of the stored writes of one database.

    ``note_subject`` is called with the writer before each.
    """

    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        note_subject: Callable[[Writer, Principal], WriteOutcome | None] = _ignore_subject,
    ) -> None:
        self._database = database
        self._note_subject = note_subject
        self._seal_key = keyring.derive_key(_SEAL)
        self._running = RunningKeys()

    def run(self, call: WriteContext, sent: object, do: Callable[[Writer], WriteOutcome]) -> Response:
        """Executes a write. ``sent`` identifies its request among others with the same key."""
        key = _build_key(call)
        with self._running.lock_key(key) if key else nullcontext(), self._database.open_writer() as session:
            if key:
                kept = idempotency.begin_request(session, key, idempotency.digest_json([call.path, sent]))
                if kept:
                    return _build_replay(kept)
            noted = self._note_subject(session, call.subject)
            change = do(session)
            if call.validate_only:
                session.rollback()
                return _build_response(StoredAnswer(change.status, {}, _render_body(change)))
            if noted is not None:
                self.record(session, call._replace(operation="note_identity"), noted)
            self.record(session, call, change)
            answer = StoredAnswer(change.status, change.headers, _render_body(change))
            if key:
                idempotency.store_answer(session, key, answer)
        return _build_response(answer._replace(body=_render_body(change, change.once)))

    def replayed(self, call: WriteContext, sent: object) -> Response | None:
        """Returns the earlier answer to a write, for requests that do work before their transaction.

        The state may have changed since, so that the same work would be refused.
        """
        key = _build_key(call)
        if key is None:
            return None
        with self._database.open_reader() as session:
            kept = idempotency.find_answer(session, key, idempotency.digest_json([call.path, sent]))
        return None if kept is None else _build_replay(kept)

    def keep_answer(self, call: WriteContext, sent: object, body: bytes) -> Response:
        """Answers a request that changes nothing, so that its key repeats the answer. Records no event.

        Returns the earlier answer if an equal request was answered meanwhile.
        """
        answer, key = StoredAnswer(200, {}, body), _build_key(call)
        if key is None:
            return _build_response(answer)
        with self._running.lock_key(key), self._database.open_writer() as session:
            kept = idempotency.begin_request(session, key, idempotency.digest_json([call.path, sent]))
            if kept:
                return _build_replay(kept)
            idempotency.store_answer(session, key, answer)
        return _build_response(answer)

    def record(self, session: Writer, call: WriteContext, change: WriteOutcome) -> None:
        """Appends the events of a write to the chain of its tenant."""
        for other in change.also:
            self.record(session, call, other)
        if change.by_service:
            own = build_service_subject(call.subject.tenant_id)
            call = call._replace(subject=own, operation=change.by_service)
        subject = call.subject
        tenant_id = change.tenant_id or subject.tenant_id
        head = repository.lock_head(session, tenant_id)
        salt, subject_digest = salt_subject(subject.id)
        event = AuditEventRow(
            tenant_id=tenant_id,
            sequence=head.sequence + 1,
            occurred_at=now(),
            operation=call.operation,
            resource=change.resource,
            subject_kind=subject.kind,
            subject_id=subject.id,
            subject_salt=salt,
            subject_digest=subject_digest,
            request_id=call.request_id,
            before_digest=_digest(change.before),
            after_digest=_digest(change.after),
            state_digest=_digest(change.state),
            previous_hash=head.hash,
        )
        event.hash = compute_event_hash(event)
        head.sequence, head.hash = event.sequence, event.hash
        head.seal = compute_seal(self._seal_key, event.tenant_id, event.sequence, event.hash)
        session.add(event)
        session.flush()

    def record_own_change(
        self, session: Writer, tenant_id: str, operation: str, change: WriteOutcome
    ) -> None:
        """Appends an operation of the service itself, such as the expiry of a deadline."""
        self.record(session, WriteContext(build_service_subject(tenant_id), operation, "", ""), change)

    def verify_chain(self, session: Reader, tenant_id: str) -> ChainVerdict:
        """Verifies the chain of a tenant."""
        head = repository.get_head(session, tenant_id)
        with repository.stream_events(session, tenant_id) as events:
            return verify_chain(tenant_id, events, head, self._seal_key)


_Prepared = TypeVar("_Prepared")


@dataclass(frozen=True, slots=True)
class TransactionSource:
    """Transactions of one database for handlers. ``after_write`` is called after each stored write."""

    database: Database
    writes: Writes
    tokens: PageTokens
    after_write: Callable[[], None] = lambda: None

    def open_reader(self) -> AbstractContextManager[Reader]:
        """Opens a read transaction."""
        return self.database.open_reader()

    def open_writer(self) -> AbstractContextManager[Writer]:
        """Opens a write transaction outside of stored writes, which records only explicit changes."""
        return self.database.open_writer()


Transactions = Annotated[TransactionSource, from_state("transactions")]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request that stores nothing, with its read transactions."""

    transactions: TransactionSource
    subject: Principal

    @property
    def tenant_id(self) -> str:
        """Tenant of the caller."""
        return self.subject.tenant_id

    def session(self) -> AbstractContextManager[Reader]:
        """Opens a read transaction."""
        return self.transactions.open_reader()

    def page(self, query: PageQuery, order: Order[Cursor], name: str, *filters: object) -> Page[Cursor]:
        """Returns the page of a list for ``query``. ``filters`` are all other parameters of the list."""
        return self.transactions.tokens.begin(query, order, name, self.tenant_id, *filters)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request that stores something, with its transactions."""

    transactions: TransactionSource
    call: WriteContext

    @property
    def subject(self) -> Principal:
        """Subject of the write."""
        return self.call.subject

    @property
    def tenant_id(self) -> str:
        """Tenant of the caller."""
        return self.call.subject.tenant_id

    def run(self, sent: object, do: Callable[[Writer], WriteOutcome]) -> Response:
        """Executes the write. ``sent`` is the body, in a list with other values that identify the request."""
        response = self.transactions.writes.run(self.call, _plain(sent), do)
        follow_commit(self.transactions.after_write)
        return response

    async def replayed(self, sent: object) -> Response | None:
        """Returns the earlier answer to the write, or None."""
        if not self.call.idempotency_key:
            return None
        find = self.transactions.writes.replayed
        return await run_in_threadpool(lambda: find(self.call, _plain(sent)))

    async def keep_answer(self, sent: object, body: bytes) -> Response:
        """Answers without a write. Under a key the answer is kept, or an earlier one is given again."""
        if not self.call.idempotency_key:
            return _build_response(StoredAnswer(200, {}, body))
        keep = self.transactions.writes.keep_answer
        return await run_in_threadpool(lambda: keep(self.call, _plain(sent), body))

    async def run_prepared(
        self,
        sent: object,
        aside: Callable[[Callable[[], _Prepared]], Awaitable[_Prepared]],
        prepare: Callable[[], _Prepared],
        do: Callable[[Writer, _Prepared], WriteOutcome],
    ) -> Response:
        """Executes a write with a long preparation, which is skipped if an answer already exists."""
        answered = await self.replayed(sent)
        if answered is not None:
            return answered
        prepared = await aside(prepare)
        return await run_in_threadpool(self.run, sent, lambda session: do(session, prepared))


def write_from(name: str) -> Any:  # noqa: ANN401
    """Returns a dependency on a write in the transactions at ``name`` of the application's state."""

    async def bind(
        call: WriteContextDependency, transactions: Annotated[TransactionSource, from_state(name)]
    ) -> WriteRequest:
        return WriteRequest(transactions, call)

    return Depends(bind)


async def _read(caller: Caller, transactions: Transactions) -> ReadRequest:
    return ReadRequest(transactions, caller)


Read = Annotated[ReadRequest, Depends(_read)]
Write = Annotated[WriteRequest, write_from("transactions")]


def _plain(sent: object) -> object:
    """Returns a request as JSON values for its digest."""
    if isinstance(sent, BaseModel):
        return sent.model_dump(mode="json")
    return [_plain(part) for part in sent] if isinstance(sent, list) else sent


_HIDDEN = frozenset({"tenant_id", "subject_salt", "subject_digest"})


def event_to_response(row: AuditEventRow) -> dict[str, Any]:
    """Returns the representation of an event."""
    names = [column.key for column in row.__table__.columns if column.key not in _HIDDEN]
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def list_history(session: Reader | Writer, tenant_id: str, resource: str) -> list[dict[str, Any]]:
    """Returns the events of one resource, in order."""
    return [event_to_response(row) for row in repository.list_resource_events(session, tenant_id, resource)]


def list_writers(session: Reader | Writer, tenant_id: str, resource: str) -> list[str]:
    """Returns the names of the subjects that have written a resource, in order."""
    events = list_history(session, tenant_id, resource)
    return [f"{event['subject_kind']}:{event['subject_id']}" for event in events if "subject_id" in event]


def find_deviations(
    session: Reader,
    tenant_id: str,
    collection: str,
    documents: Iterable[tuple[str, object]],
    added: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """Yields the resources of a collection that differ from their last event, each with a code.

    ``documents`` are all existing ones by id. Resources that a redaction deleted are not missing. ``added``
    are members that events of an earlier version lack: new documents have them and cannot pass for older
    ones.
    """
    prefix = f"{collection}/"
    last = repository.get_last_states(session, tenant_id, prefix, REDACTION)
    recorded = {
        name: state.after_digest for name, state in last.items() if "/" not in name.removeprefix(prefix)
    }
    for row_id, document in documents:
        resource = f"{collection}/{row_id}"
        if resource not in recorded:
            yield resource, "NOT_RECORDED"
            continue
        digest = recorded.pop(resource)
        if digest == _digest(document):
            continue
        is_older = bool(added) and digest == _digest(_drop_members(document, added))
        yield resource, "RECORDED_IN_PART" if is_older else "CHANGED"
    yield from ((resource, "MISSING") for resource, digest in recorded.items() if digest is not None)


def _drop_members(document: object, names: Collection[str]) -> object:
    """Returns a document without some members, at any depth."""
    if isinstance(document, Mapping):
        return {name: _drop_members(value, names) for name, value in document.items() if name not in names}
    return [_drop_members(each, names) for each in document] if isinstance(document, list) else document


def to_audit_columns(row: Base) -> dict[str, Any]:
    """Returns all stored columns of a row, including hidden ones."""
    columns = ((column.key, getattr(row, column.key), column.info) for column in row.__table__.columns)
    values = ((name, value) for name, value, info in columns if value is not None or info != LATER)
    return {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in values}


def compute_document_digest(document: object) -> str:
    """Returns the digest of a resource for an event."""
    return idempotency.digest_json(document)


def _build_key(call: WriteContext) -> StoredKey | None:
    if not call.idempotency_key or call.validate_only:
        return None
    subject = f"{call.subject.kind}:{call.subject.id}"
    return StoredKey(
        call.subject.tenant_id, subject, call.operation, idempotency.digest_json(call.idempotency_key)
    )


def _digest(value: object) -> str | None:
    return None if value is None else idempotency.digest_json(value)


def _render_body(change: WriteOutcome, once: Mapping[str, Any] | None = None) -> bytes:
    return b"" if change.body is None else to_json({**change.body, **(once or {})})


def _build_replay(answer: StoredAnswer) -> Response:
    return _build_response(answer._replace(headers={**answer.headers, REPLAYED: "true"}))


def _build_response(answer: StoredAnswer) -> Response:
    media_type = "application/json" if answer.body else None
    return Response(answer.body, answer.status, headers=dict(answer.headers), media_type=media_type)
