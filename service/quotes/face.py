"""Quotes over HTTP: transactions and pages."""

import json
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from pydantic import MISSING
from starlette.concurrency import run_in_threadpool

from service.audit.service import Call, Writes
from service.kit.database.engine import Database
from service.kit.http.html import page_response
from service.kit.http.long_work import Aside
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import json_response
from service.quotes import repository, service
from service.quotes.compare import compared
from service.quotes.documents import summary_of
from service.quotes.errors import QuoteChanged, QuoteNotFound
from service.quotes.report.service import report_html
from service.quotes.schemas import (
    NEWEST,
    QuoteComparisonQuery,
    QuoteId,
    QuoteInput,
    QuoteQuery,
    RepriceInput,
)
from service.quotes.service import Freezing, Frozen


class QuotesFace:
    """Reads and writes of the quotes of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens, freezing: Freezing) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._freezing = freezing

    async def create(self, call: Call, body: QuoteInput, aside: Aside) -> Response:
        """A new quote."""
        given = await self._given(call, body)
        if given is not None:
            return given
        frozen = await aside(partial(self._freezing.of, call.subject.tenant_id, body))
        return await run_in_threadpool(self._create, call, body, frozen)

    async def _given(self, call: Call, body: QuoteInput | RepriceInput) -> Response | None:
        """What a request got before, if it is a retry."""
        return await run_in_threadpool(self._writes.replayed, call, body.model_dump(mode="json"))

    def _create(self, call: Call, body: QuoteInput, frozen: Frozen) -> Response:
        subject = call.subject
        create = partial(
            service.create,
            tenant_id=subject.tenant_id,
            frozen=frozen,
            created_by=subject.name,
            days=body.valid_for_days,
        )
        return self._writes.run(call, body.model_dump(mode="json"), create)

    async def reprice(self, call: Call, quote_id: str, body: RepriceInput, aside: Aside) -> Response:
        """The next version of a quote, under the present catalog."""
        given = await self._given(call, body)
        if given is not None:
            return given
        version = None if body.version is MISSING else body.version
        try:
            freeze = partial(self._freezing.again, call.subject.tenant_id, quote_id, version)
            frozen = await aside(freeze)
        except QuoteChanged:
            # A retry that was sent while the first was still answered finds the version that this one made.
            given = await self._given(call, body)
            if given is None:
                raise
            return given
        return await run_in_threadpool(self._reprice, call, quote_id, body, frozen)

    def _reprice(self, call: Call, quote_id: str, body: RepriceInput, frozen: Frozen) -> Response:
        subject = call.subject
        add = partial(
            service.add_version,
            tenant_id=subject.tenant_id,
            quote_id=quote_id,
            frozen=frozen,
            created_by=subject.name,
            days=body.valid_for_days,
        )
        return self._writes.run(call, body.model_dump(mode="json"), add)

    def list(self, tenant_id: str, query: QuoteQuery) -> Response:
        """A page of quotes, each in its newest version."""
        filters = json.dumps(["quotes", tenant_id, query.state, query.operation, query.cost_center_id])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            rows = repository.page(
                session,
                tenant_id,
                states=query.state,
                operations=query.operation,
                cost_centers=query.cost_center_id,
                after=(datetime.fromisoformat(after[0]), after[1]) if after else None,
                limit=query.limit + 1,
            )
            shown = [summary_of(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def versions(self, tenant_id: str, quote_id: str, query: PageQuery) -> Response:
        """A page of the versions of a quote."""
        filters = json.dumps(["quote versions", tenant_id, quote_id])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        below = int(after[0]) if after else None
        with self._database.reading() as session:
            rows = repository.versions(session, tenant_id, quote_id, below=below, limit=query.limit + 1)
            shown = [summary_of(row) for row in rows]
        if not shown and below is None:
            raise QuoteNotFound
        return json_response(self._tokens.page(shown, query.limit, filters, "version"))

    def get(self, tenant_id: str, quote_id: str, version: int) -> Response:
        """One version of a quote."""
        with self._database.reading() as session:
            return json_response(service.get(session, tenant_id, quote_id, version))

    def compare(self, tenant_id: str, quote_id: str, query: QuoteComparisonQuery) -> Response:
        """A version of a quote beside another version, or another quote."""
        with self._database.reading() as session:
            after = service.get(session, tenant_id, quote_id, query.version)
            base = query.base_version
            if not query.base_id and base == NEWEST:
                base = max(1, after["version"] - 1)
            before = service.get(session, tenant_id, query.base_id or quote_id, base)
        return json_response(compared(before, after))

    def report(self, tenant_id: str, quote_id: str, version: int) -> Response:
        """The report of a version as a page."""
        with self._database.reading() as session:
            quote = service.get(session, tenant_id, quote_id, version)
        return page_response(report_html(quote))

    def focus(self, tenant_id: str, quote_id: str, version: int) -> Response:
        """The charges of a version as a file."""
        with self._database.reading() as session:
            rows = service.focus(session, tenant_id, quote_id, version)
        disposition = f'attachment; filename="quote-{quote_id}.csv"'
        return Response(rows, media_type="text/csv", headers={"Content-Disposition": disposition})


def _face(request: Request) -> QuotesFace:
    face: QuotesFace = request.app.state.quotes
    return face


Face = Annotated[QuotesFace, Depends(_face)]
QuotePath = Annotated[QuoteId, Path(description="Id of the quote.")]
