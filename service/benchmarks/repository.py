"""Queries of benchmark runs and results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session, undefer

from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.kit.database.engine import Reader, Writer, insert_new

PageCursor = tuple[datetime, str]
"""Time and id of the row that a page follows."""
ResultFilters = Mapping[str, Collection[Any]]
"""Allowed values by column; an empty collection allows all."""

COUNTS: tuple[ColumnElement[bool], ...] = (
    BenchmarkResultRow.lease == "current",
    BenchmarkResultRow.status == "ok",
    BenchmarkResultRow.conflicts_with.is_(None),
)
"""Conditions of a result that figures are computed from."""


def get_run(session: Session, tenant_id: str, run_id: str) -> BenchmarkRunRow | None:
    """Returns a run of a tenant with its suite."""
    statement = select(BenchmarkRunRow).where(
        BenchmarkRunRow.tenant_id == tenant_id, BenchmarkRunRow.id == run_id
    )
    return session.scalars(statement.options(undefer(BenchmarkRunRow.suite))).one_or_none()


def list_suites(session: Reader, tenant_id: str, run_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Returns the suites of runs of a tenant, by run."""
    statement = select(BenchmarkRunRow.id, BenchmarkRunRow.suite).where(
        BenchmarkRunRow.tenant_id == tenant_id, BenchmarkRunRow.id.in_(run_ids)
    )
    return {row.id: row.suite for row in session.execute(statement)}


def list_runs(
    session: Reader,
    tenant_id: str,
    *,
    conditions: Iterable[ColumnElement[bool]] = (),
    after: PageCursor | None = None,
    limit: int,
) -> Sequence[BenchmarkRunRow]:
    """Returns runs of a tenant that meet ``conditions``, newest first."""
    statement = select(BenchmarkRunRow).where(BenchmarkRunRow.tenant_id == tenant_id, *conditions)
    if after is not None:
        statement = statement.where(_build_after_condition(BenchmarkRunRow, "created_at", after))
    ordered = statement.order_by(BenchmarkRunRow.created_at.desc(), BenchmarkRunRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def _build_after_condition(
    table: type[BenchmarkRunRow | BenchmarkResultRow], time_name: str, after: PageCursor
) -> ColumnElement[bool]:
    (time, row_id), column = after, getattr(table, time_name)
    return or_(column < time, and_(column == time, table.id < row_id))


def insert_result(session: Writer, values: Mapping[str, Any]) -> BenchmarkResultRow:
    """Inserts a result, and returns the stored one of this id, which may be an earlier one.

    If another result has its place, it is stored beside that and names it in ``conflicts_with``.
    """
    key = (values["tenant_id"], values["id"])
    if not insert_new(session, BenchmarkResultRow, **values) and get_result(session, *key) is None:
        insert_new(
            session, BenchmarkResultRow, **values, conflicts_with=_find_conflicting_id(session, values)
        )
    stored = get_result(session, *key)
    if stored is None:
        raise LookupError("the result was neither inserted here nor by the transaction that was waited for")
    return stored


def list_reported_benchmarks(session: Session, tenant_id: str, run_id: str, fencing_token: int) -> set[str]:
    """Returns the benchmarks of which an attempt has handed in a result."""
    found = select(BenchmarkResultRow.benchmark).where(
        BenchmarkResultRow.tenant_id == tenant_id,
        BenchmarkResultRow.run_id == run_id,
        BenchmarkResultRow.fencing_token == fencing_token,
        BenchmarkResultRow.lease != "unknown",
    )
    return set(session.scalars(found.distinct()))


def count_attempt(session: Writer, tenant_id: str, run_id: str, fencing_token: int) -> None:
    """Makes the results of one attempt of a run current, and those of the others late."""
    is_late = (BenchmarkResultRow.fencing_token == fencing_token, BenchmarkResultRow.lease == "late")
    _set_standing(session, tenant_id, run_id, "current", *is_late)
    set_aside_attempts(session, tenant_id, run_id, fencing_token)


def set_aside_attempts(session: Writer, tenant_id: str, run_id: str, fencing_token: int) -> None:
    """Makes the results of every attempt of a run but one late."""
    is_current = (BenchmarkResultRow.fencing_token != fencing_token, BenchmarkResultRow.lease == "current")
    _set_standing(session, tenant_id, run_id, "late", *is_current)


def _set_standing(
    session: Writer, tenant_id: str, run_id: str, standing: str, *conditions: ColumnElement[bool]
) -> None:
    own = (BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.run_id == run_id)
    session.execute(update(BenchmarkResultRow).where(*own, *conditions).values(lease=standing))


def _find_conflicting_id(session: Writer, values: Mapping[str, Any]) -> str:
    place = ("tenant_id", "run_id", "fencing_token", "benchmark", "repeat", "accelerator_index")
    statement = select(BenchmarkResultRow.id).where(
        *(getattr(BenchmarkResultRow, name) == values[name] for name in place),
        BenchmarkResultRow.conflicts_with.is_(None),
        BenchmarkResultRow.lease != "unknown",
    )
    return session.scalars(statement).one()


def get_result(session: Session, tenant_id: str, result_id: str) -> BenchmarkResultRow | None:
    """Returns a result of a tenant, without its content."""
    statement = select(BenchmarkResultRow).where(
        BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.id == result_id
    )
    return session.scalars(statement).one_or_none()


def get_content(session: Reader, tenant_id: str, result_id: str) -> str:
    """Returns the content of a result as its node sent it."""
    statement = select(BenchmarkResultRow.content).where(
        BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.id == result_id
    )
    return session.scalars(statement).one()


def list_results(
    session: Reader,
    tenant_id: str,
    filters: ResultFilters,
    *conditions: ColumnElement[bool],
    after: PageCursor | None = None,
    limit: int,
) -> Sequence[BenchmarkResultRow]:
    """Returns results of a tenant without their content, last received first."""
    statement = select(BenchmarkResultRow).where(BenchmarkResultRow.tenant_id == tenant_id, *conditions)
    for name, allowed in filters.items():
        if allowed:
            statement = statement.where(getattr(BenchmarkResultRow, name).in_(allowed))
    if after is not None:
        statement = statement.where(_build_after_condition(BenchmarkResultRow, "received_at", after))
    ordered = statement.order_by(BenchmarkResultRow.received_at.desc(), BenchmarkResultRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def list_counted_results(session: Reader, tenant_id: str, run_id: str) -> Sequence[BenchmarkResultRow]:
    """Returns the counted results of a run, of every attempt, in the order of their repeats."""
    statement = select(BenchmarkResultRow).where(
        BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.run_id == run_id, *COUNTS
    )
    ordered = statement.order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.repeat)
    return session.scalars(ordered).all()


class ComparisonKey(NamedTuple):
    """Members that comparable results have in common; ``node_id`` is set if the node must be the same."""

    tenant_id: str
    benchmark: str
    work_sha256: str
    metric: str
    hardware_sha256: str | None
    node_id: str | None


def _build_comparable_conditions(comparable: ComparisonKey) -> list[ColumnElement[bool]]:
    alike = [
        BenchmarkResultRow.tenant_id == comparable.tenant_id,
        BenchmarkResultRow.benchmark == comparable.benchmark,
        BenchmarkResultRow.work_sha256 == comparable.work_sha256,
        BenchmarkResultRow.metric == comparable.metric,
        BenchmarkResultRow.hardware_sha256.is_(None)
        if comparable.hardware_sha256 is None
        else BenchmarkResultRow.hardware_sha256 == comparable.hardware_sha256,
        *COUNTS,
    ]
    if comparable.node_id is not None:
        alike.append(BenchmarkResultRow.node_id == comparable.node_id)
    return alike


def find_first_counted(
    session: Reader, tenant_id: str, benchmark: str, *, run_id: str | None, node_id: str | None
) -> BenchmarkResultRow | None:
    """Returns the first counted result of a benchmark, of a run and of a node if they are given."""
    statement = select(BenchmarkResultRow).where(
        BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.benchmark == benchmark, *COUNTS
    )
    if run_id is not None:
        statement = statement.where(BenchmarkResultRow.run_id == run_id)
    if node_id is not None:
        statement = statement.where(BenchmarkResultRow.node_id == node_id)
    ordered = statement.order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.id)
    return session.scalars(ordered.limit(1)).one_or_none()


