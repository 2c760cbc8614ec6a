"""The job that draws the calibrations of a node, enqueued when a result is accepted or no longer is."""

from datetime import timedelta

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import enqueue_job


class NodeToDraw(BaseModel):
    """Arguments of the job that draws calibrations."""

    node_id: str


DRAW = JobType(name="calibrations.draw", arguments=NodeToDraw)
LEASE = timedelta(minutes=2)


def enqueue_calibration(session: Writer, tenant_id: str, node_id: str, *, because: str) -> None:
    """Enqueues the drawing of a node's calibrations, once for each reason."""
    enqueue_job(
        session,
        DRAW,
        NodeToDraw(node_id=node_id),
        tenant_id=tenant_id,
        effect_key=f"{node_id} {because}",
    )
