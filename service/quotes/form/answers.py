"""Answers of the form: the card, the sections of the report, and the questions beside it."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from service.kit.http.html import Form, group_errors_by_field
from service.kit.http.problems import Problem
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.kit.locales import localize_number
from service.kit.reports.numbers import TIMES, to_title
from service.quotes.form.card import AnswerCard, build_card
from service.quotes.form.comparison import ComparedAnswer
from service.quotes.form.fields import AT_FIRST, FIELDS, GROUPS
from service.quotes.form.links import KEPT, build_address, build_query, list_kept, parse_query
from service.quotes.form.question import TypedForm, parse_question
from service.quotes.report.service import ReportParts, build_estimate_parts
from service.quotes.snapshot import (
    QUESTIONS,
    QuoteSnapshot,
    QuoteSubject,
    build_quote,
    is_owning_devices,
    project_questions,
)
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import CURRENCY, SERVING, WORKLOAD
from service.resolve.forms import convert_problem_units
from service.resolve.names import NamedRows
from service.resolve.titles import get_title, list_titles
from service.schemas.base import StrictModel

_MISSING: Final = "MISSING"
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_NUMBERS: Final = ("number", "whole", "money")
_Answer = TypeVar("_Answer")
Assumption = tuple[str, str, str]
"""Name, value and reason of what the question leaves open."""


class FormAnswer(NamedTuple):
    """Answer to a question, and the API request that asks the same question."""

    subject: str
    card: AnswerCard
    parts: ReportParts
    assumptions: Sequence[Assumption]
    path: str
    body: str
    said: Mapping[str, list[str]]
    """Warnings of the answer by the form field that they are about."""


class FormRefusal(NamedTuple):
    """Reasons why a form has no answer: by field, and those of no field."""

    wrong: Mapping[str, str]
    others: Sequence[str] = ()


def answer_form(form: Form, catalog: CatalogView) -> tuple[TypedForm, FormAnswer | FormRefusal]:
    """Returns the typed form, and its answer or the reasons why it has none."""
    typed = parse_question(form, catalog)
    return typed, answer_typed(typed, partial(_answer_question, form, typed, catalog))


def answer_typed(typed: TypedForm, answer: Callable[[], _Answer]) -> _Answer | FormRefusal:
    """Returns the answer to a typed form, or the reasons why it has none."""
    if typed.wrong:
        return FormRefusal(_list_shape_errors(typed) | typed.wrong)
    try:
        return answer()
    except Problem as problem:
        if not problem.errors:
            raise
        return FormRefusal(*group_errors_by_field(convert_problem_units(problem, FIELDS), typed.places))


def build_question(typed: TypedForm) -> StrictModel:
    """Returns the question of a form as a request. Raises a problem that names what is wrong."""
    raw = to_json(typed.question)
    try:
        return QUESTIONS[typed.name].model_validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(QUESTIONS[typed.name])) from None


def _list_shape_errors(typed: TypedForm) -> dict[str, str]:
    """Returns the errors beside those of unreadable fields, so that the form need not be sent twice."""
    try:
        build_question(typed)
    except Problem as problem:
        said = [error for error in convert_problem_units(problem, FIELDS).errors if error.code != _MISSING]
        at_fields, _ = group_errors_by_field(type(problem)(problem.detail, *said), typed.places)
        return at_fields
    return {}


def _freeze_question(typed: TypedForm, catalog: CatalogView) -> QuoteSnapshot:
    question = build_question(typed)
    operation: Any = typed.name.replace("_", "-")
    asked = QuoteSubject(operation, "", project_questions(typed.name, question), is_owning_devices(question))
    return build_quote(asked, catalog, partial(_name_rows, catalog))


def _name_rows(catalog: CatalogView, sources: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Returns the names of catalog rows in place of the rows, which a page does not store."""
    resources = (getattr(catalog, f"{source['kind']}s", None) for source in sources)
    entries = (rows.entries if isinstance(rows, NamedRows) else {} for rows in resources)
    titles = (known.get(source["id"]) for known, source in zip(entries, sources, strict=True))
    return [{"name": entry.title} if entry and entry.title else {} for entry in titles]


def _answer_question(form: Form, typed: TypedForm, catalog: CatalogView) -> FormAnswer:
    frozen = _freeze_question(typed, catalog)
    quote = _to_document(frozen)
    return FormAnswer(
        describe_question(form, catalog),
        build_card(quote),
        build_estimate_parts(quote),
        list(_list_assumptions(form, typed, quote, catalog)),
        f"/v1/estimates/{typed.name.replace('_', '-')}",
        json.dumps(typed.question, indent=1, ensure_ascii=False),
        _group_warnings(frozen.document["warnings"], typed.places),
    )


