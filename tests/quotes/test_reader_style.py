"""Numbers of pages are written and read in the way of the reader; what is stored is the same for all."""

import secrets
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from service.quotes.form.fields import AT_FIRST
from service.quotes.form.links import build_address, parse_query
from tests.applications import attach
from tests.conftest import Client
from tests.quotes.reading import Page
from tests.quotes.test_what_if import HEADERS, SMALL, card, quote_form, token_of

OF_ONE = {"id", "created_at", "valid_until", "content_digest"}
"""Members in which two quotes of a question differ."""


@pytest.fixture(scope="module")
def client(app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.5"}


def post_german(client, **typed):
    """What a reader whose decimals have a comma is answered to a form."""
    content = urlencode({"form_token": token_of(client), **AT_FIRST, **SMALL, **typed})
    moved = client.request("POST", "/ask", content=content, headers={**HEADERS, **GERMAN})
    assert moved.status_code == 303
    return moved.headers["location"], client.get(moved.headers["location"], headers=GERMAN)


def test_numbers_are_written_as_the_reader_writes_them(client):
    address = build_address({**AT_FIRST, **SMALL, "price_per_device_hour": "1.25", "days": "3000"})
    english, german = client.get(address), client.get(address, headers=GERMAN)
    assert card(english.text)["Price"] == "90,000\N{NO-BREAK SPACE}USD"
    assert card(german.text)["Price"] == "90.000\N{NO-BREAK SPACE}USD"
    assert "90.000,00\N{NO-BREAK SPACE}USD" in Page(german.text).tables["Headlines"][1][1]
    assert "Numbers are written as 1.234,56" in german.text
    assert "Numbers are written as" not in english.text
    assert 'value="1,25"' in german.text
    assert "Such as 0,12" in german.text
    assert "1 GiB is 1,074 GB" in german.text
    assert '<html lang="en">' in german.text


def test_decimals_with_a_comma_are_read_and_their_address_says_the_same_to_everybody(client):
    address, answer = post_german(client, price_per_kwh="0,12", price_per_device_hour="1,5")
    assert answer.status_code == 200
    assert parse_query(urlsplit(address).query)["price_per_device_hour"] == "1.5"
    assert 'value="0,12"' in answer.text
    assert parse_qs(urlsplit(address).query).get("price_per_kwh") is None  # 0.12 is as at first
    for headers in ({}, GERMAN):
        assert card(client.get(address, headers=headers).text)["Price"][:3] in ("1,0", "1.0")


@pytest.mark.parametrize("typed", ["1,000", "1.000"])
def test_a_number_that_may_be_thousands_is_refused_and_never_read_as_another(client, typed):
    _, refused = post_german(client, accelerator_count=typed)
    assert refused.status_code == 422
    assert "may be thousands or decimals: write thousands without a separator" in refused.text


def test_a_comma_is_refused_where_decimals_have_a_point(client):
    refused = client.get("/ask?" + urlencode({"price_per_kwh": "0,12"}))
    assert refused.status_code == 422
    assert "must be a number such as 1500 or 0.12, without separators" in refused.text


def test_a_quote_does_not_depend_on_its_reader(client):
    form = quote_form(client.get(build_address({**AT_FIRST, **SMALL})).text)
    quotes = []
    for headers in ({}, GERMAN):
        once = {**form, "once": secrets.token_hex(16)}
        content = urlencode({**once, "name": "The same"})
        made = client.request("POST", "/ask/quote", content=content, headers={**HEADERS, **headers})
        quote = client.get(f"/v1{made.headers['location']}").json()
        quotes.append({name: value for name, value in quote.items() if name not in OF_ONE})
        report = f"/v1{made.headers['location']}/report"
        shown = [client.get(report, headers=each).text for each in ({}, GERMAN)]
        assert shown[0] == shown[1]
        page = client.get(made.headers["location"], headers=headers)
        assert ("Numbers are written as 1.234,56" in page.text) == bool(headers)
    assert {"headlines", "answers", "alternatives", "warnings"} <= quotes[0].keys()
    assert quotes[0] == quotes[1]
