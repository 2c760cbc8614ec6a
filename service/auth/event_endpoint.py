"""Endpoint for security events that the issuer pushes; see :mod:`service.auth.security_events`."""

from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response
from starlette.types import Scope

from service.auth.errors import BadEvent, NoIssuer
from service.kit.http.admission import Admission
from service.kit.http.bodies import read_body
from service.kit.http.html import read_form
from service.kit.http.problems import UnsupportedMediaType
from service.kit.http.web import PublicRoute

if TYPE_CHECKING:
    from service.auth.security_events import SecurityEvents

_PUSHED: Final = "application/secevent+jwt"
_FORM: Final = "application/x-www-form-urlencoded"


class _EventRoute(PublicRoute):
    """A route for the issuer, which only its signature identifies."""

    async def admit(self, scope: Scope) -> None:
        """Admits every request, if an issuer is configured."""
        if scope["app"].state.security_events is None:
            raise NoIssuer


router = APIRouter(tags=["sessions"], route_class=_EventRoute, include_in_schema=False)


@router.post("/login/events", status_code=202)
async def receive_security_event(request: Request) -> Response:
    """Receives an event of the issuer."""
    state = request.app.state
    events: SecurityEvents = state.security_events
    token = await _parse_token(request)
    try:
        await events.apply_event(token, request.scope["state"]["request_id"])
    except BadEvent:
        admission: Admission = state.admission
        admission.count_refusal(request.scope)
        raise
    return Response(status_code=202)


async def _parse_token(request: Request) -> str:
    """Returns the token of a body: a field of a form for a logout token, else the whole body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _FORM:
        return (await read_form(request.scope, request.receive)).get("logout_token", "")
    if kind != _PUSHED:
        raise UnsupportedMediaType(f"The body must be {_PUSHED}, or the form of a logout token")
    return (await read_body(request.scope, request.receive)).decode("latin-1").strip()
