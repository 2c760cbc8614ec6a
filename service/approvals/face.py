"""Approvals over HTTP: transactions and pages."""

import json
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from service.approvals import decisions, repository, service
from service.approvals.repository import Filters
from service.approvals.schemas import (
    AmendmentInput,
    ApprovalId,
    ApprovalQuery,
    DecisionInput,
    DecisionKind,
    Submission,
)
from service.approvals.service import Amendment
from service.approvals.telling import shown_summary
from service.audit.service import Call, Writes
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import Database
from service.kit.http.long_work import Aside
from service.kit.http.pages import PageTokens
from service.kit.http.web import json_response
from service.kit.security.subjects import Subject
from service.quotes.schemas import QuoteId
from service.quotes.service import Freezing, Frozen
from service.resolve.catalog import Catalog


class ApprovalsFace:
    """Reads and writes of the approvals of one database, as responses."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        snapshots: SnapshotStore,
        freezing: Freezing,
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._snapshots = snapshots
        self._freezing = freezing

    def catalog(self, tenant_id: str) -> Catalog:
        """What the tenant sees now: exchange rates, for one."""
        self._snapshots.refresh()
        return self._snapshots.current(tenant_id)

    def submit(self, call: Call, quote_id: str, body: Submission) -> Response:
        """An approval of the newest version of a quote."""
        catalog = self.catalog(call.subject.tenant_id)
        submit = partial(
            service.submit,
            subject=call.subject,
            quote_id=quote_id,
            content_digest=body.content_digest,
            catalog=catalog,
        )
        return self._writes.run(call, body.model_dump(mode="json"), submit)

    async def amend(self, call: Call, quote_id: str, body: AmendmentInput, aside: Aside) -> Response:
        """An approval of the next version of a quote."""
        sent = body.model_dump(mode="json")
        answered = await run_in_threadpool(self._writes.replayed, call, sent)
        if answered is not None:
            return answered
        frozen = await aside(partial(self._freezing.of, call.subject.tenant_id, body.quote, "/quote"))
        return await run_in_threadpool(self._amend, call, quote_id, body, frozen)

    def _amend(self, call: Call, quote_id: str, body: AmendmentInput, frozen: Frozen) -> Response:
        amend = partial(
            service.amend,
            subject=call.subject,
            quote_id=quote_id,
            amendment=Amendment(body.content_digest, frozen, body.quote.valid_for_days),
            catalog=self.catalog(call.subject.tenant_id),
        )
        return self._writes.run(call, body.model_dump(mode="json"), amend)

    def cancel(self, call: Call, quote_id: str, body: Submission) -> Response:
        """An approval that was cancelled."""
        cancel = partial(
            service.cancel, subject=call.subject, quote_id=quote_id, content_digest=body.content_digest
        )
        return self._writes.run(call, body.model_dump(mode="json"), cancel)

    def list(self, subject: Subject, query: ApprovalQuery) -> Response:
        """A page of approvals."""
        tenant_id = subject.tenant_id
        mine = subject.name if query.approver else ""
        told = [query.state, mine, query.requester, query.quote_id]
        filters = json.dumps(["approvals", tenant_id, *told])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            wanted = Filters(
                states=query.state,
                requester=query.requester,
                quote_ids=query.quote_id,
                waiting_for=service.names_of(session, subject) if mine else None,
            )
            behind = (datetime.fromisoformat(after[0]), after[1]) if after else None
            rows = repository.page(session, tenant_id, wanted, behind, query.limit + 1)
            shown = [shown_summary(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "submitted_at", "id"))

    def get(self, tenant_id: str, approval_id: str) -> Response:
        """One approval."""
        with self._database.reading() as session:
            found = service.with_outstanding(session, tenant_id, approval_id, self.catalog(tenant_id))
        return json_response(found)

    def history(self, tenant_id: str, approval_id: str) -> Response:
        """What was recorded of one approval."""
        with self._database.reading() as session:
            return json_response(service.history_of(session, tenant_id, approval_id))

    def decide(self, call: Call, approval_id: str, decision: DecisionKind, body: DecisionInput) -> Response:
        """An approval with a decision more."""
        decide = partial(
            decisions.decide,
            subject=call.subject,
            approval_id=approval_id,
            decision=decision,
            sent=body,
            catalog=self.catalog(call.subject.tenant_id),
        )
        return self._writes.run(call, body.model_dump(mode="json"), decide)

    def close(self, call: Call, approval_id: str) -> Response:
        """An approval that commits nothing more."""
        catalog = self.catalog(call.subject.tenant_id)
        close = partial(service.close, subject=call.subject, approval_id=approval_id, catalog=catalog)
        return self._writes.run(call, None, close)

    def comment(self, call: Call, approval_id: str, text: str) -> Response:
        """An approval with a comment more."""
        comment = partial(service.comment, subject=call.subject, approval_id=approval_id, text=text)
        return self._writes.run(call, text, comment)


def _face(request: Request) -> ApprovalsFace:
    face: ApprovalsFace = request.app.state.approvals
    return face


Face = Annotated[ApprovalsFace, Depends(_face)]
ApprovalPath = Annotated[ApprovalId, Path(description="Id of the approval.")]
QuotePath = Annotated[QuoteId, Path(description="Id of the quote.")]
