"""Pages of plans: the list, the form, the progress, the answer, and quotes of candidates."""

import html
import json
import re
from functools import cache
from math import inf
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlencode

import pytest
from pydantic_core import from_json, to_json

from service.app.background.plans import RANKING, SEARCHING
from service.catalog.service import get_revision
from service.estimates.service import answer_question
from service.kit.http.problems import FieldError, OutOfTime
from service.kit.reports.numbers import TIMES
from service.plans import creation, service, stored
from service.plans.jobs import PlanToRank
from service.plans.pages import router as pages
from service.plans.pages.fields import AT_FIRST, FIELD_NAMES
from service.plans.pages.listing import list_facts
from service.plans.pages.question import build_address, build_request, parse_plan
from service.plans.service import PreparedSearch, build_pin, estimate_plan, prepare_pieces
from service.plans.words import describe_model, describe_supply, describe_work
from service.schemas.plans import PlanRequest
from tests.applications import attach
from tests.approvals.reading import Reader, heading, refusal
from tests.asking import shipped, usd
from tests.browsing import DESKTOP, LOOPBACK, NARROW, PHONE, overflow, served, violations
from tests.conftest import Client
from tests.plans.asking import SERVING, TRAINING, with_members
from tests.prepared import ON_SQLITE
from tests.quotes.reading import Page
from tests.working import do_all

HOSTILE = "\"><script>alert('x')</script>"
FORM = {
    **AT_FIRST,
    "model": "Llama 3.1 8B",
    "workload": "training",
    "total_tokens_billions": "2",
    "global_batch_size": "64",
    "rented_accelerator": "H100 SXM",
    "rented_count": "8",
    "rented_price": "3",
    "offers": "no",
}
"""A form whose search is small."""
PLAN_ID = re.compile(r"/plans/([0-9a-f]{32})")


@cache
def _answer(body):
    question = PlanRequest.model_validate_json(body)
    return question, from_json(to_json(answer_question(estimate_plan, question, shipped())))


def store(database, body, tenant="default", *, is_running=False):
    """A plan of a question, with its answer unless it is running; its id."""
    text = json.dumps(body)
    if is_running:
        prepared = prepare_pieces(PlanRequest.model_validate_json(text), shipped())
    else:
        question, answer = _answer(text)
        prepared = PreparedSearch(question, build_pin(shipped()), (), answer)
    with database.open_writer() as session:
        pin = prepared.pin._replace(catalog_revision=get_revision(session, tenant))
        made = stored.create_plan(session, tenant, prepared._replace(pin=pin))
    return made.resource.rpartition("/")[2]


@pytest.fixture
def grace(callers):
    """Somebody who may do everything."""
    return Reader(callers.client, "grace")


def hidden(text):
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def asked(reader, **changes):
    """Send the form of a new page with these changes."""
    shown = reader.get("/plans/new")
    assert shown.status_code == 200, shown.text
    return reader.send("/plans", {**FORM, **hidden(shown.text), **changes})


def wrong(answer):
    """What a refused form says, by field."""
    found = re.findall(r'<li><a href="#field-(\w+)">[^<]*</a>: ([^<]*)</li>', answer.text)
    return {name: html.unescape(text) for name, text in found}


