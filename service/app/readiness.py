"""Readiness of a process: whether requests that need the database should come to it."""

import asyncio
import contextlib
import threading

from service.kit.database.engine import Database
from service.kit.database.failures import describe_failure
from service.kit.http.operational import DatabaseAway, build_database_problem
from service.kit.http.problems import Unavailable

PROBE_SECONDS = 2.0
_READ_A_PAGE = "SELECT version_num FROM alembic_version"
RETRY = {"Retry-After": "1"}


class Starting(Unavailable):
    """The process has not loaded its catalog yet."""

    code, title = "STARTING", "The catalog is not loaded yet"


class DatabaseProbe:
    """Looks at the database in a thread of its own: one look at a time, however many ask."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._look: asyncio.Future[Unavailable | None] | None = None

    async def find_problem(self) -> Unavailable | None:
        """Returns what is wrong with the database, or None."""
        if self._look is None or self._look.done():
            loop = asyncio.get_running_loop()
            self._look = loop.create_future()
            # It may hang with the network or the disk, and must not keep the process from ending.
            thread = threading.Thread(
                target=self._report, args=(loop, self._look), name="readiness", daemon=True
            )
            thread.start()
        look = self._look
        await asyncio.wait({look}, timeout=PROBE_SECONDS)
        if not look.done():
            return DatabaseAway("The database does not answer", headers=RETRY)
        return look.result()

    def _report(self, loop: asyncio.AbstractEventLoop, look: "asyncio.Future[Unavailable | None]") -> None:
        problem = self._look_once()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(look.set_result, problem)

    def _look_once(self) -> Unavailable | None:
        try:
            self._database.probe(_READ_A_PAGE)
        except Exception as error:  # noqa: BLE001  # whatever is wrong, the process is not ready
            failure = describe_failure(error)
            if failure is None:
                return DatabaseAway(f"The database cannot be read: {type(error).__name__}", headers=RETRY)
            return build_database_problem(failure)
        return None
