"""Be told of decisions: register a webhook, receive its messages, and believe only those that it signed."""

import hashlib
import hmac
import json
import os
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from connection import connected, expected
from ironlaw_client.api.webhooks import create_webhook, test_webhook
from ironlaw_client.models import IssuedWebhook, WebhookDelivery, WebhookEventType, WebhookRequest
from ironlaw_client.types import Unset

MOST_BYTES = 64 * 1024
TOLERANCE_SECONDS = 300
TOLD_OF = [
    WebhookEventType.WEBHOOK_EVENT_TYPE_APPROVAL_APPROVED,
    WebhookEventType.WEBHOOK_EVENT_TYPE_APPROVAL_REJECTED,
    WebhookEventType.WEBHOOK_EVENT_TYPE_BUDGET_EXCEEDED,
]


class NotOurs(Exception):
    """A message is not signed with the secret of the webhook, or is too old."""


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The message, if it is signed as Standard Webhooks 1.0 say; libraries for it do the same."""
    message_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if (
        not sent_at.isascii()
        or not sent_at.isdecimal()
        or abs(time.time() - int(sent_at)) > TOLERANCE_SECONDS
    ):
        raise NotOurs("its time is not now")
    key = b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{sent_at}.".encode() + body
    wanted = b"v1," + b64encode(hmac.digest(key, signed, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode().split(b" ")
    if not any(hmac.compare_digest(wanted, each) for each in given):
        raise NotOurs("no signature of it holds")
    message: dict[str, Any] = json.loads(body)
    return message


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 at once to what it believes; a message comes again until then, with the same id."""

    secret = ""
    seen: set[str] = set()  # a real receiver keeps them where its work is kept

    def do_POST(self) -> None:
        """Take one message."""
        length = int(self.headers.get("content-length", 0))
        if length > MOST_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            message = verified(self.secret, headers, self.rfile.read(length))
        except NotOurs as error:
            self.send_error(HTTPStatus.FORBIDDEN, str(error))
            return
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()
        if headers["webhook-id"] not in self.seen:
            self.seen.add(headers["webhook-id"])
            print(f"{message['type']}: {message['data']}", flush=True)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def main() -> None:
    """Register the address in WEBHOOK_URL, ask for a test and print the first message."""
    server = HTTPServer(("127.0.0.1", int(os.environ.get("WEBHOOK_PORT", "0"))), Receiver)
    address = os.environ.get("WEBHOOK_URL", f"http://127.0.0.1:{server.server_port}/ironlaw")
    with connected() as client, server:
        body = WebhookRequest(url=address, event_types=TOLD_OF, description="Orders of the capacity team")
        issued = expected(IssuedWebhook, create_webhook.sync(client=client, body=body))
        if isinstance(issued.secret, Unset):
            raise SystemExit("the secret was shown before")
        Receiver.secret = issued.secret
        expected(WebhookDelivery, test_webhook.sync(issued.webhook.id, client=client))
        server.timeout = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
        server.handle_request()


if __name__ == "__main__":
    main()
