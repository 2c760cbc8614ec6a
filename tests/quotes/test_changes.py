"""How an answer changes: every point is an answer of the estimates, and their number is bounded."""

import html
import re
from functools import cache
from types import SimpleNamespace
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from service.quotes.form.answers import FormRefusal
from service.quotes.form.changes import service, variants
from service.quotes.form.changes.service import answer_changes
from service.quotes.form.fields import AT_FIRST
from service.quotes.form.links import build_address
from service.quotes.form.question import parse_question
from tests.applications import attach
from tests.asking import ask, shipped
from tests.conftest import Client
from tests.quotes.reading import Page

SERVED = {**AT_FIRST, "model": "qwen3-8b", "accelerator": "l40s", "accelerator_count": "1"}
TRAINED = {
    **AT_FIRST,
    "workload": "training",
    "model": "llama-3.1-8b",
    "accelerator_count": "8",
    "price_per_device_hour": "2",
}
PATIENT = 600.0
LATENCY, FRONTIER = "Latency against load", "What users and devices get: the frontier of serving"
POWER = "Power at the meter in time"
SCALING, DEADLINE = "Speed against the number of devices", "Cost against deadline"
PRICE, TOKENS, BILL = (
    f"{name}: what moves it most" for name in ("Price of the run", "Price of a million tokens", "Electricity")
)
MOST_ESTIMATES = 50
"""Of one request, whatever is asked."""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Time enough on a machine that others use too."""
    monkeypatch.setattr(service, "CURVE_SECONDS", PATIENT)
    monkeypatch.setattr(service, "TORNADO_SECONDS", PATIENT)


@pytest.fixture(scope="module")
def client(app, databases_of):
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


def charts(form):
    """The charts of a form by caption."""
    return {block.caption: block for block in answer_changes(form, shipped()).blocks}


FORMS = {
    "served": SERVED,
    "trained": TRAINED,
    "rented or bought": {**TRAINED, "supply": "both", "price_per_device": "30000", "years": "4"},
}


@cache
def answered(name):
    """The charts of a form that many tests look at, and the number of estimates behind them."""
    with patch.object(variants, "answer_question", wraps=variants.answer_question) as begun:
        return charts(FORMS[name]), begun.call_count


def charts_of(name):
    return answered(name)[0]


def rows(chart):
    """The rows of a chart's table by their first cell, as text."""
    return {
        row[0]: [html.unescape(re.sub("<[^>]+>.*", "", str(cell))) for cell in row[1:]]
        for row in chart.table.rows
    }


def changes(chart):
    """The changes of a tornado with less and with more of each assumption."""
    return {
        row[0]: [re.search('<span class="hint">(.*)</span>', str(cell)).group(1) for cell in row[1:]]
        for row in chart.table.rows
    }


def asked(name, form):
    """The answer of an estimate to a form."""
    question = parse_question(form, shipped()).question
    members = service.QUESTIONS[name].model_fields
    return ask(
        shipped(), name.replace("_", "-"), {key: value for key, value in question.items() if key in members}
    )


def test_a_served_model_has_its_load_its_frontier_and_its_assumptions():
    assert list(charts_of("served")) == [LATENCY, FRONTIER, TOKENS, BILL]


def test_points_of_the_load_are_answers_of_the_estimate():
    found = charts_of("served")
    latencies, frontier = rows(found[LATENCY]), rows(found[FRONTIER])
    assert list(latencies) == ["2", "4", "8", "16", "32", "64", "128"] == list(frontier)
    for users in ("2", "128"):
        speed = asked("throughput", {**SERVED, "concurrency": users})
        shown = float(latencies[users][1].split()[0])
        assert shown == pytest.approx(speed["time_per_output_token_seconds"]["value"] * 1000, rel=1e-3)
        of_user, of_device = (float(cell.replace(",", "")) for cell in frontier[users])
        assert of_user == pytest.approx(1 / speed["time_per_output_token_seconds"]["value"], rel=1e-3)
        assert of_device == pytest.approx(speed["output_tokens_per_second"]["value"], rel=1e-3)


