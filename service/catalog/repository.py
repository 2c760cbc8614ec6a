"""Queries of the catalog."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session, aliased

from service.catalog.registry import Resource
from service.catalog.rows import (
    VERSION_COLUMNS,
    CatalogRow,
    RowDocument,
    build_aliases_condition,
    build_letters,
)
from service.catalog.tables import CatalogState
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer, insert_new
from service.kit.database.search import build_search, join_members, list_texts
from service.kit.security.principals import SHIPPED_TENANT


class StoredRow(NamedTuple):
    """Current version of a row: its document with derived members, and the columns that the service adds."""

    document: RowDocument
    version: int
    deleted: bool
    tenant_id: str

    @property
    def is_live(self) -> bool:
        """Returns true if the current version is not a tombstone."""
        return not self.deleted


_ADDED: Final = frozenset({"deleted", "tenant_id"})


def _select_rows(table: type[CatalogRow]) -> Select[Any]:
    """Selects the columns of a table: objects of its class take twice as long to build."""
    return select(*table.__table__.columns)


def _to_document(row: Row[Any]) -> RowDocument:
    document = {
        name: value
        for name, value in row._mapping.items()  # noqa: SLF001  # public in SQLAlchemy
        if value is not None and name not in _ADDED
    }
    document["origin"] = "shipped" if row.tenant_id == SHIPPED_TENANT else "tenant"
    return document


def get_revision(session: Session, tenant_id: str) -> int:
    """Returns the number of changes that a tenant sees: its own and those of the shipped rows."""
    seen = CatalogState.tenant_id.in_({tenant_id, SHIPPED_TENANT})
    return int(session.scalar(select(func.sum(CatalogState.revision)).where(seen)) or 0)


def list_own_revisions(session: Session) -> dict[str, int]:
    """Returns the number of changes of each owner's rows, those that changed last first."""
    columns = select(CatalogState.tenant_id, CatalogState.revision)
    found = session.execute(columns.order_by(CatalogState.updated_at.desc()))
    return {tenant_id: changes for tenant_id, changes in found}  # noqa: C416


def lock_shipped_state(session: Writer) -> CatalogState:
    """Returns the state of the shipped rows, locked until the transaction ends."""
    _open_state(session, SHIPPED_TENANT)
    statement = select(CatalogState).where(CatalogState.tenant_id == SHIPPED_TENANT)
    return session.scalars(statement.with_for_update()).one()


def _open_state(session: Writer, tenant_id: str) -> None:
    start = {"revision": 0, "shipped_digest": "", "updated_at": now()}
    insert_new(session, CatalogState, tenant_id=tenant_id, **start)


def take_next_revision(session: Writer, tenant_id: str) -> int:
    """Takes the next revision of a tenant, whose state stays locked until the transaction ends.

    The state of the shipped rows stays locked too, shared with other tenants: a load in between would make
    two states of one revision.
    """
    lock_rows(session, tenant_id)
    own = update(CatalogState).where(CatalogState.tenant_id == tenant_id)
    session.execute(own.values(revision=CatalogState.revision + 1, updated_at=now()))
    return get_revision(session, tenant_id)


def lock_rows(session: Writer, tenant_id: str) -> None:
    """Locks the rows of a tenant, and the shipped rows, until the transaction ends."""
    shipped = select(CatalogState.tenant_id).where(CatalogState.tenant_id == SHIPPED_TENANT)
    session.execute(shipped.with_for_update(read=True))
    _open_state(session, tenant_id)
    own = select(CatalogState.tenant_id).where(CatalogState.tenant_id == tenant_id)
    session.execute(own.with_for_update())


def get_current(session: Session, resource: Resource, tenant_id: str, row_id: str) -> StoredRow | None:
    """Returns the current version of a tenant's own row, tombstones included. None if it never existed."""
    table = resource.table
    mine = _select_rows(table).where(table.tenant_id == tenant_id, table.id == row_id)
    row = session.execute(mine.order_by(table.version.desc()).limit(1)).first()
    return None if row is None else StoredRow(_to_document(row), row.version, row.deleted, row.tenant_id)


