"""Operations on imported evidence."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.catalog.rows import REVISED
from service.evidence.imports.face import Face, ImportPath
from service.evidence.imports.schemas import (
    EvidenceImport,
    EvidencePage,
    EvidenceQuery,
    EvidenceWithdrawal,
    ImportedEvidence,
)
from service.kit.http.web import LOCATED, WorkAside, api_router

router = api_router("/v1/evidence", tag="evidence")
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": REVISED | LOCATED[201]["headers"]}}
_CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}


@router.get("", response_model=EvidencePage)
def list_evidence(face: Face, caller: Caller, query: Annotated[EvidenceQuery, Query()]) -> Response:
    """A page of the tenant's imports, the newest first."""
    return face.list(caller.tenant_id, query)


@router.post(":import", status_code=201, response_model=ImportedEvidence, responses=_CREATED)
async def import_evidence(face: Face, call: WriteCall, aside: WorkAside, body: EvidenceImport) -> Response:
    """Count the measurements of a file as evidence of the tenant, in the format of the program that wrote it.

    Figures of whole runs move the tenant's estimates; transfers, collectives and rates become figures of the
    device. Parts that cannot count are refused with the reason; the file itself is not kept.
    """
    return await face.create(call, body, aside)


@router.get("/{id:name}", response_model=ImportedEvidence)
def get_evidence(face: Face, caller: Caller, id: ImportPath) -> Response:
    """An import: what was read, what counts, what was refused."""
    return face.get(caller.tenant_id, id)


@router.post("/{id:name}:withdraw", response_model=ImportedEvidence, responses=_CHANGED)
def withdraw_evidence(face: Face, call: WriteCall, id: ImportPath, body: EvidenceWithdrawal) -> Response:
    """Let an import count no longer; estimates are then what they were without it."""
    return face.withdraw(call, id, body.reason)
