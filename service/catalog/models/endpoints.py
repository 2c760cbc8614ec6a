"""Operations on models."""

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
from service.catalog.models.schemas import (
    ImportedModel,
    Model,
    ModelImport,
    ModelInput,
    ModelPage,
    ModelPatch,
    ModelQuery,
)
from service.catalog.models.service import read_config
from service.catalog.nouns import MODELS
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/models", tag="models")


@router.get("", response_model=ModelPage, responses=READ)
def list_models(
    face: Face, caller: Caller, query: Annotated[ModelQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the models that match every filter."""
    return face.list(MODELS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Model, responses=CREATED)
async def create_model(face: Face, call: WriteCall, beside: LargeAside, body: ModelInput) -> Response:
    """Create a model under an id that is free."""
    return await beside(partial(face.create, MODELS, call, body))


@router.get("/{id:name}", response_model=Model, responses=READ)
def get_model(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a model."""
    return face.get(MODELS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Model, responses=CHANGED)
async def update_model(
    face: Face, call: WriteCall, beside: LargeAside, id: RowId, body: ModelPatch, *, if_match: IfMatch = ""
) -> Response:
    """Change members of a model, if it is still at the version of the ETag."""
    return await beside(partial(face.change, MODELS, call, id, body, if_match))


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_model(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a model that no row refers to, if it is still at the version of the ETag."""
    return face.delete(MODELS, call, id, if_match)


@router.post(":import", status_code=201, response_model=ImportedModel, responses=CREATED)
async def import_model(face: Face, call: WriteCall, aside: WorkAside, body: ModelImport) -> Response:
    """Create a model from a published Hugging Face config.json."""
    imported = await aside(partial(read_config, body))
    return await run_in_threadpool(face.create_document, MODELS, call, imported.document, imported.answer)


@router.post("/{id:name}:copy", status_code=201, response_model=Model, responses=CREATED)
def copy_model(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a model into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(MODELS, call, id, body)
