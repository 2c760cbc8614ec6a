"""Operations on tariffs."""

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
from service.catalog.nouns import TARIFFS
from service.catalog.shapes import RowCopy
from service.catalog.tariffs.schemas import (
    ExportedTariff,
    ExportQuery,
    ImportedTariff,
    Tariff,
    TariffImport,
    TariffInput,
    TariffPage,
    TariffPatch,
    TariffQuery,
)
from service.catalog.tariffs.service import exported, read_tariff
from service.kit.http.versions import IfMatch
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/tariffs", tag="tariffs")


@router.get("", response_model=TariffPage, responses=READ)
def list_tariffs(
    face: Face, caller: Caller, query: Annotated[TariffQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the tariffs that match every filter."""
    return face.list(TARIFFS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Tariff, responses=CREATED)
async def create_tariff(face: Face, call: WriteCall, beside: LargeAside, body: TariffInput) -> Response:
    """Create a tariff under an id that is free."""
    return await beside(partial(face.create, TARIFFS, call, body))


@router.get("/{id:name}", response_model=Tariff, responses=READ)
def get_tariff(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a tariff."""
    return face.get(TARIFFS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Tariff, responses=CHANGED)
async def update_tariff(
    face: Face, call: WriteCall, beside: LargeAside, id: RowId, body: TariffPatch, *, if_match: IfMatch = ""
) -> Response:
    """Change members of a tariff, if it is still at the version of the ETag."""
    return await beside(partial(face.change, TARIFFS, call, id, body, if_match))


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_tariff(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a tariff that no row refers to, if it is still at the version of the ETag."""
    return face.delete(TARIFFS, call, id, if_match)


@router.post(":import", status_code=201, response_model=ImportedTariff, responses=CREATED)
async def import_tariff(face: Face, call: WriteCall, aside: WorkAside, body: TariffImport) -> Response:
    """Create a tariff from a rate of OpenEI's utility rate database, or from the prices of a market."""
    read = await aside(partial(read_tariff, body))
    return await run_in_threadpool(face.create_document, TARIFFS, call, read.document, read.answer)


@router.get("/{id:name}:export", response_model=ExportedTariff, responses=READ)
def export_tariff(
    face: Face,
    caller: Caller,
    id: RowId,
    query: Annotated[ExportQuery, Query()],
    if_none_match: IfNoneMatch = "",
) -> Response:
    """A tariff as a rate of OpenEI's utility rate database, with what such a rate cannot say."""
    return face.get(TARIFFS, caller.tenant_id, id, if_none_match, lambda row: exported(row, query.on))


@router.post("/{id:name}:copy", status_code=201, response_model=Tariff, responses=CREATED)
def copy_tariff(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a tariff into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(TARIFFS, call, id, body)
