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
from service.evidence.rows import BUILDERS, SHADOWED, name_row
from service.evidence.service import load_reference_curves
from service.kit.database.engine import Database
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


class _TenantState(NamedTuple):
    """The snapshot of a tenant with the rows of its own that it was built from."""

    view: CatalogView
    own: _RowLayers


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
    before: _TenantState,
    revision: int,
    shipped: _RowLayers,
    changes: Mapping[str, catalog.ChangedRows],
    measured: calibrations.TenantMeasurements,
) -> _TenantState:
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
    return _TenantState(view, own)


@cache
def build_shipped_snapshot(revision: int = 0) -> CatalogView:
    """Builds the snapshot of the shipped files, without a database."""
    return _build_common_snapshot(revision, _build_layers(list_shipped_documents()))


REVISION_DIGITS = 15
"""Most digits of a catalog revision."""


class SnapshotStore:
    """The current snapshots of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shipped: _RowLayers = _NONE
        self._revisions: Mapping[str, int] = {}
        self._common: CatalogView | None = None
        self._tenants: Mapping[str, _TenantState] = {}
        self._dropped: frozenset[str] = frozenset()
        """Tenants whose snapshots are built again when they are next asked for."""
        self._asked_at: dict[str, float] = {}
        self._census = nodes.NodeCensus(0, None)
        self._nodes: Mapping[str, frozenset[str]] = {}
        self._lock = threading.Lock()

    def get_current(self, tenant_id: str) -> CatalogView:
        """Returns the newest snapshot of a tenant; 503 before the first."""
        self._asked_at[tenant_id] = time.monotonic()
        if tenant_id in self._dropped:
            self.refresh(restored=tenant_id)
        own = self._tenants.get(tenant_id)
        found = self._common if own is None else own.view
        if found is None:
            raise Unavailable("The catalog is not loaded yet", headers={"Retry-After": "1"})
        return found

    def newest(self, tenant_id: str) -> CatalogView:
        """Returns a current snapshot of a tenant, including recent writes of other processes."""
        self.refresh()
        return self.get_current(tenant_id)

    @property
    def is_ready(self) -> bool:
        """True if there is a snapshot of a loaded catalog."""
        return self._common is not None

    def drop_idle(self, idle_seconds: float) -> None:
        """Drops the snapshots of tenants that nobody has asked for, until somebody does."""
        with self._lock:
            since = time.monotonic() - idle_seconds
            idle = {name for name in self._tenants if self._asked_at.get(name, 0.0) < since}
            self._dropped |= idle  # first, so that nobody takes the shipped rows for theirs
            self._tenants = {name: seen for name, seen in self._tenants.items() if name not in idle}

    def refresh(self, restored: str | None = None) -> None:
        """Rebuilds the snapshots of tenants whose rows have changed, and one that was dropped."""
        with self._lock, self._database.open_reader() as session:
            dropped = self._dropped - {restored}
            revisions = catalog.list_own_revisions(session)
            base = revisions.get(SHIPPED_TENANT, 0)
            census = nodes.read_census(session)
            is_same = revisions == self._revisions and census == self._census
            if not base or (is_same and dropped == self._dropped):
                return
            own_nodes = self._nodes if census == self._census else nodes.list_ids_by_tenant(session)
            tenants = {name: seen for name, seen in self._tenants.items() if name in revisions}
            common = self._common
            if common is None or common.revision != base:
                self._shipped = _build_layers(catalog.list_own_documents(session, SHIPPED_TENANT))
                common = replace(_build_common_snapshot(base, self._shipped), node_ids=frozenset())
                tenants = {}
            stale = {name for name in revisions if revisions[name] != self._revisions.get(name)}
            for tenant_id in (stale | (revisions.keys() - tenants.keys())) - dropped - {SHIPPED_TENANT}:
                before = tenants.get(tenant_id)
                since = 0 if before is None else before.view.revision
                tenants[tenant_id] = _change_snapshot(
                    before or _TenantState(common, _NONE),
                    base + revisions[tenant_id],
                    self._shipped,
                    catalog.list_changed_rows(session, tenant_id, since),
                    calibrations.build_planning_values(session, tenant_id),
                )
            for tenant_id in (tenants.keys() | own_nodes.keys()) - dropped:
                state = tenants.get(tenant_id, _TenantState(common, _NONE))
                own = own_nodes.get(tenant_id, frozenset())
                if state.view.node_ids != own:
                    state = state._replace(view=replace(state.view, node_ids=own))
                tenants[tenant_id] = state
            # The common snapshot is set last, so that it never appears in an incomplete state.
            self._tenants, self._common = tenants, common
            self._dropped = dropped  # after the snapshots
            self._revisions, self._census, self._nodes = revisions, census, own_nodes

    async def get_requested(self, scope: Mapping[str, Any]) -> CatalogView:
        """Returns the snapshot of the caller, as new as the `Catalog-Revision` that the request sends."""
        tenant_id = scope["state"]["subject"].tenant_id
        if tenant_id in self._dropped:
            await asyncio.to_thread(self.get_current, tenant_id)
        asked = next((value for name, value in scope["headers"] if name == b"catalog-revision"), None)
        if asked is None:
            return self.get_current(tenant_id)
        if not asked.isdigit() or len(asked) > REVISION_DIGITS:
            detail = "Catalog-Revision must be a whole number"
            raise BadRequest(detail, FieldError("/header/Catalog-Revision", "INTEGER", detail))
        return await self.await_revision(tenant_id, int(asked))

    async def await_revision(self, tenant_id: str, revision: int) -> CatalogView:
        """Returns a snapshot of a tenant that contains ``revision``; 503 if none is ready in time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.get_current(tenant_id).revision < revision:
            if time.monotonic() > deadline:
                detail = "No snapshot of the requested revision was ready in time"
                raise Unavailable(detail, headers={"Retry-After": "1"})
            await asyncio.to_thread(self.refresh)
            await asyncio.sleep(0.05)
        return self.get_current(tenant_id)


Snapshots = Annotated[SnapshotStore, from_state("snapshots")]


async def get_requested_snapshot(request: Request) -> CatalogView:
    """Returns the snapshot that the caller of a request sees."""
    store: SnapshotStore = request.app.state.snapshots
    return await store.get_requested(request.scope)


@lru_cache(maxsize=1)
def get_store(database: Database) -> SnapshotStore:
    """Returns the store of this process for a database, shared by requests and jobs to save memory."""
    return SnapshotStore(database)
