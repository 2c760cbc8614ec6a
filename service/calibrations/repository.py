"""Queries of calibrations."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased, undefer, undefer_group

from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.calibrations.tables import ACTIVE, SUPERSEDED, WITHDRAWN, CalibrationRow
from service.kit.database.engine import Reader, Writer
from service.kit.jobs import leases

PageCursor = tuple[datetime, str]
CalibrationFilters = Mapping[str, Collection[str]]


_OLDEST_FIRST = (CalibrationRow.created_at, CalibrationRow.id)


def list_active(session: Session, tenant_id: str) -> Sequence[CalibrationRow]:
    """Returns the active calibrations of a tenant with their content, oldest first."""
    statement = select(CalibrationRow).where(_build_active_condition(tenant_id)).order_by(*_OLDEST_FIRST)
    return session.scalars(statement.options(undefer_group("content"))).all()


def list_active_ids(session: Session, tenant_id: str) -> tuple[str, ...]:
    """Returns the ids of the active calibrations of a tenant, oldest first."""
    statement = select(CalibrationRow.id).where(_build_active_condition(tenant_id))
    return tuple(session.scalars(statement.order_by(*_OLDEST_FIRST)))


def _build_active_condition(tenant_id: str) -> ColumnElement[bool]:
    return and_(CalibrationRow.tenant_id == tenant_id, CalibrationRow.state == ACTIVE)


def get_calibration(session: Session, tenant_id: str, calibration_id: str) -> CalibrationRow | None:
    """Returns a calibration of a tenant with its content."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == tenant_id, CalibrationRow.id == calibration_id
    )
    return session.scalars(statement.options(undefer_group("content"))).one_or_none()


def list_page(
    session: Reader, tenant_id: str, filters: CalibrationFilters, *, after: PageCursor | None, limit: int
) -> Sequence[CalibrationRow]:
    """Returns calibrations of a tenant without their content, newest first; an empty filter allows all."""
    statement = select(CalibrationRow).where(CalibrationRow.tenant_id == tenant_id)
    for name, allowed in filters.items():
        if allowed:
            statement = statement.where(getattr(CalibrationRow, name).in_(allowed))
    if after is not None:
        time, row_id = after
        older = CalibrationRow.created_at < time
        tied = and_(CalibrationRow.created_at == time, CalibrationRow.id < row_id)
        statement = statement.where(or_(older, tied))
    ordered = statement.order_by(CalibrationRow.created_at.desc(), CalibrationRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def list_by_ids(session: Session, tenant_id: str, ids: Collection[str]) -> Sequence[CalibrationRow]:
    """Returns calibrations of a tenant by id, without their content."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == tenant_id, CalibrationRow.id.in_(ids)
    )
    return session.scalars(statement).all()


def list_standing(session: Session, tenant_id: str, node_id: str) -> Sequence[CalibrationRow]:
    """Returns the calibrations of a node that are not withdrawn."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == tenant_id,
        CalibrationRow.node_id == node_id,
        CalibrationRow.state != WITHDRAWN,
    )
    return session.scalars(statement.order_by(CalibrationRow.created_at, CalibrationRow.id)).all()


def get_current(
    session: Session, tenant_id: str, node_id: str, hardware_sha256: str
) -> CalibrationRow | None:
    """Returns the active calibration of a node and hardware with its content."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == tenant_id,
        CalibrationRow.node_id == node_id,
        CalibrationRow.hardware_sha256 == hardware_sha256,
        CalibrationRow.state == ACTIVE,
    )
    return session.scalars(statement.options(undefer_group("content"))).one_or_none()


def get_last_number(session: Session, tenant_id: str, node_id: str, hardware_sha256: str) -> int:
    """Returns the number of the newest calibration of a node and hardware; 0 before the first."""
    statement = select(func.max(CalibrationRow.number)).where(
        CalibrationRow.tenant_id == tenant_id,
        CalibrationRow.node_id == node_id,
        CalibrationRow.hardware_sha256 == hardware_sha256,
    )
    return session.scalar(statement) or 0


def _build_sound_condition() -> ColumnElement[bool]:
    """Builds the condition that no earlier calibration was withdrawn after this one was drawn.

    Otherwise it may rest on the results that the withdrawn one brought.
    """
    earlier = aliased(CalibrationRow)
    return ~exists().where(
        earlier.tenant_id == CalibrationRow.tenant_id,
        earlier.node_id == CalibrationRow.node_id,
        earlier.hardware_sha256 == CalibrationRow.hardware_sha256,
        earlier.number < CalibrationRow.number,
        earlier.state == WITHDRAWN,
        earlier.ended_at > CalibrationRow.created_at,
    )


def find_former(session: Session, row: CalibrationRow) -> CalibrationRow | None:
    """Returns the newest sound calibration that this one superseded."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == row.tenant_id,
        CalibrationRow.node_id == row.node_id,
        CalibrationRow.hardware_sha256 == row.hardware_sha256,
        CalibrationRow.number < row.number,
        CalibrationRow.state == SUPERSEDED,
        _build_sound_condition(),
    )
    return session.scalars(statement.order_by(CalibrationRow.number.desc()).limit(1)).one_or_none()


