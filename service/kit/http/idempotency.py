"""Writes that happen once however often they are sent: the Idempotency-Key header.

The first answer is stored in the transaction of its write, so that a crash keeps both or neither. Refusals
are not stored, because the same request may be accepted later.
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic_core import to_jsonable_python
from sqlalchemy import ColumnElement, Integer, LargeBinary, String, and_, delete, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.kit.clock import now
from service.kit.database.engine import Base, Json, UtcDateTime, Writer, insert_new
from service.kit.http.problems import Conflict, FieldError, Unprocessable

KEPT = timedelta(hours=24)
"""Time during which a stored answer is returned again."""


class KeyInUse(Conflict):
    """The first request with this Idempotency-Key is still being answered."""

    code, title = "IDEMPOTENCY_KEY_IN_USE", "The first request with this Idempotency-Key is not answered yet"


class KeyReused(Unprocessable):
    """The Idempotency-Key was sent before, with another request."""

    code, title = "IDEMPOTENCY_KEY_REUSED", "The Idempotency-Key belongs to another request"


class IdempotencyKeyRow(Base):
    """One key of one subject on one operation, and the stored answer to its write."""

    __tablename__ = "idempotency_keys"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    subject: Mapped[str] = mapped_column(String(300), primary_key=True)
    operation: Mapped[str] = mapped_column(String(100), primary_key=True)
    key_digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    request_digest: Mapped[str] = mapped_column(String(64))
    status: Mapped[int] = mapped_column(Integer)
    headers: Mapped[dict[str, str]] = mapped_column(Json)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)


class StoredKey(NamedTuple):
    """Identity of a stored key: tenant, subject, operation and digest of the key."""

    tenant_id: str
    subject: str
    operation: str
    key_digest: str


class StoredAnswer(NamedTuple):
    """An answer that was given before."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def digest_json(value: object) -> str:
    """Returns the digest of a JSON value, independent of the order of its members."""
    canonical = json.dumps(to_jsonable_python(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _match_key(key: StoredKey) -> ColumnElement[bool]:
    return and_(*(getattr(IdempotencyKeyRow, name) == value for name, value in key._asdict().items()))


def begin_request(session: Writer, key: StoredKey, request_digest: str) -> StoredAnswer | None:
    """Returns the answer stored under ``key``, or None for the first request with it.

    Waits for a transaction of another process that holds the same key.
    """
    time = now()
    session.execute(delete(IdempotencyKeyRow).where(_match_key(key), IdempotencyKeyRow.expires_at <= time))
    draft = {"request_digest": request_digest, "status": 0, "headers": {}, "body": b""}
    if insert_new(session, IdempotencyKeyRow, **key._asdict(), **draft, expires_at=time + KEPT):
        return None
    return _to_stored_answer(
        session.execute(select(IdempotencyKeyRow).where(_match_key(key))).scalar_one(), request_digest
    )


def find_answer(session: Session, key: StoredKey, request_digest: str) -> StoredAnswer | None:
    """Returns the answer stored under ``key``, if there is one, without waiting or claiming the key."""
    alive = select(IdempotencyKeyRow).where(_match_key(key), IdempotencyKeyRow.expires_at > now())
    row = session.scalars(alive).one_or_none()
    return None if row is None else _to_stored_answer(row, request_digest)


def _to_stored_answer(row: IdempotencyKeyRow, request_digest: str) -> StoredAnswer:
    if row.request_digest != request_digest:
        detail = "was sent before with another request"
        raise KeyReused("", FieldError("/header/Idempotency-Key", "REUSED", detail))
    return StoredAnswer(row.status, row.headers, row.body)


def store_answer(session: Writer, key: StoredKey, answer: StoredAnswer) -> None:
    """Stores the first answer."""
    values = {"status": answer.status, "headers": dict(answer.headers), "body": answer.body}
    session.execute(update(IdempotencyKeyRow).where(_match_key(key)).values(values))


def delete_expired(session: Writer) -> int:
    """Deletes expired answers and returns their number."""
    statement = delete(IdempotencyKeyRow).where(IdempotencyKeyRow.expires_at <= now())
    return len(session.execute(statement.returning(IdempotencyKeyRow.key_digest)).all())


class RunningKeys:
    """Keys whose first request this process is answering."""

    def __init__(self) -> None:
        self._keys: set[StoredKey] = set()
        self._lock = threading.Lock()

    @contextmanager
    def lock_key(self, key: StoredKey) -> Iterator[None]:
        """Holds ``key`` for the block; raises :class:`KeyInUse` if it is held already."""
        with self._lock:
            if key in self._keys:
                raise KeyInUse(headers={"Retry-After": "1"})
            self._keys.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._keys.discard(key)
