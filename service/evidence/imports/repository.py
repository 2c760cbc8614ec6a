"""Queries of imported evidence."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session, undefer

from service.evidence.imports.tables import EvidenceImportRow
from service.kit.database.engine import Reader

PageCursor = tuple[datetime, str]
"""Time and id of the row that a page follows."""


def get_import(session: Session, tenant_id: str, import_id: str) -> EvidenceImportRow | None:
    """Returns an import of a tenant with its readings."""
    statement = select(EvidenceImportRow).where(
        EvidenceImportRow.tenant_id == tenant_id, EvidenceImportRow.id == import_id
    )
    return session.scalars(statement.options(undefer(EvidenceImportRow.readings))).one_or_none()


def list_page(
    session: Reader, tenant_id: str, *, formats: Collection[str], after: PageCursor | None, limit: int
) -> Sequence[EvidenceImportRow]:
    """Returns imports of a tenant, newest first."""
    statement = select(EvidenceImportRow).where(EvidenceImportRow.tenant_id == tenant_id)
    if formats:
        statement = statement.where(EvidenceImportRow.format.in_(formats))
    if after is not None:
        created_at, import_id = after
        earlier = and_(EvidenceImportRow.created_at == created_at, EvidenceImportRow.id < import_id)
        statement = statement.where(or_(EvidenceImportRow.created_at < created_at, earlier))
    ordered = statement.order_by(EvidenceImportRow.created_at.desc(), EvidenceImportRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def list_calibrations(session: Session, tenant_id: str, sent_sha256: str) -> list[str]:
    """Returns the calibrations that earlier imports of the same request became."""
    statement = select(EvidenceImportRow.calibration_id).where(
        EvidenceImportRow.tenant_id == tenant_id, EvidenceImportRow.sent_sha256 == sent_sha256
    )
    return list(session.scalars(statement))
