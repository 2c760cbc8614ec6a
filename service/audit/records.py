"""Comparison of recorded tables with the audit chain."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.audit import repository
from service.audit.chain import REDACTION
from service.audit.service import compute_document_digest
from service.kit.database.engine import Base, Reader

CHANGED: Final = "CHANGED"
MISSING: Final = "MISSING"
NOT_RECORDED: Final = "NOT_RECORDED"
RECORDED_IN_PART: Final = "RECORDED_IN_PART"
GONE_UNRECORDED: Final = "GONE_UNRECORDED"
REGISTERED_LATER: Final = "REGISTERED_LATER"

GAPS: Final[Mapping[str, str]] = {
    RECORDED_IN_PART: "their last events come from an earlier version and do not cover all stored columns",
    GONE_UNRECORDED: "they are missing, and an earlier version removed expired rows without an event",
    REGISTERED_LATER: "they are older than the register of tenants: earlier removals are not found",
}
"""Gaps of the verification that are no faults, because events of earlier versions lack the data."""

Deviation = tuple[str, str]
"""A resource that differs from its last event, and a code."""
RecordCheck = Callable[[Reader, str], Iterable[Deviation]]
"""Returns the deviations of a tenant's stored rows from their records."""


class CheckedTables(NamedTuple):
    """Tables and the function that compares them with the chain."""

    tables: tuple[type[Base], ...]
    check: RecordCheck


class OwnedRows(NamedTuple):
    """Rows of another table that are recorded with their owner, and the columns that link them."""

    table: type[Base]
    by: Mapping[str, str]
    """Column of the owned row to column of its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTable:
    """A table whose events cover every column, except for columns that change without a write.

    A write of such a row passes :meth:`build_state` to the event as ``Change.state``. Empty columns are left
    out, so that a new column changes no digest.
    """

    table: type[Base]
    resource: Callable[[Any], str]
    """Returns the resource name of a row."""
    moving: Mapping[str, str] = field(default_factory=dict)
    """Columns that no event covers, with the reason why each has no influence on decisions."""
    owned: tuple[OwnedRows, ...] = ()

    def build_state(self, session: Session, row: Base) -> dict[str, Any]:
        """Returns the state of a row that an event covers."""
        parts = {one.table.__tablename__: self._list_owned_rows(session, row, one) for one in self.owned}
        return {**to_audit_document(row, self.moving), **parts}

    @staticmethod
    def _list_owned_rows(session: Session, row: Base, owned: OwnedRows) -> list[dict[str, Any]]:
        table = owned.table
        own = (getattr(table, name) == getattr(row, of) for name, of in owned.by.items())
        found = select(table).where(*own).order_by(*table.__table__.primary_key)
        rows = session.scalars(found, execution_options={"populate_existing": True})
        return [to_audit_document(one) for one in rows]

    def find_deviations(self, session: Reader, tenant_id: str) -> Iterator[Deviation]:
        """Yields the rows of a tenant that differ from their last events, and the missing ones."""
        shape = self._build_shape()
        last = repository.get_last_states(session, tenant_id, f"{shape[0]}/", REDACTION)
        recorded = {name: state for name, state in last.items() if _parse_shape(name) == shape}
        own = select(self.table).where(_get_column(self.table, "tenant_id") == tenant_id)
        for row in session.scalars(own.order_by(*self.table.__table__.primary_key)).all():
            resource = self.resource(row)
            code = self._find_deviation_code(session, row, recorded.pop(resource, None))
            if code is not None:
                yield resource, code
        for resource, state in recorded.items():
            if state.state_digest is not None:
                yield resource, MISSING
            elif state.after_digest is not None:
                yield resource, GONE_UNRECORDED

    def _find_deviation_code(
        self, session: Reader, row: Base, last: repository.LastEvent | None
    ) -> str | None:
        """Returns the code of the deviation of an existing row, or None."""
        if last is None:
            return NOT_RECORDED
        if last.state_digest is None:
            return CHANGED if last.after_digest is None else RECORDED_IN_PART
        return (
            None if last.state_digest == compute_document_digest(self.build_state(session, row)) else CHANGED
        )

    def _build_shape(self) -> tuple[str, ...]:
        names = {column.key: "" for column in self.table.__table__.columns}
        return _parse_shape(self.resource(_PlaceholderRow(names)))


class _PlaceholderRow:
    """A row with empty text in every column, from which the form of a resource name is derived."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.__dict__.update(names)


def _parse_shape(resource: str) -> tuple[str, ...]:
    """Returns the fixed parts of a resource's name, every second one, and the number of parts."""
    parts = resource.split("/")
    return (*parts[::2], str(len(parts)))


def _get_column(table: type[Base], name: str) -> Any:  # noqa: ANN401
    return getattr(table, name)


def list_recorded_resources(session: Reader, tenant_id: str, collection: str) -> set[str]:
    """Returns the resources of a collection that a tenant's chain names."""
    return set(repository.get_last_states(session, tenant_id, f"{collection}/", REDACTION))


def list_operation_resources(session: Reader, tenant_id: str, operation: str) -> list[str]:
    """Returns the distinct resources of an operation."""
    return repository.list_operation_resources(session, tenant_id, operation)


def has_chain(session: Session, tenant_id: str) -> bool:
    """Returns true if a tenant has recorded events."""
    return repository.get_head(session, tenant_id) is not None


def to_audit_document(row: Base, without: Iterable[str] = ()) -> dict[str, Any]:
    """Returns the columns of a row as JSON values: times in UTC, bytes as hexadecimal digits."""
    left_out = set(without)
    names = (name for name in row.__table__.columns.keys() if name not in left_out)  # noqa: SIM118
    return {name: _to_plain_value(value) for name in names if (value := getattr(row, name)) is not None}


def _to_plain_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value.hex() if isinstance(value, bytes) else value