def get_version(
    session: Session, resource: Resource, tenant_id: str, row_id: str, number: int
) -> RowDocument | None:
    """Returns one version of a tenant's own row."""
    table = resource.table
    one = (table.tenant_id == tenant_id, table.id == row_id, table.version == number)
    row = session.execute(_select_rows(table).where(*one)).first()
    return None if row is None else _to_document(row)


def get_visible(session: Session, resource: Resource, tenant_id: str, row_id: str) -> StoredRow | None:
    """Returns the live row that a tenant sees under an id: its own, or else the shipped row."""
    for owner in (tenant_id, SHIPPED_TENANT):
        stored = get_current(session, resource, owner, row_id)
        if stored is not None and stored.is_live:
            return stored
    return None


@cache
def _is_current(table: type[CatalogRow]) -> ColumnElement[bool]:
    newer = aliased(table)
    same = and_(newer.tenant_id == table.tenant_id, newer.id == table.id)
    latest = select(func.max(newer.version)).where(same).scalar_subquery()
    return and_(table.version == latest, table.deleted.is_(False))


@cache
def _is_visible(table: type[CatalogRow]) -> ColumnElement[bool]:
    """Returns the condition that the tenant of the parameter ``tenant`` sees a row.

    The condition is built once for each table, because building it takes several times as long as running it.
    """
    own = aliased(table)
    tenant_id: BindParameter[str] = bindparam("tenant")
    mine = select(own.id).where(own.tenant_id == tenant_id, own.id == table.id, _is_current(own))
    unshadowed = and_(table.tenant_id == SHIPPED_TENANT, not_(mine.exists()))
    return and_(or_(table.tenant_id == tenant_id, unshadowed), _is_current(table))


def list_own_rows(session: Session, resource: Resource, tenant_id: str) -> Iterator[RowDocument]:
    """Returns every live row of a tenant, by id."""
    table = resource.table
    mine = _select_rows(table).where(table.tenant_id == tenant_id, _is_current(table))
    return map(_to_document, session.execute(mine.order_by(table.id)))


def count_ids(session: Session, resource: Resource, tenant_id: str) -> int:
    """Returns how many ids a tenant has used, for rows that are deleted too."""
    table = resource.table
    first = (table.tenant_id == tenant_id, table.version == 1)
    return session.scalar(select(func.count()).select_from(table).where(*first)) or 0


def count_own_rows(session: Session, resource: Resource, tenant_id: str) -> int:
    """Returns how many live rows a tenant has."""
    table = resource.table
    mine = (table.tenant_id == tenant_id, _is_current(table))
    return session.scalar(select(func.count()).select_from(table).where(*mine)) or 0


def list_changed_rows(
    session: Session, resource: Resource, tenant_id: str, since: int
) -> dict[str, RowDocument | None]:
    """Returns the current versions of a tenant's rows that were written after a revision; None if deleted."""
    table = resource.table
    newer = _select_rows(table).where(table.tenant_id == tenant_id, table.revision > since)
    rows = session.execute(newer.order_by(table.version))
    return {row.id: None if row.deleted else _to_document(row) for row in rows}


def list_visible_rows(session: Session, resource: Resource, tenant_id: str) -> Iterator[RowDocument]:
    """Returns every live row that a tenant sees, by id."""
    table = resource.table
    seen = _select_rows(table).where(_is_visible(table))
    return map(_to_document, session.execute(seen.order_by(table.id), {"tenant": tenant_id}))


def list_visible_names(
    session: Session, resource: Resource, tenant_id: str
) -> Iterator[tuple[str, list[str]]]:
    """Returns id and aliases of every live row that a tenant sees."""
    table = resource.table
    names = select(table.id, table.aliases).where(_is_visible(table))
    return ((row_id, aliases) for row_id, aliases in session.execute(names, {"tenant": tenant_id}))


