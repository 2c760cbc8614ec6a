"""From a model to an approved quote, over HTTP and in a browser, as somebody new to the service goes."""

import contextlib
import csv
import json

import httpx
import pytest
import standardwebhooks

from service.app.examples import EXAMPLES
from tests.browsing import LOOPBACK, listening, violations
from tests.serving import run, serving
from tests.waiting import until
from tests.webhooks.receiving import receiver

CAROL = "person:carol@example.org"
pytestmark = list(LOOPBACK)
PLAN = {
    "workload": {
        "kind": "training",
        "sequence_length": 2048,
        "global_batch_size": 128,
        "total_tokens": 10_000_000_000,
    },
    "goal": "cheapest",
    "rented": EXAMPLES["create_plan"]["rented"],
    "search": {"offers": False, "accelerator_counts": [32], "rows": 2},
    "starts_at": "2027-01-04T08:00:00Z",
}
POLICY = {
    "id": "everything",
    "name": "Everything",
    "conditions": {},
    "steps": [{"name": "Head of research", "approvers": [CAROL], "quorum": 1}],
}


class Caller:
    """Somebody with a key."""

    def __init__(self, address, secret):
        headers = {"Authorization": f"Bearer {secret}"}
        self.client = httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60)

    def asks(self, method, path, body=None):
        answer = self.client.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.text}"
        return answer

    def post(self, path, body):
        return self.asks("POST", path, body).json()

    def get(self, path):
        return self.asks("GET", path).json()

    def another(self, name, *scopes):
        """Somebody with a key that this one makes."""
        return self.by(self.post("/v1/api-keys", {"name": name, "scopes": list(scopes)})["secret"])

    @contextlib.contextmanager
    def by(self, secret):
        """Somebody with a key of their own, once the service takes it."""
        caller = Caller(self.client.base_url, secret)
        with caller.client:
            until(lambda: caller.client.get("/v1/models").status_code != httpx.codes.UNAUTHORIZED)
            yield caller


@pytest.fixture
def receives():
    with receiver() as made:
        yield made


@pytest.fixture
def operator(tmp_path):
    """The operator of a service that has just been set up, in tenant mode."""
    port = listening()
    address = f"http://127.0.0.1:{port.getsockname()[1]}"
    port.close()
    settings = {
        "IRONLAW_MODE": "tenant",
        "IRONLAW_PORT": address.rpartition(":")[2],
        "IRONLAW_PUBLIC_URL": address,
        "IRONLAW_WEBHOOK_NETWORKS": "127.0.0.0/8",
    }
    assert run("migrate", data_dir=tmp_path).status == 0
    secret = run("keys", "create", "--admin", data_dir=tmp_path).out.strip()
    with serving(tmp_path, **settings) as server:
        assert server.address == address
        caller = Caller(address, secret)
        with caller.client:
            yield caller


def planned(asker):
    """The id of a plan whose search has ended."""
    made = asker.post("/v1/models:import", EXAMPLES["import_model"])
    model = {"source": "catalog", "id": made["model"]["id"] if "model" in made else made["id"]}
    plan = asker.post("/v1/plans", PLAN | {"model": model})
    until(lambda: asker.get(f"/v1/plans/{plan['id']}")["state"] == "done")
    return asker.get(f"/v1/plans/{plan['id']}")


@pytest.fixture
def asker(operator, tmp_path):
    """Who plans and asks: by no key of the operator's, who writes the policies."""
    made = run("keys", "create", "--name", "planner", "--scope", "*:*", data_dir=tmp_path)
    with operator.by(made.out.strip()) as caller:
        yield caller


@pytest.fixture
def mailer(operator):
    """The program that sends links to approvers."""
    with operator.another("mail", "approval-links:write") as caller:
        yield caller


def test_a_plan_is_quoted_approved_and_told(operator, asker, mailer, receives, window):
    hook = operator.post("/v1/webhooks", {"url": receives.url("/told"), "event_types": ["approval.approved"]})
    operator.post("/v1/approval-policies", POLICY)
    plan = planned(asker)
    quote = asker.post("/v1/quotes", {"plan_id": plan["id"], "candidate": 1, "name": "A week of training"})
    best = plan["answer"]["rows"][0]
    assert quote["headlines"]["total"]["amount"] == best["cost"]["amount"]
    submitted = asker.post(f"/v1/quotes/{quote['id']}:submit", {"content_digest": quote["content_digest"]})
    assert submitted["state"] == "pending"

    address = mailer.post(f"/v1/approvals/{submitted['id']}:link", {"approver": CAROL})["url"]
    decides_in_the_browser(window(), address, quote)
    approval = asker.get(f"/v1/approvals/{submitted['id']}")
    (decision,) = approval["steps"][0]["decisions"]
    assert (approval["state"], decision["decided_by"]) == ("approved", CAROL)
    assert (decision["content_digest"], decision["comment"]) == (quote["content_digest"], "As planned.")

    until(lambda: receives.at("/told"))
    headers, body = receives.at("/told")[0]
    told = standardwebhooks.Webhook(hook["secret"]).verify(body, headers)
    assert (told["type"], told["data"]["approval_id"]) == ("approval.approved", submitted["id"])
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(hook["secret"]).verify(body.replace(b"approved", b"rejected"), headers)
    exports(asker, quote)


def decides_in_the_browser(page, address, quote):
    page.goto(address)
    assert page.locator("h1").inner_text() == quote["name"]
    assert violations(page) == []
    page.get_by_label("Comment").fill("As planned.")
    page.get_by_role("button", name="Approve").click()
    assert page.locator("h1").inner_text() == "You have approved this"


def exports(asker, quote):
    """The report, the charges and the document are of the quote that was approved."""
    path = f"/v1/quotes/{quote['id']}"
    report = asker.asks("GET", f"{path}/report")
    assert report.headers["content-type"].startswith("text/html")
    assert quote["content_digest"] in report.text
    charges = list(csv.DictReader(asker.asks("GET", f"{path}/focus").text.splitlines()))
    assert charges
    assert {json.loads(row["Tags"])["quote_id"] for row in charges} == {quote["id"]}
    document = asker.get(path)
    moved = {"state"}
    assert document["state"] == "approved"
    assert {name: value for name, value in document.items() if name not in moved} == {
        name: value for name, value in quote.items() if name not in moved
    }
