"""Validation in the background: enqueued in the transaction that ends a lease, and for runs left over."""

from datetime import timedelta

from pydantic import BaseModel

from service.audit.service import Writes
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation import repository, service
from service.benchmarks.validation.rules import RULES_VERSION
from service.kit.database.engine import Writer
from service.kit.jobs.kinds import CompletedJob, JobChunk, JobType, RunnableJobType
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.nodes import service as nodes

LEFT_FOR = timedelta(hours=1)
"""Age at which a run is validated that no end of a lease enqueues: it was lost, or its rules are older."""
_AT_ONCE = 200


class RunToValidate(BaseModel):
    """Run to validate."""

    run_id: str
    again: bool = False
    """True to include results that the rules have been applied to."""


VALIDATE = JobType(name="benchmarks.validate", arguments=RunToValidate)


def build_validation_kind(writes: Writes) -> RunnableJobType[RunToValidate]:
    """Returns the job that validates the results of a run and records a run that measures suspects again."""

    def validate_run(job: JobChunk[RunToValidate]) -> CompletedJob:
        run_id = job.arguments.run_id
        # Parsed and judged outside the write transaction: an embedded database has one writer.
        with job.database.open_reader() as session:
            examined = service.examine_run(session, job.tenant_id, run_id, again=job.arguments.again)
        with job.open_writer() as session:
            again = service.store_examined(session, job.tenant_id, run_id, examined)
            if again is not None:
                writes.record_own_change(session, job.tenant_id, "re_run_benchmark", again)
        return CompletedJob({"results": len(examined)})

    return RunnableJobType(
        name=VALIDATE.name, arguments=VALIDATE.arguments, run=validate_run, lease=timedelta(minutes=2)
    )


def enqueue_validation(
    session: Writer, tenant_id: str, run_id: str, *, because: str, again: bool = False
) -> None:
    """Enqueues the validation of the results of a run, once for each reason."""
    arguments = RunToValidate(run_id=run_id, again=again)
    enqueue_job(session, VALIDATE, arguments, tenant_id=tenant_id, effect_key=f"{run_id} {because}")


def _enqueue_unvalidated(job: JobChunk[NoArguments]) -> CompletedJob:
    with job.open_writer() as session:
        is_running = nodes.build_standing_condition(BenchmarkResultRow.run_id, states=["running"])
        left = repository.list_unvalidated_runs(
            session, RULES_VERSION, ~is_running, before_seconds=LEFT_FOR.total_seconds(), limit=_AT_ONCE
        )
        for run in left:
            enqueue_validation(
                session, run.tenant_id, run.run_id, because=f"left {RULES_VERSION} {run.last_id}"
            )
    return CompletedJob({"runs": len(left)})


SWEEPING = JobSchedule(
    name="benchmarks.sweep",
    every=LEFT_FOR,
    job=RunnableJobType(
        name="benchmarks.sweep",
        arguments=NoArguments,
        run=_enqueue_unvalidated,
        concurrency=1,
        retention=timedelta(days=1),
    ),
)
