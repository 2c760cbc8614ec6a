"""Searches of layouts that tests share: many ask about one run, and its search takes half a second."""

from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from service.resolve import configuration

_MOST = 64


class _Latest(deque[Any]):
    """The latest searches; whoever looks through them is not disturbed by threads that add to them."""

    def __iter__(self) -> Iterator[Any]:
        return iter(list(super().__iter__()))


def share_searches() -> None:
    """Make questions of all tests in this process search a configuration once; their answers are the same."""
    latest: Any = _Latest(maxlen=_MOST)
    configuration._searched = ContextVar("searched_by_tests", default=latest)
