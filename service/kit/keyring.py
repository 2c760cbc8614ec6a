"""The service's secret, and the keys drawn from it, one for each purpose."""

import hmac
import os
import secrets
from pathlib import Path

SECRET_BYTES = 32


class Keyring:
    """Keys by purpose, all drawn from one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def key(self, purpose: str) -> bytes:
        """The key of one purpose (the expansion of RFC 5869, section 2.3, of one block)."""
        return hmac.digest(self._secret, f"ironlaw {purpose}\x01".encode(), "sha256")

    def fingerprint(self) -> str:
        """What tells two secrets apart and gives neither away."""
        return self.key("fingerprint").hex()[:32]


def read_or_create(path: Path) -> bytes:
    """The secret kept at ``path``; a new one for its owner alone where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # of several processes that start at once, the first one's stays
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_bytes().strip()