def list_similar_names(
    session: Session, resource: Resource, tenant_id: str, names: Iterable[str]
) -> Iterator[tuple[str, list[str]]]:
    """Returns id and aliases of the live rows that may have one of ``names``, which are normal forms.

    They are rows whose id has the same letters and digits, and every row with aliases.
    """
    table = resource.table
    # The normal form of an id has no separator but the hyphen between two digits.
    letters = {name.replace("-", "") for name in names}
    alike = (table.tenant_id.in_({tenant_id, SHIPPED_TENANT}), build_letters(table.id).in_(letters))
    found = select(table.id, table.aliases).where(*alike, _is_visible(table))
    yield from ((row_id, aliases) for row_id, aliases in session.execute(found, {"tenant": tenant_id}))
    yield from list_visible_aliases(session, resource, tenant_id)


def list_visible_aliases(
    session: Session, resource: Resource, tenant_id: str
) -> Iterator[tuple[str, list[str]]]:
    """Returns id and aliases of every live row with aliases that a tenant sees, by id."""
    table = resource.table
    named = (table.tenant_id.in_({tenant_id, SHIPPED_TENANT}), build_aliases_condition(table.aliases))
    found = select(table.id, table.aliases).where(*named, _is_visible(table)).order_by(table.id)
    return ((row_id, aliases) for row_id, aliases in session.execute(found, {"tenant": tenant_id}))


def list_latest_rows(
    session: Session, resource: Resource, tenant_id: str, ids: Collection[str] | None = None
) -> dict[str, StoredRow]:
    """Returns the current versions of a tenant's rows by id, tombstones included. ``ids`` limits them."""
    table = resource.table
    newer = aliased(table)
    same = and_(newer.tenant_id == table.tenant_id, newer.id == table.id)
    latest = select(func.max(newer.version)).where(same).scalar_subquery()
    mine = _select_rows(table).where(table.tenant_id == tenant_id, table.version == latest)
    if ids is not None:
        mine = mine.where(table.id.in_(ids))
    rows = session.execute(mine.order_by(table.id))
    return {row.id: StoredRow(_to_document(row), row.version, row.deleted, row.tenant_id) for row in rows}


def insert_version(session: Writer, resource: Resource, document: Mapping[str, Any], **added: object) -> None:
    """Appends a version. Members that the document leaves out are stored as NULL."""
    members = {name: value for name, value in document.items() if name not in VERSION_COLUMNS}
    insert_versions(session, resource, [{**members, **added}])


def insert_versions(session: Writer, resource: Resource, documents: Sequence[Mapping[str, Any]]) -> None:
    """Appends versions, each with the columns of its version."""
    insert_prepared(session, resource, prepare_versions(session, resource, documents))


PreparedVersions = list[Any]
"""Versions as an insert takes them; they can be pickled."""


class _EncodedInsert(NamedTuple):
    """Statement of SQLite that inserts a version, and its parameters in order, each with its encoder."""

    statement: str
    parameters: Sequence[tuple[str, Callable[[Any], Any] | None]]


@cache
def _build_encoded_insert(table: type[CatalogRow]) -> _EncodedInsert:
    whole: Any = table.__table__
    dialect = sqlite.dialect()
    compiled = insert(whole).compile(dialect=dialect)
    names = compiled.positiontup or ()
    encoders = (whole.columns[name].type.dialect_impl(dialect).bind_processor(dialect) for name in names)
    return _EncodedInsert(str(compiled), [*zip(names, encoders, strict=True)])


