"""Operations on accelerators."""

from typing import Annotated

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.catalog.accelerators.schemas import (
    Accelerator,
    AcceleratorInput,
    AcceleratorPage,
    AcceleratorPatch,
    AcceleratorQuery,
)
from service.catalog.face import (
    CHANGED,
    CREATED,
    DELETED,
    READ,
    Face,
    IfNoneMatch,
    RowId,
)
from service.catalog.nouns import ACCELERATORS
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import api_router

router = api_router("/v1/accelerators", tag="accelerators")


@router.get("", response_model=AcceleratorPage, responses=READ)
def list_accelerators(
    face: Face, caller: Caller, query: Annotated[AcceleratorQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the accelerators that match every filter."""
    return face.list(ACCELERATORS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Accelerator, responses=CREATED)
def create_accelerator(face: Face, call: WriteCall, body: AcceleratorInput) -> Response:
    """Create an accelerator under an id that is free."""
    return face.create(ACCELERATORS, call, body)


@router.get("/{id:name}", response_model=Accelerator, responses=READ)
def get_accelerator(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of an accelerator."""
    return face.get(ACCELERATORS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Accelerator, responses=CHANGED)
def update_accelerator(
    face: Face, call: WriteCall, id: RowId, body: AcceleratorPatch, if_match: IfMatch = ""
) -> Response:
    """Change members of an accelerator, if it is still at the version of the ETag."""
    return face.change(ACCELERATORS, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_accelerator(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete an accelerator that no row refers to, if it is still at the version of the ETag."""
    return face.delete(ACCELERATORS, call, id, if_match)


@router.post("/{id:name}:copy", status_code=201, response_model=Accelerator, responses=CREATED)
def copy_accelerator(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy an accelerator into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(ACCELERATORS, call, id, body)
