"""The catalog over HTTP: transactions, validators and pages, the same for every noun."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Path, Request, Response
from pydantic import MISSING

from service.audit.service import Call, Change, Writes
from service.catalog import repository, service
from service.catalog.rows import REVISED, REVISION_HEADER, Document, Noun
from service.catalog.shapes import ListQuery, RowCopy
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.pages import PageTokens
from service.kit.http.versions import ETAG
from service.kit.http.web import LOCATED, json_response
from service.schemas.base import Input, ResourceId

_Read = TypeVar("_Read")
_REVALIDATE = {"Cache-Control": "private, no-cache"}
_PAGING = frozenset({"page_size", "page_token", "order_by"})


class CatalogFace:
    """Reads and writes of one database, as responses. ``on_change`` is called after each write."""

    def __init__(
        self, database: Database, *, writes: Writes, tokens: PageTokens, on_change: Callable[[], None]
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._on_change = on_change

    def list(self, noun: Noun, tenant_id: str, query: ListQuery, if_none_match: str) -> Response:
        """A page of the rows that a tenant sees and that match the filters."""
        given = query.model_dump(exclude_unset=True, mode="json")
        filters = {name: value for name, value in given.items() if name not in _PAGING}
        canonical = json.dumps([noun.name, tenant_id, query.order_by, filters], sort_keys=True)
        limit = query.limit
        after = self._tokens.decode(query.page_token, canonical) if query.page_token else []
        with self._database.reading() as session:
            position = json.dumps([canonical, limit, query.page_token])
            digest = hashlib.sha256(position.encode()).hexdigest()[:16]
            headers = {"ETag": f'"{service.revision(session, tenant_id)}-{digest}"'} | _REVALIDATE
            if _names(if_none_match, headers["ETag"]):
                return Response(status_code=304, headers=headers)
            rows = repository.page(
                session, noun, tenant_id, filters, order_by=query.order_by, after=after, limit=limit + 1
            )
        page = self._tokens.page(rows, limit, canonical, query.order_by.removeprefix("-"), "id")
        return json_response(page, headers=headers)

    def get(
        self,
        noun: Noun,
        tenant_id: str,
        row_id: str,
        if_none_match: str,
        answer: Callable[[Document], Any] = lambda row: row,
    ) -> Response:
        """One row, shown as ``answer`` makes it."""
        with self._database.reading() as session:
            row = service.get(session, noun, tenant_id, row_id)
        headers = {"ETag": service.etag(row)} | _REVALIDATE
        if _names(if_none_match, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return json_response(answer(row), headers=headers)

    def create(self, noun: Noun, call: Call, body: Input) -> Response:
        """A new row."""
        return self.create_document(noun, call, body.model_dump(mode="json"))

    def create_document(
        self, noun: Noun, call: Call, document: Document, answer: Callable[[Document], Any] = lambda row: row
    ) -> Response:
        """A new row, shown as ``answer`` makes it."""
        tenant_id = call.subject.tenant_id

        def do(session: Writer) -> Change:
            return _created(noun, service.create(session, noun, tenant_id, document), answer)

        return self._write(call, document, do)

    def copy(self, noun: Noun, call: Call, row_id: str, body: RowCopy) -> Response:
        """A row of the tenant's own, made of one that it sees."""
        new_id = None if body.id is MISSING else body.id

        def do(session: Writer) -> Change:
            written = service.copy(session, noun, call.subject.tenant_id, row_id, new_id)
            return _created(noun, written, lambda row: row)

        return self._write(call, new_id, do)

    def change(self, noun: Noun, call: Call, row_id: str, body: Input, if_match: str) -> Response:
        """The next version of a row."""
        patch = body.model_dump(mode="json")

        def do(session: Writer) -> Change:
            owner = call.subject.tenant_id
            written = service.change(session, noun, owner, row_id, patch=patch, if_match=if_match)
            return _changed(noun, row_id, written)

        return self._write(call, [patch, if_match], do)

    def delete(self, noun: Noun, call: Call, row_id: str, if_match: str) -> Response:
        """No row of the tenant's own any more."""

        def do(session: Writer) -> Change:
            written = service.delete(session, noun, call.subject.tenant_id, row_id, if_match=if_match)
            return _changed(noun, row_id, written)

        return self._write(call, if_match, do)

    def read(self, do: Callable[[Reader], _Read]) -> _Read:
        """What ``do`` reads."""
        with self._database.reading() as session:
            return do(session)

    def import_rows(
        self,
        noun: Noun,
        call: Call,
        body: Input,
        store: Callable[[Writer], service.Imported],
        answer: Callable[[service.Imported], Mapping[str, Any]],
    ) -> Response:
        """Many rows at once, as ``store`` writes them; the answer says what became of each."""

        def do(session: Writer) -> Change:
            imported = store(session)
            told = answer(imported)
            headers = {REVISION_HEADER: str(imported.revision)}
            return Change(resource=noun.path, body=told, headers=headers, after=told)

        return self._write(call, body.model_dump(mode="json"), do)

    def _write(self, call: Call, sent: object, do: Callable[[Writer], Change]) -> Response:
        response = self._writes.run(call, sent, do)
        self._on_change()
        return response


def _created(noun: Noun, written: service.Written, answer: Callable[[Document], Any]) -> Change:
    document = written.document
    assert document is not None  # noqa: S101
    path = f"{noun.path}/{document['id']}"
    location = {"Location": f"/v1/{path}"}
    headers = _headers(written) | location
    return Change(resource=path, status=201, body=answer(document), headers=headers, after=document)


def _changed(noun: Noun, row_id: str, written: service.Written) -> Change:
    return Change(
        resource=f"{noun.path}/{row_id}",
        status=204 if written.document is None else 200,
        body=written.document,
        headers=_headers(written),
        before=written.before,
        after=written.document,
    )


def _headers(written: service.Written) -> dict[str, str]:
    revision = {REVISION_HEADER: str(written.revision)}
    return revision if written.document is None else {"ETag": service.etag(written.document)} | revision


def _names(if_none_match: str, etag: str) -> bool:
    """Whether a list of validators holds ``etag``, by weak comparison (RFC 9110, section 13.1.2)."""
    given = (validator.strip().removeprefix("W/") for validator in if_none_match.split(","))
    return any(validator in ("*", etag) for validator in given)


def _face(request: Request) -> CatalogFace:
    face: CatalogFace = request.app.state.catalog
    return face


Face = Annotated[CatalogFace, Depends(_face)]
RowId = Annotated[ResourceId, Path(description="Id of the row.")]
IfNoneMatch = Annotated[
    str, Header(max_length=200, description="ETag of what the caller has; 304 if it still holds.")
]


READ: dict[int | str, dict[str, Any]] = {
    200: {"headers": ETAG},
    304: {"description": "What the caller has still holds.", "headers": ETAG},
}
CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | REVISED | LOCATED[201]["headers"]}}
CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG | REVISED}}
IMPORTED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}
DELETED: dict[int | str, dict[str, Any]] = {204: {"headers": REVISED}}
