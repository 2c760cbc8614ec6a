"""Operations on accelerators."""

from typing import Annotated

from fastapi import Query, Response

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
    IfMatch,
    IfNoneMatch,
    RowId,
)
from service.catalog.nouns import ACCELERATORS
from service.kit.web import api_router

router = api_router("/v1/accelerators", tag="accelerators")


@router.get("", response_model=AcceleratorPage, responses=READ)
def list_accelerators(
    face: Face, query: Annotated[AcceleratorQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the accelerators that match every filter."""
    return face.list(ACCELERATORS, query, if_none_match)


@router.post("", status_code=201, response_model=Accelerator, responses=CREATED)
def create_accelerator(face: Face, body: AcceleratorInput) -> Response:
    """Create an accelerator under an id that is free."""
    return face.create(ACCELERATORS, body)


@router.get("/{id}", response_model=Accelerator, responses=READ)
def get_accelerator(face: Face, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of an accelerator."""
    return face.get(ACCELERATORS, id, if_none_match)


@router.patch("/{id}", response_model=Accelerator, responses=CHANGED)
def update_accelerator(face: Face, id: RowId, body: AcceleratorPatch, if_match: IfMatch = "") -> Response:
    """Change members of an accelerator, if it is still at the version of the ETag."""
    return face.change(ACCELERATORS, id, body, if_match)


@router.delete("/{id}", status_code=204, responses=DELETED)
def delete_accelerator(face: Face, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete an accelerator that no row refers to, if it is still at the version of the ETag."""
    return face.delete(ACCELERATORS, id, if_match)
