"""The page with the form of a question and its answer."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from fastapi import Request, Response
from markupsafe import Markup
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from service.auth.sessions import AuthenticatedPageRoute, PageVisitor, SameSessionForm, VisitorDependency
from service.evidence.snapshot import get_requested_snapshot
from service.kit.http.html import Form, group_errors_by_field, page_response, page_router, render_template
from service.kit.http.problems import Problem
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.kit.http.web import OffloadedWork
from service.quotes.form.fields import (
    ASKED,
    AT_FIRST,
    FIELDS,
    GROUPS,
    LABELS,
    WORKLOADS,
    CatalogRows,
)
from service.quotes.form.question import TypedForm, convert_problem_units, parse_question
from service.quotes.report.service import render_estimate_section
from service.quotes.snapshot import QUESTIONS, QuoteSubject, build_quote, is_owning_devices, project_questions
from service.resolve.catalog import CatalogView
from service.schemas.base import StrictModel


class QuestionPageRoute(AuthenticatedPageRoute):
    """A page whose form asks a question and stores nothing."""

    stores = False


class FormAnswer(NamedTuple):
    """The report of a question, and the API request that asks the same question."""

    report: Markup
    path: str
    body: str
    said: Mapping[str, list[str]]
    """Warnings of the answer by the form field that they are about."""


_MISSING = "MISSING"
router = page_router(tag="estimates", route_class=QuestionPageRoute)


@router.get("/ask")
async def ask_form(request: Request, visitor: VisitorDependency) -> Response:
    """Shows the empty form."""
    return await run_in_threadpool(_page, await get_requested_snapshot(request), visitor, AT_FIRST)


@router.post("/ask")
async def ask(
    request: Request, visitor: VisitorDependency, form: SameSessionForm, aside: OffloadedWork
) -> Response:
    """Shows the answer above the form, or the form with errors at its fields."""
    snapshot = await get_requested_snapshot(request)
    typed = parse_question(form, snapshot)

    async def show(**more: Any) -> Response:  # noqa: ANN401
        page = partial(_page, snapshot, visitor, form, unused=typed.unused)
        return await run_in_threadpool(page, **more)

    if typed.wrong:
        return await show(wrong=_shape_errors(typed) | typed.wrong)
    try:
        answer = await aside(partial(_answered, typed, snapshot))
    except Problem as problem:
        if not problem.errors:
            raise
        at_fields, others = group_errors_by_field(convert_problem_units(problem), typed.places)
        return await show(wrong=at_fields, others=others)
    return await show(answer=answer)


def _question(typed: TypedForm) -> StrictModel:
    raw = to_json(typed.question)
    try:
        return QUESTIONS[typed.name].model_validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(QUESTIONS[typed.name])) from None


def _shape_errors(typed: TypedForm) -> dict[str, str]:
    """Returns the errors beside those of unreadable fields, so that the form need not be sent twice."""
    try:
        _question(typed)
    except Problem as problem:
        said = [error for error in convert_problem_units(problem).errors if error.code != _MISSING]
        at_fields, _ = group_errors_by_field(type(problem)(problem.detail, *said), typed.places)
        return at_fields
    return {}


def _answered(typed: TypedForm, snapshot: CatalogView) -> FormAnswer:
    """Returns the report of a question. Raises a problem if the question is wrong."""
    question = _question(typed)
    operation: Any = typed.name.replace("_", "-")
    asked = QuoteSubject(operation, "", project_questions(typed.name, question), is_owning_devices(question))
    frozen = build_quote(asked, snapshot, lambda sources: [{}] * len(sources))
    report = render_estimate_section(
        {
            **frozen.summary,
            **frozen.document,
            "catalog_revision": frozen.catalog_revision,
            "method_version": frozen.method_version,
        }
    )
    body = json.dumps(typed.question, indent=1, ensure_ascii=False)
    return FormAnswer(
        report, f"/v1/estimates/{operation}", body, _said(frozen.document["warnings"], typed.places)
    )


def _said(warnings: Iterable[Mapping[str, str]], places: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns warnings about fields that are filled in, by field name."""
    said: defaultdict[str, list[str]] = defaultdict(list)
    for warning in warnings:
        _, _, _, *path = warning["pointer"].split("/")
        name = places.get("/" + "/".join(path), "")
        if name in FIELDS:
            said[name].append(warning["detail"].removesuffix("."))
    return said


def _ids(snapshot: CatalogView, noun: CatalogRows) -> list[str]:
    """Returns the ids of a resource, each row once."""
    rows: Mapping[str, Any] = getattr(snapshot, noun)
    return sorted({row.source["id"] for row in rows.values()})


def _page(
    snapshot: CatalogView,
    visitor: PageVisitor,
    form: Form,
    *,
    wrong: Mapping[str, str] | None = None,
    others: list[str] | None = None,
    unused: Mapping[str, str] | None = None,
    answer: FormAnswer | None = None,
) -> Response:
    page = render_template(
        "quotes/form/form.html",
        visitor=visitor,
        form=form,
        groups=GROUPS,
        labels=LABELS,
        wrong=wrong or {},
        others=others or [],
        unused=unused or {},
        # Defaults of the form were not typed by anybody.
        typed_unused={
            name: why for name, why in (unused or {}).items() if form[name].strip() != AT_FIRST.get(name, "")
        },
        answer=answer,
        ids=partial(_ids, snapshot),
        asked=ASKED,
        workloads=WORKLOADS,
    )
    return page_response(page, status=422 if wrong or others else 200)
