"""The rules of the catalog: one revision, append-only versions, references that hold, unique names."""

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from service.catalog import repository
from service.catalog.errors import (
    RowExists,
    RowInUse,
    RowNotFound,
    VersionConflict,
    VersionRequired,
    unknown_reference,
)
from service.catalog.nouns import NOUNS
from service.catalog.repository import Stored
from service.catalog.rows import VERSION_COLUMNS, Document, Noun
from service.catalog.shipped import shipped_digest, shipped_documents
from service.kit.database import Reader, Writer
from service.kit.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError

Documents = Mapping[str, list[Document]]
"""Live rows of every noun, by the noun's name."""


class Written(NamedTuple):
    """The outcome of a write: the row as stored, and the revision that it came with."""

    document: Document
    revision: int


def get(session: Reader, noun: Noun, row_id: str) -> Document:
    """The current version of a row."""
    return _live(session, noun, row_id).document


def _live(session: Reader | Writer, noun: Noun, row_id: str) -> Stored:
    stored = repository.current(session, noun, row_id)
    if stored is None or stored.deleted:
        raise RowNotFound
    return stored


def create(session: Writer, noun: Noun, document: Document) -> Written:
    """Store a new row; an id that was deleted may be used again."""
    revision = repository.next_revision(session)
    stored = repository.current(session, noun, document["id"])
    if stored is not None and stored.is_live:
        raise RowExists("", FieldError("/id", "TAKEN", "a row of this id exists"))
    version = stored.version + 1 if stored else 1
    return _write(session, noun, document, version, revision)


def change(session: Writer, noun: Noun, row_id: str, patch: Document, if_match: str) -> Written:
    """Store the next version of a row with the members of ``patch`` replaced, those that are None removed."""
    revision = repository.next_revision(session)
    stored = _matched(session, noun, row_id, if_match)
    sent = {name: value for name, value in stored.document.items() if name in noun.created.model_fields}
    merged = {name: value for name, value in {**sent, **patch}.items() if value is not None}
    document = noun.created.model_validate_json(json.dumps(merged)).model_dump(mode="json")
    return _write(session, noun, document, stored.version + 1, revision)


def delete(session: Writer, noun: Noun, row_id: str, if_match: str) -> int:
    """Store a tombstone; a row that others refer to stays."""
    revision = repository.next_revision(session)
    stored = _matched(session, noun, row_id, if_match)
    for other in NOUNS.values():
        for member, target in other.references.items():
            if target == noun.name and repository.referring_id(session, other, member, row_id):
                raise RowInUse(f"a row among {other.name} refers to this one")
    repository.insert_version(
        session,
        noun,
        stored.document,
        version=stored.version + 1,
        revision=revision,
        origin="user",
        deleted=True,
    )
    return revision


def etag(version: int) -> str:
    """The strong validator of a version."""
    return f'"{version}"'


def _matched(session: Writer, noun: Noun, row_id: str, if_match: str) -> Stored:
    stored = _live(session, noun, row_id)
    if not if_match:
        raise VersionRequired
    if if_match.strip() not in ("*", etag(stored.version)):
        raise VersionConflict
    return stored


def _write(session: Writer, noun: Noun, document: Document, version: int, revision: int) -> Written:
    _check_references(session, noun, document)
    _check_names(session, noun, document)
    _append(session, noun, document, version=version, revision=revision, origin="user")
    return Written(_live(session, noun, document["id"]).document, revision)


def _append(session: Writer, noun: Noun, document: Document, **added: object) -> None:
    repository.insert_version(session, noun, {**document, **_derived(noun, document)}, **added)


def _derived(noun: Noun, document: Document) -> Document:
    try:
        return noun.derived(document)
    except PlanningError as error:
        field = FieldError(f"/architecture{error.pointer}", error.code, error.detail)
        raise Unprocessable("The architecture contradicts itself", field) from error


def _check_references(session: Writer, noun: Noun, document: Document) -> None:
    for member, target in noun.references.items():
        row_id = document.get(member)
        if row_id is None:
            continue
        stored = repository.current(session, NOUNS[target], row_id)
        if stored is None or stored.deleted:
            raise unknown_reference(member, target)


def _check_names(session: Writer, noun: Noun, document: Document) -> None:
    """An alias names one row of a noun only, and is no id of another."""
    wanted = {document["id"], *document.get("aliases", [])}
    for other in repository.all_current(session, noun):
        if other["id"] != document["id"] and wanted & {other["id"], *other["aliases"]}:
            detail = "the id or an alias belongs to another row"
            raise RowExists("", FieldError("/aliases", "TAKEN", detail))


def documents(session: Reader) -> tuple[int, Documents]:
    """The revision and every live row."""
    revision = repository.revision(session)
    rows = {noun.name: list(repository.all_current(session, noun)) for noun in NOUNS.values()}
    return revision, rows


class ShippedLoad(NamedTuple):
    """What loading the shipped rows changed."""

    revision: int
    changed: int


def load_shipped(session: Writer) -> ShippedLoad:
    """Bring the shipped rows in; rows that a user has changed or deleted stay as they are.

    Loading the same rows again changes nothing, not even the revision.
    """
    digest = shipped_digest()
    state = repository.locked_state(session)
    if state.shipped_digest == digest:
        return ShippedLoad(state.revision, 0)
    changes = list(_shipped_changes(session, shipped_documents()))
    revision = state.revision
    if changes:
        revision = repository.next_revision(session)
    for noun, document, version in changes:
        _append(session, noun, document, version=version, revision=revision, origin="shipped")
    repository.set_shipped_digest(session, digest)
    return ShippedLoad(revision, len(changes))


def _shipped_changes(session: Writer, shipped: Documents) -> Iterator[tuple[Noun, Document, int]]:
    for noun in NOUNS.values():
        for document in shipped[noun.name]:
            stored = repository.current(session, noun, document["id"])
            if stored is None:
                yield noun, document, 1
            elif stored.origin == "shipped" and _differs(noun, stored.document, document):
                yield noun, document, stored.version + 1


def _differs(noun: Noun, stored: Document, shipped: Document) -> bool:
    kept = {name: value for name, value in stored.items() if name not in VERSION_COLUMNS}
    return kept != {"aliases": [], **shipped, **noun.derived(shipped)}


def revision(session: Reader) -> int:
    """Number of the last change; 0 before the shipped rows are loaded."""
    return repository.revision(session)


def page_token_key(session: Reader) -> bytes:
    """The key that signs page tokens."""
    return repository.page_token_key(session)
