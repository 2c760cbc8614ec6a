"""Operations on models."""

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
from service.kit.web import api_router

router = api_router("/v1/models", tag="models")


@router.get("", response_model=ModelPage, responses=READ)
def list_models(
    face: Face, query: Annotated[ModelQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the models that match every filter."""
    return face.list(MODELS, query, if_none_match)


@router.post("", status_code=201, response_model=Model, responses=CREATED)
def create_model(face: Face, body: ModelInput) -> Response:
    """Create a model under an id that is free."""
    return face.create(MODELS, body)


@router.get("/{id}", response_model=Model, responses=READ)
def get_model(face: Face, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a model."""
    return face.get(MODELS, id, if_none_match)


@router.patch("/{id}", response_model=Model, responses=CHANGED)
def update_model(face: Face, id: RowId, body: ModelPatch, if_match: IfMatch = "") -> Response:
    """Change members of a model, if it is still at the version of the ETag."""
    return face.change(MODELS, id, body, if_match)


@router.delete("/{id}", status_code=204, responses=DELETED)
def delete_model(face: Face, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a model that no row refers to, if it is still at the version of the ETag."""
    return face.delete(MODELS, id, if_match)


@router.post(":import", status_code=201, response_model=ImportedModel, responses=CREATED)
def import_model(face: Face, body: ModelImport) -> Response:
    """Create a model from a published Hugging Face config.json."""
    imported = read_config(body)
    return face.create_document(MODELS, imported.document, imported.answer)
