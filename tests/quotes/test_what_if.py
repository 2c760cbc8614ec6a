"""The page that asks: what is typed is in its address, kept questions stand beside it, and quotes follow."""

import html
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from service.kit.reports.numbers import TIMES
from service.kit.security.principals import Principal, PrincipalKind
from service.quotes.form.fields import AT_FIRST
from service.quotes.form.links import (
    MOST_KEPT_CHARACTERS,
    build_address,
    build_query,
    keep_question,
    parse_query,
)
from service.quotes.form.question import parse_question
from tests.applications import TENANT, attach
from tests.asking import ask, shipped
from tests.conftest import Client
from tests.quotes.reading import Page

HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
SMALL = {"model": "Qwen3 8B", "accelerator": "L40S", "accelerator_count": "1"}
HOSTILE = "\"><script>alert('x')</script>"


@pytest.fixture(scope="module")
def client(app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


def token_of(client):
    return re.search(r'name="form_token" value="([0-9a-f]+)"', client.get("/ask").text).group(1)


def post(client, path, **typed):
    content = urlencode({"form_token": token_of(client), **typed})
    return client.request("POST", path, content=content, headers=HEADERS)


def card(text):
    """The figures of the card, by name."""
    found = re.findall(r'<dt>([^<]+)</dt><dd><span class="figure[^"]*">([^<]+)</span>', text)
    return {name: html.unescape(shown) for name, shown in found}


def test_the_page_answers_an_example_at_first(client):
    page = client.get("/ask")
    assert page.status_code == 200
    assert f"Llama 3.1 70B, served on 4 {TIMES} NVIDIA H100" in page.text
    assert {"Speed", "Price", "A month", "Electricity", "Emissions"} <= card(page.text).keys()
    assert "script-src 'self'" in page.headers["content-security-policy"]


def test_the_card_has_the_figures_of_the_estimate(client):
    address = "/ask?" + urlencode({**SMALL, "price_per_device_hour": "1.25"})
    shown = card(client.get(address).text)
    question = parse_question({**AT_FIRST, **SMALL, "price_per_device_hour": "1.25"}, shipped()).question
    cost, speed = (ask(shipped(), name, _within(name, question)) for name in ("cost", "throughput"))
    assert shown["Price"] == f"{float(cost['total']['amount']):,.2f}\N{NO-BREAK SPACE}USD"
    assert cost["total"]["amount"] == "900.00"
    tokens = float(shown["Speed"].split()[0].replace(",", ""))
    assert tokens == pytest.approx(speed["output_tokens_per_second"]["value"], rel=5e-3)


def _within(name, question):
    without = {"cost": {"site"}, "throughput": {"site", "rental", "currency_code"}}[name]
    return {member: value for member, value in question.items() if member not in without}


def test_a_posted_form_leads_to_its_address_and_back(client):
    typed = {**AT_FIRST, **SMALL, "weight_precision": "fp8", "price_per_kwh": ""}
    moved = post(client, "/ask", **typed)
    assert moved.status_code == 303
    address = moved.headers["location"]
    assert parse_query(urlsplit(address).query) == {**AT_FIRST, **typed}
    assert client.get(address).status_code == 200


def test_a_short_address_is_filled_in_as_the_form_is_at_first():
    assert parse_query("model=qwen3-8b&what=ever") == {**AT_FIRST, "model": "qwen3-8b"}
    assert build_query(AT_FIRST).count("&") == 3


def test_a_question_that_is_too_long_for_an_address_is_answered_at_once(client):
    config = '{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "x": "%s"}' % ("y" * 5000)
    answer = post(client, "/ask", **{**AT_FIRST, "config": config, "input_tokens": "100"})
    assert answer.status_code == 200
    assert "A model by its config.json" in answer.text
    assert "Link to this answer" not in answer.text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"model": "x" * 201}, 422),
        ({"model": "x" * 4001}, 422),
        ({"modle": "gpt2"}, 422),
        ({"model": HOSTILE}, 422),
        ({"accelerator": HOSTILE}, 422),
        ({"kept_1": HOSTILE}, 200),
        ({"kept_1": "model=" + "x" * MOST_KEPT_CHARACTERS}, 200),
        ({"workload": "dreaming"}, 422),
    ],
)
def test_what_an_address_says_is_bounded_and_never_markup(client, query, status):
    answer = client.get("/ask?" + urlencode(query))
    assert answer.status_code == status
    scripts = [given for tag, given in Page(answer.text).tags if tag == "script"]
    assert scripts in ([], [{"type": "module", "src": "/ask/live.js"}])


def test_an_unknown_name_is_answered_by_the_nearest(client):
    answer = client.get("/ask?" + urlencode({"model": "lama 3.1 70"}))
    assert answer.status_code == 422
    assert "Did you mean" in answer.text
    assert 'href="#model"' in answer.text


def test_an_instance_is_counted_by_its_accelerators_and_rented_as_itself():
    typed = parse_question({**AT_FIRST, "accelerator": "p5.48xlarge", "accelerator_count": "2"}, shipped())
    assert typed.question["cluster"]["accelerator_count"] == 16
    assert shipped().offers[typed.question["rental"]["offer_id"]].instance_type == "p5.48xlarge"


def test_without_a_price_the_cheapest_offer_is_rented_and_named(client):
    text = client.get("/ask").text
    ((_, offer, _),) = [row for row in Page(text).tables[FILLED] if row[0] == "Rent"]
    typed = parse_question(AT_FIRST, shipped())
    assert shipped().offers.entries[typed.chosen_offer].title == offer
    assert f"Offer: {offer}" in text
    typed = parse_question({**AT_FIRST, "price_per_device_hour": "2"}, shipped())
    assert typed.chosen_offer == ""


