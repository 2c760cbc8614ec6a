"""Creation of plans and fleets: a search that is not answered soon goes on in the background."""

from collections.abc import Callable
from typing import Final

from fastapi import Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteRequest
from service.estimates.service import answer_question
from service.evidence.snapshot import SnapshotStore
from service.kit.http.long_work import WorkOffloader
from service.kit.http.problems import OutOfTime, TooBusy
from service.kit.security.principals import build_permission
from service.plans import stored
from service.plans.fleet import estimate_fleet
from service.plans.service import PreparedSearch, prepare_fleet, prepare_pieces, prepare_plan
from service.resolve.catalog import CatalogView
from service.schemas.fleet_plans import FleetPlanRequest
from service.schemas.plans import PlanRequest

_MAY_STORE: Final = build_permission("plans", "write")


async def create_plan(
    write: WriteRequest,
    snapshots: SnapshotStore,
    aside: WorkOffloader,
    searching: WorkOffloader,
    body: PlanRequest,
) -> Response:
    """Stores a plan, with its answer if that is found soon, else with the jobs of its search."""

    def prepare(how: Callable[[PlanRequest, CatalogView], PreparedSearch]) -> PreparedSearch:
        return answer_question(how, body, snapshots.newest(write.tenant_id))

    async def search_soon(search: Callable[[], PreparedSearch]) -> PreparedSearch:
        try:
            return await searching(search)
        except (OutOfTime, TooBusy):
            return await aside(lambda: prepare(prepare_pieces))

    return await write.run_prepared(
        body,
        search_soon,
        lambda: prepare(prepare_plan),
        lambda session, prepared: stored.create_plan(session, write.tenant_id, prepared),
    )


async def plan_fleet(
    write: WriteRequest,
    catalog: CatalogView,
    aside: WorkOffloader,
    searching: tuple[WorkOffloader, WorkOffloader],
    body: FleetPlanRequest,
) -> Response:
    """Answers with the schedule of a fleet if it is found soon, else stores the jobs of its search.

    ``searching`` waits a part and all of the caller's time. A caller who may not store plans waits all of it
    and is then refused: by a question that takes long, it would otherwise write what it may only read.
    """
    may_store = write.subject.has_permission(_MAY_STORE)
    answered = await write.replayed(body) if may_store else None
    if answered is not None:
        return answered
    soon, late = searching
    try:
        found = await (soon if may_store else late)(
            lambda: to_json(answer_question(estimate_fleet, body, catalog))
        )
    except (OutOfTime, TooBusy):
        if not may_store:
            raise
        prepared = await aside(lambda: answer_question(prepare_fleet, body, catalog))
    else:
        return Response(found, media_type="application/json")
    return await run_in_threadpool(
        write.run, body, lambda session: stored.create_plan(session, write.tenant_id, prepared)
    )
