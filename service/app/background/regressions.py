"""What has become worse is told, once for each result."""

from service.benchmarks.comparing import COMPARE, RunToCompare
from service.benchmarks.regressions import told_of
from service.kit.jobs.events import emit
from service.kit.jobs.kinds import Done, Job, Kind
from service.schemas.events import EventType


def _compare(job: Job[RunToCompare]) -> Done:
    with job.database.reading() as session:
        worse = told_of(session, job.tenant_id, job.arguments.run_id)
    with job.writing() as session:
        for event in worse:
            emit(session, job.tenant_id, EventType.BENCHMARK_REGRESSED, event, once_for=event["result_id"])
    return Done({"regressions": len(worse)})


COMPARING = Kind(name=COMPARE.name, arguments=COMPARE.arguments, run=_compare)
