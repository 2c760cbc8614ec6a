"""Pages of plans: the list, the form, and a plan with its progress or its answer."""

import json
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool

from service.audit.service import ReadRequest, Transactions, TransactionSource, WriteContext, WriteRequest
from service.auth.sessions import AuthenticatedPageRoute, PageVisitor, SameSessionForm, VisitorDependency
from service.evidence.snapshot import Snapshots, get_requested_snapshot
from service.kit.http.html import Form, build_redirect, page_response, page_router, render_template
from service.kit.http.pages import NEWEST_FIRST, PageQuery
from service.kit.http.problems import Conflict, Problem, Unavailable, Unprocessable
from service.kit.http.web import OffloadedInlineSearch, OffloadedWork
from service.kit.locales import read_numbers
from service.kit.security.principals import build_permission
from service.plans import repository, stored
from service.plans.creation import create_plan
from service.plans.errors import PlanEnded
from service.plans.pages.answer import build_parts
from service.plans.pages.fields import AT_FIRST, FIELD_NAMES, NUMBER_FIELDS
from service.plans.pages.fleet import build_schedule, describe_fleet, list_fleet_facts
from service.plans.pages.form import FormRefusal, build_key, read_form, refuse_form, render_form
from service.plans.pages.listing import describe_long_plan, describe_plan, list_facts
from service.plans.pages.question import MOST_QUERY_CHARACTERS, build_address, convert_handed_count
from service.plans.schemas import PlanId
from service.plans.tables import FLEET, RUNNING
from service.resolve.catalog import CatalogView

RELOAD_SECONDS: Final = 5
"""Time after which the page of a running search is loaded again."""
_LISTED: Final = 24
_MOST_LISTED_CHARACTERS: Final = 2**19
"""Longest question with its answer that the list reads. They hold models, of which a body has 8 MB."""
_MAY_PLAN: Final = build_permission("plans", "write")
_MAY_QUOTE: Final = build_permission("quotes", "write")


class PlanFormRoute(AuthenticatedPageRoute):
    """The form of a plan, for visitors who may make one."""

    needs = _MAY_PLAN


class PlanListQuery(BaseModel):
    """Page of the list of plans."""

    model_config = ConfigDict(extra="forbid")

    page_token: Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_-]*$")] = ""


class PlanPageQuery(BaseModel):
    """Manner in which a plan is shown."""

    model_config = ConfigDict(extra="forbid")

    reload: Literal["", "no"] = ""


_Text = Annotated[str | None, Field(max_length=MOST_QUERY_CHARACTERS)]
_fields: dict[str, Any] = dict.fromkeys(FIELD_NAMES, (_Text, None))
PlanFormQuery: type[BaseModel] = create_model("PlanFormQuery", **_fields)
"""Fields of the form that an address states."""
PlanPath = Annotated[PlanId, Path(alias="id")]
router = page_router(tag="plans", route_class=AuthenticatedPageRoute)
forms = page_router(tag="plans", route_class=PlanFormRoute)


@router.get("/plans")
def plans_page(
    transactions: Transactions,
    snapshots: Snapshots,
    visitor: VisitorDependency,
    query: Annotated[PlanListQuery, Query()],
) -> Response:
    """Lists the plans, the newest first."""
    read = ReadRequest(transactions, visitor.subject)
    page = read.page(
        PageQuery(page_size=_LISTED, page_token=query.page_token), NEWEST_FIRST, "pages of plans"
    )
    catalog = snapshots.get_current(read.tenant_id)
    with read.session() as session:
        rows = repository.list_page(
            session,
            read.tenant_id,
            states=(),
            goals=(),
            after=page.after,
            limit=page.limit,
        )
        found = page.to_response(stored.list_details(session, read.tenant_id, rows, _MOST_LISTED_CHARACTERS))
    shown = render_template(
        "plans/pages/plans.html",
        visitor=visitor,
        plans=[_describe(each, catalog) for each in found["items"]],
        next_page=found["next_page_token"],
        is_later=bool(query.page_token),
        may_plan=visitor.subject.has_permission(_MAY_PLAN),
    )
    return page_response(shown)


@forms.get("/plans/new")
async def plan_form(
    request: Request, visitor: VisitorDependency, query: Annotated[PlanFormQuery, Query()]
) -> Response:
    """Shows the form, with the fields that the address states filled in."""
    catalog = await get_requested_snapshot(request)
    given = convert_handed_count(query.model_dump(exclude_none=True), catalog)
    form = {**AT_FIRST, **given}
    return await run_in_threadpool(_show_form, form, catalog, visitor, FormRefusal({}))


