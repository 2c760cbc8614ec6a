"""Work that an endpoint does outside of the event loop, in the queue that its length asks for."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from service.kit.http.long_work import QUESTIONS, SEARCHES, VERIFICATIONS, LongWork, WorkOffloader

_T = TypeVar("_T")
BODY_BYTES = "body_bytes"
"""Key in the state of a request with a JSON body: its length in bytes."""
LARGE_BODY_BYTES = 2**15
"""Longest body in bytes that is validated on the event loop, which takes a millisecond or two."""
_INLINE_SHARE = 0.2
"""Share of a caller's time in which a search is answered inline: a second of five."""


def bind_queue(request: Request, queue: str, share: float = 1.0) -> WorkOffloader:
    """Returns what runs work in a queue, within a share of the time of the caller."""
    work: LongWork = request.app.state.work_queues[queue]
    return partial(work.run, request.scope, request.receive, share=share)


def is_large(length: int) -> bool:
    """Returns true if a body of so many bytes is validated outside of the event loop."""
    return length > LARGE_BODY_BYTES


def _has_large_body(request: Request) -> bool:
    return is_large(request.scope["state"].get(BODY_BYTES, 0))


def bind_questions(request: Request) -> WorkOffloader:
    """Returns what runs the work of a question; with a large body it waits with searches."""
    return bind_queue(request, SEARCHES if _has_large_body(request) else QUESTIONS)


def _depend_on(bind: Callable[[Request], WorkOffloader]) -> Any:  # noqa: ANN401
    async def bind_queue(request: Request) -> WorkOffloader:  # FastAPI calls other functions in a thread
        return bind(request)

    return Depends(bind_queue)


OffloadedWork = Annotated[WorkOffloader, _depend_on(bind_questions)]
"""Runs the work of an endpoint that takes a second at most, unless its body is large."""
OffloadedSearch = Annotated[WorkOffloader, _depend_on(lambda request: bind_queue(request, SEARCHES))]
"""Runs the work of an endpoint that may take seconds."""
OffloadedInlineSearch = Annotated[
    WorkOffloader, _depend_on(lambda request: bind_queue(request, SEARCHES, _INLINE_SHARE))
]
"""Runs a search that goes on in the background if it is not answered soon."""


async def _get_inline_seconds(request: Request) -> float:
    searches: LongWork = request.app.state.work_queues[SEARCHES]
    return _INLINE_SHARE * searches.seconds


InlineSeconds = Annotated[float, Depends(_get_inline_seconds)]
"""Time after which a search goes on in the background if it may."""
OffloadedVerification = Annotated[
    WorkOffloader, _depend_on(lambda request: bind_queue(request, VERIFICATIONS))
]
"""Runs a verification, which takes as long as its chain is."""


async def _run_in_thread(do: Callable[[], _T], /) -> _T:
    return await run_in_threadpool(do)


def _select_runner(request: Request) -> WorkOffloader:
    return bind_queue(request, SEARCHES) if _has_large_body(request) else _run_in_thread


OffloadedLargeWork = Annotated[WorkOffloader, _depend_on(_select_runner)]
"""Runs the work of an endpoint that is long only for a large body; a small one does not wait in the queue."""
