"""Imported evidence over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Call, Writes
from service.evidence.imports import repository, service
from service.evidence.imports.schemas import EvidenceImport, EvidenceQuery
from service.kit.database.engine import Database
from service.kit.http.long_work import Aside
from service.kit.http.pages import PageTokens
from service.kit.http.web import json_response
from service.resolve.catalog import Catalog
from service.schemas.base import ResourceId


class EvidenceFace:
    """Reads and writes of the evidence of one database, as responses.

    ``catalog_of`` is what a tenant sees without its own measurements moving it; ``on_change`` is called after
    each write.
    """

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        catalog_of: Callable[[str], Catalog],
        estimators: service.Estimators,
        on_change: Callable[[], None],
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._catalog_of = catalog_of
        self._estimators = estimators
        self._on_change = on_change

    async def create(self, call: Call, body: EvidenceImport, aside: Aside) -> Response:
        """What became of a file."""
        # Read before the transaction: an embedded database has one writer.
        catalog = self._catalog_of(call.subject.tenant_id)
        outcome = await aside(partial(service.read, body, catalog, self._estimators))
        return await run_in_threadpool(self._store, call, body, outcome)

    def _store(self, call: Call, body: EvidenceImport, outcome: service.Outcome) -> Response:
        tenant_id = call.subject.tenant_id
        sent = body.model_dump(mode="json")
        response = self._writes.run(
            call, sent, lambda session: service.store(session, tenant_id, body, outcome)
        )
        self._on_change()
        return response

    def list(self, tenant_id: str, query: EvidenceQuery) -> Response:
        """A page of imports."""
        filters = json.dumps(["evidence", tenant_id, query.format])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            rows = repository.page(
                session,
                tenant_id,
                formats=query.format,
                after=(datetime.fromisoformat(after[0]), after[1]) if after else None,
                limit=query.limit + 1,
            )
            shown = list(service.summaries(session, tenant_id, rows))
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, import_id: str) -> Response:
        """One import."""
        with self._database.reading() as session:
            return json_response(service.get(session, tenant_id, import_id))

    def withdraw(self, call: Call, import_id: str, reason: str) -> Response:
        """An import that counts no longer."""
        tenant_id = call.subject.tenant_id
        response = self._writes.run(
            call, reason, lambda session: service.withdraw(session, tenant_id, import_id, reason)
        )
        self._on_change()
        return response


def _face(request: Request) -> EvidenceFace:
    face: EvidenceFace = request.app.state.evidence
    return face


Face = Annotated[EvidenceFace, Depends(_face)]
ImportPath = Annotated[ResourceId, Path(description="Id of the import.")]
