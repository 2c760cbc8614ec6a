"""Removal of credentials from text that others may read."""

import re

_CREDENTIAL = re.compile(r"\bironlaw[a-z]*_[A-Za-z0-9]{6,}_[A-Za-z0-9]{8,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def redact_credentials(text: str) -> str:
    """Returns the text with every credential of Ironlaw replaced, complete or truncated."""
    return _CREDENTIAL.sub("[redacted]", text)


def extract_last_lines(text: bytes, most: int) -> str:
    """Returns the last ``most`` characters of a process's output, without credentials."""
    return _CONTROL.sub("", redact_credentials(text.decode("utf-8", "replace")))[-most:]


def to_one_line(text: str, most: int = 500) -> str:
    """Returns text of others as one line of at most ``most`` characters, without credentials."""
    return _CONTROL.sub("", redact_credentials(" ".join(text.split())))[:most]
