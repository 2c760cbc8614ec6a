"""Ids that a node generates."""

import secrets
import time
from uuid import UUID

_RANDOM_BITS = 74


def generate_uuid7() -> str:
    """Returns a UUIDv7 (RFC 9562, 5.7): 48 bits of Unix time in milliseconds, then random bits.

    Ids of results sort by the time of their creation, to the millisecond.
    """
    milliseconds = time.time_ns() // 1_000_000 & (1 << 48) - 1
    random = secrets.randbits(_RANDOM_BITS)
    high, low = random >> 62, random & (1 << 62) - 1
    return str(UUID(int=milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low))


def generate_hex_128() -> str:
    """Returns 128 random bits."""
    return secrets.token_hex(16)
