"""Encryption of secrets that the service has to use again, under a key that is not in the database."""

import os
from dataclasses import dataclass

_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Cipher:
    """AES-256-GCM under one key. A value that is encrypted for one row cannot be decrypted for another."""

    key: bytes

    def encrypt(self, plain: bytes, row: str) -> bytes:
        """Returns ``plain`` encrypted for ``row``, with its nonce."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # slow to import

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, row.encode())

    def decrypt(self, kept: bytes, row: str) -> bytes:
        """Returns the plain value that was encrypted for ``row``."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(self.key).decrypt(kept[:_NONCE_BYTES], kept[_NONCE_BYTES:], row.encode())
