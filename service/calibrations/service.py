"""The rules of calibrations: drawn or imported once, never changed, superseded or withdrawn."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy.orm import Session

from service.audit.service import Change
from service.benchmarks import calibration_jobs
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation.repository import accepted
from service.calibrations import repository
from service.calibrations.devices import Catalog, Known, driver_major, known
from service.calibrations.drawing import drawing
from service.calibrations.drawing.links import Message, link_of
from service.calibrations.errors import (
    CalibrationNotFound,
    CalibrationWithdrawn,
    NothingToWithdraw,
)
from service.calibrations.readings import observations
from service.calibrations.sets import (
    Document,
    Drawn,
    RestsOn,
    figures,
    read,
    read_answers,
    unit_of,
    written,
    written_answers,
)
from service.calibrations.tables import ACTIVE, SUPERSEDED, WITHDRAWN, CalibrationRow
from service.catalog import service as catalog
from service.catalog.rows import REVISION_HEADER
from service.kit.database.engine import Reader, Writer
from service.kit.http import idempotency
from service.kit.jobs import leases
from service.nodes import service as nodes
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredAnswer, Scope
from service.protocol.nodes import Inventory
from service.protocol.suites import Suite

__all__ = [
    "NOTHING_MEASURED",
    "Drawn",
    "Measured",
    "Message",
    "RestsOn",
    "State",
    "draw",
    "figures",
    "keep",
    "link_of",
    "planning_values",
    "states",
    "withdraw",
    "withdraw_node",
]

BENCHMARKS = "benchmarks"
IMPORT = "import"
_MOST_RUNS = 20
"""Runs that a drawing looks at: of suites of several tiers, each benchmark in some of them."""
_UNKNOWN = Scope("cuda", None, None, None, None, None)


class Measured(NamedTuple):
    """What a tenant has measured, as planning knows it."""

    calibrations: tuple[DeviceCalibration, ...] = ()
    answers: tuple[MeasuredAnswer, ...] = ()


NOTHING_MEASURED = Measured()


def planning_values(session: Reader, tenant_id: str) -> Measured:
    """The sets of a tenant that count, and the measured answers of those."""
    rows = repository.active(session, tenant_id)
    return Measured(
        tuple(read(row.id, scope_of(row), row.figures) for row in rows),
        tuple(answer for row in rows for answer in read_answers(row.id, row.answers)),
    )


def scope_of(row: CalibrationRow) -> Scope:
    """Where the figures of a set apply."""
    members = {name: getattr(row, name) for name in Scope._fields if name != "kind"}
    return Scope(kind=row.device, **members)


class Prepared(NamedTuple):
    """A set that is drawn and not yet kept; one without figures says that there is nothing any more."""

    node_id: str
    scope: Scope
    hardware: str | None
    hardware_sha256: str
    content: Mapping[str, Any]
    received: Mapping[str, datetime]
    """When each result came that was read, also those that no figure took: without the others it might."""


def draw(session: Writer, tenant_id: str, node_id: str, reference: Calibration) -> tuple[str, ...]:
    """Draw a set for each kind of device of a node from its accepted results; ids of those that are new."""
    return store(session, tenant_id, prepare(session, tenant_id, node_id, reference)).ids


def prepare(session: Session, tenant_id: str, node_id: str, reference: Calibration) -> list[Prepared]:
    """The sets that the accepted results of a node make now, one for each hardware that it measured."""
    withdrawn = repository.withdrawn(session, tenant_id, node_id)
    by_hardware: dict[str, list[BenchmarkResultRow]] = {}
    for row in accepted(session, tenant_id, node_id):
        if row.hardware_sha256 is not None and not withdrawn.has(row.id, row.received_at):
            by_hardware.setdefault(row.hardware_sha256, []).append(row)
    reading = _Reading(session, tenant_id, node_id, reference)
    prepared = [reading.prepared(digest, rows) for digest, rows in by_hardware.items()]
    return [*(one for one in prepared if one is not None), *_gone(session, tenant_id, node_id, by_hardware)]


def _gone(
    session: Session, tenant_id: str, node_id: str, by_hardware: Mapping[str, object]
) -> list[Prepared]:
    """Sets that still count although none of their results is accepted any more."""
    return [
        Prepared(node_id, scope_of(row), row.hardware, row.hardware_sha256, {}, {})
        for row in repository.standing(session, tenant_id, node_id)
        if row.origin == BENCHMARKS and row.state == ACTIVE
        if row.hardware_sha256 is not None and row.hardware_sha256 not in by_hardware
    ]


class _Reading:
    """Reads what the results of one node rest on, each thing once."""

    def __init__(self, session: Session, tenant_id: str, node_id: str, reference: Calibration) -> None:
        self._session, self._tenant_id, self._node_id = session, tenant_id, node_id
        self._reference = reference
        self._inventories: dict[str, Inventory | None] = {}

    def prepared(self, hardware_sha256: str, rows: Sequence[BenchmarkResultRow]) -> Prepared | None:
        """The set of one hardware, without figures where nothing says any; None where nobody knows it."""
        newest = rows[-1]
        inventory = self._inventory(newest)
        if inventory is None:
            return None
        found = self._known(newest, inventory)
        if found is None:
            return None
        rows = self._of_driver(rows, driver_major(inventory))
        suites = {
            run.id: Suite.model_validate(run.suite)
            for run in repository.runs(self._session, self._tenant_id, {row.run_id for row in rows})
        }
        drawn = drawing(list(observations(rows, suites)), found.device)
        content = {
            "figures": [written(*figure) for figure in drawn.figures],
            "fits": drawn.documents(),
            "answers": [],
        }
        return Prepared(
            self._node_id,
            found.scope,
            newest.hardware,
            hardware_sha256,
            content if drawn.figures else {},
            {row.id: row.received_at for row in rows},
        )

    def _inventory(self, row: BenchmarkResultRow) -> Inventory | None:
        """What the node was made of in the run of a result."""
        if row.run_id not in self._inventories:
            digest = repository.inventory_sha256(self._session, self._tenant_id, row.id)
            self._inventories[row.run_id] = nodes.inventory(self._session, self._node_id, digest)
        return self._inventories[row.run_id]

    def _of_driver(self, rows: Sequence[BenchmarkResultRow], major: int | None) -> list[BenchmarkResultRow]:
        """The results of the last runs under the driver of the newest: another one is another device."""
        by_run = {row.run_id: row for row in rows}
        last: set[str] = set()
        for run_id, row in list(reversed(by_run.items()))[:_MOST_RUNS]:
            inventory = self._inventory(row)
            if inventory is None or driver_major(inventory) != major:
                break
            last.add(run_id)
        return [row for row in rows if row.run_id in last]

    def _known(self, row: BenchmarkResultRow, inventory: Inventory) -> Known | None:
        index = row.conditions.get("accelerator_index")
        part = next((each for each in inventory.accelerators if each.index == index), None)
        if part is None and row.device == "cuda":
            return None
        links = catalog.seen(self._session, "links", self._tenant_id)
        seen = Catalog(
            catalog.seen(self._session, "accelerators", self._tenant_id),
            {name: link for link in links for name in (link["id"], *link["aliases"])},
        )
        own = part if row.device == "cuda" else None
        return known(self._node_id, inventory, own, seen, self._reference)


class Stored(NamedTuple):
    """The ids of the sets that are new, and what the audit says of those and of the ones they supersede."""

    ids: tuple[str, ...]
    changes: tuple[Change, ...]


def store(session: Writer, tenant_id: str, prepared: Sequence[Prepared]) -> Stored:
    """Keep what was drawn. What says nothing new is not kept again.

    Nor is what rests on results that were withdrawn since they were read: they are drawn without them soon.
    """
    catalog.lock(session, tenant_id)
    ids: list[str] = []
    changes: list[Change] = []
    for one in prepared:
        row, ended = _kept(session, tenant_id, one)
        changes.extend(ended)
        if row is not None:
            ids.append(row.id)
            changes.append(Change(resource=f"calibrations/{row.id}", after=shown(row)))
    return Stored(tuple(ids), tuple(changes))


def _kept(session: Writer, tenant_id: str, one: Prepared) -> tuple[CalibrationRow | None, tuple[Change, ...]]:
    """The set that is new, if it is, and the end of the one before."""
    node_id = one.node_id
    before = repository.current(session, tenant_id, node_id, one.hardware_sha256)
    if not one.content:
        if before is None:
            return None, ()
        catalog.next_revision(session, tenant_id)
        return None, _superseded(session, before)
    if before is not None and before.content_sha256 == _digest(one.scope, one.content):
        return None, ()
    withdrawn = repository.withdrawn(session, tenant_id, node_id)
    if any(withdrawn.has(*result) for result in one.received.items()):
        return None, ()
    catalog.next_revision(session, tenant_id)
    earlier = repository.brought(session, tenant_id, node_id, one.hardware_sha256)
    ended = _superseded(session, before)
    row = _stored(
        session,
        tenant_id,
        one.scope,
        one.content,
        number=repository.last_number(session, tenant_id, node_id, one.hardware_sha256) + 1,
        origin=BENCHMARKS,
        hardware=one.hardware,
        hardware_sha256=one.hardware_sha256,
        # A set that brings nothing new, as after a change of verdicts, takes all with it that it read.
        new_result_ids=sorted(one.received.keys() - earlier or one.received),
    )
    return row, ended


def _superseded(session: Writer, row: CalibrationRow | None) -> tuple[Change, ...]:
    """Let a set, if there is one, count no more; what the audit says of it."""
    if row is None:
        return ()
    before = shown(row)
    repository.end(session, row, SUPERSEDED)
    return (Change(resource=f"calibrations/{row.id}", before=before, after=shown(row)),)


def keep(session: Writer, tenant_id: str, drawn: Drawn, rests_on: Mapping[str, Any]) -> str:
    """Store what was read elsewhere as a set of its own; its id.

    ``rests_on`` says where it comes from. The caller writes what the audit says of it.
    """
    catalog.next_revision(session, tenant_id)
    of_device = drawn.calibration
    content = {
        "figures": [written(name, figure) for name, figure in figures(of_device)] if of_device else [],
        "fits": [],
        "answers": written_answers(drawn.answers),
    }
    scope = of_device.scope if of_device else _UNKNOWN
    added = {"number": 1, "origin": IMPORT, "rests_on": dict(rests_on), "new_result_ids": []}
    return _stored(session, tenant_id, scope, content, **added).id


def _stored(
    session: Writer, tenant_id: str, scope: Scope, content: Mapping[str, Any], **added: object
) -> CalibrationRow:
    of_scope = scope._asdict()
    row = CalibrationRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        state=ACTIVE,
        device=of_scope.pop("kind"),
        content_sha256=_digest(scope, content),
        created_at=leases.now(),
        **of_scope,
        **content,
        **added,
    )
    session.add(row)
    session.flush()
    return row


def _digest(scope: Scope, content: Mapping[str, Any]) -> str:
    return idempotency.digest([scope, content])


def withdraw(session: Writer, tenant_id: str, calibration_id: str, reason: str) -> Change:
    """Let a set count no more, for good; the one that it superseded counts again.

    The results that it brought are never drawn from again: what else rests on them is drawn anew.
    """
    # First, because it locks: of two that withdraw or draw at a time the second sees what the first did.
    revision = catalog.next_revision(session, tenant_id)
    row = repository.one(session, tenant_id, calibration_id)
    if row is None:
        raise CalibrationNotFound
    if row.state == WITHDRAWN:
        raise CalibrationWithdrawn
    before = shown(row)
    also: tuple[Change, ...] = ()
    was_active = row.state == ACTIVE
    repository.end(session, row, WITHDRAWN, reason)
    if row.origin == BENCHMARKS and row.node_id is not None:
        former = repository.former(session, row) if was_active else None
        if former is not None and not set(former.new_result_ids) & set(row.new_result_ids):
            stood = shown(former)
            repository.revive(session, former)
            also = (Change(resource=f"calibrations/{former.id}", before=stood, after=shown(former)),)
        calibration_jobs.ask(session, tenant_id, row.node_id, because=f"without {row.id}")
    after = shown(row)
    headers = {REVISION_HEADER: str(revision)}
    resource = f"calibrations/{row.id}"
    return Change(resource=resource, body=after, headers=headers, before=before, after=after, also=also)


def withdraw_node(session: Writer, tenant_id: str, node_id: str, reason: str) -> Change:
    """Let nothing count that a node has measured so far; later runs make new sets."""
    revision = catalog.next_revision(session, tenant_id)
    rows = repository.standing(session, tenant_id, node_id)
    if not rows:
        raise NothingToWithdraw
    before = [shown(row) for row in rows]
    for row in rows:
        repository.end(session, row, WITHDRAWN, reason, takes_all=True)
    after = [shown(row) for row in rows]
    calibration_jobs.ask(session, tenant_id, node_id, because=f"without all of {rows[-1].id}")
    return Change(
        resource=f"nodes/{node_id}/calibrations",
        body={"items": after},
        headers={REVISION_HEADER: str(revision)},
        before=before,
        after=after,
    )


class State(NamedTuple):
    """Whether a set counts, and if not why and since when."""

    state: str
    reason: str | None
    ended_at: datetime | None


def states(session: Session, tenant_id: str, ids: Collection[str]) -> dict[str, State]:
    """How sets of a tenant stand, by id."""
    rows = repository.some(session, tenant_id, ids)
    return {row.id: State(row.state, row.reason, row.ended_at) for row in rows}


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


def shown(row: CalibrationRow) -> dict[str, Any]:
    """A set as callers see it in a list; what is unknown is absent."""
    return {name: value for name in _SHOWN if (value := getattr(row, name)) is not None}


def whole(session: Reader, tenant_id: str, calibration_id: str) -> dict[str, Any]:
    """A set with every figure and what each rests on."""
    row = repository.one(session, tenant_id, calibration_id)
    if row is None:
        raise CalibrationNotFound
    return {
        **shown(row),
        "figures": [_shown_figure(entry) for entry in row.figures],
        "fits": row.fits,
        "answers": row.answers,
    }


def _shown_figure(entry: Document) -> Document:
    """A figure with its unit, and its share of the limit."""
    told = {"unit": unit_of(entry["name"]), **entry}
    limit = entry.get("limit")
    return {**told, "share": entry["value"] / limit} if limit else told
