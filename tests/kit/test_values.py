"""How many values a body may have: a file inside a text counts as one."""

import json

import pytest

from service.kit.http.bodies import MOST_MEMBERS, MOST_VALUES, BodyLimits, check_limits
from service.kit.http.problems import PayloadTooLarge

LIMITS = BodyLimits()


def test_a_file_in_a_text_is_one_value():
    rows = "a,b,c,{,[\n" * MOST_VALUES
    check_limits(json.dumps({"content": rows, "more": [rows]}).encode(), LIMITS)


def test_escapes_do_not_end_a_text():
    check_limits(json.dumps({"content": '","\\' * MOST_VALUES}).encode(), LIMITS)


@pytest.mark.parametrize(
    "flood",
    [
        b"1,",
        b"[",
        b'{"a":1},',
        b'"a,b",',
        b'"\\"",',
    ],
)
def test_values_outside_of_texts_are_counted(flood):
    with pytest.raises(PayloadTooLarge):
        check_limits(b"[" + flood * (MOST_VALUES + 1), LIMITS)


def test_as_many_as_may_be():
    check_limits(json.dumps([1] * MOST_VALUES).encode(), LIMITS)
    check_limits(json.dumps(dict.fromkeys(map(str, range(MOST_MEMBERS)), "a,b: c")).encode(), LIMITS)
    with pytest.raises(PayloadTooLarge):
        check_limits(json.dumps([1] * (MOST_VALUES + 1)).encode(), LIMITS)
    with pytest.raises(PayloadTooLarge):
        check_limits(json.dumps(dict.fromkeys(map(str, range(MOST_MEMBERS + 1)), 1)).encode(), LIMITS)


def test_an_operation_may_allow_fewer():
    check_limits(json.dumps([1] * 10).encode(), BodyLimits(10))
    check_limits(json.dumps({"content": "a,b,[,{" * 10}).encode(), BodyLimits(10))
    with pytest.raises(PayloadTooLarge, match="more than 10 members and elements"):
        check_limits(json.dumps([1] * 11).encode(), BodyLimits(10))
    check_limits(b'"' + b"x" * 8 + b'"', BodyLimits(size_bytes=10))
    with pytest.raises(PayloadTooLarge, match="more than 10 bytes"):
        check_limits(b'"' + b"x" * 9 + b'"', BodyLimits(size_bytes=10))


@pytest.mark.parametrize("tail", [b'"' + b'\\"' * 1_000_000, b'"\\', b'"' * 400_003])
def test_a_text_without_an_end_is_read_once(tail):
    """Reading on from each of its quotation marks would take hours."""
    with pytest.raises(PayloadTooLarge):
        check_limits(b"," * (MOST_VALUES + 1) + tail, LIMITS)
