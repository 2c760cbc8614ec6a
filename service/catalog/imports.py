"""Imports of many rows under one revision, compared beside other writers and stored in one transaction."""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from service.catalog import repository
from service.catalog.registry import Resource
from service.catalog.repository import PreparedVersions, StoredRow
from service.catalog.rows import RowDocument
from service.catalog.service import check_targets, derive_members
from service.formats.names import normalize_name
from service.kit.database.engine import Reader, Writer
from service.kit.security.principals import SHIPPED_TENANT

_ROWS_OF_A_PIECE: Final = 500
"""Rows of an import that are compared and stored at once."""

ReadTransaction = Callable[[Callable[[Reader], Any]], Any]
"""Runs a function on one state of the database."""


class ImportResult(NamedTuple):
    """Outcome of an import: ids of the rows by outcome, and the revision of the catalog after it.

    ``clashing`` are ids that another row has as an alias, ``older`` are rows that would replace a newer one.
    Neither is stored.
    """

    created: list[str]
    changed: list[str]
    unchanged: list[str]
    clashing: list[str]
    older: list[str]
    revision: int


@dataclass(frozen=True, kw_only=True)
class RowImport:
    """Rows of a tenant to create or update. Rows without changes stay.

    ``list_documents`` yields the rows, anew at each call. ``is_older`` compares a row that is sent with the
    row that the tenant sees under its id.
    """

    resource: Resource
    tenant_id: str
    list_documents: Callable[[], Iterator[RowDocument]]
    is_older: Callable[[RowDocument, RowDocument], bool] = lambda _sent, _seen: False

    def list_pieces(self) -> Iterator[list[RowDocument]]:
        """Yields the rows, a few hundred at a time."""
        waiting = self.list_documents()
        while piece := list(islice(waiting, _ROWS_OF_A_PIECE)):
            yield piece


class ComparedImport(NamedTuple):
    """Outcome of an import at a revision of the catalog, and the prepared versions, packed in pieces."""

    result: ImportResult
    pieces: list[bytes]


@dataclass(frozen=True)
class _Comparison:
    """Comparison of rows with those that the tenant sees, whose aliases are taken."""

    sent: RowImport
    aliases: dict[str, str]
    result: ImportResult

    def prepare_piece(self, session: Session, piece: Sequence[RowDocument]) -> PreparedVersions:
        """Notes the outcome of each row of a piece, and returns the versions to store, ready to be inserted.

        They have the next revision, under which they are stored if the catalog has not changed until then.
        """
        added = {"tenant_id": self.sent.tenant_id, "revision": self.result.revision + 1}
        written = [row | added for row in self._compare(session, piece)]
        return repository.prepare_versions(session, self.sent.resource, written)

    def _compare(self, session: Session, piece: Sequence[RowDocument]) -> list[RowDocument]:
        """Notes the outcome of each row of a piece, and returns the versions to store."""
        resource, tenant_id = self.sent.resource, self.sent.tenant_id
        free = [row for row in piece if self.aliases.get(normalize_name(row["id"]), row["id"]) == row["id"]]
        ids = {row["id"] for row in free}
        self.result.clashing.extend(row["id"] for row in piece if row["id"] not in ids)
        own = repository.list_latest_rows(session, resource, tenant_id, ids)
        shadowed = {row_id for row_id in ids if row_id not in own or not own[row_id].is_live}
        seen = own | repository.list_latest_rows(session, resource, SHIPPED_TENANT, shadowed)
        written = [
            version
            for row in free
            if (version := self._compare_row(row, own.get(row["id"]), seen.get(row["id"]))) is not None
        ]
        check_targets(session, resource, tenant_id, written)
        return written

    def _compare_row(
        self, sent: RowDocument, stored: StoredRow | None, seen: StoredRow | None
    ) -> RowDocument | None:
        """Notes the outcome of a row, and returns its version to store."""
        resource, row_id, result = self.sent.resource, sent["id"], self.result
        if seen is not None and seen.is_live and self.sent.is_older(sent, seen.document):
            result.older.append(row_id)
            return None
        live = stored.document if stored is not None and stored.is_live else None
        if live is not None and not _has_changes(resource, live, sent):
            result.unchanged.append(row_id)
            return None
        (result.created if live is None else result.changed).append(row_id)
        kept = {} if live is None else {"aliases": live["aliases"]}
        version = 1 if stored is None else stored.version + 1
        return {**sent, **kept, **derive_members(resource, sent), "version": version}


def _begin_comparison(session: Session, sent: RowImport) -> _Comparison:
    named = repository.list_visible_aliases(session, sent.resource, sent.tenant_id)
    aliases = {normalize_name(alias): row_id for row_id, names in named for alias in names}
    revision = repository.get_revision(session, sent.tenant_id)
    return _Comparison(sent, aliases, ImportResult([], [], [], [], [], revision))


def _has_changes(resource: Resource, stored: RowDocument, sent: RowDocument) -> bool:
    """Returns true if ``sent`` differs from the stored row in more than its aliases."""
    names = resource.input.model_fields.keys() - {"aliases"}
    return {name: stored[name] for name in names & stored.keys()} != {
        name: sent[name] for name in names & sent.keys()
    }


def compare_import(read: ReadTransaction, sent: RowImport) -> ComparedImport | None:
    """Compares the rows of an import without a lock. None if two of them have one id."""
    comparison: _Comparison = read(partial(_begin_comparison, sent=sent))
    pieces: list[bytes] = []
    ids: set[str] = set()
    for piece in sent.list_pieces():
        before, added = len(ids), {row["id"] for row in piece}
        ids |= added
        if len(ids) != before + len(piece):
            return None
        if prepared := read(partial(comparison.prepare_piece, piece=piece)):
            pieces.append(pickle.dumps(prepared))
    return ComparedImport(comparison.result, pieces)


def store_import(session: Writer, sent: RowImport, compared: ComparedImport | None = None) -> ImportResult:
    """Creates or updates rows, all under one revision.

    What was compared before is stored as it is unless the catalog has changed since.
    """
    repository.lock_rows(session, sent.tenant_id)
    if compared is None or repository.get_revision(session, sent.tenant_id) != compared.result.revision:
        comparison = _begin_comparison(session, sent)
        result = comparison.result
        versions: Iterable[PreparedVersions] = (
            comparison.prepare_piece(session, piece) for piece in sent.list_pieces()
        )
    else:
        result = compared.result
        versions = (pickle.loads(piece) for piece in compared.pieces)  # noqa: S301  # packed above
    return _store_versions(session, sent, result, versions)


def _store_versions(
    session: Writer, sent: RowImport, result: ImportResult, versions: Iterable[PreparedVersions]
) -> ImportResult:
    revision: int | None = None
    for prepared in versions:
        if prepared and revision is None:
            revision = repository.take_next_revision(session, sent.tenant_id)
            if revision != result.revision + 1:
                raise RuntimeError("the catalog changed under its lock")
        repository.insert_prepared(session, sent.resource, prepared)
    return result if revision is None else result._replace(revision=revision)
