"""Pages on which people decide: behind a session, or behind a link."""

import contextlib
from collections.abc import Iterator

from fastapi import Request, Response
from starlette.types import Scope

from service.approvals.links.errors import LinkNotFound
from service.approvals.pages.face import ApprovalPath, Face, TokenPath
from service.audit.service import Call
from service.auth.sessions import OwnForm, Reading, VisitedRoute, Visitors
from service.kit.http.admission import Admission
from service.kit.http.html import FormFields, PageRoute, page_router
from service.kit.security.subjects import Subject


class LinkRoute(PageRoute):
    """A route for whoever has a link, which alone says who they are."""

    is_public = True


visited = page_router(tag="approvals", route_class=VisitedRoute)
linked = page_router(tag="approvals", route_class=LinkRoute)


@visited.get("/approvals")
def approvals_page(face: Face, visitor: Reading) -> Response:
    """What waits for the visitor, and what they have asked for."""
    return face.inbox(visitor)


@visited.get("/approvals/{id:name}")
def approval_page(face: Face, visitor: Reading, id: ApprovalPath) -> Response:
    """An approval, with the buttons where the visitor may decide."""
    return face.approval(visitor, id)


@visited.post("/approvals/{id:name}")
def decide_on_page(
    request: Request, face: Face, visitor: Reading, id: ApprovalPath, form: OwnForm
) -> Response:
    """Decide as the visitor."""
    return face.decide(_call(request), visitor, id, form)


@linked.get("/decide/{token:name}")
def linked_approval_page(request: Request, face: Face, token: TokenPath) -> Response:
    """The approval behind a link."""
    with _counting(request.scope):
        return face.linked(token, _reader(request))


@linked.post("/decide/{token:name}")
def decide_by_link(request: Request, face: Face, token: TokenPath, form: FormFields) -> Response:
    """Decide as the one for whom the link was made, once."""
    with _counting(request.scope):
        return face.decide_linked(request.scope["state"]["request_id"], token, form, _reader(request))


def _reader(request: Request) -> Subject | None:
    """Whose session the browser has that opens a link, if any."""
    visitors: Visitors = request.app.state.visitors
    visitor = visitors.visitor(request.scope)
    return visitor.subject if visitor is not None and visitor.is_signed_in else None


@contextlib.contextmanager
def _counting(scope: Scope) -> Iterator[None]:
    """Count links that nobody made, and refuse the address that presents too many."""
    try:
        yield
    except LinkNotFound:
        admission: Admission = scope["app"].state.admission
        admission.count_refusal(scope)
        raise


def _call(request: Request) -> Call:
    state = request.scope["state"]
    return Call(state["subject"], request.scope["route"].name, request.scope["path"], state["request_id"])
