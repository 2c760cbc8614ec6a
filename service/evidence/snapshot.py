"""Snapshots of the catalog and calibrations of a tenant, rebuilt when a revision that it sees changes."""

import asyncio
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple

from fastapi import Request

from service.calibrations import service as calibrations
from service.catalog import service as catalog
from service.catalog.shipped import list_shipped_documents
from service.evidence.first_builds import FirstBuilds
from service.evidence.rows import BUILDERS, SHADOWED, name_row
from service.evidence.service import load_reference_curves
from service.kit.database.engine import Database, Reader
from service.kit.database.waiting import REQUEST_SECONDS
from service.kit.http.problems import BadRequest, FieldError, Unavailable
from service.kit.http.web import from_state
from service.kit.security.principals import SHIPPED_TENANT
from service.nodes import service as nodes
from service.planning.cost.exchange import ExchangeRates
from service.resolve.accelerator_names import AcceleratorRows
from service.resolve.catalog import CatalogView
from service.resolve.instances import list_instances
from service.resolve.model_names import ModelRows
from service.resolve.names import NamedRows
from service.resolve.row_layers import NamedRow, RowLayer

WAIT_SECONDS = 2.0
"""Longest time that a request waits for a snapshot as new as the revision that it sends."""

_RowLayers = Mapping[str, RowLayer]
"""Rows of one owner, by the name of their resource."""
_NONE: _RowLayers = {name: RowLayer() for name in BUILDERS}


class _OwnerState(NamedTuple):
    """The snapshot that an owner of rows sees, with the rows and measurements of its own in it."""

    view: CatalogView
    own: _RowLayers
    measured: calibrations.TenantMeasurements = calibrations.NO_MEASUREMENTS

    def without_rows(self) -> "_OwnerState":
        """Returns the state of an owner that sees the same and has no rows yet."""
        return _OwnerState(self.view, _NONE)

    def set_nodes(self, node_ids: frozenset[str]) -> "_OwnerState":
        """Returns the state with the nodes of its owner."""
        if self.view.node_ids == node_ids:
            return self
        return self._replace(view=replace(self.view, node_ids=node_ids))


def _build_layers(rows: catalog.DocumentsByNoun) -> _RowLayers:
    return {name: RowLayer(name_row(name, row) for row in rows[name]) for name in BUILDERS}


def _name_changes(name: str, changes: catalog.ChangedRows, shipped: _RowLayers) -> dict[str, NamedRow | None]:
    """Returns changed rows of a tenant, each with the version of the shipped row that it shadows."""
    behind = shipped[name].entries
    named: dict[str, NamedRow | None] = {}
    for row_id, row in changes.items():
        if row is None:
            named[row_id] = None
        else:
            shadowed = {SHADOWED: behind[row_id].version} if row_id in behind else {}
            named[row_id] = name_row(name, {**row, **shadowed})
    return named


def _index_rows(names: Iterable[str], shipped: _RowLayers, own: _RowLayers) -> dict[str, Any]:
    """Returns the rows of resources by any of their names, those of a tenant before the shipped ones."""
    found: dict[str, Any] = {name: NamedRows(shipped[name], own[name]) for name in names}
    if "exchange_rates" in found:
        # The tenant's rates come last: of two rates for one pair and day the later one is used.
        found["exchange_rates"] = ExchangeRates(found["exchange_rates"].values())
    if "models" in found:
        found["models"] = ModelRows(
            shipped["models"],
            own["models"],
            store=lambda model, form: model.store_as(form.quantization_config),
        )
    if "accelerators" in found:
        accelerators, offers = found["accelerators"], found["offers"]
        found["accelerators"] = AcceleratorRows(
            shipped["accelerators"],
            own["accelerators"],
            list_instances=lambda: list_instances(accelerators, offers),
        )
    return found


def _build_common_snapshot(revision: int, shipped: _RowLayers) -> CatalogView:
    """Builds the snapshot of the shipped rows alone."""
    return CatalogView(
        revision=revision, curves=load_reference_curves(), **_index_rows(BUILDERS, shipped, _NONE)
    )