def prepare_versions(
    session: Session, resource: Resource, documents: Sequence[Mapping[str, Any]]
) -> PreparedVersions:
    """Returns versions as :func:`insert_prepared` takes them, each with the columns of its version.

    On SQLite, whose writers wait for each other, their values are encoded: that takes three quarters of the
    time of an insert, and needs no lock.
    """
    blank = dict.fromkeys(resource.table.__table__.columns.keys())
    blank |= {"deleted": False, "aliases": [], "created_at": now()}
    rows = [
        blank | {name: value for name, value in document.items() if name in blank} for document in documents
    ]
    if not _is_sqlite(session):
        return rows
    _, parameters = _build_encoded_insert(resource.table)
    return [
        tuple(row[name] if encode is None else encode(row[name]) for name, encode in parameters)
        for row in rows
    ]


def insert_prepared(session: Writer, resource: Resource, versions: PreparedVersions) -> None:
    """Appends prepared versions."""
    if not versions:
        return
    if _is_sqlite(session):
        statement, _ = _build_encoded_insert(resource.table)
        session.connection().exec_driver_sql(statement, versions)
    else:
        table: Any = resource.table.__table__  # its rows need no objects
        session.execute(insert(table), versions)


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


def _build_filter(table: type[CatalogRow], name: str, value: object) -> ColumnElement[bool]:
    if name.startswith("min_"):
        return _to_condition(getattr(table, name.removeprefix("min_")) >= value)
    if name.startswith("max_"):
        return _to_condition(getattr(table, name.removeprefix("max_")) <= value)
    column = getattr(table, name)
    return _to_condition(column.in_(value))


def _list_searched_columns(resource: Resource) -> Iterator[ColumnElement[Any]]:
    columns = resource.table.__table__.columns
    for name in ("id", "name", *resource.searched):
        outer, _, inner = name.rpartition("/")
        yield join_members(columns[outer], inner) if outer else columns[name]
    yield list_texts(columns["aliases"])


def _to_condition(expression: Any) -> ColumnElement[bool]:  # noqa: ANN401
    """Returns a comparison, made by a column's name, with its type."""
    typed: ColumnElement[bool] = expression
    return typed


def list_page(
    session: Reader,
    resource: Resource,
    tenant_id: str,
    filters: Mapping[str, object],
    *,
    order_by: str,
    after: Sequence[str],
    limit: int,
) -> list[RowDocument]:
    """Returns visible rows that match every filter, after the key ``after``, with ties broken by id."""
    table, descending = resource.table, order_by.startswith("-")
    columns = [getattr(table, order_by.removeprefix("-")), table.id]
    statement = _select_rows(table).where(_is_visible(table))
    for name, value in filters.items():
        if name == "q":
            statement = statement.where(*build_search(str(value), _list_searched_columns(resource)))
        else:
            statement = statement.where(_build_filter(table, name, value))
    if after:
        first, second = columns
        ahead = first < after[0] if descending else first > after[0]
        tied = second < after[1] if descending else second > after[1]
        statement = statement.where(or_(ahead, and_(first == after[0], tied)))
    ordered = [column.desc() if descending else column.asc() for column in columns]
    found = session.execute(statement.order_by(*ordered).limit(limit), {"tenant": tenant_id})
    return [_to_document(row) for row in found]


def find_referring_id(
    session: Session, resource: Resource, tenant_id: str, member: str, row_id: str
) -> str | None:
    """Returns the id of a row of ``resource`` that a tenant sees and whose ``member`` is ``row_id``.

    ``list/member`` is the member of any object of a list.
    """
    table = resource.table
    outer, _, inner = member.rpartition("/")
    if not outer:
        statement = select(table.id).where(_is_visible(table), getattr(table, inner) == row_id).limit(1)
        return session.scalar(statement, {"tenant": tenant_id})
    lists = select(table.id, getattr(table, outer)).where(_is_visible(table))
    for found, objects in session.execute(lists, {"tenant": tenant_id}):
        if any(each.get(inner) == row_id for each in objects or ()):
            return str(found)
    return None
