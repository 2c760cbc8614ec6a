"""Queries of validations."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session, undefer

from service.benchmarks.repository import COUNTS
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.benchmarks.verdicts import ResultVerdict
from service.kit.database.engine import Reader, Writer, insert_new
from service.kit.jobs import leases

MOST_PEER_RESULTS = 1000
_DAY_SECONDS = 86_400
_LAST_FIRST = (BenchmarkResultRow.received_at.desc(), BenchmarkResultRow.id.desc())
_OF_RESULT = and_(
    BenchmarkValidationRow.tenant_id == BenchmarkResultRow.tenant_id,
    BenchmarkValidationRow.result_id == BenchmarkResultRow.id,
)
_IS_ACCEPTED = BenchmarkValidationRow.verdict == ResultVerdict.ACCEPTED
_IS_PLAUSIBLE = BenchmarkValidationRow.verdict.in_((ResultVerdict.ACCEPTED, ResultVerdict.SUSPECT))


def list_accepted_results(session: Session, tenant_id: str, node_id: str) -> Sequence[BenchmarkResultRow]:
    """Returns the results of a node that a calibration may rest on, without content, in order of receipt."""
    statement = (
        select(BenchmarkResultRow)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == tenant_id,
            BenchmarkResultRow.node_id == node_id,
            _IS_ACCEPTED,
            *COUNTS,
        )
    )
    return session.scalars(statement.order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.id)).all()


def list_plausible_results(
    session: Reader, tenant_id: str, benchmarks: Collection[str], *, limit: int
) -> Sequence[BenchmarkResultRow]:
    """Returns the last results of a tenant that are accepted or suspect, in the order received."""
    statement = (
        select(BenchmarkResultRow)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == tenant_id,
            _IS_PLAUSIBLE,
            *COUNTS,
        )
    )
    if benchmarks:
        statement = statement.where(BenchmarkResultRow.benchmark.in_(benchmarks))
    ordered = statement.order_by(*_LAST_FIRST)
    return list(reversed(session.scalars(ordered.limit(limit)).all()))


class JudgedResult(NamedTuple):
    """A result beside its verdict and the findings behind it; None until it is validated."""

    row: BenchmarkResultRow
    verdict: str | None
    findings: list[dict[str, Any]] | None


def list_node_results(session: Reader, tenant_id: str, node_id: str, *, limit: int) -> list[JudgedResult]:
    """Returns the last counted results of a node with their verdicts, in the order received."""
    columns = (BenchmarkResultRow, BenchmarkValidationRow.verdict, BenchmarkValidationRow.findings)
    statement = (
        select(*columns)
        .outerjoin(BenchmarkValidationRow, _OF_RESULT)
        .where(BenchmarkResultRow.tenant_id == tenant_id, BenchmarkResultRow.node_id == node_id, *COUNTS)
    )
    found = session.execute(statement.order_by(*_LAST_FIRST).limit(limit)).all()
    return [JudgedResult(row, verdict, findings) for row, verdict, findings in reversed(found)]


def list_plausible_peers(
    session: Reader, tenant_id: str, node_id: str, hardware: Collection[str], *, limit: int
) -> Sequence[BenchmarkResultRow]:
    """Returns the last plausible results of other nodes with equal hardware, in the order received."""
    statement = (
        select(BenchmarkResultRow)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == tenant_id,
            BenchmarkResultRow.node_id != node_id,
            BenchmarkResultRow.hardware_sha256.in_(hardware),
            _IS_PLAUSIBLE,
            *COUNTS,
        )
    )
    return list(reversed(session.scalars(statement.order_by(*_LAST_FIRST).limit(limit)).all()))


def count_recent_results(
    session: Reader, tenant_id: str, *, days: int
) -> Sequence[tuple[str, str | None, int]]:
    """Returns the number of results of the last days, by node and verdict."""
    by = (BenchmarkResultRow.node_id, BenchmarkValidationRow.verdict)
    statement = (
        select(*by, func.count())
        .outerjoin(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == tenant_id,
            BenchmarkResultRow.received_at >= leases.get_time_after(-days * _DAY_SECONDS),
        )
    )
    return [(node_id, verdict, count) for node_id, verdict, count in session.execute(statement.group_by(*by))]


def build_verdict_condition(verdicts: Collection[str]) -> ColumnElement[bool]:
    """Returns the condition that a listed result has one of these verdicts."""
    found = select(BenchmarkValidationRow.result_id).where(
        _OF_RESULT, BenchmarkValidationRow.verdict.in_(verdicts)
    )
    return found.exists()


def get_validations(
    session: Session, tenant_id: str, result_ids: Collection[str]
) -> dict[str, BenchmarkValidationRow]:
    """Returns validations by the id of their result."""
    statement = select(BenchmarkValidationRow).where(
        BenchmarkValidationRow.tenant_id == tenant_id, BenchmarkValidationRow.result_id.in_(result_ids)
    )
    return {row.result_id: row for row in session.scalars(statement)}


def list_measured_results(
    session: Session, tenant_id: str, run_ids: Collection[str]
) -> Sequence[BenchmarkResultRow]:
    """Returns every result of runs that has a measurement, without content, in the order received."""
    statement = select(BenchmarkResultRow).where(
        BenchmarkResultRow.tenant_id == tenant_id,
        BenchmarkResultRow.run_id.in_(run_ids),
        BenchmarkResultRow.status == "ok",
    )
    return session.scalars(statement.order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.id)).all()


def list_validated_ids(session: Session, tenant_id: str, run_id: str, rules_version: int) -> set[str]:
    """Returns the ids of the results of a run that these rules have been applied to."""
    statement = (
        select(BenchmarkResultRow.id)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == tenant_id,
            BenchmarkResultRow.run_id == run_id,
            BenchmarkValidationRow.rules_version == rules_version,
        )
    )
    return set(session.scalars(statement))


def list_peer_figures(session: Reader, row: BenchmarkResultRow) -> Iterator[tuple[str, float]]:
    """Yields node and figure of the last accepted results of other nodes for equal work on equal hardware."""
    statement = (
        select(BenchmarkResultRow.node_id, BenchmarkResultRow.figure)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.tenant_id == row.tenant_id,
            BenchmarkResultRow.benchmark == row.benchmark,
            BenchmarkResultRow.work_sha256 == row.work_sha256,
            BenchmarkResultRow.metric == row.metric,
            BenchmarkResultRow.hardware_sha256 == row.hardware_sha256,
            BenchmarkResultRow.node_id != row.node_id,
            _IS_ACCEPTED,
            *COUNTS,
        )
    )
    ordered = statement.order_by(BenchmarkResultRow.received_at.desc()).limit(MOST_PEER_RESULTS)
    for node_id, figure in session.execute(ordered):
        if figure is not None:
            yield node_id, figure


def find_same_samples(session: Reader, tenant_id: str, samples_sha256: str, result_id: str) -> str | None:
    """Returns the id of another result of a tenant with the same samples, or None."""
    return _find_other_result(
        session, tenant_id, result_id, BenchmarkValidationRow.samples_sha256 == samples_sha256
    )


def find_same_checksum(session: Reader, row: BenchmarkResultRow, *, checksum: str, seed: int) -> str | None:
    """Returns the id of another result of the same work with the same checksum from another seed, or None."""
    return _find_other_result(
        session,
        row.tenant_id,
        row.id,
        BenchmarkValidationRow.checksum == checksum,
        BenchmarkValidationRow.seed != seed,
        BenchmarkResultRow.work_sha256 == row.work_sha256,
    )


def _find_other_result(
    session: Reader, tenant_id: str, result_id: str, *conditions: ColumnElement[bool]
) -> str | None:
    statement = (
        select(BenchmarkResultRow.id)
        .join(BenchmarkValidationRow, _OF_RESULT)
        .where(BenchmarkValidationRow.tenant_id == tenant_id, BenchmarkResultRow.id != result_id, *conditions)
        .order_by(BenchmarkResultRow.received_at, BenchmarkResultRow.id)
    )
    return session.scalars(statement.limit(1)).one_or_none()


def store_validation(session: Writer, tenant_id: str, result_id: str, values: Mapping[str, Any]) -> None:
    """Stores the validation of a result in place of the one before."""
    key = {"tenant_id": tenant_id, "result_id": result_id}
    stored = {**values, "validated_at": leases.get_database_time()}
    if insert_new(session, BenchmarkValidationRow, **key, **stored):
        return
    own = [getattr(BenchmarkValidationRow, name) == value for name, value in key.items()]
    session.execute(update(BenchmarkValidationRow).where(*own).values(**stored))


def list_run_family(session: Session, tenant_id: str, root_id: str) -> Sequence[BenchmarkRunRow]:
    """Returns a run and the runs that measure its suspects again, in their order."""
    own = or_(BenchmarkRunRow.id == root_id, BenchmarkRunRow.re_run_of == root_id)
    statement = select(BenchmarkRunRow).where(BenchmarkRunRow.tenant_id == tenant_id, own)
    ordered = statement.order_by(BenchmarkRunRow.created_at, BenchmarkRunRow.id)
    return session.scalars(ordered.options(undefer(BenchmarkRunRow.suite))).all()


class UnvalidatedRun(NamedTuple):
    """Run with results that the rules have not been applied to."""

    tenant_id: str
    run_id: str
    last_id: str


def list_unvalidated_runs(
    session: Session, rules_version: int, *conditions: ColumnElement[bool], before_seconds: float, limit: int
) -> list[UnvalidatedRun]:
    """Returns runs with results received before a time that these rules have not been applied to."""
    columns = (BenchmarkResultRow.tenant_id, BenchmarkResultRow.run_id)
    statement = (
        select(*columns, func.max(BenchmarkResultRow.id))
        .outerjoin(BenchmarkValidationRow, _OF_RESULT)
        .where(
            BenchmarkResultRow.status == "ok",
            BenchmarkResultRow.received_at < leases.get_time_after(-before_seconds),
            or_(
                BenchmarkValidationRow.rules_version.is_(None),
                BenchmarkValidationRow.rules_version < rules_version,
            ),
            *conditions,
        )
        .group_by(*columns)
        .order_by(*columns)
        .limit(limit)
    )
    return [UnvalidatedRun(*row) for row in session.execute(statement)]
