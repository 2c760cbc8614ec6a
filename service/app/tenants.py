"""Export and erasure of a whole tenant, for all tables."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json
from sqlalchemy import delete, select

from service.app.tables import TABLES
from service.audit.repository import redact_subjects
from service.audit.service import WriteOutcome
from service.audit.tables import AuditEventRow, AuditHeadRow
from service.auth import service as auth
from service.auth.records import TENANTS
from service.auth.tables import TenantRow
from service.kit.database.engine import SECRET, Reader, Writer

_KEPT = (TenantRow.__table__, AuditEventRow.__table__, AuditHeadRow.__table__)
_REDACTED = "Redacted"
_AT_A_TIME = 1000


def export_lines(session: Reader, tenant_id: str) -> Iterator[bytes]:
    """Yields every row of a tenant as a line of JSON, without secrets and the salts that hide subjects."""
    for table in TABLES:
        shown = [column for column in table.columns if column.info != SECRET]
        rows = select(*shown).where(table.c.tenant_id == tenant_id).order_by(*table.primary_key)
        for row in session.execute(rows, execution_options={"yield_per": _AT_A_TIME}).mappings():
            line: dict[str, Any] = {"table": table.name, "row": dict(row)}
            yield to_json(line, bytes_mode="base64") + b"\n"


def erase_tenant(session: Writer, tenant_id: str) -> WriteOutcome:
    """Deletes every row of a tenant except its audit chain, in which nobody is named any more."""
    row = auth.close_tenant(session, tenant_id, name=_REDACTED)
    for table in reversed(TABLES):
        if table not in _KEPT:
            session.execute(delete(table).where(table.c.tenant_id == tenant_id))
    redact_subjects(session, tenant_id)
    return WriteOutcome(
        tenant_id=tenant_id,
        resource=f"tenants/{tenant_id}",
        after=auth.tenant_to_response(row),
        state=TENANTS.build_state(session, row),
    )
