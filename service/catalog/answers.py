"""Answers to reads of the catalog, and their description in the API document."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Header, Path, Response

from service.catalog import repository, service
from service.catalog.registry import Resource
from service.catalog.rows import REVISED, RowDocument
from service.catalog.shapes import AnyCaseId, ListQuery
from service.kit.database.engine import Reader
from service.kit.http.pages import PageTokens
from service.kit.http.versions import ETAG
from service.kit.http.web import LOCATED, json_response

RowId = Annotated[AnyCaseId, Path(alias="id", description="Id of the row, in any case.")]
IfNoneMatch = Annotated[
    str, Header(max_length=200, description="ETag of the caller's copy; 304 if it is still current.")
]
READ: dict[int | str, dict[str, Any]] = {
    200: {"headers": ETAG},
    304: {"description": "The caller's copy is still current.", "headers": ETAG},
}
CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | REVISED | LOCATED[201]["headers"]}}
CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG | REVISED}}
IMPORTED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}
DELETED: dict[int | str, dict[str, Any]] = {204: {"headers": REVISED}}

_REVALIDATE = {"Cache-Control": "private, no-cache"}
_PAGING = frozenset({"page_size", "page_token", "order_by"})


def build_page_response(
    session: Reader,
    resource: Resource,
    tenant_id: str,
    query: ListQuery,
    *,
    tokens: PageTokens,
    if_none_match: str,
) -> Response:
    """Returns a page of the rows that a tenant sees and that match the filters."""
    given = query.model_dump(exclude_unset=True, mode="json")
    filters = {name: value for name, value in given.items() if name not in _PAGING}
    canonical = json.dumps([resource.name, tenant_id, query.order_by, filters], sort_keys=True)
    after = tokens.decode(query.page_token, canonical) if query.page_token else []
    limit, order = query.limit, query.order_by
    digest = hashlib.sha256(json.dumps([canonical, limit, query.page_token]).encode()).hexdigest()[:16]
    headers = {"ETag": f'"{service.get_revision(session, tenant_id)}-{digest}"'} | _REVALIDATE
    if _has_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    rows = repository.list_page(
        session, resource, tenant_id, filters, order_by=order, after=after, limit=limit + 1
    )
    return json_response(
        tokens.build_page(rows, limit, canonical, order.removeprefix("-"), "id"), headers=headers
    )


def build_row_response(
    row: RowDocument, if_none_match: str, answer: Callable[[RowDocument], Mapping[str, Any]] = dict
) -> Response:
    """Returns one row, whose body is built by ``answer``."""
    headers = {"ETag": service.build_etag(row)} | _REVALIDATE
    if _has_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return json_response(answer(row), headers=headers)


def _has_etag(if_none_match: str, etag: str) -> bool:
    """Returns true if a list of validators has ``etag``, by weak comparison (RFC 9110, section 13.1.2)."""
    given = (validator.strip().removeprefix("W/") for validator in if_none_match.split(","))
    return any(validator in ("*", etag) for validator in given)
