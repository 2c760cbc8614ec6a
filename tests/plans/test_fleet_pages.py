"""Pages of fleets that were searched in the background: in the list, running, ended and scheduled."""

import html
import json
import re
from functools import cache
from pathlib import Path

import pytest
from pydantic_core import from_json, to_json

from service.app.background.plans import FLEET_SCHEDULING, FLEET_SEARCHING
from service.catalog.service import get_revision
from service.estimates.service import answer_question
from service.kit.http.problems import FieldError
from service.plans import stored
from service.plans.fleet import estimate_fleet
from service.plans.jobs import PlanToRank
from service.plans.pages import router as pages
from service.plans.pages.fleet import build_schedule
from service.plans.repository import load_short_plans
from service.plans.service import prepare_fleet
from service.schemas.fleet_plans import FleetPlanRequest
from tests.applications import attach
from tests.approvals.reading import Reader, refusal
from tests.asking import shipped, usd
from tests.browsing import DESKTOP, LOOPBACK, NARROW, PHONE, overflow, served, violations
from tests.plans.asking import TRAINING
from tests.plans.test_fleet import CLOUD, HALL, SERVICE, fleet, run
from tests.plans.test_pages import HOSTILE, PLAN_ID
from tests.plans.test_pages import store as store_plan
from tests.quotes.reading import Page
from tests.working import do_all

CONFIGURATION = Path(__file__).parents[1] / "data/configs/meta-llama--Meta-Llama-3.1-8B.json"
SMALL = {**CLOUD, "name": "corner", "cluster": {**CLOUD["cluster"], "accelerator_count": 8}}
CROWDED = fleet(
    run("first", 20_000_000_000),
    run("second", 20_000_000_000),
    {**SERVICE, "finish_by": "2026-12-31T00:00:00Z"},
    run("large", 2_000_000_000, accelerator_counts=[32]),
    run("hurried", 20_000_000_000, finish_by="2026-12-31T00:00:00Z"),
    owned=[],
    rented=[SMALL],
    ends_at="2027-01-04T00:00:00Z",
)
"""Eight devices for more than they can do."""
DEAR = {**fleet(run("a"), run("b")), "budget": usd("60"), "goal": "earliest"}


def store(database, question, tenant="default", *, is_running=False):
    """A fleet that takes long, searched unless it is running; its id."""
    prepared = prepare_fleet(FleetPlanRequest.model_validate_json(json.dumps(question)), shipped())
    with database.open_writer() as session:
        pin = prepared.pin._replace(catalog_revision=get_revision(session, tenant))
        made = stored.create_plan(session, tenant, prepared._replace(pin=pin))
    if not is_running:
        search(database)
    return made.resource.rpartition("/")[2]


def search(database):
    return do_all(database, FLEET_SEARCHING, FLEET_SCHEDULING)


@cache
def _answer(body):
    question = FleetPlanRequest.model_validate_json(body)
    return from_json(to_json(answer_question(estimate_fleet, question, shipped())))


def answered(question):
    return _answer(json.dumps(question))


@pytest.fixture
def grace(callers):
    """Somebody who may do everything."""
    return Reader(callers.client, "grace")


class TestList:
    def test_fleets_stand_among_the_plans(self, grace, database):
        made = [store(database, CROWDED), store_plan(database, TRAINING), store(database, DEAR)]
        running = store(database, CROWDED, is_running=True)
        text = grace.get("/plans").text
        assert PLAN_ID.findall(text) == [running, *reversed(made)]
        cost = answered(DEAR)["cost"]["amount"]
        for said in (
            "Fleet of 5 workloads",
            "Schedule them on corner, for the lowest cost.",
            "Schedule them on hall, for the earliest ends.",
            "1 of 2 workloads placed",
            f"{float(cost):,.2f}\N{NO-BREAK SPACE}USD",
            "Searching</span> 0% done",
        ):
            assert said in text

    def test_one_without_a_placed_workload_says_so(self, grace, database):
        plan = store(database, fleet(run("a", accelerator_counts=[4096])))
        assert "No workload fits</span>" in grace.get("/plans").text
        page = grace.get(f"/plans/{plan}").text
        assert heading_of(page) == "Fleet of one workload: schedule it on hall, for the lowest cost"
        assert "Placed workloads" not in Page(page).tables
        assert "0 of 1" in page

    def test_a_question_of_many_bytes_is_listed_and_not_read(self, grace, database):
        """A model by its configuration may have megabytes, of which an answer has three copies a row."""
        config = json.loads(CONFIGURATION.read_text(encoding="utf-8"))
        model = {"source": "huggingface_config", "config": {**config, "remarks": "x" * 2**18}}
        plan = store(database, fleet({**run("a"), "model": model}, {**run("b"), "model": model}))
        long_plan = store_plan(database, {**TRAINING, "model": model})
        short = store_plan(database, TRAINING)
        with database.open_reader() as session:
            named = [long_plan, plan, short]
            assert load_short_plans(session, "default", named, pages._MOST_LISTED_CHARACTERS) == {short}
        seen = grace.get("/plans").text
        assert PLAN_ID.findall(seen) == [short, long_plan, plan]
        assert seen.count("A long question") == 2
        assert "Schedule a fleet, for the lowest cost." in seen
        assert "Find a configuration, for the lowest cost." in seen
        assert "Fleet of 2 workloads" in grace.get(f"/plans/{plan}").text

    def test_many_pools_are_counted(self, grace, database):
        pools = [{**SMALL, "name": f"room {number}"} for number in range(4)]
        store(database, fleet(run("a"), owned=[], rented=pools), is_running=True)
        assert "Schedule it on 4 pools" in grace.get("/plans").text


