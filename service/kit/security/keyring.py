"""The secret of the service, and the keys derived from it, one for each purpose."""

import hmac
import secrets
from pathlib import Path

from service.kit.security import private

SECRET_BYTES = 32


class Keyring:
    """Keys by purpose, all derived from one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def derive_key(self, purpose: str) -> bytes:
        """Returns the key of one purpose (the expansion of RFC 5869, section 2.3, of one block)."""
        return hmac.digest(self._secret, f"ironlaw {purpose}\x01".encode(), "sha256")

    def compute_fingerprint(self) -> str:
        """Returns a fingerprint that distinguishes secrets without revealing them."""
        return self.derive_key("fingerprint").hex()[:32]


def read_or_create_secret(path: Path) -> bytes:
    """Returns the secret stored at ``path``; creates one that only its owner can read if there is none."""
    private.make_folder(path)
    if not path.exists():
        private.create_file(path, secrets.token_urlsafe(SECRET_BYTES).encode())
    private.restrict_access(path)
    return path.read_bytes().strip()
