"""Versions of engines, as callers write them."""

import re
from functools import lru_cache

from service.planning.software.engines.names import MOST_TEXTS

_VERSION = re.compile(r"(\d+)\.(\d+|x)(?:\.(\d+))?")
EngineVersion = tuple[int, int, int]
NEWEST: EngineVersion = (10**6, 0, 0)
_LAST_PATCH = 10**6


@lru_cache(maxsize=MOST_TEXTS)
def parse_version(text: str | None) -> EngineVersion:
    """Returns major, minor and patch of a version.

    The newest without a version, the last patch without one.
    """
    found = _VERSION.search(text or "")
    if found is None:
        return NEWEST
    major, minor, patch = found.groups()
    return int(major), 0 if minor == "x" else int(minor), _LAST_PATCH if patch is None else int(patch)
