"""The application: routes, errors, the snapshot that is kept fresh, and the documentation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import HTMLResponse
from pydantic_core import to_json
from starlette.staticfiles import StaticFiles

from service import __version__
from service.catalog.accelerators.endpoints import router as accelerators
from service.catalog.face import CatalogFace
from service.catalog.grids.endpoints import router as grids
from service.catalog.links.endpoints import router as links
from service.catalog.models.endpoints import router as models
from service.catalog.offers.endpoints import router as offers
from service.catalog.sites.endpoints import router as sites
from service.estimates.endpoints import router as estimates
from service.kit.database import Database
from service.kit.problems import problems_page
from service.kit.web import RequestContext, add_routes, install_problem_handlers
from service.openapi import openapi_document
from service.settings import Settings
from service.snapshot.service import SnapshotStore

ROUTERS = (estimates, models, accelerators, links, offers, grids, sites)


def create_app(settings: Settings) -> FastAPI:
    """The application; :func:`attach` gives it a database."""
    app = FastAPI(
        title="Ironlaw",
        version=__version__,
        lifespan=_lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(RequestContext, max_body_bytes=settings.max_body_bytes)
    install_problem_handlers(app)
    # Routes are tried in this order.
    _add_health(app)
    for router in ROUTERS:
        add_routes(app, router)
    _add_documentation(app)
    return app


def attach(app: FastAPI, database: Database) -> None:
    """Let ``app`` serve ``database``, whose schema must be current."""
    snapshots = SnapshotStore(database)
    app.state.database = database
    app.state.snapshots = snapshots
    app.state.catalog = CatalogFace(database, snapshots.refresh)
    app.state.batch_turn = asyncio.Lock()


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    snapshots: SnapshotStore = app.state.snapshots
    await asyncio.to_thread(snapshots.refresh)
    refreshing = asyncio.create_task(snapshots.keep_fresh())
    yield
    refreshing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await refreshing


def _add_health(app: FastAPI) -> None:
    @app.get("/livez", status_code=204, include_in_schema=False)
    async def livez() -> None:
        """The process answers."""

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> Response:
        """The catalog is loaded and the database answers."""
        database: Database = app.state.database
        if app.state.snapshots.is_ready and database.answers():
            return Response(status_code=200)
        return Response(status_code=503, headers={"Retry-After": "1"})


_ASSETS = "/docs/assets"


def _add_documentation(app: FastAPI) -> None:
    """The document and two readers of it, from packaged assets."""
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(openapi_document(app))
        return document

    app.openapi = openapi  # type: ignore[method-assign]
    assets = StaticFiles(directory=str(files("fastapi_offline") / "static"))
    app.mount(_ASSETS, assets, name="assets")

    @app.get("/openapi.json", include_in_schema=False)
    def openapi_json() -> Response:
        return Response(to_json(openapi()), media_type="application/json")

    @app.get("/docs", include_in_schema=False)
    async def swagger_ui() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="Ironlaw",
            swagger_js_url=f"{_ASSETS}/swagger-ui-bundle.js",
            swagger_css_url=f"{_ASSETS}/swagger-ui.css",
            swagger_favicon_url=f"{_ASSETS}/favicon.png",
        )

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> HTMLResponse:
        return get_redoc_html(
            openapi_url="/openapi.json",
            title="Ironlaw",
            redoc_js_url=f"{_ASSETS}/redoc.standalone.js",
            redoc_favicon_url=f"{_ASSETS}/favicon.png",
            with_google_fonts=False,
        )

    @app.get("/docs/problems", include_in_schema=False)
    async def problems() -> HTMLResponse:
        return HTMLResponse(problems_page())
