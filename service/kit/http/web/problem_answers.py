"""Errors, answered as problem details."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

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
from service.kit.http.validation import describe_error
from service.kit.http.web.requests import WRONG_PARAMETER
from service.kit.http.web.routes import JsonRoute

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
    problem = Unprocessable(WRONG_PARAMETER, *errors)
    return problem_response(problem, request.scope)


def install_problem_handlers(app: FastAPI) -> None:
    """Makes ``app`` answer every expected error as a problem."""
    app.exception_handler(Problem)(_on_problem)
    app.exception_handler(HTTPException)(_on_http_exception)
    app.exception_handler(RequestValidationError)(_on_parameters)
