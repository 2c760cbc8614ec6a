"""Objects in formats that are not ours, taken up to a depth at which all that wraps them can be read."""

import pytest

from service.app.examples import EXAMPLES
from service.schemas.base import DEEPEST

CONFIG = EXAMPLES["import_model"]["config"]
MODEL = {"source": "huggingface_config", "config": CONFIG}


def nested(levels):
    """A value of so many levels."""
    value = 1
    for number in range(levels):
        value = [value] if number % 2 else {"inner": value}
    return value


def quote(config):
    asked = EXAMPLES["create_quote"]
    return asked | {"request": asked["request"] | {"model": MODEL | {"config": config}}}


ASKED = {
    "/v1/models:import": (lambda config: EXAMPLES["import_model"] | {"config": config}, "/config"),
    "/v1/quotes": (quote, "/request/model/config"),
    "/v1/estimates/utility-bill": (lambda config: quote(config)["request"], "/model/config"),
}


@pytest.mark.parametrize("address", ASKED)
def test_what_is_nested_deeply_is_taken_and_shown(client, address):
    body, _ = ASKED[address]
    client.post("/v1/cost-centers", EXAMPLES["create_cost_center"])
    made = client.post(address, json=body(CONFIG | {"inner": nested(DEEPEST - 1)}))
    assert made.status_code in (200, 201), made.text
    if made.status_code == 201:
        assert client.get(made.headers["location"]).status_code == 200
        assert client.get(address.partition(":")[0]).status_code == 200
        assert client.get("/v1/audit-events").status_code == 200


@pytest.mark.parametrize("levels", [DEEPEST, 150, 190])
@pytest.mark.parametrize("address", ASKED)
def test_what_is_nested_deeper_is_refused(client, address, levels):
    """A quote of 196 levels was an error of ours: it could not be read again."""
    body, pointer = ASKED[address]
    refused = client.post(address, json=body(CONFIG | {"inner": nested(levels)}))
    assert refused.status_code == 422
    assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [(pointer, "TOO_DEEP")]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_of_a_rate(client):
    asked = EXAMPLES["import_tariff"]
    refused = client.post("/v1/tariffs:import", json=asked | {"urdb": asked["urdb"] | {"x": nested(DEEPEST)}})
    assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [("/urdb", "TOO_DEEP")]
