"""Every query of the catalog."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update
from sqlalchemy.orm import Session, aliased

from service.catalog.rows import VERSION_COLUMNS, CatalogRow, Document, Noun
from service.catalog.tables import CatalogState
from service.kit.clock import now
from service.kit.database import Reader, Writer


class Stored(NamedTuple):
    """The current version of a row: its document, derived members, and what the service added."""

    document: Document
    version: int
    deleted: bool
    origin: str

    @property
    def is_live(self) -> bool:
        """Whether the current version is not a tombstone."""
        return not self.deleted


def _document(row: CatalogRow) -> Document:
    columns = row.__table__.columns.keys()
    values = {name: getattr(row, name) for name in columns if name != "deleted"}
    return {name: value for name, value in values.items() if value is not None}


def revision(session: Session) -> int:
    """The catalog revision; 0 before the first load."""
    return session.scalars(select(CatalogState.revision)).one()


def page_token_key(session: Session) -> bytes:
    """The key that signs page tokens."""
    return session.scalars(select(CatalogState.page_token_key)).one()


def locked_state(session: Writer) -> CatalogState:
    """The state row, locked until the transaction ends."""
    return session.scalars(select(CatalogState).with_for_update()).one()


def next_revision(session: Writer) -> int:
    """Take the next revision; the row stays locked until the transaction ends."""
    statement = (
        update(CatalogState)
        .values(revision=CatalogState.revision + 1, updated_at=now())
        .returning(CatalogState.revision)
    )
    return session.execute(statement).scalar_one()


def set_shipped_digest(session: Writer, digest: str) -> None:
    """Remember which shipped rows are loaded."""
    session.execute(update(CatalogState).values(shipped_digest=digest))


def current(session: Session, noun: Noun, row_id: str) -> Stored | None:
    """The current version of a row, tombstones included; None if there never was one."""
    table = noun.table
    statement = select(table).where(table.id == row_id).order_by(table.version.desc()).limit(1)
    row = session.scalars(statement).first()
    return None if row is None else Stored(_document(row), row.version, row.deleted, row.origin)


def _is_current(table: type[CatalogRow]) -> ColumnElement[bool]:
    newer = aliased(table)
    latest = select(func.max(newer.version)).where(newer.id == table.id).scalar_subquery()
    return and_(table.version == latest, table.deleted.is_(False))


def all_current(session: Session, noun: Noun) -> Iterator[Document]:
    """Every live row, by id."""
    statement = select(noun.table).where(_is_current(noun.table)).order_by(noun.table.id)
    return map(_document, session.scalars(statement))


def insert_version(session: Writer, noun: Noun, document: Mapping[str, Any], **added: object) -> None:
    """Append a version; members that the document leaves out are stored as NULL."""
    names = noun.table.__table__.columns.keys()
    values = {name: document.get(name) for name in names if name not in VERSION_COLUMNS}
    values |= {"deleted": False, "aliases": document.get("aliases", []), "created_at": now()}
    session.execute(insert(noun.table).values({**values, **added}))


def _filter(table: type[CatalogRow], name: str, value: object) -> ColumnElement[bool]:
    if name.startswith("min_"):
        return _condition(getattr(table, name.removeprefix("min_")) >= value)
    if name.startswith("max_"):
        return _condition(getattr(table, name.removeprefix("max_")) <= value)
    column = getattr(table, name)
    return _condition(column.in_(value))


def _condition(expression: Any) -> ColumnElement[bool]:  # noqa: ANN401
    """Give a comparison made by a column's name its type."""
    typed: ColumnElement[bool] = expression
    return typed


def page(
    session: Reader,
    noun: Noun,
    filters: Mapping[str, object],
    *,
    order_by: str,
    after: Sequence[str],
    limit: int,
) -> list[Document]:
    """Live rows that match every filter, behind the key ``after``, ties broken by id."""
    table, descending = noun.table, order_by.startswith("-")
    columns = [getattr(table, order_by.removeprefix("-")), table.id]
    statement = select(table).where(_is_current(table))
    for name, value in filters.items():
        statement = statement.where(_filter(table, name, value))
    if after:
        first, second = columns
        ahead = first < after[0] if descending else first > after[0]
        tied = second < after[1] if descending else second > after[1]
        statement = statement.where(or_(ahead, and_(first == after[0], tied)))
    ordered = [column.desc() if descending else column.asc() for column in columns]
    return [_document(row) for row in session.scalars(statement.order_by(*ordered).limit(limit))]


def referring_id(session: Session, noun: Noun, member: str, row_id: str) -> str | None:
    """Id of a live row of ``noun`` whose ``member`` is ``row_id``."""
    table = noun.table
    column = getattr(table, member)
    statement = select(table.id).where(_is_current(table), column == row_id).limit(1)
    return session.scalar(statement)
