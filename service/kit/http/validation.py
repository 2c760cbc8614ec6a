"""Errors of validation as sentences for callers: none repeats a validator's text, or what was sent."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from service.kit.http.bodies import WRONG_SHAPE
from service.kit.http.problems import (
    ERROR_LIMIT,
    BadRequest,
    FieldError,
    Problem,
    Unprocessable,
    build_pointer,
)
from service.kit.http.shapes import BodyShape, list_some

_ERRORS_READ = 2000
_MOST_LISTED = 50
_LONGEST_NAME = 100

SENTENCES: Mapping[str, str] = {
    "arguments_type": "must be an object or a list of arguments",
    "assertion_error": "the value is not valid",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "bytes_invalid_encoding": "must be text in the stated encoding",
    "bytes_too_long": "must have at most {max_length} bytes",
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_type": "must be text",
    "callable_type": "the value is not valid",
    "complex_str_parsing": "must be a complex number",
    "complex_type": "must be a complex number",
    "counter_type": "must be an object of counts",
    "dataclass_exact_type": "must be an object",
    "dataclass_type": "must be an object",
    "date_from_datetime_inexact": "must be a day such as 2026-11-21, without a time",
    "date_from_datetime_parsing": "must be a day such as 2026-11-21",
    "date_future": "must be in the future",
    "date_parsing": "must be a day such as 2026-11-21",
    "date_past": "must be in the past",
    "date_type": "must be a day such as 2026-11-21",
    "datetime_from_date_parsing": "must be a time such as 2026-11-21T12:00:00Z",
    "datetime_future": "must be in the future",
    "datetime_object_invalid": "must be a time such as 2026-11-21T12:00:00Z",
    "datetime_parsing": "must be a time such as 2026-11-21T12:00:00Z",
    "datetime_past": "must be in the past",
    "datetime_type": "must be a time such as 2026-11-21T12:00:00Z",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} decimal places",
    "decimal_parsing": "must be a decimal number",
    "decimal_type": "must be a decimal number",
    "decimal_whole_digits": "must have at most {whole_digits} digits before the point",
    "default_factory_not_called": "depends on another member that is wrong",
    "deque_type": "must be a list",
    "dict_type": "must be an object",
    "ellipsis_error": "the value is not valid",
    "enum": "must be one of {expected}",
    "extra_forbidden": "there is no such member",
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "fraction_parsing": "must be a fraction",
    "fraction_type": "must be a fraction",
    "frozen_dict_type": "must be an object",
    "frozen_field": "must not be changed",
    "frozen_instance": "must not be changed",
    "frozen_set_type": "must be a list",
    "get_attribute_error": "cannot be read",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_type": "must be a whole number",
    "invalid_key": "must have names that are text",
    "is_instance_of": "the value is not valid",
    "is_subclass_of": "the value is not valid",
    "iterable_type": "must be a list",
    "iteration_error": "cannot be read as a list",
    "json_invalid": "must be JSON",
    "json_type": "must be JSON as text",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "literal_error": "must be one of {expected}",
    "mapping_type": "must be an object",
    "missing": "the member is required",
    "missing_argument": "an argument is missing",
    "missing_keyword_only_argument": "an argument is missing",
    "missing_positional_only_argument": "an argument is missing",
    "missing_sentinel_error": "must be left out",
    "model_attributes_type": "must be an object",
    "model_type": "must be an object",
    "multiple_argument_values": "an argument has several values",
    "multiple_of": "must be a multiple of {multiple_of}",
    "named_tuple_type": "must be an object",
    "needs_python_object": "the value is not valid",
    "no_such_attribute": "there is no such member",
    "none_required": "must be null",
    "ordered_dict_type": "must be an object",
    "recursion_depth_exceeded": "is nested too deep",
    "recursion_loop": "contains itself",
    "set_item_not_hashable": "must be a list of plain values",
    "set_type": "must be a list",
    "string_not_ascii": "must have ASCII characters only",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "string_type": "must be text",
    "string_unicode": "must be text in Unicode",
    "time_delta_parsing": "must be a duration such as PT1H",
    "time_delta_type": "must be a duration such as PT1H",
    "time_parsing": "must be a time of day such as 12:00:00",
    "time_type": "must be a time of day such as 12:00:00",
    "timezone_aware": "must state its time zone",
    "timezone_naive": "must not state a time zone",
    "timezone_offset": "must have the expected offset of its time zone",
    "too_long": "must have at most {max_length} elements",
    "too_short": "must have at least {min_length} elements",
    "tuple_type": "must be a list",
    "unexpected_keyword_argument": "there is no such argument",
    "unexpected_positional_argument": "there are too many arguments",
    "union_tag_invalid": "{discriminator} must be one of {expected_tags}",
    "union_tag_not_found": "{discriminator} is required",
    "url_parsing": "must be an address such as https://example.com/path",
    "url_scheme": "must be an address that begins with {expected_schemes}",
    "url_syntax_violation": "must be an address such as https://example.com/path",
    "url_too_long": "must have at most {max_length} characters",
    "url_type": "must be an address such as https://example.com/path",
    "uuid_parsing": "must be a UUID",
    "uuid_type": "must be a UUID",
    "uuid_version": "must be a UUID of version {expected_version}",
    "value_error": "the value is not valid",
}
"""Sentences for the errors of pydantic, by type. Other types are our own, with sentences of ours."""

_OBJECT_TYPES = frozenset(
    {"dataclass_type", "dict_type", "mapping_type", "model_attributes_type", "model_type"}
)


def describe_error(error: Mapping[str, Any]) -> str:
    """Returns the sentence for an error of pydantic, without repeating the input."""
    sentence = SENTENCES.get(error["type"])
    if sentence is None:
        return str(error["msg"])
    return sentence.format_map({name: _format_bound(value) for name, value in error.get("ctx", {}).items()})


def _format_bound(value: object) -> str:
    """Returns a bound of the schema, or values that it allows, without quotation marks."""
    if isinstance(value, str) and (quoted := re.findall(r"'([^']*)'", value)):
        return list_some(quoted, _MOST_LISTED)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:  # noqa: PLR2004
        return str(int(value))
    return str(value)


def _describe_in_shape(error: Mapping[str, Any], shape: BodyShape) -> str:
    """Returns the sentence for an error, with what the shape allows at its place."""
    location: Sequence[object] = error["loc"]
    kind = error["type"]
    if kind == "extra_forbidden":
        return describe_unknown("member", str(location[-1]), shape.list_members(location[:-1]))
    sentence = describe_error(error)
    if kind in _OBJECT_TYPES:
        return sentence + _describe_object(location, shape)
    if kind == "union_tag_not_found":
        values = shape.list_values(location, _format_bound(error["ctx"]["discriminator"]))
        return f"{sentence}, one of {list_some(values, _MOST_LISTED)}" if values else sentence
    if kind.endswith("_type") or kind == "string_pattern_mismatch":
        return sentence + _describe_example(kind, location, shape)
    return sentence


def _describe_example(kind: str, location: Sequence[object], shape: BodyShape) -> str:
    """Returns an example of a value that is no object, or of the object that it may be instead."""
    if kind == "string_pattern_mismatch":
        example = shape.format_example(location)
        return "" if example in ("", '"text"') else f", such as {example}"
    if kind == "list_type":
        example = shape.format_example(location)
        return f" such as {example}" if example.startswith("[") else ""
    example = shape.format_example(location, is_object=True)
    return f", or an object such as {example}" if example else ""


def describe_unknown(kind: str, name: str, allowed: Sequence[str]) -> str:
    """Returns the sentence for a member or parameter that does not exist, with those that do."""
    name = name[:_LONGEST_NAME]
    containing = [other for other in allowed if name and name in other]
    nearest = next(iter(containing or get_close_matches(name, allowed, n=1)), "")
    guess = f": did you mean {nearest}?" if nearest else "."
    listed = f"{kind.capitalize()}s are {list_some(allowed, _MOST_LISTED)}" if allowed else "There are none"
    return f"there is no such {kind}{guess} {listed}"


def _describe_object(location: Sequence[object], shape: BodyShape) -> str:
    """Returns an example of the object at a location, else its members."""
    if example := shape.format_example(location, is_object=True):
        return f" such as {example}"
    members = list_some(shape.list_members(location), _MOST_LISTED)
    return f" with members of {members}" if members else ""


def _find_path(location: tuple[object, ...], place: Any, *, missing: bool) -> list[object]:  # noqa: ANN401
    """Returns the path of an error inside ``place``, without the names of union branches on the way.

    A branch is named by a value of its object. If that is also the name of a member, the rest of the path
    decides.
    """
    if not location:
        return []
    part, rest = location[0], location[1:]
    if missing and not rest:
        return [part]
    stepped: list[object] = []
    indexed = isinstance(place, list) and isinstance(part, int) and part < len(place)
    if indexed or (isinstance(place, Mapping) and part in place):
        stepped = [part, *_find_path(rest, place[part], missing=missing)]
        if indexed or part not in place.values():
            return stepped
    return max(_find_path(rest, place, missing=missing), stepped, key=len)


_PLACE = re.compile(r"line ([0-9]+) column ([0-9]+)")


def build_body_problem(error: ValidationError, body: bytes, shape: BodyShape) -> Problem:
    """Builds the problem for a body that does not match its schema."""
    if error.error_count() > _ERRORS_READ:
        detail = f"more than {_ERRORS_READ} members or elements are wrong"
        return Unprocessable(WRONG_SHAPE, FieldError("", "TOO_MANY_ERRORS", detail))
    found = error.errors(include_url=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        at = _PLACE.search(str(found[0]["msg"]))
        detail = f"the body is not JSON at line {at[1]}, column {at[2]}" if at else "the body is not JSON"
        return BadRequest("The body is not JSON", FieldError("", "JSON_INVALID", detail))
    parsed = from_json(body)
    errors = [
        FieldError(
            build_pointer(_find_path(item["loc"], parsed, missing=item["type"] == "missing")),
            item["type"].upper(),
            _describe_in_shape(item, shape),
        )
        for item in found[:ERROR_LIMIT]
    ]
    return Unprocessable(WRONG_SHAPE, *errors)
