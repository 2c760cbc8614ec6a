"""The form that asks the four questions: it answers, and says at its fields what is wrong."""

import html
import json
import re
from urllib.parse import urlencode

import pytest

from service.kit.reports.numbers import KWH, SECONDS
from service.kit.reports.numbers import format_value as in_words
from service.kit.security.principals import Principal, PrincipalKind
from service.quotes.form.fields import ASKED, AT_FIRST, FIELDS, PLACES
from service.quotes.form.question import parse_question
from tests.applications import TENANT, attach
from tests.asking import ask, shipped, usd
from tests.conftest import Client
from tests.quotes.reading import Page

HEADERS = {"Content-Type": "application/x-www-form-urlencoded"}
ANSWER, MOVED, WRONG = 200, 303, 422
OWN_SCRIPT = {"type": "module", "src": "/ask/live.js"}
MORE_SERVED = "it belongs to “More about serving”"
CHOSEN = {name for name, field in FIELDS.items() if field.kind == "choice"} | {"question"}
QUICK = {
    **AT_FIRST,
    "workload": "training",
    "model": "",
    "accelerator_count": "64",
    "price_per_device_hour": "2.50",
    "parameters_billions": "8",
    "utilization_percent": "40",
    "total_tokens_billions": "1.5",
}


@pytest.fixture(scope="module")
def asking(app, databases_of):
    """Somebody who asks; the form touches no database but for the catalog."""
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    with_form = Client(app)
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', with_form.get("/ask").text).group(1)

    def ask(status, **typed):
        content = urlencode({**QUICK, "form_token": token, **typed})
        answer = with_form.request("POST", "/ask", content=content, headers=HEADERS)
        if answer.status_code == MOVED:
            answer = with_form.get(answer.headers["location"])
        assert answer.status_code == status, answer.text
        return answer.text

    yield ask
    with_form.close()
    maker.dispose()


def fields(text):
    """What the form says in each field."""
    page = Page(text)
    return {
        given["name"]: given.get("value", "")
        for tag, given in page.tags
        if tag == "input" and "name" in given and (given.get("type") != "radio" or "checked" in given)
    }


def area(text, name):
    """What the form says in a field of several lines."""
    return html.unescape(re.search(rf'<textarea id="{name}"[^>]*>\n([^<]*)</textarea>', text).group(1))


def error(text, name):
    """What is said at a field, which must be marked."""
    page = Page(text)
    (field,) = [given for _, given in page.tags if given.get("id") == name]
    assert field["aria-invalid"] == "true"
    assert f"{name}-error" in field["aria-describedby"].split()
    assert f'href="#{name}"' in text
    return html.unescape(re.search(rf'id="{name}-error">([^<]*)<', text).group(1))


def test_the_answer_is_that_of_the_estimate(asking):
    text = asking(ANSWER)
    asked = {
        "model": {"source": "parameter_count", "parameter_count": 8_000_000_000},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
        "workload": {"kind": "training", "total_tokens": 1_500_000_000, "sequence_length": 4096},
        "efficiency": {"source": "assumed", "utilization": 0.4},
        "rental": {"price_per_device_hour": usd("2.50")},
    }
    total = ask(shipped(), "cost", asked)["total"]["amount"]
    assert f"{float(total):,.2f}\N{NO-BREAK SPACE}USD" in Page(text).tables["Headlines"][1][1]
    assert fields(text).items() >= {"total_tokens_billions": "1.5", "accelerator_count": "64"}.items()


def test_a_served_model_is_asked_about_alike(asking):
    text = asking(
        ANSWER,
        workload="inference",
        model="llama-3.1-8b",
        parameters_billions="",
        accelerator_count="1",
        utilization_percent="",
    )
    assert "Time of a request by phase" in Page(text).charts
    assert fields(text)["workload"] == "inference"
    assert fields(text)["model"] == "Llama 3.1 8B"


