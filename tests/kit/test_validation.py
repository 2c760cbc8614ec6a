"""Errors of validation in the service's own sentences."""

import json
import string
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

import service.app.application  # noqa: F401  # declares every shape
from service.kit.http.shapes import BodyShape
from service.kit.http.validation import SENTENCES, build_body_problem, describe_error
from service.schemas.base import StrictModel

CONTEXT = {
    **dict.fromkeys(("ge", "gt", "le", "lt", "min_length", "max_length", "actual_length", "multiple_of"), 7),
    **dict.fromkeys(("max_digits", "decimal_places", "whole_digits", "expected_version"), 4),
    **dict.fromkeys(("tz_expected", "tz_actual"), 3600),
    **dict.fromkeys(("error", "encoding_error", "tag", "class", "class_name"), "SENT"),
    **dict.fromkeys(("field_type", "method_name", "attribute", "encoding", "pattern"), "known"),
    **dict.fromkeys(("expected", "expected_tags", "expected_schemes"), "'one', 'two' or 'three'"),
    "discriminator": "'kind'",
}


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Money(Shape):
    amount: Annotated[str, Field(pattern="^[0-9.]+$", examples=["2.49"])]
    currency_code: Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["USD"])]


class ByName(Shape):
    by: Literal["name"]
    name: str


class ByFigures(Shape):
    by: Literal["figures"]
    figures: dict[str, float]


class Body(Shape):
    price: Money | None = None
    part: Annotated[ByName | ByFigures, Discriminator("by")] | None = None
    parts: list[Annotated[ByName | ByFigures, Discriminator("by")]] = []
    count: Annotated[int, Field(ge=1)] = 1
    length: int | ByFigures = 1


BODY = TypeAdapter(Body)


def errors(body: Any, adapter: TypeAdapter[Any] = BODY):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(ValidationError) as caught:
        adapter.validator.validate_json(text)
    return [tuple(error) for error in build_body_problem(caught.value, text, BodyShape(adapter)).errors]


@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_every_error_of_the_validator_has_a_sentence_of_ours(kind):
    needed = [name for _, name, _, _ in string.Formatter().parse(SENTENCES[kind]) if name]
    error = PydanticKnownError(kind, CONTEXT) if needed else None
    said = describe_error({"type": kind, "ctx": CONTEXT, "msg": "RAW"})
    assert "RAW" not in said
    assert "SENT" not in said
    assert not {"Input", "sentinel", "instance", "dictionary"} & set(said.split())
    if error is not None:
        assert set(needed) <= set(error.context or {})


def test_there_is_no_sentence_for_what_no_validator_raises():
    assert SENTENCES.keys() == set(get_args(ErrorType))


class TestUnknownMembers:
    def test_one_is_refused_with_the_members_that_are_allowed(self):
        assert errors({"pric": {}}) == [
            (
                "/pric",
                "EXTRA_FORBIDDEN",
                "there is no such member: did you mean price? Members are price, part, parts, count, length",
            )
        ]

    def test_they_are_those_of_the_branch_that_the_object_names(self):
        found = errors(
            {"part": {"by": "name", "name": "x", "figure": 1}, "parts": [{"by": "figures", "name": 1}]}
        )
        assert [(pointer, detail) for pointer, code, detail in found if code == "EXTRA_FORBIDDEN"] == [
            ("/part/figure", "there is no such member. Members are by, name"),
            ("/parts/0/name", "there is no such member. Members are by, figures"),
        ]

    def test_a_long_list_is_cut_and_a_long_name_is_not_compared(self):
        many = TypeAdapter(
            type(
                "Many",
                (Shape,),
                {
                    "__annotations__": {f"member_{n}": int for n in range(80)},
                    **dict.fromkeys([f"member_{n}" for n in range(80)], 0),
                },
            )
        )
        ((_, _, detail),) = errors({"x" * 5000: 1}, many)
        assert detail.endswith("member_49 and 30 more")


class TestObjects:
    @pytest.mark.parametrize("scalar", ["2.49", 2.49, True, None])
    def test_a_scalar_in_place_of_one_shows_one(self, scalar):
        body = {"price": scalar}
        adapter = TypeAdapter(Annotated[dict[str, Money], Field()])
        ((pointer, _, detail),) = errors(body, adapter)
        assert (pointer, detail) == (
            "/price",
            'must be an object such as {"amount": "2.49", "currency_code": "USD"}',
        )

    def test_the_first_branch_of_a_union_is_shown(self):
        ((pointer, _, detail),) = errors(
            ["x"], TypeAdapter(list[Annotated[ByName | ByFigures, Discriminator("by")]])
        )
        assert (pointer, detail) == ("/0", 'must be an object such as {"by": "name", "name": "text"}')

    def test_an_object_without_its_tag_is_told_the_tags(self):
        ((pointer, code, detail),) = errors({"parts": [{"name": "x"}]})
        assert (pointer, code) == ("/parts/0", "UNION_TAG_NOT_FOUND")
        assert detail == "by is required, one of name, figures"

    def test_a_wrong_tag_is_told_the_tags_and_not_repeated(self):
        ((_, _, detail),) = errors({"parts": [{"by": "secret"}]})
        assert detail == "by must be one of name, figures"

    def test_every_example_of_a_request_is_valid(self):
        """The shapes of all requests and parts of requests that have an example."""
        shown = {}
        for model in list_models(StrictModel):
            adapter = TypeAdapter(model)
            if example := BodyShape(adapter).format_example((), is_object=True):
                adapter.validator.validate_json(example)
                shown[model.__name__] = example
        assert len(shown) > 150
        assert shown["MoneyInput"] == '{"amount": "2.49", "currency_code": "USD"}'
        assert {"CatalogModel", "CatalogAccelerator", "ClusterInput", "ServingEngineInput"} <= shown.keys()


def list_models(base):
    for model in base.__subclasses__():
        yield model
        yield from list_models(model)


class TestOtherErrors:
    def test_bounds_are_numbers_and_a_pattern_has_an_example(self):
        assert errors({"count": 0, "price": {"amount": "x", "currency_code": "USD"}}) == [
            ("/price/amount", "STRING_PATTERN_MISMATCH", 'must match ^[0-9.]+$, such as "2.49"'),
            ("/count", "GREATER_THAN_EQUAL", "must be at least 1"),
        ]

    def test_what_is_no_json_is_told_where(self):
        assert errors(b'{"a": }') == [("", "JSON_INVALID", "the body is not JSON at line 1, column 7")]

    def test_nothing_that_was_sent_is_repeated(self):
        word = "unheard-of"
        sent = {"count": word, "price": {"amount": word, "currency_code": word}, "part": {"by": word}}
        assert all(word not in detail for _, _, detail in errors(sent))
