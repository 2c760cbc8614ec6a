"""The page with the form, and its answer."""

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

from service.auth.sessions import OwnForm, Reading, VisitedRoute, Visitor
from service.evidence.snapshot import SnapshotStore
from service.kit.http.html import Form, errors_by_field, page_response, page_router, render
from service.kit.http.problems import Problem
from service.kit.http.web import WorkAside, body_errors
from service.quotes.form.fields import (
    ASKED,
    AT_FIRST,
    FIELDS,
    GROUPS,
    LABELS,
    WORKLOADS,
    Rows,
)
from service.quotes.form.question import Typed, in_own_units, question_from
from service.quotes.freeze import QUESTIONS, Asked, freeze, owns_devices, projected
from service.quotes.report.service import estimate_section
from service.resolve.catalog import CatalogView
from service.schemas.base import Input


class AskingPage(VisitedRoute):
    """A page whose form asks and stores nothing."""

    stores = False


class Answer(NamedTuple):
    """The report of a question, and the request of the API that asks the same."""

    report: Markup
    path: str
    body: str
    said: Mapping[str, list[str]]
    """Warnings of the answer by the field that they are about."""


_MISSING = "MISSING"
router = page_router(tag="estimates", route_class=AskingPage)


@router.get("/ask")
async def ask_form(request: Request, visitor: Reading) -> Response:
    """The form as it is before anything is typed."""
    return await run_in_threadpool(_page, await _snapshot(request), visitor, AT_FIRST)


@router.post("/ask")
async def ask(request: Request, visitor: Reading, form: OwnForm, aside: WorkAside) -> Response:
    """The answer above the form, or the form with what is wrong at its fields."""
    snapshot = await _snapshot(request)
    typed = question_from(form, snapshot)

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
        at_fields, others = errors_by_field(in_own_units(problem), typed.places)
        return await show(wrong=at_fields, others=others)
    return await show(answer=answer)


async def _snapshot(request: Request) -> CatalogView:
    store: SnapshotStore = request.app.state.snapshots
    return await store.asked(request.scope)


def _question(typed: Typed) -> Input:
    raw = to_json(typed.question)
    try:
        return QUESTIONS[typed.name].model_validate_json(raw)
    except ValidationError as error:
        raise body_errors(error, raw) from None


def _shape_errors(typed: Typed) -> dict[str, str]:
    """What else is wrong beside what cannot be read, so that it need not be sent twice."""
    try:
        _question(typed)
    except Problem as problem:
        said = [error for error in in_own_units(problem).errors if error.code != _MISSING]
        at_fields, _ = errors_by_field(type(problem)(problem.detail, *said), typed.places)
        return at_fields
    return {}


def _answered(typed: Typed, snapshot: CatalogView) -> Answer:
    """The report of a question; what is wrong with it is a problem."""
    question = _question(typed)
    operation: Any = typed.name.replace("_", "-")
    asked = Asked(operation, "", projected(typed.name, question), owns_devices(question))
    frozen = freeze(asked, snapshot, lambda sources: [{}] * len(sources))
    report = estimate_section(
        {
            **frozen.summary,
            **frozen.document,
            "catalog_revision": frozen.catalog_revision,
            "method_version": frozen.method_version,
        }
    )
    body = json.dumps(typed.question, indent=1, ensure_ascii=False)
    return Answer(
        report, f"/v1/estimates/{operation}", body, _said(frozen.document["warnings"], typed.places)
    )


def _said(warnings: Iterable[Mapping[str, str]], places: Mapping[str, str]) -> dict[str, list[str]]:
    """Warnings about a field that is filled in, by its name."""
    said: defaultdict[str, list[str]] = defaultdict(list)
    for warning in warnings:
        _, _, _, *path = warning["pointer"].split("/")
        name = places.get("/" + "/".join(path), "")
        if name in FIELDS:
            said[name].append(warning["detail"].removesuffix("."))
    return said


def _ids(snapshot: CatalogView, noun: Rows) -> list[str]:
    """Ids of a noun, each row once."""
    rows: Mapping[str, Any] = getattr(snapshot, noun)
    return sorted({row.source["id"] for row in rows.values()})


def _page(
    snapshot: CatalogView,
    visitor: Visitor,
    form: Form,
    *,
    wrong: Mapping[str, str] | None = None,
    others: list[str] | None = None,
    unused: Mapping[str, str] | None = None,
    answer: Answer | None = None,
) -> Response:
    page = render(
        "quotes/form/form.html",
        visitor=visitor,
        form=form,
        groups=GROUPS,
        labels=LABELS,
        wrong=wrong or {},
        others=others or [],
        unused=unused or {},
        # What the form said by itself was not typed by anybody.
        typed_unused={
            name: why for name, why in (unused or {}).items() if form[name].strip() != AT_FIRST.get(name, "")
        },
        answer=answer,
        ids=partial(_ids, snapshot),
        asked=ASKED,
        workloads=WORKLOADS,
    )
    return page_response(page, status=422 if wrong or others else 200)
