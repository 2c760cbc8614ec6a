"""Approval policies over HTTP: transactions and pages."""

import json
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.policies import repository, service
from service.approvals.policies.schemas import ApprovalPolicyInput, ApprovalPolicyQuery
from service.audit.service import Call, Writes
from service.kit.database import Database
from service.kit.pages import PageTokens
from service.kit.versions import etag
from service.kit.web import json_response
from service.questions.base import ResourceId


class PoliciesFace:
    """Reads and writes of the policies of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens

    def list(self, tenant_id: str, query: ApprovalPolicyQuery) -> Response:
        """A page of policies."""
        filters = json.dumps(["approval-policies", tenant_id])
        after = self._tokens.decode(query.page_token, filters)[0] if query.page_token else ""
        with self._database.reading() as session:
            rows = repository.live_after(session, tenant_id, after, query.limit + 1)
            shown = [service.shown(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get(self, tenant_id: str, policy_id: str) -> Response:
        """One policy."""
        with self._database.reading() as session:
            shown = service.get(session, tenant_id, policy_id)
        return json_response(shown, headers={"ETag": etag(shown["version"])})

    def create(self, call: Call, body: ApprovalPolicyInput) -> Response:
        """A new policy."""
        tenant_id = call.subject.tenant_id
        sent = body.model_dump(mode="json")
        return self._writes.run(call, sent, lambda session: service.create(session, tenant_id, body))

    def change(self, call: Call, policy_id: str, body: ApprovalPolicyInput, if_match: str) -> Response:
        """The next version of a policy."""
        tenant_id = call.subject.tenant_id
        patch = body.model_dump(mode="json")
        return self._writes.run(
            call,
            [patch, if_match],
            lambda session: service.change(session, tenant_id, policy_id, patch, if_match),
        )

    def delete(self, call: Call, policy_id: str, if_match: str) -> Response:
        """No policy any more."""
        tenant_id = call.subject.tenant_id
        return self._writes.run(
            call, if_match, lambda session: service.delete(session, tenant_id, policy_id, if_match)
        )


def _face(request: Request) -> PoliciesFace:
    face: PoliciesFace = request.app.state.approval_policies
    return face


Face = Annotated[PoliciesFace, Depends(_face)]
PolicyPath = Annotated[ResourceId, Path(description="Id of the policy.")]
