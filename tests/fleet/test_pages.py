"""Pages of the fleet: states in words, figures beside what is expected, and calibrations before and after."""

import html
import re
import threading
from collections import Counter
from datetime import timedelta

import pytest
from sqlalchemy import event

from service.calibrations import service as calibrations
from service.fleet.overview import MOST_NODES
from service.kit.clock import now
from tests.applications import OPEN, attach, store_calibration
from tests.approvals.reading import Reader, heading, refusal
from tests.benchmarks.planned import COLLECTIVES
from tests.browsing import DESKTOP, LOOPBACK, NARROW, PHONE, overflow, served, violations
from tests.fleet.shown import FEW, SLOW, SPOOL, USUAL, ShownFleet
from tests.prepared import ON_SQLITE
from tests.quotes.reading import Page

HOSTILE = '"><script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}'
THROTTLED = {
    "rule": "conditions.throttled",
    "verdict": "suspect",
    "detail": "share of the window at a lower clock",
    "observed": 0.31,
    "limit": 0.01,
}
CAPTION = "Last results beside what is expected"
RESULTS = ("nodes:read", "benchmark-results:read")


@pytest.fixture
def fleet(database):
    return ShownFleet(database)


@pytest.fixture
def reader(callers):
    return Reader(callers.client, "eve")


def text_of(markup):
    """Markup as a person reads it."""
    words = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())
    return re.sub(r" ([,.:)])", r"\1", words)


def cards(page):
    """The text of each card by its heading, in their order."""
    found = re.findall(r"<li>\s*<h[23]><a [^>]*>(.*?)</a></h[23]>(.*?)</li>", page.text, re.DOTALL)
    return {html.unescape(name): text_of(rest) for name, rest in found}


def summary(page):
    """The values of the card on top, by name."""
    (card,) = re.findall(r'<dl class="card"[^>]*>(.*?)</dl>', page.text, re.DOTALL)
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card, re.DOTALL)
    return {text_of(name): text_of(value) for name, value in found}


def rows(page, caption):
    """The rows of a table by their first cell."""
    _, *found = Page(page.text).tables[caption]
    return {row[0]: row[1:] for row in found}


def statements(database, do):
    """The number of statements that something executes, without those of the looks for changes beside it."""
    seen, here = [], threading.get_ident()

    def note(*args):
        if threading.get_ident() == here:
            seen.append(args[2])

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        do()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return len(seen)


