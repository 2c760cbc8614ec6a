"""Clients generated from the document: they are made without a warning, type-check and get real answers."""

import csv
import importlib
import json
import runpy
import subprocess
import sys
from contextlib import closing

import httpx
import pytest
from typer.testing import CliRunner

from service.app.examples import EXAMPLES, REFERENCE_QUESTION
from service.cli.main import app
from tests.contract import clients
from tests.contract.newer import MEMBER, VALUE, between, newer_answer, serving_newer
from tests.contract.node import NODE, node
from tests.contract.tenant import approving, tenant
from tests.contract.test_document import OPERATIONS, ROOT

SERVED = EXAMPLES["estimate_memory"]
QUOTED = {name: value for name, value in EXAMPLES["create_quote"].items() if name != "cost_center_id"}
OFFER, CHANGE, MODEL = (EXAMPLES[name] for name in ("create_offer", "update_offer", "import_model"))


def shown(name):
    """The answer that the document shows."""
    return OPERATIONS[name][2]["responses"]["200"]["content"]["application/json"]["example"]


def offer_of(language):
    """An offer of its own for each language: versions of a row go on when it comes back."""
    return {**OFFER, "id": f"{OFFER['id']}-{language}"}


def assert_sound(told, server, offer):
    """What a client was told, whichever language it is written in."""
    answers = {name: shown(f"estimate_{name}") for name in ("memory", "throughput")}
    accelerators = server.client.get("/v1/accelerators", params={"page_size": 500}).json()["items"]
    assert told == {
        "memory": [True, answers["memory"]["per_device"]["known_bytes"]],
        "throughput": pytest.approx(answers["throughput"]["output_tokens_per_second"]["value"], rel=1e-8),
        "cost": "1415571.28",
        "table": "1415571.28",
        "rent": {
            **dict.fromkeys(("amount", "low", "high"), "1415571.28"),
            "currency_code": "USD",
            "basis": "assumed",
        },
        "break_even_runs": pytest.approx(21.19, abs=0.005),
        "gaps": told["gaps"],
        "batch": [8_030_261_248] * 2,
        "created": [201, f"/v1/offers/{offer['id']}", '"1"'],
        "read": "2.49",
        "changed": [2, "2.35"],
        "stale": [412, "VERSION_CONFLICT", None, None],
        "deleted": 204,
        "gone": [404, "ROW_NOT_FOUND", None, None],
        "ids": sorted((row["id"] for row in accelerators), reverse=True),
        "imported": 1_100_048_384,
        "refused": [422, "NO_SOUND_ANSWER", "/model/id", "UNKNOWN_REFERENCE"],
    }
    assert {"/electricity/total", "/carbon/location_based_kg_co2e"} <= set(told["gaps"])
    assert len(told["ids"]) > 20


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with tenant(tmp_path_factory.mktemp("clients") / "data") as served:
        yield served


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return clients.typescript(tmp_path_factory.mktemp("typescript"))


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return clients.python(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def imported(package):
    """The package can be imported, and is forgotten afterwards with what the examples share."""
    places = [str(package.parent), str(clients.CLIENTS / "python")]
    known = set(sys.modules)
    sys.path[:0] = places
    yield package.name
    for place in places:
        sys.path.remove(place)
    for name in set(sys.modules) - known:
        del sys.modules[name]


@pytest.mark.enable_socket
def test_typescript_gets_answers(program, service):
    offer = offer_of("typescript")
    given = {"served": SERVED, "offer": offer, "change": CHANGE, "model": MODEL}
    told = node(program / "calls.js", service.address, service.key, json.dumps(given))
    assert_sound(json.loads(told), service, offer)


class PythonClient:
    """The generated package, with its operations and shapes by name."""

    def __init__(self, package, service):
        self._package = package
        self.models = importlib.import_module(f"{package}.models")
        client = importlib.import_module(f"{package}.client").AuthenticatedClient
        options = {"httpx_args": {"trust_env": False}, "raise_on_unexpected_status": True}
        self._client = client(service.address, service.key, **options)

    def shape(self, name, document):
        return getattr(self.models, name).from_dict(document)

    def ask(self, tag, operation, *arguments, **members):
        """The whole response of an operation; a 2xx has the shape of its answer, an error is a Problem."""
        module = importlib.import_module(f"{self._package}.api.{tag}.{operation}")
        response = module.sync_detailed(*arguments, client=self._client, **members)
        assert isinstance(response.parsed, self.models.Problem) == (response.status_code >= 400)
        return response

    def close(self):
        self._client.get_httpx_client().close()


def refusal(response):
    problem = response.parsed
    field = problem.errors[0] if problem.errors else None
    return [problem.status, problem.code, field and field.pointer, field and field.code]


def told_to_python(client, offer):
    """The same calls as in calls.ts."""
    shape, ask = client.shape, client.ask
    cost = {name: value for name, value in REFERENCE_QUESTION.items() if name != "purchase"}
    memory = ask("estimates", "estimate_memory", body=shape("MemoryEstimateRequest", SERVED)).parsed
    throughput = ask(
        "estimates", "estimate_throughput", body=shape("ThroughputEstimateRequest", SERVED)
    ).parsed
    rented = ask("estimates", "estimate_cost", body=shape("CostEstimateRequest", cost)).parsed
    exported = shape("CostExportRequest", {**cost, "starts_at": "2026-12-01T00:00:00Z"})
    table = ask("estimates", "estimate_cost_export", body=exported).parsed
    question = shape("UtilityBillRequest", REFERENCE_QUESTION)
    bill = ask("estimates", "estimate_utility_bill", body=question).parsed
    several = shape("MemoryEstimateBatchRequest", {"requests": [SERVED, SERVED]})
    batch = ask("estimates", "estimate_memory_batch", body=several).parsed

    row, change = offer["id"], shape("OfferPatch", CHANGE)
    created = ask("offers", "create_offer", body=shape("OfferRequest", offer))
    etag = created.headers["etag"]
    read = ask("offers", "get_offer", row).parsed
    changed = ask("offers", "update_offer", row, body=change, if_match=etag)
    stale = ask("offers", "update_offer", row, body=change, if_match=etag)
    deleted = ask("offers", "delete_offer", row, if_match=changed.headers["etag"])
    gone = ask("offers", "get_offer", row)

    ids, token = [], ""
    order = client.models.CatalogRowOrder("-id")
    while token is not None:
        page = ask("accelerators", "list_accelerators", page_size=20, page_token=token, order_by=order).parsed
        ids += [accelerator.id for accelerator in page.items]
        token = page.next_page_token

    imported = ask("models", "import_model", body=shape("ModelImportRequest", MODEL)).parsed.model
    ask("models", "delete_model", imported.id, if_match="*")
    unknown = {**SERVED, "model": {"source": "catalog", "id": "nothing"}}
    refused = ask("estimates", "estimate_memory", body=shape("MemoryEstimateRequest", unknown))
    return {
        "memory": [memory.fits, memory.per_device.known_bytes],
        "throughput": throughput.output_tokens_per_second.value,
        "cost": rented.total.amount,
        "table": next(csv.DictReader(table.splitlines()))["BilledCost"],
        "rent": bill.rent.total.to_dict(),
        "break_even_runs": bill.break_even_runs.value,
        "gaps": [gap.pointer for gap in bill.gaps],
        "batch": [answer.parameter_count for answer in batch.results],
        "created": [created.status_code, created.headers["location"], etag],
        "read": read.price_per_device_hour.amount,
        "changed": [changed.parsed.version, changed.parsed.price_per_device_hour.amount],
        "stale": refusal(stale),
        "deleted": deleted.status_code,
        "gone": refusal(gone),
        "ids": ids,
        "imported": imported.parameter_count,
        "refused": refusal(refused),
    }


@pytest.mark.enable_socket
def test_python_gets_answers(imported, service):
    offer = offer_of("python")
    with closing(PythonClient(imported, service)) as client:
        assert_sound(told_to_python(client, offer), service, offer)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if newer_answer(name)[1]])
