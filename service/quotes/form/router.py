"""The page that asks a question and answers beside it, its script, and quotes of its questions."""

import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from service.audit.service import Transactions, TransactionSource
from service.auth.sessions import AuthenticatedPageRoute, PageVisitor, SameSessionForm, VisitorDependency
from service.cost_centers.service import list_cost_centers
from service.evidence.snapshot import get_requested_snapshot
from service.kit.http.html import (
    Form,
    build_redirect,
    page_response,
    page_router,
    render_template,
)
from service.kit.http.problems import BadRequest
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.kit.http.web import OffloadedWork, PublicRoute
from service.kit.locales import read_numbers, write_numbers
from service.kit.reports.shapes import ReportSection
from service.kit.security.principals import build_permission
from service.quotes.form.answers import (
    FormAnswer,
    FormRefusal,
    answer_form,
    describe_question,
    list_compared,
)
from service.quotes.form.changes.service import answer_changes
from service.quotes.form.comparison import ComparedAnswer, compare_answers
from service.quotes.form.fields import ASKED, AT_FIRST, GROUPS, LABELS, NUMBER_FIELDS
from service.quotes.form.links import (
    FIELD_NAMES,
    KEPT,
    MOST_QUERY_CHARACTERS,
    build_address,
    build_plan_address,
    build_query,
    keep_question,
    parse_query,
)
from service.quotes.form.proposals import ProposedName, list_proposals, remove_listed_names
from service.quotes.form.question import TypedForm, parse_question
from service.quotes.pages.creation import check_once, create_quote_once
from service.quotes.schemas import QuoteRequest
from service.quotes.service import QuoteFreezing
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import WORKLOADS
from service.resolve.titles import get_title, list_suggestions, list_titles


class QuestionPageRoute(AuthenticatedPageRoute):
    """A page whose form asks a question and stores nothing."""

    stores = False


_Text = Annotated[str | None, Field(max_length=MOST_QUERY_CHARACTERS)]
_fields: dict[str, Any] = dict.fromkeys((*FIELD_NAMES, *KEPT), (_Text, None))
AskQuery: type[BaseModel] = create_model("AskQuery", **_fields)
"""Fields of the form that an address states."""
KEEP: Final = "keep"
"""Name of the button that puts a question beside the next one."""
_MAY_PLAN: Final = build_permission("plans", "write")
_MAY_QUOTE: Final = build_permission("quotes", "write")
_QUOTE: TypeAdapter[QuoteRequest] = TypeAdapter(QuoteRequest, config=ConfigDict(defer_build=True))
router = page_router(tag="estimates", route_class=QuestionPageRoute)
quoting = page_router(tag="quotes", route_class=AuthenticatedPageRoute)
script = APIRouter(tags=["estimates"], route_class=PublicRoute, include_in_schema=False)


class AskedForm(NamedTuple):
    """A form with its answer or refusal, and the columns of its comparison."""

    form: Form
    typed: TypedForm
    result: FormAnswer | FormRefusal
    columns: Sequence[ComparedAnswer] = ()
    plan_address: str = ""
    """Address of a new plan for the same work."""
    proposals: Mapping[str, Sequence[ProposedName]] = MappingProxyType({})
    """Names that may be meant, by the field that has an unknown one."""


@script.get("/ask/live.js")
def live_script() -> Response:
    """Returns the script that asks again when a field changes."""
    text = (files("service.quotes.form") / "live.js").read_text(encoding="utf-8")
    return Response(text, media_type="text/javascript")


@router.get("/ask")
async def ask_page(
    request: Request,
    visitor: VisitorDependency,
    query: Annotated[AskQuery, Query()],
    transactions: Transactions,
    aside: OffloadedWork,
) -> Response:
    """Shows the form with the answer to the question of the address, at first to an example."""
    form = {**AT_FIRST, **query.model_dump(exclude_none=True)}
    snapshot = await get_requested_snapshot(request)
    asked = await aside(partial(_answer_all, form, snapshot))
    return await run_in_threadpool(_show_page, asked, snapshot, visitor, transactions)


@router.get("/ask/charts")
async def charts_page(
    request: Request,
    visitor: VisitorDependency,
    query: Annotated[AskQuery, Query()],
    aside: OffloadedWork,
) -> Response:
    """Shows how the answer to the question of the address changes, for the page of the question to load."""
    form = {**AT_FIRST, **query.model_dump(exclude_none=True)}
    snapshot = await get_requested_snapshot(request)
    found = await aside(partial(answer_changes, form, snapshot))
    is_answered = isinstance(found, ReportSection)
    page = render_template(
        "quotes/form/charts.html",
        visitor=visitor,
        subject=describe_question(form, snapshot),
        address=build_address(form) or "/ask",
        labels=LABELS,
        section=found if is_answered else None,
        refusal=None if is_answered else found,
    )
    return page_response(page, status=200 if is_answered else 422)


@router.post("/ask")
async def ask(
    request: Request,
    visitor: VisitorDependency,
    form: SameSessionForm,
    transactions: Transactions,
    aside: OffloadedWork,
) -> Response:
    """Redirects to the address of the question, or answers at once where it is too long for one."""
    form = read_numbers(form, NUMBER_FIELDS)
    if form.get(KEEP):
        form = keep_question(form)
    address = build_address(form)
    if address is not None:
        return build_redirect(address)
    snapshot = await get_requested_snapshot(request)
    asked = await aside(partial(_answer_all, form, snapshot))
    return await run_in_threadpool(_show_page, asked, snapshot, visitor, transactions)