class TestFleet:
    @ON_SQLITE
    def test_an_empty_fleet_says_how_to_enrol(self, reader):
        page = reader.get("/fleet")
        assert page.status_code == 200
        assert "There is no node yet" in page.text
        assert "http://test/v1/enrolment-tokens" in page.text
        assert "ironlaw worker enrol --service http://test --token-file enrolment.token" in page.text
        assert "authorization: Bearer $IRONLAW_API_KEY" in page.text

    def test_every_node_has_its_state_and_devices(self, reader, fleet):
        fleet.add("on")
        fleet.add("off", seen=timedelta(hours=9))
        fleet.add("draining", members={"state": "draining"})
        fleet.add("put-out", members={"state": "quarantined", "reason": "OPERATOR"})
        fleet.add("gone", seen=timedelta(days=9), members={"state": "revoked"})
        fleet.add("new", seen=None, members={"inventory_sha256": None})
        fleet.add("host", device="cpu")
        page = reader.get("/fleet")
        shown = cards(page)
        gpu = "1 \N{MULTIPLICATION SIGN} NVIDIA H100 80GB HBM3, driver 575.51.03"
        assert list(shown)[:2] == ["off", "put-out"]
        assert list(shown)[-1] == "gone"
        assert shown["on"] == f"online heard less than a minute ago {gpu} No results in 7 days"
        assert shown["off"].startswith("offline heard 9 hours ago")
        assert shown["draining"].startswith("draining heard")
        assert shown["put-out"].startswith("quarantined heard")
        assert re.match(r"revoked heard \d+ \w+ \d{4}, ", shown["gone"])
        assert shown["new"].startswith("not heard from yet GPUs, not described yet")
        assert "Xeon of the tests, 2 logical processors" in shown["host"]
        told = summary(page)
        assert told["Nodes"].startswith("6 ")
        states = Counter(
            {name: int(number) for number, name in re.findall(r"(\d+) ([a-z ]+)", told["Nodes"][2:])}
        )
        assert states == Counter(
            {
                "online": 2,
                "offline": 1,
                "draining": 1,
                "quarantined": 1,
                "revoked": 1,
                "not heard from yet": 1,
            }
        )
        assert told["Devices"].startswith(
            "4 GPUs 4 \N{MULTIPLICATION SIGN} NVIDIA H100 80GB HBM3, 1 without GPUs"
        )
        assert told["Open regressions"] == "none"
        assert told["Results of the last 7 days"] == "none"

    def test_what_became_worse_is_on_top_with_what_it_was(self, reader, fleet):
        worse, *others = (fleet.add(name) for name in ("worse", "equal-1", "equal-2"))
        for node_id in (worse, *others):
            fleet.measure(node_id)
        fleet.measure(worse, SLOW)
        page = reader.get("/fleet")
        assert next(iter(cards(page))) == "worse"
        assert "6 results in 7 days 1 regression" in cards(page)["worse"]
        assert summary(page)["Open regressions"] == "1 on 1 node"
        assert summary(page)["Results of the last 7 days"] == "12 12 accepted"
        told = text_of(page.text)
        assert "copy on worse \N{MINUS SIGN}20% against" in told
        assert "of its earlier run" in told
        assert "of 2 equal nodes" in told
        assert f'href="/fleet/{worse}?benchmark=copy#over-time"' in page.text

    def test_regressions_of_a_revoked_node_are_closed(self, reader, fleet):
        node_id = fleet.add("gone", members={"state": "revoked"})
        fleet.measure(node_id)
        fleet.measure(node_id, SLOW)
        assert summary(reader.get("/fleet"))["Open regressions"] == "none"

    @ON_SQLITE
    def test_a_node_that_measures_shows_how_far_it_is(self, reader, fleet):
        node_id = fleet.add("busy")
        steps = [{"benchmark": name, "state": state} for name, state in (("a", "done"), ("b", "running"))]
        lease = {"state": "running", "progress": {"steps": steps}, "finished_at": None}
        run_id = fleet.measure(node_id, lease=lease)
        page = reader.get("/fleet")
        assert "Runs planned, 1 of 2 benchmarks" in cards(page)["busy"]
        assert f'href="/fleet/runs/{run_id}"' in page.text

    @ON_SQLITE
    def test_names_of_others_are_never_markup(self, reader, fleet):
        node_id = fleet.add(HOSTILE, members={"worker_version": HOSTILE}, model=HOSTILE)
        lease = {"state": "failed", "reason": "DEVICE_NOT_USABLE", "detail": HOSTILE}
        run_id = fleet.measure(
            node_id, lease=lease, verdict="suspect", findings=[{**THROTTLED, "detail": HOSTILE}]
        )
        (calibration_id,) = fleet.draw(node_id) or [None]
        paths = ["/fleet", f"/fleet/{node_id}", f"/fleet/runs/{run_id}"]
        if calibration_id:
            paths.append(f"/fleet/calibrations/{calibration_id}")
        for path in paths:
            page = reader.get(path)
            assert page.status_code == 200
            assert "<script" not in page.text
            assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page.text
            assert "[U+202E]" in page.text
            Page(page.text)

    def test_queries_do_not_grow_with_the_nodes(self, reader, fleet, database):
        def add(names):
            for name in names:
                fleet.measure(fleet.add(name), lease={"state": "running", "finished_at": None})

        add(["first"])
        few = statements(database, lambda: reader.get("/fleet"))
        add([f"more-{number}" for number in range(12)])
        many = statements(database, lambda: reader.get("/fleet"))
        assert few == many < 20

    @ON_SQLITE
    def test_a_list_that_is_cut_says_so(self, reader, fleet, monkeypatch):
        monkeypatch.setattr("service.fleet.overview.MOST_NODES", 2)
        for name in ("a", "b", "c"):
            fleet.add(name)
        page = reader.get("/fleet")
        assert list(cards(page)) == ["a", "b"]
        assert "These are the first 2 nodes by name" in page.text
        assert MOST_NODES == 200

    def test_other_tenants_see_nothing_of_it(self, callers, fleet):
        node_id = fleet.add("mine")
        run_id = fleet.measure(node_id)
        (calibration_id,) = fleet.draw(node_id)
        outside = Reader(callers.client, "eve", tenant=callers.tenant("strangers"))
        assert "There is no node yet" in outside.get("/fleet").text
        assert "There is no calibration yet" in outside.get("/fleet/calibrations").text
        assert refusal(outside.get(f"/fleet/{node_id}")) == (404, "NODE_NOT_FOUND")
        assert refusal(outside.get(f"/fleet/runs/{run_id}")) == (404, "BENCHMARK_RUN_NOT_FOUND")
        assert refusal(outside.get(f"/fleet/calibrations/{calibration_id}")) == (404, "CALIBRATION_NOT_FOUND")

    @ON_SQLITE
    def test_pages_need_the_scopes_of_what_they_show(self, callers, fleet):
        node_id = fleet.add("node")
        run_id = fleet.measure(node_id)
        fleet.measure(node_id, SLOW)
        (calibration_id,) = fleet.draw(node_id)
        lacking = Reader(callers.client, "ada", scopes=["quotes:*", "benchmark-results:read"])
        paths = ("/fleet", f"/fleet/{node_id}", f"/fleet/runs/{run_id}", "/fleet/calibrations")
        for path in (*paths, f"/fleet/calibrations/{calibration_id}"):
            assert refusal(lacking.get(path)) == (403, "SCOPE_REQUIRED")

        nodes_only = Reader(callers.client, "ada", scopes=["nodes:read"])
        for path in ("/fleet", f"/fleet/{node_id}"):
            page = nodes_only.get(path)
            assert page.status_code == 200
            for scope in ("benchmark-results:read", "benchmark-runs:read", "calibrations:read"):
                assert f"<code>{scope}</code>" in page.text
            for hidden in ("egression", "TB/s", "/fleet/runs/", "/fleet/calibrations", "accepted"):
                assert hidden not in page.text, (path, hidden)
        with_results = Reader(callers.client, "ada", scopes=RESULTS).get(f"/fleet/{node_id}")
        assert CAPTION in with_results.text
        assert "/fleet/runs/" not in with_results.text


