"""Operations on calibrations."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.calibrations.face import CalibrationPath, Face
from service.calibrations.schemas import (
    Calibration,
    CalibrationDetails,
    CalibrationPage,
    CalibrationQuery,
    NodeWithdrawal,
    Withdrawal,
    WithdrawnCalibrations,
)
from service.catalog.rows import REVISED
from service.kit.http.web import api_router

router = api_router("/v1/calibrations", tag="calibrations")
_CHANGED: dict[int | str, dict[str, Any]] = {200: {"headers": REVISED}}


@router.get("", response_model=CalibrationPage)
def list_calibrations(face: Face, caller: Caller, query: Annotated[CalibrationQuery, Query()]) -> Response:
    """A page of the tenant's calibrations, the newest first."""
    return face.list(caller.tenant_id, query)


@router.post(":withdraw", response_model=WithdrawnCalibrations, responses=_CHANGED)
def withdraw_node_calibrations(face: Face, call: WriteCall, body: NodeWithdrawal) -> Response:
    """Let nothing count that a node has measured so far: it proved bad.

    Its next runs make new calibrations.
    """
    return face.withdraw_node(call, body)


@router.get("/{id:name}", response_model=CalibrationDetails)
def get_calibration(face: Face, caller: Caller, id: CalibrationPath) -> Response:
    """A calibration: every figure, and the results, runs and conditions that it rests on."""
    return face.get(caller.tenant_id, id)


@router.post("/{id:name}:withdraw", response_model=Calibration, responses=_CHANGED)
def withdraw_calibration(face: Face, call: WriteCall, id: CalibrationPath, body: Withdrawal) -> Response:
    """Let a calibration count no more, for good; the one that it superseded counts again.

    The results that it brought are never drawn from again.
    """
    return face.withdraw(call, id, body)