class TestList:
    @ON_SQLITE
    def test_it_says_how_to_begin(self, callers, grace):
        seen = grace.get("/plans").text
        assert "There is no plan yet" in seen
        assert '<a href="/plans/new">Make the first one</a>' in seen
        assert '<option value="jarvis-labs">Jarvis Labs</option>' in grace.get("/plans/new").text
        reader = Reader(callers.client, "rita", scopes=["plans:read"])
        assert "/plans/new" not in reader.get("/plans").text

    def test_plans_are_named_and_the_newest_comes_first(self, grace, database):
        first = store(database, TRAINING)
        second = store(database, SERVING)
        third = store(database, TRAINING, is_running=True)
        seen = grace.get("/plans").text
        assert PLAN_ID.findall(seen) == [third, second, first]
        for text in (
            "Train on 2 billion tokens in sequences of 4,096, for the lowest cost.",
            "Serve 20 requests per second of 1,000 tokens in and 200 out",
            "NVIDIA A100 SXM4 80GB, cheap and slow",
            "Searching</span> 0% done",
        ):
            assert text in seen
        best = _answer(json.dumps(TRAINING))[1]["rows"][0]
        assert f"{float(best['cost']['amount']):,.0f}" in seen or best["cost"]["amount"] in seen

    def test_it_is_paged(self, grace, database, monkeypatch):
        monkeypatch.setattr(pages, "_LISTED", 2)
        made = [store(database, TRAINING) for _ in range(3)]
        first = grace.get("/plans").text
        older = html.unescape(re.search(r'<a href="(/plans\?page_token=[^"]+)">Older plans', first)[1])
        second = grace.get(older).text
        assert PLAN_ID.findall(first) + PLAN_ID.findall(second) == made[::-1]
        assert "Older plans" not in second
        assert grace.get("/plans?page_token=AAAA").status_code == 400

    def test_plans_are_those_of_the_tenant(self, callers, grace, database):
        plan = store(database, TRAINING, is_running=True)
        eve = Reader(callers.client, "eve", tenant=callers.tenant("strangers"))
        assert "There is no plan yet" in eve.get("/plans").text
        assert refusal(eve.get(f"/plans/{plan}")) == (404, "PLAN_NOT_FOUND")
        for path in (f"/plans/{plan}/cancel", f"/plans/{plan}/quote"):
            sent = {"form_token": eve.form_token(), "once": "0" * 32, "candidate": "1", "name": "x"}
            answer = eve.send(path, sent)
            assert answer.status_code in (404, 422), path
        assert refusal(eve.get(f"/plans/{plan}/quote")) == (404, "PLAN_NOT_FOUND")
        assert "Searching" in grace.get(f"/plans/{plan}").text

    @ON_SQLITE
    def test_whoever_may_not_read_plans_reads_none(self, callers, database):
        plan = store(database, TRAINING)
        reader = Reader(callers.client, "ada", scopes=["quotes:*", "approvals:*"])
        for path in ("/plans", "/plans/new", f"/plans/{plan}"):
            assert refusal(reader.get(path)) == (403, "SCOPE_REQUIRED")


