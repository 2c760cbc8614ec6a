"""Searches of stored plans: their jobs by state, and their pieces."""

from sqlalchemy import func, select

from service.kit.jobs.tables import JobRow
from service.plans.tables import PlanPieceRow
from tests.faults.harness import rows


def count_jobs(database, *kinds):
    """Jobs of these kinds by their state."""
    named = JobRow.kind.in_([kind.name for kind in kinds])
    counted = select(JobRow.state, func.count()).where(named).group_by(JobRow.state)
    return dict(tuple(row) for row in rows(database, counted))


def count_pieces(database):
    """Pieces of all searches."""
    return rows(database, select(func.count()).select_from(PlanPieceRow))[0][0]