def heading_of(text):
    return re.search(r"<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[1]


class TestSearch:
    def test_a_running_search_is_followed_to_its_schedule(self, grace, database):
        plan = store(database, CROWDED, is_running=True)
        seen = grace.get(f"/plans/{plan}")
        assert seen.headers["refresh"] == str(pages.RELOAD_SECONDS)
        assert "The search is running" in seen.text
        assert re.search(r"0 of [\d,]+ configurations are decided", seen.text)
        do_all(database, FLEET_SEARCHING)
        assert "The workloads are being scheduled." in grace.get(f"/plans/{plan}").text
        assert "Searching</span> scheduling" in grace.get("/plans").text
        do_all(database, FLEET_SCHEDULING)
        done = grace.get(f"/plans/{plan}")
        assert "refresh" not in done.headers
        assert "Who runs where" in done.text

    def test_a_search_is_cancelled_by_those_who_may(self, callers, grace, database):
        plan = store(database, CROWDED, is_running=True)
        reader = Reader(callers.client, "rita", scopes=["plans:read", "approvals:read"])
        assert "Cancel the search" not in reader.get(f"/plans/{plan}").text
        path = f"/plans/{plan}/cancel"
        assert refusal(reader.send(path, {"form_token": reader.form_token()})) == (403, "SCOPE_REQUIRED")
        assert grace.send(path, {"form_token": grace.form_token()}).status_code == 303
        assert "The search was cancelled" in grace.get(f"/plans/{plan}").text
        again = grace.send(f"/plans/{store(database, DEAR)}/cancel", {"form_token": grace.form_token()})
        assert again.status_code == 409
        assert "Who runs where" in again.text

    def test_a_failed_search_says_why(self, grace, database):
        plan = store(database, CROWDED, is_running=True)
        fault = FieldError("/workloads/0", "GONE", f"the model is gone {HOSTILE}")
        with database.open_writer() as session:
            stored.fail_plan(session, "default", PlanToRank(plan_id=plan, beginning=1), fault)
        seen = grace.get(f"/plans/{plan}").text
        assert "The search has no answer" in seen
        assert "the model is gone" in seen
        assert "<script" not in seen

    def test_it_is_that_of_the_tenant_and_of_readers_of_plans(self, callers, database):
        plan = store(database, CROWDED, is_running=True)
        eve = Reader(callers.client, "eve", tenant=callers.tenant("strangers"))
        ada = Reader(callers.client, "ada", scopes=["quotes:*", "approvals:*"])
        assert refusal(eve.get(f"/plans/{plan}")) == (404, "PLAN_NOT_FOUND")
        assert refusal(ada.get(f"/plans/{plan}")) == (403, "SCOPE_REQUIRED")
        cancelled = eve.send(f"/plans/{plan}/cancel", {"form_token": eve.form_token()})
        assert refusal(cancelled) == (404, "PLAN_NOT_FOUND")


class TestSchedule:
    @pytest.fixture
    def page_of(self, grace, database):
        return lambda question: grace.get(f"/plans/{store(database, question)}").text

    def test_who_runs_where_is_the_answer(self, page_of):
        text = page_of(CROWDED)
        page, answer = Page(text), answered(CROWDED)
        head, *rows = page.tables["Placed workloads"]
        assert head == ["Workload", "Pool", "Start", "End", "Price"]
        assert len(rows) == len(answer["assignments"])
        for row, each in zip(rows, answer["assignments"], strict=True):
            assert row[0].startswith(each["workload"])
            assert row[1] == f"corner{each['devices_taken']} devices taken"
            paid = float(row[4].partition("\N{NO-BREAK SPACE}")[0].replace(",", ""))
            assert paid == pytest.approx(float(each["row"]["cost"]["amount"]), abs=0.5)
            assert f'datetime="{each["starts_at"]}"' in text
            assert f'datetime="{each["ends_at"]}"' in text
        names = [one.rpartition("/")[2] for one in page.column("Start and time of each workload", 0)]
        assert names == [each["workload"] for each in answer["assignments"]]
        assert len(page.blocks("When each workload runs")) == len(rows)
        assert f"{len(rows)} of 5" in text

    def test_what_does_not_fit_has_its_reasons_and_remedies(self, page_of):
        text = html.unescape(page_of(CROWDED))
        reasons = {each["workload"]: each["reason"] for each in answered(CROWDED)["unplaced"]}
        assert reasons.items() >= {"large": "configuration", "hurried": "deadline"}.items()
        page = Page(page_of(CROWDED))
        for each in answered(CROWDED)["unplaced"]:
            assert len(page.tables[f"Pools for {each['workload']}"]) == 2
        assert "No configuration fits the devices and does the work." in text
        assert "No configuration ends in time, even alone." in text
        assert "With 24 more devices for corner, it runs on 32 devices of corner from" in text
        assert re.search(r"With a deadline of <time [^>]+>[^<]+</time>, it runs on 8 devices", text)

    def test_a_budget_is_compared_and_counted_by_month(self, page_of):
        text = page_of(DEAR)
        answer = answered(DEAR)
        share = float(answer["cost"]["amount"]) / 60
        assert f"{share:.0%} of the budget of 60.00" in text
        assert "The budget does not cover it beside the others." in text
        assert re.search(r"With a budget of [\d.]+\s+USD, it runs on", text)
        page = Page(text)
        assert page.column("Price by month", 0) == [each["month"] for each in answer["months"]]
        assert page.tables["Price by month"][0][-1] == "Budget left"
        assert page.column("Use of the pools", 1) == [f"{answer['pools'][0]['share_taken']:.0%}"]
        spans = sum(len(pool["spans"]) for pool in answer["pools"])
        assert len(page.column("Devices in use over time", 0)) == spans

    def test_an_unknown_price_is_not_zero(self, page_of):
        bare = {"name": "hall", "cluster": HALL["cluster"]}
        text = page_of(fleet(run("a"), owned=[bare], goal="earliest"))
        page = Page(text)
        assert page.column("Placed workloads", 4) == ["not known"]
        assert "Price by month" not in page.tables
        assert "the cost of a scheduled workload is unknown" in html.unescape(text).lower()

    def test_the_request_of_the_api_is_there_and_no_quote(self, page_of):
        text = page_of(CROWDED)
        assert "POST /v1/plans:fleet" in text
        assert json.loads(html.unescape(re.search(r'id="api-question">(.*?)</pre>', text, re.DOTALL)[1]))
        assert "/quote?" not in text
        assert "Change the question" not in text

    def test_names_of_others_are_text(self, page_of, grace):
        named = [{**SMALL, "name": HOSTILE}, {**SMALL, "name": "\u202elive"}]
        workloads = [run(HOSTILE), run("\u202ebad"), run("\u202elarge", accelerator_counts=[32])]
        text = page_of(fleet(*workloads, owned=[], rented=named))
        for seen in (text, grace.get("/plans").text):
            assert "<script" not in seen
            assert "&lt;script&gt;" in seen
            assert "\u202e" not in seen


def test_a_schedule_that_may_be_better_says_by_how_much():
    answer = answered(CROWDED)
    bound = {**answer["bound"], "most_in_all": 4, "least_cost": {"amount": "12.5", "currency_code": "USD"}}
    late = [{**each, "may_end_late": True} for each in answer["assignments"]]
    changed = {**answer, "is_optimal": False, "bound": bound, "assignments": late}
    parts = build_schedule({"fleet_question": CROWDED, "fleet_answer": changed}, shipped())
    said = "at most 4 workloads fit, and those that are placed cost at least 12.50\N{NO-BREAK SPACE}USD."
    assert parts.certainty == f"A better schedule may exist: {said}"
    assert parts.figures[0].note == f"{len(late)} may end late"
    assert "May end after its deadline." in parts.placed.rows[0][0]


def test_defaults_and_warnings_name_their_workload():
    opened = {**SERVICE, "workload": {**SERVICE["workload"]}}
    del opened["workload"]["service_levels"]
    question = fleet(run("a"), opened)
    answer = answered(question)
    parts = build_schedule({"fleet_question": question, "fleet_answer": answer}, shipped())
    assert parts.defaults.rows
    assert all(row[0].startswith("chat: ") for row in parts.defaults.rows)
    assert parts.warnings
    assert all(text.startswith("For “chat”: ") for text in parts.warnings)


@pytest.mark.usefixtures("socket_enabled")
class TestReading:
    pytestmark = list(LOOPBACK)

    @pytest.mark.parametrize(("width", "scheme"), [(NARROW, "dark"), (PHONE, "light"), (DESKTOP, "dark")])
    def test_everybody_can_read_every_page(self, window, app, databases_of, width, scheme):
        maker = databases_of("sqlite")
        database = maker.loaded()
        attach(app, database)
        workloads = [run("w" * 300), run("x", accelerator_counts=[32])]
        long_named = fleet(*workloads, owned=[], rented=[{**SMALL, "name": "n" * 300}])
        plans = [store(database, question) for question in (CROWDED, DEAR, long_named)]
        running = store(database, CROWDED, is_running=True)
        paths = ["/plans", *(f"/plans/{plan}" for plan in plans), f"/plans/{running}?reload=no"]
        with served(app) as address:
            page = window(width, color_scheme=scheme, bypass_csp=True)
            for path in paths:
                page.goto(address + path)
                page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
                assert violations(page) == [], path
                assert overflow(page) == 0, path
        maker.dispose()
