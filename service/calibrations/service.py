"""Rules of calibrations: drawn or imported once, never changed, superseded or withdrawn."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.benchmarks import calibration_jobs
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation.repository import list_accepted_results
from service.calibrations import repository
from service.calibrations.devices import DeviceCatalog, MeasuredDevice, parse_driver_major, resolve_device
from service.calibrations.errors import (
    CalibrationNotFound,
    CalibrationWithdrawn,
    NothingToWithdraw,
)
from service.calibrations.fitting import compute_figures
from service.calibrations.fitting.links import CollectiveMessage, fit_link
from service.calibrations.readings import build_observations
from service.calibrations.references import find_reference_values
from service.calibrations.sets import (
    FigureSources,
    MeasuredSet,
    SetDocument,
    answers_to_documents,
    list_figures,
    parse_answers,
    parse_calibration,
    resolve_unit,
    to_document,
)
from service.calibrations.tables import ACTIVE, SUPERSEDED, WITHDRAWN, CalibrationRow
from service.catalog import service as catalog
from service.catalog.rows import REVISION_HEADER
from service.kit.database.engine import Reader, Writer
from service.kit.http import idempotency
from service.kit.jobs import leases
from service.nodes import service as nodes
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer, MeasuredScope
from service.protocol.nodes import NodeInventory
from service.protocol.suites import BenchmarkSuite

__all__ = [
    "NO_MEASUREMENTS",
    "CollectiveMessage",
    "FigureSources",
    "MeasuredSet",
    "SetState",
    "TenantMeasurements",
    "build_planning_values",
    "calibrate_node",
    "fit_link",
    "get_states",
    "list_figures",
    "store_imported",
    "withdraw_calibration",
    "withdraw_node_calibrations",
]

BENCHMARKS = "benchmarks"
IMPORT = "import"
_MOST_RUNS = 20
"""Most runs that are read for a calibration: of suites of several tiers, each benchmark in some of them."""
_UNKNOWN = MeasuredScope("cuda", None, None, None, None, None)


class TenantMeasurements(NamedTuple):
    """Measurements of a tenant as planning values, with the ids of the calibrations that they are from."""

    ids: tuple[str, ...] = ()
    calibrations: tuple[DeviceCalibration, ...] = ()
    answers: tuple[MeasuredAnswer, ...] = ()


NO_MEASUREMENTS: Final = TenantMeasurements()


def build_planning_values(
    session: Reader, tenant_id: str, known: TenantMeasurements = NO_MEASUREMENTS
) -> TenantMeasurements:
    """Returns the active calibrations of a tenant, and their measured answers.

    ``known`` are earlier ones. They are returned if they are still active, since a calibration never changes.
    """
    if repository.list_active_ids(session, tenant_id) == known.ids:
        return known
    rows = repository.list_active(session, tenant_id)
    return TenantMeasurements(
        tuple(row.id for row in rows),
        tuple(parse_calibration(row.id, build_scope(row), row.figures) for row in rows),
        tuple(answer for row in rows for answer in parse_answers(row.id, row.answers)),
    )


def build_scope(row: CalibrationRow) -> MeasuredScope:
    """Returns the scope of the figures of a calibration."""
    members = {name: getattr(row, name) for name in MeasuredScope._fields if name != "kind"}
    return MeasuredScope(kind=row.device, **members)


class FittedSet(NamedTuple):
    """A calibration that is not stored yet. Without content, the node has no figures any more."""

    node_id: str
    scope: MeasuredScope
    hardware: str | None
    hardware_sha256: str
    content: Mapping[str, Any]
    received: Mapping[str, datetime]
    """Time of receipt of each result that was read, used or not: without the others it might be used."""


def calibrate_node(session: Writer, tenant_id: str, node_id: str, reference: Calibration) -> tuple[str, ...]:
    """Calibrates each kind of device of a node from its accepted results; returns the ids of new sets."""
    return store_calibrations(
        session, tenant_id, prepare_calibrations(session, tenant_id, node_id, reference)
    ).ids


def prepare_calibrations(
    session: Session, tenant_id: str, node_id: str, reference: Calibration
) -> list[FittedSet]:
    """Computes the sets of the accepted results of a node, one for each hardware that it measured."""
    withdrawn = repository.get_withdrawn_results(session, tenant_id, node_id)
    by_hardware: dict[str, list[BenchmarkResultRow]] = {}
    for row in list_accepted_results(session, tenant_id, node_id):
        if row.hardware_sha256 is not None and not withdrawn.is_withdrawn(row.id, row.received_at):
            by_hardware.setdefault(row.hardware_sha256, []).append(row)
    reading = _NodeReader(session, tenant_id, node_id, reference)
    prepared = [reading.prepare_calibration(digest, rows) for digest, rows in by_hardware.items()]
    return [
        *(one for one in prepared if one is not None),
        *_list_emptied(session, tenant_id, node_id, by_hardware),
    ]


def _list_emptied(
    session: Session, tenant_id: str, node_id: str, by_hardware: Mapping[str, object]
) -> list[FittedSet]:
    """Returns empty sets for active calibrations none of whose results is accepted any more."""
    return [
        FittedSet(node_id, build_scope(row), row.hardware, row.hardware_sha256, {}, {})
        for row in repository.list_standing(session, tenant_id, node_id)
        if row.origin == BENCHMARKS and row.state == ACTIVE
        if row.hardware_sha256 is not None and row.hardware_sha256 not in by_hardware
    ]


class _NodeReader:
    """Reads the results of one node and their context, each row once."""

    def __init__(self, session: Session, tenant_id: str, node_id: str, reference: Calibration) -> None:
        self._session, self._tenant_id, self._node_id = session, tenant_id, node_id
        self._reference = reference
        self._inventories: dict[str, NodeInventory | None] = {}

    def prepare_calibration(
        self, hardware_sha256: str, rows: Sequence[BenchmarkResultRow]
    ) -> FittedSet | None:
        """Computes the set of one hardware, empty without figures; None if the hardware is unknown."""
        newest = rows[-1]
        inventory = self._get_inventory(newest)
        if inventory is None:
            return None
        found = self._resolve_device(newest, inventory)
        if found is None:
            return None
        rows = self._select_driver_rows(rows, parse_driver_major(inventory))
        suites = {
            run.id: BenchmarkSuite.model_validate(run.suite)
            for run in repository.list_runs(self._session, self._tenant_id, {row.run_id for row in rows})
        }
        drawn = compute_figures(list(build_observations(rows, suites)), found.device)
        content = {
            "figures": [to_document(*figure) for figure in drawn.figures],
            "fits": drawn.to_documents(),
            "answers": [],
        }
        return FittedSet(
            self._node_id,
            found.scope,
            newest.hardware,
            hardware_sha256,
            content if drawn.figures else {},
            {row.id: row.received_at for row in rows},
        )

    def _get_inventory(self, row: BenchmarkResultRow) -> NodeInventory | None:
        """Returns the inventory of the node in the run of a result."""
        if row.run_id not in self._inventories:
            digest = repository.get_inventory_sha256(self._session, self._tenant_id, row.id)
            self._inventories[row.run_id] = nodes.get_inventory(self._session, self._node_id, digest)
        return self._inventories[row.run_id]

    def _select_driver_rows(
        self, rows: Sequence[BenchmarkResultRow], major: int | None
    ) -> list[BenchmarkResultRow]:
        """Returns results of the last runs with the newest driver: another driver is another device."""
        by_run = {row.run_id: row for row in rows}
        last: set[str] = set()
        for run_id, row in list(reversed(by_run.items()))[:_MOST_RUNS]:
            inventory = self._get_inventory(row)
            if inventory is None or parse_driver_major(inventory) != major:
                break
            last.add(run_id)
        return [row for row in rows if row.run_id in last]

    def _resolve_device(self, row: BenchmarkResultRow, inventory: NodeInventory) -> MeasuredDevice | None:
        index = row.conditions.get("accelerator_index")
        part = next((each for each in inventory.accelerators if each.index == index), None)
        if part is None and row.device == "cuda":
            return None
        links = catalog.list_visible_rows(self._session, "links", self._tenant_id)
        seen = DeviceCatalog(
            catalog.list_visible_rows(self._session, "accelerators", self._tenant_id),
            {name: link for link in links for name in (link["id"], *link["aliases"])},
        )
        own = part if row.device == "cuda" else None
        return resolve_device(self._node_id, inventory, own, seen, self._reference)


class StoredSets(NamedTuple):
    """Ids of the new calibrations, and the audit outcomes of those and of the ones that they supersede."""

    ids: tuple[str, ...]
    changes: tuple[WriteOutcome, ...]


def store_calibrations(session: Writer, tenant_id: str, prepared: Sequence[FittedSet]) -> StoredSets:
    """Stores the prepared sets that differ from the stored ones.

    A set that rests on results withdrawn since they were read is skipped: it is drawn without them soon.
    """
    catalog.lock_rows(session, tenant_id)
    ids: list[str] = []
    changes: list[WriteOutcome] = []
    for one in prepared:
        row, ended = _store_prepared(session, tenant_id, one)
        changes.extend(ended)
        if row is not None:
            ids.append(row.id)
            changes.append(WriteOutcome(resource=f"calibrations/{row.id}", after=to_summary(row)))
    return StoredSets(tuple(ids), tuple(changes))


def _store_prepared(
    session: Writer, tenant_id: str, one: FittedSet
) -> tuple[CalibrationRow | None, tuple[WriteOutcome, ...]]:
    """Stores a set if it is new, and ends the one before.

    Returns the new row and the audit outcome of the old one.
    """
    node_id = one.node_id
    before = repository.get_current(session, tenant_id, node_id, one.hardware_sha256)
    if not one.content:
        if before is None:
            return None, ()
        catalog.take_next_revision(session, tenant_id)
        return None, _supersede_row(session, before)
    if before is not None and before.content_sha256 == _compute_digest(one.scope, one.content):
        return None, ()
    withdrawn = repository.get_withdrawn_results(session, tenant_id, node_id)
    if any(withdrawn.is_withdrawn(*result) for result in one.received.items()):
        return None, ()
    catalog.take_next_revision(session, tenant_id)
    earlier = repository.list_brought_results(session, tenant_id, node_id, one.hardware_sha256)
    ended = _supersede_row(session, before)
    row = _store_row(
        session,
        tenant_id,
        one.scope,
        one.content,
        number=repository.get_last_number(session, tenant_id, node_id, one.hardware_sha256) + 1,
        origin=BENCHMARKS,
        hardware=one.hardware,
        hardware_sha256=one.hardware_sha256,
        # A set that brings nothing new, as after a change of verdicts, claims all results that it read.
        new_result_ids=sorted(one.received.keys() - earlier or one.received),
    )
    return row, ended


def _supersede_row(session: Writer, row: CalibrationRow | None) -> tuple[WriteOutcome, ...]:
    """Ends a calibration, if there is one, and returns the audit outcome."""
    if row is None:
        return ()
    before = to_summary(row)
    repository.end_calibration(session, row, SUPERSEDED)
    return (WriteOutcome(resource=f"calibrations/{row.id}", before=before, after=to_summary(row)),)


def store_imported(session: Writer, tenant_id: str, drawn: MeasuredSet, rests_on: Mapping[str, Any]) -> str:
    """Stores imported measurements as a set of their own, and returns its id.

    ``rests_on`` identifies the import. The caller records it in the audit.
    """
    catalog.take_next_revision(session, tenant_id)
    of_device = drawn.calibration
    content = {
        "figures": [to_document(name, figure) for name, figure in list_figures(of_device)]
        if of_device
        else [],
        "fits": [],
        "answers": answers_to_documents(drawn.answers),
    }
    scope = of_device.scope if of_device else _UNKNOWN
    added = {"number": 1, "origin": IMPORT, "rests_on": dict(rests_on), "new_result_ids": []}
    return _store_row(session, tenant_id, scope, content, **added).id


def _store_row(
    session: Writer, tenant_id: str, scope: MeasuredScope, content: Mapping[str, Any], **added: object
) -> CalibrationRow:
    of_scope = scope._asdict()
    row = CalibrationRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        state=ACTIVE,
        device=of_scope.pop("kind"),
        content_sha256=_compute_digest(scope, content),
        created_at=leases.get_database_time(),
        **of_scope,
        **content,
        **added,
    )
    session.add(row)
    session.flush()
    return row


def _compute_digest(scope: MeasuredScope, content: Mapping[str, Any]) -> str:
    return idempotency.digest_json([scope, content])


def withdraw_calibration(session: Writer, tenant_id: str, calibration_id: str, reason: str) -> WriteOutcome:
    """Withdraws a set for good; the one that it superseded counts again.

    The results that it brought are never used again; other sets that rest on them are drawn anew.
    """
    # This comes first because it locks: of two concurrent changes the second sees the result of the first.
    revision = catalog.take_next_revision(session, tenant_id)
    row = repository.get_calibration(session, tenant_id, calibration_id)
    if row is None:
        raise CalibrationNotFound
    if row.state == WITHDRAWN:
        raise CalibrationWithdrawn
    before = to_summary(row)
    also: tuple[WriteOutcome, ...] = ()
    was_active = row.state == ACTIVE
    repository.end_calibration(session, row, WITHDRAWN, reason)
    if row.origin == BENCHMARKS and row.node_id is not None:
        former = repository.find_former(session, row) if was_active else None
        if former is not None and not set(former.new_result_ids) & set(row.new_result_ids):
            stood = to_summary(former)
            repository.revive_calibration(session, former)
            also = (
                WriteOutcome(resource=f"calibrations/{former.id}", before=stood, after=to_summary(former)),
            )
        calibration_jobs.enqueue_calibration(session, tenant_id, row.node_id, because=f"without {row.id}")
    after = to_summary(row)
    headers = {REVISION_HEADER: str(revision)}
    resource = f"calibrations/{row.id}"
    return WriteOutcome(resource=resource, body=after, headers=headers, before=before, after=after, also=also)


def withdraw_node_calibrations(session: Writer, tenant_id: str, node_id: str, reason: str) -> WriteOutcome:
    """Withdraws everything that a node has measured so far; later runs make new sets."""
    revision = catalog.take_next_revision(session, tenant_id)
    rows = repository.list_standing(session, tenant_id, node_id)
    if not rows:
        raise NothingToWithdraw
    before = [to_summary(row) for row in rows]
    for row in rows:
        repository.end_calibration(session, row, WITHDRAWN, reason, takes_all=True)
    after = [to_summary(row) for row in rows]
    calibration_jobs.enqueue_calibration(session, tenant_id, node_id, because=f"without all of {rows[-1].id}")
    return WriteOutcome(
        resource=f"nodes/{node_id}/calibrations",
        body={"items": after},
        headers={REVISION_HEADER: str(revision)},
        before=before,
        after=after,
    )


class SetState(NamedTuple):
    """State of a set, with the reason and the time of its end if it no longer counts."""

    state: str
    reason: str | None
    ended_at: datetime | None


def get_states(session: Session, tenant_id: str, ids: Collection[str]) -> dict[str, SetState]:
    """Returns the states of sets of a tenant, by id."""
    rows = repository.list_by_ids(session, tenant_id, ids)
    return {row.id: SetState(row.state, row.reason, row.ended_at) for row in rows}


_SHOWN = (
    "id",
    "number",
    "origin",
    "state",
    "reason",
    "device",
    "node_id",
    "hardware",
    "hardware_sha256",
    "accelerator_id",
    "generation",
    "power_limit_watts",
    "driver_major",
    "rests_on",
    "created_at",
    "ended_at",
)


def to_summary(row: CalibrationRow) -> dict[str, Any]:
    """Returns a set as lists show it; unknown members are absent."""
    return {name: value for name in _SHOWN if (value := getattr(row, name)) is not None}


def get_calibration(session: Reader, tenant_id: str, calibration_id: str) -> dict[str, Any]:
    """Returns a set with every figure and its sources."""
    row = repository.get_calibration(session, tenant_id, calibration_id)
    if row is None:
        raise CalibrationNotFound
    return {
        **to_summary(row),
        "figures": [_figure_to_response(entry) for entry in row.figures],
        "fits": row.fits,
        "answers": row.answers,
    }


class FormerConstants(NamedTuple):
    """Constants of a device before a set was drawn, by name, in the units of the set."""

    number: int | None
    """Number of the set that they are of; None if they are of the reference set."""
    values: Mapping[str, float]


def find_former_constants(
    session: Reader, tenant_id: str, calibration_id: str, reference: Calibration
) -> FormerConstants:
    """Returns the constants that a set of a node replaced: of the set before it, else of the reference set.

    A constant that the set before it lacks is of the reference set too.
    """
    row = repository.get_calibration(session, tenant_id, calibration_id)
    if row is None:
        raise CalibrationNotFound
    values = find_reference_values(row.figures, row.generation, reference)
    before = repository.find_predecessor(session, row) if row.node_id is not None else None
    if before is None:
        return FormerConstants(None, values)
    names = {entry["name"] for entry in row.figures}
    drawn = {entry["name"]: entry["value"] for entry in before.figures if entry["name"] in names}
    return FormerConstants(before.number, values | drawn)


def list_newest(
    session: Reader, tenant_id: str, filters: Mapping[str, Collection[str]], *, limit: int
) -> list[dict[str, Any]]:
    """Returns the newest sets, as lists show them; an empty filter allows all."""
    rows = repository.list_page(session, tenant_id, filters, after=None, limit=limit)
    return [to_summary(row) for row in rows]


def _figure_to_response(entry: SetDocument) -> SetDocument:
    """Adds the unit to a figure, and its share of the limit."""
    told = {"unit": resolve_unit(entry["name"]), **entry}
    limit = entry.get("limit")
    return {**told, "share": entry["value"] / limit} if limit else told
