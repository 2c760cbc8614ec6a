"""The job that draws the calibrations of a node, enqueued where a result is accepted or no longer is."""

from datetime import timedelta

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import Asked
from service.kit.jobs.repository import enqueue


class NodeToDraw(BaseModel):
    """Whose results."""

    node_id: str


DRAW = Asked(name="calibrations.draw", arguments=NodeToDraw)
LEASE = timedelta(minutes=2)


def ask(session: Writer, tenant_id: str, node_id: str, *, because: str) -> None:
    """Ask for the sets of a node to be drawn, once for each reason."""
    enqueue(
        session,
        DRAW,
        NodeToDraw(node_id=node_id),
        tenant_id=tenant_id,
        effect_key=f"{node_id} {because}",
    )
