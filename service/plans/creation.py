"""Creation of plans: a search that is not answered soon goes on in the background."""

from collections.abc import Callable

from fastapi import Response

from service.audit.service import WriteRequest
from service.estimates.service import answer_question
from service.evidence.snapshot import SnapshotStore
from service.kit.http.long_work import WorkOffloader
from service.kit.http.problems import OutOfTime, TooBusy
from service.plans import stored
from service.plans.service import PreparedSearch, prepare_pieces, prepare_plan
from service.resolve.catalog import CatalogView
from service.schemas.plans import PlanRequest


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
