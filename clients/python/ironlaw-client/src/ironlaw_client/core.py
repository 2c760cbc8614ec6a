"""Calls without input or output: what is sent, when it is sent again, and how an answer is read.

Each exchange is a generator that yields what to send, or a number of seconds to sleep, and is given the
response. `sync` and `aio` drive it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import time
import uuid
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

import httpx

from .errors import Problem, ServiceUnreachable, WaitTimeout, read_retry_after, to_problem
from .version import __version__

T = TypeVar("T")

LOCAL_URL = "http://127.0.0.1:8000"
TEMPORARY = frozenset({429, 502, 503, 504})
FIRST_PAUSE_SECONDS = 0.5
FIRST_POLL_SECONDS = 0.25
LONGEST_POLL_SECONDS = 5.0


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request whose answer is a `T`."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    if_match: str | None = None
    idempotency_key: str | None = None
    is_estimate: bool = False
    """True if it computes and stores nothing."""
    catalog_revision: int | None = None
    is_digested: bool = False
    """True if the body travels with its digest."""

    @property
    def is_repeatable(self) -> bool:
        """True if it may be sent again where its answer is lost."""
        return self.method in {"GET", "PUT"} or self.is_estimate or self.idempotency_key is not None


class Sending(NamedTuple):
    """Arguments of a request of httpx."""

    method: str
    url: str
    params: dict[str, Any]
    headers: dict[str, str]
    content: bytes | None


Exchange: TypeAlias = Generator[Sending | float, Any, T]


class Done(NamedTuple, Generic[T]):
    """The end of an exchange."""

    answer: T


def advance(
    exchange: Exchange[T], given: httpx.Response | httpx.TransportError | None
) -> Sending | float | Done[T]:
    """Gives an exchange what came of its last step, and returns the next."""
    try:
        return exchange.throw(given) if isinstance(given, Exception) else exchange.send(given)
    except StopIteration as ended:
        return Done(ended.value)


class Answer(dict[str, Any]):
    """A JSON object with the headers that came with it."""

    headers: httpx.Headers


class Core:
    """The service, the credentials and the rules of repetition."""

    def __init__(
        self, url: str | None, api_key: str | None, retries: int, longest_pause_seconds: float
    ) -> None:
        self._url = (url or os.environ.get("IRONLAW_URL") or LOCAL_URL).rstrip("/")
        self._api_key = api_key or os.environ.get("IRONLAW_API_KEY")
        self._retries = retries
        self._longest_pause_seconds = longest_pause_seconds
        self.catalog_revision: int | None = None

    def send(self, call: Call[Any]) -> Exchange[httpx.Response]:
        """Sends a call until it succeeds, is refused, or has been repeated often enough."""
        sending, attempt = self._build_sending(call), 0
        while True:
            is_last = attempt >= self._retries or not call.is_repeatable
            pause = FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311  # spreads load
            try:
                response: httpx.Response = yield sending
            except httpx.TransportError as error:
                if is_last:
                    raise ServiceUnreachable(f"{self._url}: {error or type(error).__name__}") from error
            else:
                if response.is_success:
                    self._note_revision(response)
                    return response
                problem = to_problem(response)
                pause = max(pause, problem.retry_after_seconds or 0.0)
                if is_last or not _is_temporary(problem) or pause > self._longest_pause_seconds:
                    raise problem
            yield pause
            attempt += 1

    def ask(self, call: Call[T]) -> Exchange[T]:
        """Sends a call and reads its answer."""
        response = yield from self.send(call)
        answer: T = read_answer(response)
        return answer

    def wait(self, call: Call[T], states: tuple[str, ...], timeout_seconds: float) -> Exchange[T]:
        """Sends a call until the state of its answer is none of those that end by themselves."""
        deadline, usual = time.monotonic() + timeout_seconds, FIRST_POLL_SECONDS
        while True:
            response = yield from self.send(call)
            answer = read_answer(response)
            if answer["state"] not in states:
                ended: T = answer
                return ended
            pause = read_retry_after(response) or usual
            if time.monotonic() + pause > deadline:
                raise WaitTimeout(answer["state"])
            yield pause
            usual = min(usual * 1.5, LONGEST_POLL_SECONDS)

    def _build_sending(self, call: Call[Any]) -> Sending:
        content = None if call.body is None else json.dumps(call.body).encode()
        revision = self.catalog_revision if call.catalog_revision is None else call.catalog_revision
        optional = {
            "Authorization": self._api_key and f"Bearer {self._api_key}",
            "Catalog-Revision": str(revision) if call.is_estimate and revision is not None else None,
            "Content-Digest": _digest(content) if content is not None and call.is_digested else None,
            "Content-Type": None if content is None else "application/json",
            "Idempotency-Key": call.idempotency_key,
            "If-Match": call.if_match,
            "User-Agent": f"ironlaw-client-python/{__version__}",
        }
        headers = {name: value for name, value in optional.items() if value} | dict(call.headers)
        query = {name: value for name, value in call.query.items() if value is not None}
        return Sending(call.method, self._url + call.path, query, headers, content)

    def _note_revision(self, response: httpx.Response) -> None:
        """Keeps the revision of a write, so that the estimates of this client see it."""
        if revision := response.headers.get("Catalog-Revision"):
            self.catalog_revision = max(int(revision), self.catalog_revision or 0)


def _is_temporary(problem: Problem) -> bool:
    return problem.status in TEMPORARY or problem.code == "IDEMPOTENCY_KEY_IN_USE"


def _digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def read_answer(response: httpx.Response) -> Any:  # noqa: ANN401  # JSON
    """Returns JSON, text, bytes, or None where there is no content."""
    kind = response.headers.get("Content-Type", "")
    if not response.content:
        return None
    if kind.startswith("application/json"):
        answer = Answer(response.json())
        answer.headers = response.headers
        return answer
    return response.text if kind.startswith("text/") else response.content


def etag_of(answer: Mapping[str, Any]) -> str:
    """Returns the ETag of an answer, which `if_match` of a change is given."""
    return headers_of(answer)["ETag"]


def headers_of(answer: Mapping[str, Any]) -> httpx.Headers:
    """Returns the headers that came with an answer."""
    if not isinstance(answer, Answer):
        raise TypeError("only what a client has returned has headers")
    return answer.headers


def next_call(call: Call[T], page: T) -> Call[T] | None:
    """Returns the call of the page after this one."""
    token = page["next_page_token"]  # type: ignore[index]  # a page, by construction
    return None if token is None else replace(call, query={**call.query, "page_token": token})


def new_key() -> str:
    """Returns an Idempotency-Key that was never used."""
    return uuid.uuid4().hex


def quoted(part: str) -> str:
    """Returns a part of a path, quoted."""
    return quote(part, safe="")
