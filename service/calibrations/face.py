"""Calibrations over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.audit.service import Call, Change, Writes
from service.calibrations import repository, service
from service.calibrations.schemas import CalibrationQuery, NodeWithdrawal, Withdrawal
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageTokens
from service.kit.http.web import json_response
from service.schemas.base import ResourceId


class CalibrationsFace:
    """Reads and writes of the calibrations of one database; ``on_change`` is called after each write."""

    def __init__(
        self, database: Database, *, writes: Writes, tokens: PageTokens, on_change: Callable[[], None]
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._on_change = on_change

    def list(self, tenant_id: str, query: CalibrationQuery) -> Response:
        """A page of calibrations."""
        allowed = query.allowed()
        filters = json.dumps(["calibrations", tenant_id, allowed])
        after = None
        if query.page_token:
            time, row_id = self._tokens.decode(query.page_token, filters)
            after = (datetime.fromisoformat(time), row_id)
        with self._database.reading() as session:
            rows = repository.page(session, tenant_id, allowed, after=after, limit=query.limit + 1)
            shown = [service.shown(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, calibration_id: str) -> Response:
        """One calibration with what it says."""
        with self._database.reading() as session:
            return json_response(service.whole(session, tenant_id, calibration_id))

    def withdraw(self, call: Call, calibration_id: str, body: Withdrawal) -> Response:
        """A calibration that counts no more."""
        tenant_id = call.subject.tenant_id

        def do(session: Writer) -> Change:
            return service.withdraw(session, tenant_id, calibration_id, body.reason)

        return self._write(call, body.model_dump(mode="json"), do)

    def withdraw_node(self, call: Call, body: NodeWithdrawal) -> Response:
        """Calibrations of a node that count no more."""
        tenant_id = call.subject.tenant_id

        def do(session: Writer) -> Change:
            return service.withdraw_node(session, tenant_id, body.node_id, body.reason)

        return self._write(call, body.model_dump(mode="json"), do)

    def _write(self, call: Call, sent: object, do: Callable[[Writer], Change]) -> Response:
        response = self._writes.run(call, sent, do)
        self._on_change()
        return response


def _face(request: Request) -> CalibrationsFace:
    face: CalibrationsFace = request.app.state.calibrations
    return face


Face = Annotated[CalibrationsFace, Depends(_face)]
CalibrationPath = Annotated[ResourceId, Path(description="Id of the calibration.")]