def _to_document(frozen: QuoteSnapshot) -> dict[str, Any]:
    """Returns an answered question as the JSON document that reports read."""
    found: dict[str, Any] = json.loads(to_json({**frozen.summary, **frozen.document}))
    return found | {"catalog_revision": frozen.catalog_revision, "method_version": frozen.method_version}


def _group_warnings(warnings: Iterable[Mapping[str, str]], places: Mapping[str, str]) -> dict[str, list[str]]:
    """Returns warnings about fields that are filled in, by field name."""
    said: defaultdict[str, list[str]] = defaultdict(list)
    for warning in warnings:
        _, _, _, *path = warning["pointer"].split("/")
        name = places.get("/" + "/".join(path), "")
        if name in FIELDS:
            said[name].append(warning["detail"].removesuffix("."))
    return said


def describe_question(form: Form, catalog: CatalogView) -> str:
    """Returns model, purpose and hardware in words."""
    typed = {name: text.strip() for name, text in form.items()}
    if typed.get("config"):
        model = "A model by its config.json"
    elif typed.get("parameters_billions"):
        model = f"A model of {typed['parameters_billions']} billion parameters"
    else:
        model = get_title(catalog, "models", typed.get("model", ""))
    work = "served" if typed.get(WORKLOAD) == SERVING else "trained"
    if typed.get("adaptation") and work == "trained":
        work = f"trained with {dict(FIELDS['adaptation'].options).get(typed['adaptation'], 'adapters')}"
    hardware = get_title(catalog, "accelerators", typed.get("accelerator", ""))
    number = typed.get("accelerator_count", "")
    return f"{model}, {work} on {number} {TIMES} {hardware}" if hardware else f"{model}, {work}"


def _list_assumptions(
    form: Form, typed: TypedForm, quote: Mapping[str, Any], catalog: CatalogView
) -> Iterator[Assumption]:
    """Yields what the visitor did not type: the offer, fields as at first, and defaults of the service."""
    if typed.chosen_offer:
        title = list_titles(catalog, "offers").get(typed.chosen_offer, typed.chosen_offer)
        is_linked = catalog.offers[typed.chosen_offer].accelerator_count > 1
        held = " in instances that hold what works together" if is_linked else " for this hardware"
        yield "Rent", title, f"the cheapest on-demand offer of the catalog{held}"
    for field in (field for group in GROUPS if not group.is_first for field in group.fields):
        text = form.get(field.name, "").strip()
        if text and text == AT_FIRST.get(field.name) and field.name not in typed.unused:
            shown = dict(field.options).get(text, localize_number(text) if field.kind in _NUMBERS else text)
            shown = list_titles(catalog, field.rows).get(text, text) if field.rows else shown
            unit = form.get(CURRENCY, "") if field.kind == "money" else ""
            yield (
                field.label,
                " ".join(filter(None, (shown, unit, field.unit))),
                "as the form is filled in at first",
            )
    seen: set[str] = set()
    for answer in quote["answers"].values():
        for default in answer["defaults"]:
            if default["pointer"] not in seen:
                seen.add(default["pointer"])
                name = " / ".join(default["pointer"].split("/")[2:] or [default["pointer"][1:]])
                yield to_title(name), _format_default(name, default["value"]), default["detail"]


def _format_default(name: str, value: str) -> str:
    """Returns a value in the style of the reader if it is a number, and not that of a version."""
    return localize_number(value) if _NUMBER.fullmatch(value) and not name.endswith("version") else value


def list_compared(form: Form, catalog: CatalogView, answer: FormAnswer) -> list[ComparedAnswer]:
    """Returns the questions beside the present one and then itself; nothing where none is kept."""
    columns = [
        _answer_kept(query, build_address(form, without=name) or "/ask", catalog)
        for name, query in ((name, form.get(name, "")) for name in KEPT)
        if query and query in list_kept(form)
    ]
    if not columns:
        return []
    return [*columns, ComparedAnswer(answer.subject, f"/ask?{build_query(form)}", answer.card)]


def _answer_kept(query: str, removal: str, catalog: CatalogView) -> ComparedAnswer:
    form = parse_query(query)
    subject, address = describe_question(form, catalog), f"/ask?{build_query(form)}"
    typed = parse_question(form, catalog)
    if typed.wrong:
        return ComparedAnswer(subject, address, None, "cannot be answered", removal)
    try:
        card = build_card(_to_document(_freeze_question(typed, catalog)))
    except Problem as problem:
        refusal = problem.errors[0].detail if problem.errors else problem.title
        return ComparedAnswer(subject, address, None, refusal, removal)
    return ComparedAnswer(subject, address, card, "", removal)
