"""Pages of the fleet: all nodes, one node, a run, and calibrations."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from service.audit.service import Transactions
from service.auth.sessions import AuthenticatedPageRoute, VisitorDependency
from service.benchmarks.schemas import OPTIONAL_ID
from service.fleet.calibrations import MOST_LISTED, describe_calibration, list_calibrations
from service.fleet.node import describe_node_page
from service.fleet.overview import describe_fleet
from service.fleet.permissions import resolve_parts
from service.fleet.run import describe_run_page
from service.kit.http.html import page_response, page_router, render_template
from service.nodes.schemas import NodeId
from service.nodes.service import NodeHeartbeats
from service.schemas.base import ResourceId

nodes = page_router(tag="nodes", route_class=AuthenticatedPageRoute)
runs = page_router(tag="benchmark-runs", route_class=AuthenticatedPageRoute)
calibrations = page_router(tag="calibrations", route_class=AuthenticatedPageRoute)

NodePath = Annotated[NodeId, Path(alias="id")]
RowPath = Annotated[ResourceId, Path(alias="id")]
DatedBenchmark = Annotated[str, Query(pattern=OPTIONAL_ID, max_length=100)]


@nodes.get("/fleet")
def fleet_page(
    request: Request, transactions: Transactions, heartbeats: NodeHeartbeats, visitor: VisitorDependency
) -> Response:
    """Shows the nodes with their states, and what has become worse."""
    parts = resolve_parts(visitor.subject)
    with transactions.open_reader() as session:
        fleet = describe_fleet(session, visitor.subject.tenant_id, heartbeats, parts)
    address = request.app.state.public_url or str(request.base_url).rstrip("/")
    page = render_template("fleet/fleet.html", visitor=visitor, parts=parts, address=address, **fleet)
    return page_response(page)


@calibrations.get("/fleet/calibrations")
def calibrations_page(transactions: Transactions, visitor: VisitorDependency) -> Response:
    """Shows the newest calibrations."""
    with transactions.open_reader() as session:
        listed = list_calibrations(session, visitor.subject.tenant_id)
    page = render_template(
        "fleet/calibrations.html", visitor=visitor, calibrations=listed, is_cut=len(listed) == MOST_LISTED
    )
    return page_response(page)


@calibrations.get("/fleet/calibrations/{id:name}")
def calibration_page(transactions: Transactions, visitor: VisitorDependency, id: RowPath) -> Response:
    """Shows a calibration: each constant before and after, and where it comes from."""
    parts = resolve_parts(visitor.subject)
    with transactions.open_reader() as session:
        found = describe_calibration(session, visitor.subject.tenant_id, id, parts)
    return page_response(render_template("fleet/calibration.html", visitor=visitor, parts=parts, **found))


@runs.get("/fleet/runs/{id:name}")
def run_page(transactions: Transactions, visitor: VisitorDependency, id: RowPath) -> Response:
    """Shows a run with its figures, and the verdicts on its results."""
    parts = resolve_parts(visitor.subject)
    with transactions.open_reader() as session:
        found = describe_run_page(session, visitor.subject.tenant_id, id, parts)
    return page_response(render_template("fleet/run.html", visitor=visitor, parts=parts, **found))


@nodes.get("/fleet/{id:name}")
def node_page(
    *,
    transactions: Transactions,
    heartbeats: NodeHeartbeats,
    visitor: VisitorDependency,
    id: NodePath,
    benchmark: DatedBenchmark = "",
) -> Response:
    """Shows a node, its last results beside what is expected of them, and one benchmark over time."""
    parts = resolve_parts(visitor.subject)
    with transactions.open_reader() as session:
        found = describe_node_page(
            session, visitor.subject.tenant_id, id, heartbeats=heartbeats, parts=parts, wanted=benchmark
        )
    return page_response(render_template("fleet/node.html", visitor=visitor, parts=parts, **found))
