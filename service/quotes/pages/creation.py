"""Creation of quotes by forms of pages."""

import re
from typing import Final

from fastapi import Request, Response
from pydantic_core import from_json

from service.audit.service import TransactionSource, WriteContext, WriteRequest
from service.auth.sessions import PageVisitor
from service.kit.http.html import Form, build_redirect
from service.kit.http.long_work import WorkOffloader
from service.kit.http.problems import BadRequest
from service.quotes.schemas import QuoteRequest
from service.quotes.service import QuoteSnapshots, create_quote

_ONCE: Final = re.compile("[0-9a-f]{32}")


def check_once(form: Form) -> str:
    """Returns the number of a shown form. Raises a problem if the form has none."""
    if not _ONCE.fullmatch(form.get("once", "")):
        raise BadRequest("The form lacks its number")
    return form["once"]


async def create_quote_once(
    request: Request,
    visitor: PageVisitor,
    body: QuoteRequest,
    once: str,
    *,
    operation: str,
    transactions: TransactionSource,
    freezing: QuoteSnapshots,
    aside: WorkOffloader,
) -> Response:
    """Freezes a quote, once for each form that is shown, and redirects to its page."""
    tenant_id, scope = visitor.subject.tenant_id, request.scope
    call = WriteContext(visitor.subject, operation, scope["path"], scope["state"]["request_id"], once)
    made = await WriteRequest(transactions, call).run_prepared(
        body,
        aside,
        lambda: freezing.build_from_body(tenant_id, body),
        lambda session, frozen: create_quote(
            session, tenant_id, frozen, visitor.subject.name, days=body.valid_for_days
        ),
    )
    return build_redirect(f"/quotes/{from_json(bytes(made.body))['id']}")
