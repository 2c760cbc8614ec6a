"""Approval policies over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.policies import repository, service
from service.approvals.policies.schemas import ApprovalPolicyInput, ApprovalPolicyQuery
from service.audit.service import Call, Writes
from service.kit.database.engine import Database
from service.kit.http.pages import PageTokens
from service.kit.http.versions import etag
from service.kit.http.web import json_response
from service.schemas.base import ResourceId


class PoliciesFace:
    """Reads and writes of the policies of one database, as responses.

    ``settle`` lets changes of a tenant take effect that are due.
    """

    def __init__(
        self, database: Database, *, writes: Writes, tokens: PageTokens, settle: Callable[[str], None]
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._settle = settle

    def list(self, tenant_id: str, query: ApprovalPolicyQuery) -> Response:
        """A page of policies."""
        filters = json.dumps(["approval-policies", tenant_id])
        after = self._tokens.decode(query.page_token, filters)[0] if query.page_token else ""
        self._settle(tenant_id)
        with self._database.reading() as session:
            rows = repository.live_after(session, tenant_id, after, query.limit + 1)
            shown = [service.shown(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get(self, tenant_id: str, policy_id: str) -> Response:
        """One policy."""
        self._settle(tenant_id)
        with self._database.reading() as session:
            shown = service.get(session, tenant_id, policy_id)
        return json_response(shown, headers={"ETag": etag(shown["version"])})

    def create(self, call: Call, body: ApprovalPolicyInput) -> Response:
        """A new policy, or a change that waits."""
        self._settle(call.subject.tenant_id)
        sent = body.model_dump(mode="json")
        return self._writes.run(call, sent, lambda session: service.create(session, call.subject, body))

    def change(self, call: Call, policy_id: str, body: ApprovalPolicyInput, if_match: str) -> Response:
        """The next version of a policy, or a change that waits."""
        self._settle(call.subject.tenant_id)
        patch = body.model_dump(mode="json")
        return self._writes.run(
            call,
            [patch, if_match],
            lambda session: service.change(session, call.subject, policy_id, patch, if_match),
        )

    def delete(self, call: Call, policy_id: str, if_match: str) -> Response:
        """No policy any more, or a change that waits."""
        self._settle(call.subject.tenant_id)
        return self._writes.run(
            call, if_match, lambda session: service.delete(session, call.subject, policy_id, if_match)
        )


def _face(request: Request) -> PoliciesFace:
    face: PoliciesFace = request.app.state.approval_policies
    return face


Face = Annotated[PoliciesFace, Depends(_face)]
PolicyPath = Annotated[ResourceId, Path(description="Id of the policy.")]
