"""How many values a body may have: a file inside a text counts as one."""

import json

import pytest

from service.kit.http.bodies import MOST_MEMBERS, MOST_VALUES, check_values
from service.kit.http.problems import PayloadTooLarge


def test_a_file_in_a_text_is_one_value():
    rows = "a,b,c,{,[\n" * MOST_VALUES
    check_values(json.dumps({"content": rows, "more": [rows]}).encode())


def test_escapes_do_not_end_a_text():
    check_values(json.dumps({"content": '","\\' * MOST_VALUES}).encode())


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
        check_values(b"[" + flood * (MOST_VALUES + 1))


def test_as_many_as_may_be():
    check_values(json.dumps([1] * MOST_VALUES).encode())
    check_values(json.dumps(dict.fromkeys(map(str, range(MOST_MEMBERS)), "a,b: c")).encode())
    with pytest.raises(PayloadTooLarge):
        check_values(json.dumps([1] * (MOST_VALUES + 1)).encode())
    with pytest.raises(PayloadTooLarge):
        check_values(json.dumps(dict.fromkeys(map(str, range(MOST_MEMBERS + 1)), 1)).encode())


@pytest.mark.parametrize("tail", [b'"' + b'\\"' * 1_000_000, b'"\\', b'"' * 400_003])
def test_a_text_without_an_end_is_read_once(tail):
    """Reading on from each of its quotation marks would take hours."""
    with pytest.raises(PayloadTooLarge):
        check_values(b"," * (MOST_VALUES + 1) + tail)