class TestForm:
    def test_a_plan_of_the_form_is_that_of_the_api(self, callers, grace):
        sent = asked(grace)
        assert sent.status_code == 303, sent.text
        plan_id = PLAN_ID.fullmatch(sent.headers["location"])[1]
        by_form = grace.get(f"/v1/plans/{plan_id}")
        typed = parse_plan(FORM, shipped())
        with callers.client.app.state.database.open_reader() as session:
            kept = stored.get_plan(session, "default", plan_id)
        assert by_form.status_code == 401  # a session opens pages only
        assert kept["question"] == typed.question
        question, answer = _answer(json.dumps(typed.question))
        assert question == build_request(typed.question)
        assert kept["answer"]["rows"] == answer["rows"]

    def test_one_form_makes_one_plan_and_a_changed_one_another(self, grace):
        fields = hidden(grace.get("/plans/new").text)
        first, again = (grace.send("/plans", {**FORM, **fields}) for _ in range(2))
        assert first.headers["location"] == again.headers["location"]
        changed = grace.send("/plans", {**FORM, **fields, "goal": "fastest"})
        assert changed.status_code == 303
        assert changed.headers["location"] != first.headers["location"]
        assert len(set(PLAN_ID.findall(grace.get("/plans").text))) == 2

    @pytest.mark.parametrize("missing", ["once", "form_token"])
    @ON_SQLITE
    def test_a_forged_form_makes_nothing(self, grace, missing):
        answer = asked(grace, **{missing: "0"})
        assert answer.status_code in (400, 403)
        assert "There is no plan yet" in grace.get("/plans").text

    @ON_SQLITE
    @pytest.mark.parametrize(
        ("changes", "field", "text"),
        [
            ({"model": ""}, "model", "Choose a model"),
            ({"model": "lama 3.1 8"}, "model", "did you mean"),
            ({"model": HOSTILE}, "model", ""),
            ({"workload": "dreaming"}, "workload", "Choose the work"),
            ({"goal": "best"}, "goal", "Choose a goal"),
            ({"budget": "much"}, "budget", "Must be a number"),
            ({"budget": "5", "currency_code": "?"}, "budget", "three letters"),
            ({"accelerator_2": "H9000", "offers": ""}, "accelerator_2", ""),
            ({"total_tokens_billions": ""}, "total_tokens_billions", ""),
            ({"global_batch_size": ""}, "global_batch_size", "give the sequences"),
            ({"deadline_days": "0"}, "deadline_days", "too small or too large"),
            ({"rented_accelerator": ""}, "rented_accelerator", ""),
            ({"workload": "inference", "days": ""}, "days", "horizon"),
            ({"workload": "inference", "first_token_seconds": "0"}, "first_token_seconds", "greater than"),
            (
                {"rented_accelerator": "", "rented_count": "", "rented_price": ""},
                "offers",
                "No supply is left",
            ),
            ({"config": "{"}, "config", "Is not JSON"),
        ],
    )
    def test_a_refusal_stands_at_its_field(self, grace, changes, field, text):
        answer = asked(grace, **changes)
        assert answer.status_code == 422
        assert text in wrong(answer)[field]
        assert f'id="field-{field}-error"' in answer.text
        assert Page(answer.text).ids.count(f"field-{field}") == 1
        assert "<script" not in answer.text
        # What was typed is still there.
        assert 'value="64"' in answer.text or "global_batch_size" in changes

    @ON_SQLITE
    def test_several_errors_are_told_at_once(self, grace):
        answer = asked(grace, budget="much", deadline_days="0", total_tokens_billions="two")
        assert set(wrong(answer)) == {"budget", "deadline_days", "total_tokens_billions"}

    @ON_SQLITE
    def test_too_many_searches_keep_what_was_typed(self, grace, monkeypatch):
        monkeypatch.setattr(stored, "MOST_RUNNING", 0)
        monkeypatch.setattr(service, "MOST_CANDIDATES_AT_ONCE", 0)
        answer = asked(grace)
        assert answer.status_code == 409
        assert "Too many searches of this tenant are running" in answer.text
        assert "Llama 3.1 8B" in answer.text

    def test_a_search_that_takes_too_long_goes_on_in_the_background(self, grace, monkeypatch):
        def take_long(*_):
            raise OutOfTime

        monkeypatch.setattr(creation, "prepare_plan", take_long)
        place = asked(grace).headers["location"]
        assert "The search is running" in grace.get(place).text

    @ON_SQLITE
    def test_an_address_fills_in_the_form(self, grace):
        query = {
            "model": "qwen3-8b",
            "workload": "training",
            "accelerator": "l40s",
            "accelerator_count": "16",
            "total_tokens_billions": "5",
            "sequence_length": "2048",
        }
        text = grace.get(f"/plans/new?{urlencode(query)}").text
        controls = {given.get("name"): given.get("value") for tag, given in Page(text).tags if tag == "input"}
        assert controls["model"] == "Qwen3 8B"
        assert (controls["accelerator_count"], controls["sequence_length"]) == ("16", "2048")
        assert re.search(r'value="training" checked', text)
        assert 'id="more">' in text

    @ON_SQLITE
    def test_instances_are_counted_by_their_accelerators(self, grace):
        text = grace.get("/plans/new?accelerator=p5.48xlarge&accelerator_count=2").text
        assert re.search(r'name="accelerator_count" value="16"', text)

    @ON_SQLITE
    @pytest.mark.parametrize(
        ("query", "status"),
        [
            ({"modle": "x"}, 422),
            ({"model": "x" * 4001}, 422),
            ({"model": HOSTILE, "accelerator": HOSTILE}, 200),
        ],
    )
    def test_what_an_address_says_is_bounded_and_never_markup(self, grace, query, status):
        answer = grace.get(f"/plans/new?{urlencode(query)}")
        assert answer.status_code == status
        assert "<script" not in answer.text

    @ON_SQLITE
    def test_whoever_may_not_make_plans_gets_no_form(self, callers):
        reader = Reader(callers.client, "rita", scopes=["plans:read", "approvals:read"])
        assert refusal(reader.get("/plans/new")) == (403, "SCOPE_REQUIRED")
        sent = {**FORM, "form_token": reader.form_token(), "once": "0" * 32}
        assert refusal(reader.send("/plans", sent)) == (403, "SCOPE_REQUIRED")


