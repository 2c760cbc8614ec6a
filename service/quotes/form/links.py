"""Addresses of questions: the fields that differ from the form at first, and the questions beside it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from service.kit.http.html import Form
from service.quotes.form.fields import AT_FIRST, FIELDS, QUESTION
from service.quotes.form.question import TypedForm
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import WORKLOAD

MOST_QUERY_CHARACTERS: Final = 4000
"""Longest query of an address. A pasted config.json is longer, and is only ever posted."""
MOST_KEPT_CHARACTERS: Final = 1000
KEPT: Final = ("kept_1", "kept_2")
"""Fields of the questions that are compared with the present one, each by the query of its address."""
_STATED: Final = ("model", "accelerator_count", "accelerator", WORKLOAD)
"""Fields that every address states, because a question is read by them."""
_PLANNED: Final = (
    "concurrency",
    "input_tokens",
    "output_tokens",
    "total_tokens_billions",
    "sequence_length",
)
"""Fields of the work that a plan takes too."""
FIELD_NAMES: Final = (QUESTION, WORKLOAD, *FIELDS)


def build_query(form: Form) -> str:
    """Returns the query of the address of a question, without the questions beside it."""
    return urlencode(
        {
            name: form.get(name, "").strip()
            for name in FIELD_NAMES
            if name in _STATED or form.get(name, "").strip() != AT_FIRST.get(name, "")
        }
    )


def parse_query(query: str) -> Form:
    """Returns the form of the query of an address. A field that it does not state is as at first."""
    given = dict(parse_qsl(query, keep_blank_values=True))
    return {**AT_FIRST, **{name: text for name, text in given.items() if name in FIELD_NAMES}}


def build_address(form: Form, *, without: str = "") -> str | None:
    """Returns the address of a question and of those beside it; None if it is too long for one."""
    kept = {f"kept_{place}": query for place, query in enumerate(list_kept(form, without=without), 1)}
    query = "&".join(filter(None, (build_query(form), urlencode(kept))))
    return f"/ask?{query}" if len(query) <= MOST_QUERY_CHARACTERS else None


def build_plan_address(form: Form, typed: TypedForm, catalog: CatalogView) -> str:
    """Returns the address of a new plan for the work of a question, with what the question states of it."""
    question = typed.question
    workload = question.get("workload", {})
    devices = question.get("cluster", {})
    known = catalog.accelerators.get(devices.get("accelerator", {}).get("id", ""))
    told = {
        "model": question.get("model", {}).get("id"),
        "accelerator": known and known.accelerator.id,
        "accelerator_count": devices.get("accelerator_count"),
        WORKLOAD: workload.get("kind"),
        **{name: form[name].strip() for name in _PLANNED if _is_stated(workload, name)},
    }
    return "/plans/new?" + urlencode({name: value for name, value in told.items() if value is not None})


def _is_stated(workload: Mapping[str, Any], name: str) -> bool:
    return FIELDS[name].pointer.removeprefix("/workload/") in workload


def list_kept(form: Form, *, without: str = "") -> Iterator[str]:
    """Yields the queries of the questions beside the present one."""
    for name in KEPT:
        query = form.get(name, "")
        if query and name != without and len(query) <= MOST_KEPT_CHARACTERS:
            yield query


def keep_question(form: Form) -> Form:
    """Returns the form with its question beside itself, in the place of the oldest where both are taken."""
    query = build_query(form)
    if len(query) > MOST_KEPT_CHARACTERS:
        return form
    kept = [*(other for other in list_kept(form) if other != query), query][-len(KEPT) :]
    return {**form, **dict.fromkeys(KEPT, ""), **dict(zip(KEPT, kept, strict=False))}
