"""Addresses of questions: the fields that differ from the form at first, and the questions beside it."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlencode

from service.kit.http.html import Form
from service.quotes.form.fields import AT_FIRST, FIELDS, QUESTION, WORKLOAD

MOST_QUERY_CHARACTERS: Final = 4000
"""Longest query of an address. A pasted config.json is longer, and is only ever posted."""
MOST_KEPT_CHARACTERS: Final = 1000
KEPT: Final = ("kept_1", "kept_2")
"""Fields of the questions that are compared with the present one, each by the query of its address."""
_STATED: Final = ("model", "accelerator_count", "accelerator", WORKLOAD)
"""Fields that every address states, because a question is read by them."""
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