class TestQuestion:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"budget": "50000", "deadline_days": "14.5", "accelerator": "H100 SXM", "accelerator_4": "l40s"},
            {"workload": "inference", "output_token_milliseconds": "50", "requests_per_second": "2"},
            {"own_accelerator": "h200-sxm", "own_count": "16", "own_price_per_kwh": "0.3", "own_pue": "1.25"},
            {"site": "", "grid": "", "headroom_percent": "10", "provider": "lambda", "offers": ""},
        ],
    )
    def test_a_question_fills_in_the_form_that_asks_it(self, changes):
        typed = parse_plan({**FORM, **changes}, shipped())
        assert typed.wrong == {}
        build_request(typed.question)
        address = build_address(typed.question, shipped())
        query = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
        assert query.keys() <= set(FIELD_NAMES)
        assert parse_plan({**AT_FIRST, **query}, shipped()).question == typed.question

    def test_a_question_beyond_the_form_has_no_such_address(self):
        assert build_address(TRAINING, shipped()) is None
        assert build_address({**TRAINING, "assumptions": [{"kind": "price", "factor": 2}]}, shipped()) is None


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"kind": "training", "total_steps": 5000}, "train on 5,000 steps"),
        (
            {"kind": "training", "adaptation": {"kind": "lora"}, "total_tokens": 14_800_000_000_000},
            "train LoRA adapters on 14.8 trillion tokens",
        ),
        ({"kind": "inference"}, "serve one request at a time"),
        (
            {"kind": "inference", "concurrency": 1000, "horizon": {"total_requests": 2_000_000}},
            "serve 1,000 requests at a time for 2 million requests in all",
        ),
        (
            {
                "kind": "inference",
                "request_rate_per_second": 0.5,
                "input_tokens": {"distribution": "lognormal", "mean_tokens": 800.0, "sigma": 1.0},
                "output_tokens": {"distribution": "histogram", "tokens": [100, 300], "weights": [1, 3]},
                "horizon": {"duration_seconds": 86400.0},
            },
            "serve 0.5 requests per second of about 800 tokens in and about 250 out for 1 day",
        ),
    ],
)
def test_work_is_told_in_words(workload, words):
    assert describe_work(workload).replace("\N{NO-BREAK SPACE}", " ") == words


def test_providers_are_called_by_their_names():
    supply = {
        "kind": "offer",
        "name": "x",
        "provider": "gcp",
        "region": "us-east1",
        "purchase_option": "spot",
    }
    assert describe_supply(supply, shipped()) == "Google Cloud, us-east1, spot"
    limits = {**TRAINING, "constraints": {"providers": ["hot-aisle", "our own cloud"]}}
    assert ("Other limits", "Hot Aisle or our own cloud only") in list_facts(limits, shipped())


def test_models_outside_of_the_catalog_have_words():
    names = [
        describe_model({"source": "parameter_count", "parameter_count": 70_000_000_000}, shipped()),
        describe_model({"source": "huggingface_config", "config": {}}, shipped()),
        describe_model({"source": "architecture", "architecture": {}}, shipped()),
    ]
    assert names == [
        "A model of 70 billion parameters",
        "A model by its config.json",
        "A model by its architecture",
    ]


def test_a_plan_over_many_supplies_is_searched_in_the_background(monkeypatch):
    question = PlanRequest.model_validate_json(json.dumps(TRAINING))
    monkeypatch.setattr(service, "MOST_SUPPLIES_AT_ONCE", len(TRAINING["rented"]) - 1)
    assert answer_question(service.prepare_plan, question, shipped()).answer is None


def search(database, most=inf):
    return do_all(database, SEARCHING, RANKING, most=most)


