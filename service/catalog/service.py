"""Rules of the catalog: one revision, append-only versions, references that resolve, unique names."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from service.catalog import repository
from service.catalog.errors import (
    RowExists,
    RowInUse,
    RowNotFound,
    RowShipped,
    TooManyRows,
    build_unknown_reference,
)
from service.catalog.registry import KINDS, RESOURCES, Resource, RowReference
from service.catalog.repository import StoredRow
from service.catalog.rows import VERSION_MEMBERS, RowDocument
from service.catalog.shipped import compute_shipped_digest, list_shipped_documents
from service.formats.names import find_nearest, normalize_name
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError, NotFound, Unprocessable
from service.kit.http.versions import check_version_match
from service.kit.security.principals import SHIPPED_TENANT
from service.planning.errors import PlanningError

DocumentsByNoun = Mapping[str, list[RowDocument]]
"""Live rows of every resource, by the name of the resource."""


class WriteResult(NamedTuple):
    """Outcome of a write: the row as stored, the row before, and the revision of the write."""

    document: RowDocument | None
    revision: int
    before: RowDocument | None = None


def get_row(session: Reader, resource: Resource, tenant_id: str, row_id: str) -> RowDocument:
    """Returns the current version of the row that a tenant sees."""
    return _get_visible(session, resource, tenant_id, row_id).document


def find_name(session: Reader, noun: str, tenant_id: str, row_id: str) -> str | None:
    """Returns the name of a visible row, or None if there is none with this id."""
    try:
        return str(get_row(session, RESOURCES[noun], tenant_id, row_id)["name"])
    except NotFound:
        return None


def list_visible_rows(session: Session, name: str, tenant_id: str) -> list[RowDocument]:
    """Returns every row that a tenant sees of a resource."""
    return list(repository.list_visible_rows(session, RESOURCES[name], tenant_id))


def get_version(session: Reader, kind: str, tenant_id: str, row_id: str, number: int) -> RowDocument | None:
    """Returns one version of a tenant's own row. Versions of shipped rows belong to the shipped tenant."""
    return repository.get_version(session, KINDS[kind], tenant_id, row_id, number)


def _get_visible(session: Reader | Writer, resource: Resource, tenant_id: str, row_id: str) -> StoredRow:
    stored = repository.get_visible(session, resource, tenant_id, row_id)
    if stored is None:
        raise RowNotFound
    return stored


def create_row(session: Writer, resource: Resource, tenant_id: str, document: RowDocument) -> WriteResult:
    """Stores a new row. The id of a deleted row can be used again, and a shipped row is shadowed."""
    revision = repository.take_next_revision(session, tenant_id)
    stored = repository.get_current(session, resource, tenant_id, document["id"])
    if stored is not None and stored.is_live:
        raise RowExists("", FieldError("/id", "TAKEN", "a row of this id exists"))
    version = stored.version + 1 if stored else 1
    return _write_row(session, resource, tenant_id, document, version=version, revision=revision)


def copy_row(
    session: Writer, resource: Resource, tenant_id: str, row_id: str, new_id: str | None
) -> WriteResult:
    """Stores a copy of a row that the tenant sees as a row of its own.

    Under the id of a shipped row the copy replaces it, names included.
    """
    seen = _get_visible(session, resource, tenant_id, row_id)
    members = {name: value for name, value in seen.document.items() if name in resource.input.model_fields}
    if new_id not in (None, row_id):
        members |= {"id": new_id, "aliases": []}
    return create_row(session, resource, tenant_id, members)


def update_row(
    session: Writer, resource: Resource, tenant_id: str, row_id: str, *, patch: RowDocument, if_match: str
) -> WriteResult:
    """Stores the next version of a row with the members of ``patch`` replaced; None removes a member."""
    revision = repository.take_next_revision(session, tenant_id)
    stored = _get_matched(session, resource, tenant_id, row_id, if_match)
    sent = {name: value for name, value in stored.document.items() if name in resource.input.model_fields}
    merged = {name: value for name, value in {**sent, **patch}.items() if value is not None}
    document = resource.input.model_validate_json(json.dumps(merged)).model_dump(mode="json")
    version = stored.version + 1
    return _write_row(
        session, resource, tenant_id, document, version=version, revision=revision, before=stored.document
    )


