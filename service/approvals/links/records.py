"""Audit records of links."""

from typing import Final

from service.approvals.links.tables import ApprovalLinkRow
from service.audit.records import RecordedTable

LINKS: Final = RecordedTable(
    table=ApprovalLinkRow, resource=lambda row: f"approvals/{row.approval_id}/links/{row.id}"
)