class TestSearch:
    def test_a_running_search_is_followed_without_a_script(self, grace, database):
        plan = store(database, TRAINING, is_running=True)
        seen = grace.get(f"/plans/{plan}")
        assert seen.headers["refresh"] == str(pages.RELOAD_SECONDS)
        assert "The search is running" in seen.text
        stopped = grace.get(f"/plans/{plan}?reload=no")
        assert "refresh" not in stopped.headers
        assert f'<a href="/plans/{plan}">Load again</a>' in stopped.text
        assert search(database) > 1
        done = grace.get(f"/plans/{plan}")
        assert "refresh" not in done.headers
        assert "Lowest cost" in done.text

    @ON_SQLITE
    def test_progress_is_counted(self, grace, database):
        plan = store(database, TRAINING, is_running=True)
        search(database, most=1)
        seen = grace.get(f"/plans/{plan}").text
        ((done, whole),) = re.findall(r"([\d,]+) of ([\d,]+) configurations are decided", seen)
        assert 0 < int(done.replace(",", "")) <= int(whole.replace(",", ""))

    def test_a_search_is_cancelled(self, callers, grace, database):
        plan = store(database, TRAINING, is_running=True)
        reader = Reader(callers.client, "rita", scopes=["plans:read", "approvals:read"])
        assert "Cancel the search" not in reader.get(f"/plans/{plan}").text
        path, sent = f"/plans/{plan}/cancel", {"form_token": reader.form_token()}
        assert refusal(reader.send(path, sent)) == (403, "SCOPE_REQUIRED")
        assert "Cancel the search" in grace.get(f"/plans/{plan}").text
        assert refusal(grace.send(path, {"form_token": "0"}))[0] == 403
        answer = grace.send(path, {"form_token": grace.form_token()})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/plans/{plan}")
        assert "The search was cancelled" in grace.get(f"/plans/{plan}").text

    def test_a_search_that_ended_meanwhile_is_shown(self, grace, database):
        plan = store(database, TRAINING)
        answer = grace.send(f"/plans/{plan}/cancel", {"form_token": grace.form_token()})
        assert answer.status_code == 409
        assert "The search of this plan has ended" in answer.text
        assert "Lowest cost" in answer.text

    @ON_SQLITE
    def test_a_failed_search_says_why(self, grace, database):
        plan = store(database, TRAINING, is_running=True)
        fault = FieldError("/model", "GONE", f"the model is gone {HOSTILE}")
        with database.open_writer() as session:
            stored.fail_plan(session, "default", PlanToRank(plan_id=plan, beginning=1), fault)
        seen = grace.get(f"/plans/{plan}").text
        assert "The search has no answer" in seen
        assert "the model is gone" in seen
        assert "<script" not in seen


@pytest.fixture(scope="module")
def shown(app, databases_of):
    """A visitor in open mode, and the database."""
    maker = databases_of("sqlite")
    database = maker.loaded()
    attach(app, database)
    client = Client(app)
    yield SimpleNamespace(client=client, database=database)
    client.close()
    maker.dispose()


def page_of(shown, body):
    return shown.client.get(f"/plans/{store(shown.database, body)}").text