@pytest.mark.parametrize(
    ("name", "typed", "said"),
    [
        ("accelerator_count", "", "Is needed."),
        ("accelerator_count", "1,000", "Must be a number such as 1500 or 0.12, without separators."),
        ("accelerator_count", "1.5", "Must be a whole number."),
        ("currency_code", "", "Is needed with a price."),
        ("time_zone", "Mars/Phobos", "Must be a time zone such as Europe/Berlin."),
        ("starts_on", "2027-13", "Must be a day such as 2027-01-25 or a month such as 2027-01."),
        ("starts_on", "20270125", "Must be a day such as 2027-01-25 or a month such as 2027-01."),
        ("precision", "fp1", "Must be one of the list."),
        ("question", "why", "Choose a question."),
        ("supply", "", "Is needed."),
        ("config", "{", "Is not JSON: EOF while parsing an object at line 1 column 1."),
        ("config", "[1]", 'Must be an object, such as {"model_type": "llama", ...}.'),
        ("config", '{"a": NaN}', "Is not JSON: expected value at line 1 column 7."),
        ("config", "[" * 300, "Is not JSON: recursion limit exceeded at line 1 column 202."),
        ("config", '{"model_type": "gpt2", "n_layer": "many"}', "N_layer must be a positive integer."),
        ("years", "99", "Must be at most 50."),
        ("offer", "aws-dl1-24xlarge-us-east-1-spot", "The offer is for gaudi."),
        ("accelerator_count", "0", "Must be at least 1."),
        (
            "total_tokens_billions",
            "0.0000000001",
            "Must be a number such as 1500 or 0.12, without separators.",
        ),
        ("utilization_percent", "120", "Is too small or too large."),
        ("accelerator", "abacus", "The catalog has no row with this id or alias."),
        ("currency_code", "dollars", "Must be a code of three letters, such as EUR."),
        ("pue", "0.5", "Must be at least 1."),
        ("model", "", "Choose a model, give its number of parameters, or paste its config.json."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(asking, name, typed, said):
    given = {"parameters_billions": ""} if name == "model" else {}
    given |= {"supply": "owned", "price_per_device": "1"} if name == "years" else {}
    given |= {"starts_on": "2027-01"} if name == "time_zone" else {}
    text = asking(WRONG, **{name: typed, **given})
    assert error(text, name) == said
    assert "<title>Error: " in text
    if name == "config":
        assert area(text, name) == typed
    elif name not in CHOSEN:
        assert fields(text)[name] == typed
    elif typed and name not in {"accelerator", "question", "precision"}:
        assert f'<option value="{typed}" selected>' in text


def remarks(text, name):
    """What is remarked at a field, which must be described by it."""
    page = Page(text)
    (field,) = [given for _, given in page.tags if given.get("id") == name]
    assert f"{name}-remark" in field["aria-describedby"].split()
    return html.unescape(re.search(rf'id="{name}-remark">([^<]*)<', text).group(1))


@pytest.mark.parametrize(
    ("typed", "name", "said"),
    [
        ({"days": "", "requests_per_second": "often"}, "requests_per_second", MORE_SERVED),
        ({"price_per_device": "30000"}, "price_per_device", "it belongs to “Purchase”"),
        (
            {"question": "memory", "utilization_percent": "30"},
            "utilization_percent",
            "the chosen question does not depend on it",
        ),
        (
            {"offer": "crusoe-h100-sxm-80gb-on-demand", "price_per_device_hour": "9"},
            "price_per_device_hour",
            "“Offer of the catalog” replaces it",
        ),
        ({"model": "gpt2"}, "model", "“Parameters” replaces it"),
        ({"time_zone": "Europe/Berlin"}, "time_zone", "it only applies with a tariff or a start"),
    ],
)
def test_what_is_filled_in_and_not_used_is_said(asking, typed, name, said):
    text = asking(ANSWER, **typed)
    assert remarks(text, name) == f"Not used: {said}."
    note = text.partition("Filled in, but not used")[2].partition("</div>")[0]
    assert 'href="#days"' not in note
    assert f'<a href="#{name}">{FIELDS[name].label}</a>: {said}' in html.unescape(note)


def test_what_the_form_said_by_itself_is_not_listed_as_unused(asking):
    text = asking(ANSWER)
    assert "Filled in, but not used" not in text
    assert remarks(text, "days") == f"Not used: {MORE_SERVED}."


def test_a_price_that_cannot_be_had_any_more_is_said_at_its_offer(asking):
    text = asking(ANSWER, accelerator="a100-sxm-40gb", offer="aws-p4d-24xlarge-us-east-2-capacity-block")
    assert remarks(text, "offer").startswith(
        "The price was valid until 2024-12 and has expired. The length of a block is not given"
    )


def test_all_that_is_wrong_is_said_at_once(asking):
    text = asking(WRONG, starts_on="soon", pue="0.5", accelerator_count="")
    assert error(text, "pue") == "Must be at least 1."
    assert error(text, "accelerator_count") == "Is needed."
    assert text.partition("cannot be answered yet")[2].partition("</div>")[0].count("<li>") == 3


def test_a_workload_is_chosen(asking):
    text = asking(WRONG, workload="dreaming")
    assert "Choose a workload." in text


def test_what_is_typed_is_never_markup(asking):
    typed = '"><script>alert(1)</script>'
    text = asking(WRONG, accelerator_count=typed, currency_code=typed, model=typed)
    assert [given for tag, given in Page(text).tags if tag == "script"] == [OWN_SCRIPT]
    assert fields(text)["accelerator_count"] == typed


def test_every_field_has_a_label_and_its_place_in_the_question(asking):
    text = asking(ANSWER)
    page = Page(text)
    named_fields = set(FIELDS) | {"question", "workload", "workload-training", "quote-name"}
    labelled = {given["for"] for tag, given in page.tags if tag == "label"}
    named = {
        given["id"] for tag, given in page.tags if tag in {"input", "select", "textarea"} and "id" in given
    }
    assert named == labelled == named_fields
    assert len(page.ids) == len(set(page.ids))
    pointers = {field.pointer for field in FIELDS.values()} - {""}
    assert pointers <= PLACES.keys()


def test_empty_fields_are_left_out_of_the_question():
    typed = parse_question({"question": "cost", "workload": "training"}, shipped())
    assert typed.question == {"workload": {"kind": "training"}}
    assert set(typed.wrong) == {
        "model",
        "accelerator",
        "accelerator_count",
        "total_tokens_billions",
        "supply",
    }
    typed = parse_question({**QUICK, "site": "", "price_per_kwh": "", "grid": ""}, shipped())
    assert "site" not in typed.question
    assert typed.wrong == {}


def test_every_field_of_a_number_says_its_unit_and_an_example():
    for field in FIELDS.values():
        assert field.kind == "choice" or field.example, field.name
        assert field.kind in {"choice", "config", "name"} or field.unit, field.name


CONFIG = (
    '{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 64}'
)
BOTH_WAYS = {
    "question": "utility_bill",
    "config": CONFIG,
    "model": "",
    "parameters_billions": "",
    "accelerator": "a100-sxm-80gb",
    "accelerator_count": "8",
    "sequence_length": "64",
    "precision": "fp16",
    "supply": "both",
    "price_per_device": "30000",
    "years": "4",
    "tariff": "pge-e20-primary-2018",
    "time_zone": "America/Los_Angeles",
    "starts_on": "2027-07",
    "grid": "egrid-us-camx",
    "utilization_percent": "",
}


def test_a_pasted_model_on_a_tariff_rented_and_owned_is_this_question():
    typed = parse_question({**QUICK, **BOTH_WAYS}, shipped())
    assert typed.wrong == {}
    assert typed.question == {
        "model": {"source": "huggingface_config", "config": json.loads(CONFIG)},
        "cluster": {"accelerator": {"source": "catalog", "id": "a100-sxm-80gb"}, "accelerator_count": 8},
        "workload": {
            "kind": "training",
            "total_tokens": 1_500_000_000,
            "sequence_length": 64,
            "precision": "fp16",
        },
        "currency_code": "USD",
        "rental": {"price_per_device_hour": usd("2.50")},
        "purchase": {"price_per_device": usd("30000"), "ownership": {"years": 4.0}},
        "site": {
            "site_id": "uptime-average-2023",
            "electricity": {"tariff_id": "pge-e20-primary-2018"},
            "time_zone": "America/Los_Angeles",
            "grid_id": "egrid-us-camx",
        },
        # Midnight in California: one of UTC would bill the demand of June too.
        "starts_at": "2027-07-01T07:00:00Z",
    }


@pytest.mark.parametrize("question", [name for name, _ in ASKED])
@pytest.mark.parametrize("workload", ["training", "inference"])
def test_the_estimate_answers_the_question_that_the_page_shows(asking, app, question, workload):
    """The form has no reading of its own: what it shows goes to the API, and its figures are the page's."""
    known = {"model": "gpt2", "parameters_billions": "", "sequence_length": "1024"}
    text = asking(ANSWER, question=question, workload=workload, accelerator_count="2", **known)
    body = json.loads(html.unescape(re.search(r'id="api-question">([^<]*)<', text).group(1)))
    path = re.search(r"<code>POST (/v1/estimates/[a-z-]+)</code>", text).group(1)
    assert path == f"/v1/estimates/{question.replace('_', '-')}"
    client = Client(app)
    answer = client.post(path, body)
    client.close()
    assert answer.status_code == 200, answer.text
    answer = answer.json()
    page = Page(text)
    headlines = {row[0]: row[1] for row in page.tables["Headlines"][1:]}
    if question == "memory":
        assert ("yes" if answer["fits"] else "no") in headlines["Fits"]
    if question in {"cost", "utility_bill"}:
        duration = answer["duration_seconds"]["value"]
        (shown,) = [value for name, value in headlines.items() if name.startswith("Time of the run")]
        assert shown.startswith(in_words(duration, SECONDS))
    if question == "utility_bill":
        (shown,) = [value for name, value in headlines.items() if name.startswith("Energy at the meter")]
        assert shown.startswith(in_words(answer["energy"]["facility_kwh"]["value"], KWH))


def test_memory_is_asked_without_devices(asking):
    known = {"model": "gpt2", "parameters_billions": ""}
    text = asking(ANSWER, question="memory", accelerator="", total_tokens_billions="", **known)
    assert remarks(text, "accelerator_count") == "Not used: no accelerator is chosen."
    assert "its capacity is unknown" in text


def test_a_form_of_another_session_is_refused(asking):
    assert "cannot be answered yet" not in asking(403, form_token="0" * 32)


@pytest.fixture
def people(app, databases_of):
    """An application whose callers have signed in, or not."""
    maker = databases_of("sqlite")
    attach(app, maker.loaded(), TENANT)
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


def signed_in(client, *scopes):
    """What the browser of somebody who has signed in sends."""
    subject = Principal(PrincipalKind.TOKEN, "ada", "default", frozenset(scopes))
    return {"Cookie": client.app.state.visitors.begin_session(subject).partition(";")[0]}


def test_nothing_is_answered_to_those_who_are_not_signed_in(people):
    for answer in (people.get("/ask"), people.request("POST", "/ask", content="", headers=HEADERS)):
        assert answer.status_code == 401
        assert "h100-sxm" not in answer.text


def test_whoever_has_signed_in_may_ask_if_they_may_estimate(people):
    assert people.get("/ask", headers=signed_in(people, "quotes:read")).status_code == 403
    session = signed_in(people, "estimates:read")
    page = people.get("/ask", headers=session)
    token = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text).group(1)
    content = urlencode({**QUICK, "form_token": token})
    asked = people.request("POST", "/ask", content=content, headers={**HEADERS, **session})
    answer = people.get(asked.headers["location"], headers=session)
    assert "Headlines" in Page(answer.text).tables
    assert "Make a quote of this" not in answer.text
