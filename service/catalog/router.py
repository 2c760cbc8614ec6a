"""Operations on catalog rows, the same for every resource."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Response
from pydantic import MISSING
from starlette.routing import BaseRoute

from service.audit.service import Caller, WriteContextDependency
from service.catalog import service
from service.catalog.answers import (
    CHANGED,
    CREATED,
    DELETED,
    READ,
    IfNoneMatch,
    RowId,
    build_page_response,
    build_row_response,
)
from service.catalog.grids.router import router as grids
from service.catalog.models.router import router as models
from service.catalog.offers.router import router as offers
from service.catalog.registry import RESOURCES, Resource
from service.catalog.shapes import CatalogRowCopyRequest, ListQuery
from service.catalog.tariffs.router import router as tariffs
from service.catalog.token_prices.router import router as token_prices
from service.catalog.transactions import Transactions
from service.kit.http.versions import IfMatch
from service.kit.http.web import OffloadedLargeWork, api_router

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def _declare_shapes(**shapes: object) -> Callable[[_Endpoint], _Endpoint]:
    """Returns a decorator that gives parameters of an endpoint the shapes of one resource."""

    def apply_shapes(endpoint: _Endpoint) -> _Endpoint:
        endpoint.__annotations__ |= shapes
        return endpoint

    return apply_shapes


def build_resource_router(resource: Resource, own: Sequence[BaseRoute] = ()) -> APIRouter:
    """Returns the router of a resource. Operations that it has of its ``own`` come before the last one."""
    router = api_router(f"/v1/{resource.path}", tag=resource.path)
    kind, row, several = resource.kind, resource.kind.replace("_", " "), resource.name.replace("_", " ")
    a_row = f"{'an' if row[0] in 'aeiou' else 'a'} {row}"

    @router.get(
        "",
        name=f"list_{resource.name}",
        summary=f"List {several}",
        description=f"Lists the {several} that match every filter.",
        response_model=resource.page,
        responses=READ,
    )
    @_declare_shapes(query=Annotated[resource.query, Query()])
    def list_rows(
        transactions: Transactions, caller: Caller, query: ListQuery, if_none_match: IfNoneMatch = ""
    ) -> Response:
        tokens, tenant_id = transactions.tokens, caller.tenant_id
        return transactions.read(
            lambda session: build_page_response(
                session, resource, tenant_id, query, tokens=tokens, if_none_match=if_none_match
            )
        )

    @router.post(
        "",
        name=f"create_{kind}",
        summary=f"Create {a_row}",
        description=f"Creates {a_row} under an unused id.",
        status_code=201,
        response_model=resource.schema,
        responses=CREATED,
    )
    @_declare_shapes(body=resource.input)
    async def create_row(
        transactions: Transactions,
        call: WriteContextDependency,
        beside: OffloadedLargeWork,
        body: Any,  # noqa: ANN401
    ) -> Response:
        def create() -> Response:
            document = body.model_dump(mode="json")
            return transactions.write_row(
                call, document, resource, partial(service.create_row, document=document)
            )

        return await beside(create)

    @router.get(
        "/{id:name}",
        name=f"get_{kind}",
        summary=f"Get {a_row}",
        description=f"Returns the current version of {a_row}.",
        response_model=resource.schema,
        responses=READ,
    )
    def get_row(
        transactions: Transactions, caller: Caller, row_id: RowId, if_none_match: IfNoneMatch = ""
    ) -> Response:
        found = transactions.read(
            lambda session: service.get_row(session, resource, caller.tenant_id, row_id)
        )
        return build_row_response(found, if_none_match)

    @router.patch(
        "/{id:name}",
        name=f"update_{kind}",
        summary=f"Change {a_row}",
        description=f"Changes members of {a_row}, if its version matches the ETag.",
        response_model=resource.schema,
        responses=CHANGED,
    )
    @_declare_shapes(body=resource.patch)
    async def change_row(
        transactions: Transactions,
        call: WriteContextDependency,
        beside: OffloadedLargeWork,
        row_id: RowId,
        body: Any,  # noqa: ANN401
        *,
        if_match: IfMatch = "",
    ) -> Response:
        def change() -> Response:
            patch = body.model_dump(mode="json")
            do = partial(service.update_row, row_id=row_id, patch=patch, if_match=if_match)
            return transactions.write_row(call, [patch, if_match], resource, do)

        return await beside(change)

    @router.delete(
        "/{id:name}",
        name=f"delete_{kind}",
        summary=f"Delete {a_row}",
        description=f"Deletes {a_row} that no row refers to, if its version matches the ETag.",
        status_code=204,
        responses=DELETED,
    )
    def delete_row(
        transactions: Transactions, call: WriteContextDependency, row_id: RowId, if_match: IfMatch = ""
    ) -> Response:
        do = partial(service.delete_row, row_id=row_id, if_match=if_match)
        return transactions.write_row(call, if_match, resource, do)

    router.routes += own

    @router.post(
        "/{id:name}:copy",
        name=f"copy_{kind}",
        summary=f"Copy {a_row}",
        description=(
            f"Copies {a_row} into the tenant's own rows. Under the id of a shipped row it replaces that row."
        ),
        status_code=201,
        response_model=resource.schema,
        responses=CREATED,
    )
    def copy_row(
        transactions: Transactions, call: WriteContextDependency, row_id: RowId, body: CatalogRowCopyRequest
    ) -> Response:
        new_id = None if body.id is MISSING else body.id
        do = partial(service.copy_row, row_id=row_id, new_id=new_id)
        return transactions.write_row(call, new_id, resource, do)

    return router


_OWN: Mapping[str, APIRouter] = {
    "models": models,
    "offers": offers,
    "token_prices": token_prices,
    "tariffs": tariffs,
    "grids": grids,
}
"""Operations that only one resource has."""
ROUTERS: Mapping[str, APIRouter] = {
    name: build_resource_router(resource, _OWN[name].routes if name in _OWN else ())
    for name, resource in RESOURCES.items()
}
