"""Operations on sites."""

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
from service.catalog.nouns import SITES
from service.catalog.sites.schemas import Site, SiteInput, SitePage, SitePatch, SiteQuery
from service.kit.web import api_router

router = api_router("/v1/sites", tag="sites")


@router.get("", response_model=SitePage, responses=READ)
def list_sites(face: Face, query: Annotated[SiteQuery, Query()], if_none_match: IfNoneMatch = "") -> Response:
    """A page of the sites that match every filter."""
    return face.list(SITES, query, if_none_match)


@router.post("", status_code=201, response_model=Site, responses=CREATED)
def create_site(face: Face, body: SiteInput) -> Response:
    """Create a site under an id that is free."""
    return face.create(SITES, body)


@router.get("/{id}", response_model=Site, responses=READ)
def get_site(face: Face, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a site."""
    return face.get(SITES, id, if_none_match)


@router.patch("/{id}", response_model=Site, responses=CHANGED)
def update_site(face: Face, id: RowId, body: SitePatch, if_match: IfMatch = "") -> Response:
    """Change members of a site, if it is still at the version of the ETag."""
    return face.change(SITES, id, body, if_match)


@router.delete("/{id}", status_code=204, responses=DELETED)
def delete_site(face: Face, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a site that no row refers to, if it is still at the version of the ETag."""
    return face.delete(SITES, id, if_match)
