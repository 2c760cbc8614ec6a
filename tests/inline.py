"""Answers requests of tests in the thread that sends them, without the hop to a pool of threads and back.

Of a small answer the hop is a third. Servers in processes of their own answer in threads, as users have it.
"""

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import anyio.to_thread

_is_inline: ContextVar[bool] = ContextVar("tests_inline", default=False)
_run_in_thread = anyio.to_thread.run_sync


async def _run_sync(function: Any, *arguments: Any, **options: Any) -> Any:
    if _is_inline.get():
        return function(*arguments)
    return await _run_in_thread(function, *arguments, **options)


anyio.to_thread.run_sync = _run_sync
# httpx looks for it in every folder of imports, for each event that it makes: a twelfth of a small answer.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]


class Loop:
    """A loop of events for one caller; `asyncio.Runner` changes the handler of signals for each call."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        token = _is_inline.set(True)
        try:
            return self._loop.run_until_complete(coroutine)
        finally:
            _is_inline.reset(token)

    def close(self) -> None:
        self._runner.close()
