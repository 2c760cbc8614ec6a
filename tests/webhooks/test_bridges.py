"""The bridges to Slack and PagerDuty, between signed messages and a fake of what they hand them to."""

import contextlib
import importlib.util
import json
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from service.app.examples.webhooks import MESSAGES
from service.schemas.events import WebhookEventType
from service.webhooks import signing
from tests.webhooks.receiving import answer, receiver

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "webhooks"
SECRET = signing.generate_secret()


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", autouse=True)
def modules():
    """The bridges, as they find each other in their folder."""
    names = ("receiving", "slack", "pagerduty")
    yield {name: loaded(name) for name in names}
    for name in names:
        del sys.modules[name]


@pytest.fixture
def api():
    with receiver() as made:
        made.script["/api"] = answer(200, b"ok")
        yield made


@pytest.fixture
def bridge(modules, api):
    """Starts a bridge and sends it messages."""
    with contextlib.ExitStack() as ending:

        def start(name):
            url = api.url("/api")
            module = modules[name]
            handle = module.handler(url) if name == "slack" else module.handler("key", url)
            served = ending.enter_context(modules["receiving"].Receiver(("127.0.0.1", 0), [SECRET], handle))
            thread = threading.Thread(target=served.serve_forever, args=(0.01,))
            thread.start()
            ending.callback(thread.join)
            ending.callback(served.shutdown)
            return Sender(served.server_port)

        yield start


class Sender:
    def __init__(self, port):
        self._url = f"http://127.0.0.1:{port}/"

    def send(self, message, message_id="id", secret=SECRET, seconds=0, **headers):
        body = json.dumps(message).encode()
        signed = signing.build_headers([secret], message_id, int(time.time()) - seconds, body)
        return httpx.post(self._url, content=body, headers={**signed, **headers}, trust_env=False)


def handed_on(api):
    return [json.loads(body) for _, body in api.at("/api")]


class TestABridge:
    def test_hands_on_what_is_signed_once(self, bridge, api):
        sender = bridge("slack")
        for _ in range(2):
            assert sender.send(MESSAGES["approval.requested"]).status_code == 204
        assert len(handed_on(api)) == 1
        assert sender.send(MESSAGES["approval.requested"], "other").status_code == 204
        assert len(handed_on(api)) == 2

    def test_takes_the_signature_of_either_secret(self, bridge, api):
        sender, body = bridge("slack"), json.dumps(MESSAGES["webhook.test"]).encode()
        rotating = signing.build_headers([signing.generate_secret(), SECRET], "id", int(time.time()), body)
        taken = sender.send(MESSAGES["webhook.test"], **rotating)
        assert taken.status_code == 204
        assert len(handed_on(api)) == 1

    def test_refuses_what_is_not_signed_or_old(self, bridge, api):
        sender, message = bridge("slack"), MESSAGES["webhook.test"]
        for wrong in (
            {"secret": signing.generate_secret()},
            {"seconds": 330},
            {"seconds": -330},
            {"webhook-signature": "v1,"},
            {"webhook-id": "other"},
            {"webhook-timestamp": "now"},
        ):
            assert sender.send(message, **wrong).status_code == 401, wrong
        assert handed_on(api) == []

    def test_refuses_more_than_a_message_may_have(self, bridge):
        assert bridge("slack").send("x" * 70_000).status_code == 413

    def test_has_it_sent_again_where_it_cannot_hand_it_on(self, bridge, api):
        sender, message = bridge("slack"), MESSAGES["webhook.test"]
        api.script["/api"] = answer(429, retry_after="30")
        busy = sender.send(message)
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "30")
        api.script["/api"] = b""
        assert sender.send(message).status_code == 503
        api.script["/api"] = answer(200)
        assert sender.send(message).status_code == 204


@pytest.mark.parametrize("type_", WebhookEventType)
def test_slack_is_sent_what_it_takes(modules, type_):
    """https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks."""
    sent = modules["slack"].document(MESSAGES[type_])
    assert 0 < len(sent["text"]) <= 3000
    assert sent["blocks"][0]["text"] == {"type": "mrkdwn", "text": sent["text"]}


def test_slack_is_told_nothing_to_act_on(modules):
    data = {**MESSAGES["approval.requested"]["data"], "name": "<!channel> & <http://evil.test|here>"}
    data["page_url"] = "https://plan.example.com/approvals/a"
    sent = modules["slack"].document({**MESSAGES["approval.requested"], "data": data})
    assert "<" not in sent["text"]
    assert "&lt;!channel&gt; &amp;" in sent["text"]
    assert "1,415,571.28 USD" in sent["text"]
    assert sent["blocks"][1]["elements"][0]["url"] == data["page_url"]


@pytest.mark.parametrize("type_", WebhookEventType)
def test_pagerduty_is_sent_what_it_takes(modules, type_):
    """https://developer.pagerduty.com/docs/events-api-v2/trigger-events."""
    sent = modules["pagerduty"].document("key", MESSAGES[type_])
    if sent is None:
        about_approvals = {"approval.requested", "approval.commented", "approval.closed"}
        to_be_read = {"quote.expires_soon", "webhook.test", "audit.head"}
        is_of_policies = type_.startswith("policy_change.")
        assert is_of_policies or type_ in about_approvals | to_be_read
        return
    assert sent["routing_key"] == "key"
    assert 0 < len(sent["dedup_key"]) <= 255
    if sent["event_action"] == "trigger":
        assert {"summary", "source", "severity"} <= sent["payload"].keys()
        assert sent["payload"]["severity"] in {"critical", "error", "warning", "info"}
        assert len(sent["payload"]["summary"]) <= 1024
    else:
        assert sent["event_action"] == "resolve"


def test_a_decision_ends_the_incident_that_the_waiting_began(bridge, api):
    sender = bridge("pagerduty")
    for number, type_ in enumerate(("approval.requested", "approval.due_soon", "approval.approved")):
        assert sender.send(MESSAGES[type_], str(number)).status_code == 204
    began, ended = handed_on(api)
    assert (began["event_action"], ended["event_action"]) == ("trigger", "resolve")
    assert began["dedup_key"] == ended["dedup_key"]


def test_secrets_come_from_a_file_a_line_each(modules, tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{signing.format_secret(SECRET)}\n\n{signing.format_secret(b'x' * 32)}\n")
    assert modules["receiving"].read_secrets(path) == [SECRET, b"x" * 32]
    for wrong in ("", "whsec_***"):
        path.write_text(wrong)
        with pytest.raises(SystemExit):
            modules["receiving"].read_secrets(path)
