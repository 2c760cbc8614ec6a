"""`ironlaw serve` that counts its statements by operation, and whose intervals may be shortened.

`GET /counts` tells what was counted. `--speed 30` ends leases thirty times as soon, and lets the process look
for runs and write heartbeats down thirty times as often: what it tells nodes stays as it is.
"""

import argparse
import sys
import threading
from collections import Counter
from contextvars import ContextVar
from typing import Any

from fastapi import FastAPI
from pydantic_core import to_json
from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.app import application
from service.app.settings import Settings
from service.cli import main as cli
from service.nodes import leases, waiting

NO_REQUEST = "(no request)"
_scopes: ContextVar[Scope | None] = ContextVar("fleet_scopes", default=None)


def _operation() -> str:
    """Returns the operation of the current request, the name of its route."""
    scope = _scopes.get()
    return NO_REQUEST if scope is None else getattr(scope.get("route"), "name", "(no operation)")


class OperationCounts:
    """Requests, statements and rows written by operation, and connections in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.heard_rows: Counter[str] = Counter()
        """Rows of nodes that were written for heartbeats."""
        self.held = self.most_held = 0

    def request(self, scope: Scope) -> None:
        with self._lock:
            self.requests[getattr(scope.get("route"), "name", "(no operation)")] += 1

    def executed(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:  # noqa: ANN401
        verb = statement.lstrip().partition(" ")[0].upper()
        if verb == "BEGIN":  # the driver of PostgreSQL begins unseen
            return
        operation = _operation()
        written = max(cursor.rowcount, 0) if verb in ("INSERT", "UPDATE", "DELETE") else 0
        with self._lock:
            self.statements[operation] += 1
            if statement.startswith("UPDATE nodes ") and "last_seen_at=" in statement:
                self.heard_rows[operation] += written
            if connection.dialect.name != "sqlite":
                self.rows[operation] += written

    def taken(self, connection: Any, record: Any, _: Any) -> None:  # noqa: ANN401
        with self._lock:
            self.held += 1
            self.most_held = max(self.most_held, self.held)
        # On SQLite a statement that returns rows does not report how many it wrote; the connection does.
        record.info["changes"] = getattr(connection, "total_changes", 0)

    def given_back(self, connection: Any, record: Any) -> None:  # noqa: ANN401
        changes = getattr(connection, "total_changes", 0) - record.info.pop("changes", 0)
        with self._lock:
            self.held -= 1
            self.rows[_operation()] += changes

    def told(self) -> dict[str, Any]:
        with self._lock:
            counted = ("requests", "statements", "rows", "heard_rows")
            shown = {name: dict(getattr(self, name)) for name in counted}
            return {**shown, "held": self.held, "most_held": self.most_held}


class CountingMiddleware:
    """Outermost middleware."""

    def __init__(self, app: ASGIApp, *, counts: OperationCounts, application: FastAPI) -> None:
        self._app, self._counts, self._application = app, counts, application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/counts":
            told = {**self._counts.told(), "claims_waiting": len(self._application.state.waiting)}
            await _answer(send, to_json(told))
        else:
            _scopes.set(scope)
            try:
                await self._app(scope, receive, send)
            finally:
                self._counts.request(scope)


async def _answer(send: Send, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})


def count() -> None:
    """Resets the counts."""
    counts, create = OperationCounts(), application.create_app
    event.listen(Engine, "after_cursor_execute", counts.executed)
    event.listen(Pool, "checkout", counts.taken)
    event.listen(Pool, "checkin", counts.given_back)

    def counted(settings: Settings) -> FastAPI:
        app = create(settings)
        app.add_middleware(CountingMiddleware, counts=counts, application=app)
        return app

    application.create_app = counted


def shorten(speed: float) -> None:
    """Shortens the intervals of the process by ``speed``."""
    for module, name in (
        (leases, "_HELD_SECONDS"),
        (leases, "RELEASED_SECONDS"),
        (waiting, "LOOK_SECONDS"),
        (application, "_WRITE_HEARTBEATS_SECONDS"),
    ):
        setattr(module, name, getattr(module, name) / speed)


def main() -> None:
    parser = argparse.ArgumentParser(prog="fleet-service", description=__doc__.splitlines()[0])
    parser.add_argument("--speed", type=float, default=1.0)
    serve(parser.parse_args().speed)


def serve(speed: float) -> None:
    """Serves until it is told to stop."""
    if speed != 1:
        shorten(speed)
    count()
    sys.argv = ["ironlaw", "serve"]
    cli.main()


if __name__ == "__main__":
    main()
