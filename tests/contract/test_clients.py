"""Clients generated from the document: they are made without a warning, type-check and get real answers."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from service.examples import EXAMPLES, REFERENCE_QUESTION
from tests.contract.node import FOLDER, installed, node
from tests.contract.test_document import OPERATIONS, PATH
from tests.serving import environment, serving

SERVED = EXAMPLES["estimate_memory"]
OFFER, CHANGE, MODEL = (EXAMPLES[name] for name in ("create_offer", "update_offer", "import_model"))


def shown(name):
    """The answer that the document shows."""
    return OPERATIONS[name][2]["responses"]["200"]["content"]["application/json"]["example"]


def assert_sound(told, server):
    """What a client was told, whichever language it is written in."""
    answers = {name: shown(f"estimate_{name}") for name in ("memory", "throughput")}
    accelerators = server.client.get("/v1/accelerators", params={"page_size": 500}).json()["items"]
    assert told == {
        "memory": [True, answers["memory"]["per_device"]["known_bytes"]],
        "throughput": answers["throughput"]["output_tokens_per_second"]["value"],
        "cost": "1415571.28",
        "rent": {
            **dict.fromkeys(("amount", "low", "high"), "1415571.28"),
            "currency_code": "USD",
            "basis": "assumed",
        },
        "break_even_runs": pytest.approx(21.19, abs=0.005),
        "gaps": told["gaps"],
        "batch": [8_030_261_248] * 2,
        "created": [201, f"/v1/offers/{OFFER['id']}", '"1"'],
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


@pytest.mark.enable_socket
class TestTypeScript:
    @pytest.fixture
    def program(self, tmp_path):
        """The calls, compiled with the client that was made from the document."""
        source, program = tmp_path / "source", tmp_path / "program"
        generate = ("--input", PATH, "--output", source / "client", "--client", "@hey-api/client-fetch")
        node(installed("openapi-ts"), *generate, "--silent", "--no-log-file", cwd=tmp_path)
        calls = source / "calls.ts"
        calls.write_text((FOLDER / "calls.ts").read_text())
        language = ("--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--module", "commonjs")
        node(installed("tsc"), "--strict", *language, "--outDir", program, calls, cwd=tmp_path)
        return program / "calls.js"

    def test_gets_answers(self, program, tmp_path):
        given = {"served": SERVED, "offer": OFFER, "change": CHANGE, "model": MODEL}
        with serving(tmp_path / "data") as server:
            told = json.loads(node(program, server.address, json.dumps(given)))
            assert_sound(told, server)


class PythonClient:
    """The generated package, with its operations and shapes by name."""

    def __init__(self, package, address):
        self._package = package
        self.models = importlib.import_module(f"{package}.models")
        client = importlib.import_module(f"{package}.client").Client
        self._client = client(address, httpx_args={"trust_env": False}, raise_on_unexpected_status=True)

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


def told_to_python(client):
    """The same calls as in calls.ts."""
    shape, ask = client.shape, client.ask
    cost = {name: value for name, value in REFERENCE_QUESTION.items() if name != "purchase"}
    memory = ask("estimates", "estimate_memory", body=shape("MemoryQuestion", SERVED)).parsed
    throughput = ask("estimates", "estimate_throughput", body=shape("ThroughputQuestion", SERVED)).parsed
    rented = ask("estimates", "estimate_cost", body=shape("CostQuestion", cost)).parsed
    question = shape("UtilityBillQuestion", REFERENCE_QUESTION)
    bill = ask("estimates", "estimate_utility_bill", body=question).parsed
    several = shape("MemoryBatch", {"requests": [SERVED, SERVED]})
    batch = ask("estimates", "estimate_memory_batch", body=several).parsed

    row, change = OFFER["id"], shape("OfferPatch", CHANGE)
    created = ask("offers", "create_offer", body=shape("OfferInput", OFFER))
    etag = created.headers["etag"]
    read = ask("offers", "get_offer", row).parsed
    changed = ask("offers", "update_offer", row, body=change, if_match=etag)
    stale = ask("offers", "update_offer", row, body=change, if_match=etag)
    deleted = ask("offers", "delete_offer", row, if_match=changed.headers["etag"])
    gone = ask("offers", "get_offer", row)

    ids, token = [], ""
    order = client.models.RowOrder.ID_DESCENDING
    while token is not None:
        page = ask("accelerators", "list_accelerators", page_size=20, page_token=token, order_by=order).parsed
        ids += [accelerator.id for accelerator in page.items]
        token = page.next_page_token

    imported = ask("models", "import_model", body=shape("ModelImport", MODEL)).parsed.model
    ask("models", "delete_model", imported.id, if_match="*")
    unknown = {**SERVED, "model": {"source": "catalog", "id": "nothing"}}
    refused = ask("estimates", "estimate_memory", body=shape("MemoryQuestion", unknown))
    return {
        "memory": [memory.fits, memory.per_device.known_bytes],
        "throughput": throughput.output_tokens_per_second.value,
        "cost": rented.total.amount,
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
class TestPython:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch):
        """The name of the package that was made from the document."""
        scripts = Path(sys.executable).parent
        folder = tmp_path / "ironlaw_client"
        command = [scripts / "openapi-python-client", "generate", "--meta", "none", "--fail-on-warning"]
        done = subprocess.run(
            [*command, "--path", PATH, "--output-path", folder],
            env=environment(tmp_path, PATH=f"{scripts}:/usr/bin:/bin"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, f"Generating {folder}\n", "")
        monkeypatch.syspath_prepend(tmp_path)
        yield folder.name
        for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
            del sys.modules[name]

    def test_gets_answers(self, package, tmp_path):
        with serving(tmp_path / "data") as server:
            client = PythonClient(package, server.address)
            assert_sound(told_to_python(client), server)
            client.close()
