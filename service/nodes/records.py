"""Audit records of nodes, their credentials and enrolment tokens."""

from typing import Final

from service.audit.records import OwnedRows, RecordedTable
from service.nodes.tables import EnrolmentTokenRow, NodeCredentialRow, NodeRow

_HEARD: Final = "is what the node says of itself, at every heartbeat; what follows from it is recorded"

NODES: Final = RecordedTable(
    table=NodeRow,
    resource=lambda row: f"nodes/{row.id}",
    moving=dict.fromkeys(
        ("worker_version", "inventory_sha256", "boots", "activity", "spool", "last_seen_at"), _HEARD
    ),
    owned=(OwnedRows(NodeCredentialRow, {"node_id": "id"}),),
)
TOKENS: Final = RecordedTable(table=EnrolmentTokenRow, resource=lambda row: f"enrolment-tokens/{row.id}")
