"""Messages of webhooks, signed as Standard Webhooks 1.0 say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .errors import InvalidSignature

if TYPE_CHECKING:
    from .types import WebhookMessage

_TIME = re.compile(r"[0-9]{1,12}")


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes, *, tolerance_seconds: float = 300.0
) -> WebhookMessage:
    """Returns the message, if the secret signed it and it is not older than the tolerance.

    The body is the bytes as they were received. A message may arrive again, with the same `webhook-id`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent_at = given.get("webhook-timestamp", "")
    if not _TIME.fullmatch(sent_at) or abs(time.time() - int(sent_at)) > tolerance_seconds:
        raise InvalidSignature("the time of the message is missing or too far from now")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{given.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    signatures = given.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(each.encode(), expected) for each in signatures):
        raise InvalidSignature("no signature of the message is of the secret")
    message: WebhookMessage = json.loads(body)
    return message
