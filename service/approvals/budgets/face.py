"""Cost centres and budgets over HTTP: transactions and pages."""

import json
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.budgets import repository, service
from service.approvals.budgets.schemas import BudgetInput, BudgetQuery
from service.approvals.cost_centers import repository as center_rows
from service.approvals.cost_centers import service as cost_centers
from service.approvals.cost_centers.schemas import CostCenterInput
from service.audit.service import Call, Change, Writes
from service.kit.database.engine import Database, Writer
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.versions import etag
from service.kit.http.web import json_response
from service.resolve.catalog import Catalog
from service.schemas.base import Input, ResourceId


class BudgetsFace:
    """Reads and writes of one database, as responses. ``catalog_of`` has the exchange rates of a tenant.

    ``settle`` lets changes of a tenant take effect that are due.
    """

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        catalog_of: Callable[[str], Catalog],
        settle: Callable[[str], None],
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._catalog_of = catalog_of
        self._settle = settle

    def list_centers(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of cost centres."""
        filters = json.dumps(["cost-centers", tenant_id])
        after = self._tokens.decode(query.page_token, filters)[0] if query.page_token else ""
        with self._database.reading() as session:
            rows = center_rows.after(session, tenant_id, after, query.limit + 1)
            shown = [cost_centers.shown(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get_center(self, tenant_id: str, center_id: str) -> Response:
        """One cost centre."""
        with self._database.reading() as session:
            found = cost_centers.get(session, tenant_id, center_id)
        return json_response(found, headers={"ETag": etag(found["version"])})

    def create_center(self, call: Call, body: CostCenterInput) -> Response:
        """A new cost centre."""

        def do(session: Writer) -> Change:
            return cost_centers.create(session, call.subject.tenant_id, body)

        return self._writes.run(call, body.model_dump(mode="json"), do)

    def change_center(self, call: Call, center_id: str, body: Input, if_match: str) -> Response:
        """A cost centre with other members."""
        patch = body.model_dump(mode="json")

        def do(session: Writer) -> Change:
            return cost_centers.change(session, call.subject.tenant_id, center_id, patch, if_match)

        return self._writes.run(call, [patch, if_match], do)

    def delete_center(self, call: Call, center_id: str, if_match: str) -> Response:
        """A cost centre less."""
        tenant_id = call.subject.tenant_id

        def do(session: Writer) -> Change:
            is_used = service.is_used(session, tenant_id)
            return cost_centers.delete(session, tenant_id, center_id, if_match, is_used)

        return self._writes.run(call, if_match, do)

    def list(self, tenant_id: str, query: BudgetQuery) -> Response:
        """A page of budgets."""
        filters = json.dumps(["budgets", tenant_id, query.cost_center_id])
        after = self._tokens.decode(query.page_token, filters)[0] if query.page_token else ""
        catalog = self._catalog_of(tenant_id)
        self._settle(tenant_id)
        with self._database.reading() as session:
            rows = repository.after(session, tenant_id, after, query.cost_center_id, query.limit + 1)
            shown = service.page(session, rows, catalog)
        return json_response(self._tokens.page(shown, query.limit, filters, "id"))

    def get(self, tenant_id: str, budget_id: str) -> Response:
        """One budget."""
        self._settle(tenant_id)
        with self._database.reading() as session:
            found = service.get(session, tenant_id, budget_id, self._catalog_of(tenant_id))
        return json_response(found, headers={"ETag": etag(found["version"])})

    def focus(self, tenant_id: str, budget_id: str) -> Response:
        """What is committed and charged of one budget, as a file."""
        self._settle(tenant_id)
        with self._database.reading() as session:
            rows = service.focus(session, tenant_id, budget_id)
        disposition = f'attachment; filename="budget-{budget_id}.csv"'
        return Response(rows, media_type="text/csv", headers={"Content-Disposition": disposition})

    def create(self, call: Call, body: BudgetInput) -> Response:
        """A new budget."""
        tenant_id = call.subject.tenant_id
        catalog = self._catalog_of(tenant_id)

        def do(session: Writer) -> Change:
            return service.create(session, tenant_id, body, catalog)

        return self._writes.run(call, body.model_dump(mode="json"), do)

    def change(self, call: Call, budget_id: str, body: Input, if_match: str) -> Response:
        """A budget with other terms, or a change that waits."""
        patch, catalog = body.model_dump(mode="json"), self._catalog_of(call.subject.tenant_id)
        self._settle(call.subject.tenant_id)

        def do(session: Writer) -> Change:
            return service.change(
                session, call.subject, budget_id, patch=patch, if_match=if_match, catalog=catalog
            )

        return self._writes.run(call, [patch, if_match], do)

    def delete(self, call: Call, budget_id: str, if_match: str) -> Response:
        """A budget less, or a change that waits."""
        self._settle(call.subject.tenant_id)

        def do(session: Writer) -> Change:
            return service.delete(session, call.subject, budget_id, if_match)

        return self._writes.run(call, if_match, do)


def _face(request: Request) -> BudgetsFace:
    face: BudgetsFace = request.app.state.budgets
    return face


Face = Annotated[BudgetsFace, Depends(_face)]
CostCenterPath = Annotated[ResourceId, Path(description="Id of the cost centre.")]
BudgetPath = Annotated[ResourceId, Path(description="Id of the budget.")]