@router.post("/ask/answer")
async def ask_again(
    request: Request,
    visitor: VisitorDependency,
    form: SameSessionForm,
    transactions: Transactions,
    aside: OffloadedWork,
) -> Response:
    """Returns the part of the page that answers, with the address of the question, for the script."""
    form = read_numbers(form, NUMBER_FIELDS)
    snapshot = await get_requested_snapshot(request)
    asked = await aside(partial(_answer_all, form, snapshot))
    is_answered = isinstance(asked.result, FormAnswer)
    template = f"quotes/form/{'answer' if is_answered else 'refusal'}.html"
    page = await run_in_threadpool(
        lambda: render_template(template, **_build_values(asked, visitor, transactions))
    )
    headers = {"Content-Location": build_address(form) or "/ask"}
    return page_response(page, status=200 if is_answered else 422, headers=headers)


@quoting.post("/ask/quote")
async def quote_question(
    *,
    request: Request,
    visitor: VisitorDependency,
    form: SameSessionForm,
    transactions: Transactions,
    freezing: QuoteFreezing,
    aside: OffloadedWork,
) -> Response:
    """Freezes a question as a quote, once for each page that shows its answer, and redirects to the quote."""
    once = check_once(form)
    body = _build_quote_request(form, await get_requested_snapshot(request))
    return await create_quote_once(
        request,
        visitor,
        body,
        once,
        operation="quote_question",
        transactions=transactions,
        freezing=freezing,
        aside=aside,
    )


def _build_quote_request(form: Form, catalog: CatalogView) -> QuoteRequest:
    """Returns the request of a quote whose question is given by the query of its address."""
    typed = parse_question(parse_query(form.get("query", "")), catalog)
    if typed.wrong:
        raise BadRequest("The question cannot be answered")
    given = {"name": form.get("name", "").strip(), "cost_center_id": form.get("cost_center_id", "").strip()}
    body = {name: text for name, text in given.items() if text}
    raw = to_json({**body, "operation": typed.name.replace("_", "-"), "request": typed.question})
    try:
        return _QUOTE.validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(_QUOTE)) from None


def _answer_all(form: Form, catalog: CatalogView) -> AskedForm:
    typed, result = answer_form(form, catalog)
    if isinstance(result, FormAnswer):
        columns = list_compared(form, catalog, result)
        return AskedForm(form, typed, result, columns, build_plan_address(form, typed, catalog))
    proposals = list_proposals(form, result.wrong, catalog)
    result = result._replace(wrong=remove_listed_names(result.wrong, list(proposals)))
    return AskedForm(form, typed, result, proposals=proposals)


def _build_values(asked: AskedForm, visitor: PageVisitor, transactions: TransactionSource) -> dict[str, Any]:
    """Returns the values of the templates."""
    form, typed, result, columns = asked.form, asked.typed, asked.result, asked.columns
    query = build_query(form)
    refused = result if isinstance(result, FormRefusal) else FormRefusal({})
    return {
        "visitor": visitor,
        "form": form,
        "labels": LABELS,
        "wrong": refused.wrong,
        "others": refused.others,
        "proposals": asked.proposals,
        "plan_address": asked.plan_address if visitor.subject.has_permission(_MAY_PLAN) else None,
        "unused": typed.unused,
        # Defaults of the form were not typed by anybody.
        "typed_unused": {
            name: why for name, why in typed.unused.items() if form[name].strip() != AT_FIRST.get(name, "")
        },
        "answer": result if isinstance(result, FormAnswer) else None,
        "columns": columns,
        "compared": compare_answers(columns),
        "address": build_address(form),
        "charts_address": f"/ask/charts?{query}" if len(query) <= MOST_QUERY_CHARACTERS else None,
        "query": query,
        "quoting": _list_payers(visitor, transactions),
        "once": secrets.token_hex(16),
    }


def _list_payers(visitor: PageVisitor, transactions: TransactionSource) -> list[dict[str, Any]] | None:
    """Returns the cost centres that a quote can name; None for a visitor who may make no quote."""
    if not visitor.subject.has_permission(_MAY_QUOTE):
        return None
    with transactions.open_reader() as session:
        return list_cost_centers(session, visitor.subject.tenant_id)


def _show_page(
    asked: AskedForm, catalog: CatalogView, visitor: PageVisitor, transactions: TransactionSource
) -> Response:
    shown = write_numbers(asked.form, NUMBER_FIELDS)
    for noun, name in (("models", "model"), ("accelerators", "accelerator")):
        shown[name] = get_title(catalog, noun, asked.form.get(name, "").strip())  # type: ignore[arg-type]
    page = render_template(
        "quotes/form/form.html",
        **_build_values(asked, visitor, transactions),
        shown=shown,
        groups=GROUPS,
        first=AT_FIRST,
        kept=KEPT,
        suggestions=partial(list_suggestions, catalog),
        titles=partial(list_titles, catalog),
        asked=ASKED,
        workloads=WORKLOADS,
    )
    status = 422 if isinstance(asked.result, FormRefusal) else 200
    return page_response(page, status=status, has_scripts=True)
