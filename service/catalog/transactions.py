"""Transactions of the catalog, which a dependency gives to its handlers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response

from service.audit.service import WriteContext, WriteOutcome, Writes
from service.catalog import service
from service.catalog.imports import ImportResult, RowImport, compare_import, store_import
from service.catalog.registry import Resource
from service.catalog.rows import REVISION_HEADER, RowDocument
from service.kit.database.engine import Database, Reader, Writer
from service.kit.database.failures import follow_commit
from service.kit.http.pages import PageTokens
from service.schemas.base import StrictModel

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class CatalogTransactions:
    """Transactions of one database. ``on_change`` is called after each write."""

    database: Database
    writes: Writes
    tokens: PageTokens
    on_change: Callable[[], None]
    most_rows: int = 0
    """Most rows that a tenant may have of a resource; 0 for no limit."""

    def read(self, do: Callable[[Reader], _Read]) -> _Read:
        """Runs ``do`` on one state of the database, and returns its result."""
        with self.database.open_reader() as session:
            return do(session)

    def _run_write(self, call: WriteContext, sent: object, do: Callable[[Writer], WriteOutcome]) -> Response:
        response = self.writes.run(call, sent, do)
        follow_commit(self.on_change)
        return response

    def write_row(
        self,
        call: WriteContext,
        sent: object,
        resource: Resource,
        do: Callable[[Writer, Resource, str], service.WriteResult],
        answer: Callable[[RowDocument], Mapping[str, Any]] = dict,
    ) -> Response:
        """Runs ``do``, which writes one row of the caller's tenant; ``answer`` makes a body of the row."""

        def apply_change(session: Writer) -> WriteOutcome:
            written = do(session, resource, call.subject.tenant_id)
            if written.before is None:
                service.check_quota(session, resource, call.subject.tenant_id, self.most_rows)
            return _to_change(resource, written, answer)

        return self._run_write(call, sent, apply_change)

    def import_rows(
        self,
        call: WriteContext,
        body: StrictModel,
        rows: RowImport,
        answer: Callable[[ImportResult], Mapping[str, Any]],
    ) -> Response:
        """Writes many rows at once, compared before the transaction. ``answer`` builds the body."""
        sent = body.model_dump(mode="json")
        answered = self.writes.replayed(call, sent)
        if answered is not None:
            return answered
        compared = compare_import(self.read, rows)

        def apply_import(session: Writer) -> WriteOutcome:
            imported = store_import(session, rows, compared)
            service.check_quota(session, rows.resource, rows.tenant_id, self.most_rows)
            told = answer(imported)
            headers = {REVISION_HEADER: str(imported.revision)}
            return WriteOutcome(resource=rows.resource.path, body=told, headers=headers, after=told)

        return self._run_write(call, sent, apply_import)


def _to_change(
    resource: Resource, written: service.WriteResult, answer: Callable[[RowDocument], Mapping[str, Any]]
) -> WriteOutcome:
    """Returns the outcome of a write that creates, changes or deletes a row."""
    row, before = written.document, written.before
    path = f"{resource.path}/{(row or before or {})['id']}"
    headers = {} if row is None else {"ETag": service.build_etag(row)}
    headers[REVISION_HEADER] = str(written.revision)
    if before is None:
        headers["Location"] = f"/v1/{path}"
    return WriteOutcome(
        resource=path,
        status=201 if before is None else 204 if row is None else 200,
        body=None if row is None else answer(row),
        headers=headers,
        before=before,
        after=row,
    )


def _get_transactions(request: Request) -> CatalogTransactions:
    transactions: CatalogTransactions = request.app.state.catalog
    return transactions


Transactions = Annotated[CatalogTransactions, Depends(_get_transactions)]