def find_predecessor(session: Session, row: CalibrationRow) -> CalibrationRow | None:
    """Returns the calibration of the same node and hardware that stood before, with its content."""
    statement = select(CalibrationRow).where(
        CalibrationRow.tenant_id == row.tenant_id,
        CalibrationRow.node_id == row.node_id,
        CalibrationRow.hardware_sha256 == row.hardware_sha256,
        CalibrationRow.number < row.number,
        or_(CalibrationRow.state != WITHDRAWN, CalibrationRow.ended_at > row.created_at),
    )
    newest = statement.order_by(CalibrationRow.number.desc()).limit(1)
    return session.scalars(newest.options(undefer_group("content"))).one_or_none()


def list_brought_results(session: Session, tenant_id: str, node_id: str, hardware_sha256: str) -> set[str]:
    """Returns the results that the sound, not withdrawn calibrations of a node and hardware have brought."""
    statement = select(CalibrationRow.new_result_ids).where(
        CalibrationRow.tenant_id == tenant_id,
        CalibrationRow.node_id == node_id,
        CalibrationRow.hardware_sha256 == hardware_sha256,
        CalibrationRow.state != WITHDRAWN,
        _build_sound_condition(),
    )
    return {result_id for ids in session.scalars(statement) for result_id in ids}


class WithdrawnResults(NamedTuple):
    """Results of a node that are withdrawn, and that no figure may rest on any more."""

    ids: frozenset[str]
    until: datetime | None
    """Results received up to this time are withdrawn, because everything of the node was."""

    def is_withdrawn(self, result_id: str, received_at: datetime) -> bool:
        """Returns true if a result is withdrawn."""
        return result_id in self.ids or (self.until is not None and received_at <= self.until)


def get_withdrawn_results(session: Session, tenant_id: str, node_id: str) -> WithdrawnResults:
    """Returns the withdrawn results of a node."""
    columns = (CalibrationRow.new_result_ids, CalibrationRow.takes_all, CalibrationRow.ended_at)
    statement = select(*columns).where(
        CalibrationRow.tenant_id == tenant_id,
        CalibrationRow.node_id == node_id,
        CalibrationRow.state == WITHDRAWN,
    )
    rows = session.execute(statement).all()
    ends = [ended_at for _, takes_all, ended_at in rows if takes_all and ended_at is not None]
    return WithdrawnResults(frozenset(name for ids, _, _ in rows for name in ids), max(ends, default=None))


def end_calibration(
    session: Writer, row: CalibrationRow, state: str, reason: str | None = None, *, takes_all: bool = False
) -> None:
    """Ends a calibration, so that it no longer counts."""
    values = {
        "state": state,
        "reason": reason,
        "ended_at": leases.get_database_time(),
        "takes_all": takes_all,
    }
    _update_row(session, row, values)


def revive_calibration(session: Writer, row: CalibrationRow) -> None:
    """Reactivates a superseded calibration."""
    _update_row(session, row, {"state": ACTIVE, "ended_at": None})


def _update_row(session: Writer, row: CalibrationRow, values: Mapping[str, object]) -> None:
    of_row = update(CalibrationRow).where(
        CalibrationRow.tenant_id == row.tenant_id, CalibrationRow.id == row.id
    )
    session.execute(of_row.values(**values))
    session.refresh(row)


def list_runs(session: Session, tenant_id: str, run_ids: Collection[str]) -> Sequence[BenchmarkRunRow]:
    """Returns runs with their suites."""
    statement = select(BenchmarkRunRow).where(
        BenchmarkRunRow.tenant_id == tenant_id, BenchmarkRunRow.id.in_(run_ids)
    )
    return session.scalars(statement.options(undefer(BenchmarkRunRow.suite))).all()


def get_inventory_sha256(session: Session, tenant_id: str, result_id: str) -> str:
    """Returns the digest of the inventory that a result was measured on, from its record."""
    statement = select(BenchmarkResultRow.content).where(
        BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.id == result_id
    )
    digest: str = json.loads(session.scalars(statement).one())["inventory_sha256"]
    return digest