def list_latest_runs(session: Reader, comparable: ComparisonKey, *, limit: int) -> Sequence[str]:
    """Returns ids of the runs with comparable results, latest results first."""
    latest = func.max(BenchmarkResultRow.received_at)
    statement = (
        select(BenchmarkResultRow.run_id)
        .where(*_build_comparable_conditions(comparable))
        .group_by(BenchmarkResultRow.run_id)
    )
    return session.scalars(statement.order_by(latest.desc(), BenchmarkResultRow.run_id).limit(limit)).all()


def list_compared_results(
    session: Reader, comparable: ComparisonKey, run_ids: Collection[str]
) -> Sequence[BenchmarkResultRow]:
    """Returns the comparable results of runs, first received first."""
    statement = select(BenchmarkResultRow).where(
        *_build_comparable_conditions(comparable), BenchmarkResultRow.run_id.in_(run_ids)
    )
    return session.scalars(statement.order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.id)).all()


def list_stored_ids(session: Session, tenant_id: str, digests: Collection[str]) -> dict[str, set[str]]:
    """Returns the ids of the results of a tenant that have one of ``digests``, by digest."""
    columns = (BenchmarkResultRow.content_sha256, BenchmarkResultRow.id)
    found: dict[str, set[str]] = {}
    for digest, result_id in session.execute(
        select(*columns).where(
            BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.content_sha256.in_(digests)
        )
    ):
        found.setdefault(digest, set()).add(result_id)
    return found
