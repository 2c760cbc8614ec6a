"""Operations on links."""

from typing import Annotated

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.catalog.face import (
    CHANGED,
    CREATED,
    DELETED,
    READ,
    Face,
    IfNoneMatch,
    RowId,
)
from service.catalog.links.schemas import Link, LinkInput, LinkPage, LinkPatch, LinkQuery
from service.catalog.nouns import LINKS
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import api_router

router = api_router("/v1/links", tag="links")


@router.get("", response_model=LinkPage, responses=READ)
def list_links(
    face: Face, caller: Caller, query: Annotated[LinkQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the links that match every filter."""
    return face.list(LINKS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Link, responses=CREATED)
def create_link(face: Face, call: WriteCall, body: LinkInput) -> Response:
    """Create a link under an id that is free."""
    return face.create(LINKS, call, body)


@router.get("/{id:name}", response_model=Link, responses=READ)
def get_link(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a link."""
    return face.get(LINKS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Link, responses=CHANGED)
def update_link(face: Face, call: WriteCall, id: RowId, body: LinkPatch, if_match: IfMatch = "") -> Response:
    """Change members of a link, if it is still at the version of the ETag."""
    return face.change(LINKS, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_link(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a link that no row refers to, if it is still at the version of the ETag."""
    return face.delete(LINKS, call, id, if_match)


@router.post("/{id:name}:copy", status_code=201, response_model=Link, responses=CREATED)
def copy_link(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a link into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(LINKS, call, id, body)
