"""Operations on links."""

from typing import Annotated

from fastapi import Query, Response

from service.catalog.face import (
    CHANGED,
    CREATED,
    DELETED,
    READ,
    Face,
    IfMatch,
    IfNoneMatch,
    RowId,
)
from service.catalog.links.schemas import Link, LinkInput, LinkPage, LinkPatch, LinkQuery
from service.catalog.nouns import LINKS
from service.kit.web import api_router

router = api_router("/v1/links", tag="links")


@router.get("", response_model=LinkPage, responses=READ)
def list_links(face: Face, query: Annotated[LinkQuery, Query()], if_none_match: IfNoneMatch = "") -> Response:
    """A page of the links that match every filter."""
    return face.list(LINKS, query, if_none_match)


@router.post("", status_code=201, response_model=Link, responses=CREATED)
def create_link(face: Face, body: LinkInput) -> Response:
    """Create a link under an id that is free."""
    return face.create(LINKS, body)


@router.get("/{id}", response_model=Link, responses=READ)
def get_link(face: Face, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a link."""
    return face.get(LINKS, id, if_none_match)


@router.patch("/{id}", response_model=Link, responses=CHANGED)
def update_link(face: Face, id: RowId, body: LinkPatch, if_match: IfMatch = "") -> Response:
    """Change members of a link, if it is still at the version of the ETag."""
    return face.change(LINKS, id, body, if_match)


@router.delete("/{id}", status_code=204, responses=DELETED)
def delete_link(face: Face, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a link that no row refers to, if it is still at the version of the ETag."""
    return face.delete(LINKS, id, if_match)