def test_service_levels_the_asked_load_and_the_room_are_marked():
    form = {**SERVED, "first_token_seconds": "1", "output_token_milliseconds": "50"}
    page = Page(str(charts(form)[LATENCY].chart))
    marks = page.texts(LATENCY, "mark-name")
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in marks[:3]] == [
        "Time to the first token: at most 1 s",
        "Time per output token: at most 50 ms",
        "asked: 16",
    ]
    room = asked("memory", form)["limits"]["max_concurrency"]
    assert any(text == f"memory is full: {room}" for text in marks) == (room <= 128)


def test_a_rate_of_requests_is_doubled_too():
    found = charts({**SERVED, "requests_per_second": "0.5"})
    assert list(rows(found[LATENCY])) == ["0.06250", "0.1250", "0.2500", "0.5000", "1", "2", "4"]
    assert FRONTIER not in found


def test_a_run_has_its_scale_its_deadline_and_its_assumptions():
    assert list(charts_of("trained")) == [SCALING, DEADLINE, PRICE, BILL]


def test_points_of_the_scale_are_answers_of_the_estimates():
    found = charts_of("trained")
    speeds, costs = rows(found[SCALING]), rows(found[DEADLINE])
    assert list(speeds) == ["1", "2", "4", "8", "16", "32", "64"] == list(costs)
    form = {**TRAINED, "accelerator_count": "32"}
    speed, cost = (asked(name, form) for name in ("throughput", "cost"))
    assert speeds["32"][0] == f"{speed['tokens_per_second']['value']:,.0f}"
    assert speeds["8"][1] == "100%"
    assert costs["32"][1] == f"{float(cost['total']['amount']):,.2f}\N{NO-BREAK SPACE}USD"
    assert {count: row[-1] for count, row in speeds.items()} == {
        count: "yes" if asked("memory", {**TRAINED, "accelerator_count": count})["fits"] else "no"
        for count in speeds
    }


def test_runs_that_do_not_fit_are_a_series_of_their_own():
    page = Page(str(charts_of("trained")[SCALING].chart))
    assert page.texts(SCALING, "label") == [
        "Fits the memory",
        "Does not fit the memory",
        "Ideal: each device as fast as of 8",
    ]


def test_assumptions_are_sorted_by_what_they_move():
    price = changes(charts_of("trained")[PRICE])
    assert price["Rent of one device"] == ["\N{MINUS SIGN}20.0%", "+20.0%"]
    # A fifth less of the utilization is a quarter more time.
    assert price["Utilization"] == ["+25.0%", "\N{MINUS SIGN}16.7%"]
    largest = [max(float(end[1:-1]) for end in ends) for ends in price.values()]
    assert largest == sorted(largest, reverse=True)


def test_a_bar_is_the_answer_to_the_moved_question():
    (more,) = [
        cells[1] for name, cells in rows(charts_of("served")[TOKENS]).items() if name == "Length of a prompt"
    ]
    cost = asked("cost", {**SERVED, "input_tokens": "1200"})["cost_per_million_tokens"]["amount"]
    assert float(more.split()[0].split("\N{NO-BREAK SPACE}")[0]) == pytest.approx(float(cost), rel=1e-2)


def test_electricity_is_moved_by_its_price_and_the_building():
    bill = changes(charts_of("served")[BILL])
    assert bill["Price of electricity"][1] == "+20.0%"
    assert 0 < float(bill["PUE above 1"][1][1:-1]) < 20
    assert "Rent of one device" not in bill


def test_a_tariff_shows_the_power_in_time():
    form = {
        **SERVED,
        "tariff": "pge-e20-primary-2018",
        "time_zone": "America/Los_Angeles",
        "starts_on": "2026-01",
        "price_per_kwh": "",
    }
    found = charts(form)
    assert list(found) == [LATENCY, FRONTIER, POWER, TOKENS, BILL]
    assert "2,880 intervals of 15 minutes" in found[POWER].note
    assert POWER not in charts_of("served")


def test_what_does_not_move_a_figure_is_said():
    found = charts({**SERVED, "question": "throughput"})
    (moved,) = (chart for caption, chart in found.items() if caption.startswith("Tokens per second"))
    assert "Users" in rows(moved)
    found = charts({**TRAINED, "question": "memory"})
    (moved,) = found.values()
    assert moved.caption == "Memory of the fullest device: what moves it most"
    assert "Length of a sequence" in rows(moved)


