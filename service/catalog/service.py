"""The rules of the catalog: one revision, append-only versions, references that hold, unique names."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from service.catalog import repository
from service.catalog.errors import (
    RowExists,
    RowInUse,
    RowNotFound,
    RowShipped,
    unknown_reference,
)
from service.catalog.registry import KINDS, RESOURCES, Resource
from service.catalog.repository import Stored
from service.catalog.rows import VERSION_MEMBERS, Document
from service.catalog.shipped import shipped_digest, shipped_documents
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.http.versions import check_match
from service.kit.security.subjects import SHIPPED_TENANT
from service.planning.errors import PlanningError

Documents = Mapping[str, list[Document]]
"""Live rows of every resource, by its name."""


class Written(NamedTuple):
    """The outcome of a write: the row as stored and as it was, and the revision that came with it."""

    document: Document | None
    revision: int
    before: Document | None = None


def get(session: Reader, resource: Resource, tenant_id: str, row_id: str) -> Document:
    """The current version of the row that a tenant sees."""
    return _visible(session, resource, tenant_id, row_id).document


def seen(session: Session, name: str, tenant_id: str) -> list[Document]:
    """Every row that a tenant sees of the resource of this name."""
    return list(repository.visible_rows(session, RESOURCES[name], tenant_id))


def version(session: Reader, kind: str, tenant_id: str, row_id: str, number: int) -> Document | None:
    """One version of a tenant's own row of this kind; those that ship are of theirs."""
    return repository.version(session, KINDS[kind], tenant_id, row_id, number)


def _visible(session: Reader | Writer, resource: Resource, tenant_id: str, row_id: str) -> Stored:
    stored = repository.visible(session, resource, tenant_id, row_id)
    if stored is None:
        raise RowNotFound
    return stored


def create(session: Writer, resource: Resource, tenant_id: str, document: Document) -> Written:
    """Store a new row; an id that was deleted may be used again, and a shipped one is shadowed."""
    revision = repository.next_revision(session, tenant_id)
    stored = repository.current(session, resource, tenant_id, document["id"])
    if stored is not None and stored.is_live:
        raise RowExists("", FieldError("/id", "TAKEN", "a row of this id exists"))
    version = stored.version + 1 if stored else 1
    return _write(session, resource, tenant_id, document, version=version, revision=revision)


def copy(session: Writer, resource: Resource, tenant_id: str, row_id: str, new_id: str | None) -> Written:
    """Store a row of the tenant's own with the members of one that it sees.

    Under the id of a shipped row the copy takes its place, names included.
    """
    seen = _visible(session, resource, tenant_id, row_id)
    members = {name: value for name, value in seen.document.items() if name in resource.input.model_fields}
    if new_id not in (None, row_id):
        members |= {"id": new_id, "aliases": []}
    return create(session, resource, tenant_id, members)


def change(
    session: Writer, resource: Resource, tenant_id: str, row_id: str, *, patch: Document, if_match: str
) -> Written:
    """Store the next version of a row with the members of ``patch`` replaced, those that are None removed."""
    revision = repository.next_revision(session, tenant_id)
    stored = _matched(session, resource, tenant_id, row_id, if_match)
    sent = {name: value for name, value in stored.document.items() if name in resource.input.model_fields}
    merged = {name: value for name, value in {**sent, **patch}.items() if value is not None}
    document = resource.input.model_validate_json(json.dumps(merged)).model_dump(mode="json")
    written = _write(session, resource, tenant_id, document, version=stored.version + 1, revision=revision)
    return written._replace(before=stored.document)


def delete(session: Writer, resource: Resource, tenant_id: str, row_id: str, *, if_match: str) -> Written:
    """Store a tombstone; a row that others refer to stays, unless a shipped one takes its place."""
    revision = repository.next_revision(session, tenant_id)
    stored = _matched(session, resource, tenant_id, row_id, if_match)
    if repository.visible(session, resource, SHIPPED_TENANT, row_id) is None:
        _check_unreferenced(session, resource, tenant_id, row_id)
    version = stored.version + 1
    added = {"tenant_id": tenant_id, "version": version, "revision": revision, "deleted": True}
    repository.insert_version(session, resource, stored.document, **added)
    return Written(None, revision, stored.document)


