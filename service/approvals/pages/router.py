"""Pages on which people decide: behind a session, or behind a link."""

import contextlib
from collections.abc import Iterator
from typing import Annotated

from fastapi import Path, Query, Request, Response
from starlette.types import Scope

from service.approvals.links.errors import LinkNotFound
from service.approvals.pages.quotes import QuotePages
from service.approvals.pages.service import ApprovalPages, render_inbox, render_quote_report
from service.approvals.schemas import ApprovalId
from service.audit.service import Transactions, WriteContext
from service.auth.sessions import (
    AuthenticatedPageRoute,
    PageAuthenticator,
    SameSessionForm,
    VisitorDependency,
)
from service.kit.http.admission import Admission
from service.kit.http.html import FormFields, PageRoute, page_response, page_router
from service.kit.http.web import from_state
from service.kit.security.principals import Principal
from service.quotes.schemas import QuoteId, QuoteVersionQuery


class LinkRoute(PageRoute):
    """A route for holders of a link. The link alone identifies them."""

    is_public = True


visited = page_router(tag="approvals", route_class=AuthenticatedPageRoute)
quoted = page_router(tag="quotes", route_class=AuthenticatedPageRoute)
linked = page_router(tag="approvals", route_class=LinkRoute)


Pages = Annotated[ApprovalPages, from_state("approval_pages")]
PagesOfQuotes = Annotated[QuotePages, from_state("quote_pages")]
ApprovalPath = Annotated[ApprovalId, Path(alias="id")]
QuotePath = Annotated[QuoteId, Path(alias="id")]
TokenPath = Annotated[str, Path(max_length=200)]


@visited.get("/approvals")
def approvals_page(transactions: Transactions, visitor: VisitorDependency) -> Response:
    """Shows the approvals that wait for the visitor, and those that they have requested."""
    with transactions.open_reader() as session:
        return page_response(render_inbox(session, visitor))


@visited.get("/approvals/{id:name}")
def approval_page(
    transactions: Transactions, pages: Pages, visitor: VisitorDependency, id: ApprovalPath
) -> Response:
    """Shows an approval, with buttons if the visitor may decide."""
    with transactions.open_reader() as session:
        return page_response(pages.render_approval(session, visitor.subject, id, visitor=visitor))


@visited.post("/approvals/{id:name}")
def decide_on_page(
    request: Request, pages: Pages, visitor: VisitorDependency, id: ApprovalPath, form: SameSessionForm
) -> Response:
    """Decides as the visitor."""
    return pages.decide(_call(request), visitor, id, form)


@quoted.get("/quotes")
def quotes_page(transactions: Transactions, pages: PagesOfQuotes, visitor: VisitorDependency) -> Response:
    """Shows the newest quotes."""
    with transactions.open_reader() as session:
        return page_response(pages.render_list(session, visitor))


@quoted.get("/quotes/{id:name}")
def quote_page(
    transactions: Transactions, pages: PagesOfQuotes, visitor: VisitorDependency, id: QuotePath
) -> Response:
    """Shows a quote, with a button that submits a draft."""
    with transactions.open_reader() as session:
        return page_response(pages.render_quote(session, visitor, id))


@quoted.get("/quotes/{id:name}/report")
def report_page(
    transactions: Transactions,
    visitor: VisitorDependency,
    id: QuotePath,
    query: Annotated[QuoteVersionQuery, Query()],
) -> Response:
    """Shows the report of a version, to read and to print."""
    with transactions.open_reader() as session:
        return page_response(render_quote_report(session, visitor.subject, id, query.version))


@quoted.post("/quotes/{id:name}")
def submit_on_page(
    request: Request, pages: PagesOfQuotes, visitor: VisitorDependency, id: QuotePath, form: SameSessionForm
) -> Response:
    """Submits a quote as the visitor."""
    return pages.submit(_call(request), visitor, id, form)


@linked.get("/decide/{token:name}")
def linked_approval_page(
    request: Request, transactions: Transactions, pages: Pages, token: TokenPath
) -> Response:
    """Shows the approval behind a link."""
    with _counting(request.scope), transactions.open_reader() as session:
        return page_response(pages.render_linked(session, token, _reader(request)))


@linked.post("/decide/{token:name}")
def decide_by_link(request: Request, pages: Pages, token: TokenPath, form: FormFields) -> Response:
    """Decides as the person that the link was made for, once."""
    with _counting(request.scope):
        return pages.decide_linked(request.scope["state"]["request_id"], token, form, _reader(request))


def _reader(request: Request) -> Principal | None:
    """Returns the subject whose session the browser has when it opens a link, if there is one."""
    visitors: PageAuthenticator = request.app.state.visitors
    visitor = visitors.find_visitor(request.scope)
    return visitor.subject if visitor is not None and visitor.is_signed_in else None


@contextlib.contextmanager
def _counting(scope: Scope) -> Iterator[None]:
    """Counts links that do not exist, and refuses an address that presents too many."""
    try:
        yield
    except LinkNotFound:
        admission: Admission = scope["app"].state.admission
        admission.count_refusal(scope)
        raise


def _call(request: Request) -> WriteContext:
    state = request.scope["state"]
    return WriteContext(
        state["subject"], request.scope["route"].name, request.scope["path"], state["request_id"]
    )