@forms.post("/plans")
async def plan_on_page(
    *,
    request: Request,
    visitor: VisitorDependency,
    form: SameSessionForm,
    transactions: Transactions,
    snapshots: Snapshots,
    aside: OffloadedWork,
    searching: OffloadedInlineSearch,
) -> Response:
    """Searches the question of the form, once for each form that is shown, and redirects to the plan."""
    form = read_numbers(form, NUMBER_FIELDS)
    catalog = await get_requested_snapshot(request)
    state = request.scope["state"]
    call = WriteContext(visitor.subject, "plan_on_page", "/plans", state["request_id"], build_key(form))
    write = WriteRequest(transactions, call)
    try:
        body = read_form(form, catalog)
        made = await create_plan(write, snapshots, aside, searching, body)
    except (Unprocessable, Conflict, Unavailable) as problem:
        refusal = refuse_form(form, problem, catalog)
        return await run_in_threadpool(_show_form, form, catalog, visitor, refusal)
    return build_redirect(f"/plans/{from_json(bytes(made.body))['id']}")


def _show_form(form: Form, catalog: CatalogView, visitor: PageVisitor, refusal: FormRefusal) -> Response:
    page = render_form(form, catalog, visitor, refusal)
    return page_response(page, status=refusal.status)


@router.get("/plans/{id:name}")
def plan_page(
    transactions: Transactions,
    snapshots: Snapshots,
    visitor: VisitorDependency,
    id: PlanPath,
    query: Annotated[PlanPageQuery, Query()],
) -> Response:
    """Shows a plan: the progress of its search, or its answer."""
    plan = _get_plan(transactions, visitor.subject.tenant_id, id)
    catalog = snapshots.get_current(visitor.subject.tenant_id)
    is_reloading = plan["state"] == RUNNING and not query.reload
    page = _render_plan(plan, catalog, visitor, is_reloading=is_reloading)
    # The header needs no script. A reader can stop it by the address.
    return page_response(page, headers={"Refresh": str(RELOAD_SECONDS)} if is_reloading else {})


@router.post("/plans/{id:name}/cancel")
def cancel_plan_on_page(
    *,
    request: Request,
    transactions: Transactions,
    snapshots: Snapshots,
    visitor: VisitorDependency,
    id: PlanPath,
    form: SameSessionForm,
) -> Response:
    """Cancels a search and shows the plan. A search that has ended meanwhile is shown with its answer."""
    del form  # it only proves that the page was read in this session
    tenant_id, scope = visitor.subject.tenant_id, request.scope
    call = WriteContext(visitor.subject, "cancel_plan_on_page", scope["path"], scope["state"]["request_id"])
    try:
        WriteRequest(transactions, call).run(None, lambda session: stored.cancel_plan(session, tenant_id, id))
    except PlanEnded as ended:
        plan = _get_plan(transactions, tenant_id, id)
        page = _render_plan(plan, snapshots.get_current(tenant_id), visitor, problem=ended)
        return page_response(page, status=ended.status)
    return build_redirect(f"/plans/{id}")


def _get_plan(transactions: TransactionSource, tenant_id: str, plan_id: str) -> dict[str, Any]:
    with transactions.open_reader() as session:
        return stored.get_plan(session, tenant_id, plan_id)


def _describe(plan: dict[str, Any], catalog: CatalogView) -> dict[str, Any]:
    if not plan.keys() & {"question", "fleet_question"}:
        return describe_long_plan(plan)
    return describe_fleet(plan) if plan["kind"] == FLEET else describe_plan(plan, catalog)


def _render_plan(
    plan: dict[str, Any],
    catalog: CatalogView,
    visitor: PageVisitor,
    *,
    is_reloading: bool = False,
    problem: Problem | None = None,
) -> str:
    subject = visitor.subject
    may_plan, may_quote = (subject.has_permission(needed) for needed in (_MAY_PLAN, _MAY_QUOTE))
    if plan["kind"] == FLEET:
        own = _list_fleet_values(plan, catalog)
    else:
        own = _list_plan_values(plan, catalog, may_plan=may_plan, may_quote=may_quote)
    return render_template(
        "plans/pages/plan.html",
        **own,
        visitor=visitor,
        plan=_describe(plan, catalog),
        is_reloading=is_reloading,
        reload_seconds=RELOAD_SECONDS,
        may_plan=may_plan,
        may_quote=may_quote,
        problem=problem,
    )


def _list_plan_values(
    plan: dict[str, Any], catalog: CatalogView, *, may_plan: bool, may_quote: bool
) -> dict[str, Any]:
    question = plan["question"]
    return {
        "facts": list_facts(question, catalog),
        "again": build_address(question, catalog) if may_plan else None,
        "parts": build_parts(plan, catalog, may_quote=may_quote) if "answer" in plan else None,
        "answer": "plans/pages/answer.html",
        "operation": "/v1/plans",
        "body": _write_question(question),
    }


def _list_fleet_values(plan: dict[str, Any], catalog: CatalogView) -> dict[str, Any]:
    question = plan["fleet_question"]
    return {
        "facts": list_fleet_facts(question, catalog),
        "again": None,  # no form has the fields of a fleet
        "parts": build_schedule(plan, catalog) if "fleet_answer" in plan else None,
        "answer": "plans/pages/schedule.html",
        "operation": "/v1/plans:fleet",
        "body": _write_question(question),
    }


def _write_question(question: dict[str, Any]) -> str:
    return json.dumps(question, indent=1, ensure_ascii=False)