class TestNode:
    def test_a_figure_stands_beside_the_data_sheet_and_equal_nodes(self, reader, fleet):
        node_id, other = fleet.add("node"), fleet.add("other")
        for each, planned in ((other, USUAL), (node_id, USUAL), (node_id, SLOW)):
            fleet.measure(each, planned, benchmarks=(*FEW, COLLECTIVES[0]))
        page = reader.get(f"/fleet/{node_id}")
        assert heading(page) == "node"
        shown = rows(page, CAPTION)
        yesterday = now() - timedelta(days=1)
        day = f"{yesterday.day} {yesterday:%B %Y}"
        measured, expected, share, nodes, runs, verdict = next(
            cells for name, cells in shown.items() if name.startswith("copy")
        )
        assert (measured, expected) == (
            "2.33\N{NO-BREAK SPACE}TB/s1 repeat",
            "3.35\N{NO-BREAK SPACE}TB/sdata sheet",
        )
        assert share == "69%"
        assert (nodes, runs) == ("\N{MINUS SIGN}20%1 node", "\N{MINUS SIGN}20%1 run")
        assert verdict == "accepted"
        assert any(name == f"gemm.bf16{day}" for name in shown)
        seconds = next(cells for name, cells in shown.items() if name.startswith("all_reduce"))
        assert seconds[1].endswith("equal nodes")
        assert seconds[2] == "100%lower is better"
        charts = Page(page.text).charts
        assert (
            charts["Share of the data sheet"]["texts"].count(("figure", "69%, 2.33\N{NO-BREAK SPACE}TB/s"))
            == 1
        )
        assert "copy over time" in charts
        assert "Regressions" in page.text

    def test_one_benchmark_is_shown_over_time(self, reader, fleet):
        node_id = fleet.add("node")
        for planned in (USUAL, SLOW, USUAL):
            fleet.measure(node_id, planned)
        page = reader.get(f"/fleet/{node_id}?benchmark=copy")
        _, *found = Page(page.text).tables["Runs of copy, the newest first"]
        assert [row[3] for row in found] == ["+25%", "\N{MINUS SIGN}20%", ""]
        assert "<option selected>copy</option>" in page.text
        assert re.search(r"<title[^>]*>copy over time</title>", page.text)
        other = reader.get(f"/fleet/{node_id}?benchmark=gemm.bf16")
        assert "<option selected>gemm.bf16</option>" in other.text

    @ON_SQLITE
    @pytest.mark.parametrize(
        ("wanted", "status"), [("never-measured", 200), ("", 200), ("Not%20a%20name", 422)]
    )
    def test_a_benchmark_that_it_has_not_measured_is_not_shown(self, reader, fleet, wanted, status):
        node_id = fleet.add("node")
        for _ in range(2):
            fleet.measure(node_id)
        page = reader.get(f"/fleet/{node_id}?benchmark={wanted}")
        assert page.status_code == status
        assert "never-measured" not in page.text

    @ON_SQLITE
    def test_verdicts_have_their_reasons_in_words(self, reader, fleet):
        node_id = fleet.add("node")
        fleet.measure(node_id, verdict="suspect", findings=[THROTTLED])
        page = text_of(reader.get(f"/fleet/{node_id}").text)
        reason = "Throttled: share of the window at a lower clock (observed 0.31, limit 0.01)."
        assert f"copy is suspect. Unlikely, not disproven: it is measured again. {reason}" in page

    @ON_SQLITE
    def test_a_result_that_waits_for_validation_says_so(self, reader, fleet, database):
        node_id = fleet.add("node")
        fleet.measure(node_id)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM benchmark_validations")
        page = reader.get(f"/fleet/{node_id}")
        assert {cells[-1] for cells in rows(page, CAPTION).values()} == {"not validated yet"}

    @ON_SQLITE
    def test_runs_say_why_they_failed(self, reader, fleet):
        node_id = fleet.add("node")
        lease = {"state": "failed", "reason": "DEVICE_NOT_USABLE", "detail": "GPU 3 has fallen off the bus"}
        fleet.measure(node_id, lease=lease)
        fleet.measure(node_id, lease={"state": "dead", "reason": "UNHEARD_OF"})
        page = text_of(reader.get(f"/fleet/{node_id}").text)
        assert "failed 3 of 3 benchmarks The device could not be used. GPU 3 has fallen off the bus" in page
        assert "It was lost too often. Its results so far are kept. Unheard of." in page

    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({"state": "quarantined", "reason": "TWO_HOSTS"}, "Two hosts use its credential."),
            ({"state": "quarantined", "reason": "OPERATOR"}, ":resume puts it back."),
            ({"state": "draining"}, "It finishes its run and gets no other."),
            ({"spool": {**SPOOL, "is_full": True, "rejected_count": 2}}, "has refused 2 of its results"),
        ],
    )
    @ON_SQLITE
    def test_a_node_that_needs_somebody_says_what_to_do(self, reader, fleet, members, said):
        node_id = fleet.add("node", members=members)
        assert said in reader.get(f"/fleet/{node_id}").text

    @ON_SQLITE
    def test_hardware_and_software_are_those_of_the_inventory(self, reader, fleet):
        node_id = fleet.add("node", power=600.0, ecc_mode=True)
        fleet.measure(node_id)
        fleet.draw(node_id)
        page = reader.get(f"/fleet/{node_id}")
        (device,) = rows(page, "Devices").values()
        assert device[0] == "NVIDIA H100 80GB HBM3"
        assert device[2] == "600\N{NO-BREAK SPACE}Wdefault 700\N{NO-BREAK SPACE}W"
        assert device[4] == "ECC on"
        assert "<dt>driver</dt><dd>575.51.03</dd>" in page.text
        assert "Xeon of the tests, 2 logical processors" in page.text
        assert summary(page)["Calibration"].startswith("number 1 since")

    @ON_SQLITE
    def test_a_node_without_results_says_how_to_ask_for_some(self, reader, fleet):
        node_id = fleet.add("node")
        page = html.unescape(reader.get(f"/fleet/{node_id}").text)
        assert "It has measured nothing yet." in page
        assert f'{{"suite_id": "gpu-quick", "node_id": "{node_id}"}}' in page

    @ON_SQLITE
    def test_many_benchmarks_are_folded_with_the_newsworthy_first(self, reader, fleet):
        node_id = fleet.add("node")
        many = [(f"{family}.{number}", *FEW[1][1:]) for family in "abc" for number in range(6)]
        fleet.measure(node_id, benchmarks=many)
        fleet.measure(node_id, lambda *_: 1e12, benchmarks=[("c.5", *FEW[1][1:])])
        page = reader.get(f"/fleet/{node_id}")
        shown, folded = (rows(page, caption) for caption in (CAPTION, "More last results"))
        assert len(shown) == 12
        assert len(folded) == 6
        assert any(name.startswith("c.5") for name in shown)
        assert Counter(name[0] for name in shown) == Counter({"a": 4, "b": 4, "c": 4})
        assert "6 more benchmarks" in page.text

    def test_queries_do_not_grow_with_its_results(self, reader, fleet, database):
        node_id = fleet.add("node")
        for _ in range(2):
            fleet.measure(node_id)
        few = statements(database, lambda: reader.get(f"/fleet/{node_id}"))
        for _ in range(6):
            fleet.measure(node_id, benchmarks=(*FEW, ("other", *FEW[1][1:])))
            fleet.measure(fleet.add("another"))
        many = statements(database, lambda: reader.get(f"/fleet/{node_id}"))
        assert few == many < 30