FILLED = "What the question leaves open, and what the answer takes for it"
COMPARED = "Headlines, with the change against the first column"


def test_a_kept_question_stands_beside_the_next(client):
    kept = post(client, "/ask", **AT_FIRST, keep="yes").headers["location"]
    form = {**AT_FIRST, "accelerator_count": "8", "kept_1": parse_qs(urlsplit(kept).query)["kept_1"][0]}
    text = client.get(build_address(form)).text
    head, *rows = Page(text).tables[COMPARED]
    assert [f"8 {TIMES}" in cell for cell in head[1:]] == [False, True]
    (price,) = [row for row in rows if row[0] == "Price"]
    # An accelerator in an instance of eight costs less than one in an instance of four.
    assert price[2].endswith("95% more")
    removal = html.unescape(re.search(r'<a href="([^"]+)">Remove', text).group(1))
    assert COMPARED not in Page(client.get(removal).text).tables


def test_two_questions_are_kept_and_the_oldest_goes_first():
    form = AT_FIRST
    for count in ("1", "2", "3"):
        form = keep_question({**form, "accelerator_count": count})
    kept = [parse_query(form[name])["accelerator_count"] for name in ("kept_1", "kept_2")]
    assert kept == ["2", "3"]
    assert keep_question(form) == form


def test_a_kept_question_without_an_answer_says_why(client):
    form = {**AT_FIRST, "kept_1": build_query({**AT_FIRST, "model": "no such model at all"})}
    text = client.get(build_address(form)).text
    assert "the catalog has no row" in Page(text).tables[COMPARED][0][1]


def test_the_script_gets_the_answer_alone(client):
    answer = post(client, "/ask/answer", **{**AT_FIRST, **SMALL})
    assert answer.status_code == 200
    assert '<form method="post" action="/ask"' not in answer.text
    assert answer.headers["content-location"] == "/ask?" + build_query({**AT_FIRST, **SMALL})
    refused = post(client, "/ask/answer", **{**AT_FIRST, "model": "nothing"})
    assert refused.status_code == 422
    assert 'href="#model"' in refused.text
    assert client.get("/ask/live.js").headers["content-type"].startswith("text/javascript")


def quote_form(text):
    page = Page(text)
    fields = {given["name"]: given["value"] for tag, given in page.tags if given.get("type") == "hidden"}
    return {name: fields[name] for name in ("form_token", "once", "query")}


def test_a_quote_is_made_of_the_question_once(client):
    typed = {**AT_FIRST, **SMALL}
    form = quote_form(client.get(build_address(typed)).text)
    first, again = (post(client, "/ask/quote", **form, name="Small") for _ in range(2))
    assert first.status_code == 303
    assert first.headers["location"] == again.headers["location"]
    quote_id = first.headers["location"].removeprefix("/quotes/")
    quote = client.get(f"/v1/quotes/{quote_id}").json()
    assert (quote["name"], quote["state"]) == ("Small", "draft")
    assert quote["requests"]["utility_bill"]["workload"]["concurrency"] == 16
    page = client.get(f"/quotes/{quote_id}")
    assert "Submit for approval" in page.text
    assert "script-src" not in page.headers["content-security-policy"]


def test_a_quote_without_a_policy_is_not_submitted_and_says_so(client):
    form = quote_form(client.get("/ask").text)
    address = post(client, "/ask/quote", **form, name="Nobody's").headers["location"]
    digest = re.search(r'name="content_digest" value="([0-9a-f]+)"', client.get(address).text).group(1)
    refused = post(client, address, content_digest=digest)
    assert refused.status_code == 409
    assert "The quote was not submitted" in refused.text
    assert post(client, address, content_digest="?").status_code == 400


def test_a_quote_is_submitted_to_the_approvers_of_a_policy(client):
    policy = {
        "id": "all",
        "name": "All",
        "conditions": {},
        "steps": [{"name": "Owner", "approvers": ["person:grace@example.com"]}],
    }
    made = client.post("/v1/approval-policies", policy)
    assert made.status_code == 201, made.text
    form = quote_form(client.get("/ask").text)
    address = post(client, "/ask/quote", **form, name="Asked").headers["location"]
    digest = re.search(r'name="content_digest" value="([0-9a-f]+)"', client.get(address).text).group(1)
    submitted = post(client, address, content_digest=digest)
    assert submitted.status_code == 303, submitted.text
    assert client.get(submitted.headers["location"]).status_code == 200
    assert "Go to the approval" in client.get(address).text


@pytest.mark.parametrize("missing", ["once", "query", "form_token"])
def test_a_forged_quote_is_refused(client, missing):
    form = {**quote_form(client.get("/ask").text), missing: "model=none" if missing == "query" else "0"}
    content = urlencode({**form, "name": "Forged"})
    answer = client.request("POST", "/ask/quote", content=content, headers=HEADERS)
    assert 400 <= answer.status_code < 500
    assert answer.status_code != 404


def test_a_quote_needs_the_scope_of_quotes(app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded(), TENANT)
    client = Client(app)
    ada = Principal(PrincipalKind.TOKEN, "ada", "default", frozenset({"estimates:read"}))
    session = {"Cookie": app.state.visitors.begin_session(ada).partition(";")[0]}
    text = client.get("/ask", headers=session).text
    assert "Make a quote of this" not in text
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', text).group(1)
    content = urlencode({"form_token": token, "once": "0" * 32, "query": "", "name": "x"})
    answer = client.request("POST", "/ask/quote", content=content, headers={**HEADERS, **session})
    assert answer.status_code == 403
    client.close()
    maker.dispose()