def test_a_value_without_an_answer_is_named():
    form = {**SERVED, "concurrency": "400000"}
    remarks = charts(form)["Left out"].items
    assert any("users: " in text for text in remarks)


@pytest.mark.parametrize("name", FORMS)
def test_work_is_bounded(name):
    assert 0 < answered(name)[1] <= MOST_ESTIMATES


def test_nothing_begins_after_the_time(monkeypatch):
    monkeypatch.setattr(service, "CURVE_SECONDS", 0.0)
    monkeypatch.setattr(service, "TORNADO_SECONDS", 0.0)
    found = charts(SERVED)
    assert list(found) == ["Left out"]
    items = found["Left out"].items
    assert len(items) == variants.MOST_POINTS + 1
    assert items[0] == "2 users: the estimates take too long."
    assert items[-1] == "What moves the answer most: the estimates take too long."


def test_a_question_that_takes_long_is_changed_less(monkeypatch):
    moments = iter((0.0, 2.0))
    monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr(service, "CURVE_SECONDS", 4.0)
    monkeypatch.setattr(service, "TORNADO_SECONDS", PATIENT)
    items = charts(SERVED)["Left out"].items
    assert items[0] == "2 users: the estimates take too long."
    assert items[-1] != "What moves the answer most: the estimates take too long."


def test_a_question_without_an_answer_is_refused():
    refused = answer_changes({**SERVED, "model": "nothing"}, shipped())
    assert isinstance(refused, FormRefusal)
    assert list(refused.wrong) == ["model"]


def test_the_answer_links_to_its_charts(client):
    text = client.get(build_address(SERVED)).text
    link = html.unescape(re.search(r'<a href="([^"]+)" data-part="changes"', text).group(1))
    page = client.get(link)
    assert page.status_code == 200
    assert set(Page(page.text).charts) == {LATENCY, FRONTIER, TOKENS, BILL}
    assert "script-src" not in page.headers["content-security-policy"]
    assert f'href="{html.escape(build_address(SERVED))}"' in page.text
    ids = Page(page.text).ids
    assert len(ids) == len(set(ids))


def test_charts_of_a_refused_question_say_where_to_mend_it(client):
    page = client.get("/ask/charts?" + urlencode({"model": "nothing"}))
    assert page.status_code == 422
    assert "<title>Error: " in page.text
    assert re.search(r'href="/ask\?[^"]*model=nothing[^"]*#model"', page.text)
    assert client.get("/ask/charts?modle=x").status_code == 422


def test_a_plan_begins_with_what_the_question_states(client):
    text = client.get(build_address({**TRAINED, "accelerator": "p5.48xlarge", "accelerator_count": "2"})).text
    link = html.unescape(re.search(r'href="(/plans/new\?[^"]+)"', text).group(1))
    assert {name: value for name, (value,) in parse_qs(urlsplit(link).query).items()} == {
        "model": "llama-3.1-8b",
        "workload": "training",
        "accelerator": "h100-sxm",
        "accelerator_count": "16",
        "total_tokens_billions": "10",
        "sequence_length": "4096",
    }
    text = client.get(build_address({**SERVED, "model": "", "parameters_billions": "8"})).text
    link = html.unescape(re.search(r'href="(/plans/new\?[^"]+)"', text).group(1))
    stated = parse_qs(urlsplit(link).query)
    assert "model" not in stated
    assert stated["concurrency"] == ["16"]


@pytest.mark.parametrize(
    ("typed", "title"),
    [
        ({"model": "lama 3.1 70"}, "Llama 3.1 70B"),
        ({"accelerator": "H1000 SXM"}, "NVIDIA H100 SXM5 80GB"),
        ({"accelerator": "A100"}, "NVIDIA A100 SXM4 80GB"),
    ],
)
def test_names_that_may_be_meant_are_links_that_ask_again(client, typed, title):
    refused = client.get(build_address({**AT_FIRST, **typed, "concurrency": "5"}))
    assert refused.status_code == 422
    (link,) = {
        html.unescape(address)
        for address, shown in re.findall(r'<a href="(/ask\?[^"]+)">([^<]+)</a>', refused.text)
        if shown == title
    }
    answer = client.get(link)
    assert answer.status_code == 200
    assert f'value="{title}"' in answer.text
    assert 'name="concurrency" value="5"' in answer.text
