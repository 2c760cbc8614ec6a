"""Conversion between the fields of the form and the request of a plan."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from pydantic import ValidationError
from pydantic_core import to_json

from service.kit.http.html import Form
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.plans.pages.fields import (
    AT_FIRST,
    CANDIDATES,
    FIELD_NAMES,
    FIELDS,
    GOAL,
    GROUPS,
    IN_PLACE_OF,
    PLACES,
)
from service.plans.words import GOALS
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import CURRENCY, SERVING, TRAINING, WORKLOAD, FormField
from service.resolve.forms import (
    FieldFault,
    check_number,
    check_option,
    find_row_id,
    parse_config,
    parse_number,
)
from service.schemas.plans import PlanRequest

MOST_QUERY_CHARACTERS: Final = 4000
_OWN_NAME: Final = "Your own machines"
_RENTED_NAME: Final = "Devices at your price"


class TypedPlan(NamedTuple):
    """Content of a form."""

    question: dict[str, Any]
    """The question as a request of the API, without unreadable fields."""
    wrong: dict[str, str]
    """Errors by field. They never repeat the input."""
    places: Mapping[str, str]
    """The field for each place of the request."""


def parse_plan(form: Form, catalog: CatalogView) -> TypedPlan:
    """Returns the request of a form."""
    question: dict[str, Any] = {}
    wrong = dict(_list_wrong_choices(form))
    for field in _list_relevant(form):
        text = form.get(field.name, "").strip()
        if not text:
            continue
        try:
            _put_value(question, field.pointer, _parse_value(field, text, form, catalog))
        except FieldFault as fault:
            wrong[field.name] = str(fault)
    if not any(form.get(name, "").strip() for name in ("model", IN_PLACE_OF["model"])):
        wrong["model"] = "choose a model, or paste its config.json"
    candidates = [name for name in CANDIDATES if form.get(name, "").strip() and name not in wrong]
    places = {f"/search/accelerators/{place}": name for place, name in enumerate(candidates)}
    return TypedPlan(_complete_question(question, form), wrong, {**PLACES, **places})


def _list_wrong_choices(form: Form) -> Iterator[tuple[str, str]]:
    if form.get(WORKLOAD) not in (TRAINING, SERVING):
        yield WORKLOAD, "choose the work"
    if form.get(GOAL) not in GOALS:
        yield GOAL, "choose a goal"


def _list_relevant(form: Form) -> Iterator[FormField]:
    """Yields the fields that apply to the chosen work and that no other field replaces."""
    for group in GROUPS:
        if group.of and form.get(group.of) not in group.when:
            continue
        for field in group.fields:
            other = IN_PLACE_OF.get(field.name)
            if other is None or not form.get(other, "").strip():
                yield field


def _put_value(question: dict[str, Any], pointer: str, value: object) -> None:
    *path, last = pointer[1:].split("/")
    place = question
    for part in path:
        place = place.setdefault(part, {})
    place[last] = value


def _complete_question(question: dict[str, Any], form: Form) -> dict[str, Any]:
    """Returns the question with its discriminators, its names, and lists in place of numbered members."""
    kind, goal = form.get(WORKLOAD, ""), form.get(GOAL, "")
    if "model" in question:
        source = "catalog" if "id" in question["model"] else "huggingface_config"
        question["model"] = {"source": source, **question["model"]}
    question |= {"workload": {"kind": kind, **question.get("workload", {})}, "goal": goal}
    for member, name in (("owned", _OWN_NAME), ("rented", _RENTED_NAME)):
        if member in question:
            supply = question[member]["0"]
            accelerator = supply.get("cluster", {}).get("accelerator")
            if accelerator is not None:
                supply["cluster"]["accelerator"] = {"source": "catalog", **accelerator}
            question[member] = [{"name": name, **supply}]
    for part, member in (
        ("search", "accelerators"),
        ("constraints", "providers"),
        ("constraints", "regions"),
        ("constraints", "purchase_options"),
    ):
        if member in question.get(part, {}):
            question[part][member] = list(question[part][member].values())
    return question


def _parse_value(field: FormField, text: str, form: Form, catalog: CatalogView) -> object:
    readers: Mapping[str, Callable[[], object]] = {
        "choice": lambda: _parse_choice(field, text),
        "name": lambda: find_row_id(catalog, field, text),
        "config": lambda: parse_config(text),
        "money": lambda: {"amount": check_number(text), "currency_code": _parse_currency(form)},
        "code": lambda: _parse_currency(form),
    }
    return readers.get(field.kind, lambda: parse_number(field, text))()


def _parse_choice(field: FormField, text: str) -> object:
    choice = check_option(field, text)
    return choice != "no" if field.name == "offers" else choice


def _parse_currency(form: Form) -> str:
    code = form.get(CURRENCY, "").strip().upper()
    if not re.fullmatch("[A-Z]{3}", code):
        raise FieldFault("needs a currency of three letters, such as EUR")
    return code


def build_request(question: Mapping[str, Any]) -> PlanRequest:
    """Returns a question as the request of the API. Raises a problem that names what is wrong."""
    raw = to_json(question)
    try:
        return PlanRequest.model_validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(PlanRequest)) from None


def convert_handed_count(form: Form, catalog: CatalogView) -> Form:
    """Returns the fields of an address with instances counted by their accelerators.

    A question about two instances states an accelerator_count of 2, and the form asks for accelerators.
    """
    known = catalog.accelerators.get(form.get(CANDIDATES[0], ""))
    count = form.get("accelerator_count", "")
    if known is None or known.named_count == 1 or not re.fullmatch("[1-9][0-9]{0,5}", count):
        return form
    return {**form, "accelerator_count": str(int(count) * known.named_count)}


def build_address(question: Mapping[str, Any], catalog: CatalogView) -> str | None:
    """Returns the address of the form with a question filled in; None if the form cannot state all of it."""
    form = _fill_form(question)
    typed = parse_plan({**dict.fromkeys(FIELD_NAMES, ""), **form}, catalog)
    if typed.wrong or _drop_names(typed.question) != _drop_names(question):
        return None
    query = urlencode(
        {name: form.get(name, "") for name in FIELD_NAMES if form.get(name, "") or name in AT_FIRST}
    )
    return f"/plans/new?{query}" if len(query) <= MOST_QUERY_CHARACTERS else None


def _drop_names(question: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a question without the names of its supplies, which the form sets itself."""
    own = {
        member: [{**supply, "name": ""} for supply in question[member]]
        for member in ("owned", "rented")
        if member in question
    }
    plain: dict[str, Any] = json.loads(json.dumps({**question, **own}))
    return plain


def _fill_form(question: Mapping[str, Any]) -> dict[str, str]:
    """Returns the fields that state a question, as far as the form has fields for it."""
    form = {WORKLOAD: str(question["workload"]["kind"]), GOAL: str(question["goal"])}
    for field in FIELDS.values():
        value = _get_value(question, field.pointer)
        if value is not None:
            form[field.name] = _format_value(field, value)
            if field.kind == "money" and isinstance(value, Mapping):
                form[CURRENCY] = str(value["currency_code"])
    return form


def _get_value(question: Any, pointer: str) -> object:  # noqa: ANN401
    place = question
    for part in pointer[1:].split("/"):
        if isinstance(place, list):
            place = place[int(part)] if int(part) < len(place) else None
        else:
            place = place.get(part) if isinstance(place, Mapping) else None
    return place


def _format_value(field: FormField, value: object) -> str:
    if field.name == "offers":
        return "" if value else "no"
    if field.kind == "money" and isinstance(value, Mapping):
        return str(value["amount"])
    if isinstance(value, int | float):
        return f"{(Decimal(str(value)) / field.times).normalize():f}"
    return json.dumps(value) if isinstance(value, Mapping) else str(value)
