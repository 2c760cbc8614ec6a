"""Operations on calibrations."""

from typing import Annotated, Any

from fastapi import Path, Query, Response

from service.audit.service import Read, WriteRequest, write_from
from service.calibrations import repository, service
from service.calibrations.schemas import (
    Calibration,
    CalibrationDetails,
    CalibrationPage,
    CalibrationQuery,
    CalibrationWithdrawalRequest,
    NodeCalibrationWithdrawalRequest,
    WithdrawnCalibrations,
)
from service.catalog.rows import REVISED
from service.kit.http.pages import NEWEST_FIRST
from service.kit.http.web import api_router, json_response
from service.schemas.base import ResourceId

router = api_router("/v1/calibrations", tag="calibrations")
_CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}


CatalogWrite = Annotated[WriteRequest, write_from("catalog_transactions")]
CalibrationPath = Annotated[ResourceId, Path(description="Id of the calibration.")]


@router.get("", summary="List calibrations", response_model=CalibrationPage)
def list_calibrations(read: Read, query: Annotated[CalibrationQuery, Query()]) -> Response:
    """Lists the tenant's calibrations, the newest first."""
    allowed = query.get_allowed_values()
    page = read.page(query, NEWEST_FIRST, "calibrations", allowed)
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, allowed, after=page.after, limit=page.limit)
        return json_response(page.to_response([service.to_summary(row) for row in rows]))


@router.post(
    ":withdraw",
    summary="Withdraw all calibrations of a node",
    response_model=WithdrawnCalibrations,
    responses=_CHANGED,
)
def withdraw_node_calibrations(write: CatalogWrite, body: NodeCalibrationWithdrawalRequest) -> Response:
    """Withdraws all calibrations of a node, because the node proved bad.

    Its next runs make new calibrations.
    """
    return write.run(
        body,
        lambda session: service.withdraw_node_calibrations(
            session, write.tenant_id, body.node_id, body.reason
        ),
    )


@router.get("/{id:name}", summary="Get a calibration with its evidence", response_model=CalibrationDetails)
def get_calibration(read: Read, id: CalibrationPath) -> Response:
    """Returns a calibration: every figure, and the results, runs and conditions behind it."""
    with read.session() as session:
        return json_response(service.get_calibration(session, read.tenant_id, id))


@router.post(
    "/{id:name}:withdraw", summary="Withdraw a calibration", response_model=Calibration, responses=_CHANGED
)
def withdraw_calibration(
    write: CatalogWrite, id: CalibrationPath, body: CalibrationWithdrawalRequest
) -> Response:
    """Withdraws a calibration permanently. The calibration that it superseded counts again.

    Its results are never used for a calibration again.
    """
    return write.run(
        body, lambda session: service.withdraw_calibration(session, write.tenant_id, id, body.reason)
    )
