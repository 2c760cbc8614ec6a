"""Routes that are answered without the router of FastAPI."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from service.kit.http.web.routes import JsonRoute

_ERROR = "ironlaw.error"


class DirectRoutes:
    """Middleware that answers direct routes without the router and FastAPI's resolution of dependencies.

    Those, and the layers before them, take a third of the time of a small answer.
    """

    def __init__(
        self, app: ASGIApp, *, routes: Iterable[BaseRoute], handlers: Mapping[Any, ExceptionHandler]
    ) -> None:
        self._app = app
        self._handle_error = ExceptionMiddleware(_raise_error, handlers)
        self._routes = {
            (method, route.path): route
            for route in routes
            if isinstance(route, JsonRoute)
            and inspect.iscoroutinefunction(route.endpoint)
            and not route.param_convertors
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a direct route, or passes the request on."""
        route = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        answer = route.direct if route is not None else None
        if route is None or answer is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        try:
            await route.admit(scope)
            await answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001  # the handlers decide which they know
            scope[_ERROR] = error
            await self._handle_error(scope, receive, send)


async def _raise_error(scope: Scope, receive: Receive, send: Send) -> None:
    del receive, send
    raise scope.pop(_ERROR)
