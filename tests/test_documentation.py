"""The documentation of the API: documents by audience, and pages of operations that open at once."""

import asyncio
import gzip
import json
import re
import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

import pytest
from fastapi import FastAPI

from service.app.application import create_app
from service.app.documentation import router
from service.app.documentation.audiences import build_audience_document, list_references
from service.app.documentation.documents import ApiDocuments
from service.app.documentation.operations import list_groups
from service.app.openapi_order import FEW, FIRST_MEMBERS
from service.app.openapi_tags import TAGS
from service.kit.http.packed import accepts_gzip
from service.kit.http.problems import TooBusy
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import JsonRoute
from tests.applications import OPEN, attach
from tests.browsing import DESKTOP, LOOPBACK, PHONE, overflow, served, violations
from tests.conftest import Client
from tests.contract.test_document import DOCUMENT, INPUTS, OPERATIONS, SCHEMAS

GZIP = {"accept-encoding": "gzip, br"}
MOST_ELEMENTS = 4000
MOST_BYTES = 100_000
"""Of the page of all operations, before it is compressed; bounds with a wide margin."""


def operations_of(document):
    return {each["operationId"] for item in document["paths"].values() for each in item.values()}


@pytest.fixture(scope="module")
def app():
    """An application whose document is the committed one, which takes no time to build."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(router, "build_openapi_document", lambda _: DOCUMENT)
        yield create_app(OPEN)


@pytest.fixture(scope="module")
def documentation(app, databases_of):
    """A client of it."""
    maker = databases_of("sqlite")
    attach(app, maker.loaded())
    client = Client(app)
    yield client
    client.close()
    maker.dispose()


class TestAudiences:
    def test_each_operation_is_for_one(self):
        users, operators = (
            operations_of(build_audience_document(DOCUMENT, each)) for each in ("users", "operators")
        )
        assert users | operators == OPERATIONS.keys()
        assert not users & operators
        assert {"estimate_memory", "create_plan", "create_benchmark_run", "create_webhook"} <= users
        assert {"claim_lease", "report_benchmark_result", "create_tenant", "heartbeat_node"} <= operators

    @pytest.mark.parametrize("audience", ["users", "operators"])
    def test_a_document_has_the_components_that_it_needs(self, audience):
        document = build_audience_document(DOCUMENT, audience)
        needed = {*list_references(document["paths"])}
        components = {
            (part, name)
            for part, each in document["components"].items()
            for name in each
            if part != "securitySchemes"
        }
        assert needed <= components
        reached = {*list_references(document["components"])} | needed
        assert components == reached
        assert len(components) < len([*SCHEMAS])
        tags = {each["tags"][0] for item in document["paths"].values() for each in item.values()}
        assert [tag["name"] for tag in document["tags"]] == [
            tag["name"] for tag in DOCUMENT["tags"] if tag["name"] in tags
        ]

    def test_the_complete_document_stays_as_it_is(self, documentation):
        before = json.dumps(DOCUMENT)
        assert documentation.get("/openapi.json").json() == DOCUMENT
        for audience in ("users", "operators"):
            told = documentation.get(f"/openapi/{audience}.json").json()
            assert told == build_audience_document(DOCUMENT, audience)
        assert json.dumps(DOCUMENT) == before
        assert documentation.get("/openapi/nobody.json").status_code == 422


class TestBuilding:
    def test_the_complete_document_is_built_once(self):
        calls = []

        def build():
            calls.append(1)
            return DOCUMENT

        documents = ApiDocuments(build)
        with ThreadPoolExecutor(4) as pool:
            found = [*pool.map(lambda _: documents.get(), range(8))]
        assert (calls, found) == ([1], [DOCUMENT] * 8)
        assert documents.pack() is documents.pack()

    def test_the_list_builds_no_route(self):
        """A route of its own: applications share theirs, and an earlier test may have asked them."""
        route = JsonRoute("/v1/sites", lambda: None, tags=["sites"], name="list_sites")
        assert any(list_groups([route], TAGS).values())
        assert "_build" in vars(route)

    def test_the_list_waits_for_no_document(self, monkeypatch):
        """It takes seconds to build: that begins once the page is sent."""
        order = []

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            order.append(message["type"])

        monkeypatch.setattr(router, "build_openapi_document", lambda _: order.append("built") or DOCUMENT)
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
        app.state.request_queues = RequestQueues()
        router.add_documentation(app)
        scope = {"type": "http", "method": "GET", "path": "/docs", "query_string": b"", "headers": []}
        asyncio.run(app({**scope, "root_path": "", "state": {}}, receive, send))
        assert order == ["http.response.start", "http.response.body", "built"]

    def test_callers_who_wait_for_it_leave_threads_to_others(self):
        go_on, patience = threading.Event(), 60
        documents = ApiDocuments(lambda: go_on.wait(patience) and DOCUMENT)
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(documents.get) for _ in range(4)]
            refused, _ = wait(asked, patience, return_when=FIRST_EXCEPTION)
            assert isinstance(refused.pop().exception(), TooBusy)
            documents.prepare()  # says nothing: others wait already
            go_on.set()
            answers = [one.exception() or one.result() for one in asked]
        assert answers.count(DOCUMENT) == 3
        assert documents.get() == DOCUMENT


class TestTransfer:
    PATHS = ("/openapi.json", "/openapi/users.json", "/docs", "/docs/reader.js", "/docs/shapes/Problem")

    @pytest.mark.parametrize("path", PATHS)
    def test_it_is_compressed_and_kept(self, documentation, path):
        plain = documentation.get(path, headers={"accept-encoding": "identity"})
        packed = documentation.get(path, headers=GZIP)
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content in (plain.content, gzip.compress(plain.content, mtime=0))
        assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
        assert packed.headers["etag"] == plain.headers["etag"]
        assert packed.headers["vary"] == "Accept-Encoding"
        assert packed.headers["cache-control"] == "no-cache"
        again = documentation.get(path, headers={**GZIP, "if-none-match": packed.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == packed.headers["etag"]

    @pytest.mark.parametrize(
        ("accepted", "is_packed"),
        [
            ("gzip", True),
            ("br;q=1, gzip;q=0.1", True),
            ("*", True),
            ("gzip;q=0", False),
            ("br", False),
            ("", False),
        ],
    )
    def test_only_who_can_read_it_gets_it_compressed(self, accepted, is_packed):
        assert accepts_gzip(accepted) is is_packed


class TestPages:
    def test_the_list_has_every_operation_and_is_small(self, documentation):
        answer = documentation.get("/docs")
        linked = re.findall(r'href="/docs/operations/(\w+)"', answer.text)
        assert sorted(linked) == sorted(OPERATIONS)
        assert len(answer.text) < MOST_BYTES
        parts = re.findall(r'id="([^"]+)"', answer.text)
        assert len(parts) == len({*parts})
        for name, (_, _, operation) in OPERATIONS.items():
            assert operation["summary"] in answer.text, name

    @pytest.mark.parametrize("name", OPERATIONS)
    def test_of_an_operation(self, documentation, name):
        _, path, operation = OPERATIONS[name]
        answer = documentation.get(f"/docs/operations/{name}")
        assert answer.status_code == 200
        assert f"<h1>{operation['summary']}</h1>" in answer.text
        assert f"<code>{path}</code>" in answer.text
        for parameter in operation.get("parameters", []):
            assert f"<code>{parameter['name']}</code>" in answer.text
        for body in operation.get("requestBody", {}).get("content", {}).values():
            for key, example in body["examples"].items():
                assert f'id="{key}"' in answer.text
                assert example["summary"] in answer.text

    def test_of_every_shape(self, documentation):
        for name in SCHEMAS:
            answer = documentation.get(f"/docs/shapes/{name}")
            assert answer.status_code == 200
            for linked in re.findall(r'href="/docs/shapes/(\w+)"', answer.text):
                assert linked in SCHEMAS
            for member in SCHEMAS[name].get("properties", {}):
                assert f"<code>{member}</code>" in answer.text, name

    @pytest.mark.parametrize(
        "path", ["/docs/operations/none", "/docs/shapes/None", "/docs/operations/x%3Cb%3E"]
    )
    def test_what_is_not_there_is_a_page_too(self, documentation, path):
        answer = documentation.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
        assert "<b>" not in answer.text

    def test_the_second_reader_leads_to_the_first(self, documentation):
        answer = documentation.get("/redoc")
        assert (answer.status_code, answer.headers["location"]) == (308, "/docs")


class TestOrder:
    """The few members that people use first come first."""

    def test_of_large_requests(self):
        large = [name for name in INPUTS if len(SCHEMAS[name].get("properties", {})) > FEW]
        assert len(large) > 50
        for name in large:
            members, first = [*SCHEMAS[name]["properties"]], SCHEMAS[name].get(FIRST_MEMBERS)
            if first is None:
                assert name.startswith(("Node", "DeviceTelemetry", "Training")) or name.endswith(
                    ("Patch", "Search", "Work", "Input")
                ), f"{name}: say in service/app/openapi_order.py what comes first"
            else:
                assert members[: len(first)] == first
                assert {*SCHEMAS[name].get("required", ())} <= {*first}
                assert len(first) < len(members)

    def test_the_page_folds_the_rest(self, documentation):
        told = documentation.get("/docs/shapes/TrainingWorkloadInput").text
        first, _, more = told.partition('<details class="more">')
        assert first.index("<code>sequence_length</code>") < first.index("<code>optimizer</code>")
        assert "<code>weight_average</code>" in more
        assert "<code>weight_average</code>" not in first


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
class TestInABrowser:
    """The window fails a test whose page says anything in the console."""

    pytestmark = LOOPBACK

    @pytest.fixture
    def address(self, app, database):
        attach(app, database)
        with served(app) as address:
            yield address

    def test_an_operation_is_found(self, address, window):
        page = window(DESKTOP)
        page.goto(f"{address}/docs")
        assert page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
        assert page.get_by_role("link", name="Estimate the memory of a workload").is_visible()
        assert not page.get_by_text("/v1/leases:claim").is_visible()
        page.get_by_label("Find an operation").fill("claim")
        assert page.get_by_text("/v1/leases:claim").is_visible()
        assert page.get_by_text("1 found").is_visible()
        assert not page.get_by_role("link", name="Estimate the memory of a workload").is_visible()
        page.get_by_label("Find an operation").fill("")
        assert page.get_by_role("link", name="Estimate the memory of a workload").is_visible()
        page.goto(f"{address}/docs#quotes")
        assert page.get_by_role("link", name="Submit a quote for approval").is_visible()

    def test_an_example_is_sent(self, address, window):
        page = window(DESKTOP)
        page.goto(f"{address}/docs/operations/estimate_memory")
        page.get_by_label("Example").select_option("fine_tuning")
        assert json.loads(page.get_by_label("Body").input_value())["workload"]["kind"] == "training"
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200 OK").wait_for()
        answer = json.loads(page.locator("#answer").inner_text())
        assert answer["per_device"]["total_bytes"]["value"] > 0

    def test_parameters_go_where_they_belong(self, address, window):
        page = window(DESKTOP, complains=True)
        page.goto(f"{address}/docs/operations/list_accelerators")
        page.locator('[name="page_size"]').fill("1")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200 OK").wait_for()
        assert len(json.loads(page.locator("#answer").inner_text())["items"]) == 1
        page.goto(f"{address}/docs/operations/get_accelerator")
        page.locator('[name="id"]').fill("none/such")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("404").first.wait_for()

    @pytest.mark.parametrize("width", [PHONE, DESKTOP])
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_pages_are_read_by_everybody(self, address, window, width, scheme):
        for path in (
            "/docs",
            "/docs/operations/create_plan",
            "/docs/shapes/ModelReference",
            "/docs/problems",
        ):
            page = window(width, color_scheme=scheme)
            page.goto(address + path)
            assert violations(page) == [], path
            assert overflow(page) == 0, path

    def test_without_scripts_everything_is_there_but_the_filter(self, address, window):
        page = window(DESKTOP, java_script_enabled=False)
        page.goto(f"{address}/docs/operations/estimate_memory")
        assert page.get_by_role("heading", name="Examples").is_visible()
        assert not page.get_by_role("button", name="Send").is_visible()
