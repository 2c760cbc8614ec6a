"""The catalog over HTTP: transactions, validators and pages, the same for every noun."""

import hashlib
import json
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request, Response
from pydantic_core import to_json

from service.catalog import repository, service
from service.catalog.rows import Document, Noun
from service.catalog.shapes import PAGE_SIZE_LIMIT, ListQuery
from service.kit.database import Database
from service.kit.pages import PageTokens
from service.questions.base import Input, ResourceId

REVISION_HEADER = "Catalog-Revision"
"""Every write answers with it; an estimate that sends it back sees the write."""

_PAGING = frozenset({"page_size", "page_token", "order_by"})


class CatalogFace:
    """Reads and writes of one database, as responses. ``on_change`` is called after each write."""

    def __init__(self, database: Database, on_change: Callable[[], None]) -> None:
        self._database = database
        self._on_change = on_change

    def list(self, noun: Noun, query: ListQuery, if_none_match: str) -> Response:
        """A page of live rows that match the filters."""
        given = query.model_dump(exclude_unset=True, mode="json")
        filters = {name: value for name, value in given.items() if name not in _PAGING}
        canonical = json.dumps([noun.name, query.order_by, filters], sort_keys=True)
        limit = min(query.page_size, PAGE_SIZE_LIMIT)
        with self._database.reading() as session:
            position = json.dumps([canonical, limit, query.page_token])
            digest = hashlib.sha256(position.encode()).hexdigest()[:16]
            headers = {"ETag": f'"{repository.revision(session)}-{digest}"'}
            if _names(if_none_match, headers["ETag"]):
                return Response(status_code=304, headers=headers)
            tokens = PageTokens(service.page_token_key(session))
            after = tokens.decode(query.page_token, canonical) if query.page_token else []
            rows = repository.page(
                session, noun, filters, order_by=query.order_by, after=after, limit=limit + 1
            )
        token = None
        if len(rows) > limit:
            rows = rows[:limit]
            last = rows[-1]
            token = tokens.encode([last[query.order_by.removeprefix("-")], last["id"]], canonical)
        return _json({"items": rows, "next_page_token": token}, headers=headers)

    def get(self, noun: Noun, row_id: str, if_none_match: str) -> Response:
        """One row."""
        with self._database.reading() as session:
            row = service.get(session, noun, row_id)
        headers = {"ETag": service.etag(row["version"])}
        if _names(if_none_match, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        return _json(row, headers=headers)

    def create(self, noun: Noun, body: Input) -> Response:
        """A new row."""
        return self.create_document(noun, body.model_dump(mode="json"))

    def create_document(
        self, noun: Noun, document: Document, answer: Callable[[Document], Any] = lambda row: row
    ) -> Response:
        """A new row, shown as ``answer`` makes it."""
        with self._database.writing() as session:
            written = service.create(session, noun, document)
        self._on_change()
        headers = _written(written) | {"Location": f"/v1/{noun.name}/{written.document['id']}"}
        return _json(answer(written.document), status=201, headers=headers)

    def change(self, noun: Noun, row_id: str, body: Input, if_match: str) -> Response:
        """The next version of a row."""
        with self._database.writing() as session:
            patch = body.model_dump(mode="json")
            written = service.change(session, noun, row_id, patch, if_match)
        self._on_change()
        return _json(written.document, headers=_written(written))

    def delete(self, noun: Noun, row_id: str, if_match: str) -> Response:
        """No row any more."""
        with self._database.writing() as session:
            revision = service.delete(session, noun, row_id, if_match)
        self._on_change()
        return Response(status_code=204, headers={REVISION_HEADER: str(revision)})


def _written(written: service.Written) -> dict[str, str]:
    etag = service.etag(written.document["version"])
    return {"ETag": etag, REVISION_HEADER: str(written.revision)}


def _names(if_none_match: str, etag: str) -> bool:
    """Whether a list of validators holds ``etag``, by weak comparison (RFC 9110, section 13.1.2)."""
    given = (validator.strip().removeprefix("W/") for validator in if_none_match.split(","))
    return any(validator in ("*", etag) for validator in given)


def _json(content: object, *, status: int = 200, headers: dict[str, str]) -> Response:
    return Response(to_json(content), status, headers=headers, media_type="application/json")


def _face(request: Request) -> CatalogFace:
    face: CatalogFace = request.app.state.catalog
    return face


Face = Annotated[CatalogFace, Depends(_face)]
RowId = Annotated[ResourceId, Path(description="Id of the row.")]
IfMatch = Annotated[
    str, Header(max_length=200, description="ETag of the version that the change is based on.")
]
IfNoneMatch = Annotated[
    str, Header(max_length=200, description="ETag of what the caller has; 304 if it still holds.")
]


_SHORT_TEXT = {"type": "string", "maxLength": 200}
_ETAG = {"ETag": {"description": "Strong validator of what was sent.", "schema": _SHORT_TEXT}}
_REVISION = {
    REVISION_HEADER: {
        "description": "Revision that the catalog has after the write.",
        "schema": {"type": "integer", "format": "int64"},
    }
}
_LOCATION = {"Location": {"description": "Address of the new row.", "schema": _SHORT_TEXT}}
READ: dict[int | str, dict[str, Any]] = {
    200: {"headers": _ETAG},
    304: {"description": "What the caller has still holds.", "headers": _ETAG},
}
CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": _ETAG | _REVISION | _LOCATION}}
CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": _ETAG | _REVISION}}
DELETED: dict[int | str, dict[str, Any]] = {204: {"headers": _REVISION}}
