"""Operations on imported evidence."""

from functools import partial
from typing import Annotated, Any

from fastapi import Path, Query, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Read, WriteRequest, write_from
from service.catalog.rows import REVISED
from service.evidence.imports import repository, service
from service.evidence.imports.schemas import (
    EvidenceImportRequest,
    EvidencePage,
    EvidenceQuery,
    EvidenceWithdrawalRequest,
    ImportedEvidence,
)
from service.evidence.snapshot import Snapshots
from service.kit.http.pages import NEWEST_FIRST
from service.kit.http.web import LOCATED, OffloadedSearch, api_router, from_state, json_response
from service.schemas.base import ResourceId

router = api_router("/v1/evidence", tag="evidence")
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": REVISED | LOCATED[201]["headers"]}}
_CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}


CatalogWrite = Annotated[WriteRequest, write_from("catalog_transactions")]
Estimators = Annotated[service.Estimators, from_state("estimators")]
ImportPath = Annotated[ResourceId, Path(description="Id of the import.")]


@router.get("", summary="List imports of evidence", response_model=EvidencePage)
def list_evidence(read: Read, query: Annotated[EvidenceQuery, Query()]) -> Response:
    """Lists the tenant's imports, the newest first."""
    page = read.page(query, NEWEST_FIRST, "evidence", query.format)
    with read.session() as session:
        rows = repository.list_page(
            session, read.tenant_id, formats=query.format, after=page.after, limit=page.limit
        )
        return json_response(page.to_response(list(service.list_summaries(session, read.tenant_id, rows))))


@router.post(
    ":import",
    summary="Import measurements as evidence",
    status_code=201,
    response_model=ImportedEvidence,
    responses=_CREATED,
)
async def import_evidence(
    write: CatalogWrite,
    snapshots: Snapshots,
    estimators: Estimators,
    aside: OffloadedSearch,
    body: EvidenceImportRequest,
) -> Response:
    """Imports a file of measurements as evidence of the tenant, in the format of the program that wrote it.

    Figures of whole runs move the tenant's estimates; transfers, collectives and rates become figures of the
    device. Parts that cannot count are refused with the reason. The file itself is not stored.
    """
    # Read before the transaction: an embedded database has one writer.
    outcome = await aside(
        partial(service.read_evidence, body, snapshots.get_current(write.tenant_id), estimators)
    )
    return await run_in_threadpool(
        write.run, body, lambda session: service.store_evidence(session, write.tenant_id, body, outcome)
    )


@router.get("/{id:name}", summary="Get an import of evidence", response_model=ImportedEvidence)
def get_evidence(read: Read, id: ImportPath) -> Response:
    """Returns an import: the figures that were read, those that count, and the parts that were refused."""
    with read.session() as session:
        return json_response(service.get_import(session, read.tenant_id, id))


@router.post(
    "/{id:name}:withdraw",
    summary="Withdraw an import of evidence",
    response_model=ImportedEvidence,
    responses=_CHANGED,
)
def withdraw_evidence(write: CatalogWrite, id: ImportPath, body: EvidenceWithdrawalRequest) -> Response:
    """Withdraws an import, which no longer counts. Estimates are then as they were without it."""
    return write.run(
        body.reason, lambda session: service.withdraw_import(session, write.tenant_id, id, body.reason)
    )
