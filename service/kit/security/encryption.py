"""Secrets that the service has to give out again, encrypted under a key that is not in the database."""

import os
from dataclasses import dataclass

_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Cipher:
    """AES-256-GCM under one key. What is encrypted for one row does not open for another."""

    key: bytes

    def encrypt(self, plain: bytes, row: str) -> bytes:
        """``plain`` as it is kept in ``row``."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # slow to import

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, row.encode())

    def decrypt(self, kept: bytes, row: str) -> bytes:
        """What was encrypted for ``row``."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(self.key).decrypt(kept[:_NONCE_BYTES], kept[_NONCE_BYTES:], row.encode())
