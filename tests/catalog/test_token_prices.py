"""Token prices over HTTP, on both databases; what every noun does is tested in test_operations."""

import json

import pytest

from service.app.examples import EXAMPLES
from service.catalog.shipped import list_shipped_documents

IMPORT = EXAMPLES["import_token_prices"]


def imported(client, **members):
    return client.post("/v1/token-prices:import", {**IMPORT, **members})


def test_prices_of_a_list(client):
    told = imported(client).json()
    assert told["created"] == ["example-decoder-large"]
    assert [(row["pointer"], row["code"]) for row in told["refused"]] == [("/example~1painter", "NOT_TOKENS")]
    row = client.get("/v1/token-prices/example-decoder-large").json()
    assert row["input_price_per_million_tokens"] == {"amount": "0.59", "currency_code": "USD"}
    assert row["as_of"] == "2026-11-20"
    assert imported(client).json()["unchanged"] == told["created"]
    older = imported(client, as_of="2025").json()["refused_reasons"]
    assert {reason["code"] for reason in older} == {"NOT_TOKENS", "OLDER_THAN_CATALOG"}


def test_a_model_of_the_catalog_is_found_by_its_published_name(client):
    entry = {
        "litellm_provider": "host",
        "mode": "chat",
        "input_cost_per_token": 1e-07,
        "output_cost_per_token": 1e-06,
    }
    (made,) = imported(client, content=json.dumps({"host/meta-llama/Llama-3.1-8B": entry})).json()["created"]
    assert client.get(f"/v1/token-prices/{made}").json()["model_id"] == "llama-3.1-8b"
    listed = client.get("/v1/token-prices?model_id=llama-3.1-8b").json()["items"]
    assert made in [row["id"] for row in listed]


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"input_price_per_million_tokens": {"amount": "0.00", "currency_code": "USD"}}, "", "PRICE_ZERO"),
        (
            {"cached_input_price_per_million_tokens": {"amount": "1", "currency_code": "EUR"}},
            "/",
            "CURRENCY_MISMATCH",
        ),
        ({"as_of": "2026-00"}, "/as_of", "DATE_INVALID"),
        ({"model_id": "no-such-model"}, "/model_id", "UNKNOWN_REFERENCE"),
    ],
)
def test_what_contradicts_itself_is_refused(reader, members, pointer, code):
    answer = reader.post("/v1/token-prices", {**EXAMPLES["create_token_price"], **members})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["code"] == code
    assert pointer in error["pointer"]


def test_what_ships_has_a_public_source(snapshot):
    rows = list_shipped_documents()["token_prices"]
    assert len({row["provider"] for row in rows}) >= 10
    assert all("url" in source for row in rows for source in row["sources"])
    known = snapshot.token_prices["groq-llama-3-3-70b-versatile"]
    assert (str(known.input_per_million), known.model_id) == ("0.59", "llama-3.3-70b")
