"""Operations on sites."""

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
from service.catalog.nouns import SITES
from service.catalog.shapes import RowCopy
from service.catalog.sites.schemas import Site, SiteInput, SitePage, SitePatch, SiteQuery
from service.kit.http.versions import IfMatch
from service.kit.http.web import api_router

router = api_router("/v1/sites", tag="sites")


@router.get("", response_model=SitePage, responses=READ)
def list_sites(
    face: Face, caller: Caller, query: Annotated[SiteQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the sites that match every filter."""
    return face.list(SITES, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Site, responses=CREATED)
def create_site(face: Face, call: WriteCall, body: SiteInput) -> Response:
    """Create a site under an id that is free."""
    return face.create(SITES, call, body)


@router.get("/{id:name}", response_model=Site, responses=READ)
def get_site(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a site."""
    return face.get(SITES, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Site, responses=CHANGED)
def update_site(face: Face, call: WriteCall, id: RowId, body: SitePatch, if_match: IfMatch = "") -> Response:
    """Change members of a site, if it is still at the version of the ETag."""
    return face.change(SITES, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_site(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a site that no row refers to, if it is still at the version of the ETag."""
    return face.delete(SITES, call, id, if_match)


@router.post("/{id:name}:copy", status_code=201, response_model=Site, responses=CREATED)
def copy_site(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a site into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(SITES, call, id, body)
