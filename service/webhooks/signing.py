"""Signatures of Standard Webhooks 1.0 over id, time and body: HMAC-SHA256 (v1), or Ed25519 (v1a)."""

import base64
import hmac
import secrets
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PREFIX = "whsec_"
PUBLIC_KEY_PREFIX = "whpk_"
_SECRET_BYTES = 32
"""Bytes of an Ed25519 key, which HMAC-SHA256 can use as well."""


class WebhookSignatureScheme(StrEnum):
    """Scheme by which messages are signed."""

    V1 = "v1"
    """HMAC-SHA256. The receiver has the secret too."""
    V1A = "v1a"
    """Ed25519. The receiver has a public key, with which it can sign nothing."""


def generate_secret() -> bytes:
    """Returns a new secret, for either scheme."""
    return secrets.token_bytes(_SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """Returns a secret as receivers of `v1` are given it."""
    return PREFIX + base64.b64encode(secret).decode()


def derive_public_key(secret: bytes) -> str:
    """Returns the public key of a secret as receivers of `v1a` are given it."""
    return (
        PUBLIC_KEY_PREFIX
        + base64.b64encode(_load_private_key(secret).public_key().public_bytes_raw()).decode()
    )


def compute_signature(
    secret: bytes,
    message_id: str,
    timestamp: int,
    body: bytes,
    scheme: str = WebhookSignatureScheme.V1,
) -> str:
    """Returns the signature of one message under one secret."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    sign = _sign_ed25519 if scheme == WebhookSignatureScheme.V1A else _compute_hmac
    return f"{scheme},{base64.b64encode(sign(secret, signed)).decode()}"


def _compute_hmac(secret: bytes, signed: bytes) -> bytes:
    return hmac.digest(secret, signed, "sha256")


def _sign_ed25519(secret: bytes, signed: bytes) -> bytes:
    return _load_private_key(secret).sign(signed)


def _load_private_key(secret: bytes) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  # slow to import

    return ed25519.Ed25519PrivateKey.from_private_bytes(secret)


def build_headers(
    live: Iterable[bytes],
    message_id: str,
    timestamp: int,
    body: bytes,
    scheme: str = WebhookSignatureScheme.V1,
) -> dict[str, str]:
    """Returns the header fields of a message, signed under every secret that is ``live``."""
    signatures = (compute_signature(secret, message_id, timestamp, body, scheme) for secret in live)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
