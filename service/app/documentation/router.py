"""The documentation of the API: its documents, and pages that list and tell the operations."""

from importlib.resources import files
from typing import Annotated, Any, Final

from fastapi import FastAPI, Path, Request, Response
from starlette.background import BackgroundTask

from service.app.documentation.audiences import Audience
from service.app.documentation.documents import ApiDocuments
from service.app.documentation.operations import find_operation, find_shape, list_groups
from service.app.openapi_tags import TAGS
from service.kit.http.html import (
    PublicPageRoute,
    page_headers,
    page_response,
    page_router,
    render_problems_page,
    render_template,
)
from service.kit.http.packed import PackedContent
from service.kit.http.web import add_routes

_TITLES: Final[dict[Audience, str]] = {"users": "For planning", "operators": "For operators and nodes"}
_HTML: Final = "text/html; charset=utf-8"
Name = Annotated[str, Path(max_length=100)]


def pack_page(request: Request, page: str) -> Response:
    """Returns a page that is the same for everybody, compressed."""
    return PackedContent(page.encode(), _HTML).respond(request, page_headers(has_scripts=True))


def build_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Returns the API document."""
    from service.app import openapi  # noqa: PLC0415  # its examples take a second to build

    return openapi.build_openapi_document(app)


def add_documentation(app: FastAPI) -> None:
    """Adds the OpenAPI documents and the pages of the documentation."""
    documents = ApiDocuments(lambda: build_openapi_document(app))
    app.openapi = documents.get  # type: ignore[method-assign]
    router = page_router(tag="documentation", route_class=PublicPageRoute)
    script = PackedContent((files(__package__) / "reader.js").read_bytes(), "text/javascript; charset=utf-8")

    @router.get("/docs")
    def documentation_page(request: Request) -> Response:
        """Lists the operations. The page needs no document, which is built while it is read."""
        groups = list_groups(app.routes, TAGS)
        twice = {each.tag for each in groups["users"]} & {each.tag for each in groups["operators"]}
        page = render_template(
            "app/documentation/index.html", audiences=groups, titles=_TITLES, doubled=twice
        )
        answer = pack_page(request, page)
        answer.background = BackgroundTask(documents.prepare)
        return answer

    @router.get("/docs/operations/{name:name}")
    def operation_page(request: Request, name: Name) -> Response:
        """Tells one operation."""
        operation = find_operation(documents.get(), name)
        return pack_page(request, render_template("app/documentation/operation.html", operation=operation))

    @router.get("/docs/shapes/{name:name}")
    def shape_page(request: Request, name: Name) -> Response:
        """Tells one shape."""
        shape = find_shape(documents.get(), name)
        return pack_page(request, render_template("app/documentation/shape.html", shape=shape, name=name))

    add_routes(app, router)

    @app.get("/docs/reader.js", include_in_schema=False)
    def reader_script(request: Request) -> Response:
        return script.respond(request)

    @app.get("/openapi.json", include_in_schema=False)
    def openapi_json(request: Request) -> Response:
        return documents.pack().respond(request)

    @app.get("/openapi/{audience}.json", include_in_schema=False)
    def audience_json(request: Request, audience: Audience) -> Response:
        return documents.pack(audience).respond(request)

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> Response:
        return Response(status_code=308, headers={"Location": "/docs", **page_headers()})

    @app.get("/docs/problems", include_in_schema=False)
    async def problems() -> Response:
        return page_response(render_problems_page())