class TestAnswer:
    def test_the_card_is_the_first_row(self, shown):
        text = page_of(shown, {**TRAINING, "constraints": {"budget": usd("100000"), "duration_seconds": 1e7}})
        row = _answer(json.dumps(TRAINING))[1]["rows"][0]
        card = dict(re.findall(r'<dt>([^<]+)</dt><dd><span class="figure">([^<]+)</span>', text))
        assert card.keys() >= {"Price", "Time of the run", "Speed", "Memory left free", "Energy", "Emissions"}
        shown_cost = float(card["Price"].partition("\N{NO-BREAK SPACE}")[0].replace(",", ""))
        assert shown_cost == pytest.approx(float(row["cost"]["amount"]), abs=1)
        assert "of the budget of 100,000" in text
        assert "within the deadline of 116" in text
        assert f"{row['accelerator_count']:,} {TIMES} NVIDIA A100 SXM4 80GB" in text

    def test_a_service_shows_its_levels(self, shown):
        text = page_of(shown, SERVING)
        card = dict(re.findall(r'<dt>([^<]+)</dt><dd><span class="figure">([^<]+)</span>', text))
        assert {"First token after", "Then a token every", "Within the service levels"} <= card.keys()
        assert "First token within 1\N{NO-BREAK SPACE}s" in text

    def test_candidates_are_ranked_with_their_figures(self, shown):
        page = Page(page_of(shown, TRAINING))
        head, *rows = page.tables["The best by rank"]
        answer = _answer(json.dumps(TRAINING))[1]
        assert head[:3] == ["Candidate", "Price", "Time of the run"]
        assert [row[0].partition(".")[0] for row in rows] == [str(row["rank"]) for row in answer["rows"]]
        assert all(row[head.index("Fits")].endswith("%") for row in rows)

    def test_the_chart_has_the_figures_of_its_table(self, shown):
        page = Page(page_of(shown, TRAINING))
        rows = page.tables["Price and time of the candidates"][1:]
        marks = page.charts["Price against the time of the run"]["marks"]
        kinds = [given["class"] for tag, given in marks if tag in ("circle", "rect")]
        best = [row[-1] for row in rows].count("yes")
        legend = 1 if best == len(rows) else 2
        assert len(kinds) == len(rows) + legend
        assert kinds.count("point") == best + 1

    def test_it_says_what_would_change_the_choice_and_why_others_are_not_listed(self, shown):
        page = Page(page_of(shown, TRAINING))
        answer = _answer(json.dumps(TRAINING))[1]
        switches = page.tables["Smallest changes that make another candidate the best"][1:]
        assert len(switches) == sum("factor" in each for each in answer["sensitivities"])
        reasons = page.tables["Configurations by the first reason against them"][1:]
        counts = answer["candidates"]
        members = ("ruled_out", "pruned", "priced_ruled_out")
        whole = sum(each["candidates"] for member in members for each in counts[member])
        assert sum(int(row[1].replace(",", "")) for row in reasons) == whole

    def test_launch_settings_are_there_to_copy(self, shown):
        text = html.unescape(page_of(shown, TRAINING))
        assert '<pre class="scroll" tabindex="0" aria-label="Arguments of torchrun">--n' in text
        assert "Arguments of vllm serve" in page_of(shown, SERVING)

    def test_the_request_of_the_api_is_there(self, shown):
        text = page_of(shown, SERVING)
        body = html.unescape(re.search(r'id="api-question">(.*?)</pre>', text, re.DOTALL)[1])
        assert json.loads(body) == SERVING

    def test_a_search_without_a_candidate_says_why(self, shown):
        text = page_of(shown, with_members(TRAINING, {"/constraints": {"budget": usd("1")}}))
        assert "No configuration keeps the limits" in text
        assert "it exceeds the budget" in text
        assert "Make a quote" not in text

    def test_configurations_in_use_stand_among_the_candidates(self, shown):
        small = {**TRAINING["workload"], "micro_batch_size": 1, "precision": "bf16"}
        cluster = {**TRAINING["rented"][0]["cluster"], "accelerator_count": 8}
        given = [
            {"name": "ours", "cluster": cluster, "parallelism": {"sharding": "zero_1"}, "workload": small},
            {"name": "too large", "cluster": cluster, "parallelism": {"sharding": "none"}, "workload": small},
        ]
        text = page_of(shown, {**TRAINING, "given": given})
        _, *rows = Page(text).tables["The best by rank"]
        names = [row[0] for row in rows]
        assert sum("ours: 8" in name for name in names) == 1
        (refused,) = (name for name in names if "too large: 8" in name)
        assert "Ruled out. The memory of a device is too small" in refused
        assert refused.startswith("too large")
        ranks = [name.partition(".")[0] for name in names if name is not refused]
        assert len(ranks) == len(set(ranks))

    def test_names_of_others_are_text(self, shown):
        text = page_of(
            shown, with_members(TRAINING, {"/rented/1/name": HOSTILE, "/rented/0/name": "\u202eevil"})
        )
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "\u202e" not in text
        listed = shown.client.get("/plans").text
        assert "<script" not in listed

    @pytest.mark.parametrize(
        ("goal", "award"),
        [
            ("fastest", "Shortest time"),
            ("pareto", "Cheapest of the trade-offs"),
            ("cleanest", "Lowest emissions"),
        ],
    )
    def test_every_goal_has_its_words(self, shown, goal, award):
        assert award in page_of(shown, {**TRAINING, "goal": goal})