@ON_SQLITE
class TestRun:
    def test_figures_have_their_verdicts_and_reasons(self, reader, fleet):
        node_id = fleet.add("node")
        label = {**THROTTLED, "rule": "conditions.power_capped", "verdict": "accepted", "detail": "a label"}
        run_id = fleet.measure(node_id, verdict="suspect", findings=[label, THROTTLED])
        page = reader.get(f"/fleet/runs/{run_id}")
        assert heading(page) == "planned on node"
        told = text_of(page.text)
        assert "copy 2.91 TB/s suspect 1 repeat" in told
        assert "copy repeat 1 Throttled: share" in told
        assert told.index("Throttled: share") < told.index("Power capped: a label")
        assert "has the 3 results with their conditions" in told

    def test_failures_are_told_in_words(self, reader, fleet):
        node_id = fleet.add("node")
        run_id = fleet.measure(node_id)
        fleet.fail(run_id, "OUT_OF_MEMORY")
        page = text_of(reader.get(f"/fleet/runs/{run_id}").text)
        assert "Nothing was measured." in page
        assert "copy, repeat 1: Memory ran out." in page

    def test_a_run_that_no_node_has_taken(self, reader, fleet):
        node_id = fleet.add("node")
        lease = {"state": "waiting", "node_id": None, "progress": {}, "begun_at": None, "finished_at": None}
        run_id = fleet.measure(node_id, lease=lease)
        fleet.fail(run_id, "CRASHED")
        page = reader.get(f"/fleet/runs/{run_id}")
        assert "No node has taken it yet." in page.text
        assert summary(page)["Node"] == "any with GPUs"
        assert "gpu" not in heading(page)
        assert "any" in text_of(reader.get("/fleet").text.partition("Newest runs")[2])

    def test_a_running_one_says_what_is_still_to_come(self, reader, fleet):
        node_id = fleet.add("node")
        steps = [
            {"benchmark": name, "state": state} for name, state in (("one", "running"), ("two", "waiting"))
        ]
        lease = {
            "state": "running",
            "progress": {"steps": steps},
            "finished_at": None,
            "cancel_requested": True,
        }
        page = text_of(reader.get(f"/fleet/runs/{fleet.measure(node_id, lease=lease)}").text)
        assert "running 0 of 2 benchmarks" in page
        assert "Its cancellation is requested." in page
        assert "one (running), two" in page


