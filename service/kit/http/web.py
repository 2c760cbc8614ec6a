"""HTTP without the domain.

Requests are admitted before their body is read, bodies are validated from their bytes, answers are serialized
from their type, and errors are answered as problem details.
"""

import inspect
import threading
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, FastAPI, Request, Response, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic.warnings import UnsupportedFieldAttributeWarning
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Match, compile_path, get_name
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from service.kit.http.admission import Admission
from service.kit.http.bodies import JSON, BodyLimits, check_duplicates, check_limits, read_json
from service.kit.http.deprecation import get_deprecation, send_with_headers
from service.kit.http.long_work import (
    QUESTIONS,
    SEARCHES,
    VERIFICATIONS,
    DeferredAnswer,
    LongWork,
    WorkOffloader,
)
from service.kit.http.problems import (
    CONTENT_TYPE,
    ERROR_LIMIT,
    BadRequest,
    FieldError,
    MethodNotAllowed,
    NotFound,
    Problem,
    Unprocessable,
    build_anchor,
    build_pointer,
)
from service.kit.http.request_queues import queue_read, queue_write, wait_for_turn
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem, describe_error, describe_unknown
from service.kit.security.principals import Permission, build_permission

LOCATED: dict[int | str, dict[str, Any]] = {
    201: {
        "headers": {
            "Location": {
                "description": "Address of the resource that was created.",
                "schema": {"type": "string", "maxLength": 200},
            }
        }
    }
}
"""OpenAPI response of an operation that creates a resource."""


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


class RenderedJson(bytes):
    """An answer that its endpoint has already serialized as JSON."""


_WRONG_PARAMETER = "A parameter of the request is invalid"


def json_response(content: object, *, headers: Mapping[str, str] | None = None) -> Response:
    """Returns an answer as JSON, by pydantic's serializer."""
    return Response(to_json(content), headers=dict(headers or {}), media_type="application/json")


CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
"""OpenAPI response of an operation that returns a table."""


def csv_response(table: str, name: str) -> Response:
    """Returns a table as a CSV file of the given name."""
    return Response(
        table, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}.csv"'}
    )


def from_state(name: str) -> Any:  # noqa: ANN401
    """Returns a dependency on the member ``name`` of the application's state."""

    async def read(request: Request) -> object:
        return getattr(request.app.state, name)

    return Depends(read)


_T = TypeVar("_T")
_BODY = "body"
BODY_BYTES = "body_bytes"
"""Key in the state of a request with a JSON body: its length in bytes."""
LARGE_BODY_BYTES = 2**15
"""Longest body in bytes that is validated on the event loop, which takes a millisecond or two."""
_INLINE_SHARE = 0.2
"""Share of a caller's time in which a search is answered inline: a second of five."""
RouteHandler = Callable[[Request], Awaitable[Response]]

_INSTANCE_LIMIT = 2000


def problem_document(problem: Problem, *, instance: str, request_id: str) -> dict[str, Any]:
    """Returns the members of RFC 9457 and the service's own."""
    document: dict[str, Any] = {
        "type": build_anchor(problem),
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "code": problem.code,
        "request_id": request_id,
        "errors": [error._asdict() for error in problem.errors],
    }
    return document


def problem_response(problem: Problem, scope: Scope) -> Response:
    """Returns a problem as a response to the request of ``scope``, in the format of its route."""
    scope.setdefault("state", {})["problem"] = problem
    route = scope.get("route")
    if isinstance(route, JsonRoute) and route.problem_page is not None:
        return route.problem_page(problem, scope)
    request_id = scope.get("state", {}).get("request_id", "")
    document = problem_document(problem, instance=scope["path"][:_INSTANCE_LIMIT], request_id=request_id)
    return Response(to_json(document), problem.status, headers=problem.headers, media_type=CONTENT_TYPE)


class _ValidatedRequest(Request):
    """A request whose body has been validated; FastAPI passes the value on unchanged."""

    def __init__(self, request: Request, value: object) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"

    async def json(self) -> object:
        return self._value


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
        self._query = _list_query_parameters(self.dependant)
        self.direct = None
        if self.body_field is None:
            return _wrap_turn(handle)
        hints = get_type_hints(self.endpoint, include_extras=True)
        body_name = self.body_field.name
        body = TypeAdapter(hints[body_name])
        others = [name for name in hints if name not in ("return", body_name)]
        alone = inspect.iscoroutinefunction(self.endpoint) and [hints[name] for name in others] == [Request]
        if alone and hints["return"] is not Response:
            answer = TypeAdapter(hints["return"])
            self.direct = _build_direct_app(self.endpoint, body, answer, body_name, others[0])
        return _wrap_validation(handle, partial(_validate_unique_body, body, self.body_limits))

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
            _check_query(scope["query_string"], self._query)


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


