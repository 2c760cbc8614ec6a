"""Validation in the background: asked for in the transaction that ends a lease, and of what was left."""

from datetime import timedelta

from pydantic import BaseModel

from service.audit.service import Writes
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation import repository, service
from service.benchmarks.validation.rules import RULES_VERSION
from service.kit.database.engine import Writer
from service.kit.jobs.kinds import Asked, Done, Job, Kind
from service.kit.jobs.repository import enqueue
from service.kit.jobs.schedules import Nothing, Schedule
from service.nodes import service as nodes

LEFT_FOR = timedelta(hours=1)
"""A run that was lost or is validated under older rules: no end of a lease asks for it."""
_AT_ONCE = 200


class RunToValidate(BaseModel):
    """Which run."""

    run_id: str
    again: bool = False
    """Also those that the rules have been applied to."""


VALIDATE = Asked(name="benchmarks.validate", arguments=RunToValidate)


def validating(writes: Writes) -> Kind[RunToValidate]:
    """What is done with the results of a run; a run that measures suspects again is recorded."""

    def run(job: Job[RunToValidate]) -> Done:
        run_id = job.arguments.run_id
        # Parsed and judged outside the write transaction: an embedded database has one writer.
        with job.database.reading() as session:
            examined = service.examine(session, job.tenant_id, run_id, again=job.arguments.again)
        with job.writing() as session:
            again = service.keep(session, job.tenant_id, run_id, examined)
            if again is not None:
                writes.note(session, job.tenant_id, "re_run_benchmark", again)
        return Done({"results": len(examined)})

    return Kind(name=VALIDATE.name, arguments=VALIDATE.arguments, run=run, lease=timedelta(minutes=2))


def ask(session: Writer, tenant_id: str, run_id: str, *, because: str, again: bool = False) -> None:
    """Ask for the results of a run to be validated, once for each reason."""
    arguments = RunToValidate(run_id=run_id, again=again)
    enqueue(session, VALIDATE, arguments, tenant_id=tenant_id, effect_key=f"{run_id} {because}")


def _sweep(job: Job[Nothing]) -> Done:
    with job.writing() as session:
        is_running = nodes.stands(BenchmarkResultRow.run_id, states=["running"])
        left = repository.left(
            session, RULES_VERSION, ~is_running, before_seconds=LEFT_FOR.total_seconds(), limit=_AT_ONCE
        )
        for run in left:
            ask(session, run.tenant_id, run.run_id, because=f"left {RULES_VERSION} {run.last_id}")
    return Done({"runs": len(left)})


SWEEPING = Schedule(
    name="benchmarks.sweep",
    every=LEFT_FOR,
    job=Kind(
        name="benchmarks.sweep", arguments=Nothing, run=_sweep, concurrency=1, retention=timedelta(days=1)
    ),
)