class TestCalibrations:
    @ON_SQLITE
    def test_constants_are_those_before_and_after(self, reader, fleet):
        node_id = fleet.add("rack-7")
        fleet.measure(node_id, SLOW)
        (first,) = fleet.draw(node_id)
        page = reader.get(f"/fleet/calibrations/{first}")
        assert heading(page) == "NVIDIA H100 80GB HBM3, calibration 1"
        assert summary(page)["Device"] == "NVIDIA H100 SXM5 80GB"
        assert summary(page)["Measured under"] == "700 W, driver 575"
        before, after, change, share = rows(page, "Constants before, of the reference set, and after")[
            "Streaming kernels"
        ]
        assert (before, after) == ("2.91\N{NO-BREAK SPACE}TB/s", "2.33\N{NO-BREAK SPACE}TB/s")
        assert (change, share) == ("\N{MINUS SIGN}20%", "70%of 3.35\N{NO-BREAK SPACE}TB/s")

        for _ in range(3):
            fleet.measure(node_id)
        (second,) = fleet.draw(node_id)
        shown = rows(
            reader.get(f"/fleet/calibrations/{second}"), "Constants before, of calibration 1, and after"
        )
        assert shown["Streaming kernels"][2] == "+25%"
        assert shown["Large matrix products, bf16"][2] == "0.0%"
        assert "superseded" in reader.get(f"/fleet/calibrations/{first}").text

    def test_an_active_one_names_the_answers_that_rest_on_it(self, reader, fleet):
        node_id = fleet.add("rack-7")
        run_id = fleet.measure(node_id)
        (calibration_id,) = fleet.draw(node_id)
        page = reader.get(f"/fleet/calibrations/{calibration_id}")
        told = text_of(page.text)
        assert "The node rack-7, by its id calibrated_node" in told
        assert "NVIDIA H100 SXM5 80GB, on any node calibrated_sku" in told
        assert "Another accelerator of the generation Hopper calibrated_generation" in told
        assert f'href="/fleet/runs/{run_id}"' in page.text
        assert summary(page)["Rests on"] == "3 results of 1 run"

    def test_they_are_listed_with_their_states(self, reader, fleet, database):
        node_id = fleet.add("rack-7")
        fleet.measure(node_id)
        (first,) = fleet.draw(node_id)
        fleet.measure(node_id, SLOW)
        fleet.draw(node_id)
        store_calibration(database)
        page = reader.get("/fleet/calibrations")
        assert len(re.findall(r"<h2><a href=\"/fleet/calibrations/", page.text)) == 3
        assert re.findall(r'class="state [^"]*">(\w+)<', page.text) == ["active", "active", "superseded"]
        assert "imported" in page.text
        assert f'<a href="/fleet/{node_id}">rack-7</a>, driver 575, 700 W' in page.text
        with database.open_writer() as session:
            calibrations.withdraw_calibration(session, "default", first, f"too hot {HOSTILE}")
        page = reader.get(f"/fleet/calibrations/{first}")
        assert "too hot" in page.text
        assert "<script" not in page.text
        assert "Answers that rest on it" not in page.text

    @ON_SQLITE
    def test_a_processor_has_nothing_before(self, reader, fleet):
        node_id = fleet.add("host", device="cpu")
        fleet.measure(node_id, lambda *_: 1e10, benchmarks=[one for one in FEW if one[0] != "power.context"])
        (calibration_id,) = fleet.draw(node_id)
        page = reader.get(f"/fleet/calibrations/{calibration_id}")
        shown = rows(page, "Constants; no data sheet or earlier set has them")
        assert shown["Streaming kernels"] == ["10\N{NO-BREAK SPACE}GB/s"]
        assert "beside an accelerator given by its figures" in page.text

    @ON_SQLITE
    def test_an_import_says_so(self, reader, database):
        page = reader.get(f"/fleet/calibrations/{store_calibration(database)}")
        assert summary(page)["Rests on"] == "an import"
        assert page.status_code == 200


