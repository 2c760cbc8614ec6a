"""Pages of quotes: the list, and a quote with the button that submits it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Response
from pydantic import ValidationError

from service.approvals import repository, service
from service.approvals.pages.service import describe_decisions, find_names
from service.approvals.schemas import QuoteSubmissionRequest
from service.audit.service import TransactionSource, WriteContext, WriteRequest
from service.auth.service import describe_subject
from service.auth.sessions import PageVisitor
from service.catalog.service import find_name
from service.evidence.snapshot import SnapshotStore
from service.formats.providers import get_provider_name
from service.kit.database.engine import Reader
from service.kit.http.html import Form, build_redirect, page_response, render_template
from service.kit.http.problems import BadRequest, NotFound, Problem
from service.quotes import service as quotes
from service.quotes.report.service import build_card, render_report_section

MOST_LISTED: Final = 100
_DRAFT: Final = "draft"


@dataclass(frozen=True, slots=True)
class QuotePages:
    """Pages of quotes, with the rules of the API."""

    transactions: TransactionSource
    snapshots: SnapshotStore

    def render_list(self, session: Reader, visitor: PageVisitor) -> str:
        """Returns the page of the newest quotes."""
        listed = quotes.list_newest(session, visitor.subject.tenant_id, MOST_LISTED)
        return render_template(
            "approvals/pages/quotes.html",
            visitor=visitor,
            quotes=[self._name_members(session, visitor, one) for one in listed],
            is_cut=len(listed) == MOST_LISTED,
        )

    def _name_members(
        self, session: Reader, visitor: PageVisitor, quote: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns a quote with the names of its devices, their providers and its author."""
        tenant_id, accelerator_id = visitor.subject.tenant_id, quote.get("accelerator_id", "")
        return {
            **quote,
            "devices": find_name(session, "accelerators", tenant_id, accelerator_id) or accelerator_id,
            "providers": [get_provider_name(each) for each in quote["providers"]],
            "asked_by": describe_subject(session, tenant_id, quote["created_by"]),
        }

    def render_quote(
        self, session: Reader, visitor: PageVisitor, quote_id: str, problem: Problem | None = None
    ) -> str:
        """Returns the page of a quote in its newest version, with a button that submits a draft."""
        tenant_id = visitor.subject.tenant_id
        quote = quotes.get_quote(session, tenant_id, quote_id)
        names = find_names(session, tenant_id, quote)
        return render_template(
            "approvals/pages/quote.html",
            visitor=visitor,
            quote=quote,
            card=build_card(quote, quotes.compare_with_previous(session, tenant_id, quote)),
            names=names,
            approval_id=repository.find_by_content(session, tenant_id, quote_id, quote["content_digest"]),
            may_submit=quote["state"] == _DRAFT,
            decisions=describe_decisions(session, visitor.subject, quote),
            report=render_report_section(quote, names),
            problem=problem,
        )

    def submit(self, call: WriteContext, visitor: PageVisitor, quote_id: str, form: Form) -> Response:
        """Submits the version that was read and leads to its approval. A refusal is shown on the page."""
        try:
            sent = QuoteSubmissionRequest(content_digest=form.get("content_digest", ""))
        except ValidationError:
            raise BadRequest("The form lacks a valid content_digest") from None
        catalog = self.snapshots.newest(visitor.subject.tenant_id)
        write = WriteRequest(self.transactions, call)
        try:
            done = write.run(
                sent,
                lambda session: service.submit_quote(
                    session, visitor.subject, quote_id, sent.content_digest, catalog
                ),
            )
        except NotFound:
            raise
        except Problem as problem:
            with self.transactions.open_reader() as session:
                page = self.render_quote(session, visitor, quote_id, problem)
            return page_response(page, status=problem.status, headers=problem.headers)
        return build_redirect(done.headers["Location"].removeprefix("/v1"))