def _list_query_parameters(dependant: Dependant) -> dict[str, bool]:
    """Maps each query parameter of an endpoint to true if it may be repeated."""
    return {
        field.alias: get_origin(field.field_info.annotation) is list
        for field in get_flat_params(dependant)
        if not isinstance(field.field_info, params.Path | params.Header)
    }


def _check_query(query: bytes, parameters: Mapping[str, bool]) -> None:
    """Refuses unknown parameters, and parameters that are repeated though they may not be."""
    given = Counter(name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    unknown = [
        FieldError(
            build_pointer(["query", name]),
            "EXTRA_FORBIDDEN",
            describe_unknown("parameter", name, list(parameters)),
        )
        for name in islice((name for name in given if name not in parameters), ERROR_LIMIT)
    ]
    repeated = [
        FieldError(build_pointer(["query", name]), "REPEATED", "the parameter may be given only once")
        for name, times in given.items()
        if times > 1 and not parameters.get(name, True)
    ]
    if unknown or repeated:
        raise Unprocessable(_WRONG_PARAMETER, *[*unknown, *repeated][:ERROR_LIMIT])


def _validate_body(body: TypeAdapter[Any], limits: BodyLimits, raw: bytes) -> Any:  # noqa: ANN401
    check_limits(raw, limits)
    try:
        return body.validator.validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(body)) from None


def _validate_unique_body(body: TypeAdapter[Any], limits: BodyLimits, raw: bytes) -> Any:  # noqa: ANN401
    value = _validate_body(body, limits, raw)
    check_duplicates(raw)
    return value


def _bind_queue(request: Request, queue: str, share: float = 1.0) -> WorkOffloader:
    work: LongWork = request.app.state.work_queues[queue]
    return partial(work.run, request.scope, request.receive, share=share)


def _has_large_body(request: Request) -> bool:
    length: int = request.scope["state"].get(BODY_BYTES, 0)
    return length > LARGE_BODY_BYTES


def _bind_questions(request: Request) -> WorkOffloader:
    return _bind_queue(request, SEARCHES if _has_large_body(request) else QUESTIONS)


def _depend_on(bind: Callable[[Request], WorkOffloader]) -> Any:  # noqa: ANN401
    async def bind_queue(request: Request) -> WorkOffloader:  # FastAPI calls other functions in a thread
        return bind(request)

    return Depends(bind_queue)


OffloadedWork = Annotated[WorkOffloader, _depend_on(_bind_questions)]
"""Runs the work of an endpoint that takes a second at most, unless its body is large."""
OffloadedSearch = Annotated[WorkOffloader, _depend_on(lambda request: _bind_queue(request, SEARCHES))]
"""Runs the work of an endpoint that may take seconds."""
OffloadedInlineSearch = Annotated[
    WorkOffloader, _depend_on(lambda request: _bind_queue(request, SEARCHES, _INLINE_SHARE))
]
"""Runs a search that goes on in the background if it is not answered soon."""
OffloadedVerification = Annotated[
    WorkOffloader, _depend_on(lambda request: _bind_queue(request, VERIFICATIONS))
]
"""Runs a verification, which takes as long as its chain is."""


async def _run_in_thread(do: Callable[[], _T], /) -> _T:
    return await run_in_threadpool(do)


def _select_runner(request: Request) -> WorkOffloader:
    return _bind_queue(request, SEARCHES) if _has_large_body(request) else _run_in_thread


OffloadedLargeWork = Annotated[WorkOffloader, _depend_on(_select_runner)]
"""Runs the work of an endpoint that is long only for a large body; a small one does not wait in the queue."""


async def _read_value(request: Request, raw: bytes, read: Callable[[bytes], Any]) -> Any:  # noqa: ANN401
    """Validates a body; a large one outside the event loop."""
    if len(raw) <= LARGE_BODY_BYTES:
        return read(raw)
    return await _bind_queue(request, SEARCHES)(partial(read, raw))