@ON_SQLITE
def test_the_header_leads_to_the_fleet(reader):
    assert '<a href="/fleet">Fleet</a>' in reader.get("/budgets").text


@ON_SQLITE
class TestInABrowser:
    pytestmark = LOOPBACK

    @pytest.fixture
    def shown(self, app, database):
        attach(app, database, OPEN)
        fleet = ShownFleet(database)
        node_id, other = fleet.add("rack-7"), fleet.add("a-host-with-a-name-that-is-rather-long-01")
        fleet.add("off", seen=timedelta(hours=9))
        for planned in (USUAL, USUAL, SLOW):
            fleet.measure(node_id, planned)
        run_id = fleet.measure(other, verdict="suspect", findings=[THROTTLED])
        (calibration_id,) = fleet.draw(node_id)
        with served(app) as address:
            yield {
                "fleet": f"{address}/fleet",
                "node": f"{address}/fleet/{node_id}",
                "run": f"{address}/fleet/runs/{run_id}",
                "calibrations": f"{address}/fleet/calibrations",
                "calibration": f"{address}/fleet/calibrations/{calibration_id}",
            }

    @pytest.mark.parametrize(
        ("width", "scheme"), [(NARROW, "dark"), (PHONE, "light"), (DESKTOP, "dark"), (DESKTOP, "light")]
    )
    def test_every_page_is_read_by_everybody(self, shown, window, width, scheme):
        page = window(width, color_scheme=scheme)
        for name, address in shown.items():
            page.goto(address)
            assert violations(page) == [], name
            assert overflow(page) == 0, name

    def test_a_benchmark_is_chosen_without_scripts(self, shown, window):
        page = window(DESKTOP, java_script_enabled=False)
        page.goto(shown["fleet"])
        page.get_by_role("link", name="rack-7").first.click()
        page.get_by_label("Benchmark").select_option("gemm.bf16")
        page.get_by_role("button", name="Show").click()
        assert page.get_by_role("img", name="gemm.bf16 over time").is_visible()

    def test_an_empty_fleet_is_read_by_everybody(self, app, database, window):
        attach(app, database, OPEN)
        with served(app) as address:
            page = window(NARROW)
            page.goto(f"{address}/fleet")
            assert violations(page) == []
            assert overflow(page) == 0
