"""The OpenAPI documents that are served, each built once, when it is first asked for."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from threading import BoundedSemaphore, Lock
from typing import Any

from pydantic_core import to_json

from service.app.documentation.audiences import Audience, build_audience_document
from service.kit.http.packed import PackedContent
from service.kit.http.problems import BUSY_RETRY, TooBusy

_JSON = "application/json"
_MOST_WAITING = 3
"""Most threads that build the document or wait for it, which leaves others to read."""


class ApiDocuments:
    """The complete document, from which clients are generated, and its part for each audience.

    The complete one takes seconds to build, because it shows the answers to its examples.
    """

    def __init__(self, build: Callable[[], dict[str, Any]]) -> None:
        self._build = build
        self._lock, self._places = Lock(), BoundedSemaphore(_MOST_WAITING)
        self._packed: dict[str, PackedContent] = {}

    @cached_property
    def _document(self) -> dict[str, Any]:
        return self._build()

    def get(self) -> dict[str, Any]:
        """Returns the complete document. Refuses a caller while others wait for it to be built."""
        if not self._places.acquire(blocking=False):
            raise TooBusy(headers=BUSY_RETRY)
        try:
            with self._lock:
                return self._document
        finally:
            self._places.release()

    def prepare(self) -> None:
        """Builds the complete document unless others wait for it already."""
        with suppress(TooBusy):
            self.get()

    def pack(self, audience: Audience | None = None) -> PackedContent:
        """Returns the document of an audience, or the complete one, as it is sent."""
        document = self.get()
        name = audience or ""
        if name not in self._packed:
            selected = build_audience_document(document, audience) if audience else document
            self._packed[name] = PackedContent(to_json(selected), _JSON)
        return self._packed[name]