def _change_snapshot(
    before: _OwnerState,
    revision: int,
    shipped: _RowLayers,
    changes: Mapping[str, catalog.ChangedRows],
    measured: calibrations.TenantMeasurements,
) -> _OwnerState:
    """Builds the snapshot of a tenant from an earlier one and the rows that have changed since.

    A resource of which no row has changed is that of the earlier snapshot.
    """
    changed = {name for name, rows in changes.items() if rows and name in BUILDERS}
    layers = {
        name: before.own[name].apply_changes(_name_changes(name, changes[name], shipped)) for name in changed
    }
    own = {**before.own, **layers}
    if "offers" in changed or "accelerators" in changed:
        # An accelerator is found by the instance types that offers name.
        changed |= {"offers", "accelerators"}
    view = replace(
        before.view,
        revision=revision,
        calibrations=measured.calibrations,
        measured_answers=measured.answers,
        **_index_rows(changed, shipped, own),
    )
    return _OwnerState(view, own, measured)


def _read_changes(
    session: Reader, tenant_id: str, common: _OwnerState, before: _OwnerState, revision: int
) -> _OwnerState:
    """Reads the rows of a tenant that have changed since an earlier snapshot."""
    if before.view.revision == revision:
        return before
    since = 0 if before.own is _NONE else before.view.revision
    changes = catalog.list_changed_rows(session, tenant_id, since)
    measured = calibrations.build_planning_values(session, tenant_id, before.measured)
    return _change_snapshot(before, revision, common.own, changes, measured)


@cache
def build_shipped_snapshot(revision: int = 0) -> CatalogView:
    """Builds the snapshot of the shipped files, without a database."""
    return _build_common_snapshot(revision, _build_layers(list_shipped_documents()))


_RETRY = {"Retry-After": "1"}
_BEING_BUILT = "The catalog of the tenant is not loaded yet"

REVISION_DIGITS = 15
"""Most digits of a catalog revision."""


