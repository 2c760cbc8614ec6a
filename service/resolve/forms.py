"""Values that people type into the fields of forms, read as members of a request."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic_core import from_json

from service.kit.http.problems import Problem
from service.kit.locales import explain_number
from service.resolve.catalog import CatalogView
from service.resolve.form_fields import FieldKind, FormField
from service.resolve.titles import MOST_NAME_CHARACTERS, find_titled_id

NUMBER_KINDS: Final[frozenset[FieldKind]] = frozenset({"number", "whole", "money"})


class FieldFault(Exception):
    """An error in a field. Its text never repeats the input."""


def list_number_fields(fields: Mapping[str, FormField]) -> frozenset[str]:
    """Returns the names of the fields whose values are numbers."""
    return frozenset(name for name, field in fields.items() if field.kind in NUMBER_KINDS)


def check_option(field: FormField, text: str) -> str:
    """Returns a choice. Raises FieldFault if it is not one of the field."""
    if field.options and text not in dict(field.options):
        raise FieldFault("must be one of the list")
    return text


def check_number(text: str) -> str:
    """Returns a number as it was typed. Raises FieldFault if it is none."""
    if fault := explain_number(text):
        raise FieldFault(fault)
    return text


def parse_number(field: FormField, text: str) -> float | int:
    """Returns a typed number in the unit of the request. Raises FieldFault if it is none."""
    number = Decimal(check_number(text)) * field.times
    if field.kind == "number":
        return float(number)
    if number != int(number):
        raise FieldFault("must be a whole number")
    return int(number)


def parse_config(text: str) -> dict[str, Any]:
    """Returns a pasted config.json, parsed like a request body. Raises FieldFault if it is none."""
    try:
        config = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise FieldFault(f"is not JSON: {error}") from None
    if not isinstance(config, dict) or not config:
        raise FieldFault('must be an object, such as {"model_type": "llama", ...}')
    return config


def find_row_id(catalog: CatalogView, field: FormField, text: str) -> str:
    """Returns the id of the row that is called ``text``, or ``text`` for the catalog to read."""
    if len(text) > MOST_NAME_CHARACTERS:
        raise FieldFault(f"must have at most {MOST_NAME_CHARACTERS} characters")
    return find_titled_id(catalog, field.rows, text) if field.rows else text


def convert_problem_units(problem: Problem, fields: Mapping[str, FormField]) -> Problem:
    """Returns a problem without limits in its messages for fields that use another unit than the request."""
    times = {field.pointer: field.times for field in fields.values()}
    errors = [
        error._replace(detail="is too small or too large") if times.get(error.pointer, 1) != 1 else error
        for error in problem.errors
    ]
    return type(problem)(problem.detail, *errors)
