"""The form of a plan: its request, its refusals at their fields, and its page."""

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from pydantic_core import to_json

from service.auth.sessions import PageVisitor
from service.formats.providers import get_provider_name
from service.kit.http.html import Form, group_errors_by_field, render_template
from service.kit.http.problems import BadRequest, FieldError, Problem, Unprocessable
from service.kit.locales import write_numbers
from service.plans.pages.fields import AT_FIRST, FIELDS, GOAL_OPTIONS, GROUPS, LABELS, NUMBER_FIELDS
from service.plans.pages.question import TypedPlan, build_request, parse_plan
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import WORKLOADS, FieldOptions, FormField
from service.resolve.forms import convert_problem_units
from service.resolve.titles import get_title, list_suggestions, list_titles
from service.schemas.plans import PlanRequest

_MISSING: Final = "MISSING"
_ONCE: Final = re.compile("[0-9a-f]{32}")


class FormRefusal(NamedTuple):
    """Reasons why a form has no plan: by field, and those of no field."""

    wrong: Mapping[str, str]
    others: Sequence[str] = ()
    status: int = 200


def build_key(form: Form) -> str:
    """Returns the key under which a form is stored once. A form that was changed after it was sent is new."""
    once = form.get("once", "")
    if not _ONCE.fullmatch(once):
        raise BadRequest("The form lacks its number")
    return f"{once}-{hashlib.sha256(to_json(form)).hexdigest()}"


def read_form(form: Form, catalog: CatalogView) -> PlanRequest:
    """Returns the request of a form. Raises a problem that names what is wrong."""
    typed = parse_plan(form, catalog)
    if typed.wrong:
        raise Unprocessable("A field of the form cannot be read")
    return build_request(typed.question)


def refuse_form(form: Form, problem: Problem, catalog: CatalogView) -> FormRefusal:
    """Returns the reasons of a refusal, at the fields of the form where they have one."""
    typed = parse_plan(form, catalog)
    if typed.wrong:
        return FormRefusal(_list_shape_errors(typed) | typed.wrong, (), problem.status)
    if not problem.errors:
        return FormRefusal({}, [problem.detail], problem.status)
    return FormRefusal(
        *group_errors_by_field(convert_problem_units(problem, FIELDS), typed.places), status=problem.status
    )


def _list_shape_errors(typed: TypedPlan) -> dict[str, str]:
    """Returns the errors beside those of unreadable fields, so that the form need not be sent twice."""
    try:
        build_request(typed.question)
    except Problem as problem:
        said: list[FieldError] = [
            error for error in convert_problem_units(problem, FIELDS).errors if error.code != _MISSING
        ]
        return group_errors_by_field(type(problem)(problem.detail, *said), typed.places)[0]
    return {}


def render_form(form: Form, catalog: CatalogView, visitor: PageVisitor, refusal: FormRefusal) -> str:
    """Returns the page of the form. Names of rows are shown in place of their ids."""
    shown = write_numbers(form, NUMBER_FIELDS)
    for field in FIELDS.values():
        if field.kind == "name" and field.rows:
            shown[field.name] = get_title(catalog, field.rows, form.get(field.name, "").strip())
    return render_template(
        "plans/pages/new.html",
        visitor=visitor,
        form=form,
        shown=shown,
        groups=GROUPS,
        goals=GOAL_OPTIONS,
        workloads=WORKLOADS,
        labels=LABELS,
        choices=partial(_list_choices, catalog),
        suggestions=partial(list_suggestions, catalog),
        wrong=refusal.wrong,
        others=refusal.others,
        is_open=_is_folded_used(form, refusal),
        once=secrets.token_hex(16),
    )


def _is_folded_used(form: Form, refusal: FormRefusal) -> bool:
    """Returns true if a folded field is wrong, or was filled in otherwise than at first."""
    folded = (field.name for group in GROUPS if not group.is_first for field in group.fields)
    return any(name in refusal.wrong or form.get(name, "") != AT_FIRST.get(name, "") for name in folded)


def _list_choices(catalog: CatalogView, field: FormField) -> FieldOptions:
    """Returns the values of a choice with their labels."""
    if field.member:
        found = {getattr(offer, field.member) for offer in catalog.offers.values()}
        name = get_provider_name if field.member == "provider" else str
        labels = ((value, name(value)) for value in found - {None})
        return tuple(sorted(labels, key=lambda one: one[1].casefold()))
    return field.options or tuple(list_titles(catalog, field.rows).items() if field.rows else ())