class SnapshotStore:
    """The current snapshots of one database.

    That of a tenant is built when the tenant first asks, or before that by :meth:`load_all`; a refresh
    brings those that are built up to date.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._revisions: Mapping[str, int] = {}
        self._common: _OwnerState | None = None
        self._tenants: Mapping[str, _OwnerState] = {}
        self._census = nodes.NodeCensus(0, None)
        self._nodes: Mapping[str, frozenset[str]] = {}
        self._lock = threading.Lock()
        self._first_builds = FirstBuilds(self._build_first)
        self._asked_at: dict[str, float] = {}

    def _find_current(self, tenant_id: str) -> CatalogView | None:
        """Returns the newest snapshot of a tenant; None if it must be built first."""
        self._asked_at[tenant_id] = time.monotonic()
        own, common = self._tenants.get(tenant_id), self._common
        if common is None:
            raise Unavailable("The catalog is not loaded yet", headers=_RETRY)
        if own is None and tenant_id in self._revisions and tenant_id != SHIPPED_TENANT:
            return None
        return (own or common).view

    def get_current(self, tenant_id: str) -> CatalogView:
        """Returns the newest snapshot of a tenant; 503 if a request cannot wait until it is built."""
        found = self._find_current(tenant_id)
        if found is not None:
            return found
        try:
            return self._first_builds.start(tenant_id).result(REQUEST_SECONDS)
        except TimeoutError:
            raise Unavailable(_BEING_BUILT, headers=_RETRY) from None

    async def await_current(self, tenant_id: str) -> CatalogView:
        """Returns what :meth:`get_current` does, without a thread that waits."""
        found = self._find_current(tenant_id)
        if found is not None:
            return found
        build = asyncio.wrap_future(self._first_builds.start(tenant_id))
        try:
            return await asyncio.wait_for(build, REQUEST_SECONDS)
        except TimeoutError:
            raise Unavailable(_BEING_BUILT, headers=_RETRY) from None

    def load(self, tenant_id: str) -> CatalogView:
        """Returns the newest snapshot of a tenant, however long it takes to build it."""
        return self._find_current(tenant_id) or self._first_builds.start(tenant_id).result()

    def load_all(self) -> None:
        """Builds the snapshots of all tenants, beginning with those whose rows changed last."""
        for tenant_id in self._revisions:
            self.load(tenant_id)

    def newest(self, tenant_id: str) -> CatalogView:
        """Returns a current snapshot of a tenant, including recent writes of other processes."""
        self.refresh()
        return self.get_current(tenant_id)

    @property
    def is_ready(self) -> bool:
        """True if there is a snapshot of the shipped rows."""
        return self._common is not None

    def drop_idle(self, idle_seconds: float) -> None:
        """Drops the snapshots of tenants that nobody has asked for, until somebody does."""
        with self._lock:
            since = time.monotonic() - idle_seconds
            self._tenants = {
                name: state
                for name, state in self._tenants.items()
                if name not in self._revisions or self._asked_at.get(name, 0.0) >= since
            }

    def refresh(self) -> None:
        """Brings the snapshots that are built up to date with the database."""
        self._take_changes(None, {})

    def _build_first(self, tenant_id: str) -> CatalogView:
        while (found := self._find_current(tenant_id)) is None:
            common = self._common
            # Refreshes, and with them other tenants, go on meanwhile.
            self._take_changes(common, self._read_tenant(tenant_id, common))
        return found

    def _read_tenant(self, tenant_id: str, common: _OwnerState | None) -> dict[str, _OwnerState]:
        """Reads all rows of a tenant; nothing if the shipped rows are not those of ``common`` any more."""
        with self._database.open_reader() as session:
            revisions = catalog.list_own_revisions(session)
            base = revisions.get(SHIPPED_TENANT, 0)
            if common is None or common.view.revision != base:
                return {}
            seen = base + revisions.get(tenant_id, 0)
            return {tenant_id: _read_changes(session, tenant_id, common, common.without_rows(), seen)}

    def _take_changes(self, built_on: _OwnerState | None, built: Mapping[str, _OwnerState]) -> None:
        """Replaces snapshots of which a revision has changed, and adds those that were ``built``."""
        with self._lock, self._database.open_reader() as session:
            revisions = catalog.list_own_revisions(session)
            base = revisions.get(SHIPPED_TENANT, 0)
            census = nodes.read_census(session)
            added = built if built_on is self._common else {}
            if not base or not (added or revisions != self._revisions or census != self._census):
                return
            own_nodes = self._nodes if census == self._census else nodes.list_ids_by_tenant(session)
            common, before = self._common, {**self._tenants, **added}
            if common is not None:
                # A tenant's first row is in its snapshot at once, with the database or without it.
                first = revisions.keys() - self._revisions.keys() - before.keys() - {SHIPPED_TENANT}
                before |= dict.fromkeys(first, common.without_rows())
            if common is None or common.view.revision != base:
                shipped = _build_layers(catalog.list_own_documents(session, SHIPPED_TENANT))
                view = replace(_build_common_snapshot(base, shipped), node_ids=frozenset())
                common = _OwnerState(view, shipped)
                before = dict.fromkeys(before, common.without_rows())
            tenants = {
                name: _read_changes(session, name, common, state, base + revisions[name])
                for name, state in before.items()
                if name in revisions
            }
            for tenant_id in tenants.keys() | (own_nodes.keys() - revisions.keys()):
                state = tenants.get(tenant_id, common.without_rows())
                tenants[tenant_id] = state.set_nodes(own_nodes.get(tenant_id, frozenset()))
            # The common snapshot is set last, so that it never appears in an incomplete state.
            self._tenants, self._revisions = tenants, revisions
            self._census, self._nodes, self._common = census, own_nodes, common

    async def get_requested(self, scope: Mapping[str, Any]) -> CatalogView:
        """Returns the snapshot of the caller, as new as the `Catalog-Revision` that the request sends."""
        tenant_id = scope["state"]["subject"].tenant_id
        asked = next((value for name, value in scope["headers"] if name == b"catalog-revision"), None)
        if asked is None:
            return await self.await_current(tenant_id)
        if not asked.isdigit() or len(asked) > REVISION_DIGITS:
            detail = "Catalog-Revision must be a whole number"
            raise BadRequest(detail, FieldError("/header/Catalog-Revision", "INTEGER", detail))
        return await self.await_revision(tenant_id, int(asked))

    async def await_revision(self, tenant_id: str, revision: int) -> CatalogView:
        """Returns a snapshot of a tenant that contains ``revision``; 503 if none is ready in time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (found := await self.await_current(tenant_id)).revision < revision:
            if time.monotonic() > deadline:
                detail = "No snapshot of the requested revision was ready in time"
                raise Unavailable(detail, headers={"Retry-After": "1"})
            await asyncio.to_thread(self.refresh)
            await asyncio.sleep(0.05)
        return found


Snapshots = Annotated[SnapshotStore, from_state("snapshots")]


async def get_requested_snapshot(request: Request) -> CatalogView:
    """Returns the snapshot that the caller of a request sees."""
    store: SnapshotStore = request.app.state.snapshots
    return await store.get_requested(request.scope)


@lru_cache(maxsize=1)
def get_store(database: Database) -> SnapshotStore:
    """Returns the store of this process for a database, shared by requests and jobs to save memory."""
    return SnapshotStore(database)
