"""The examples of docs/webhooks.md, each run: what is sent, how it is checked, what it is handed on as."""

import json
import re
import sys
import time
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature

from service.app.examples.webhooks import MESSAGES
from service.webhooks import attempts, signing
from tests.webhooks.test_bridges import loaded

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text()
KEY = "0123456789abcdef0123456789abcdef"
BRIDGES = ("receiving", "slack", "pagerduty")


def blocks(language, section):
    """The blocks of a language under a heading."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def bridges():
    yield {name: loaded(name) for name in BRIDGES}
    for name in BRIDGES:
        del sys.modules[name]


@pytest.fixture
def message():
    (text,) = blocks("json", "A message")
    return json.loads(text)


def test_the_message_is_one_of_those_that_are_sent(message):
    example = MESSAGES[message["type"]]
    page_url = f"https://plan.example.com/approvals/{example['data']['approval_id']}"
    assert message == {**example, "data": {**example["data"], "page_url": page_url}}


def test_slack_is_handed_what_is_shown(bridges, message):
    (shown,) = blocks("json", "Slack")
    assert bridges["slack"].document(message) == json.loads(shown)


def test_pagerduty_is_handed_what_is_shown(bridges, message):
    opened, ended = map(json.loads, blocks("json", "PagerDuty"))
    assert bridges["pagerduty"].document(KEY, message) == opened
    assert bridges["pagerduty"].document(KEY, MESSAGES["approval.approved"]) == ended


@pytest.mark.parametrize("scheme", ["v1", "v1a"])
def test_signatures_are_checked_as_is_shown(scheme):
    symmetric, asymmetric = blocks("python", "Checking a signature")
    old, new = signing.generate_secret(), signing.generate_secret()
    body = json.dumps(MESSAGES["webhook.test"]).encode()
    headers = signing.build_headers([new, old], "id", int(time.time()), body, scheme)
    code = symmetric if scheme == "v1" else asymmetric
    for key in (new, old):
        known = {"secret": signing.format_secret(key), "public_key": signing.derive_public_key(key)}
        known["headers"] = headers
        exec(code, {**known, "body": body})  # noqa: S102  # the page's own
    with pytest.raises(Exception) as wrong:  # noqa: PT011  # each library's own
        exec(code, {**known, "body": body + b" "})  # noqa: S102
    assert type(wrong.value).__name__ in {"WebhookVerificationError", InvalidSignature.__name__}


def test_waits_are_those_of_the_schedule():
    hours = [seconds // 3600 for seconds in attempts.WAITS_SECONDS[3:]]
    text = " ".join(PAGE.split())
    written = ", ".join(map(str, hours[:-1]))
    assert f"half an hour, {written} and {hours[-1]} hours, each a tenth more" in text
    assert attempts.WAITS_SECONDS[:3] == (5, 300, 1800)
    assert attempts.JITTER == 0.1
