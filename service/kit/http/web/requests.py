"""Bodies, validated from their bytes, and query parameters."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import islice
from typing import Annotated, Any, get_origin
from urllib.parse import parse_qsl

from fastapi import Depends, Request, Response, params
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_flat_params
from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from service.kit.http.bodies import JSON, BodyLimits, check_duplicates, check_limits, read_json
from service.kit.http.long_work import SEARCHES, DeferredAnswer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable, build_pointer
from service.kit.http.request_queues import wait_for_turn
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem, describe_unknown
from service.kit.http.web.answers import RenderedJson
from service.kit.http.web.offloading import BODY_BYTES, bind_questions, bind_queue, is_large

WRONG_PARAMETER = "A parameter of the request is invalid"
_BODY = "body"


class _ValidatedRequest(Request):
    """A request whose body has been validated; FastAPI passes the value on unchanged."""

    def __init__(self, request: Request, value: object) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"{}"

    async def json(self) -> object:
        return self._value


RouteHandler = Callable[[Request], Awaitable[Response]]


def list_query_parameters(dependant: Dependant) -> dict[str, bool]:
    """Maps each query parameter of an endpoint to true if it may be repeated."""
    return {
        field.alias: get_origin(field.field_info.annotation) is list
        for field in get_flat_params(dependant)
        if not isinstance(field.field_info, params.Path | params.Header)
    }


def check_query(query: bytes, parameters: Mapping[str, bool]) -> None:
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
        raise Unprocessable(WRONG_PARAMETER, *[*unknown, *repeated][:ERROR_LIMIT])


def _validate_body(body: TypeAdapter[Any], limits: BodyLimits, raw: bytes) -> Any:  # noqa: ANN401
    check_limits(raw, limits)
    try:
        return body.validator.validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(body)) from None


def validate_unique_body(body: TypeAdapter[Any], limits: BodyLimits, raw: bytes) -> Any:  # noqa: ANN401
    """Validates a body, and refuses members that are given twice."""
    value = _validate_body(body, limits, raw)
    check_duplicates(raw)
    return value


async def _read_value(request: Request, raw: bytes, read: Callable[[bytes], Any]) -> Any:  # noqa: ANN401
    """Validates a body; a large one outside the event loop."""
    if not is_large(len(raw)):
        return read(raw)
    return await bind_queue(request, SEARCHES)(partial(read, raw))


async def _read_direct_body(request: Request, body: TypeAdapter[Any]) -> Any:  # noqa: ANN401
    raw = await read_json(request.scope, request.receive)
    request.scope["state"][BODY_BYTES] = len(raw)
    await wait_for_turn(request.scope)
    return await _read_value(request, raw, partial(_validate_body, body, BodyLimits()))


def wrap_turn(handle: RouteHandler) -> RouteHandler:
    """Returns the handler of a route without a body."""

    async def wait_and_handle(request: Request) -> Response:
        await wait_for_turn(request.scope)
        return await handle(request)

    return wait_and_handle


def wrap_validation(handle: RouteHandler, read: Callable[[bytes], Any]) -> RouteHandler:
    """Returns the handler of a route whose body ``read`` validates."""

    async def validate_and_handle(request: Request) -> Response:
        state = request.scope["state"]
        raw = state[_BODY] = await read_json(request.scope, request.receive)
        state[BODY_BYTES] = len(raw)
        await wait_for_turn(request.scope)
        value = await _read_value(request, raw, read)
        return await handle(_ValidatedRequest(request, value))

    return validate_and_handle


def build_direct_app(
    endpoint: Callable[..., Awaitable[Any]],
    body: TypeAdapter[Any],
    answer: TypeAdapter[Any],
    body_name: str,
    request_name: str,
) -> ASGIApp:
    """Builds the application of an endpoint that takes a body and the request alone."""
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
            aside = bind_queue(request, SEARCHES) if result.is_search else bind_questions(request)
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
