"""Routes of JSON, whose requests are admitted before their body is read."""

import inspect
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_type_hints

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import Match, compile_path, get_name
from starlette.types import ASGIApp, Receive, Scope, Send

from service.kit.http.admission import Admission
from service.kit.http.bodies import BodyLimits
from service.kit.http.deprecation import get_deprecation, send_with_headers
from service.kit.http.problems import Problem
from service.kit.http.request_queues import queue_read, queue_write
from service.kit.http.web.requests import (
    RouteHandler,
    build_direct_app,
    check_query,
    list_query_parameters,
    validate_unique_body,
    wrap_turn,
    wrap_validation,
)
from service.kit.security.principals import Permission, build_permission


class _PathName(Convertor[str]):
    """A part of a path up to the colon of a custom method, so that neither is mistaken for the other."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        """Returns the part unchanged."""
        return value

    def to_string(self, value: str) -> str:
        """Returns the part unchanged."""
        return value


register_url_convertor("name", _PathName())


_BUILDING = threading.RLock()


class JsonRoute(APIRoute):
    """Validates a JSON body from its bytes, in the strict mode of JSON.

    FastAPI parses first and validates Python values, where strict mode refuses enums and dates.
    """

    direct: ASGIApp | None
    """Application that answers like the route, without FastAPI's overhead. Set for asynchronous endpoints
    that take only a body and the request and return a value to be serialized.
    """
    _query: Mapping[str, bool]
    stores = True
    """True if operations other than GET change stored data."""
    needs: Permission | None = None
    """Permission that the operations need. Defaults to `read` or `write` of their tag."""
    is_public = False
    """True if the operation needs no credentials, because the body itself authorizes it."""
    body_limits = BodyLimits()
    problem_page: Callable[[Problem, Scope], Response] | None = None
    """Renders a problem as a page. Defaults to problem details in JSON."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401
        self._build = partial(super().__init__, path, endpoint, **options)
        self.path, self.endpoint = path, endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.tags = list(options["tags"])
        self.summary, self.include_in_schema = options.get("summary"), options.get("include_in_schema", True)
        own = build_permission(str(self.tags[0]), "write" if self.writes else "read")
        self.permission: Permission = self.needs or own
        self.deprecation = get_deprecation(endpoint)
        self._beginning = path.partition("{")[0]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Builds what FastAPI keeps of a route when it is first needed.

        Validators and serializers of all routes are a third of the time of a start.
        """
        with _BUILDING:
            build = self.__dict__.pop("_build", None)
            if build is not None:
                build()
                _build_adapters(self)
                self.deprecated = self.deprecated or self.deprecation is not None
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def writes(self) -> bool:
        """True if the operation changes stored data."""
        return self.stores and "GET" not in (self.methods or ())

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Matches a path, comparing the part before its first parameter first.

        That part differs between most of the two hundred routes.
        """
        if not scope.get("root_path") and not scope["path"].startswith(self._beginning):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> RouteHandler:  # type: ignore[override]
        """Returns the handler of this route for FastAPI."""
        handle: RouteHandler = super().get_route_handler()
        if not inspect.iscoroutinefunction(self.endpoint):
            handle = queue_write(handle) if self.writes else queue_read(handle)
        self._query = list_query_parameters(self.dependant)
        self.direct = None
        if self.body_field is None:
            return wrap_turn(handle)
        hints = get_type_hints(self.endpoint, include_extras=True)
        body_name = self.body_field.name
        body = TypeAdapter(hints[body_name])
        others = [name for name in hints if name not in ("return", body_name)]
        alone = inspect.iscoroutinefunction(self.endpoint) and [hints[name] for name in others] == [Request]
        if alone and hints["return"] is not Response:
            answer = TypeAdapter(hints["return"])
            self.direct = build_direct_app(self.endpoint, body, answer, body_name, others[0])
        return wrap_validation(handle, partial(validate_unique_body, body, self.body_limits))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request whose path matches."""
        if scope["method"] in (self.methods or ()):
            await self.admit(scope)
        if self.deprecation is not None:
            send = send_with_headers(send, self.deprecation.build_headers())
        await super().handle(scope, receive, send)

    async def let_in(self, scope: Scope) -> None:
        """Authenticates and authorizes the caller."""
        admission: Admission = scope["app"].state.admission
        await admission.admit(scope, self.permission)

    async def admit(self, scope: Scope) -> None:
        """Refuses a request that is not permitted or has unknown query parameters."""
        if not self.is_public:
            await self.let_in(scope)
        if scope["query_string"]:
            check_query(scope["query_string"], self._query)


def _build_adapters(route: APIRoute) -> None:
    """Builds FastAPI's adapters of deferred models, of whose aliases pydantic would warn later."""
    for field in (route.body_field, route.response_field):
        if field is not None and not field._type_adapter.pydantic_complete:  # noqa: SLF001
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
                field._type_adapter.rebuild()  # noqa: SLF001


class ReadOnlyRoute(JsonRoute):
    """A route that stores nothing, whatever its method."""

    stores = False


class PublicRoute(JsonRoute):
    """A route for callers without credentials: its endpoint authenticates them and counts refusals."""

    is_public = True


def build_route_class(needs: Permission, body_limits: BodyLimits = JsonRoute.body_limits) -> type[JsonRoute]:
    """Builds a class of routes whose operations all need one permission and limit their bodies alike."""
    return type("NeedingRoute", (JsonRoute,), {"needs": needs, "body_limits": body_limits})


def api_router(prefix: str, *, tag: str, route_class: type[JsonRoute] = JsonRoute) -> APIRouter:
    """Builds a router of JSON routes whose operation ids are the names of their functions.

    An operation needs the scope ``tag:read``, or ``tag:write`` if it stores data.
    """
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=route_class,
        generate_unique_id_function=lambda route: route.name,
    )


def add_routes(app: FastAPI, router: APIRouter) -> None:
    """Adds a router's routes as the app's own.

    Included routers are matched in a tree that FastAPI builds on first use: a tenth of a second for each, and
    some ten microseconds for every request.
    """
    app.router.routes.extend(router.routes)


def from_state(name: str) -> Any:  # noqa: ANN401
    """Returns a dependency on the member ``name`` of the application's state."""

    async def read(request: Request) -> object:
        return getattr(request.app.state, name)

    return Depends(read)