class Imported(NamedTuple):
    """What became of imported rows, by id, and the revision that the catalog has after them.

    ``clashing`` are ids that another row has as an alias, ``older`` rows that would take the place of a newer
    one; neither is stored.
    """

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    clashing: list[str]
    older: list[str]
    revision: int


def import_rows(
    session: Writer,
    resource: Resource,
    tenant_id: str,
    documents: Iterable[Document],
    *,
    is_older: Callable[[Document, Document], bool] = lambda _sent, _seen: False,
) -> Imported:
    """Create or version rows of a tenant, all under one revision; what is the same already stays.

    ``is_older`` compares a row that is sent with the one that the tenant sees under its id.
    """
    repository.lock(session, tenant_id)
    own = repository.latest_rows(session, resource, tenant_id)
    seen = {row["id"]: row for row in repository.visible_rows(session, resource, tenant_id)}
    aliases = {alias: row_id for row_id, row in seen.items() for alias in row["aliases"]}
    imported = Imported([], [], [], [], [], repository.revision(session, tenant_id))
    written: list[Document] = []
    for document in documents:
        row_id, stored = document["id"], own.get(document["id"])
        if aliases.get(row_id, row_id) != row_id:
            imported.clashing.append(row_id)
        elif row_id in seen and is_older(document, seen[row_id]):
            imported.older.append(row_id)
        elif stored is not None and stored.is_live and not _adds(resource, stored.document, document):
            imported.unchanged.append(row_id)
        else:
            is_change = stored is not None and stored.is_live
            (imported.changed if is_change else imported.created).append(row_id)
            kept = {"aliases": stored.document["aliases"]} if is_change and stored else {}
            version = stored.version + 1 if stored else 1
            written.append({**document, **kept, **_derived(resource, document), "version": version})
    _check_targets(session, resource, tenant_id, written)
    return _stored(session, resource, tenant_id, imported, written)


def _adds(resource: Resource, stored: Document, sent: Document) -> bool:
    """Whether ``sent`` differs from what is stored in more than the names that people gave it."""
    names = resource.input.model_fields.keys() - {"aliases"}
    return {name: stored[name] for name in names & stored.keys()} != {
        name: sent[name] for name in names & sent.keys()
    }


def _check_targets(
    session: Writer, resource: Resource, tenant_id: str, documents: Iterable[Document]
) -> None:
    for member in resource.references:
        for row_id in {document[member] for document in documents if member in document}:
            _check_references(session, resource, tenant_id, {member: row_id})


def _stored(
    session: Writer, resource: Resource, tenant_id: str, imported: Imported, written: list[Document]
) -> Imported:
    if not written:
        return imported
    revision = repository.next_revision(session, tenant_id)
    added = {"tenant_id": tenant_id, "revision": revision}
    repository.insert_versions(session, resource, [document | added for document in written])
    return imported._replace(revision=revision)


def _check_unreferenced(session: Writer, resource: Resource, tenant_id: str, row_id: str) -> None:
    for other in RESOURCES.values():
        for member, target in other.references.items():
            if target == resource.name and repository.referring_id(session, other, tenant_id, member, row_id):
                raise RowInUse(f"a row among {other.name} refers to this one")


def etag(document: Document) -> str:
    """The strong validator of a version; a tenant's row and the shipped one behind it are told apart."""
    prefix = "shipped-" if document["origin"] == "shipped" else ""
    return f'"{prefix}{document["version"]}"'


def _matched(session: Writer, resource: Resource, tenant_id: str, row_id: str, if_match: str) -> Stored:
    stored = _visible(session, resource, tenant_id, row_id)
    if stored.tenant_id == SHIPPED_TENANT:
        raise RowShipped(
            f"Rows that ship are read-only: POST /v1/{resource.path}/{{id}}:copy makes one to change"
        )
    check_match(if_match, etag(stored.document))
    return stored


