"""Builds of the first snapshot of tenants: one at a time for each, in threads of their own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from service.resolve.catalog import CatalogView

MOST_AT_ONCE: Final = 2
"""Most snapshots that are built at a time: they share one interpreter, and each holds a connection."""


class FirstBuilds:
    """The builds that are under way. Whoever asks for the same tenant waits for the same build."""

    def __init__(self, build: Callable[[str], CatalogView]) -> None:
        self._build = build
        self._under_way: dict[str, Future[CatalogView]] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_AT_ONCE)

    def start(self, tenant_id: str) -> Future[CatalogView]:
        """Returns the build of a tenant, which begins unless it is under way."""
        with self._lock:
            build = self._under_way.get(tenant_id)
            if build is None:
                build = self._under_way[tenant_id] = Future()
                build.set_running_or_notify_cancel()  # a caller who leaves does not cancel it for others
                # It must not keep the process from ending.
                threading.Thread(
                    target=self._run, args=(tenant_id, build), name="snapshot", daemon=True
                ).start()
            return build

    def _run(self, tenant_id: str, build: Future[CatalogView]) -> None:
        try:
            with self._places:
                view = self._build(tenant_id)
        except Exception as error:  # noqa: BLE001  # those who wait raise it
            self._end(tenant_id)
            build.set_exception(error)
        else:
            self._end(tenant_id)
            build.set_result(view)

    def _end(self, tenant_id: str) -> None:
        with self._lock:
            del self._under_way[tenant_id]
