"""The rules of calibrations: drawn or imported once, never changed, superseded or withdrawn."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from service.benchmarks.calibrations import repository
from service.benchmarks.calibrations.sets import (
    RestsOn,
    read,
    read_answers,
    written,
    written_answers,
)
from service.benchmarks.calibrations.tables import ACTIVE, CalibrationRow
from service.catalog import service as catalog
from service.kit import idempotency, leases
from service.kit.database import Reader, Writer
from service.planning.calibration.measured import DeviceCalibration, MeasuredAnswer, Scope


class Measured(NamedTuple):
    """What a tenant has measured, as planning knows it."""

    calibrations: tuple[DeviceCalibration, ...] = ()
    answers: tuple[MeasuredAnswer, ...] = ()


NOTHING_MEASURED = Measured()


def planning_values(session: Reader, tenant_id: str) -> Measured:
    """The sets of a tenant that count, and the measured answers of those."""
    rows = repository.active(session, tenant_id)
    return Measured(
        tuple(read(row.id, _scope(row), row.figures) for row in rows),
        tuple(answer for row in rows for answer in read_answers(row.id, row.answers)),
    )


def _scope(row: CalibrationRow) -> Scope:
    return Scope(
        kind=row.device,
        node_id=row.node_id,
        accelerator_id=row.accelerator_id,
        generation=row.generation,
        power_limit_watts=row.power_limit_watts,
        driver_major=row.driver_major,
    )


def keep(
    session: Writer,
    tenant_id: str,
    drawn: DeviceCalibration,
    rests_on: Mapping[str, RestsOn],
    *,
    answers: Sequence[MeasuredAnswer] = (),
) -> str:
    """Store what was read elsewhere as a set of its own, whatever id it came with; the id that it has now.

    The caller writes what the audit says of it.
    """
    content = {"figures": written(drawn, rests_on), "fits": [], "answers": written_answers(answers)}
    row = _stored(session, tenant_id, drawn.scope, content, number=1, origin="import")
    return row.id


def _stored(
    session: Writer, tenant_id: str, scope: Scope, content: Mapping[str, Any], **added: object
) -> CalibrationRow:
    """A new set that counts; the tenant's snapshot follows."""
    catalog.next_revision(session, tenant_id)
    of_scope = scope._asdict()
    row = CalibrationRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        state=ACTIVE,
        device=of_scope.pop("kind"),
        content_sha256=idempotency.digest(content),
        created_at=leases.now(),
        **of_scope,
        **content,
        **added,
    )
    session.add(row)
    session.flush()
    return row
