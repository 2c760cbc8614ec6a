"""Credentials as text: ``<prefix>_<id>_<secret><checksum>``.

The checksum distinguishes a mistyped credential from a wrong one, and lets scanners of leaked secrets match.
Only a keyed digest of a credential is stored; a credential has 256 random bits, so no slow hash is needed.
"""

import hmac
import re
import secrets
import string
import zlib

API_KEY = "ironlaw"
NODE = "ironlawnode"
ENROLMENT = "ironlawenrol"
APPROVAL_LINK = "ironlawlink"

_ALPHABET = string.ascii_letters + string.digits
_ID_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH, _SECRET_LENGTH, _CHECKSUM_LENGTH = 16, 43, 6
_SHAPE = re.compile(rf"(?:{API_KEY}|{NODE}|{ENROLMENT}|{APPROVAL_LINK})_[a-z0-9]{{16}}_[A-Za-z0-9]{{49}}")
_PARTS = 3


def _compute_checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    while len(digits) < _CHECKSUM_LENGTH:
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    return digits


def generate_id() -> str:
    """Returns a new id for the owner of a credential."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))


def mint_credential(prefix: str, owner_id: str) -> str:
    """Returns a new credential under ``owner_id``."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    body = f"{prefix}_{owner_id}_{secret}"
    return body + _compute_checksum(body)


def parse_id(text: str) -> str | None:
    """Returns the id in a text that may be a credential, or None."""
    parts = text.split("_", 2)
    return parts[1] if len(parts) == _PARTS else None


def is_well_formed(text: str) -> bool:
    """Returns true if a text has the form and checksum of a credential, of this service or another."""
    shape = _SHAPE.fullmatch(text)
    return shape is not None and _compute_checksum(text[:-_CHECKSUM_LENGTH]) == text[-_CHECKSUM_LENGTH:]


def digest_credential(text: str, digest_key: bytes) -> str:
    """Returns the digest under which a credential is stored."""
    # hmac.digest gives up the interpreter, which the event loop then waits for behind threads that compute.
    return hmac.new(digest_key, text.encode(), "sha256").hexdigest()
