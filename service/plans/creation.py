"""Creation of plans and fleets: a search that is not answered soon goes on in the background."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

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
from service.plans.errors import TooManyPlans
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
    searching: WorkOffloader,
    body: FleetPlanRequest,
    *,
    soon_seconds: float,
) -> Response:
    """Answers with the schedule of a fleet if it is found soon, else stores the jobs of its search.

    A caller who may not store plans, or whose tenant has no place for another search, waits for all of the
    caller's time. The first stores nothing, not even an answer under its key.
    """

    def search() -> bytes:
        return to_json(answer_question(estimate_fleet, body, catalog))

    if not write.subject.has_permission(_MAY_STORE):
        return Response(await searching(search), media_type="application/json")
    answered = await write.replayed(body)
    if answered is not None:
        return answered
    async with _begin_search(searching(search)) as inline:
        await asyncio.wait({inline}, timeout=soon_seconds)
        if _has_ended(inline):
            found = inline.result()
        else:
            try:
                return await _store_fleet(write, catalog, aside, body)
            except TooManyPlans as full:
                found = await _wait_for(inline, full)
    return await write.keep_answer(body, found)


@asynccontextmanager
async def _begin_search(search: Coroutine[Any, Any, bytes]) -> AsyncIterator[asyncio.Task[bytes]]:
    """Runs a search beside the block, at whose end it is dropped."""
    task = asyncio.create_task(search)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # asyncio reports an error that nobody has looked at


def _has_ended(inline: asyncio.Task[bytes]) -> bool:
    """Returns true if a search has its answer, or an error other than that of time or place."""
    return inline.done() and not isinstance(inline.exception(), OutOfTime | TooBusy)


async def _wait_for(inline: asyncio.Task[bytes], full: TooManyPlans) -> bytes:
    """Returns the answer of a search that has no place in the background; out of time it is refused so."""
    try:
        return await inline
    except OutOfTime:
        raise full from None


async def _store_fleet(
    write: WriteRequest, catalog: CatalogView, aside: WorkOffloader, body: FleetPlanRequest
) -> Response:
    """Stores a fleet with the jobs of its search, which are prepared only if it has a place."""
    tenant_id = write.tenant_id

    def check_place() -> None:
        with write.transactions.open_reader() as session:
            stored.check_place(session, tenant_id)

    await run_in_threadpool(check_place)
    prepared = await aside(lambda: answer_question(prepare_fleet, body, catalog))
    return await run_in_threadpool(
        write.run, body, lambda session: stored.create_plan(session, tenant_id, prepared)
    )