class TestQuote:
    def test_a_candidate_becomes_a_quote_once(self, grace, database):
        plan = store(database, TRAINING)
        assert f"/plans/{plan}/quote?candidate=2" in grace.get(f"/plans/{plan}").text
        page = grace.get(f"/plans/{plan}/quote?candidate=2")
        assert heading(page) == "Make a quote"
        form = {**hidden(page.text), "name": "A run"}
        first, again = (grace.send(f"/plans/{plan}/quote", form) for _ in range(2))
        assert first.status_code == 303, first.text
        assert first.headers["location"] == again.headers["location"]
        quote = grace.get(first.headers["location"])
        assert heading(quote) == "A run"
        assert "Submit for approval" in quote.text

    @ON_SQLITE
    def test_only_those_who_may_quote_are_offered_it(self, callers, database):
        plan = store(database, TRAINING)
        reader = Reader(callers.client, "rita", scopes=["plans:*", "approvals:read"])
        seen = reader.get(f"/plans/{plan}").text
        assert "Quote" not in Page(seen).tables["The best by rank"][0]
        assert "/quote?" not in seen
        assert refusal(reader.get(f"/plans/{plan}/quote")) == (403, "SCOPE_REQUIRED")
        sent = {"form_token": reader.form_token(), "once": "0" * 32, "candidate": "1", "name": "x"}
        assert refusal(reader.send(f"/plans/{plan}/quote", sent)) == (403, "SCOPE_REQUIRED")

    @ON_SQLITE
    def test_what_is_no_candidate_is_not_quoted(self, grace, database):
        plan = store(database, TRAINING)
        assert refusal(grace.get(f"/plans/{plan}/quote?candidate=999")) == (409, "PLAN_NOT_QUOTABLE")
        form = {**hidden(grace.get(f"/plans/{plan}/quote").text), "name": "x"}
        for changes, status in (
            ({"candidate": "999"}, 409),
            ({"candidate": "-1"}, 400),
            ({"once": ""}, 400),
            ({"name": " "}, 422),
            ({"cost_center_id": "nobody"}, 422),
        ):
            assert grace.send(f"/plans/{plan}/quote", {**form, **changes}).status_code == status, changes


@pytest.mark.usefixtures("socket_enabled")
class TestReading:
    pytestmark = list(LOOPBACK)

    @pytest.mark.parametrize(("width", "scheme"), [(NARROW, "dark"), (PHONE, "light"), (DESKTOP, "dark")])
    def test_everybody_can_read_every_page(self, window, app, databases_of, width, scheme):
        maker = databases_of("sqlite")
        database = maker.loaded()
        attach(app, database)
        paths = ["/plans", "/plans/new", "/plans/new?model=" + "x" * 150]
        plans = [
            store(database, TRAINING),
            store(database, SERVING),
            store(database, {**TRAINING, "goal": "pareto"}),
        ]
        nothing = store(database, with_members(TRAINING, {"/constraints": {"budget": usd("1")}}))
        running = store(database, TRAINING, is_running=True)
        paths += [f"/plans/{plan}" for plan in (*plans, nothing)]
        paths += [f"/plans/{running}?reload=no", f"/plans/{plans[0]}/quote"]
        with served(app) as address:
            page = window(width, color_scheme=scheme, bypass_csp=True)
            for path in paths:
                page.goto(address + path)
                page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
                assert violations(page) == [], path
                assert overflow(page) == 0, path
        maker.dispose()

    def test_a_plan_is_made_and_quoted_without_scripts(self, window, app, databases_of):
        maker = databases_of("sqlite")
        attach(app, maker.loaded())
        with served(app) as address:
            page = window(PHONE, java_script_enabled=False)
            page.goto(f"{address}/plans")
            page.click("text=New plan")
            assert not page.is_visible("#field-total_tokens_billions")
            page.check("text=Train it")
            assert not page.is_visible("#field-concurrency")
            page.fill("#field-model", "Llama 3.1 8B")
            page.fill("#field-total_tokens_billions", "")
            page.click("#plan-form > .buttons button")
            page.wait_for_selector("#wrong")
            assert page.title().startswith("Error: ")
            page.click("a[href='#field-total_tokens_billions']")
            assert page.locator("#field-total_tokens_billions:focus").count() == 1
            page.keyboard.type("2")
            page.click("#more > summary")
            for name in ("rented_accelerator", "rented_count", "rented_price"):
                page.fill(f"#field-{name}", FORM[name])
            page.select_option("#field-offers", "no")
            page.click("#plan-form > .buttons button")
            page.wait_for_selector("#best-title")
            page.click("text=Make a quote of this")
            page.click("text=Make the quote")
            page.wait_for_selector("text=Submit for approval")
        maker.dispose()

    def test_a_running_search_loads_itself_again(self, window, app, databases_of, monkeypatch):
        monkeypatch.setattr(pages, "RELOAD_SECONDS", 1)
        maker = databases_of("sqlite")
        database = maker.loaded()
        attach(app, database)
        plan = store(database, TRAINING, is_running=True)
        with served(app) as address:
            page = window(PHONE, java_script_enabled=False)
            page.goto(f"{address}/plans/{plan}")
            assert page.is_visible("#running-title")
            with database.open_writer() as session:
                stored.cancel_plan(session, "default", plan)
            page.wait_for_selector("text=The search was cancelled")
        maker.dispose()
