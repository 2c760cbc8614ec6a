"""API keys as text: ``ironlaw_<id>_<secret><checksum>``.

The checksum tells a mistyped key from a wrong one, and lets scanners of leaked secrets match. Only a keyed
digest of a key is kept; a key has 256 random bits, so no slow hash is needed.
"""

import hmac
import re
import secrets
import string
import zlib
from datetime import datetime
from typing import NamedTuple

from service.kit.subjects import NODE_SCOPES, Subject, SubjectKind

_ALPHABET = string.ascii_letters + string.digits
_ID_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH, _SECRET_LENGTH, _CHECKSUM_LENGTH = 16, 43, 6
_PREFIXES = {SubjectKind.API_KEY: "ironlaw", SubjectKind.NODE: "ironlawnode"}
_SHAPE = re.compile(r"(?:ironlaw|ironlawnode)_[a-z0-9]{16}_[A-Za-z0-9]{49}")
_PARTS = 3


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    while len(digits) < _CHECKSUM_LENGTH:
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    return digits


def new_id() -> str:
    """A fresh id of a key."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))


def mint(kind: SubjectKind, key_id: str) -> str:
    """A fresh key under ``key_id``."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    body = f"{_PREFIXES[kind]}_{key_id}_{secret}"
    return body + _checksum(body)


def id_of(text: str) -> str | None:
    """The id in what may be a key."""
    parts = text.split("_", 2)
    return parts[1] if len(parts) == _PARTS else None


def is_whole(text: str) -> bool:
    """Whether a text is a key as it was made, of this service or another."""
    shape = _SHAPE.fullmatch(text)
    return shape is not None and _checksum(text[:-_CHECKSUM_LENGTH]) == text[-_CHECKSUM_LENGTH:]


def digest_of(text: str, digest_key: bytes) -> str:
    """What is kept of a key."""
    return hmac.digest(digest_key, text.encode(), "sha256").hex()


class Verifier(NamedTuple):
    """What a process holds of a live key, to check what callers present."""

    subject: Subject
    digest: str
    next_digest: str | None
    rotation_ends_at: datetime | None
    expires_at: datetime | None

    def check(self, text: str, digest_key: bytes, time: datetime) -> Subject | None:
        """The subject, if ``text`` is the key and the key is alive."""
        presented = digest_of(text, digest_key)
        is_rotated = self.rotation_ends_at is not None and time >= self.rotation_ends_at
        is_first = hmac.compare_digest(presented, self.digest) and not is_rotated
        is_next = hmac.compare_digest(presented, self.next_digest or "")
        is_alive = self.expires_at is None or time < self.expires_at
        return self.subject if (is_first or is_next) and is_alive else None


def scopes_of(kind: SubjectKind, scopes: frozenset[str]) -> frozenset[str]:
    """The scopes that a key has; those of a node are the same for every node."""
    return NODE_SCOPES if kind is SubjectKind.NODE else scopes