def delete_row(
    session: Writer, resource: Resource, tenant_id: str, row_id: str, *, if_match: str
) -> WriteResult:
    """Stores a tombstone. A row that others refer to stays, unless a shipped row replaces it."""
    revision = repository.take_next_revision(session, tenant_id)
    stored = _get_matched(session, resource, tenant_id, row_id, if_match)
    if repository.get_visible(session, resource, SHIPPED_TENANT, row_id) is None:
        _check_unreferenced(session, resource, tenant_id, row_id)
    version = stored.version + 1
    added = {"tenant_id": tenant_id, "version": version, "revision": revision, "deleted": True}
    repository.insert_version(session, resource, stored.document, **added)
    return WriteResult(None, revision, stored.document)


def check_targets(
    session: Session, resource: Resource, tenant_id: str, documents: Iterable[RowDocument]
) -> None:
    """Refuses rows that refer to a row that the tenant does not see."""
    found = {
        (each.target, each.row_id): each
        for document in documents
        for each in resource.list_references(document)
    }
    _check_exist(session, tenant_id, found.values())


def _check_unreferenced(session: Writer, resource: Resource, tenant_id: str, row_id: str) -> None:
    for other in RESOURCES.values():
        members = [member for member, target in other.references.items() if target == resource.name]
        if any(repository.find_referring_id(session, other, tenant_id, each, row_id) for each in members):
            raise RowInUse(f"a row among {other.name} refers to this one")


def build_etag(document: RowDocument) -> str:
    """Returns the strong validator of a version. A tenant's row and the shipped one behind it differ."""
    prefix = "shipped-" if document["origin"] == "shipped" else ""
    return f'"{prefix}{document["version"]}"'


def _get_matched(
    session: Writer, resource: Resource, tenant_id: str, row_id: str, if_match: str
) -> StoredRow:
    stored = _get_visible(session, resource, tenant_id, row_id)
    if stored.tenant_id == SHIPPED_TENANT:
        raise RowShipped(
            f"Rows that ship are read-only: POST /v1/{resource.path}/{{id}}:copy makes one to change"
        )
    check_version_match(if_match, build_etag(stored.document))
    return stored


def _write_row(
    session: Writer,
    resource: Resource,
    tenant_id: str,
    document: RowDocument,
    *,
    version: int,
    revision: int,
    before: RowDocument | None = None,
) -> WriteResult:
    _check_exist(session, tenant_id, resource.list_references(document))
    _check_names(session, resource, tenant_id, document, before)
    _append_version(session, resource, document, tenant_id=tenant_id, version=version, revision=revision)
    written = _get_visible(session, resource, tenant_id, document["id"]).document
    return WriteResult(written, revision, before)


def _append_version(session: Writer, resource: Resource, document: RowDocument, **added: object) -> None:
    repository.insert_version(session, resource, {**document, **derive_members(resource, document)}, **added)


def derive_members(resource: Resource, document: RowDocument) -> RowDocument:
    """Returns the members of a row that the table keeps beside those that are sent."""
    try:
        return resource.derive(document)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The row contradicts itself", field) from error


def _check_exist(session: Session, tenant_id: str, references: Iterable[RowReference]) -> None:
    for each in references:
        if repository.get_visible(session, RESOURCES[each.target], tenant_id, each.row_id) is None:
            nearest = _find_nearest_id(session, RESOURCES[each.target], tenant_id, each.row_id)
            raise build_unknown_reference(each.pointer, each.target, nearest)


def _find_nearest_id(session: Session, resource: Resource, tenant_id: str, row_id: str) -> str:
    """Returns the id of the row that has ``row_id`` as an alias or is most like it; empty without one."""
    ids = {
        normalize_name(name): found
        for found, aliases in repository.list_visible_names(session, resource, tenant_id)
        for name in (found, *aliases)
    }
    return next((ids[near] for near in find_nearest(row_id, ids, 1)), "")


def _check_names(
    session: Writer, resource: Resource, tenant_id: str, document: RowDocument, before: RowDocument | None
) -> None:
    """Refuses a new name that is the id or an alias of another row of the resource, in any spelling."""
    wanted = _list_names(document) - (_list_names(before) if before else set())
    if not wanted:
        return
    for row_id, aliases in repository.list_similar_names(session, resource, tenant_id, wanted):
        if row_id != document["id"] and wanted & set(map(normalize_name, (row_id, *aliases))):
            detail = "the id or an alias belongs to another row"
            raise RowExists("", FieldError("/aliases", "TAKEN", detail))


def check_quota(session: Writer, resource: Resource, tenant_id: str, most: int) -> None:
    """Refuses a write after which a tenant has more than ``most`` rows; 0 is no limit."""
    # Ids are counted in a tenth of the time, deleted ones too: most tenants have few of either.
    if not most or repository.count_ids(session, resource, tenant_id) <= most:
        return
    count = repository.count_own_rows(session, resource, tenant_id)
    if count > most:
        raise TooManyRows(
            f"The tenant may have {most:,} rows of {resource.path}; with this write it has {count:,}"
        )


