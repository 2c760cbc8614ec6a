"""Every query of calibrations."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer_group

from service.benchmarks.calibrations.tables import ACTIVE, CalibrationRow
from service.kit.database import Reader


def active(session: Session | Reader, tenant_id: str) -> Sequence[CalibrationRow]:
    """The sets of a tenant that count, with all that they say, the oldest first."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == tenant_id, CalibrationRow.state == ACTIVE
    )
    ordered = statement.order_by(CalibrationRow.created_at, CalibrationRow.id)
    return session.scalars(ordered.options(undefer_group("content"))).all()
