"""Results beside earlier ones in the background: asked for where they are validated."""

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import Asked
from service.kit.jobs.repository import enqueue


class RunToCompare(BaseModel):
    """Whose results."""

    run_id: str


COMPARE = Asked(name="benchmarks.compare", arguments=RunToCompare)


def ask(session: Writer, tenant_id: str, run_id: str, *, because: str) -> None:
    """Ask for the results of a run to be compared, once for each reason."""
    arguments = RunToCompare(run_id=run_id)
    enqueue(session, COMPARE, arguments, tenant_id=tenant_id, effect_key=f"{run_id} {because}")