def _write(
    session: Writer, resource: Resource, tenant_id: str, document: Document, *, version: int, revision: int
) -> Written:
    _check_references(session, resource, tenant_id, document)
    _check_names(session, resource, tenant_id, document)
    _append(session, resource, document, tenant_id=tenant_id, version=version, revision=revision)
    return Written(_visible(session, resource, tenant_id, document["id"]).document, revision)


def _append(session: Writer, resource: Resource, document: Document, **added: object) -> None:
    repository.insert_version(session, resource, {**document, **_derived(resource, document)}, **added)


def _derived(resource: Resource, document: Document) -> Document:
    try:
        return resource.derive(document)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The row contradicts itself", field) from error


def _check_references(session: Writer, resource: Resource, tenant_id: str, document: Document) -> None:
    for member, target in resource.references.items():
        row_id = document.get(member)
        if row_id is not None and repository.visible(session, RESOURCES[target], tenant_id, row_id) is None:
            raise unknown_reference(member, target)


def _check_names(session: Writer, resource: Resource, tenant_id: str, document: Document) -> None:
    """An alias names one row of a resource only, and is no id of another."""
    wanted = {document["id"], *document.get("aliases", [])}
    for row_id, aliases in repository.visible_names(session, resource, tenant_id):
        if row_id != document["id"] and wanted & {row_id, *aliases}:
            detail = "the id or an alias belongs to another row"
            raise RowExists("", FieldError("/aliases", "TAKEN", detail))


def own_documents(session: Reader, tenant_id: str) -> Documents:
    """Every live row of a tenant's own; those of the tenant ``shipped`` come with the service."""
    return {
        resource.name: list(repository.own_rows(session, resource, tenant_id))
        for resource in RESOURCES.values()
    }


class ShippedLoad(NamedTuple):
    """What loading the shipped rows changed."""

    revision: int
    changed: int


def load_shipped(session: Writer) -> ShippedLoad:
    """Bring the shipped rows in; those of tenants stay as they are.

    Loading the same rows again changes nothing, not even the revision.
    """
    digest = shipped_digest()
    state = repository.locked_state(session)
    if state.shipped_digest == digest:
        return ShippedLoad(state.revision, 0)
    shipped = shipped_documents()
    changes = [
        (resource, list(_shipped_changes(session, resource, shipped[resource.name])))
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
                {**document, **_derived(resource, document), "version": version, **added}
                for document, version in versions
            ],
        )
    state.shipped_digest = digest
    state.updated_at = now()
    return ShippedLoad(state.revision, changed)


def _shipped_changes(
    session: Writer, resource: Resource, shipped: Sequence[Document]
) -> Iterator[tuple[Document, int]]:
    stored = repository.latest_rows(session, resource, SHIPPED_TENANT)
    for document in shipped:
        before = stored.get(document["id"])
        if before is None:
            yield document, 1
        elif _differs(resource, before.document, document):
            yield document, before.version + 1


def _differs(resource: Resource, stored: Document, shipped: Document) -> bool:
    kept = {name: value for name, value in stored.items() if name not in VERSION_MEMBERS}
    return kept != {"aliases": [], **shipped, **resource.derive(shipped)}


def revision(session: Reader | Writer, tenant_id: str) -> int:
    """The number of changes that a tenant sees; 0 before the shipped rows are loaded."""
    return repository.revision(session, tenant_id)


def own_revisions(session: Reader) -> dict[str, int]:
    """How often the rows of each tenant have changed, the shipped ones included."""
    return repository.own_revisions(session)


def lock(session: Writer, tenant_id: str) -> None:
    """Keep a tenant's state, and what is written beside its catalog, as it is until the transaction ends."""
    repository.lock(session, tenant_id)


def next_revision(session: Writer, tenant_id: str) -> int:
    """Take the next revision of a tenant, so that its snapshot follows what is written beside the catalog.

    The tenant's state stays locked until the transaction ends: writes that take it are serial.
    """
    return repository.next_revision(session, tenant_id)
