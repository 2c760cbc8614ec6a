"""Plans over HTTP: transactions and pages."""

import json
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Call, Writes
from service.estimates.service import answer
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import Database
from service.kit.http.long_work import Aside
from service.kit.http.pages import PageTokens
from service.kit.http.web import json_response
from service.plans import repository, stored
from service.plans.schemas import PlanId, PlanQuery
from service.plans.service import Prepared, prepare
from service.schemas.plans import PlanQuestion


class PlansFace:
    """Reads and writes of the plans of one database, as responses."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        snapshots: SnapshotStore,
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._snapshots = snapshots

    async def create(self, call: Call, question: PlanQuestion, aside: Aside) -> Response:
        """A plan with its answer, or one whose search is under way."""
        sent = question.model_dump(mode="json")
        given = await run_in_threadpool(self._writes.replayed, call, sent)
        if given is not None:
            return given
        prepared = await aside(partial(self._prepare, call.subject.tenant_id, question))
        return await run_in_threadpool(self._store, call, prepared)

    def _prepare(self, tenant_id: str, question: PlanQuestion) -> Prepared:
        self._snapshots.refresh()
        return answer(prepare, question, self._snapshots.current(tenant_id))

    def _store(self, call: Call, prepared: Prepared) -> Response:
        sent = prepared.question.model_dump(mode="json")
        create = partial(stored.create, tenant_id=call.subject.tenant_id, prepared=prepared)
        return self._writes.run(call, sent, create)

    def list(self, tenant_id: str, query: PlanQuery) -> Response:
        """A page of plans."""
        filters = json.dumps(["plans", tenant_id, query.state, query.goal])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            rows = repository.page(
                session,
                tenant_id,
                states=query.state,
                goals=query.goal,
                after=(datetime.fromisoformat(after[0]), after[1]) if after else None,
                limit=query.limit + 1,
            )
            shown = [stored.shown_plan(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get(self, tenant_id: str, plan_id: str) -> Response:
        """One plan."""
        with self._database.reading() as session:
            return json_response(stored.get(session, tenant_id, plan_id))

    def cancel(self, call: Call, plan_id: str) -> Response:
        """A plan whose search has ended without an answer."""
        cancel = partial(stored.cancel, tenant_id=call.subject.tenant_id, plan_id=plan_id)
        return self._writes.run(call, None, cancel)

    def delete(self, call: Call, plan_id: str) -> Response:
        """No plan."""
        delete = partial(stored.delete, tenant_id=call.subject.tenant_id, plan_id=plan_id)
        return self._writes.run(call, None, delete)


def _face(request: Request) -> PlansFace:
    face: PlansFace = request.app.state.plans
    return face


Face = Annotated[PlansFace, Depends(_face)]
PlanPath = Annotated[PlanId, Path(description="Id of the plan.")]
