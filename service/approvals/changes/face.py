"""Changes that wait over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.changes import repository, service
from service.approvals.changes.schemas import ApprovalSettingsInput, PolicyChangeId, PolicyChangeQuery
from service.approvals.changes.waiting import shown
from service.audit.service import Call, Writes
from service.kit.database.engine import Database
from service.kit.http.pages import PageTokens
from service.kit.http.versions import etag
from service.kit.http.web import json_response
from service.planning.cost.exchange import ExchangeRates


class PolicyChangesFace:
    """Reads and writes of the changes of one database, as responses. ``rates_of`` is of a tenant."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        rates_of: Callable[[str], ExchangeRates],
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._rates_of = rates_of

    def settle(self, tenant_id: str) -> None:
        """Let changes of a tenant take effect that are due, before somebody reads or writes them."""
        service.settle(self._database, self._writes, tenant_id, self._rates_of)

    def list(self, tenant_id: str, query: PolicyChangeQuery) -> Response:
        """A page of changes."""
        self.settle(tenant_id)
        filters = json.dumps(["policy-changes", tenant_id, query.state])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            behind = (datetime.fromisoformat(after[0]), after[1]) if after else None
            rows = repository.page(session, tenant_id, query.state, behind, query.limit + 1)
            found = [shown(row) for row in rows]
        return json_response(self._tokens.page(found, query.limit, filters, "proposed_at", "id"))

    def get(self, tenant_id: str, change_id: str) -> Response:
        """One change."""
        self.settle(tenant_id)
        with self._database.reading() as session:
            return json_response(service.get(session, tenant_id, change_id))

    def approve(self, call: Call, change_id: str) -> Response:
        """A change that somebody more agrees to."""
        self.settle(call.subject.tenant_id)
        rates = self._rates_of(call.subject.tenant_id)
        return self._writes.run(
            call, None, lambda session: service.approve(session, call.subject, change_id, rates)
        )

    def reject(self, call: Call, change_id: str) -> Response:
        """A change that never takes effect."""
        self.settle(call.subject.tenant_id)
        return self._writes.run(call, None, lambda session: service.reject(session, call.subject, change_id))

    def settings(self, tenant_id: str) -> Response:
        """How long changes wait."""
        self.settle(tenant_id)
        with self._database.reading() as session:
            found = service.settings(session, tenant_id)
        return json_response(found, headers={"ETag": etag(found["version"])})

    def change_settings(self, call: Call, body: ApprovalSettingsInput, if_match: str) -> Response:
        """Another delay, or a change that waits."""
        self.settle(call.subject.tenant_id)
        patch = body.model_dump(mode="json")
        return self._writes.run(
            call,
            [patch, if_match],
            lambda session: service.change_settings(session, call.subject, patch, if_match),
        )


def _face(request: Request) -> PolicyChangesFace:
    face: PolicyChangesFace = request.app.state.policy_changes
    return face


Face = Annotated[PolicyChangesFace, Depends(_face)]
PolicyChangePath = Annotated[PolicyChangeId, Path(description="Id of the change.")]
