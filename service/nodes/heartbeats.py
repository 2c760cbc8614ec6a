"""Heartbeats that this process has received since they were last written.

A heartbeat without news is kept in memory. A node's row is written at every fifteenth one, with all other due
nodes in one transaction: less than a tenth of a write per heartbeat.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from service.kit.database.engine import Database
from service.nodes import repository
from service.nodes.tables import NodeRow
from service.protocol.nodes import NodeHeartbeatRequest

HEARTBEAT_SECONDS = 30.0
BEATS_A_WRITE = 15
SILENCE = timedelta(seconds=150)
"""Silence after which a node that this process has heard counts as unreachable."""
SILENCE_ELSEWHERE = SILENCE + timedelta(seconds=HEARTBEAT_SECONDS * BEATS_A_WRITE)
"""Silence after which a node that only other processes have heard counts as unreachable."""
_FORGOTTEN_AFTER = timedelta(hours=1)


@dataclass(slots=True)
class LastHeartbeat:
    """Last heartbeat of a node, and the number of its unwritten heartbeats."""

    tenant_id: str
    at: datetime
    said: Mapping[str, Any]
    unwritten: int = field(default=0)


class HeartbeatRegistry:
    """Nodes that this process has heard."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._heard: dict[str, LastHeartbeat] = {}
        self._lock = threading.Lock()

    def record_heartbeat(
        self, row: NodeRow, at: datetime, beat: NodeHeartbeatRequest, *, is_written: bool
    ) -> None:
        """Records a heartbeat. The first one of a node is due for writing immediately."""
        said = {"activity": beat.activity, "spool": beat.spool.model_dump(mode="json")}
        with self._lock:
            before = self._heard.get(row.id)
            unwritten = BEATS_A_WRITE if before is None else before.unwritten + 1
            self._heard[row.id] = LastHeartbeat(row.tenant_id, at, said, 0 if is_written else unwritten)

    def write(self, least: int = BEATS_A_WRITE) -> int:
        """Writes the nodes with at least this many unwritten heartbeats. Returns their number."""
        with self._lock:
            due = {node_id: heard for node_id, heard in self._heard.items() if heard.unwritten >= least}
            latest = max((heard.at for heard in self._heard.values()), default=None)
            if latest is not None:
                self._heard = {i: h for i, h in self._heard.items() if latest - h.at < _FORGOTTEN_AFTER}
        if due:
            with self._database.open_writer() as session:
                repository.record_last_seen(session, due)
            with self._lock:
                for node_id, heard in due.items():
                    now = self._heard.get(node_id)
                    if now is not None:
                        now.unwritten -= min(heard.unwritten, now.unwritten)
        return len(due)

    def get_status(self, row: NodeRow, time: datetime) -> dict[str, Any]:
        """Returns reachability, time and content of the last heartbeat of a node."""
        heard = self._heard.get(row.id)
        if heard is not None and (row.last_seen_at is None or heard.at >= row.last_seen_at):
            return {
                "reachable": time - heard.at <= SILENCE,
                "last_seen_at": heard.at,
                **heard.said,
            }
        if row.last_seen_at is None:
            return {"reachable": False}
        return {
            "reachable": time - row.last_seen_at <= SILENCE_ELSEWHERE,
            "last_seen_at": row.last_seen_at,
            "activity": row.activity,
            "spool": row.spool,
        }
