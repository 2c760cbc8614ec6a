"""Both packages get the answers of a live service, and do nothing twice where answers are lost."""

import base64
import hashlib
import json
import re
import time
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from clients.generator.__main__ import TYPESCRIPT
from service.app.examples import EXAMPLES
from tests.clients.flows import told, told_of_an_approval
from tests.clients.package import Async, Sync
from tests.contract.newer import between
from tests.contract.node import installed, node
from tests.contract.tenant import approving, tenant
from tests.contract.test_document import OPERATIONS, ROOT

ADDRESS = "http://127.0.0.1:8000"
HERE = ROOT / "tests" / "clients" / "typescript"

pytestmark = [pytest.mark.enable_socket, pytest.mark.contract]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with tenant(tmp_path_factory.mktemp("clients") / "data") as served, approving(served):
        yield served


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def asking(request, service):
    """Makes a client of an address."""
    made = []

    def make(address=service.address):
        made.append(request.param(address, api_key=service.key))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory, service):
    """Folder of the TypeScript client, compiled with what the tests ask and the guide shows."""
    source = tmp_path_factory.mktemp("typescript") / "source"
    source.mkdir()
    for file in [*(TYPESCRIPT / "src").glob("*.ts"), *HERE.glob("*.ts")]:
        (source / file.name).write_text(file.read_text())
    guide = (ROOT / "docs" / "guides" / "clients.md").read_text()
    (shown,) = re.findall(r"^```ts\n(.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    (source / "guide.ts").write_text(
        shown.replace("'@ironlaw/client'", "'./index.js'").replace(ADDRESS, service.address)
    )
    settings = json.loads((TYPESCRIPT / "tsconfig.json").read_text())
    program = source.parent / "program"
    options = {**settings["compilerOptions"], "rootDir": str(source), "outDir": str(program)}
    (source / "package.json").write_text('{"type": "module"}')
    (source / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}))
    node(installed("tsc"), "--project", source)
    (program / "package.json").write_text('{"type": "module"}')
    return program


def offer_of(language):
    """An offer of its own for each client: versions of a row go on when it comes back."""
    return {**EXAMPLES["create_offer"], "id": f"ours-{language}"}


def assert_sound(answers, service):
    rows = service.client.get("/v1/accelerators", params={"page_size": 500}).json()["items"]
    assert len(rows) > 40
    assert answers == {
        "rent": "1415571.28",
        "table": True,
        "refused": [422, "NO_SOUND_ANSWER", "/model/id", "UNKNOWN_REFERENCE"],
        "ids": sorted((row["id"] for row in rows), reverse=True),
        "seen": answers["seen"],
        "changed": [2, "48"],
        "stale": "VERSION_CONFLICT",
        "gone": "ROW_NOT_FOUND",
        "plan": ["done", 1],
        "approval": ["1415571.28", "approved"],
    }
    price = float(EXAMPLES["create_offer"]["price_per_instance_hour"]["amount"]) / 8
    assert float(answers["seen"]) == pytest.approx(1_415_571.28 / 3 * price, rel=1e-6)


def test_python_gets_answers(asking, service, request):
    assert_sound(told(asking(), offer_of(request.node.callspec.id)), service)


def test_typescript_gets_answers(programs, service):
    offer = json.dumps(offer_of("typescript"))
    answers = json.loads(node(programs / "flows.js", service.address, service.key, offer))
    assert_sound(answers, service)


def quotes_of(service):
    return service.client.get("/v1/quotes", params={"page_size": 500}).json()["items"]


def test_a_write_whose_answer_is_lost_is_done_once(asking, service):
    before, lost = len(quotes_of(service)), set()

    def change(path, answer):
        is_first = answer.request.method == "POST" and path not in lost
        lost.add(path)
        return None if is_first else answer.content

    with between(service.address, change) as address:
        approval = told_of_an_approval(asking(address))
    assert approval == ["1415571.28", "approved"]
    assert len(lost) > 2
    assert len(quotes_of(service)) == before + 1


def test_typescript_keeps_the_rules_of_the_python_client(programs):
    sent_at = int(time.time())
    secret = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
    signature = Webhook(secret).sign(
        "msg_1", datetime.fromtimestamp(sent_at, UTC), '{"type": "webhook.test"}'
    )
    kept = json.loads(node(programs / "rules.js", secret, sent_at, signature))
    documented = {
        f"{method.upper()} {path.replace('{id}', 'the-id')}" for method, path, _ in OPERATIONS.values()
    }
    digest = base64.b64encode(hashlib.sha256(b"{}").digest()).decode()
    assert set(kept.pop("reached")) == documented
    assert kept == {
        "repeated": [3, 1, True],
        "not_repeated": ["ServiceUnavailable", "RateLimited", 2],
        "digested": f"sha-256=:{digest}:",
        "late": "WaitTimeout",
        "kinds": ["NotFound", "RateLimited", "ServiceUnreachable", "WaitTimeout"],
        "unreachable": "ServiceUnreachable",
        "missing": "NotFound",
        "verified": ["none", *["InvalidSignature"] * 3],
    }


def test_the_program_of_the_guide_runs(programs, service, monkeypatch):
    monkeypatch.setenv("IRONLAW_API_KEY", service.key)
    shown = re.findall(r"console\.log\(.*\); // (.+)", (programs.parent / "source" / "guide.ts").read_text())
    assert shown == node(programs / "guide.js").splitlines()
    assert len(shown) == 3
