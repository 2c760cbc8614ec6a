"""Keyset pages: an opaque, signed token says after which row the next page begins."""

import base64
import hashlib
import hmac
import json

from service.kit.problems import BadRequest, FieldError

_SIGNATURE_BYTES = 16


class PageTokens:
    """Makes and reads tokens of one secret. A token holds for the filters that it was made with."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _signature(self, payload: bytes) -> bytes:
        return hmac.new(self._secret, payload, hashlib.sha256).digest()[:_SIGNATURE_BYTES]

    def encode(self, key: list[str], filters: str) -> str:
        """A token for the page behind ``key``."""
        digest = hashlib.sha256(filters.encode()).hexdigest()[:16]
        payload = json.dumps([digest, *key], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._signature(payload) + payload).decode().rstrip("=")

    def decode(self, token: str, filters: str) -> list[str]:
        """The key behind which the page begins; refuses a token of other filters or of nobody."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError:
            raise _refused() from None
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(payload)):
            raise _refused()
        digest, *key = json.loads(payload)
        if digest != hashlib.sha256(filters.encode()).hexdigest()[:16]:
            raise _refused()
        return [str(part) for part in key]


def _refused() -> BadRequest:
    error = FieldError("/query/page_token", "PAGE_TOKEN", "not a token of this list with these filters")
    return BadRequest("The page token does not belong to this list", error)
