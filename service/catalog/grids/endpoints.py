"""Operations on grids."""

from functools import partial
from typing import Annotated

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool

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
from service.catalog.grids.schemas import (
    Grid,
    GridImport,
    GridInput,
    GridPage,
    GridPatch,
    GridQuery,
    ImportedGrid,
)
from service.catalog.grids.service import read_table
from service.catalog.nouns import GRIDS
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import WorkAside, api_router

router = api_router("/v1/grids", tag="grids")


@router.get("", response_model=GridPage, responses=READ)
def list_grids(
    face: Face, caller: Caller, query: Annotated[GridQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the grids that match every filter."""
    return face.list(GRIDS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Grid, responses=CREATED)
def create_grid(face: Face, call: WriteCall, body: GridInput) -> Response:
    """Create a grid under an id that is free."""
    return face.create(GRIDS, call, body)


@router.get("/{id:name}", response_model=Grid, responses=READ)
def get_grid(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a grid."""
    return face.get(GRIDS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Grid, responses=CHANGED)
def update_grid(face: Face, call: WriteCall, id: RowId, body: GridPatch, if_match: IfMatch = "") -> Response:
    """Change members of a grid, if it is still at the version of the ETag."""
    return face.change(GRIDS, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_grid(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a grid that no row refers to, if it is still at the version of the ETag."""
    return face.delete(GRIDS, call, id, if_match)


@router.post(":import", status_code=201, response_model=ImportedGrid, responses=CREATED)
async def import_grid(face: Face, call: WriteCall, aside: WorkAside, body: GridImport) -> Response:
    """Create a grid with its intensity in time from a published table."""
    imported = await aside(partial(read_table, body))
    return await run_in_threadpool(face.create_document, GRIDS, call, imported.document, imported.answer)


@router.post("/{id:name}:copy", status_code=201, response_model=Grid, responses=CREATED)
def copy_grid(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a grid into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(GRIDS, call, id, body)
