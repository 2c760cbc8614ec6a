"""What walks begin with: every scope alone, and the few together of which one opens what another needs."""

from itertools import count
from pathlib import Path

from service.schemas.events import WebhookEventType
from tests.conftest import Databases
from tests.escalation.walking import SCOPE_OF, SCOPES, TRIED
from tests.escalation.world import World

DANGEROUS = (
    "*:write",
    "api-keys:write",
    "approval-delegations:write",
    "approval-links:write",
    "approval-policies:write",
    "approvals:write",
    "enrolment-tokens:write",
    "nodes:write",
    "quotes:write",
    "sessions:write",
    "tenants:write",
    "webhooks:write",
)
"""Scopes alone that the walks of `make test` begin with."""
TOGETHER = (
    ("api-keys:write", "approvals:write"),
    ("api-keys:write", "tenants:write"),
    ("approval-delegations:write", "approvals:write"),
    ("approval-links:write", "quotes:write"),
    ("approval-policies:write", "quotes:write"),
    ("benchmark-results:report", "enrolment-tokens:write", "leases:claim"),
    ("approvals:read", "quotes:write", "webhooks:write"),
)
"""Scopes of which one opens what another needs."""
_RESOURCES = sorted({SCOPE_OF[name].partition(":")[0] for name in TRIED if name in SCOPE_OF})
EVERY = (
    *((scope,) for scope in SCOPES),
    *((f"{resource}:*",) for resource in _RESOURCES),
    ("*:read",),
    ("*:write",),
    ("*:*",),
    ("*:*", "tenants:*"),
    *TOGETHER,
)
TOPICS = tuple({kind.partition(".")[0]: kind for kind in WebhookEventType}.values())
"""One kind of event of each topic."""


_NUMBERS = count()
"""No two worlds of a process share a database."""


class Worlds:
    """Copies of one world on a kind of database: what a walk has changed no other one sees."""

    def __init__(self, app, maker, there):
        directory = Path(maker._directory) / f"walks{next(_NUMBERS)}"
        directory.mkdir(exist_ok=True)
        own = f"{maker._prefix}_walks{next(_NUMBERS)}"
        self._maker = Databases(maker.kind, directory, maker._uri, own)
        database = self._maker.loaded()
        self._first = World(app, database, there)
        self._first.close()
        database.dispose()
        self._template, self._maker._template = self._maker._template, database.url.database

    def another(self):
        """A world in which nothing has happened yet."""
        return self._first.on(self._maker.loaded())

    def clear(self):
        """Drop the copies."""
        self._maker.dispose()

    def close(self):
        """Drop everything."""
        self._maker._template = self._template
        self._maker.dispose()
        self._maker.close()
