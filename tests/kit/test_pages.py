"""Page tokens: what goes in comes out, for its own list only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.kit.http.pages import PageTokens
from service.kit.http.problems import BadRequest

TOKENS = PageTokens(b"a secret of some length")


@given(st.lists(st.text(), max_size=3), st.text())
def test_round_trip(key, filters):
    token = TOKENS.encode(key, filters)
    assert TOKENS.decode(token, filters) == key
    assert token.isascii()
    assert all(character.isalnum() or character in "-_" for character in token)


@given(st.text(), st.text())
def test_a_token_holds_for_its_filters(filters, other):
    if filters != other:
        with pytest.raises(BadRequest):
            TOKENS.decode(TOKENS.encode(["a"], filters), other)


@given(st.text(max_size=200))
def test_what_is_no_token_is_refused(text):
    with pytest.raises(BadRequest):
        TOKENS.decode(text, "")


@given(st.integers(0, 10_000))
def test_every_bit_is_signed(position):
    token = TOKENS.encode(["key"], "filters")
    place = position % len(token)
    for character in "AQgw":
        changed = token[:place] + character + token[place + 1 :]
        if changed != token:
            with pytest.raises(BadRequest):
                TOKENS.decode(changed, "filters")


def test_another_secret_refuses():
    with pytest.raises(BadRequest):
        PageTokens(b"another").decode(TOKENS.encode(["key"], ""), "")
