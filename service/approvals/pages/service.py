"""Pages of approvals and the decisions that are made on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from fastapi import Response
from pydantic import MISSING, ValidationError

from service.approvals import decisions, repository, service
from service.approvals.decisions import decide_approval
from service.approvals.errors import ApprovalNotFound
from service.approvals.links import service as links
from service.approvals.links.service import Links
from service.approvals.pages.consequence import ForeseenOutcome, find_awaited, predict_effect
from service.approvals.presenters import to_detail, to_summary
from service.approvals.repository import ApprovalFilters, LoadedApproval
from service.approvals.schemas import ApprovalDecision, ApprovalDecisionKind, ApprovalDecisionRequest
from service.approvals.tables import SUPERSEDED, ApprovalRow
from service.audit.service import TransactionSource, WriteContext, WriteOutcome, WriteRequest
from service.auth.service import describe_subject
from service.auth.sessions import PageVisitor
from service.budgets import commitments
from service.cost_centers import service as cost_centers
from service.evidence.snapshot import SnapshotStore
from service.kit.database.engine import Reader, Writer
from service.kit.http.html import Form, build_redirect, page_response, render_template
from service.kit.http.problems import BadRequest, Problem
from service.kit.jobs import leases
from service.kit.security.principals import Principal, PrincipalKind, build_permission
from service.policies.errors import OwnApproval
from service.quotes import service as quotes
from service.quotes.compare import compare_quotes
from service.quotes.report.service import (
    ReportDecision,
    ReportNames,
    build_card,
    render_report,
    render_report_section,
)
from service.quotes.schemas import QuoteComparison

MOST_LISTED: Final = 100
COMMENT_CHARACTERS: Final = 500
_DECISIONS: Mapping[str, ApprovalDecisionKind] = {"approve": "approve", "reject": "reject"}
_TOO_LONG = "a comment may have at most 500 characters"


def render_inbox(session: Reader, visitor: PageVisitor) -> str:
    """Returns the page of the approvals that a visitor can decide and has requested."""
    subject = visitor.subject
    mine = ApprovalFilters(requester=subject.name)
    asked = repository.list_page(session, subject.tenant_id, mine, None, MOST_LISTED)
    return render_template(
        "approvals/pages/inbox.html",
        visitor=visitor,
        waiting=service.list_waiting_approvals(session, subject),
        asked=[to_summary(row) for row in asked],
        is_open_mode=subject.kind is PrincipalKind.LOCAL,
    )


def render_quote_report(session: Reader, subject: Principal, quote_id: str, version: int) -> str:
    """Returns the report of a version, with its decisions if the subject may read approvals."""
    quote = quotes.get_quote(session, subject.tenant_id, quote_id, version)
    return render_report(
        quote,
        changes=quotes.compare_with_previous(session, subject.tenant_id, quote),
        names=find_names(session, subject.tenant_id, quote),
        decisions=describe_decisions(session, subject, quote),
    )


def find_names(session: Reader | Writer, tenant_id: str, quote: Mapping[str, Any]) -> ReportNames:
    """Returns the names of the author and of the cost centre of a quote."""
    center_id: str = quote.get("cost_center_id", "")
    center = cost_centers.find_name(session, tenant_id, center_id) if center_id else None
    return ReportNames(describe_subject(session, tenant_id, quote["created_by"]), center or center_id)


def describe_decisions(session: Reader, subject: Principal, quote: Mapping[str, Any]) -> list[ReportDecision]:
    """Returns the decisions about a version, or none if the subject may not read approvals."""
    if not subject.has_permission(build_permission("approvals", "read")):
        return []
    tenant_id = subject.tenant_id
    approval_id = repository.find_by_content(session, tenant_id, quote["id"], quote["content_digest"])
    if approval_id is None:
        return []
    return [
        ReportDecision(
            decision["decision"],
            describe_subject(session, tenant_id, decision["decided_by"]),
            step["name"],
            decision["decided_at"],
        )
        for step in service.get_approval(session, tenant_id, approval_id)["steps"]
        for decision in step["decisions"]
    ]


@dataclass(frozen=True, slots=True)
class ApprovalPages:
    """Pages for decisions, with the rules of the API."""

    transactions: TransactionSource
    links: Links
    snapshots: SnapshotStore

    def _foreseen(
        self,
        subject: Principal,
        approval: Mapping[str, Any],
        quote: Mapping[str, Any],
        linked_by: str | None,
    ) -> ForeseenOutcome:
        """Returns the effect of approving now, from a decision that is tried and rolled back."""
        catalog = self.snapshots.get_current(subject.tenant_id)
        sent = _decision_input(approval["content_digest"], "")
        with self.transactions.open_writer() as session:
            try:
                budgets = commitments.estimate_budget_effects(
                    session, subject.tenant_id, quote, catalog.exchange_rates
                )
                change = decide_approval(
                    session,
                    subject,
                    approval["id"],
                    decision="approve",
                    sent=sent,
                    catalog=catalog,
                    linked_by=linked_by,
                )
            except Problem as problem:
                return ForeseenOutcome(refusal=problem)
            finally:
                session.rollback()
        return predict_effect(approval, change.body or {}, subject.name, budgets)

    def decide(self, call: WriteContext, visitor: PageVisitor, approval_id: str, form: Form) -> Response:
        """Decides as the visitor. A refusal is shown on the current page."""
        subject = visitor.subject
        catalog = self.snapshots.get_current(subject.tenant_id)

        def decided(
            session: Writer, kind: ApprovalDecisionKind, sent: ApprovalDecisionRequest
        ) -> WriteOutcome:
            return decide_approval(
                session, subject, approval_id, decision=kind, sent=sent, catalog=catalog, via="page"
            )

        def again(session: Reader | Writer, **values: Any) -> str:  # noqa: ANN401
            return self.render_approval(session, subject, approval_id, visitor=visitor, **values)

        return self._answered(call, form, f"/approvals/{approval_id}", decided, again)

    def decide_linked(
        self, request_id: str, token: str, form: Form, reader: Principal | None = None
    ) -> Response:
        """Decides by a link, once. Refuses the browser session of a requester."""
        with self.transactions.open_reader() as session:
            link = self.links.resolve_token(session, token)
        subject, approval_id = links.build_subject(link), link.approval_id
        catalog = self.snapshots.get_current(subject.tenant_id)

        def decided(
            session: Writer, kind: ApprovalDecisionKind, sent: ApprovalDecisionRequest
        ) -> WriteOutcome:
            if _has_asked(session, reader, approval_id):
                raise OwnApproval
            used = links.use_link(session, self.links.resolve_token(session, token))
            change = decide_approval(
                session,
                subject,
                approval_id,
                decision=kind,
                sent=sent,
                catalog=catalog,
                via="link",
                linked_by=link.created_by,
            )
            return replace(change, also=(used, *change.also))

        def again(session: Reader | Writer, **values: Any) -> str:  # noqa: ANN401
            return self.render_linked(session, token, reader, **values)

        call = WriteContext(subject, "decide_by_link", f"/approvals/{approval_id}", request_id)
        return self._answered(call, form, f"/decide/{token}", decided, again)

    def _answered(
        self,
        call: WriteContext,
        form: Form,
        path: str,
        decided: Callable[[Writer, ApprovalDecisionKind, ApprovalDecisionRequest], WriteOutcome],
        again: Callable[..., str],
    ) -> Response:
        """Redirects to the page with the decision, or returns the page with an error."""
        kind = _DECISIONS.get(form.get("decision", ""))
        if kind is None:
            raise BadRequest("The form must either approve or reject")
        typed = form.get("comment", "")
        comment = " ".join(typed.split())
        if len(comment) > COMMENT_CHARACTERS:
            with self.transactions.open_reader() as session:
                return page_response(again(session, comment=typed, comment_error=_TOO_LONG), status=422)
        sent = _decision_input(form.get("content_digest", ""), comment)
        try:
            WriteRequest(self.transactions, call).run(sent, lambda session: decided(session, kind, sent))
        except Problem as problem:
            with self.transactions.open_reader() as session:
                page = again(session, comment=typed, problem=problem)
            return page_response(page, status=problem.status, headers=problem.headers)
        return build_redirect(path)

    def render_approval(
        self,
        session: Reader | Writer,
        subject: Principal,
        approval_id: str,
        *,
        visitor: PageVisitor | None,
        action: str = "",
        linked_by: str | None = None,
        reader: Principal | None = None,
        **values: Any,  # noqa: ANN401
    ) -> str:
        """Returns the page of an approval for ``subject``, with buttons if it may decide."""
        held = repository.get_approval(session, subject.tenant_id, approval_id)
        if held is None:
            raise ApprovalNotFound
        approval, row = to_detail(held), held.row
        quote = quotes.get_quote(session, subject.tenant_id, row.quote_id, row.quote_version)
        changes = quotes.compare_with_previous(session, subject.tenant_id, quote)
        names = find_names(session, subject.tenant_id, quote)
        may_decide = _may_decide(session, subject, held) and not _has_asked(session, reader, approval_id)
        said = {"problem": None, "comment": "", "comment_error": "", **values}
        return render_template(
            "approvals/pages/approval.html",
            visitor=visitor,
            approval=approval,
            quote=quote,
            own=decisions_of(approval, subject),
            changes=changes,
            asked_by=describe_subject(session, subject.tenant_id, approval["requester"]),
            card=build_card(quote, changes),
            names=names,
            due_at=row.expires_at and min(row.expires_at, row.valid_until),
            amended=_amended(session, row, quote),
            awaited=find_awaited(approval),
            may_decide=may_decide,
            foreseen=self._foreseen(subject, approval, quote, linked_by) if may_decide else None,
            action=action or f"/approvals/{approval_id}",
            report=render_report_section(quote, names),
            **said,
        )

    def render_linked(
        self,
        session: Reader | Writer,
        token: str,
        reader: Principal | None,
        **values: Any,  # noqa: ANN401
    ) -> str:
        """Returns the approval for the holder of a link, or a page about the end of the link.

        Reading it has no effect, since mail scanners also open links.
        """
        link = self.links.resolve_token(session, token)
        subject = links.build_subject(link)
        if links.is_open(session, link):
            return self.render_approval(
                session,
                subject,
                link.approval_id,
                visitor=None,
                action=f"/decide/{token}",
                linked_by=link.created_by,
                reader=reader,
                **values,
            )
        approval = service.get_approval(session, link.tenant_id, link.approval_id)
        own = decisions_of(approval, subject) if link.used_at is not None else []
        return render_template(
            "approvals/pages/link_ended.html",
            approval=approval,
            awaited=find_awaited(approval),
            own=own,
            link=link,
            is_expired=link.expires_at <= leases.read_database_time(session),
        )


class _Amended(NamedTuple):
    """The version that has replaced a version of a quote."""

    version: int
    approval_id: str | None
    changes: QuoteComparison


def _amended(session: Reader | Writer, row: ApprovalRow, quote: Mapping[str, Any]) -> _Amended | None:
    if row.state != SUPERSEDED:
        return None
    newest = quotes.get_quote(session, row.tenant_id, row.quote_id)
    if newest["version"] == row.quote_version:
        return None
    found = repository.find_by_content(session, row.tenant_id, row.quote_id, newest["content_digest"])
    return _Amended(newest["version"], found, compare_quotes(quote, newest))


def decisions_of(approval: Mapping[str, Any], subject: Principal) -> list[ApprovalDecision]:
    """Returns the decisions that a subject has made itself."""
    made = (decision for step in approval["steps"] for decision in step["decisions"])
    return [decision for decision in made if decision["decided_by"] == subject.name]


def _may_decide(session: Reader | Writer, subject: Principal, held: LoadedApproval) -> bool:
    try:
        decisions.check_may_decide(session, subject, held)
    except Problem:
        return False
    return True


def _has_asked(session: Reader | Writer, reader: Principal | None, approval_id: str) -> bool:
    """Returns true if the browser session belongs to a requester of the approval."""
    held = None if reader is None else repository.get_approval(session, reader.tenant_id, approval_id)
    if reader is None or held is None:
        return False
    try:
        decisions.check_may_decide(session, reader, held)
    except OwnApproval:
        return True
    except Problem:
        return False
    return False


def _decision_input(content_digest: str, comment: str) -> ApprovalDecisionRequest:
    try:
        return ApprovalDecisionRequest(content_digest=content_digest, comment=comment or MISSING)
    except ValidationError:
        raise BadRequest("The form lacks a valid content_digest") from None
