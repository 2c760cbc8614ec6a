"""Events of regressions, one for each result."""

from service.benchmarks.comparing import COMPARE, RunToCompare
from service.benchmarks.regressions import list_regression_events
from service.kit.jobs.events import emit_event
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.schemas.events import WebhookEventType


def _report_regressions(job: JobChunk[RunToCompare]) -> CompletedJob:
    with job.database.open_reader() as session:
        worse = list_regression_events(session, job.tenant_id, job.arguments.run_id)
    with job.open_writer() as session:
        for event in worse:
            emit_event(
                session,
                job.tenant_id,
                WebhookEventType.BENCHMARK_REGRESSED,
                event,
                once_for=event["result_id"],
            )
    return CompletedJob({"regressions": len(worse)})


COMPARING = RunnableJobType(name=COMPARE.name, arguments=COMPARE.arguments, run=_report_regressions)
