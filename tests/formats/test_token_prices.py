"""Token prices as litellm lists them."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.token_prices import token_prices_from_litellm
from service.planning.errors import PlanningError

SPEC = {"sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of https://docs.litellm.ai"}}
GROQ = {
    "groq/openai/gpt-oss-120b": {
        "cache_read_input_token_cost": 7.5e-08,
        "input_cost_per_token": 1.5e-07,
        "litellm_provider": "groq",
        "mode": "chat",
        "output_cost_per_token": 6e-07,
    }
}
"""An entry of model_prices_and_context_window.json at 00035b6."""
MODELS = {"openai/gpt-oss-120b": "gpt-oss-120b", "gpt-oss-120b": "gpt-oss-120b"}


def read(document, provider=None):
    return token_prices_from_litellm(json.dumps(document), provider=provider, models=MODELS)


def entry(**members):
    kept = {
        "litellm_provider": "x",
        "mode": "chat",
        "input_cost_per_token": 1e-06,
        "output_cost_per_token": 2e-06,
        **members,
    }
    return {"x/model": {name: value for name, value in kept.items() if value is not None}}


def test_prices_of_a_million_tokens():
    (price,) = read(SPEC | GROQ).prices
    assert price.id == "groq-openai-gpt-oss-120b"
    assert (price.provider, price.model_name, price.model_id) == (
        "groq",
        "openai/gpt-oss-120b",
        "gpt-oss-120b",
    )
    assert (price.input_per_million, price.output_per_million) == (Decimal("0.15"), Decimal("0.6"))
    assert price.cached_input_per_million == Decimal("0.075")


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"mode": "image_generation"}, "NOT_TOKENS"),
        ({"mode": None}, "NOT_TOKENS"),
        ({"input_cost_per_token": 0}, "PRICE_ZERO"),
        ({"output_cost_per_token": 0.0}, "PRICE_ZERO"),
        ({"output_cost_per_token": None}, "PRICE_MISSING"),
        ({"input_cost_per_token": "free"}, "PRICE_MISSING"),
        ({"input_cost_per_token": -1e-06}, "PRICE_INVALID"),
    ],
)
def test_what_is_refused(members, code):
    imported = read(GROQ | entry(**members))
    assert [(one.pointer, one.code) for one in imported.refused] == [("/x~1model", code)]
    assert (len(imported.prices), imported.rows) == (1, 2)


def test_no_cached_price_is_none():
    assert read(entry(cache_read_input_token_cost=0.0)).prices[0].cached_input_per_million is None


def test_prices_of_long_inputs_are_not_taken_for_all():
    (price,) = read(entry(input_cost_per_token_above_200k_tokens=4e-06)).prices
    assert (price.input_per_million, price.note) == (Decimal(1), "Long inputs cost more.")


def test_one_provider_of_many():
    assert [price.provider for price in read(GROQ | entry(), "x").prices] == ["x"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"a": 1}', '{"a": {"mode": "chat"}}'])
def test_another_format_is_refused_whole(content):
    with pytest.raises(PlanningError) as error:
        token_prices_from_litellm(content, provider=None, models={})
    assert error.value.code == "FORMAT"


VALUES = st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["chat", "x", "1e-6", ""])
ENTRIES = st.dictionaries(
    st.sampled_from(["litellm_provider", "mode", "input_cost_per_token", "output_cost_per_token", "other"]),
    VALUES,
)


@given(st.dictionaries(st.text(max_size=8), ENTRIES | VALUES, max_size=5))
def test_every_model_is_a_price_or_refused(document):
    try:
        imported = read(document)
    except PlanningError:
        return
    assert len(imported.prices) + len(imported.refused) == imported.rows
    assert all(price.input_per_million > 0 and price.output_per_million > 0 for price in imported.prices)
    assert len({price.id for price in imported.prices}) == len(imported.prices)