def _list_names(document: RowDocument) -> set[str]:
    return {normalize_name(name) for name in (document["id"], *document.get("aliases", []))}


def search_documents(
    session: Session | None, resource: Resource, tenant_id: str, text: str
) -> list[RowDocument]:
    """Returns the rows that a tenant sees and that have every word of ``text``, by id.

    Without a session they are the shipped ones.
    """
    if session is None:
        shipped = list_shipped_documents()[resource.name]
        rows: Iterable[RowDocument] = ({**row, **resource.derive(row)} for row in shipped)
    else:
        rows = repository.list_visible_rows(session, resource, tenant_id)
    return sorted((row for row in rows if resource.has_words(row, text)), key=lambda row: str(row["id"]))


def list_own_documents(session: Reader, tenant_id: str) -> DocumentsByNoun:
    """Returns every live row of a tenant's own. Rows of the tenant ``shipped`` come with the service."""
    return {
        resource.name: list(repository.list_own_rows(session, resource, tenant_id))
        for resource in RESOURCES.values()
    }


ChangedRows = Mapping[str, RowDocument | None]
"""Current versions of rows by id; None for a row that is deleted."""


def list_changed_rows(session: Reader, tenant_id: str, since: int) -> dict[str, ChangedRows]:
    """Returns the rows of a tenant's own that have changed after a revision that it saw, by resource."""
    return {
        resource.name: repository.list_changed_rows(session, resource, tenant_id, since)
        for resource in RESOURCES.values()
    }


class ShippedLoad(NamedTuple):
    """Outcome of loading the shipped rows."""

    revision: int
    changed: int


def load_shipped(session: Writer) -> ShippedLoad:
    """Loads the shipped rows. Rows of tenants stay as they are.

    Loading the same rows again changes nothing, not even the revision.
    """
    digest = compute_shipped_digest()
    state = repository.lock_shipped_state(session)
    if state.shipped_digest == digest:
        return ShippedLoad(state.revision, 0)
    shipped = list_shipped_documents()
    changes = [
        (resource, list(_list_shipped_changes(session, resource, shipped[resource.name])))
        for resource in RESOURCES.values()
    ]
    changed = sum(len(versions) for _, versions in changes)
    if changed:
        state.revision += 1
    for resource, versions in changes:
        added = {"tenant_id": SHIPPED_TENANT, "revision": state.revision}
        repository.insert_versions(
            session,
            resource,
            [
                {**document, **derive_members(resource, document), "version": version, **added}
                for document, version in versions
            ],
        )
    state.shipped_digest = digest
    state.updated_at = now()
    return ShippedLoad(state.revision, changed)


def _list_shipped_changes(
    session: Writer, resource: Resource, shipped: Sequence[RowDocument]
) -> Iterator[tuple[RowDocument, int]]:
    """Yields rows with their next version, and a tombstone of each row that ships no more."""
    stored = repository.list_latest_rows(session, resource, SHIPPED_TENANT)
    for document in shipped:
        before = stored.pop(document["id"], None)
        if before is None:
            yield document, 1
        elif not before.is_live or _is_different(resource, before.document, document):
            yield document, before.version + 1
    for before in stored.values():
        if before.is_live:
            yield {**before.document, "deleted": True}, before.version + 1


def _is_different(resource: Resource, stored: RowDocument, shipped: RowDocument) -> bool:
    kept = {name: value for name, value in stored.items() if name not in VERSION_MEMBERS}
    return kept != {"aliases": [], **shipped, **resource.derive(shipped)}


def get_revision(session: Reader | Writer, tenant_id: str) -> int:
    """Returns the number of changes that a tenant sees. 0 before the shipped rows are loaded."""
    return repository.get_revision(session, tenant_id)


def list_own_revisions(session: Reader) -> dict[str, int]:
    """Returns the number of changes of each tenant's rows, the shipped ones included."""
    return repository.list_own_revisions(session)


def lock_rows(session: Writer, tenant_id: str) -> None:
    """Locks a tenant's state, and what is written beside its catalog, until the transaction ends."""
    repository.lock_rows(session, tenant_id)


def take_next_revision(session: Writer, tenant_id: str) -> int:
    """Takes the next revision of a tenant, so that its snapshot includes what is written beside the catalog.

    The tenant's state stays locked until the transaction ends, so writes that take it are serial.
    """
    return repository.take_next_revision(session, tenant_id)