def test_python_reads_what_a_newer_service_answers(name, imported):
    status, answer = newer_answer(name)
    tag = OPERATIONS[name][2]["tags"][0].replace("-", "_")
    module = importlib.import_module(f"{imported}.api.{tag}.{name}")
    client = importlib.import_module(f"{imported}.client").Client("http://testserver")
    read = module._parse_response(client=client, response=httpx.Response(status, json=answer)).to_dict()
    assert read[MEMBER] == answer[MEMBER]
    if "state" in answer:
        assert read["state"] == answer["state"] == VALUE


def quotes_of(service):
    return service.client.get("/v1/quotes", params={"page_size": 500}).raise_for_status().json()["items"]


@pytest.fixture
def approver(service):
    with approving(service) as name:
        yield name


@pytest.fixture(params=["python", "typescript"])
def example(request, service, tmp_path, monkeypatch):
    """Runs an example of either language; its lines and its status."""
    monkeypatch.setenv("IRONLAW_URL", service.address)
    monkeypatch.setenv("IRONLAW_API_KEY", service.key)
    monkeypatch.chdir(tmp_path)
    if request.param == "typescript":
        program = request.getfixturevalue("program")

        def told(name, *arguments):
            command = [NODE, program / f"{name}.js", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            return (done.stdout + done.stderr).splitlines(), done.returncode

        return told
    request.getfixturevalue("imported")
    capture = request.getfixturevalue("capsys")

    def heard(name, *arguments):
        """In this process: half of a start are imports."""
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        status = 0
        try:
            runpy.run_path(str(clients.CLIENTS / "python" / f"{name}.py"), run_name="__main__")
        except SystemExit as ended:
            status = ended.code
        return capture.readouterr().out.splitlines(), status

    return heard


@pytest.mark.enable_socket
class TestExamples:
    """What a reader of clients/ would run, in both languages."""

    def test_of_an_estimate(self, example):
        lines, status = example("estimate")
        assert status == 0, lines
        assert lines[0] == "rent 1415571.28 USD, purchase 30000000.00 USD"
        assert lines[1] == "the purchase pays itself back after 21.19 runs"

    def test_of_an_estimate_of_a_newer_service(self, example, service, monkeypatch):
        with serving_newer(service.address, "estimate_utility_bill") as address:
            monkeypatch.setenv("IRONLAW_URL", address)
            lines, status = example("estimate")
        assert status == 0, lines
        assert lines[0] == "rent 1415571.28 USD, purchase 30000000.00 USD"

    def test_of_a_plan(self, example):
        lines, status = example("plan")
        assert status == 0, lines
        assert [line[:3] for line in lines] == ["1. ", "2. ", "3. "]
        costs = [float(line.split()[-2]) for line in lines]
        assert costs == sorted(costs)

    def test_of_an_approval(self, example, approver):
        lines, status = example("approval")
        assert status == 0, lines
        assert lines[0].endswith(": 1415571.28 USD")
        assert lines[1] == f"Head of research: 1 of {approver}"
        assert lines[3:] == [f"{approver} says approve", "approved"]

    @pytest.mark.usefixtures("approver")
    def test_of_an_approval_whose_answers_are_lost(self, example, service, monkeypatch):
        """The first answer to each write does not arrive; asked for again, nothing is done twice."""
        before, lost = len(quotes_of(service)), set()

        def change(path, answer):
            is_first = answer.request.method == "POST" and "validate_only" not in path and path not in lost
            lost.add(path)
            return None if is_first else answer.content

        with between(service.address, change) as address:
            monkeypatch.setenv("IRONLAW_URL", address)
            lines, status = example("approval")
        assert status == 0, lines
        assert lines[-1] == "approved"
        assert len(quotes_of(service)) == before + 1

    def test_of_the_catalog(self, example, request):
        own = f"ours-{request.node.callspec.id}"  # versions of a row go on when it comes back
        lines, status = example("catalog", ROOT / "tests/data/configs/mistral-7b.json", own)
        assert status == 0, lines
        assert lines == [
            "7,241,732,096 parameters, note: To be checked",
            "listed: 1 time, in pages of 20 rows",
            "version 2, note: none",
            "refused: VERSION_CONFLICT",
        ]

    def test_of_a_budget(self, example, request):
        lines, status = example("budget", request.node.callspec.id)
        assert status == 0, lines
        assert lines == ["committed 0.00 USD, spent 0.00 USD, left 2000000.00 USD"]

    def test_of_measurements(self, example, service, tmp_path):
        lines, status = example("measurements", tmp_path / "token")
        assert status == 0, lines
        assert "measured 0.0092" in lines[0]
        assert lines[-1].endswith(f"--token-file {tmp_path / 'token'}")
        token = tmp_path / "token"
        assert token.stat().st_mode & 0o777 == 0o600
        assert token.read_text() not in "\n".join(lines)
        imported, *_ = service.client.get("/v1/evidence").json()["items"]
        withdrawn = service.client.post(f"/v1/evidence/{imported['id']}:withdraw", json={"reason": "shown"})
        assert withdrawn.status_code == 200

    def test_of_actuals(self, example, service, tmp_path):
        """Billed as quoted: the export of a quote, imported, is what was expected of it."""
        quote = service.client.post("/v1/quotes", json=QUOTED).raise_for_status().json()
        bill = tmp_path / "own-bill.csv"
        bill.write_text(service.client.get(f"/v1/quotes/{quote['id']}/focus").raise_for_status().text)
        lines, status = example("actuals", bill, quote["id"])
        assert status == 0, lines
        assert lines[-1].lower() == "ratio 1.000, within the interval: true"

    def test_of_a_webhook(self, example):
        lines, status = example("webhook")
        assert status == 0, lines
        assert len(lines) == 1
        assert lines[0].startswith("webhook.test: ")


@pytest.mark.enable_socket
def test_a_running_service_tells_a_difference_and_stores_nothing(service, tmp_path, monkeypatch):
    monkeypatch.setenv("IRONLAW_API_KEY", service.key)
    question = {name: value for name, value in REFERENCE_QUESTION.items() if name != "purchase"}
    longer = {**question, "workload": {**question["workload"], "total_tokens": 4_000_000_000_000}}
    files = [tmp_path / "before.json", tmp_path / "after.json"]
    for file, asked in zip(files, (question, longer), strict=True):
        file.write_text(json.dumps(asked))
    stored = len(service.client.get("/v1/quotes").json()["items"])
    command = ["diff", *map(str, files), "--url", service.address, "--format", "json"]
    told = CliRunner().invoke(app, command)
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["totals"] == [
        {
            "currency_code": "USD",
            "before": "1415571.28",
            "after": "2831142.57",
            "difference": "1415571.29",
        }
    ]
    assert len(service.client.get("/v1/quotes").json()["items"]) == stored
    files[1].write_text(json.dumps({**question, "wishes": 1}))
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 1
    assert "/request/wishes" in refused.stdout
