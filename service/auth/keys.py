"""API keys in the memory of a process."""

import hmac
from datetime import datetime
from typing import NamedTuple

from service.kit.security.credentials import digest_credential
from service.kit.security.principals import Principal


class KeyVerifier(NamedTuple):
    """Data of a live key that a process checks presented keys against."""

    subject: Principal
    digest: str
    next_digest: str | None
    rotation_ends_at: datetime | None
    expires_at: datetime | None

    def check(self, text: str, digest_key: bytes, time: datetime) -> Principal | None:
        """Returns the subject if ``text`` is the key and the key is alive."""
        presented = digest_credential(text, digest_key)
        is_rotated = self.rotation_ends_at is not None and time >= self.rotation_ends_at
        is_first = hmac.compare_digest(presented, self.digest) and not is_rotated
        is_next = hmac.compare_digest(presented, self.next_digest or "")
        is_alive = self.expires_at is None or time < self.expires_at
        return self.subject if (is_first or is_next) and is_alive else None
