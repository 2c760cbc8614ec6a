"""The transactions of the catalog, which a dependency gives its handlers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response

from service.audit.service import Call, Change, Writes
from service.catalog import service
from service.catalog.registry import Resource
from service.catalog.rows import REVISION_HEADER, Document
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.pages import PageTokens
from service.schemas.base import Input

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class CatalogTransactions:
    """Those of one database. ``on_change`` is called after each write."""

    database: Database
    writes: Writes
    tokens: PageTokens
    on_change: Callable[[], None]

    def read(self, do: Callable[[Reader], _Read]) -> _Read:
        """What ``do`` reads of one state."""
        with self.database.reading() as session:
            return do(session)

    def _write(self, call: Call, sent: object, do: Callable[[Writer], Change]) -> Response:
        response = self.writes.run(call, sent, do)
        self.on_change()
        return response

    def write_row(
        self,
        call: Call,
        sent: object,
        resource: Resource,
        do: Callable[[Writer, Resource, str], service.Written],
        answer: Callable[[Document], Mapping[str, Any]] = dict,
    ) -> Response:
        """What ``do`` writes of one row of the caller's tenant; ``answer`` makes a body of the row."""

        def change(session: Writer) -> Change:
            return _change(resource, do(session, resource, call.subject.tenant_id), answer)

        return self._write(call, sent, change)

    def import_rows(
        self,
        call: Call,
        body: Input,
        resource: Resource,
        do: Callable[[Writer, str], service.Imported],
        answer: Callable[[service.Imported], Mapping[str, Any]],
    ) -> Response:
        """What ``do`` writes of many rows at once; ``answer`` says what became of each."""

        def change(session: Writer) -> Change:
            imported = do(session, call.subject.tenant_id)
            told = answer(imported)
            headers = {REVISION_HEADER: str(imported.revision)}
            return Change(resource=resource.path, body=told, headers=headers, after=told)

        return self._write(call, body.model_dump(mode="json"), change)


def _change(
    resource: Resource, written: service.Written, answer: Callable[[Document], Mapping[str, Any]]
) -> Change:
    """A row that is new, has another version, or is gone."""
    row, before = written.document, written.before
    path = f"{resource.path}/{(row or before or {})['id']}"
    headers = {} if row is None else {"ETag": service.etag(row)}
    headers[REVISION_HEADER] = str(written.revision)
    if before is None:
        headers["Location"] = f"/v1/{path}"
    return Change(
        resource=path,
        status=201 if before is None else 204 if row is None else 200,
        body=None if row is None else answer(row),
        headers=headers,
        before=before,
        after=row,
    )


def _transactions(request: Request) -> CatalogTransactions:
    transactions: CatalogTransactions = request.app.state.catalog
    return transactions


Transactions = Annotated[CatalogTransactions, Depends(_transactions)]
