"""A small receiver of Ironlaw's webhooks: checks signatures, tells repeats, and hands messages on.

Standard library only, to be copied. Settings come from the environment:

    IRONLAW_WEBHOOK_SECRET_FILE   file of the secret, whsec_..., one a line during a rotation
    HOST, PORT                    where to listen; 127.0.0.1 and 8080, behind whatever terminates TLS
"""

import base64
import binascii
import hmac
import json
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

TOLERANCE_SECONDS = 300
MOST_BYTES = 64 * 1024
REMEMBERED = 10_000
TIMEOUT_SECONDS = 10.0
Handle = Callable[[str, dict[str, Any]], None]
"""What is done with the id and the content of a message; raises Retry where it has to come again."""


class Refused(Exception):
    """The message is not one of those that were asked for."""


class Retry(Exception):
    """The message could not be handed on: the service shall send it again, after so many seconds."""

    def __init__(self, seconds: int = 0) -> None:
        super().__init__("to be sent again")
        self.seconds = seconds


def verify(secrets: list[bytes], headers: Mapping[str, str], body: bytes, now: float) -> str:
    """The id of a message that is signed under one of the secrets and is not old."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (message_id and timestamp.isascii() and timestamp.isdigit()):
        raise Refused("a header is missing")
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        raise Refused("the message is too old, or its clock is wrong")
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = [b"v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")) for secret in secrets]
    given = headers.get("webhook-signature", "").encode("latin-1").split(b" ")
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise Refused("no signature holds")
    return message_id


def read_secrets(path: Path) -> list[bytes]:
    """The secrets of a file."""
    lines = (line.strip().removeprefix("whsec_") for line in path.read_text().splitlines())
    try:
        secrets = [base64.b64decode(line, validate=True) for line in lines if line]
    except binascii.Error:
        raise SystemExit(f"{path} holds something else than whsec_... secrets") from None
    if not secrets:
        raise SystemExit(f"{path} is empty")
    return secrets


def post(url: str, document: Mapping[str, Any]) -> None:
    """Hand a document to another service; Retry where that has no time or fails."""
    content = json.dumps(document).encode()
    request = Request(url, content, {"Content-Type": "application/json"})  # noqa: S310  # of the operator
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS):  # noqa: S310
            pass
    except HTTPError as error:
        error.close()
        wait = error.headers.get("Retry-After", "")
        raise Retry(int(wait) if wait.isascii() and wait.isdigit() else 0) from None
    except OSError:
        raise Retry from None


def text_of(message: Mapping[str, Any]) -> str:
    """A message in a line."""
    data = message["data"]
    match message["type"].split("."):
        case ["approval", what]:
            total = data.get("total")
            paid = f", {money(total)}" if total else ""
            asked = f", asked: {', '.join(data['approvers'])}" if what == "requested" else ""
            by = f" by {data['decided_by']}" if "decided_by" in data else ""
            words = what.replace("_", " ")
            return f"Approval {words}{by}: {data['name']}{paid} (requested by {data['requester']}{asked})"
        case ["budget", "exceeded"]:
            return f"Budget {data['budget_id']} is exceeded: {_of_budget(data)}"
        case ["budget", _]:
            share = data.get("threshold_share", 0.0)
            return f"Budget {data['budget_id']} has reached {share:.0%}: {_of_budget(data)}"
        case ["benchmark", _]:
            change = f"{abs(data['relative_change']):.1%}"
            return f"Node {data['node_id']} measures {change} worse: {data['benchmark']}, {data['metric']}"
        case _:
            return _of_others(message["type"], data)


def _of_others(type_: str, data: Mapping[str, Any]) -> str:
    """The type and the members in words, for a type that no sentence is written for."""
    if type_ == "quote.expires_soon":
        return f"Quote {data['name']} of {data['created_by']} holds until {data['valid_until']}"
    if type_ == "webhook.disabled":
        why = "its receiver is gone" if data["reason"] == "GONE" else "its receiver fails"
        return f"Webhook {data.get('description') or data['webhook_id']} is disabled: {why}"
    words = type_.replace(".", " ").replace("_", " ").capitalize()
    members = (f"{name.replace('_', ' ')} {_text_of_value(value)}" for name, value in data.items())
    return f"{words}: {', '.join(members)}"


def _text_of_value(value: object) -> str:
    match value:
        case {"amount": _, "currency_code": _}:
            return money(value)
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def money(amount: Mapping[str, str]) -> str:
    """An amount with its thousands apart."""
    whole, point, cents = amount["amount"].partition(".")
    return f"{int(whole):,}{point}{cents} {amount['currency_code']}"


def _of_budget(data: Mapping[str, Any]) -> str:
    used = f"{money(data['committed'])} committed, {money(data['spent'])} spent"
    return f"{used} of {money(data['amount'])} ({data['cost_center_id']})"


class Receiver(ThreadingHTTPServer):
    """Hands every message on once; one that was handed on already is only acknowledged."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], secrets: list[bytes], handle: Handle) -> None:
        super().__init__(address, _Request)
        self.secrets = secrets
        self._handle = handle
        self._known: OrderedDict[str, None] = OrderedDict()

    def take(self, headers: Mapping[str, str], body: bytes) -> None:
        """One message."""
        message_id = verify(self.secrets, headers, body, time.time())
        if message_id in self._known:
            return
        self._handle(message_id, json.loads(body))
        self._known[message_id] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


class _Request(BaseHTTPRequestHandler):
    server: Receiver
    timeout = TIMEOUT_SECONDS

    def do_POST(self) -> None:  # the library's name
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= MOST_BYTES):
            self._answer(413)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            self.server.take(headers, self.rfile.read(int(length)))
        except Refused as refused:
            print(f"refused: {refused}", file=sys.stderr)
            self._answer(401)
        except Retry as retry:
            self._answer(503, *([("Retry-After", str(retry.seconds))] if retry.seconds else []))
        else:
            self._answer(204)

    def _answer(self, status: int, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of requests that went well."""


def serve(handle: Handle) -> None:
    """Receive until stopped."""
    secrets = read_secrets(Path(os.environ["IRONLAW_WEBHOOK_SECRET_FILE"]))
    address = (os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8080")))
    with Receiver(address, secrets, handle) as receiver:
        print(f"receiving at http://{address[0]}:{receiver.server_port}", file=sys.stderr)
        receiver.serve_forever()