async def _read_direct_body(request: Request, body: TypeAdapter[Any]) -> Any:  # noqa: ANN401
    raw = await read_json(request.scope, request.receive)
    request.scope["state"][BODY_BYTES] = len(raw)
    await wait_for_turn(request.scope)
    return await _read_value(request, raw, partial(_validate_body, body, BodyLimits()))


def _wrap_turn(handle: RouteHandler) -> RouteHandler:
    async def wait_and_handle(request: Request) -> Response:
        await wait_for_turn(request.scope)
        return await handle(request)

    return wait_and_handle


def _wrap_validation(handle: RouteHandler, read: Callable[[bytes], Any]) -> RouteHandler:
    async def validate_and_handle(request: Request) -> Response:
        state = request.scope["state"]
        raw = state[_BODY] = await read_json(request.scope, request.receive)
        state[BODY_BYTES] = len(raw)
        await wait_for_turn(request.scope)
        value = await _read_value(request, raw, read)
        return await handle(_ValidatedRequest(request, value))

    return validate_and_handle


def _build_direct_app(
    endpoint: Callable[..., Awaitable[Any]],
    body: TypeAdapter[Any],
    answer: TypeAdapter[Any],
    body_name: str,
    request_name: str,
) -> ASGIApp:
    serialize = answer.serializer.to_json

    def serialize_result(result: Any) -> bytes:  # noqa: ANN401
        return result if isinstance(result, RenderedJson) else serialize(result)

    def serialize_later(later: DeferredAnswer) -> bytes:
        return serialize_result(later.work_out())

    async def serve_direct(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        value = await _read_direct_body(request, body)
        result = await endpoint(**{body_name: value, request_name: request})
        if isinstance(result, DeferredAnswer):
            aside = _bind_queue(request, SEARCHES) if result.is_search else _bind_questions(request)
            content = await aside(partial(serialize_later, result))
        else:
            content = serialize_result(result)
        headers = [(b"content-type", JSON), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return serve_direct


def _get_raw_body(request: Request) -> bytes:
    raw: bytes = request.scope["state"][_BODY]
    return raw


RawBody = Annotated[bytes, Depends(_get_raw_body)]
"""The raw bytes of the body, for an endpoint that stores them or checks their digest."""


class DirectRoutes:
    """Middleware that answers direct routes without the router and FastAPI's resolution of dependencies.

    Those, and the layers before them, take a third of the time of a small answer.
    """

    def __init__(
        self, app: ASGIApp, *, routes: Iterable[BaseRoute], handlers: Mapping[Any, ExceptionHandler]
    ) -> None:
        self._app = app
        self._handlers = handlers
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
            handled = ExceptionMiddleware(_build_raising_app(error), self._handlers)
            await handled(scope, receive, send)


def _build_raising_app(error: Exception) -> ASGIApp:
    async def raise_error(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        raise error

    return raise_error


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


_BY_STATUS: Mapping[int, type[Problem]] = {404: NotFound, 405: MethodNotAllowed}


def _list_allowed_methods(request: Request) -> str:
    """Returns every method of this address; the router knows only those of the first matching route."""
    routes = [route for route in request.app.routes if isinstance(route, APIRoute)]
    matching = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in matching for method in route.methods or ()}
    if "GET" in methods or not methods:
        methods |= {"GET", "HEAD"}
    return ", ".join(sorted(methods))


async def _on_http_exception(request: Request, error: HTTPException) -> Response:
    headers = dict(error.headers or {})
    if error.status_code == MethodNotAllowed.status:
        headers["Allow"] = _list_allowed_methods(request)
    problem = _BY_STATUS.get(error.status_code, BadRequest)
    return problem_response(problem(headers=headers), request.scope)


async def _on_problem(request: Request, error: Problem) -> Response:
    return problem_response(error, request.scope)


async def _on_parameters(request: Request, error: RequestValidationError) -> Response:
    errors = [
        FieldError(build_pointer(item["loc"]), item["type"].upper(), describe_error(item))
        for item in error.errors()[:ERROR_LIMIT]
    ]
    problem = Unprocessable(_WRONG_PARAMETER, *errors)
    return problem_response(problem, request.scope)


def install_problem_handlers(app: FastAPI) -> None:
    """Makes ``app`` answer every expected error as a problem."""
    app.exception_handler(Problem)(_on_problem)
    app.exception_handler(HTTPException)(_on_http_exception)
    app.exception_handler(RequestValidationError)(_on_parameters)
