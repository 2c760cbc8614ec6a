"""Actuals over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.actuals import accuracy, repository, service
from service.approvals.actuals.schemas import ActualsId, ActualsImport
from service.audit.service import Call, Change, Writes
from service.formats.focus import Bill
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import json_response
from service.quotes.schemas import QuoteId
from service.resolve.catalog import Catalog


class ActualsFace:
    """Reads and writes of one database, as responses. ``catalog_of`` has the exchange rates of a tenant."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        catalog_of: Callable[[str], Catalog],
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._catalog_of = catalog_of

    def create(self, call: Call, body: ActualsImport, bill: Bill) -> Response:
        """What became of a bill that was read before the transaction: an embedded database has one writer."""
        tenant_id = call.subject.tenant_id
        catalog = self._catalog_of(tenant_id)
        with self._database.reading() as reading:
            matched = service.match(reading, tenant_id, bill)

        def do(session: Writer) -> Change:
            return service.store(session, tenant_id, body, matched, catalog)

        return self._writes.run(call, body.model_dump(mode="json"), do)

    def list(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of imports."""
        filters = json.dumps(["actuals", tenant_id])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        behind = (datetime.fromisoformat(after[0]), after[1]) if after else None
        with self._database.reading() as session:
            rows = repository.page(session, tenant_id, behind, query.limit + 1)
            shown = service.listed(session, tenant_id, rows)
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, import_id: str) -> Response:
        """One import."""
        with self._database.reading() as session:
            return json_response(service.get(session, tenant_id, import_id))

    def withdraw(self, call: Call, import_id: str, reason: str) -> Response:
        """An import that counts no longer."""

        def do(session: Writer) -> Change:
            return service.withdraw(session, call.subject.tenant_id, import_id, reason)

        return self._writes.run(call, reason, do)

    def of_quote(self, tenant_id: str, quote_id: str) -> Response:
        """What was billed for a quote."""
        with self._database.reading() as session:
            return json_response(accuracy.of_quote(session, tenant_id, quote_id, self._catalog_of(tenant_id)))

    def accuracy(self, tenant_id: str) -> Response:
        """How far quotes were off."""
        with self._database.reading() as session:
            return json_response(accuracy.accuracy(session, tenant_id, self._catalog_of(tenant_id)))


def _face(request: Request) -> ActualsFace:
    face: ActualsFace = request.app.state.actuals
    return face


Face = Annotated[ActualsFace, Depends(_face)]
ImportPath = Annotated[ActualsId, Path(description="Id of the import.")]
QuotePath = Annotated[QuoteId, Path(description="Id of the quote.")]
